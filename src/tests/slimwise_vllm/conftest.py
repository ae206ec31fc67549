"""Tiny models on disk, pruned and distilled, and engines of them.

Engines run in the test's own process, and no two tests of a module start the same one.
"""

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import KeepSetRecord, read_keep_set, write_keep_set
from slimwise.artifacts.trained_record import TrainedRecord, write_trained_record
from slimwise.artifacts.trained_tensors import write_trained_tensors
from slimwise.artifacts.weight_files import read_weights
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.distill.merge import checkpoint_names, merged_tensors, on_cpu
from slimwise.distill.student import Student, make_student
from slimwise.export.config import ExportConfig
from slimwise.export.run import run as export_decoder
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run as inspect_backbone
from slimwise.provenance import Provenance

from .tiny_models import KEPT, NUM_EXPERTS, SMALL, TOP_K, sliced, tiny_moe


def export(folder: Path, keep_set: Path, out: Path, trained: Path | None = None) -> None:
    manifest = trained / "manifest.json" if trained else None
    export_decoder(
        ExportConfig(),
        backbone=folder.with_suffix(".json"),
        keep_set=keep_set,
        trained=manifest,
        out=out,
    )


def moved_student(folder: Path, keep_set: Path, seed: int) -> Student:
    """A student whose trained weights are all another than its teacher's, as if distilled."""
    record = read_backbone_record(folder.with_suffix(".json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
    student = make_student(model, read_keep_set(keep_set).keep_set, record.gate_rule, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in student.trained().values():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
    return student


def save_trained(student: Student, folder: Path, keep_set: Path, out: Path) -> Path:
    """What stage distill-decoder writes of such a student."""
    tensors, chosen = merged_tensors(student), read_keep_set(keep_set)
    names = checkpoint_names(tensors, read_weights(folder))
    out.mkdir()
    write_trained_tensors(out, on_cpu({names[name]: tensors[name] for name in tensors}))
    record = TrainedRecord(
        decoder="tiny",
        rule=Distillation.UNIFORM,
        seed=0,
        backbone_digest=chosen.backbone_digest,
        keep_set_digest=chosen.keep_set.digest,
        recipe={},
    )
    write_trained_record(out, record, Provenance("", "", "", {}, ""))
    return out


@dataclass(frozen=True)
class TinyBackbone:
    """A saved model, its keep-set files, and the folder of the model pruned to the first."""

    family: str
    folder: Path
    pruned_folder: Path
    keep_set: Path
    small_keep_set: Path

    @property
    def dtype(self) -> str:
        return "bfloat16" if self.family == "qwen3_5_moe" else "float32"

    def additional_config(self, **settings: Any) -> dict[str, Any]:
        pools = {"half": str(self.keep_set), "small": str(self.small_keep_set)}
        return {"slimwise": {"pools": pools, "default_pool": "half", **settings}}


def save_keep_set(path: Path, model: Path, kept: Sequence[Sequence[int]] = KEPT) -> Path:
    keep_set = KeepSet(tuple(map(tuple, kept)), NUM_EXPERTS, TOP_K)
    model_type = transformers.AutoConfig.from_pretrained(model).model_type
    record = KeepSetRecord(keep_set, Criterion.REAP, checkpoint_digest(model), model_type)
    write_keep_set(path, record, Provenance("", "", "", {}, ""))
    return path


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory) -> Callable[[str], TinyBackbone]:
    """A function from a family to its saved tiny models; each is made once."""
    made: dict[str, TinyBackbone] = {}

    def make(family: str) -> TinyBackbone:
        if family not in made:
            root = tmp_path_factory.mktemp(family)
            folder, pruned_folder = root / "full", root / "pruned"
            tiny_moe(family).save_pretrained(folder)
            (folder / "tokenizer.json").write_text("{}")
            record = folder.with_suffix(".json")
            inspect_backbone(BackboneConfig(model=str(folder), name="tiny"), out=record)
            half = save_keep_set(root / "half.json", folder)
            small = save_keep_set(root / "small.json", folder, SMALL)
            export(folder, half, pruned_folder)
            made[family] = TinyBackbone(family, folder, pruned_folder, half, small)
        return made[family]

    return make


@dataclass(frozen=True)
class DistilledBackbone:
    """A tiny backbone with two distilled decoders: of its first keep set, and of the small one.

    The first is exported too, and kept as the student that it was.
    """

    backbone: TinyBackbone
    student: Student
    trained: Path
    trained_small: Path
    merged_folder: Path

    def additional_config(self, **settings: Any) -> dict[str, Any]:
        """Pools half and small as before, kd and kd_small distilled."""
        half, small = str(self.backbone.keep_set), str(self.backbone.small_keep_set)
        pools = {
            "half": half,
            "kd": {"keep_set": half, "trained": str(self.trained)},
            "small": small,
            "kd_small": {"keep_set": small, "trained": str(self.trained_small)},
        }
        return {"slimwise": {"pools": pools, "default_pool": "kd", **settings}}


@pytest.fixture(scope="session")
def distilled_backbone(tiny_backbone, tmp_path_factory) -> Callable[[str], DistilledBackbone]:
    """A function from a family to its distilled decoders; each is made once."""
    made: dict[str, DistilledBackbone] = {}

    def make(family: str) -> DistilledBackbone:
        if family not in made:
            tiny, root = tiny_backbone(family), tmp_path_factory.mktemp(f"{family}_distilled")
            student = moved_student(tiny.folder, tiny.keep_set, seed=1)
            trained = save_trained(student, tiny.folder, tiny.keep_set, root / "kd")
            other = moved_student(tiny.folder, tiny.small_keep_set, seed=2)
            small = save_trained(other, tiny.folder, tiny.small_keep_set, root / "kd_small")
            export(tiny.folder, tiny.keep_set, root / "merged", trained)
            made[family] = DistilledBackbone(tiny, student, trained, small, root / "merged")
        return made[family]

    return make


@pytest.fixture(scope="session", autouse=True)
def _quiet_engine():
    os.environ.update(
        VLLM_ENABLE_V1_MULTIPROCESSING="0",
        VLLM_CPU_OMP_THREADS_BIND="nobind",
        VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL="WARNING",
        HF_HUB_OFFLINE="1",
        TORCHDYNAMO_DISABLE="1",
    )
    # Tiny models; where cores are shared, threads that wait by spinning cost far more.
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def start_engine(_quiet_engine) -> Any:
    """A function that starts an engine of a folder; all end with the module."""
    engines = []

    def start(folder: Path, **options: Any) -> Any:
        import vllm

        settings: dict[str, Any] = {
            "model": str(folder),
            "skip_tokenizer_init": True,
            "enforce_eager": True,
            "max_model_len": 256,
            "max_num_seqs": 16,
            "kv_cache_memory_bytes": 1 << 26,
            "enable_prefix_caching": False,
            "disable_log_stats": True,
        }
        engine = vllm.LLM(**(settings | options))
        engines.append(engine)
        return engine

    yield start
    engines.clear()
    gc.collect()


@dataclass(frozen=True)
class Turn:
    """An answer with what is needed to compare it to another engine's."""

    prompt: list[int]
    prompt_logprobs: list[float]
    answer: list[int]
    logprobs: list[float]
    num_cached_tokens: int


def _turn(output: Any, answer: Any) -> Turn:
    prompt = list(output.prompt_token_ids)
    scored = zip(prompt[1:], (output.prompt_logprobs or [])[1:], strict=False)
    return Turn(
        prompt,
        [entry[token].logprob for token, entry in scored],
        list(answer.token_ids),
        [e[t].logprob for t, e in zip(answer.token_ids, answer.logprobs, strict=True)],
        output.num_cached_tokens or 0,
    )


@pytest.fixture(scope="session")
def sampling() -> Callable[..., Any]:
    """A function from serving arguments to greedy, scored sampling parameters."""

    def parameters(
        num_tokens: int = 12, *, prompt_logprobs: int | None = None, n: int = 1, **arguments: str
    ) -> Any:
        import vllm

        return vllm.SamplingParams(
            temperature=1.0 if n > 1 else 0.0,
            n=n,
            seed=0 if n > 1 else None,
            max_tokens=num_tokens,
            logprobs=0,
            prompt_logprobs=prompt_logprobs,
            detokenize=False,
            ignore_eos=True,
            extra_args={f"slimwise_{name}": value for name, value in arguments.items()},
        )

    return parameters


@pytest.fixture(scope="session")
def ask() -> Callable[..., list[Turn]]:
    """A function that puts prompts to an engine, all at once; n > 1 gives n turns a prompt."""

    def turns(engine: Any, prompts: Sequence[Sequence[int]], parameters: Any) -> list[Turn]:
        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        outputs = engine.generate(inputs, parameters, use_tqdm=False)
        return [_turn(output, answer) for output in outputs for answer in output.outputs]

    return turns


@pytest.fixture(scope="session")
def prompts() -> list[list[int]]:
    """Five prompts of different lengths."""
    generator = torch.Generator().manual_seed(1)
    lengths = (1, 2, 17, 24, 40)
    return [torch.randint(3, 256, (n,), generator=generator).tolist() for n in lengths]


@pytest.fixture(scope="session")
def reference() -> Callable[..., tuple[list[int], list[float]]]:
    """A function that scores a turn by transformers alone.

    It gives the greedy choice and the answer's log-probability at every position, with one model
    on [0, N-1) and another from the last prompt token on.
    """

    def scored(prefill: Any, decode: Any, turn: Turn) -> tuple[list[int], list[float]]:
        cache = transformers.DynamicCache(config=prefill.config)
        ids = torch.tensor([turn.prompt + turn.answer[:-1]])
        boundary = len(turn.prompt) - 1
        with torch.inference_mode():
            if boundary:
                prefill(input_ids=ids[:, :boundary], past_key_values=cache, use_cache=True)
            logits = decode(
                input_ids=ids[:, boundary:],
                past_key_values=cache,
                position_ids=torch.arange(boundary, ids.shape[1])[None],
                use_cache=True,
            ).logits[0]
        logprobs = logits.float().log_softmax(-1)
        answered = logprobs[range(len(turn.answer)), turn.answer]
        return logprobs.argmax(-1).tolist(), answered.tolist()

    return scored


@pytest.fixture(scope="session")
def hf_models(tiny_backbone) -> Callable[[str], tuple[Any, Any]]:
    """A function from a family to its full and its pruned model in transformers."""

    def load(family: str) -> tuple[Any, Any]:
        folder = tiny_backbone(family).folder
        full = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto").eval()
        return full, sliced(full, KEPT)

    return load


@pytest.fixture(scope="session")
def greedy_reference() -> Callable[..., list[int]]:
    """A function to the greedy answer of transformers alone, token by token.

    One model computes the prompt but its last token, another the rest.
    """

    def answered(prefill: Any, decode: Any, prompt: Sequence[int], num_tokens: int) -> list[int]:
        cache = transformers.DynamicCache(config=prefill.config)
        answer: list[int] = []
        with torch.inference_mode():
            if prompt[:-1]:
                prefill(torch.tensor([prompt[:-1]]), past_key_values=cache, use_cache=True)
            for position in range(len(prompt) - 1, len(prompt) - 1 + num_tokens):
                logits = decode(
                    torch.tensor([[*prompt, *answer][position:]]),
                    past_key_values=cache,
                    position_ids=torch.tensor([[position]]),
                    use_cache=True,
                ).logits
                answer.append(int(logits[0, -1].argmax()))
        return answer

    return answered
