"""A server's Prometheus metrics, as it reports them at this moment."""

import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from slimwise.errors import EngineError

_TIMEOUT_S = 10


@dataclass(frozen=True)
class ServerMetrics:
    """The samples of one scrape."""

    base_url: str
    samples: tuple[Sample, ...]

    def total(self, name: str, **labels: str) -> float:
        """Sum over the samples of that name with these labels; 0 if there are none."""
        return sum(sample.value for sample in self._named(name, labels))

    def has(self, name: str) -> bool:
        """True if the server reports a metric of that name."""
        return any(sample.name == name for sample in self.samples)

    def labels(self, name: str) -> dict[str, str]:
        """Labels of the first sample of that name; EngineError if there is none."""
        for sample in self._named(name, {}):
            return dict(sample.labels)
        raise EngineError(
            f"{self.base_url}/metrics has no {name}: it is not a vLLM server of a version that "
            "SlimWise knows. Check the address."
        )

    def _named(self, name: str, labels: dict[str, str]) -> Iterable[Sample]:
        return (
            sample
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def read_metrics(base_url: str) -> ServerMetrics:
    """What the server reports now; EngineError if it does not answer, or with something else."""
    try:
        with urllib.request.urlopen(f"{base_url}/metrics", timeout=_TIMEOUT_S) as reply:
            families = tuple(text_string_to_metric_families(reply.read().decode()))
    except (OSError, HTTPException, ValueError) as failure:
        raise EngineError(f"{base_url}/metrics cannot be read: {failure}.") from failure
    return ServerMetrics(
        base_url, tuple(sample for family in families for sample in family.samples)
    )
