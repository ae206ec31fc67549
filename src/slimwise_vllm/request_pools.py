"""Which pools a request uses: asked for in its extra arguments, else the server's default.

The choice is made once, where requests enter, and travels with the request, so that the
scheduler's block hashes and every worker agree on it whatever the default becomes later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.errors import ConfigError
from slimwise_vllm.pools import Pools
from slimwise_vllm.settings import FULL_POOL, PluginSettings

MODE = "slimwise_mode"
POOL = "slimwise_pool"
PREFILL_POOL = "slimwise_prefill_pool"
DECODE_POOL = "slimwise_decode_pool"
_ARGUMENTS = (MODE, POOL, PREFILL_POOL, DECODE_POOL)
_PREFIX = "slimwise_"
_ASSIGNED = "slimwise_assigned"


class PhasePools(NamedTuple):
    """Index of the pool of each phase; 0 is full."""

    prefill: int
    decode: int


@dataclass(frozen=True)
class AssignedPools:
    """What a request carries: its pools, their content, and where decode begins.

    The first decode position is the prompt's length plus first_decode_offset.
    """

    pools: PhasePools
    digests: tuple[str, str]
    first_decode_offset: int


@dataclass(frozen=True)
class ModeChoice:
    """A serving mode and the pool that it prunes to."""

    mode: ServingMode
    pool: str


class PoolChooser:
    """Assigns pools to requests; the default for those that ask for none can be changed."""

    def __init__(self, pools: Pools, settings: PluginSettings) -> None:
        self._pools = pools
        self._first_decode_offset = settings.first_decode_offset
        self._default = ModeChoice(settings.default_mode, settings.first_pool)

    @property
    def default(self) -> ModeChoice:
        """What requests that choose nothing get."""
        return self._default

    @property
    def pool_names(self) -> tuple[str, ...]:
        """Names that a request may choose."""
        return self._pools.names

    def set_default(self, mode: str | None, pool: str | None = None) -> None:
        """Change the default of requests to come; ConfigError leaves it as it is."""
        choice = self._mode_choice(mode, pool)
        self._phase_pools(choice)
        self._default = choice

    def choose(self, extra_args: Mapping[str, Any] | None) -> PhasePools:
        """The pools that the extra arguments ask for; ConfigError says what is wrong with them."""
        asked = {key: value for key, value in (extra_args or {}).items() if _is_ours(key)}
        for key, value in asked.items():
            if key not in _ARGUMENTS:
                raise ConfigError(f"{key} is not an argument: choose from {', '.join(_ARGUMENTS)}.")
            if not isinstance(value, str):
                raise ConfigError(f"{key}={value!r} must be a name, as text.")
        if PREFILL_POOL not in asked and DECODE_POOL not in asked:
            return self._phase_pools(self._mode_choice(asked.get(MODE), asked.get(POOL)))
        if MODE in asked or POOL in asked:
            raise ConfigError(
                f"give {MODE} with {POOL}, or {PREFILL_POOL} with {DECODE_POOL}, not both."
            )
        names = asked.get(PREFILL_POOL, FULL_POOL), asked.get(DECODE_POOL, FULL_POOL)
        return PhasePools(*map(self._pools.index, names))

    def assign(self, extra_args: Mapping[str, Any] | None) -> dict[str, Any]:
        """New extra arguments in which the choice is recorded for assigned_pools to read."""
        chosen = self.choose(extra_args)
        transfer = (extra_args or {}).get("kv_transfer_params") or {}
        if transfer.get("do_remote_decode"):
            # Another server decodes. Of some prompts vLLM gives the last token to that one too,
            # and the last that is left here must not pass for the first of decode.
            chosen = PhasePools(chosen.prefill, chosen.prefill)
        digests = [self._pools.digests[pool] for pool in chosen]
        record = [*chosen, *digests, self._first_decode_offset]
        return {**(extra_args or {}), _ASSIGNED: record}

    def _mode_choice(self, mode: str | None, pool: str | None) -> ModeChoice:
        if mode is not None and mode not in set(ServingMode):
            raise ConfigError(
                f"mode {mode!r} does not exist: choose one of {', '.join(ServingMode)}."
            )
        default = self._default
        return ModeChoice(
            default.mode if mode is None else ServingMode(mode),
            default.pool if pool is None else pool,
        )

    def _phase_pools(self, choice: ModeChoice) -> PhasePools:
        pool = self._pools.index(choice.pool)
        return PhasePools(
            pool if choice.mode.prunes(Phase.PREFILL) else 0,
            pool if choice.mode.prunes(Phase.DECODE) else 0,
        )


def _is_ours(key: str) -> bool:
    # The bare name too, so that a misremembered argument is refused, not ignored.
    return key == "slimwise" or key.startswith(_PREFIX)


def assigned_pools(sampling_params: Any) -> AssignedPools | None:
    """What was assigned to the request of these parameters; None if it never met a chooser."""
    extra_args = getattr(sampling_params, "extra_args", None)
    record = extra_args.get(_ASSIGNED) if extra_args else None
    if record is None:
        return None
    prefill, decode, prefill_digest, decode_digest, first_decode_offset = record
    pools = PhasePools(prefill, decode)
    return AssignedPools(pools, (prefill_digest, decode_digest), first_decode_offset)
