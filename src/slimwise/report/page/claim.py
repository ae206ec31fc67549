"""What the study found, in two sentences of its own numbers."""

from collections.abc import Iterable

import pandas as pd

from slimwise.core.vocabulary import Distillation, ServingMode
from slimwise.report.labels import CRITERION_LABELS, benchmark_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import at_half, of_leading_criterion, reported
from slimwise.report.tables.layout import whole_tokens


def claim(accuracy: pd.DataFrame) -> tuple[str, ...]:
    """Two sentences or three from the accuracy table: the leading criterion at half of the experts.

    Accuracies are means over benchmarks in per cent. What the study did not measure is not said.
    """
    rows = at_half(of_leading_criterion(reported(accuracy)))
    full, slim = _use(rows, ServingMode.FULL), _use(rows, ServingMode.SLIMWISE)
    total = int(full["num_kept"].iloc[0])
    over = f"Means over {_listed(map(benchmark_label, full['benchmark']))}."
    if slim.empty:
        return (f"With all {total} experts {_accuracy(full)} of the answers are right.", over)
    kept, criterion = int(slim["num_kept"].iloc[0]), CRITERION_LABELS[slim["criterion"].iloc[0]]
    pruned = _use(rows, ServingMode.PRUNED)
    others = "" if pruned.empty else f"it is {_accuracy(pruned)} if prefill is pruned too and "
    first = (
        f"With a full prefill, decoding with {kept} of {total} experts ({criterion}) gets "
        f"{_accuracy(slim)} of the answers right; {others}{_accuracy(full)} with all experts."
    )
    distilled = _use(rows, ServingMode.SLIMWISE, Distillation.UNIFORM)
    if distilled.empty:
        return (first, f"{_lengths(slim, full)} {over}")
    second = f"Distilled for that hand-over, the same {kept} experts get {_accuracy(distilled)}."
    return (first, f"{second} {_lengths(distilled, full)} {over}")


def _use(
    rows: pd.DataFrame, mode: ServingMode, distilled: Distillation = Distillation.NONE
) -> pd.DataFrame:
    """One row a benchmark of the decoder used so; colocated where it is deployed both ways."""
    found = rows[(rows["mode"] == mode) & (rows["distilled"] == distilled)]
    is_full = found["criterion"] == NO_CRITERION
    return found[is_full == (mode == ServingMode.FULL)].drop_duplicates("benchmark")


def _accuracy(rows: pd.DataFrame) -> str:
    return f"{100 * rows['accuracy_mean'].mean():.1f} %"


def _lengths(rows: pd.DataFrame, full: pd.DataFrame) -> str:
    ours, theirs = (_listed(map(whole_tokens, each["length_p50_tokens"])) for each in (rows, full))
    return f"Their median answers are {ours} tokens long, the full model's {theirs}."


def _listed(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
