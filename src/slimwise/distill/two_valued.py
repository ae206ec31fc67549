"""Modules with the teacher's weights and the student's, of which each token uses one.

The teacher's weights are frozen and those of the loaded model: there is no second model. The
student's are float32 and take the model's type where they are used.
Legend: T tokens, E experts, D hidden, H heads, F expert width.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from slimwise.backbones.trainable import TrainableFamily
from slimwise.core.masking import masked_router_logits, top_k_gates
from slimwise.core.moe import GateRule
from slimwise.core.shared_expert import SharedExpertWeights
from slimwise.distill.phases import Phases, Reader


class TwoValuedNorm(nn.Module):
    """A norm over the last dimension whose scale depends on the token."""

    def __init__(self, frozen: nn.Module, phases: Phases) -> None:
        super().__init__()
        self.frozen = frozen
        self.trained = _copied(_weight(frozen))
        self._phases = phases

    def forward(self, hidden: Tensor, *gate: Tensor) -> Tensor:
        """The norm of each token by its reader's weight, of hidden's shape."""
        frozen_D = _weight(self.frozen)
        match self._phases.reader:
            case Reader.TEACHER:
                return self.frozen(hidden, *gate)
            case Reader.STUDENT:
                return self._scaled(self.trained.to(frozen_D.dtype), hidden, *gate)
            case Reader.BOTH:
                return self._scaled_by_token(frozen_D, hidden, *gate)

    def _scaled_by_token(self, frozen_D: Tensor, hidden: Tensor, *gate: Tensor) -> Tensor:
        is_student_T1 = self._phases.is_student_T1
        scale_TD = torch.where(is_student_T1, self.trained.to(frozen_D.dtype), frozen_D)
        # Norms of heads see [B, S, H, D] or [B * S * H, D]: a token's heads are neighbours.
        by_token = (len(scale_TD), -1, hidden.shape[-1])
        inputs = [tensor.reshape(by_token) for tensor in (hidden, *gate)]
        return self._scaled(scale_TD.unsqueeze(1), *inputs).reshape(hidden.shape)

    def _scaled(self, weight: Tensor, *inputs: Tensor) -> Tensor:
        return functional_call(self.frozen, {"weight": weight}, inputs)


class TwoValuedRouter(nn.Module):
    """A router that sends the student's tokens to kept experts, by parameters of its own."""

    bias_E: Tensor

    def __init__(
        self,
        frozen: nn.Module,
        phases: Phases,
        *,
        family: TrainableFamily,
        rule: GateRule,
        bias_E: Tensor,
        top_k: int,
    ) -> None:
        super().__init__()
        self.frozen = frozen
        self.trained = nn.ParameterDict(
            {name.replace(".", "_"): _copied(value) for name, value in frozen.named_parameters()}
        )
        self.register_buffer("bias_E", bias_E, persistent=False)
        self._phases = phases
        self._family = family
        self._rule = replace(rule, per_expert_scale=False)
        self._top_k = top_k

    def forward(self, hidden: Tensor) -> Any:
        """What the family's router returns, each token by its reader's rows."""
        if self._phases.reader is Reader.TEACHER:
            return self.frozen(hidden)
        logits_TE = self._logits(hidden.reshape(-1, hidden.shape[-1]))
        gates_TK, ids_TK = top_k_gates(logits_TE, self._top_k, self._rule)
        gates_TK = self._scaled(gates_TK, ids_TK)
        return self._family.router_output(logits_TE, gates_TK, ids_TK)

    def student_parameters(self) -> dict[str, Tensor]:
        """The student's values under the router's own names, in the router's type."""
        return {
            name: self.trained[name.replace(".", "_")].to(value.dtype)
            for name, value in self.frozen.named_parameters()
        }

    def _logits(self, hidden_TD: Tensor) -> Tensor:
        if self._phases.reader is Reader.STUDENT:
            return self._student_logits(hidden_TD)
        rows = self._phases.student_rows
        frozen = dict(self.frozen.named_parameters())
        frozen_TE = self._family.router_logits(self.frozen, frozen, hidden_TD)
        return frozen_TE.index_copy(0, rows, self._student_logits(hidden_TD[rows]))

    def _student_logits(self, hidden_TD: Tensor) -> Tensor:
        values = self.student_parameters()
        logits_TE = self._family.router_logits(self.frozen, values, hidden_TD)
        return masked_router_logits(logits_TE, self.bias_E.to(logits_TE.dtype))

    def _scaled(self, gates_TK: Tensor, ids_TK: Tensor) -> Tensor:
        scale_E = self._family.expert_scale(self.student_parameters())
        frozen_E = self._family.expert_scale(dict(self.frozen.named_parameters()))
        if scale_E is None or frozen_E is None:
            return gates_TK
        # float32: the gradient of an index adds up all tokens in the type of what is indexed.
        scale_TK = scale_E.float()[ids_TK]
        if self._phases.reader is Reader.BOTH:
            scale_TK = torch.where(self._phases.is_student_T1, scale_TK, frozen_E[ids_TK])
        return gates_TK * scale_TK


class TwoValuedSharedExpert(nn.Module):
    """A frozen shared expert (SE1) and a trained one (SE2) that is added for student's tokens."""

    def __init__(self, frozen: nn.Module, phases: Phases, correction: SharedExpertWeights) -> None:
        super().__init__()
        self.frozen = frozen
        self.gate_FD = nn.Parameter(correction.gate_FD)
        self.up_FD = nn.Parameter(correction.up_FD)
        self.down_DF = nn.Parameter(correction.down_DF)
        self._phases = phases

    def forward(self, hidden: Tensor) -> Tensor:
        """The shared expert's output, with the second one's where the student reads."""
        shared = self.frozen(hidden)
        match self._phases.reader:
            case Reader.TEACHER:
                return shared
            case Reader.STUDENT:
                return shared + self._correction(hidden)
            case Reader.BOTH:
                rows = self._phases.student_rows
                flat_TD = shared.reshape(-1, shared.shape[-1])
                added_TD = self._correction(hidden.reshape(-1, hidden.shape[-1])[rows])
                return flat_TD.index_add(0, rows, added_TD).reshape(shared.shape)

    def _correction(self, hidden: Tensor) -> Tensor:
        weights = {
            "gate_proj.weight": self.gate_FD,
            "up_proj.weight": self.up_FD,
            "down_proj.weight": self.down_DF,
        }
        typed = {name: weight.to(hidden.dtype) for name, weight in weights.items()}
        return functional_call(self.frozen, typed, (hidden,))


def _copied(frozen: Tensor) -> nn.Parameter:
    # A copy even of float32 weights: the teacher's must not move with it.
    return nn.Parameter(frozen.detach().to(torch.float32, copy=True))


def _weight(norm: nn.Module) -> Tensor:
    return norm.get_parameter("weight")
