"""Modules with the teacher's weights and the student's, of which each token uses one.

The teacher's weights are frozen and those of the loaded model: there is no second model. The
student's are float32 and take the model's type where they are used.
Legend: T tokens, E experts, D hidden, H heads, F expert width.
"""

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
        self._rule = rule
        self._top_k = top_k

    def forward(self, hidden: Tensor) -> Any:
        """What the family's router returns, each token by its reader's rows."""
        match self._phases.reader:
            case Reader.TEACHER:
                return self.frozen(hidden)
            case Reader.STUDENT:
                return self._student_output(hidden.reshape(-1, hidden.shape[-1]))
            case Reader.BOTH:
                # The model's own choice among equal logits is what the teacher's cache comes from.
                teacher, rows = self.frozen(hidden), self._phases.student_rows
                student = self._student_output(hidden.reshape(-1, hidden.shape[-1])[rows])
                pairs = zip(teacher, student, strict=True)
                return tuple(theirs.index_copy(0, rows, ours) for theirs, ours in pairs)

    def student_parameters(self) -> dict[str, Tensor]:
        """The student's values under the router's own names, in the router's type."""
        return {
            name: self.trained[name.replace(".", "_")].to(value.dtype)
            for name, value in self.frozen.named_parameters()
        }

    def _student_output(self, hidden_TD: Tensor) -> Any:
        values = self.student_parameters()
        logits_TE = self._family.router_logits(self.frozen, values, hidden_TD)
        masked_TE = masked_router_logits(logits_TE, self.bias_E.to(logits_TE.dtype))
        scale_E = self._family.expert_scale(values)
        gates_TK, ids_TK = top_k_gates(
            masked_TE,
            self._top_k,
            self._rule,
            # float32: the gradient of an index adds up all tokens in the type of what is indexed.
            expert_scale_E=None if scale_E is None else scale_E.float(),
        )
        return self._family.router_output(masked_TE, gates_TK, ids_TK)


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
