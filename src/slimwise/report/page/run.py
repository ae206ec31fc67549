"""The report of a study: one page that needs no other file."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.json_record import read_json_provenance
from slimwise.paths import StudyPaths
from slimwise.provenance import current_provenance
from slimwise.report.page.claim import claim
from slimwise.report.page.origins import Origin, Source, Verdicts
from slimwise.report.page.products import Products
from slimwise.report.page.sections import Section, page_sections
from slimwise.report.page.tables import PageTable
from slimwise.report.selection import reported
from slimwise.report.tables.columns import ACCURACY_COLUMNS

log = logging.getLogger(__name__)

_TEMPLATE, _STYLE, _SCRIPT = "page.html", "page.css", "page.js"
_FOLDER = Path(__file__).parent


def write_report(study: Path, *, paper: Path, out: Path) -> None:
    """The page of the finished study in the folder, as HTML with everything inside, at out.

    paper holds the paper's printed results. ArtifactError if the study has no record, or if a
    table or figure is not the one that the record lists.
    """
    paths = StudyPaths(study)
    products = Products.of(paths)
    accuracies = products.table("accuracy", ACCURACY_COLUMNS)
    sections = page_sections(products, Verdicts(paths), paper)
    origins = _origins(sections)
    record = Source("Study", paths.study_record, read_json_provenance(paths.study_record))
    context = {
        "study": products.record.configuration["study"],
        "claim": claim(accuracies),
        "facts": _facts(accuracies, record),
        "sections": sections,
        "origins": origins,
        "records": _records(origins, record),
        "configuration": json.dumps(products.record.configuration, indent=2, sort_keys=True),
        "page": out,
        "written": current_provenance(),
    }
    with atomic_file(out) as temporary:
        temporary.write_text(_rendered(context), encoding="utf-8")
    log.info("wrote %s, %.1f MB", out, out.stat().st_size / 1e6)


def _origins(sections: Iterable[Section]) -> list[Origin]:
    """Those that lines refer to, each once."""
    by_anchor = {
        line.origin.anchor: line.origin
        for section in sections
        for item in section.items
        if isinstance(item, PageTable)
        for grid in item.grids
        for line in grid.lines
        if line.origin is not None
    }
    return list(by_anchor.values())


def _records(origins: Iterable[Origin], study: Source) -> list[Source]:
    """Every file that the page refers to, the study's own record first."""
    sources = {source.path: source for origin in origins for source in origin.sources}
    return [study, *(sources[path] for path in sorted(sources))]


def _facts(accuracies: pd.DataFrame, record: Source) -> dict[str, str]:
    """What a reader asks first: which model, how measured, where and when."""
    shown = reported(accuracies)
    return {
        "backbone": str(shown["backbone"].iloc[0]),
        "decoding": str(shown["decoding"].iloc[0]),
        "runs": str(shown["runs"].max()),
        "measured on": ", ".join(shown["hardware"].unique()),
        "date": record.provenance.date[:10],
        "commit": record.provenance.commit[:12],
    }


def _rendered(context: dict[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = ((_FOLDER / name).read_text(encoding="utf-8") for name in (_STYLE, _SCRIPT))
    return environment.get_template(_TEMPLATE).render(context, style=style, script=script)
