"""The files that make an expert pool of a server with several. Torch-free."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class PoolFiles(BaseModel):
    """A keep set and, if its decoder is distilled, the tensors that were trained for it.

    A path alone stands for a keep set that nothing was trained for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep_set: Path = Field(description="Keep-set file.")
    trained: Path | None = Field(
        default=None, description="Folder that stage distill-decoder wrote, or its manifest."
    )

    @model_validator(mode="before")
    @classmethod
    def _a_path_is_a_keep_set(cls, value: Any) -> Any:
        return {"keep_set": value} if isinstance(value, str | Path) else value

    @classmethod
    def of(cls, files: Sequence[Path]) -> Self:
        """Of the keep set and, if anything was trained, its manifest, in that order."""
        keep_set, *trained = (path.resolve() for path in files)
        return cls(keep_set=keep_set, trained=trained[0] if trained else None)

    @property
    def trained_folder(self) -> Path | None:
        """The folder that holds the trained tensors; it need not exist."""
        named = self.trained
        return named.parent if named is not None and named.suffix == ".json" else named
