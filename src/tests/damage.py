"""Ways in which a file goes bad, the same in every run."""

import random
from collections.abc import Iterator

_ROUNDS = 12


def damaged(good: bytes, seed: str) -> Iterator[tuple[str, bytes]]:
    """Ways to spoil the bytes, with a name for each."""
    draw = random.Random(seed)
    for number in range(_ROUNDS):
        place, length = draw.randrange(len(good)), draw.choice([1, 2, 8, 64])
        noise = draw.randbytes(length)
        flipped = bytes([good[place] ^ (1 << draw.randrange(8))])
        yield f"bit of byte {place}, {number}", good[:place] + flipped + good[place + 1 :]
        yield f"{length} bytes from {place}", good[:place] + noise + good[place + length :]
        yield f"{length} bytes into {place}", good[:place] + noise + good[place:]
        yield f"cut at {place}", good[:place]
        yield f"without {length} from {place}", good[:place] + good[place + length :]
        yield f"again from {place}", good + good[place:]
        yield f"zeros from {place}", good[:place] + bytes(len(good) - place)
        yield from _other_numbers(good, draw)
    yield "empty", b""
    yield "deeply nested", b"[" * 10**5 + b"]" * 10**5
    yield "deep objects", b'{"schema":' * 10**5
    yield "a huge length", (2**63 - 1).to_bytes(8, "little") + good[8:]
    yield "a huge integer", b"9" * 10**4
    yield "quotes", b'"' * 10**4


def _other_numbers(good: bytes, draw: random.Random) -> Iterator[tuple[str, bytes]]:
    """A run of digits replaced by a number that no field is made for."""
    places = [place for place, byte in enumerate(good) if chr(byte).isdigit()]
    if places:
        place = draw.choice(places)
        word = draw.choice([b"NaN", b"1e999", b"-1", b"9" * 5000, b"null", b"[]", b"1.5", b"\x00"])
        yield f"{word[:8]!r} at {place}", good[:place] + word + good[place + 1 :]
