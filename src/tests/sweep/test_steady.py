import pytest

from slimwise.errors import EngineError
from slimwise.sweep.steady import Sample, steady_part


def _samples(*rows: tuple[float, float, float, float], reading: int = 0) -> list[Sample]:
    """Samples from (time, running, generated, prompts), with as many whose prompt is being read."""
    return [
        Sample(*row, num_answering=row[1] - reading, num_preemptions=0, cache_share=0)
        for row in rows
    ]


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


@pytest.mark.parametrize("given_up", [0, 3, -3])
def test_steps_that_read_a_part_of_a_long_prompt_do_not_count(given_up):
    found = steady_part(
        [
            *_samples((0, 0, 0, 0), reading=given_up),
            *_samples((1, 20, 10, 900), (2, 20, 29, 900), (3, 20, 48, 900), reading=given_up + 1),
            *_samples((4, 20, 60, 1000), (5, 20, 260, 1000), reading=given_up),
        ]
    )
    assert (found.seconds, found.tokens_per_s) == (1, 200)


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
