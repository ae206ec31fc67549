import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.paths import EMBEDDED_DISTILLED
from slimwise.provenance import current_provenance

pytestmark = pytest.mark.slow

_THROUGHPUT = {"write_throughput_tables", "draw_throughput_figures"}
_REPORT = {"write_tables", "draw_figures", "record_study", "write_report", *_THROUGHPUT}
_DISTILLED = {
    "distill_decoder[reap-32-uniform]",
    "export_distilled_decoder[reap-32-uniform]",
    "generate_pruned_answers[reap-m32-kd_uniform]",
    "generate_distilled_answers[reap-32-uniform]",
    "grade_answers[reap-m32-kd_uniform]",
    "grade_answers[reap-m32-kd_uniform-colocated]",
    *_REPORT,
}
_AFTER_SCORES = _DISTILLED | {
    "score_experts",
    "select_experts[reap-32]",
    "export_decoder[reap-32]",
    "generate_pruned_answers[reap-m32]",
    "generate_colocated_answers[reap-32]",
    "grade_answers[reap-m32]",
    "grade_answers[reap-m32-colocated]",
    "sweep_throughput[reap-m32]",
}
_EVERYTHING = _AFTER_SCORES | {
    "inspect_backbone",
    "generate_full_answers",
    "sweep_throughput[full]",
    "grade_answers[full]",
    "check_floor",
    "collect_stats",
}


def _append(line: str, source: str) -> str:
    return f"{source}\n{line}\n"


def test_a_complete_study_has_nothing_to_do(tree):
    assert tree.planned() == set()


def test_every_rule_is_planned_in_a_tree_without_results(tree):
    shutil.rmtree(tree.root / "results")
    assert tree.planned() == _EVERYTHING


def test_a_fresh_clone_computes_what_is_committed_again(tree):
    study = tree.root / "results" / "smoke"
    for path in study.iterdir():
        if path.name == "study.json":
            path.unlink()
        elif path.name not in ("80_tables", "80_figures", "80_report"):
            shutil.rmtree(path)
    shutil.rmtree(tree.root / ".snakemake")
    assert tree.planned() == _EVERYTHING


def test_one_more_num_kept_runs_only_its_own_jobs(tree):
    overlay = tree.overlay(
        "selection: {num_kept: [32, 16]}\n"
        "distillation: {num_kept: [32]}\n"
        "evaluation: {colocated_num_kept: {slimwise: [32, 16]}}"
    )
    assert tree.planned(overlay) == _REPORT | {
        "select_experts[reap-16]",
        "export_decoder[reap-16]",
        "generate_pruned_answers[reap-m16]",
        "generate_colocated_answers[reap-16]",
        "grade_answers[reap-m16]",
        "grade_answers[reap-m16-colocated]",
    }


def test_one_more_split_rule_runs_only_its_own_jobs(tree):
    planned = tree.planned(tree.overlay("distillation: {rules: [uniform, zero]}"))
    assert planned == {job.replace("uniform", "zero") for job in _DISTILLED}


def test_another_distillation_leaves_all_other_decoders_alone(tree):
    assert tree.planned(tree.overlay("distillation: {steps: 3}")) == _DISTILLED


def test_one_mode_less_asks_only_its_server_again(tree):
    planned = tree.planned(tree.overlay("evaluation: {colocated_num_kept: {reverse: []}}"))
    assert planned == _REPORT | {
        "generate_colocated_answers[reap-32]",
        "grade_answers[reap-m32-colocated]",
    }


@pytest.mark.parametrize(
    "overlay",
    [
        "serving: {start_timeout_s: 900, request_timeout_s: 99, port: 8001}",
        "evaluation: {concurrency: 8}\ngrading: {workers: 4}",
        "disaggregation: {prefill_port: 8001, decode_port: 8002, kv_host: 10.0.0.3}",
    ],
)
def test_patience_and_haste_ask_nothing_again(tree, overlay):
    assert tree.planned(tree.overlay(overlay)) == {"record_study", "write_report"}


def test_the_full_decoder_may_be_swept_on_two_servers(tree):
    overlay = tree.overlay("throughput: {decoders: [full, reap-m32, full-disaggregated]}")
    added = {"sweep_throughput[full-disaggregated]", *_THROUGHPUT, "record_study", "write_report"}
    assert tree.planned(overlay) == added


def test_trained_tensors_that_ship_are_inputs_of_their_decoder(tree):
    overlay = tree.overlay("distillation: {embedded: true}")
    folder = tree.root / EMBEDDED_DISTILLED / "reap-m32-kd_uniform"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text("{}")
    assert tree.engine(overlay).returncode == 0
    assert tree.planned(overlay) == set()
    (folder / "manifest.json").write_text("{ }")
    assert tree.planned(overlay) == _DISTILLED


