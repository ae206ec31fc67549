"""Accuracy against throughput where a user gets the target speed. SlimWise, figure 1b."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Criterion, DecoderId, Distillation, ServingMode
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.measured.throughput import at_target
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import once_deployed
from slimwise.report.served.columns import TRADE_OFF_COLUMNS

_PREFERRED = (Weights.FULL, Weights.EXPORTED, Weights.MASKED)


def trade_off_table(accuracy: pd.DataFrame, served: pd.DataFrame, *, target: float) -> pd.DataFrame:
    """The rows of accuracy whose decoder was swept, with its throughput at the target.

    A decoder that answered in both deployments has the accuracy of the colocated one.
    Modes that prune decode have the decoder's throughput, from its own checkpoint if that was
    swept and else as a pool. The ratio is to the full model of the same deployment if that was
    swept. Decoders whose loads do not enclose the target have no row.
    """
    found = {name: _at_target(curves, target) for name, curves in served.groupby("decoder")}
    rows = [
        {**row, **place, "ratio": place["tokens_per_s_per_gpu"] / full["tokens_per_s_per_gpu"]}
        for row in once_deployed(accuracy).to_dict("records")
        if row["mode"] != ServingMode.REVERSE
        and (place := found.get(_decoder(row))) is not None
        and (full := _at_target(_full_rows(served, place["deployment"]), target)) is not None
    ]
    frame = pd.DataFrame(rows, columns=[*TRADE_OFF_COLUMNS, *PROVENANCE_COLUMNS])
    return frame.assign(target_tokens_per_s_per_user=target)


def _at_target(curves: pd.DataFrame, target: float) -> dict[str, Any] | None:
    """Throughput of the first way of serving the decoder that reaches the target."""
    for curve in _in_order(curves):
        place = at_target(curve, target)
        if place is not None:
            first = curve.iloc[0]
            names = ("deployment", "engine", "weights", *PROVENANCE_COLUMNS)
            return {
                "tokens_per_s_per_gpu": place.tokens_per_s_per_gpu,
                **{name: first[name] for name in names},
            }
    return None


def _full_rows(served: pd.DataFrame, deployment: str) -> pd.DataFrame:
    full = served[served["decoder"] == str(DecoderId())]
    likewise = full[full["deployment"] == deployment]
    return full if likewise.empty else likewise


def _in_order(curves: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for weights in _PREFERRED:
        for _, curve in curves[curves["weights"] == weights].groupby("engine", sort=False):
            yield curve


def _decoder(row: dict[Any, Any]) -> str:
    if row["criterion"] == NO_CRITERION:
        return str(DecoderId())
    criterion, rule = Criterion(row["criterion"]), Distillation(row["distilled"])
    return str(DecoderId(criterion, row["num_kept"], rule))
