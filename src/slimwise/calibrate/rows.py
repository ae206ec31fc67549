"""The token rows of a whole mixture, in the order in which they are observed."""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.sequences import component_sequences
from slimwise.processes import Processes


@dataclass(frozen=True)
class MixtureRows:
    """Token ids, each row behind its component's name; longest first within a component."""

    rows: Sequence[tuple[str, Sequence[int]]]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def digest(self) -> str:
        """Hex SHA-256 of names and ids: another tokenizer, template or data file has another."""
        digest = hashlib.sha256()
        for component, row in self.rows:
            digest.update(f"{component} {len(row)} ".encode())
            digest.update(array("I", row).tobytes())
        return digest.hexdigest()

    def num_tokens(self, begin: int = 0, end: int | None = None) -> int:
        """Tokens of the rows from begin to end."""
        return sum(len(row) for _, row in self.rows[begin:end])

    def component(self, number: int) -> str:
        """Whose row that is."""
        return self.rows[number][0]

    def of_one_component(self, begin: int) -> Iterator[Sequence[int]]:
        """The rows from there on, as far as they are of one component."""
        for number in range(begin, len(self.rows)):
            if self.component(number) != self.component(begin):
                return
            yield self.rows[number][1]

    def share(self, processes: Processes) -> "MixtureRows":
        """This process's rows: as many of each length as any other process has."""
        return MixtureRows(processes.share(self.rows))


def mixture_rows(config: CalibrationConfig, tokenizer: Any) -> MixtureRows:
    """The rows of all components; ConfigError if one cannot be had as asked."""
    return MixtureRows(
        [
            (component, row)
            for component in config.components
            for row in sorted(
                component_sequences(config, component, tokenizer), key=len, reverse=True
            )
        ]
    )
