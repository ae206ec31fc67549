"""What servers did under each load, by decoder, from the rows of sweeps."""

from collections.abc import Sequence

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.order import in_table_order
from slimwise.report.served.columns import SERVED_COLUMNS, SERVED_PREFILL_COLUMNS

_KEY = ("kind", "server", "mode", "pool", "routing", "kernels", "batch_offered", "prompt_tokens")
_ORDER = ["weights", "num_kept", "deployment", "engine", "batch_offered"]
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
    return served[served["faults"].fillna("") == ""]


def _of_phase(rows: Sequence[Row], phase: Phase) -> pd.DataFrame:
    found = latest((row for row in rows if row["kind"] == phase), _KEY)
    if found.empty:
        return pd.DataFrame(columns=[*SERVED_COLUMNS, *SERVED_PREFILL_COLUMNS, *_PROVENANCE])
    named = found.rename(columns={"server": "engine"}).assign(weights=found.apply(_weights, axis=1))
    if "decoder" not in named:
        named = named.assign(decoder="")
    ranked = named.assign(rank=named["weights"].map(list(map(str, Weights)).index))
    return in_table_order(ranked, ["rank", *_ORDER[1:]])


def _weights(row: pd.Series) -> str:
    if row["mode"] == ServingMode.FULL:
        return str(Weights.FULL)
    return str(Weights.EXPORTED if pd.isna(row["pool"]) else Weights.MASKED)
