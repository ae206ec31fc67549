"""A finished study of made-up answers, and its page."""

import hashlib
import shutil
from pathlib import Path

import pytest

from slimwise.artifacts.captions import write_captions
from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.study_record import StudyRecord, write_study_record
from slimwise.artifacts.tables import read_table
from slimwise.paths import PAPER_RESULTS, StudyPaths
from slimwise.report.config import ReportConfig
from slimwise.report.figures.captions import figure_captions
from slimwise.report.figures.style import note_figure, save_figure
from slimwise.report.page.run import write_report
from slimwise.report.tables.columns import ACCURACY_COLUMNS

from ..conftest import PROVENANCE

PAPER = Path(__file__).parents[4] / PAPER_RESULTS


@pytest.fixture(scope="session")
def kept_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first test that needs the study leaves it for the others."""
    return tmp_path_factory.mktemp("kept") / "mini"


@pytest.fixture
def finished(request, kept_study, tmp_path) -> StudyPaths:
    """The study with a stand-in for each figure, and the record of all of it."""
    if not kept_study.exists():
        tabulated = request.getfixturevalue("tabulated")
        _draw(tabulated)
        record_products(tabulated)
        shutil.copytree(tabulated.root, kept_study)
    paths = StudyPaths.of("mini", tmp_path / "copy")
    shutil.copytree(kept_study, paths.root)
    return paths


@pytest.fixture
def page(finished) -> Path:
    """The page of that study."""
    write_report(finished.root, paper=PAPER, out=finished.report)
    return finished.report


def record_products(paths: StudyPaths) -> None:
    """Write the record of whatever tables and figures the study has now."""
    files = [*paths.tables.iterdir(), *paths.figures.iterdir()]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    configuration = {"study": "mini", "report": ReportConfig().model_dump(mode="json")}
    record = StudyRecord(configuration, ("full", "reap-m32"), digests)
    write_study_record(paths.study_record, record, PROVENANCE)


def _draw(paths: StudyPaths) -> None:
    accuracy = read_table(paths.table("accuracy"), ACCURACY_COLUMNS)
    captions = figure_captions(accuracy, read_grades(paths.grades("full")))
    for name in captions:
        save_figure(note_figure(name), paths.figures / name, formats=("png",), dpi=60)
    write_captions(paths.figure("captions", "json"), captions, PROVENANCE)