def test_items_of_a_local_folder_are_inputs_of_every_job_that_asks(tree):
    (tree.root / "data" / "gsm8k").mkdir(parents=True)
    (tree.root / "data" / "gsm8k" / "test.jsonl").touch()
    told = tree.engine("--dry-run", tree.overlay("evaluation: {data_folder: data}")).stdout
    reading = re.findall(r"^rule (\w+):\n    input: data/gsm8k/test\.jsonl,", told, re.MULTILINE)
    asking = {"full", "pruned", "colocated", "distilled"}
    assert set(reading) == {f"generate_{each}_answers" for each in asking}


@pytest.mark.parametrize(
    "module", ["score/run.py", "calibrate/run.py", "core/routing_stats.py", "config.py"]
)
def test_a_comment_reruns_nothing(tree, module):
    tree.edit(f"src/slimwise/{module}", partial(_append, "# Scored once per study."))
    assert tree.planned() == set()


def test_a_changed_score_reruns_scoring_and_what_follows(tree):
    tree.edit("src/slimwise/score/run.py", partial(_append, "SCALE = 2"))
    assert tree.planned() == _AFTER_SCORES


def test_a_changed_figure_reruns_only_figures(tree):
    tree.edit("src/slimwise/report/figures/style.py", partial(_append, "MARGIN = 2"))
    drawn = {"draw_figures", "draw_throughput_figures"}
    assert tree.planned() == {*drawn, "record_study", "write_report"}


def test_a_changed_plugin_asks_every_decoder_again(tree):
    tree.edit("src/slimwise_vllm/one_token_conv.py", partial(_append, "WIDTH = 2"))
    planned = tree.planned()
    assert planned >= {job for job in _EVERYTHING if job.startswith("generate_")}
    assert not planned & {"collect_stats", "score_experts", "select_experts[reap-32]"}


def test_a_longer_evaluation_keeps_the_keep_sets(tree):
    overlay = tree.overlay(
        "evaluation: {num_items: 5}\nbackbone: {accuracy_floors: {mini_code: 0}}"
    )
    planned = tree.planned(overlay)
    assert {"generate_full_answers", "generate_pruned_answers[reap-m32]", "write_tables"} < planned
    assert not planned & {"inspect_backbone", "collect_stats", "select_experts[reap-32]"}


@pytest.mark.parametrize(
    ("overlay", "words"),
    [
        ("selection: {num_keep: [16]}", ["selection.num_keep", "num_kept"]),
        ("selection: {num_kept: [0]}", ["selection.num_kept.0 = 0", "greater than or equal to 1"]),
        ("serving: {kv_cache_gib: -1}", ["serving.kv_cache_gib = -1", "greater than 0"]),
        ("evaluation: {budget_tokens: 640}", ["budget_tokens = 640", "max_model_len_tokens = 640"]),
        ("evaluation: {colocated_num_kept: {slimwise: [8]}}", ["slimwise names 8", "(32)"]),
        ("distillation: {criteria: [ean]}", ["distillation.criteria names ean", "(reap)"]),
        ("distillation: {embeded: false}", ["embeded", "did you mean embedded"]),
    ],
)
def test_a_bad_configuration_is_refused_before_the_dag(tree, overlay, words):
    outcome = tree.engine("--dry-run", tree.overlay(overlay))
    assert outcome.returncode != 0
    assert "Building DAG" not in outcome.stdout
    for word in words:
        assert word in outcome.stdout


@pytest.mark.parametrize(("num_kept", "limit"), [(3, "top_k=4"), (65, "num_experts=64")])
def test_a_count_that_a_known_backbone_cannot_keep_is_refused_before_the_dag(tree, num_kept, limit):
    shape = MoEShape(8, 64, 4, hidden_size=192, expert_width=32, shared_expert_width=64)
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    record = BackboneRecord("miniature", Path("m"), "t", "A", shape, rule, "bfloat16", "0")
    path = tree.root / "results" / "smoke" / "10_backbone" / "backbone.json"
    write_backbone_record(path, record, current_provenance())
    outcome = tree.engine("--dry-run", tree.overlay(f"selection: {{num_kept: [32, {num_kept}]}}"))
    assert outcome.returncode != 0
    assert "Building DAG" not in outcome.stdout
    assert f"num_kept={num_kept}" in outcome.stdout
    assert limit in outcome.stdout


def test_the_engine_makes_a_report_of_its_own(tree):
    outcome = tree.engine("--report", "engine.html")
    assert outcome.returncode == 0, outcome.stdout
    assert "table_1.csv" in (tree.root / "engine.html").read_text()
