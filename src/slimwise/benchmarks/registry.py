"""The benchmarks by the name that a study asks for."""

import difflib
from collections.abc import Mapping
from types import MappingProxyType

from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.benchmarks.base import Benchmark
from slimwise.benchmarks.mini import MiniBenchmark
from slimwise.errors import ConfigError

_ALL: tuple[Benchmark, ...] = tuple(MiniBenchmark(family) for family in GRADED.values())
BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType({each.name: each for each in _ALL})


def benchmark_named(name: str) -> Benchmark:
    """The benchmark; ConfigError names the known ones."""
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name, BENCHMARKS, n=1)
        remedy = f"did you mean {near[0]}? Known" if near else "known"
        raise ConfigError(
            f"evaluation.benchmarks: {name!r} is not a benchmark; {remedy} are "
            f"{', '.join(BENCHMARKS)}."
        )
    return BENCHMARKS[name]
