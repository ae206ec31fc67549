"""Memory of a GPU that is not there: what one batch takes, and how many fit."""

from types import SimpleNamespace

import pytest
import torch

from slimwise.calibrate import batch_limit
from slimwise.calibrate.batch_limit import BatchLimit, tokens_that_fit
from slimwise.calibrate.batches import first_batch
from slimwise.errors import ConfigError

CPU, GPUS = [torch.device("cpu")], [torch.device("cuda", 0), torch.device("cuda", 1)]
ROW = first_batch([[1] * 100], 1)
GIB = 2**30


def test_four_fifths_of_the_free_memory_are_filled():
    assert tokens_that_fit(GIB, GIB // 100, ROW) == 8000


def test_a_batch_never_passes_the_largest_size():
    assert tokens_that_fit(100 * GIB, 1, ROW) == 65536


def test_the_cpu_and_a_size_that_was_asked_for_are_not_measured():
    assert BatchLimit(None, CPU).tokens == 16384
    assert BatchLimit(512, GPUS).tokens == 512


@pytest.fixture
def two_gpus(monkeypatch) -> None:
    """The first batch takes 1 GiB on one GPU and 2 on the other; 10 and 40 GiB are free."""
    peaks = {0: 5 * GIB, 1: 6 * GIB}
    monkeypatch.setattr(
        batch_limit.torch,
        "cuda",
        SimpleNamespace(
            memory_allocated=lambda _gpu: 4 * GIB,
            memory_reserved=lambda _gpu: 5 * GIB,
            max_memory_allocated=lambda gpu: peaks[gpu.index],
            reset_peak_memory_stats=lambda _gpu: None,
            mem_get_info=lambda gpu: ((9, 39)[gpu.index] * GIB, 80 * GIB),
            empty_cache=lambda: None,
        ),
    )


@pytest.mark.usefixtures("two_gpus")
def test_the_fuller_gpu_decides_after_one_sequence():
    limit = BatchLimit(None, GPUS)
    assert limit.tokens == 1
    with limit.learning(ROW):
        pass
    assert limit.tokens == 800
    with limit.learning(first_batch([[1] * 800], 800)):
        pass
    assert limit.tokens == 800
    assert batch_limit.peak_gib(GPUS) == 6
    assert batch_limit.peak_gib(CPU) is None


def test_memory_that_runs_out_halves_the_batch(caplog):
    limit = BatchLimit(None, CPU)
    limit.halve(first_batch([[1] * 50] * 4, 1000))
    assert limit.tokens == 100
    assert "200 positions ran out of memory" in caplog.text


def test_one_sequence_that_does_not_fit_is_refused():
    with pytest.raises(ConfigError, match=r"100 tokens.*max_sequence_tokens.*gpus_per_model"):
        BatchLimit(None, CPU).halve(ROW)
