"""Expert coverage as Prometheus metrics, read from the file that rank 0 writes.

Workers are other processes than the one that is scraped.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from slimwise_vllm.settings import read_settings


def coverage_metrics(report: dict[str, Any]) -> Iterator[Metric]:
    """The metrics of one report; batches of a phase are averaged, weighted by their steps."""
    share = GaugeMetricFamily(
        "slimwise:pool_share",
        "Mean share of a layer's experts that one measured step reads.",
        labels=["phase"],
    )
    steps = CounterMetricFamily("slimwise:measured_steps", "Steps measured.", labels=["phase"])
    choices = CounterMetricFamily(
        "slimwise:expert_choices", "Experts chosen in measured steps.", labels=["phase"]
    )
    for phase, tokens_LE in report["tokens"].items():
        rows = [row for row in report["steps"] if row["phase"] == phase]
        num_steps = sum(row["num_steps"] for row in rows)
        steps.add_metric([phase], num_steps)
        choices.add_metric([phase], sum(map(sum, tokens_LE)))
        if num_steps:
            weighted = sum(row["pool_share"] * row["num_steps"] for row in rows)
            share.add_metric([phase], weighted / num_steps)
    yield from (share, steps, choices)


class CoverageMetrics(Collector):
    """Reads the file at every scrape; without it there are no metrics."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def collect(self) -> Iterable[Metric]:
        """The file's counts as metrics; none if nobody has written it."""
        if self._path.is_file():
            yield from coverage_metrics(json.loads(self._path.read_text("utf-8")))

    @classmethod
    def show(cls, additional_config: object) -> None:
        """Register the collector of this server's coverage file, if it has one."""
        settings = read_settings(additional_config)
        if settings is not None and settings.coverage_file is not None:
            REGISTRY.register(cls(settings.coverage_file))
