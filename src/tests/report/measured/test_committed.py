"""The committed tables are what the committed rows give, and the figures can be drawn of them."""

from itertools import pairwise
from pathlib import Path

import pytest

from slimwise.artifacts.captions import read_captions
from slimwise.artifacts.tables import read_table
from slimwise.paths import MEASURED_STUDY, PAPER_THROUGHPUT, StudyPaths
from slimwise.report.config import ReportConfig
from slimwise.report.measured.columns import SPLIT_RULE_COLUMNS
from slimwise.report.measured.figures.run import draw_measured_figures
from slimwise.report.measured.figures.split_rules import draw_split_rules
from slimwise.report.measured.tables import write_measured_tables

COMMITTED = StudyPaths.of(MEASURED_STUDY)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("tables")
    write_measured_tables(
        ReportConfig(),
        backbone="Qwen3.6-35B-A3B",
        rows=sorted(COMMITTED.root.glob("[2-6]0_*/*.jsonl")),
        paper=PAPER_THROUGHPUT,
        out=out,
    )
    return out


def test_the_committed_rows_give_the_committed_tables(tables):
    names = sorted(path.name for path in tables.iterdir())
    assert names == sorted(path.name for path in COMMITTED.tables.iterdir())
    for name in names:
        assert (tables / name).read_bytes() == (COMMITTED.tables / name).read_bytes(), name


def test_every_figure_has_its_files_and_a_caption(tables, tmp_path):
    config = ReportConfig(figure_formats=("png",), dpi=60)
    draw_measured_figures(config, tables=tables, out=tmp_path)
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert drawn == read_captions(tmp_path / "captions.json").keys()
    assert drawn == {path.stem for path in COMMITTED.figures.glob("*.png")}


def test_no_name_of_a_benchmark_or_title_covers_another():
    figure = draw_split_rules(read_table(COMMITTED.table("split_rules"), SPLIT_RULE_COLUMNS))
    figure.draw_without_rendering()
    num_columns = len(figure.axes) // 2
    titles = [axes.title for axes in figure.axes[:num_columns]]
    names = [label for axes in figure.axes[num_columns:] for label in axes.get_xticklabels()]
    for labels in (names, titles):
        places = [label.get_window_extent() for label in labels]
        gaps = [after.x0 - before.x1 for before, after in pairwise(places)]
        assert min(gaps) > 0
