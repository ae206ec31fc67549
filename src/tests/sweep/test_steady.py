import pytest

from slimwise.errors import EngineError
from slimwise.sweep.steady import Sample, steady_part


def _samples(*rows: tuple[float, float, float, float]) -> list[Sample]:
    """Samples from (time, running, generated, prompts)."""
    return [Sample(*row, num_preemptions=0, cache_share=0) for row in rows]


def test_only_intervals_with_the_whole_batch_and_no_prefill_count():
    samples = _samples(
        (0.0, 0, 0, 0),
        (1.0, 20, 30, 200),  # the batch fills while prompts are read
        (2.0, 20, 130, 200),
        (4.0, 20, 350, 200),
        (5.0, 20, 370, 300),  # a new prompt
        (6.0, 10, 420, 300),  # half of the requests have ended
        (7.0, 0, 430, 300),
    )
    found = steady_part(samples)
    assert found.seconds == 3.0
    assert found.batch == 20
    assert found.tokens_per_s == pytest.approx(320 / 3)


def test_a_batch_that_shrinks_by_less_than_a_tenth_is_still_whole():
    found = steady_part(_samples((0, 100, 0, 9), (1, 96, 980, 9), (2, 80, 1800, 9)))
    assert found.batch == 98
    assert found.seconds == 1


@pytest.mark.parametrize(
    "samples",
    [
        [],
        _samples((0, 0, 0, 0), (1, 0, 0, 0)),
        _samples((0, 0, 0, 0), (1, 8, 9, 64), (2, 0, 64, 64)),
        _samples((0, 8, 0, 64), (1, 8, 0, 64)),
    ],
)
def test_a_load_without_such_a_part_is_refused(samples):
    with pytest.raises(EngineError, match=r"Raise throughput\.output_tokens"):
        steady_part(samples)
