"""What a finished study left for its page: only files that its record lists, as it lists them."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from slimwise.artifacts.captions import Caption, read_captions
from slimwise.artifacts.study_record import StudyRecord, read_study_record
from slimwise.artifacts.tables import read_table, read_table_cells
from slimwise.errors import ArtifactError
from slimwise.paths import StudyPaths
from slimwise.report.config import PAGE_FORMATS

_CAPTIONS_ENDING = "captions.json"


@dataclass(frozen=True)
class Products:
    """The study's tables and figures; a file that lies beside them from another run is none."""

    paths: StudyPaths
    record: StudyRecord

    @classmethod
    def of(cls, paths: StudyPaths) -> "Products":
        """The products of the study; ArtifactError if it has no record."""
        return cls(paths, read_study_record(paths.study_record))

    def has_table(self, name: str) -> bool:
        """Whether the study wrote the table."""
        return f"{name}.csv" in self.record.sha256

    def table(self, name: str, columns: Sequence[str]) -> pd.DataFrame:
        """The table; ArtifactError if it is not the one that the study wrote."""
        return read_table(self._whole(self.paths.table(name)), columns)

    def table_cells(self, name: str) -> pd.DataFrame:
        """A table of whatever columns, its cells as text; ArtifactError as above."""
        return read_table_cells(self._whole(self.paths.table(name)))

    def notes(self, name: str) -> tuple[str, ...]:
        """What the table's Markdown twin says below its cells, but for who measured them."""
        text = self._whole(self.paths.table(name, "md")).read_text(encoding="utf-8")
        below = text[text.rfind("\n|") + 1 :].splitlines()
        return tuple(line for line in below if line and not line.startswith(("|", "Commit ")))

    def figures(self) -> dict[str, tuple[Caption, Path]]:
        """Caption and image of every figure by name, in the order of the captions."""
        images = {name: self._image(name) for name in self._captions()}
        return {
            name: (caption, self._whole(images[name]))
            for name, caption in self._captions().items()
            if images[name].name in self.record.sha256
        }

    def _captions(self) -> dict[str, Caption]:
        return {
            name: caption
            for path in self._caption_files()
            for name, caption in read_captions(self._whole(path)).items()
        }

    def _caption_files(self) -> Iterator[Path]:
        for name in self.record.sha256:
            if name.endswith(_CAPTIONS_ENDING):
                yield self.paths.figures / name

    def _image(self, name: str) -> Path:
        """The vector image where there is one."""
        images = [self.paths.figure(name, suffix) for suffix in PAGE_FORMATS]
        return next((path for path in images if path.name in self.record.sha256), images[-1])

    def _whole(self, path: Path) -> Path:
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as failure:
            raise ArtifactError(
                f"cannot read {path}: {failure.strerror}. Run the study again."
            ) from failure
        if digest != self.record.sha256.get(path.name):
            raise ArtifactError(
                f"{path} is not the file that {self.paths.study_record} lists. Run the study again."
            )
        return path
