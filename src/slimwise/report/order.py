"""The one order of decoders and settings, in tables and figures alike."""

from collections.abc import Iterable, Sequence

import pandas as pd

from slimwise.core.vocabulary import (
    Criterion,
    DecoderId,
    Decoding,
    Deployment,
    Distillation,
    ServingMode,
)

NO_CRITERION = "none"
"""Criterion of the full decoder in tables."""

_RANKS: dict[str, Sequence[str]] = {
    "criterion": (NO_CRITERION, *Criterion),
    "criterion_a": tuple(Criterion),
    "criterion_b": tuple(Criterion),
    "distilled": tuple(Distillation),
    "mode": tuple(ServingMode),
    "deployment": tuple(Deployment),
    "decoding": tuple(Decoding),
}


def in_table_order(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The rows sorted by the named columns, word lists by vocabulary, num_kept descending.

    Columns that are neither keep the order in which their values first appear.
    """
    ranks = pd.DataFrame({name: _ranks(frame[name]) for name in by}, index=frame.index)
    order = ranks.sort_values(list(by), kind="stable").index
    return frame.loc[order].reset_index(drop=True)


def _ranks(column: pd.Series) -> pd.Series:
    if column.name == "num_kept":
        return -column
    words = _RANKS.get(str(column.name), list(dict.fromkeys(column)))
    return column.map({str(word): rank for rank, word in enumerate(words)})


def decoders_in_table_order(names: Iterable[str]) -> list[DecoderId]:
    """The decoders, each once: full, then by criterion, num_kept descending, distillation."""
    return sorted({DecoderId.parse(name) for name in names}, key=_decoder_rank)


def _decoder_rank(decoder: DecoderId) -> tuple[int, int, int]:
    return (
        _RANKS["criterion"].index(decoder.criterion or NO_CRITERION),
        -(decoder.num_kept or 0),
        _RANKS["distilled"].index(decoder.distilled),
    )
