import pandas as pd

from slimwise.report.comparable import comparable_answers


def _answers(*rows: tuple[str, str, str]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["decoder", "benchmark", "item_id"])


def test_items_of_the_floor_alone_are_left_out():
    answers = _answers(
        ("full", "maths", "0"), ("full", "maths", "1"), ("full", "code", "1"),
        ("reap-m32", "maths", "0"), ("reap-m32", "code", "1"), ("ean-m32", "code", "2"),
    )  # fmt: skip
    kept = comparable_answers(answers)
    assert list(zip(kept["decoder"], kept["benchmark"], kept["item_id"], strict=True)) == [
        ("full", "maths", "0"), ("full", "code", "1"),
        ("reap-m32", "maths", "0"), ("reap-m32", "code", "1"), ("ean-m32", "code", "2"),
    ]  # fmt: skip


def test_a_full_decoder_alone_keeps_everything():
    answers = _answers(("full", "maths", "0"), ("full", "maths", "1"))
    assert comparable_answers(answers).equals(answers)
