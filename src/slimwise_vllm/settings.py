"""What the plugin is told: the key "slimwise" of vLLM's --additional-config."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import ServingMode
from slimwise.errors import ConfigError

KEY = "slimwise"
FULL_POOL = "full"


class PluginSettings(BaseModel):
    """The plugin's settings; they are part of vLLM's compile cache key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pools: dict[str, PoolFiles] = Field(
        min_length=1, description="Files of each pruned pool, by the pool's name."
    )
    default_mode: ServingMode = Field(
        default=ServingMode.FULL, description="Mode of requests that name none."
    )
    default_pool: str | None = Field(
        default=None, description="Pool of requests that name none; needed with several pools."
    )
    first_decode_offset: int = Field(
        default=-1,
        le=0,
        description="First decode position minus the prompt's length, tokens. -1: the last prompt "
        "token is the first decode token, as on a disaggregated decode instance.",
    )
    coverage_file: Path | None = Field(
        default=None, description="JSON file of expert coverage; no coverage without it."
    )
    coverage_interval_steps: int = Field(
        default=16, ge=1, description="One engine step in so many is counted, steps."
    )
    coverage_export_s: float = Field(
        default=10.0, ge=0, description="Seconds between two writes of the coverage file."
    )
    check_routing: bool = Field(
        default=False, description="Stop the server if a token reaches an expert outside its pool."
    )
    check_model_digest: bool = Field(
        default=True, description="Refuse keep sets that were chosen for another model."
    )
    allow_unknown_version: bool = Field(
        default=False, description="Run on a vLLM version that the plugin was not tested with."
    )

    @model_validator(mode="after")
    def _pools_are_nameable(self) -> "PluginSettings":
        if FULL_POOL in self.pools:
            raise ValueError(f"pool name {FULL_POOL!r} is taken by the pool of all experts")
        if self.default_pool is None and len(self.pools) > 1:
            raise ValueError(f"default_pool must be one of {', '.join(self.pools)}")
        if self.default_pool is not None and self.default_pool not in self.pools:
            raise ValueError(
                f"default_pool={self.default_pool!r} is not a pool: {', '.join(self.pools)}"
            )
        return self

    @property
    def first_pool(self) -> str:
        """The pool of requests that name none."""
        return self.default_pool or next(iter(self.pools))

    @property
    def has_trained(self) -> bool:
        """Whether tensors were trained for any pool."""
        return any(files.trained for files in self.pools.values())


def read_settings(additional_config: object) -> PluginSettings | None:
    """The settings in vLLM's additional configuration, or None if it does not mention us.

    ConfigError names every field that is wrong.
    """
    if not isinstance(additional_config, Mapping) or KEY not in additional_config:
        return None
    section: Any = additional_config[KEY]
    try:
        return PluginSettings.model_validate(section)
    except ValidationError as failure:
        faults = [
            f"{'.'.join(map(str, (KEY, *fault['loc'])))}: {fault['msg']}"
            for fault in failure.errors()
        ]
        raise ConfigError(
            f"--additional-config is not usable: {'; '.join(faults)}. Mend or remove these keys."
        ) from failure
