"""Stage measure-coverage: how many experts a decode step reads, under the model's own routing.

The full decoder's greedy answers are read once more by the model, and the experts of each decoded
token noted. A step of B sequences is one token of each of B answers: a running answer is met at any
of its tokens alike, a long one as much more often. No server can hold its batch still for as long.

Legend: N decoded tokens, L MoE layers, E experts, K top-k, B batch, S positions.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.samples import read_samples
from slimwise.artifacts.tables import PROVENANCE_COLUMNS, write_table
from slimwise.backbones.base import Backbone
from slimwise.backbones.loading import language_decoder, load_causal_model
from slimwise.backbones.registry import backbone_for
from slimwise.core.traffic import expected_distinct_experts
from slimwise.core.vocabulary import Decoding, Phase, ServingMode
from slimwise.errors import ConfigError
from slimwise.generate.chat_prompt import answer_tokens
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.coverage.config import CoverageConfig
from slimwise.generate.questions import ServerTraits, questions
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)

_ROUTING = "real"
_DIGITS = 6
_PASS_ANSWERS = 32
_NO_CALLS = "[]"
_NOTE = (
    "Share of the experts that a decode step reads, mean over layers and over steps drawn from the "
    "full decoder's greedy answers. Uniform is m (1 - (1 - k/m)^B) / m."
)


def run(
    config: CoverageConfig,
    *,
    evaluation: EvaluationConfig,
    backbone: Path,
    samples: Path,
    out: Path,
) -> None:
    """Write the table of coverage at each batch.

    backbone is the backbone's record, samples the full decoder's. ConfigError if there are fewer
    answers than sequences in the largest batch, or if their server took them apart.
    """
    record = read_backbone_record(backbone)
    answers = _answers(evaluation, record.model, read_samples(samples))
    if len(answers) < max(config.batches):
        raise ConfigError(
            f"coverage.batches names {max(config.batches)}, more than the full decoder's "
            f"{len(answers)} greedy answers. Ask more items, or name smaller batches."
        )
    chosen_NLK, lengths = _routed_experts(record, answers)
    generator = np.random.default_rng(config.seed)
    rows = [
        _row(record, batch, distinct_experts(chosen_NLK, lengths, batch, config, generator))
        for batch in config.batches
    ]
    frame = pd.DataFrame(rows).assign(num_steps=config.num_steps)
    origin = current_provenance()
    frame = frame.assign(**{name: getattr(origin, name) for name in PROVENANCE_COLUMNS})
    table = frame[[*COVERAGE_COLUMNS, *PROVENANCE_COLUMNS]]
    write_table(out, table, COVERAGE_COLUMNS, digits=_DIGITS, note=_NOTE)
    logger.info("counted the experts of %d decoded tokens", len(chosen_NLK))


def distinct_experts(
    chosen_NLK: np.ndarray,
    lengths: Sequence[int],
    batch: int,
    config: CoverageConfig,
    generator: np.random.Generator,
) -> float:
    """Mean over drawn steps and layers of the distinct experts that batch tokens choose.

    lengths are the decoded tokens of each answer, in the order of the rows of chosen_NLK.
    """
    starts = np.cumsum([0, *lengths[:-1]])
    sizes = np.asarray(lengths)
    counts = []
    for _ in range(config.num_steps):
        picked = generator.choice(len(sizes), batch, replace=False, p=sizes / sizes.sum())
        tokens = starts[picked] + generator.integers(sizes[picked])
        chosen_LX = np.sort(np.moveaxis(chosen_NLK[tokens], 1, 0).reshape(chosen_NLK.shape[1], -1))
        counts.append(1 + (np.diff(chosen_LX, axis=1) > 0).sum(axis=1).mean())
    return float(np.mean(counts))


def _row(record: BackboneRecord, batch: int, distinct: float) -> dict[str, Any]:
    num_experts, top_k = record.shape.num_experts, record.shape.top_k
    expected = expected_distinct_experts(num_experts, top_k, batch)
    return {
        "backbone": record.name,
        "batch": batch,
        "pool_share_measured": distinct / num_experts,
        "pool_share_uniform": expected / num_experts,
        "phase": str(Phase.DECODE),
        "routing": _ROUTING,
        "num_kept": num_experts,
        "top_k": top_k,
        "distinct_experts": distinct,
    }


def _answers(
    evaluation: EvaluationConfig, model: Path, samples: pd.DataFrame
) -> list[tuple[list[int], list[int]]]:
    """Tokens of prompt and answer of each greedy answer that has a decoded token.

    ConfigError if the server took answers apart: their tokens can be had from whole texts only.
    """
    greedy = samples[samples["decoding"] == Decoding.GREEDY]
    apart = (greedy["reasoning"] != "") | (greedy["tool_calls"] != _NO_CALLS)
    if apart.any():
        raise ConfigError(
            f"{apart.sum()} of {len(greedy)} greedy answers lack the thought or the calls that the "
            "server's parsers took out of them, so that their tokens are unknown. Leave "
            "coverage.batches empty; a server that runs tells its own coverage."
        )
    asked = questions(
        evaluation, (ServingMode.FULL,), ServerTraits(by_pool=False, parses_calls=False)
    )
    requests = {question.key[1:4]: question.request for question in asked}
    keys = zip(greedy["benchmark"], greedy["item_id"], greedy["decoding"], strict=True)
    turns = [(requests[key], text) for key, text in zip(keys, greedy["content"], strict=True)]
    return [pair for pair in answer_tokens(turns, model) if pair[1]]


def _routed_experts(
    record: BackboneRecord, answers: Sequence[tuple[list[int], list[int]]]
) -> tuple[np.ndarray, list[int]]:
    """Experts of each decoded token, [N, L, K], and the decoded tokens of each answer.

    The first decoded token is the last of the prompt, and the answer's last token is never read.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = language_decoder(load_causal_model(record.model, record.dtype, [device]))
    family = backbone_for(record.model_type)
    chosen = list(_passes(model, family, record.shape.top_k, answers))
    return np.concatenate(chosen), [len(each) for each in chosen]


def _passes(
    model: Any, family: Backbone, top_k: int, answers: Sequence[tuple[list[int], list[int]]]
) -> Iterator[np.ndarray]:
    """Experts of each answer's decoded tokens, [N, L, K]."""
    chosen: list[Tensor] = []

    def note(_module: Any, _inputs: Any, output: Any) -> None:
        chosen.append(family.router_logits(output).topk(top_k).indices)

    hooks = [layer.router.register_forward_hook(note) for layer in family.moe_modules(model)]
    try:
        for start in range(0, len(answers), _PASS_ANSWERS):
            some = answers[start : start + _PASS_ANSWERS]
            # Padding on the right: what comes later changes nothing in a causal model.
            rows = [torch.tensor(prompt + answer) for prompt, answer in some]
            ids_BS = pad_sequence(rows, batch_first=True).to(model.device)
            chosen.clear()
            with torch.inference_mode():
                model(ids_BS, use_cache=False)
            chosen_BSLK = torch.stack(chosen, dim=1).view(*ids_BS.shape, len(chosen), top_k).cpu()
            for chosen_SLK, (prompt, answer) in zip(chosen_BSLK, some, strict=True):
                first = len(prompt) - 1
                yield chosen_SLK[first : first + len(answer)].numpy()
    finally:
        for hook in hooks:
            hook.remove()
