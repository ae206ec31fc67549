"""The final answer in a solution's text, with the spacing of digits taken out."""

import re

_BOX = re.compile(r"\\boxed\s*\{")
_MARKED = re.compile(r"^#{4}\s*(-?\$?\d[\d,.]*)\s*$", re.MULTILINE)
_DIGIT_SPACING = re.compile(r"(?<=\d)(?:\\[,!; ]|\{,\}|~|[ \u00a0\u2009\u202f])(?=\d{3}(?!\d))")
_BRACES = {"{": 1, "}": -1}


def final_answer(text: str) -> str:
    """The content of the last closed box as inline LaTeX.

    Without a box it is the number on the last line that begins with "####", as GSM8K's published
    solutions end, or the whole text.
    """
    boxed = last_boxed(text)
    if boxed is not None:
        return as_latex(boxed)
    marked = _MARKED.findall(text)
    return as_latex(marked[-1]) if marked else join_digits(text)


def as_latex(expression: str) -> str:
    """An expression as inline LaTeX."""
    return f"${join_digits(expression)}$"


def last_boxed(text: str) -> str | None:
    r"""What the last \boxed{...} with matching braces holds, or None."""
    for opening in reversed(list(_BOX.finditer(text))):
        end = _closing_brace(text, opening.end())
        if end is not None:
            return text[opening.end() : end]
    return None


def join_digits(text: str) -> str:
    """The text with groups of three digits joined: 1 000 and 1{,}000 become 1000."""
    return _DIGIT_SPACING.sub("", text)


def _closing_brace(text: str, start: int) -> int | None:
    depth = 1
    for position in range(start, len(text)):
        escaped = position > 0 and text[position - 1] == "\\"
        depth += 0 if escaped else _BRACES.get(text[position], 0)
        if depth == 0:
            return position
    return None
