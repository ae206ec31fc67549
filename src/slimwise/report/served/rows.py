"""What servers did under each load, by decoder, from the rows of sweeps."""

from collections.abc import Sequence

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.served.columns import SERVED_COLUMNS, SERVED_PREFILL_COLUMNS

_KEY = ("kind", "server", "mode", "pool", "routing", "kernels", "batch_offered", "prompt_tokens")
_ORDER = ("weights_rank", "kept_rank", "deployment", "engine", "mode", "batch_offered")
_PROVENANCE = list(PROVENANCE_COLUMNS)


def served_table(rows: Sequence[Row]) -> pd.DataFrame:
    """One row per decoder, deployment and load, in which requests decoded."""
    return _of_phase(rows, Phase.DECODE)[[*SERVED_COLUMNS, *_PROVENANCE]]


def served_prefill_table(rows: Sequence[Row]) -> pd.DataFrame:
    """Prompt tokens a second by experts that prefill may use. SlimWise, figure 2."""
    found = _of_phase(rows, Phase.PREFILL).rename(columns={"num_requests": "requests"})
    return found[[*SERVED_PREFILL_COLUMNS, *_PROVENANCE]]


def sound(served: pd.DataFrame) -> pd.DataFrame:
    """The rows whose answers were computed as they were asked for."""
    faults = served["faults"]
    return served[faults.isna() | (faults == "")]


def _of_phase(rows: Sequence[Row], phase: Phase) -> pd.DataFrame:
    found = latest((row for row in rows if row["kind"] == phase), _KEY)
    if found.empty:
        return pd.DataFrame(columns=[*SERVED_COLUMNS, *SERVED_PREFILL_COLUMNS, *_PROVENANCE])
    named = found.rename(columns={"server": "engine"}).assign(weights=found.apply(_weights, axis=1))
    if "decoder" not in named:
        named = named.assign(decoder="")
    ranked = named.assign(
        weights_rank=named["weights"].map(list(map(str, Weights)).index),
        kept_rank=-named["num_kept"],
    )
    return ranked.sort_values(list(_ORDER), kind="stable").reset_index(drop=True)


def _weights(row: pd.Series) -> str:
    if row["mode"] == ServingMode.FULL:
        return str(Weights.FULL)
    return str(Weights.EXPORTED if pd.isna(row["pool"]) else Weights.MASKED)
