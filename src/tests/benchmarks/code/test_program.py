import pytest

from slimwise.benchmarks.code.program import preamble_of, program_in, with_preamble

DRAFT = "```python\ndef area(r):\n    return 3 * r\n```\n"
FINAL = "```python\ndef area(r):\n    return 3.14 * r * r\n```\n"
USE = "```python\nprint(area(2))\n```\n"


def test_the_last_block_that_defines_the_entry_point_is_taken():
    program = program_in(f"First {DRAFT} then {FINAL} Use it: {USE}", "area")
    assert program == "def area(r):\n    return 3.14 * r * r\n"


def test_a_name_that_only_begins_alike_is_another_function():
    assert program_in("```python\ndef areas(r):\n    return 1\n```", "area") is None


def test_a_call_defines_nothing():
    assert program_in(USE, "area") is None


@pytest.mark.parametrize(
    "text",
    [
        "~~~\narea = lambda r: 3.14 * r * r\n~~~",
        "1. A block in a list:\n   ```py\n   area = lambda r: 3.14 * r * r\n   ```\n",
        "```python\narea = lambda r: 3.14 * r * r\n",
        "area = lambda r: 3.14 * r * r\n",
    ],
    ids=["tildes", "indented", "unclosed", "no block"],
)
def test_other_ways_to_write_a_block(text):
    assert (program_in(text, "area") or "").strip() == "area = lambda r: 3.14 * r * r"


def test_a_block_inside_a_longer_fence_stays_inside():
    text = "````markdown\n```python\ndef area(r): return 1\n```\n````\n" + FINAL
    assert program_in(text, "area") == "def area(r):\n    return 3.14 * r * r\n"


def test_helpers_and_imports_of_a_prompt_come_before_its_function():
    prompt = (
        'import math\n\ndef square(x):\n    return x * x\n\ndef area(r):\n    """Of a disc."""\n'
    )
    assert preamble_of(prompt, "area") == ("import math\n\ndef square(x):\n    return x * x\n\n")


@pytest.mark.parametrize("names", ["annotations", "(\n    annotations,\n    division,\n)"])
def test_imports_from_the_future_stay_before_a_preamble(names):
    program = f'"""Mine."""\nfrom __future__ import {names}\n\ndef area(r: Disc): return PI * r\n'
    scope: dict = {}
    exec(compile(with_preamble("PI = 3\n", program), "<answer>", "exec"), scope)
    assert scope["area"](2) == 6
