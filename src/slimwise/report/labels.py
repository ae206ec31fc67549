"""What tables and figures call the words of the vocabulary."""

from collections.abc import Mapping
from typing import Any

from slimwise.core.vocabulary import Criterion, Deployment, Distillation
from slimwise.report.order import NO_CRITERION

CRITERION_LABELS: dict[str, str] = {
    NO_CRITERION: "full",
    Criterion.MASS: "Mass",
    Criterion.EAN: "EAN",
    Criterion.REAP: "REAP",
    Criterion.FREQUENCY: "frequency",
}

_DISTILLED: dict[str, str] = {
    Distillation.NONE: "",
    Distillation.UNIFORM: " + distilled",
    Distillation.ZERO: " + distilled, s = 0",
}

_BENCHMARK_LABELS = {
    "gsm8k": "GSM8K",
    "math_500": "MATH-500",
    "humaneval_plus": "HumanEval+",
    "mbpp_plus": "MBPP+",
    "bfcl_v4_live_ast": "BFCL v4 Live AST",
    "bfcl_v4_non_live_ast": "BFCL v4 non-live AST",
    "bfcl_v4_relevance": "BFCL v4 relevance",
    "bfcl_v4_irrelevance": "BFCL v4 irrelevance",
}


def benchmark_label(benchmark: str) -> str:
    """A published benchmark's own name, and others with spaces."""
    return _BENCHMARK_LABELS.get(benchmark, benchmark.replace("_", " "))


def arm_label(mode: str, distilled: str, deployment: str = Deployment.COLOCATED) -> str:
    """How a decoder is used, such as "slimwise + distilled"; colocation goes without saying."""
    place = "" if deployment == Deployment.COLOCATED else f" ({deployment})"
    return f"{mode}{_DISTILLED[distilled]}{place}"


def decoder_label(criterion: str, num_kept: int) -> str:
    """The pruned pool, such as "REAP 32", or "full"."""
    label = CRITERION_LABELS[criterion]
    return label if criterion == NO_CRITERION else f"{label} {num_kept}"


def row_label(row: Mapping[Any, Any]) -> str:
    """Which pool answered and how, such as "REAP 32 slimwise", or "full", of a table's row."""
    pool = decoder_label(row["criterion"], row["num_kept"])
    if row["criterion"] == NO_CRITERION:
        return pool
    deployment = row.get("deployment", Deployment.COLOCATED)
    return f"{pool} {arm_label(row['mode'], row['distilled'], deployment)}"
