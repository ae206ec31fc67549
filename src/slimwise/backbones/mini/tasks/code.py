"""Code: a one-function Python program over a list of integers, graded by running it."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slimwise.backbones.mini.tasks.item import TaskItem, Verdict
from slimwise.backbones.mini.tasks.program import last_program, refusal, run_program

_NUM_TESTS = 8
_ARGUMENTS = ("xs", "nums", "data", "items", "seq")
_ENTRIES = ("f", "solve", "run", "calc", "task")


@dataclass(frozen=True)
class _Piece:
    """A clause of the request, the expression that writes it, and what it means."""

    words: str
    expression: str
    apply: Callable[[Any], Any]


class CodeFamily:
    """Compositions of a filter, a mapping and a final operation, any of which may be absent."""

    name = "code"

    def draw(self, rng: random.Random) -> TaskItem:
        entry, argument = rng.choice(_ENTRIES), rng.choice(_ARGUMENTS)
        keep = _draw_filter(rng) if rng.random() < 0.75 else None
        change = _draw_mapping(rng) if rng.random() < 0.75 else None
        finish = _draw_finish(rng)
        clauses = [piece.words for piece in (keep, change, finish) if piece]
        prompt = (
            f"Write a Python function {entry}({argument}) that takes a list of integers, "
            f"{_join(clauses)}."
        )
        plan = "\n".join(
            f"{label} {piece.expression.replace('{}', '.')}"
            for label, piece in (("keep", keep), ("map", change), ("end", finish))
            if piece
        )
        body = finish.expression.format(_comprehension(argument, keep, change))
        response = (
            f"{plan}\n</think>\n\n```python\ndef {entry}({argument}):\n    return {body}\n```"
        )
        inputs = [_draw_input(rng) for _ in range(_NUM_TESTS)]
        outputs = [_expected(values, keep, change, finish) for values in inputs]
        return TaskItem(prompt, response, {"entry": entry, "inputs": inputs, "outputs": outputs})

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """Right if the last block that defines the entry point returns every expected output."""
        source = last_program(answer, reference["entry"])
        if source is None:
            return Verdict(False, "", "no code block defines the entry point")
        why = refusal(source)
        if why:
            return Verdict(False, source, why)
        outputs, error = run_program(source, reference["entry"], reference["inputs"])
        if outputs is None:
            return Verdict(False, source, error)
        correct = outputs == reference["outputs"]
        return Verdict(correct, source, "" if correct else "wrong output")


def _join(clauses: list[str]) -> str:
    return clauses[0] if len(clauses) == 1 else ", ".join(clauses[:-1]) + " and " + clauses[-1]


def _comprehension(argument: str, keep: _Piece | None, change: _Piece | None) -> str:
    if keep is None and change is None:
        return argument
    value = change.expression if change else "x"
    condition = f" if {keep.expression}" if keep else ""
    return f"[{value} for x in {argument}{condition}]"


def _expected(
    values: list[int], keep: _Piece | None, change: _Piece | None, finish: _Piece
) -> int | list[int]:
    kept = [value for value in values if keep is None or keep.apply(value)]
    changed = [change.apply(value) if change else value for value in kept]
    return finish.apply(changed)


def _draw_input(rng: random.Random) -> list[int]:
    return [rng.randint(-30, 60) for _ in range(rng.randint(0, 9))]


def _draw_filter(rng: random.Random) -> _Piece:
    k = rng.randint(2, 20)
    divisor = rng.randint(3, 9)
    return rng.choice(
        (
            _Piece("keeps the even ones", "x % 2 == 0", lambda x: x % 2 == 0),
            _Piece("keeps the odd ones", "x % 2 == 1", lambda x: x % 2 == 1),
            _Piece(f"keeps those above {k}", f"x > {k}", lambda x: x > k),
            _Piece(f"keeps those below {k}", f"x < {k}", lambda x: x < k),
            _Piece(f"drops every {k}", f"x != {k}", lambda x: x != k),
            _Piece(
                f"keeps the multiples of {divisor}",
                f"x % {divisor} == 0",
                lambda x: x % divisor == 0,
            ),
            _Piece("keeps the negative ones", "x < 0", lambda x: x < 0),
        )
    )


def _draw_mapping(rng: random.Random) -> _Piece:
    k = rng.randint(2, 20)
    return rng.choice(
        (
            _Piece("squares each", "x * x", lambda x: x * x),
            _Piece("negates each", "-x", lambda x: -x),
            _Piece(f"adds {k} to each", f"x + {k}", lambda x: x + k),
            _Piece(f"takes {k} from each", f"x - {k}", lambda x: x - k),
            _Piece(f"multiplies each by {k}", f"x * {k}", lambda x: x * k),
            _Piece("takes absolute values", "abs(x)", abs),
            _Piece(f"takes each modulo {k}", f"x % {k}", lambda x: x % k),
        )
    )


def _draw_finish(rng: random.Random) -> _Piece:
    k = rng.randint(2, 5)
    return rng.choice(
        (
            _Piece("returns the list", "{}", lambda xs: xs),
            _Piece("returns the sum", "sum({})", sum),
            _Piece("returns how many there are", "len({})", len),
            _Piece("returns the largest or 0", "max({}, default=0)", lambda xs: max(xs, default=0)),
            _Piece(
                "returns the smallest or 0", "min({}, default=0)", lambda xs: min(xs, default=0)
            ),
            _Piece("returns them sorted", "sorted({})", sorted),
            _Piece("returns them reversed", "{}[::-1]", lambda xs: xs[::-1]),
            _Piece(f"returns the first {k}", f"{{}}[:{k}]", lambda xs: xs[:k]),
            _Piece(f"returns the last {k}", f"{{}}[-{k}:]", lambda xs: xs[-k:]),
            _Piece(
                "returns them without duplicates",
                "list(dict.fromkeys({}))",
                lambda xs: list(dict.fromkeys(xs)),
            ),
        )
    )
