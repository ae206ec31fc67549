"""Tiny random models of the supported families, built by their real classes; benchmark data."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
import transformers
from hypothesis import settings

from slimwise.artifacts.manifest import CHECKPOINT_SCHEMA, MANIFEST_NAME, write_manifest
from slimwise.benchmarks.settings import DataSettings
from slimwise.core.moe import GateActivation, GateRule
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run as inspect_backbone
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance
from slimwise.resources import ResourceConfig

# The same examples in every run, however slow the machine.
settings.register_profile("fixed", derandomize=True, deadline=None, database=None)
settings.load_profile("fixed")

NUM_EXPERTS = 16
TOP_K = 4

_SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "float32",
}
_EXPERTS: dict[str, Any] = {
    "num_experts": NUM_EXPERTS,
    "num_experts_per_tok": TOP_K,
    "moe_intermediate_size": 8,
}
_HYBRID: dict[str, Any] = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "shared_expert_intermediate_size": 8,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_interleaved": True,
        "mrope_section": [2, 1, 1],
    },
}
_VISION: dict[str, Any] = {
    "depth": 1,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_heads": 2,
    "out_hidden_size": 32,
    "patch_size": 4,
    "num_position_embeddings": 4,
}
_PARALLEL: dict[str, Any] = {
    "num_experts": NUM_EXPERTS,
    "top_k_experts": TOP_K,
    "moe_intermediate_size": 8,
    "enable_moe_block": True,
    "intermediate_size": 24,
    "global_head_dim": 16,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"],
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": 64,
}
_PARALLEL_VISION: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "patch_size": 4,
    "position_embedding_size": 8,
    "pooling_kernel_size": 1,
}


@dataclass(frozen=True)
class TinyModel:
    """A random model with two MoE layers of 16 experts, top-4, hidden 32, expert width 8."""

    config: Callable[[], Any]
    shared_width: int = 0
    renormalised: bool = True
    per_expert_scale: bool = False
    is_wrapper: bool = False

    @property
    def gate_rule(self) -> GateRule:
        return GateRule(GateActivation.SOFTMAX, self.renormalised, self.per_expert_scale)

    @property
    def auto_class(self) -> Any:
        """The class that loads the whole model, towers included."""
        wrapper, text = transformers.AutoModelForImageTextToText, transformers.AutoModelForCausalLM
        return wrapper if self.is_wrapper else text


def _hybrid_wrapper() -> Any:
    text = {**_SIZES, **_EXPERTS, **_HYBRID, "mtp_num_hidden_layers": 1}
    return transformers.Qwen3_5MoeConfig(text_config=text, vision_config=_VISION, dtype="float32")


def _parallel_wrapper() -> Any:
    return transformers.Gemma4Config(
        text_config={**_SIZES, **_PARALLEL},
        vision_config=_PARALLEL_VISION,
        audio_config=None,
        tie_word_embeddings=False,
        dtype="float32",
    )


TINY_MODELS: Mapping[str, TinyModel] = MappingProxyType(
    {
        "hybrid": TinyModel(
            lambda: transformers.Qwen3_5MoeTextConfig(**_SIZES, **_EXPERTS, **_HYBRID), 8
        ),
        "wrapper": TinyModel(_hybrid_wrapper, 8, is_wrapper=True),
        "renormalised": TinyModel(
            lambda: transformers.Qwen3MoeConfig(**_SIZES, **_EXPERTS, norm_topk_prob=True)
        ),
        "plain": TinyModel(
            lambda: transformers.Qwen3MoeConfig(**_SIZES, **_EXPERTS), renormalised=False
        ),
        "shared": TinyModel(
            lambda: transformers.Qwen2MoeConfig(
                **_SIZES, **_EXPERTS, shared_expert_intermediate_size=12
            ),
            12,
            renormalised=False,
        ),
        "parallel": TinyModel(
            lambda: transformers.Gemma4TextConfig(**_SIZES, **_PARALLEL), 24, per_expert_scale=True
        ),
        "parallel_wrapper": TinyModel(
            _parallel_wrapper, 24, per_expert_scale=True, is_wrapper=True
        ),
        "mixtral": TinyModel(
            lambda: transformers.MixtralConfig(
                **_SIZES, num_local_experts=16, num_experts_per_tok=4, intermediate_size=8
            )
        ),
        "olmoe": TinyModel(
            lambda: transformers.OlmoeConfig(
                **_SIZES, num_experts=16, num_experts_per_tok=4, intermediate_size=8
            ),
            renormalised=False,
        ),
    }
)
"""One entry proves a family: every test that takes `kind` runs on it."""


@pytest.fixture(params=list(TINY_MODELS))
def kind(request) -> str:
    """Each of TINY_MODELS, in tests that name none themselves."""
    return request.param


@pytest.fixture
def tiny_facts(kind) -> TinyModel:
    """What is known of the model beforehand."""
    return TINY_MODELS[kind]


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[str], Any]:
    """A function from one of TINY_MODELS to a float32 model whose routers differ from another."""

    def build(kind: str) -> Any:
        torch.manual_seed(0)
        model = TINY_MODELS[kind].auto_class.from_config(TINY_MODELS[kind].config())
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
            elif name.endswith("per_expert_scale"):
                torch.nn.init.uniform_(parameter, 0.5, 1.5)
        return model.float().eval()

    return build


@pytest.fixture(scope="session")
def tiny_decoder(tiny_model) -> Callable[[str], Any]:
    """A function to the same models without LM head and towers."""

    def build(kind: str) -> Any:
        base = tiny_model(kind).base_model
        return getattr(base, "language_model", base)

    return build


@pytest.fixture
def tiny_checkpoint(tmp_path, tiny_model) -> Callable[..., Path]:
    """A function that saves a tiny model with its experts fused, or split as transformers does."""

    def save(kind: str, *, fused: bool = False) -> Path:
        folder = tmp_path / f"{kind}-{'fused' if fused else 'split'}"
        tiny_model(kind).save_pretrained(folder, save_original_format=not fused)
        (folder / "tokenizer.json").write_text("{}")
        return folder

    return save


@pytest.fixture
def inspected(tmp_path) -> Callable[[Path], Path]:
    """A function from a checkpoint's folder to the file of its backbone record."""

    def inspect(folder: Path) -> Path:
        out = tmp_path / f"{folder.name}.json"
        inspect_backbone(BackboneConfig(model=str(folder), name=folder.name), out=out)
        return out

    return inspect


