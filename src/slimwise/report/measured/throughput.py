"""Decode throughput by batch, and its ratio to the full model's at a speed that users get.

SlimWise, figure 4.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from slimwise.artifacts.json_rows import Row
from slimwise.artifacts.tables import PROVENANCE_COLUMNS, markdown_table
from slimwise.core.vocabulary import MoeKernels
from slimwise.errors import ArtifactError
from slimwise.report.measured.columns import RATIO_COLUMNS, THROUGHPUT_COLUMNS
from slimwise.report.measured.decode_rows import COUNTED, UNHOOKED, Weights, rows_of

PER_USER = "tokens_per_s_per_user"
PER_GPU = "tokens_per_s_per_gpu"
_CURVE = ["routing", "weights", "num_kept", "engine", "kernels"]
_WEIGHTS_ORDER = {str(weights): rank for rank, weights in enumerate(Weights)}
_PAPER_KEY = ["deployment", "num_kept", "target_tokens_per_s_per_user"]


def throughput_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """One row per decoder, kernels, routing and batch.

    Left out are arms whose experts are counted, and the full decoder with pools loaded: the
    overhead table has them.
    """
    decode = rows_of(rows, "decode")
    prunes = decode["weights"] == Weights.MASKED
    shown = ~decode["arm"].str.endswith(COUNTED) & (prunes | (decode["arm"] == UNHOOKED))
    named = decode[shown].rename(columns={"batch": "batch_offered"}).assign(backbone=backbone)
    ranked = named.assign(
        weights_rank=named["weights"].map(_WEIGHTS_ORDER), kept_rank=-named["num_kept"]
    )
    ordered = ranked.sort_values(
        ["routing", "weights_rank", "kept_rank", "engine", "kernels", "batch_offered"],
        ascending=[False, True, True, False, True, True],
        kind="stable",
    )
    return ordered[[*THROUGHPUT_COLUMNS, *PROVENANCE_COLUMNS]].reset_index(drop=True)


@dataclass(frozen=True)
class AtTarget:
    """Throughput at a target, and the two measured points between which it was interpolated."""

    tokens_per_s_per_gpu: float
    faster: pd.Series
    slower: pd.Series

    def columns(self, prefix: str = "") -> dict[str, Any]:
        """The result and its neighbours, as columns of the table of ratios."""
        found: dict[str, Any] = {f"{prefix}{PER_GPU}": self.tokens_per_s_per_gpu}
        for side, point in (("faster", self.faster), ("slower", self.slower)):
            found[f"{prefix}{side}_batch"] = round(point["batch_running"])
            for quantity in (PER_USER, PER_GPU):
                found[f"{prefix}{side}_{quantity}"] = float(point[quantity])
        return found


def at_target(curve: pd.DataFrame, target: float) -> AtTarget | None:
    """The throughput at which a user gets target tokens/s; None if no two points enclose it.

    Linear in the two rates: tokens/s/GPU is batch x tokens/s/user, so this is the same as a batch
    that grows linearly with the time of a step.
    """
    points = curve.sort_values(PER_USER)
    faster = points[points[PER_USER] >= target]
    slower = points[points[PER_USER] <= target]
    if faster.empty or slower.empty:
        return None
    ends = [slower.iloc[-1], faster.iloc[0]]
    speeds, rates = ([float(end[name]) for end in ends] for name in (PER_USER, PER_GPU))
    return AtTarget(float(np.interp(target, speeds, rates)), faster=ends[1], slower=ends[0])


def ratio_table(throughput: pd.DataFrame, *, target: float, paper: Path) -> pd.DataFrame:
    """Throughput over the full model's at the target, per pruned decoder, kernels and routing.

    A decoder is compared with the full model under the same routing: in the same deployment if it
    was measured in that, tuned with tuned, then in its own engine if that has the full model, else
    in an engine that masks. A target that the points do not enclose has no row.
    """
    pruned = throughput[throughput["weights"] != Weights.FULL]
    rows = []
    for _, curve in pruned.groupby(_CURVE, sort=False):
        full = _full_curve(throughput, curve.iloc[0])
        theirs, ours = at_target(full, target), at_target(curve, target)
        if theirs is not None and ours is not None:
            rows.append(_ratio_row(curve.iloc[0], full.iloc[0], target, (ours, theirs)))
    columns = [name for name in (*RATIO_COLUMNS, *PROVENANCE_COLUMNS) if name != "paper_ratio"]
    return _beside_paper(pd.DataFrame(rows, columns=columns), paper)


def ratio_markdown(ratios: pd.DataFrame) -> str:
    """The ratios in few columns, neighbours as "batch: tokens/s/user, tokens/s/GPU"."""
    if ratios.empty:
        return "No decoder was measured on both sides of the target.\n"
    cells = pd.DataFrame(
        {
            "kept": ratios["num_kept"].astype(str),
            "deployment": ratios["deployment"],
            "weights": ratios["weights"],
            "routing": ratios["routing"],
            "kernels": ratios["kernels"],
            "ratio": ratios["ratio"].map("{:.2f}".format),
            "paper": ratios["paper_ratio"].map(lambda ratio: "" if pd.isna(ratio) else f"{ratio}"),
            "tokens/s/GPU": ratios[PER_GPU].map("{:,.0f}".format),
            "between": _neighbours(ratios, ""),
            "full, tokens/s/GPU": ratios[f"full_{PER_GPU}"].map("{:,.0f}".format),
            "full, between": _neighbours(ratios, "full_"),
        }
    )
    numeric = ("kept", "ratio", "paper", "tokens/s/GPU", "full, tokens/s/GPU")
    target = " or ".join(f"{each:g}" for each in ratios["target_tokens_per_s_per_user"].unique())
    commits, machines = (", ".join(ratios[name].unique()) for name in ("commit", "hardware"))
    table = markdown_table(cells, [name in numeric for name in cells])
    return f"At {target} tokens/s/user.\n\n{table}\nCommit {commits}; {machines}.\n"


def _neighbours(ratios: pd.DataFrame, prefix: str) -> list[str]:
    return [
        "; ".join(
            f"{row[f'{prefix}{side}_batch']}: {row[f'{prefix}{side}_{PER_USER}']:.1f}, "
            f"{row[f'{prefix}{side}_{PER_GPU}']:,.0f}"
            for side in ("faster", "slower")
        )
        for row in ratios.to_dict("records")
    ]


def _full_curve(throughput: pd.DataFrame, decoder: pd.Series) -> pd.DataFrame:
    is_full = throughput["weights"] == Weights.FULL
    full = throughput[is_full & (throughput["routing"] == decoder["routing"])]
    if full.empty:
        raise ArtifactError(
            f"the full model was not measured under {decoder['routing']} routing, so that no ratio "
            "can be made. Measure its engine too."
        )
    masking = throughput.loc[throughput["weights"] == Weights.MASKED, "engine"]
    is_tuned = full["kernels"] == MoeKernels.TUNED
    ranked = pd.DataFrame(
        {
            "other_deployment": full["deployment"] != decoder["deployment"],
            "other_tuning": is_tuned != (decoder["kernels"] == MoeKernels.TUNED),
            "other_engine": full["engine"] != decoder["engine"],
            "masks_nothing": ~full["engine"].isin(masking),
        }
    )
    nearest = full.loc[ranked.sort_values(list(ranked.columns), kind="stable").index[0]]
    curve = ["engine", "kernels"]
    return full[(full[curve] == nearest[curve]).all(axis=1)]


def _ratio_row(
    decoder: pd.Series, full: pd.Series, target: float, found: tuple[AtTarget, AtTarget]
) -> dict[str, Any]:
    ours, theirs = found
    same = ("backbone", "deployment", "num_kept", "routing", "kernels", "weights", "engine")
    return {
        **{name: decoder[name] for name in (*same, *PROVENANCE_COLUMNS)},
        "full_engine": full["engine"],
        "target_tokens_per_s_per_user": target,
        "ratio": ours.tokens_per_s_per_gpu / theirs.tokens_per_s_per_gpu,
        **ours.columns(),
        **theirs.columns("full_"),
    }


def _beside_paper(rows: pd.DataFrame, paper: Path) -> pd.DataFrame:
    try:
        printed = pd.read_csv(paper)[["backbone", *_PAPER_KEY, "ratio"]]
    except (OSError, ValueError, KeyError) as failure:
        raise ArtifactError(
            f"cannot read the paper's ratios {paper}: {failure}. Restore the file."
        ) from failure
    printed = printed.rename(columns={"ratio": "paper_ratio"})
    beside = rows.merge(printed, on=["backbone", *_PAPER_KEY], how="left", validate="many_to_one")
    return beside[[*RATIO_COLUMNS, *PROVENANCE_COLUMNS]]
