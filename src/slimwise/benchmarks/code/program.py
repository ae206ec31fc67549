"""The program in an answer's text."""

import re
import textwrap

# A block may open within a line, and one that the answer never closes runs to its end.
_BLOCK = re.compile(
    r"(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<code>.*?)(?:^[ \t]*(?P=fence)|\Z)",
    re.MULTILINE | re.DOTALL,
)

_FUTURE = re.compile(r"^from __future__ import (?:\([^)]*\)|.*)\n?", re.MULTILINE)


def program_in(text: str, entry: str) -> str | None:
    """The last fenced block that defines the entry point, or the whole text if it has no block.

    None if nothing defines it.
    """
    blocks = [textwrap.dedent(match["code"]) for match in _BLOCK.finditer(text)] or [text]
    defines = re.compile(rf"^(?:(?:async )?def +{entry}\b|{entry}\s*(?::[^=\n]+)?=)", re.MULTILINE)
    return next((block for block in reversed(blocks) if defines.search(block)), None)


def preamble_of(prompt: str, entry: str) -> str:
    """What a prompt defines before the function that it asks for: imports and helpers."""
    return re.split(rf"^def +{entry}\b", prompt, maxsplit=1, flags=re.MULTILINE)[0]


def with_preamble(preamble: str, program: str) -> str:
    """The program behind the preamble, but for imports from the future, which must come first."""
    return "".join([*_FUTURE.findall(program), preamble, "\n", _FUTURE.sub("", program)])
