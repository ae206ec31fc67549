"""What a server of a disaggregated deployment has beyond a plain one: NIXL, and safe settings."""

import importlib.util
import json
from pathlib import Path

from slimwise.core.vocabulary import Phase
from slimwise.engine.command import Device, ServerCommand
from slimwise.engine.config import DisaggregationConfig
from slimwise.errors import EngineError

CHECKPOINT_NAME = Path("checkpoint")
"""NIXL refuses to connect servers of models at different paths. Each server runs in a folder of its
own, where this name leads to its model, so that all other checks of NIXL stay on."""

_CPU_TRANSPORTS = "tcp,shm,self"
_SETTINGS = {
    "kv_connector": "NixlConnector",
    "kv_role": "kv_both",
    # Otherwise a decode server would compute the prompt of a failed transfer itself.
    "kv_load_failure_policy": "fail",
}


def with_kv_transfer(
    command: ServerCommand,
    layout: DisaggregationConfig,
    phase: Phase,
    *,
    side_channel_port: int,
    device: Device,
) -> ServerCommand:
    """The command of the server of that phase; EngineError if nixl is not installed.

    On the side channel, other servers ask how to reach this one's memory.
    """
    if importlib.util.find_spec("nixl") is None:
        raise EngineError(
            "nixl is not installed, which a disaggregated deployment needs. Install the packages "
            "of envs/cpu.lock.txt or envs/gpu.lock.txt."
        )
    environment = {
        "VLLM_NIXL_SIDE_CHANNEL_HOST": layout.kv_host,
        "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_channel_port),
        "HF_HUB_OFFLINE": "1",
    }
    transports = layout.ucx_transports
    if device is Device.CPU:
        # UCX must not look for devices that the host lacks.
        transports = transports or _CPU_TRANSPORTS
    else:
        # NIXL carries the convolution state of recurrent layers in this layout only.
        environment["VLLM_SSM_CONV_STATE_LAYOUT"] = "DS"
    if transports is not None:
        environment["UCX_TLS"] = transports
    return command.with_environment(environment).with_arguments(
        *(layout.prefill_args if phase is Phase.PREFILL else layout.decode_args),
        # A decode server must not reuse KV of its own: the decoder wrote it.
        *(("--no-enable-prefix-caching",) if phase is Phase.DECODE else ()),
        *("--kv-transfer-config", json.dumps(_SETTINGS)),
    )
