"""Whether two answers are equal: math-verify, and a second comparison that can overrule it.

The second one evaluates both at fixed points. It overrules math-verify where that rounds two tiny
numbers to the same zero, and where it will not simplify for want of an assumption.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from math_verify import parse, verify

_POINTS = (0.37, 1.9, 5.3, -0.71, -2.6)
_REAL = 1e-9  # imaginary part, relative, that is rounding
_SAME = 1e-9  # relative difference of equal values in double precision
_PERCENT = "%"


@dataclass(frozen=True)
class Comparison:
    """The verdict, that of math-verify, and that of the values where these say anything."""

    equal: bool
    math_verify: bool
    same_values: bool | None


_UNREADABLE = Comparison(False, False, None)


def compare(gold: str, answer: str) -> Comparison:
    """Both are LaTeX or plain text. A percent sign may also mean a hundredth."""
    golds, answers = _parsed(gold), _parsed(answer)
    if not golds or not answers:
        return _UNREADABLE
    compared = _compared(golds, answers)
    if compared.equal or (_PERCENT in gold) == (_PERCENT in answer):
        return compared
    if _PERCENT in answer:
        return _compared(golds, _hundredth(answers))
    return _compared(_hundredth(golds), answers)


def _parsed(text: str) -> list[Any]:
    return parse(text, parsing_timeout=0)


def _compared(golds: list[Any], answers: list[Any]) -> Comparison:
    first = verify(golds, answers, timeout_seconds=0)
    second = _same_values(golds[0], answers[0])
    return Comparison(first if second is None else second, first, second)


def _hundredth(parsed: list[Any]) -> list[Any]:
    return [parsed[0] / 100] if isinstance(parsed[0], sympy.Expr) else parsed


def _same_values(gold: Any, answer: Any) -> bool | None:
    """Equality at every point where one of them is real; None where values say nothing."""
    if not isinstance(gold, sympy.Expr) or not isinstance(answer, sympy.Expr):
        return None
    if gold.free_symbols != answer.free_symbols:
        return None  # a word is parsed as a symbol or as the product of its letters
    symbols = sorted(gold.free_symbols, key=str)
    if not symbols and (gold.has(sympy.Float) or answer.has(sympy.Float)):
        return None  # how far a decimal may be rounded is math-verify's to say
    pairs = list(_real_values(gold, answer, symbols))
    if not pairs:
        return None
    return all(_close(left, right) for left, right in pairs)


def _real_values(gold: Any, answer: Any, symbols: list[Any]) -> Iterator[tuple[Any, Any]]:
    # Each symbol takes its own value, or x + y and 2x would be equal.
    for point in _POINTS[: None if symbols else 1]:
        values = {symbol: sympy.Float(point + 0.13 * n) for n, symbol in enumerate(symbols)}
        pair = gold.subs(values).evalf(), answer.subs(values).evalf()
        if any(_is_real(value) for value in pair):
            yield pair


def _is_real(value: Any) -> bool:
    if not value.is_number or not value.is_finite:
        return False
    real, imaginary = value.as_real_imag()
    return bool(abs(imaginary) <= _REAL * abs(real))


def _close(left: Any, right: Any) -> bool:
    if not right.is_number or not left.is_number:
        return False
    size = max(abs(left), abs(right))
    return bool(abs(left - right) <= _SAME * size)
