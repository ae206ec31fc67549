"""What estimates stand on: speeds measured on one H200, and published lengths of answers."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

# The 90th percentile of a normal distribution.
_Z90 = 1.2816


@dataclass(frozen=True)
class Speed:
    """Tokens/s on one H200, of a published shape, with the file of its row.

    kept_share and batch are 0 where the quantity is not the speed of decoding.
    """

    quantity: str
    shape: str
    kept_share: float
    batch: int
    tokens_per_s: float
    source: str

    def __str__(self) -> str:
        return f"{self.tokens_per_s:,.0f} tokens/s of {self.shape} ({self.source})"


@dataclass(frozen=True)
class AnswerLength:
    """Lengths of a benchmark's answers by the full model, and how many items it has."""

    num_items: int
    p50_tokens: float
    p90_tokens: float
    basis: str

    @property
    def mean_tokens(self) -> float:
        """Mean of the log-normal distribution with these percentiles."""
        spread = math.log(self.p90_tokens / self.p50_tokens) / _Z90
        return self.p50_tokens * math.exp(spread**2 / 2)


@cache
def speeds() -> tuple[Speed, ...]:
    """Every measured speed, from measured_speeds.csv."""
    return tuple(
        Speed(
            quantity=row["quantity"],
            shape=row["shape"],
            kept_share=float(row["kept_share"] or 0),
            batch=int(row["batch"] or 0),
            tokens_per_s=float(row["tokens_per_s"]),
            source=row["source"],
        )
        for row in _rows("measured_speeds.csv")
    )


@cache
def answer_lengths() -> dict[str, AnswerLength]:
    """By benchmark."""
    return {
        row["benchmark"]: AnswerLength(
            int(row["num_items"]),
            float(row["p50_tokens"]),
            float(row["p90_tokens"]),
            row["basis"],
        )
        for row in _rows("answer_lengths.csv")
    }


def speed_of(quantity: str, shape: str) -> Speed | None:
    """The shape's own speed, or else that of whichever shape was measured; None if none was."""
    found = [speed for speed in speeds() if speed.quantity == quantity]
    own = [speed for speed in found if speed.shape == shape]
    return next(iter(own or found), None)


def decode_speed(kept_share: float, batch: int) -> Speed:
    """Of the next larger share of kept experts and the next smaller batch, so rather too slow.

    Of the smallest batch if the asked one is smaller.
    """
    decoding = [speed for speed in speeds() if speed.quantity == "decode"]
    share = min(each.kept_share for each in decoding if each.kept_share >= kept_share)
    near = [speed for speed in decoding if speed.kept_share == share]
    return max(
        (speed for speed in near if speed.batch <= batch),
        key=lambda speed: speed.batch,
        default=min(near, key=lambda speed: speed.batch),
    )


def _rows(name: str) -> Sequence[dict[str, str]]:
    text = (resources.files("slimwise.study_plan") / name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))
