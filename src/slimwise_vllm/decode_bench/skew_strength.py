"""How strongly routers are skewed: as the plan says, or as an engine before found."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slimwise.core.vocabulary import Routing
from slimwise.errors import ConfigError
from slimwise_vllm.decode_bench.folders import moe_shape
from slimwise_vllm.decode_bench.plan import BenchPlan, EnginePlan


def skew_strength(plan: BenchPlan, engine: EnginePlan, rows: Path) -> float | None:
    """The strength that all engines of the plan share; None if this one is to find it.

    rows is the file of rows so far. ConfigError if the engine needs a strength and cannot find it.
    """
    if plan.skew_strength is not None or Routing.SKEWED not in engine.routings:
        return plan.skew_strength
    found = next(_calibrated(plan, rows), None)
    if found is None and not any(arm.coverage for arm in engine.arms):
        raise ConfigError(
            f"engine {engine.name} needs a skew strength, and {rows} has none of this plan's "
            "model and target. Set skew_strength, or measure an engine with a coverage arm "
            "before it into the same file."
        )
    return found


def _calibrated(plan: BenchPlan, rows: Path) -> Iterator[float]:
    """Strengths in the file that engines of this plan found for its target on its model."""
    num_layers, _, top_k = moe_shape(plan.model_config_file)
    sought = {
        "kind": "calibration",
        "num_layers": num_layers,
        "top_k": top_k,
        "batch": plan.skew_target_batch,
        "pool_share_target": plan.skew_target_share,
    }
    sizes = {engine.name: engine.num_experts for engine in plan.engines}
    lines = rows.read_text("utf-8").splitlines() if rows.is_file() else []
    facts: dict[str, dict[str, Any]] = {}
    for row in map(json.loads, lines):
        name = row["engine"]
        if row["kind"] == "engine":
            facts[name] = row
        known = facts.get(name, {}) | row
        if sought.items() <= known.items() and sizes.get(name) == row["num_experts"]:
            yield row["skew_strength"]
