import statistics

import pytest
import torch

from slimwise_vllm.decode_bench.measure import median_error


def test_the_error_is_that_of_the_median_of_normal_values():
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(2000, 100, generator=generator, dtype=torch.float64)
    medians = [statistics.median(sample) for sample in samples.tolist()]
    claimed = statistics.mean(median_error(sample) for sample in samples.tolist())
    assert claimed == pytest.approx(statistics.stdev(medians), rel=0.05)


def test_one_outlier_does_not_move_it():
    values = [1.0, 1.1, 0.9, 1.05, 0.95]
    assert median_error([*values, 100.0]) < 2 * median_error(values)
