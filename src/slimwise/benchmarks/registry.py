"""The benchmarks by the name that a study asks for."""

import difflib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.benchmarks.base import Benchmark
from slimwise.benchmarks.code.human_eval import humaneval_plus
from slimwise.benchmarks.code.mbpp import mbpp_plus
from slimwise.benchmarks.maths.gsm8k import Gsm8k
from slimwise.benchmarks.maths.math_500 import Math500
from slimwise.benchmarks.mini import MiniBenchmark
from slimwise.benchmarks.settings import USUAL, DataSettings
from slimwise.benchmarks.tool_calls.benchmark import Bfcl
from slimwise.benchmarks.tool_calls.categories import MEANS
from slimwise.errors import ConfigError

_MINI = {MiniBenchmark(family).name: partial(MiniBenchmark, family) for family in GRADED.values()}
_PUBLIC = {each().name: each for each in (Gsm8k, Math500, humaneval_plus, mbpp_plus)}
_BFCL = {name: partial(Bfcl, name) for name in MEANS}
BENCHMARKS: Mapping[str, Callable[[DataSettings], Benchmark]] = MappingProxyType(
    _MINI | _PUBLIC | _BFCL
)


def benchmark_named(name: str, settings: DataSettings = USUAL) -> Benchmark:
    """The benchmark under the settings; ConfigError names the known ones."""
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name, BENCHMARKS, n=1)
        remedy = f"did you mean {near[0]}? Known" if near else "known"
        raise ConfigError(
            f"evaluation.benchmarks: {name!r} is not a benchmark; {remedy} are "
            f"{', '.join(BENCHMARKS)}."
        )
    return BENCHMARKS[name](settings)
