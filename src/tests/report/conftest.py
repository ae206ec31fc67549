"""A made-up study, small but with every feature that tables and figures must cope with."""

from dataclasses import fields
from glob import glob
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.artifacts.distill_log import LOG_COLUMNS, LOG_NAME
from slimwise.artifacts.expert_scores import write_expert_scores
from slimwise.artifacts.grades import write_grades
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.artifacts.routing_stats import write_routing_stats
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.core.routing_stats import RoutingStats
from slimwise.core.vocabulary import Criterion
from slimwise.paths import PAPER_RESULTS, StudyPaths
from slimwise.provenance import Provenance
from slimwise.report.config import ReportConfig
from slimwise.report.tables.run import write_tables

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
BUDGET_TOKENS = 256


@pytest.fixture
def grades() -> pd.DataFrame:
    """Two benchmarks, sampled thrice and greedy once; the harder a decoder is cut, the worse."""
    rng = np.random.default_rng(0)
    rows = []
    arms = {
        ("full", "full"): 0.0,
        ("mass-m32", "pruned"): 0.2,
        ("mass-m16", "pruned"): 0.5,
        ("reap-m32", "pruned"): 0.1,
        ("reap-m32", "slimwise"): 0.1,
        ("reap-m16", "pruned"): 1.0,
        ("reap-m32-kd_uniform", "slimwise"): 0.0,
    }
    settings = [("sampled", run) for run in range(3)] + [("greedy", 0)]
    for ((decoder, mode), cut_share), (decoding, run) in product(arms.items(), settings):
        for benchmark, item in product(("mini_maths", "mini_tools"), range(8)):
            hit_budget = rng.random() < cut_share
            rows.append(
                {
                    "decoder": decoder,
                    "mode": mode,
                    "deployment": "colocated",
                    "benchmark": benchmark,
                    "item_id": str(item),
                    "run": run,
                    "decoding": decoding,
                    "correct": not hit_budget and rng.random() < 0.9,
                    "hit_budget": hit_budget,
                    "completion_tokens": BUDGET_TOKENS if hit_budget else rng.integers(20, 200),
                    "extracted": "7",
                    "reason": "budget" if hit_budget else "",
                    "findings": "{}",
                }
            )
    return pd.DataFrame(rows)


@pytest.fixture
def scores() -> pd.DataFrame:
    """Three layers of 64 experts, one of which no token reaches."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(list(product(range(3), range(64))), columns=["layer", "expert"])
    frame["tokens"] = np.floor(rng.lognormal(6, 1, len(frame)))
    frame.loc[70, "tokens"] = 0.0
    for criterion in ("mass", "ean", "reap", "frequency"):
        frame[criterion] = frame["tokens"] * rng.random(len(frame))
    return frame


@pytest.fixture
def distill_log() -> pd.DataFrame:
    """Forty steps of 500 tokens, 300 of them the student's."""
    steps = np.arange(40)
    log = pd.DataFrame(0.5, index=steps, columns=list(LOG_COLUMNS))
    falling = {"step": steps, "loss": 1 / (steps + 1), "kl": 0.5 / (steps + 1)}
    return log.assign(**falling, sequence_tokens=500, student_tokens=300)


@pytest.fixture
def study(tmp_path, grades, scores, distill_log) -> StudyPaths:
    """The study's files as earlier stages would leave them."""
    paths = StudyPaths.of("mini", tmp_path)
    shape = MoEShape(
        num_layers=3,
        num_experts=64,
        top_k=4,
        hidden_size=192,
        expert_width=32,
        shared_expert_width=64,
    )
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    backbone = BackboneRecord(
        "mini", tmp_path, "qwen3_5_moe", "Mini", shape, rule, "bfloat16", "0" * 64
    )
    write_backbone_record(paths.backbone_record, backbone, PROVENANCE)
    write_expert_scores(paths.expert_scores, scores, PROVENANCE)
    stats = {name: _routing_stats(scores) for name in ("maths", "tools")}
    write_routing_stats(paths.routing_stats, stats, PROVENANCE)
    for decoder, answers in grades.groupby("decoder"):
        write_grades(paths.grades(str(decoder)), answers.reset_index(drop=True), PROVENANCE)
    for criterion, num_kept in product((Criterion.MASS, Criterion.REAP), (32, 16)):
        path = paths.keep_set(criterion, num_kept)
        write_keep_set(path, _keep_set(scores, criterion, num_kept), PROVENANCE)
    distilled = paths.trained("reap-m32-kd_uniform")
    distilled.parent.mkdir(parents=True)
    distill_log.to_csv(distilled.parent / LOG_NAME, index=False)
    timing = paths.benchmark("score_experts")
    timing.parent.mkdir(parents=True)
    timing.write_text("s\th:m:s\n2.5\t0:00:02\n")
    return paths


@pytest.fixture
def tabulated(study) -> StudyPaths:
    """The same study once its tables are written."""
    write_tables(
        ReportConfig(),
        backbone=study.backbone_record,
        grades=_files(study.grades("*")),
        keep_sets=_files(study.keep_set("*", "*")),
        benchmarks=study.benchmark("score_experts").parent,
        setup_record=None,
        paper=Path(__file__).parents[3] / PAPER_RESULTS,
        out=study.table("accuracy").parent,
    )
    return study


def _files(pattern: Path) -> list[Path]:
    return sorted(Path(path) for path in glob(str(pattern)))


def _routing_stats(scores: pd.DataFrame) -> RoutingStats:
    tokens_LE = torch.tensor(scores["tokens"].to_numpy().reshape(3, 64))
    return RoutingStats(*(tokens_LE.clone() for _ in fields(RoutingStats)))


def _keep_set(scores: pd.DataFrame, criterion: Criterion, num_kept: int) -> KeepSetRecord:
    by_layer = [layer for _, layer in scores.groupby("layer")]
    best = [layer.nlargest(num_kept, criterion)["expert"] for layer in by_layer]
    kept = tuple(tuple(sorted(experts.tolist())) for experts in best)
    return KeepSetRecord(KeepSet(kept, 64, top_k=4), criterion, "0" * 64, "qwen3_5_moe")
