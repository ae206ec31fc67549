import subprocess
import sys
from pathlib import Path

import pytest

from slimwise.artifacts.captions import read_captions
from slimwise.artifacts.tables import PROVENANCE_COLUMNS, read_table
from slimwise.errors import ArtifactError
from slimwise.report.config import ReportConfig
from slimwise.report.figures.run import draw_figures
from slimwise.report.tables.columns import (
    ACCURACY_COLUMNS,
    CATEGORY_COLUMNS,
    COMPARISON_COLUMNS,
    FINDING_COLUMNS,
    OVERLAP_BY_LAYER_COLUMNS,
    OVERLAP_COLUMNS,
    STAGE_TIME_COLUMNS,
)
from slimwise.report.tables.run import write_tables


def test_every_table_has_its_columns_its_provenance_and_its_twin(tabulated):
    tables = {
        "accuracy": (ACCURACY_COLUMNS, 7 * 2 * 2),
        "keep_set_overlap": (OVERLAP_COLUMNS, 2),
        "keep_set_overlap_by_layer": (OVERLAP_BY_LAYER_COLUMNS, 2 * 3),
        "stage_times": (STAGE_TIME_COLUMNS, 1),
    }
    for name, (columns, num_rows) in tables.items():
        rows = read_table(tabulated.table(name), columns)
        assert len(rows) == num_rows
        assert rows[list(PROVENANCE_COLUMNS)].notna().all(axis=None)
        assert len(tabulated.table(name, "md").read_text().splitlines()) == num_rows + 2


def test_every_table_of_the_paper_is_written_from_the_sampled_rows(tabulated):
    num_rows = {"table_1": 5 * 2, "table_2": 5 * 2, "table_3": 6 * 2, "table_4": 7 * 2}
    for name, expected in num_rows.items():
        rows = read_table(tabulated.table(name), COMPARISON_COLUMNS)
        assert len(rows) == expected
        assert set(rows["decoding"]) == {"sampled"}
        assert "slimwise" in tabulated.table(name, "md").read_text()


def test_a_study_without_findings_or_categories_says_so(tabulated):
    assert read_table(tabulated.table("findings"), FINDING_COLUMNS).empty
    assert read_table(tabulated.table("categories"), CATEGORY_COLUMNS).empty
    assert tabulated.table("findings", "md").read_text().startswith("No benchmark")


def test_accuracy_carries_the_provenance_of_the_grades(tabulated):
    rows = read_table(tabulated.table("accuracy"), ACCURACY_COLUMNS)
    origins = rows[list(PROVENANCE_COLUMNS)].drop_duplicates().to_numpy().tolist()
    assert origins == [["abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores"]]


def test_every_figure_in_every_configured_format_and_a_caption_each(tabulated):
    draw_figures(
        ReportConfig(figure_formats=("png", "pdf"), dpi=60, bootstrap_resamples=100),
        accuracy=tabulated.table("accuracy"),
        keep_set_overlap=tabulated.table("keep_set_overlap"),
        overlap_by_layer=tabulated.table("keep_set_overlap_by_layer"),
        grades=[tabulated.grades(name) for name in ("full", "reap-m32", "reap-m16", "mass-m32")],
        stats=tabulated.routing_stats,
        scores=tabulated.expert_scores,
        distilled=[tabulated.trained("reap-m32-kd_uniform")],
        out=tabulated.figures,
    )
    names = set(read_captions(tabulated.figure("captions", "json")))
    assert {"figure_3", "figure_5", "length_accuracy", "distillation", "expert_load"} < names
    drawn = {tabulated.figure(name, suffix) for name in names for suffix in ("png", "pdf")}
    assert set(tabulated.figures.iterdir()) == drawn | {tabulated.figure("captions", "json")}


def test_a_missing_grade_file_is_refused(study):
    with pytest.raises(ArtifactError, match="absent"):
        write_tables(
            ReportConfig(),
            backbone=study.backbone_record,
            grades=[study.grades("full"), study.grades("absent")],
            keep_sets=[],
            benchmarks=study.benchmark("score_experts").parent,
            setup_record=None,
            paper=Path("evaluation.csv"),
            out=study.table("accuracy").parent,
        )
    assert not study.table("accuracy").exists()


def test_the_report_never_loads_torch():
    code = (
        "import sys, slimwise.report.tables.run, slimwise.report.figures.run\n"
        "sys.exit('torch' in sys.modules or 'matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
