"""How many distinct experts a step reads in each layer, and how often each one is chosen.

Counted on the device, one step in coverage_interval_steps; the host only adds up.

Legend: L MoE layers, E experts, H phases and padding, B batch (tokens of one phase in a step).
"""

import json
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from slimwise.artifacts.atomic import atomic_file
from slimwise_vllm.settings import PluginSettings
from slimwise_vllm.token_pools import PADDING, PHASES

SCHEMA = "slimwise.coverage/1"


def batch_bucket(num_tokens: int, exact_up_to: int) -> int:
    """The batch that a step is filed under: itself, or the next power of two if it is large."""
    return num_tokens if num_tokens <= exact_up_to else 1 << (num_tokens - 1).bit_length()


class Coverage:
    """Counters of one worker. counts_HLE is added to by slimwise::count_experts."""

    def __init__(
        self, settings: PluginSettings, shape: tuple[int, int, int], device: torch.device
    ) -> None:
        assert settings.coverage_file is not None
        self._path = settings.coverage_file
        num_layers, num_experts, self._top_k = shape
        self.counts_HLE = torch.zeros(
            PADDING + 1, num_layers, num_experts, dtype=torch.int32, device=device
        )
        self._tokens_HLE = self.counts_HLE.long()
        self._distinct: dict[tuple[int, int], Tensor] = {}
        self._num_steps: dict[tuple[int, int], int] = {}
        self._settings = settings
        self._step = 0
        self._measured: Sequence[int] | None = None
        # At once: counts of an earlier server are not this one's, and a bad path is found.
        self.export()

    def begin_step(self, num_tokens: Sequence[int], exact_up_to: int) -> None:
        """File the step before, if it was measured, and say how large this one is, by phase."""
        self.end_step()
        if self._step % self._settings.coverage_interval_steps == 0:
            self.counts_HLE.zero_()
            self._measured = [batch_bucket(int(count), exact_up_to) for count in num_tokens]
        self._step += 1

    def end_step(self) -> None:
        """File the measured step; harmless to call twice."""
        if self._measured is None:
            return
        distinct_HL = (self.counts_HLE > 0).sum(-1)
        for phase, batch in enumerate(self._measured):
            if batch:
                key = phase, batch
                self._distinct[key] = self._distinct.get(key, 0) + distinct_HL[phase]
                self._num_steps[key] = self._num_steps.get(key, 0) + 1
        self._tokens_HLE += self.counts_HLE
        self._measured = None
        if time.monotonic() - self._exported_at >= self._settings.coverage_export_s:
            self.export()

    def report(self) -> dict[str, Any]:
        """The counters as JSON values; rows are ordered by phase and batch."""
        self.end_step()
        num_experts = self.counts_HLE.shape[2]
        return {
            "schema": SCHEMA,
            "num_experts": num_experts,
            "top_k": self._top_k,
            "steps": [self._row(*key) for key in sorted(self._distinct)],
            "tokens": {phase: self._tokens_HLE[code].tolist() for code, phase in enumerate(PHASES)},
        }

    def _row(self, phase: int, batch: int) -> dict[str, Any]:
        steps = self._num_steps[phase, batch]
        distinct_L = self._distinct[phase, batch] / steps
        return {
            "phase": PHASES[phase],
            "batch": batch,
            "num_steps": steps,
            "distinct_experts_by_layer": distinct_L.tolist(),
            "pool_share": distinct_L.mean().item() / self.counts_HLE.shape[2],
        }

    def export(self) -> None:
        """Write the coverage file, whole or not at all; ArtifactError if it cannot be written."""
        self._exported_at = time.monotonic()
        # In the middle of a step, which must not wait for the disk.
        with atomic_file(self._path, is_durable=False) as temporary:
            temporary.write_text(json.dumps(self.report()), "utf-8")
