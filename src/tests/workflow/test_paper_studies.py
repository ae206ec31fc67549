"""The plans of the paper's studies, whose models are not here."""

import re
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

_ONCE = (
    "inspect_backbone",
    "generate_full_answers",
    "check_floor",
    "collect_stats",
    "score_experts",
    "cross_check_scores",
    "write_tables",
    "draw_figures",
    "record_study",
    "write_report",
)


def _rules(jobs: set[str]) -> Counter[str]:
    return Counter(job.partition("[")[0] for job in jobs)


def test_the_main_backbone(finished_study):
    jobs = finished_study.planned(study="qwen3_6_35b_a3b")
    assert _rules(jobs) == {
        **dict.fromkeys(_ONCE, 1),
        "select_experts": 9,
        "export_decoder": 9,
        "distill_decoder": 8,
        "export_distilled_decoder": 8,
        "generate_pruned_answers": 9,
        "generate_colocated_answers": 9,
        "generate_distilled_answers": 8,
        "grade_answers": 27,
    }
    distilled = {f"{criterion}-128-uniform" for criterion in ("mass", "ean", "reap")}
    distilled |= {f"reap-{kept}-{rule}" for kept in (192, 128, 64) for rule in ("uniform", "zero")}
    assert {job for job in jobs if job.startswith("distill_decoder")} == {
        f"distill_decoder[{name}]" for name in distilled
    }


def test_the_second_backbone(finished_study):
    jobs = finished_study.planned(study="gemma4_26b_a4b")
    assert _rules(jobs) == {
        **dict.fromkeys(_ONCE, 1),
        **dict.fromkeys(("select_experts", "export_decoder"), 3),
        **dict.fromkeys(("distill_decoder", "export_distilled_decoder"), 3),
        **dict.fromkeys(("generate_pruned_answers", "generate_colocated_answers"), 3),
        "generate_distilled_answers": 3,
        "grade_answers": 10,
    }


@pytest.mark.parametrize("study", ["qwen3_6_35b_a3b", "mini"])
def test_a_study_records_every_table_with_what_its_twin_notes(finished_study, study):
    told = finished_study.engine("--dry-run", study=study).stdout
    recorded = re.search(r"^rule record_study:\n    input: (.*)$", told, re.MULTILINE)
    assert recorded is not None
    files = {Path(name) for name in recorded[1].split(", ")}
    tables = {path for path in files if path.suffix == ".csv"}
    assert len(tables) > 10
    assert {path.with_suffix(".md") for path in tables} <= files


@pytest.mark.parametrize(
    ("words", "threads"),
    [(["--resources", "gpu=8"], {"2"}), ([], {"16"})],
    ids=["one server a GPU", "one GPU"],
)
def test_jobs_of_a_gpu_take_its_share_of_the_cores(finished_study, words, threads):
    told = finished_study.engine("--dry-run", "--cores", "16", *words, study="qwen3_6_35b_a3b")
    jobs = re.findall(r"^rule (\w+):(.*?)^\[", told.stdout, re.MULTILINE | re.DOTALL)
    found = {
        found[1]
        for rule, block in jobs
        if rule.startswith(("generate_", "distill_", "collect_", "cross_"))
        and (found := re.search(r"threads: (\d+)", block))
    }
    assert found == threads


def test_a_data_file_that_changes_is_calibrated_on_again(tree):
    folder = tree.root / "mixture"
    folder.mkdir()
    overlay = tree.overlay(
        "calibration: {dataset: reap_mixture, components: [swe_smith], data_folder: mixture}\n"
    )
    (folder / "swe_smith.jsonl").write_text("{}\n")
    outcome = tree.engine(overlay)
    assert outcome.returncode == 0, outcome.stdout
    assert tree.planned(overlay) == set()
    (folder / "swe_smith.jsonl").write_text("{}\n{}\n")
    assert "collect_stats" in tree.planned(overlay)
