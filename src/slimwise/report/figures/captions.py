"""The words that go with each figure."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import pandas as pd

from slimwise.artifacts.captions import Caption
from slimwise.core.vocabulary import Decoding, Distillation, ServingMode
from slimwise.report.labels import benchmark_label, row_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import at_half, once_deployed

_COMPARED = (ServingMode.FULL, ServingMode.PRUNED, ServingMode.SLIMWISE)
_OF_EXPERTS: Mapping[str, Caption] = MappingProxyType(
    {
        "expert_load": Caption(
            "Load of the experts in calibration",
            "Tokens routed to each expert over the layer's mean, experts sorted within a layer; "
            "beside it the effective number of experts, the exponential of the shares' entropy.",
            "Heat map of layers by experts, from the most to the least loaded expert, and a bar "
            "for the effective number of experts of each layer.",
        ),
        "expert_load_by_component": Caption(
            "Load of the experts by component of the calibration mixture",
            "Tokens routed to each expert over the layer's mean. The experts of a layer stand in "
            "one order in all maps, by their load over all components together.",
            "Heat maps of layers by experts, one for each component.",
        ),
        "keep_set_overlap": Caption(
            "Agreement of the criteria on which experts to keep",
            "Jaccard index of the keep sets of two criteria: mean over layers, bars from the least "
            "to the greatest layer; the dashed line is what two random sets of that size share.",
            "Line plot of the Jaccard index, 0 to 1, against experts kept per layer, a line for "
            "each pair of criteria.",
        ),
        "keep_set_overlap_by_layer": Caption(
            "Agreement of the criteria by layer",
            "Jaccard index of the keep sets of two criteria in each layer, a panel for each number "
            "of experts kept; the dashed line is what two random sets of that size share.",
            "Line plots of the Jaccard index, 0 to 1, against the layer, a line for each pair of "
            "criteria.",
        ),
    }
)
_DISTILLATION = Caption(
    "Training curves of the distilled decoders",
    "Loss, and its term of the Kullback-Leibler divergence from the teacher, in nats a "
    "token on a logarithmic axis, by optimiser step; lines are means over the last "
    "twentieth of all steps, dots single steps; n are the student's tokens.",
    "Line plots of loss and divergence against optimiser steps, a column for each pool of "
    "experts, a line for each split rule.",
)


def figure_captions(accuracy: pd.DataFrame, grades: pd.DataFrame) -> dict[str, Caption]:
    """The caption of every figure by its name, from the tables that the figures are drawn from."""
    study = _study(accuracy, grades)
    return {
        "accuracy_by_num_kept": _accuracy_caption(accuracy, study),
        "output_lengths": _lengths_caption(accuracy, study),
        **_OF_EXPERTS,
        "figure_3": _training_free_caption(accuracy, study, Decoding.SAMPLED),
        "figure_5": _training_free_caption(accuracy, study, Decoding.GREEDY),
        "length_accuracy": _length_accuracy_caption(accuracy, study),
        "distillation": _DISTILLATION,
    }


def _accuracy_caption(accuracy: pd.DataFrame, study: str) -> Caption:
    return Caption(
        "Accuracy by the number of experts kept",
        "Mean over runs, bars one standard deviation, criteria drawn side by side; the dashed "
        "line is the full decoder, the band around it one standard deviation. Training-free "
        f"decoders only. {study}",
        "Line plots of accuracy in per cent against experts kept per layer. "
        f"{_by_benchmark(_training_free(accuracy), _range_of_accuracy)}",
    )


def _lengths_caption(accuracy: pd.DataFrame, study: str) -> Caption:
    return Caption(
        "Output lengths by decoder",
        "Densities of the lengths of answers that ended by themselves, in tokens on a "
        "logarithmic axis; ticks are medians, triangles 90th percentiles over all answers, and "
        f"percentages the share that the budget cut. {study}",
        "Density plots, one for each decoder. Medians in tokens: "
        f"{_by_benchmark(accuracy, _range_of_medians)}",
    )


def _length_accuracy_caption(accuracy: pd.DataFrame, study: str) -> Caption:
    return Caption(
        "Accuracy against output length",
        "Median output length in tokens, thin lines to the 90th percentile, against accuracy "
        "in per cent; smaller markers keep fewer experts, and the full decoder is where the "
        f"dashed lines cross. {study}",
        "Scatter plots, one for each criterion and benchmark. Medians in tokens: "
        f"{_by_benchmark(accuracy, _range_of_medians)}",
    )


def _study(accuracy: pd.DataFrame, grades: pd.DataFrame) -> str:
    """Whose answers, and how many."""
    runs = accuracy.groupby("decoding", sort=False)["runs"].max()
    items = grades.groupby("benchmark", sort=False)["item_id"].nunique()
    counts = ", ".join(f"{benchmark_label(str(name))} {count}" for name, count in items.items())
    decodings = " and ".join(f"{count} {decoding}" for decoding, count in runs.items())
    return f"Backbone: {accuracy['backbone'].iloc[0]}; runs: {decodings}; items: {counts}."


def _training_free_caption(accuracy: pd.DataFrame, study: str, decoding: Decoding) -> Caption:
    free = _training_free(accuracy)
    shown = free[(free["decoding"] == decoding) & free["mode"].isin(_COMPARED)]
    rows = at_half(once_deployed(shown))
    return Caption(
        f"Pruned against slimwise at half of the experts, {decoding}",
        "Above, accuracy by criterion, bars bootstrap intervals over items; below, the lengths of "
        "one criterion's answers in tokens (median, middle half, middle 80 %) at the height of its "
        f"accuracy. No decoder is distilled. {study}",
        f"Dot plots of accuracy in per cent. {_by_benchmark(rows, _every_accuracy)}",
    )


def _training_free(accuracy: pd.DataFrame) -> pd.DataFrame:
    return accuracy[accuracy["distilled"] == Distillation.NONE]


def _by_benchmark(rows: pd.DataFrame, say: Callable[[pd.DataFrame], str]) -> str:
    """A sentence for each benchmark about its rows."""
    groups = rows.groupby("benchmark", sort=False)
    return " ".join(f"{benchmark_label(str(name))}: {say(group)}." for name, group in groups)


def _every_accuracy(rows: pd.DataFrame) -> str:
    return ", ".join(
        f"{row_label(row)} {100 * row['accuracy_mean']:.0f}" for row in rows.to_dict("records")
    )


def _range_of_accuracy(rows: pd.DataFrame) -> str:
    return _range(rows, 100 * rows["accuracy_mean"])


def _range_of_medians(rows: pd.DataFrame) -> str:
    return _range(rows, rows["length_p50_tokens"])


def _range(rows: pd.DataFrame, values: pd.Series) -> str:
    """The full decoder's value and between which the others lie."""
    is_full = rows["criterion"] == NO_CRITERION
    full = f"full {values[is_full].iloc[0]:.0f}"
    others = values[~is_full]
    return full if others.empty else f"{full}, others {others.min():.0f} to {others.max():.0f}"
