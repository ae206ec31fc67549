"""What the decode benchmark measured, by kind, with what each decoder is.

An engine holds one set of weights. Its arms decode the same requests in turn: without the plugin,
or with it and a pool for each phase.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.core.vocabulary import Deployment, ServingMode
from slimwise.errors import ArtifactError


class Weights(StrEnum):
    """What a decoder holds in memory, and how it comes to use fewer experts."""

    FULL = "full"
    MASKED = "full, masked"
    EXPORTED = "exported"


UNHOOKED = "unhooked"
"""The arm without the plugin."""
COUNTED = "+coverage"
"""End of the name of an arm whose experts are counted too."""
_MODES = {
    Weights.FULL: ServingMode.FULL,
    Weights.MASKED: ServingMode.SLIMWISE,
    Weights.EXPORTED: ServingMode.SLIMWISE,
}
_DEPLOYMENTS = {
    Weights.FULL: Deployment.COLOCATED,
    Weights.MASKED: Deployment.COLOCATED,
    Weights.EXPORTED: Deployment.DISAGGREGATED,
}
_KEYS: dict[str, Sequence[str]] = {
    "engine": ("engine",),
    "decode": ("engine", "arm", "kernels", "routing", "batch"),
    "coverage": ("engine", "arm", "routing", "phase", "batch"),
    "prefill": ("engine", "arm", "kernels"),
}


def rows_of(rows: Iterable[Row], kind: str) -> pd.DataFrame:
    """The latest rows of a kind, each with what its decoder is.

    Further columns: weights; of engines num_kept; of others mode and deployment, and vllm and top_k
    of their engine. ArtifactError if there are none.
    """
    of_kind = [row for row in rows if row["kind"] == kind]
    if not of_kind:
        raise ArtifactError(f"no measured row is of kind {kind!r}. Measure the decode steps again.")
    found = latest(of_kind, _KEYS[kind])
    if kind == "engine":
        return found.assign(weights=_engine_weights(found), num_kept=found["num_experts"])
    engines = rows_of(rows, "engine")[["engine", "weights", "vllm", "top_k"]]
    joined = found.merge(engines, on="engine", validate="many_to_one")
    masks = joined["arm"].str.contains("-m")
    weights = joined["weights"].mask(masks, str(Weights.MASKED))
    return joined.assign(
        weights=weights,
        mode=weights.map(_MODES).astype(str),
        deployment=weights.map(_DEPLOYMENTS).astype(str),
    )


def _engine_weights(rows: pd.DataFrame) -> pd.Series:
    is_full = rows["num_experts"] == rows["num_experts"].max()
    return is_full.map({True: str(Weights.FULL), False: str(Weights.EXPORTED)})
