"""Where each number of the page came from: the records behind a line of a table."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.json_record import read_json_provenance
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.paths import StudyPaths
from slimwise.provenance import Provenance
from slimwise.report.labels import CRITERION_LABELS, arm_label, decoder_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.settings import decoder_name

Row = Mapping[Any, Any]

_DIGEST_CHARACTERS = 16


@dataclass(frozen=True)
class Source:
    """One record: what it holds, its file, and who wrote it where and when."""

    holds: str
    path: Path
    provenance: Provenance

    @property
    def configuration(self) -> str:
        """16 hex digits of SHA-256 over the JSON words of the command, "" if it has none."""
        slices = [word for word in shlex.split(self.provenance.command) if word.startswith("{")]
        digest = hashlib.sha256("\n".join(slices).encode()).hexdigest()[:_DIGEST_CHARACTERS]
        return digest if slices else ""

    def link(self, page: Path) -> str:
        """The file as seen from the page."""
        return os.path.relpath(self.path, page.parent)


@dataclass(frozen=True)
class Origin:
    """The records behind the numbers of a line; anchor names it within the page."""

    anchor: str
    title: str
    sources: tuple[Source, ...]


class Verdicts:
    """Which file of grades holds the answers of one use of a decoder."""

    def __init__(self, paths: StudyPaths) -> None:
        """Reads every file of grades below the study; one of another study's run matches no row."""
        self._paths = paths
        pattern = paths.grades("*").relative_to(paths.root)
        self._files = dict(_uses(sorted(paths.root.glob(str(pattern)))))

    def origin(self, row: Row) -> Origin:
        """Of a row of the accuracy or comparison table: its verdicts, its answers, its keep set."""
        use = (decoder_name(row), row["mode"], row["deployment"])
        arm = arm_label(row["mode"], row["distilled"], row["deployment"])
        title = f"{decoder_label(row['criterion'], row['num_kept'])}, {arm}"
        return Origin(_anchor(*use), title, tuple(self._sources(row, use)))

    def _sources(self, row: Row, use: tuple[str, ...]) -> Iterable[Source]:
        grades = self._files.get((*use, row["date"]))
        if grades is not None:
            yield Source("Verdicts", grades, read_rows_provenance(grades))
            answers = grades.with_name(self._paths.samples("full").name)
            if answers.is_file():
                yield Source("Answers", answers, read_rows_provenance(answers))
        if row["criterion"] != NO_CRITERION:
            yield from _keep_set(self._paths, row["criterion"], row["num_kept"])


def overlap_origin(paths: StudyPaths, row: Row) -> Origin:
    """Of a row about two criteria: their keep sets."""
    pair = (row["criterion_a"], row["criterion_b"])
    title = " and ".join(decoder_label(name, round(row["num_kept"])) for name in pair)
    sources = [source for name in pair for source in _keep_set(paths, name, row["num_kept"])]
    return Origin(_anchor("overlap", *pair, row["num_kept"]), title, tuple(sources))


def row_origin(table: Path, row: Row) -> Origin:
    """Of a row that itself says who measured it."""
    told = [str(row[name]) for name in PROVENANCE_COLUMNS]
    source = Source("Table", table, Provenance(*told, versions={}, command=""))
    return Origin(_anchor(table.stem, *told), table.stem.replace("_", " "), (source,))


def _uses(files: Iterable[Path]) -> Iterable[tuple[tuple[str, ...], Path]]:
    """Each use of a decoder, with the date of its verdicts, and the file that holds them."""
    for path in files:
        date = read_rows_provenance(path).date
        for use in read_grades(path)[["decoder", "mode", "deployment"]].drop_duplicates().values:
            yield (*map(str, use), date), path


def _keep_set(paths: StudyPaths, criterion: str, num_kept: float) -> Iterable[Source]:
    path = paths.keep_set(criterion, f"{num_kept:g}")
    if path.is_file():
        holds = f"Keep set, {CRITERION_LABELS[criterion]}"
        yield Source(holds, path, read_json_provenance(path))


def _anchor(*words: object) -> str:
    return "from-" + re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, words)).lower()).strip("-")
