"""Switches a running engine between arms: the plugin on or off, its pools, its counting, kernels.

The requests in flight stay. A serving engine cannot do this, because a captured CUDA graph has
the plugin's kernels in it or not, and one setting of the MoE kernel: here one set of graphs is
captured for each combination.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from slimwise.core.vocabulary import MoeKernels
from slimwise.errors import ConfigError
from slimwise_vllm.decode_bench.kernel_choice import KernelChoice
from slimwise_vllm.decode_bench.plan import Arm
from slimwise_vllm.request_pools import PhasePools
from slimwise_vllm.step_hook import RequestTable

_Hook = tuple[Any, str]
_GRAPHS = "concrete_cudagraph_entries"  # of vLLM's CUDAGraphWrapper


class HookSet:
    """Attributes that the plugin wrapped on some objects, which can be taken off and put back."""

    def __init__(self, hooks: Iterable[_Hook]) -> None:
        self._wrapped = [(holder, name, vars(holder)[name]) for holder, name in hooks]
        self._is_on = True

    def turn(self, on: bool) -> None:
        """Put the plugin's functions in place, or vLLM's own."""
        if on == self._is_on:
            return
        for holder, name, wrapped in self._wrapped:
            if on:
                setattr(holder, name, wrapped)
            else:
                delattr(holder, name)
        self._is_on = on


def plugin_hooks(runner: Any, counts: bool) -> tuple[HookSet, HookSet]:
    """What masks (with the step's preparation), and what counts; found where a model has pools."""
    if not hasattr(runner, "_prepare_inputs"):
        raise ConfigError(
            "arms can be switched on vLLM's V1 model runner only: set VLLM_USE_V2_MODEL_RUNNER=0."
        )
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

    layers = [module for module in runner.get_model().modules() if isinstance(module, MoERunner)]
    step = [(runner, name) for name in ("_prepare_inputs", "execute_model")]
    masks = [(layer, "_maybe_dispatch") for layer in layers]
    routers = [(layer.router, "_compute_routing") for layer in layers if counts]
    return HookSet([*step, *masks]), HookSet(routers)


class Capture(NamedTuple):
    """What a captured step has in it for good."""

    masks: bool
    counts: bool
    tuned: bool


class GraphSets:
    """The runner's CUDA graphs, one set for each kind of capture; without graphs, nothing."""

    def __init__(self, runner: Any, captured: Capture) -> None:
        self._runner = runner
        self._wrapper = runner.model if _GRAPHS in vars(runner.model) else None
        self._sets: dict[Capture, Any] = {}
        if self._wrapper is not None:
            self._sets[captured] = getattr(self._wrapper, _GRAPHS)

    def use(self, wanted: Capture) -> None:
        """Replay the graphs of a step that runs like this now; capture them at first use."""
        if self._wrapper is None:
            return
        is_new = wanted not in self._sets
        setattr(self._wrapper, _GRAPHS, self._sets.setdefault(wanted, {}))
        if is_new:
            from vllm.config import set_current_vllm_config

            with set_current_vllm_config(self._runner.vllm_config):
                self._runner.capture_model()


class ArmSwitch:
    """Makes the next step run as an arm asks."""

    def __init__(
        self,
        worker: Any,
        arms: Sequence[Arm],
        pool_names: Sequence[str],
        kernels: KernelChoice,
    ) -> None:
        self._bound = getattr(worker, "slimwise", None)
        self._coverage = getattr(self._bound, "coverage", None)
        self._pool_names = list(pool_names)
        self._pools = PhasePools(0, 0)
        self._kernels = kernels
        counts = self._coverage is not None
        captured = Capture(masks=self._bound is not None, counts=counts, tuned=False)
        self._graphs = GraphSets(worker.model_runner, captured)
        if self._bound is not None:
            self._masks, self._counters = plugin_hooks(worker.model_runner, counts)
            self._replace_pools()
        for arm in arms:
            self.to(arm)

    @property
    def coverage(self) -> Any:
        """The plugin's counters, whether or not the arm of the moment counts."""
        return self._coverage

    def kernels(self, arm: Arm) -> MoeKernels:
        """The settings of the MoE kernel that one of the engine's arms runs with."""
        return self._kernels.found[arm.tuned]

    def to(self, arm: Arm) -> None:
        """Switch; ConfigError if the engine cannot run the arm."""
        wanted = Capture(arm.mode is not None, arm.coverage, arm.tuned)
        if self._bound is not None:
            self._masks.turn(wanted.masks)
            self._counters.turn(wanted.counts)
            self._bound.coverage = self._coverage if wanted.counts else None
            self._pools = arm.pools(self._pool_names)
        elif wanted.masks:
            raise ConfigError(f"arm {arm.name} needs an engine with pools.")
        self._kernels.use(wanted.tuned)
        self._graphs.use(wanted)

    def _replace_pools(self) -> None:
        """Give all requests of a step the arm's pools, after looking up their own as ever."""
        look_up = RequestTable.pools

        def arm_pools(table: RequestTable, requests: Sequence[str]) -> list[PhasePools]:
            return [self._pools] * len(look_up(table, requests))

        setattr(RequestTable, "pools", arm_pools)  # noqa: B010
