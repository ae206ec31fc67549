"""The student's weights under the names of a checkpoint: what an exported decoder overwrites.

Legend: E experts, D hidden, F expert width.
"""

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor

from slimwise.core.shared_expert import SharedExpertWeights, concatenated
from slimwise.distill.student import Student, shared_expert_weights
from slimwise.errors import BackboneError

_PREFIX = "model."
_CHECKPOINT_PREFIXES = ("model.", "model.language_model.", "language_model.model.", "")


def merged_tensors(student: Student) -> dict[str, Tensor]:
    """All router rows, norms, and shared experts of twice the width, by name in the model.

    In the type of the frozen weights. SlimWise, What, item 3.
    """
    return dict(_merged(student))


def _merged(student: Student) -> Iterator[tuple[str, Tensor]]:
    model = student.model
    for name in student.modules.routers:
        for parameter, value in model.get_submodule(name).student_parameters().items():
            yield f"{name}.{parameter}", value.detach()
    for name in student.modules.norms:
        norm = model.get_submodule(name)
        yield f"{name}.weight", _typed(norm.trained, norm.frozen.weight)
    for name in student.modules.shared_experts:
        expert = model.get_submodule(name)
        first = shared_expert_weights(expert.frozen)
        second = SharedExpertWeights(
            _typed(expert.gate_FD, first.gate_FD),
            _typed(expert.up_FD, first.up_FD),
            _typed(expert.down_DF, first.down_DF),
        )
        merged = concatenated(first, second)
        yield f"{name}.gate_proj.weight", merged.gate_FD
        yield f"{name}.up_proj.weight", merged.up_FD
        yield f"{name}.down_proj.weight", merged.down_DF


def checkpoint_names(names: Iterable[str], stored: Iterable[str]) -> Mapping[str, str]:
    """The stored name of each of the model's names; a wrapper's checkpoint has longer ones.

    BackboneError names a tensor that the checkpoint does not store.
    """
    known = set(stored)
    return {name: _stored_name(name.removeprefix(_PREFIX), known) for name in names}


def _stored_name(name: str, known: set[str]) -> str:
    for prefix in _CHECKPOINT_PREFIXES:
        if f"{prefix}{name}" in known:
            return f"{prefix}{name}"
    raise BackboneError(
        f"the checkpoint stores no tensor {name}, which distillation trains. Fetch it again."
    )


def _typed(trained: Tensor, frozen: Tensor) -> Tensor:
    return trained.detach().to(frozen.dtype)


def on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous copies in host memory, as they are saved."""
    return {name: tensor.to(torch.device("cpu")).contiguous() for name, tensor in tensors.items()}
