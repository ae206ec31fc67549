"""What servers did under each load, by decoder, from the rows of sweeps."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Deployment, Phase, ServingMode
from slimwise.report.measured.columns import SERVED_COLUMNS, SERVED_PREFILL_COLUMNS
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.measured.throughput import ratio_table

_KEY = ("kind", "server", "mode", "pool", "routing", "kernels", "batch_offered", "prompt_tokens")
_ORDER = ("weights_rank", "kept_rank", "deployment", "engine", "mode", "kernels", "batch_offered")
_PROVENANCE = list(PROVENANCE_COLUMNS)


def served_table(rows: Sequence[Row], columns: Sequence[str] = SERVED_COLUMNS) -> pd.DataFrame:
    """One row per decoder, deployment and load, in which requests decoded."""
    return _of_phase(rows, Phase.DECODE, columns)


def served_prefill_table(
    rows: Sequence[Row], columns: Sequence[str] = SERVED_PREFILL_COLUMNS
) -> pd.DataFrame:
    """Prompt tokens a second by experts that prefill may use. SlimWise, figure 2."""
    return _of_phase(rows, Phase.PREFILL, columns)


def served_ratio_table(served: pd.DataFrame, *, target: float, paper: Path) -> pd.DataFrame:
    """Throughput over the full model's at the target, of the rows without faults.

    The full model is that of a server without pools, whose steps are vLLM's own, if the routing was
    measured on one, colocated as pools are. The paper's colocated ratios are of pools, and stand
    beside pools alone.
    """
    found = sound(served)
    has_pools = found["engine"].isin(found.loc[found["weights"] == Weights.MASKED, "engine"])
    is_full = found["weights"] == Weights.FULL
    is_own = is_full & ~has_pools & (found["deployment"] == Deployment.COLOCATED)
    has_own = found["routing"].isin(found.loc[is_own, "routing"])
    compared = found[~(is_full & has_pools & has_own)]
    ratios = ratio_table(compared, target=target, paper=paper)
    is_alone = (ratios["weights"] == Weights.EXPORTED) & (
        ratios["deployment"] == Deployment.COLOCATED
    )
    return ratios.assign(paper_ratio=ratios["paper_ratio"].mask(is_alone))


def sound(served: pd.DataFrame) -> pd.DataFrame:
    """The rows whose answers were computed as they were asked for."""
    faults = served["faults"]
    return served[faults.isna() | (faults == "")]


def _of_phase(rows: Sequence[Row], phase: Phase, columns: Sequence[str]) -> pd.DataFrame:
    found = latest((row for row in rows if row["kind"] == phase), _KEY)
    if found.empty:
        return pd.DataFrame(columns=[*columns, *_PROVENANCE])
    named = found.assign(
        engine=found["server"],
        requests=found["num_requests"],
        weights=found.apply(_weights, axis=1),
    )
    ranked = named.assign(
        weights_rank=named["weights"].map(list(map(str, Weights)).index),
        kept_rank=-named["num_kept"],
    )
    ordered = ranked.sort_values(
        ["routing", *_ORDER], ascending=[False, *[True] * len(_ORDER)], kind="stable"
    )
    return ordered[[*columns, *_PROVENANCE]].reset_index(drop=True)


def _weights(row: pd.Series) -> str:
    if row["mode"] == ServingMode.FULL:
        return str(Weights.FULL)
    return str(Weights.EXPORTED if pd.isna(row["pool"]) else Weights.MASKED)