@pytest.fixture
def exported(tmp_path) -> Path:
    """The manifest of a checkpoint that holds all of the miniature."""
    folder = tmp_path / "exported"
    shutil.copytree(EMBEDDED_CHECKPOINT, folder, ignore=shutil.ignore_patterns(MANIFEST_NAME))
    write_manifest(folder, CHECKPOINT_SCHEMA, Provenance("", "", "", {}, ""))
    return folder / MANIFEST_NAME


@pytest.fixture
def changed(exported) -> Path:
    """The same, with one bit of its weights flipped since."""
    weights = exported.parent / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return exported


@pytest.fixture
def starts() -> Mapping[str, Callable[[Sequence[str]], None]]:
    """Ways to run a command: as one process, as two of a host, as one on each of two hosts."""
    # On CPU: processes that are told of their GPUs would refuse to start without them.
    _, processes = ResourceConfig(gpus=2).launcher(1).split(maxsplit=1)
    return {
        "alone": partial(_start, [""]),
        "processes": partial(_start, [processes]),
        "hosts": _on_two_hosts,
    }


def _on_two_hosts(command: Sequence[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _start([ResourceConfig(hosts=2, rendezvous=f"127.0.0.1:{port}").launcher(1)] * 2, command)


def _start(launchers: Sequence[str], command: Sequence[str]) -> None:
    """The command behind each launcher of the stages, all at once."""
    folder = Path(sys.executable).parent
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PATH": f"{folder}:{os.environ['PATH']}"}
    words = ([*launcher.removesuffix("slimwise").split(), *command] for launcher in launchers)
    running = [subprocess.Popen(each, env=environment) for each in words]
    assert {process.wait() for process in running} == {0}


@pytest.fixture(scope="session")
def data() -> DataSettings:
    """Published benchmark data, if SLIMWISE_DATA names their folder or a checkout is beside it."""
    beside = next(Path(__file__).parents[3].glob("*/data/gsm8k"), Path("absent")).parent
    folder = Path(os.environ.get("SLIMWISE_DATA", beside))
    if not (folder / "gsm8k").is_dir():
        pytest.skip("needs the benchmarks' data")
    return DataSettings(folder)
