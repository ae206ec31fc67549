"""The draw-throughput-figures stage: figures 1b, 2b and 4 of a study, from its tables."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from slimwise.artifacts.captions import Caption
from slimwise.artifacts.tables import read_table
from slimwise.core.vocabulary import ServingMode
from slimwise.report.config import ReportConfig
from slimwise.report.figures.style import (
    COLUMN_WIDTH_IN,
    PAGE_WIDTH_IN,
    arm_handle,
    arm_marker,
    house_style,
    note_figure,
    save_figures,
    set_panel_title,
)
from slimwise.report.labels import CRITERION_LABELS, benchmark_label, row_label
from slimwise.report.measured.columns import RATIO_COLUMNS
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.measured.figures.decoder_style import decoder_label, decoder_style
from slimwise.report.measured.figures.throughput import (
    draw_curves,
    label_panels,
    mark_target,
)
from slimwise.report.measured.served import sound
from slimwise.report.measured.throughput import PER_GPU
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import reported
from slimwise.report.served.columns import SWEPT_COLUMNS, SWEPT_PREFILL_COLUMNS, TRADE_OFF_COLUMNS

_HEIGHT_IN = 3.0
_HEADROOM = 1.15
_LEGEND_COLUMNS = 4
_DECODER = ["criterion", "num_kept", "distilled"]
_PANELS = {
    "decode on its own checkpoint": Weights.EXPORTED,
    "pools of the full model": Weights.MASKED,
}


def draw_throughput_figures(config: ReportConfig, *, tables: Path, out: Path) -> None:
    """Every figure in the folder out, and throughput_captions.json with what is to be said of each.

    tables is the folder that write_throughput_tables wrote.
    """

    def read(name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        return read_table(tables / f"{name}.csv", columns)

    served = read("throughput", SWEPT_COLUMNS)
    ratios = read("ratio_at_target", RATIO_COLUMNS)
    both = reported(read("accuracy_and_throughput", TRADE_OFF_COLUMNS))
    prefill = read("prefill_throughput", SWEPT_PREFILL_COLUMNS)
    target = config.target_tokens_per_s_per_user
    figures = {
        "figure_1b": draw_trade_off(both),
        "prefill_throughput": draw_prefill(prefill),
        "throughput": draw_served(sound(served), ratios),
    }
    captions = _captions(served, both, target)
    save_figures(figures, captions, out / "throughput_captions.json", config)


def draw_served(served: pd.DataFrame, ratios: pd.DataFrame) -> Figure:
    """Throughput of a GPU against what each user gets, exported checkpoints beside pools.

    The dotted line is the target; crosses on it are interpolated. SlimWise, figure 4.
    """
    counts = sorted(served["num_kept"].unique(), reverse=True)
    shown = {title: each for title, each in _PANELS.items() if each in set(served["weights"])}
    if not shown:
        return note_figure("no pruned decoder was swept, or none without faults")
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (title, weights) in zip(panels, shown.items(), strict=True):
            axes.set_title(title)
            draw_curves(axes, served[served["weights"].isin([Weights.FULL, weights])], counts)
            mark_target(axes, ratios[ratios["weights"] == weights])
        label_panels(figure, panels)
    return figure


def draw_prefill(prefill: pd.DataFrame) -> Figure:
    """Prompt tokens a second against the share of experts that prefill leaves out; figure 2b."""
    if prefill.empty:
        return note_figure("prefill was not measured")
    counts = sorted(prefill["num_kept"].unique(), reverse=True)
    with house_style():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes = figure.subplots()
        for row in prefill.to_dict("records"):
            ratio = 1 - row["num_kept"] / max(counts)
            style = decoder_style(row["num_kept"], row["weights"], counts)
            label = decoder_label(row["num_kept"], row["weights"])
            axes.plot(ratio, row["prefill_tokens_per_s"], label=label, **{**style, "linestyle": ""})
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
        axes.set(xlabel="experts left out of prefill (%)", ylabel="prefill (tokens/s)")
        axes.set_ylim(0, _HEADROOM * prefill["prefill_tokens_per_s"].max())
        handles, labels = axes.get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        figure.legend(unique.values(), unique, loc="outside upper center", ncols=3)
    return figure


def draw_trade_off(both: pd.DataFrame) -> Figure:
    """Accuracy against throughput at the target, a panel per benchmark; SlimWise, figure 1b."""
    if both.empty:
        return note_figure("no swept decoder answered, or no load reaches the target")
    benchmarks = list(both["benchmark"].unique())
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        panels = figure.subplots(1, len(benchmarks), sharex=True, sharey=True, squeeze=False)[0]
        for axes, benchmark in zip(panels, benchmarks, strict=True):
            set_panel_title(axes, benchmark_label(benchmark), len(benchmarks))
            _draw_points(axes, both[both["benchmark"] == benchmark])
        panels[0].set_ylabel("accuracy (%)")
        panels[0].yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
        panels[0].set_ylim(-0.03, 1.05)
        panels[0].xaxis.set_major_formatter("{x:,.0f}")
        panels[0].margins(x=0.12)
        target = both["target_tokens_per_s_per_user"].iloc[0]
        figure.supxlabel(f"decode throughput at {target:g} tokens/s for each user (tokens/s/GPU)")
        handles = _trade_off_handles(both)
        num_columns = min(len(handles), _LEGEND_COLUMNS)
        figure.legend(handles=handles, loc="outside upper center", ncols=num_columns)
    return figure


def _trade_off_handles(both: pd.DataFrame) -> list[Line2D]:
    """What a legend shows for each arm, in grey, and then for each criterion."""
    arms = both[["mode", "distilled"]].drop_duplicates().to_numpy().tolist()
    criteria = [name for name in both["criterion"].unique() if name != NO_CRITERION]
    markers = {name: arm_marker(name, ServingMode.SLIMWISE) for name in criteria}
    return [
        *(arm_handle(mode, distilled, linestyle="") for mode, distilled in arms),
        *(
            Line2D([], [], label=CRITERION_LABELS[name], linestyle="", **marker)
            for name, marker in markers.items()
        ),
    ]


def _draw_points(axes: Axes, rows: pd.DataFrame) -> None:
    """Every point, and beside the highest of each decoder how many experts it keeps."""
    for row in rows.to_dict("records"):
        marker = arm_marker(row["criterion"], row["mode"], row["distilled"])
        place = row[PER_GPU], row["accuracy_mean"]
        axes.errorbar(*place, yerr=row["accuracy_std"], linestyle="", capsize=2, **marker)
    highest = rows.loc[rows.groupby(_DECODER, sort=False)["accuracy_mean"].idxmax()]
    for row in highest.to_dict("records"):
        place = row[PER_GPU], row["accuracy_mean"]
        axes.annotate(f"{row['num_kept']}", place, (4, 4), textcoords="offset points", fontsize=6)


def _captions(served: pd.DataFrame, both: pd.DataFrame, target: float) -> dict[str, Caption]:
    """The caption of every figure by its name."""
    first = served.iloc[0]
    origin = (
        f"{first['backbone']}, vLLM {first['vllm']}, {first['hardware']}, prompts of "
        f"{first['prompt_tokens']} tokens, answers of {first['output_tokens']}. On CPU a server "
        "counts as a GPU."
    )
    points = "; ".join(
        f"{row_label(row)}, {benchmark_label(row['benchmark'])}: "
        f"{row['accuracy_mean']:.3f} at {row[PER_GPU]:,.0f}"
        for row in both.to_dict("records")
    )
    return {
        "figure_1b": Caption(
            "Accuracy against decode throughput",
            f"Throughput where a user gets {target:g} tokens/s, of the decoder's own checkpoint if "
            "that was swept; numbers are experts kept, colours criteria. Bars are one standard "
            f"deviation over runs. {origin}",
            f"Dot plots of accuracy against tokens/s. {points}.",
        ),
        "prefill_throughput": Caption(
            "Prefill throughput against the pruning ratio",
            f"Requests for a single token each; pools prune prefill too. {origin}",
            "Dot plot of prompt tokens/s against the share of experts left out. Values are in the "
            "table of the same name.",
        ),
        "throughput": Caption(
            "Decode throughput against the speed for each user",
            "A point for each load; solid the full model and its pools, dashed checkpoints that "
            "hold only kept experts; crosses are interpolated at the target, with ratios to the "
            f"full model. {origin}",
            "Falling curves of tokens/s against tokens/s for each user. Values are in the table of "
            "the same name.",
        ),
    }
