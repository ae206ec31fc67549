"""Asks one decoder every benchmark item and saves the answers as they came."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.samples import COLUMNS, write_samples
from slimwise.config_digest import config_digest
from slimwise.core.vocabulary import DecoderId
from slimwise.engine.config import ServingConfig
from slimwise.engine.process import serve
from slimwise.generate.answer_log import load_answers
from slimwise.generate.asking import ask_questions
from slimwise.generate.checks import check_prompts_fit
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.questions import Question, questions
from slimwise.generate.served_decoder import ServedDecoder, served_decoder
from slimwise.provenance import code_digest, current_provenance
from slimwise.work_directory import work_directory

_log = logging.getLogger(__name__)


def run(
    config: EvaluationConfig,
    *,
    serving: ServingConfig,
    backbone: Path,
    checkpoint: Path | None = None,
    keep_set: Path | None = None,
    decoder: DecoderId,
    out: Path,
    work: Path,
) -> None:
    """Write samples.parquet of one decoder; a killed run resumes without asking anything twice.

    backbone is the backbone's record. A pruned decoder is served from its checkpoint, given by the
    manifest, or from the backbone by its keep set in the configured colocated modes. Raises before
    a server starts if the answers could not be had.
    """
    served = served_decoder(
        config,
        decoder=decoder,
        backbone=read_backbone_record(backbone).model,
        checkpoint=checkpoint,
        keep_set=keep_set,
    )
    asked = questions(config, served.modes, by_pool=bool(served.pools))
    check_prompts_fit(asked, serving, served.model)
    with work_directory(work) as folder:
        log = folder / f"answers-{_identity(config, serving, served, asked)}.jsonl"
        answered = load_answers(log)
        pending = [question for question in asked if question.key not in answered]
        _log.info("%s: %d questions, %d answered before", decoder, len(asked), len(answered))
        if pending:
            with serve(served.model, serving, folder / "server.log", served.pools) as base_url:
                ask_questions(
                    base_url,
                    pending,
                    log,
                    decoder=decoder,
                    concurrency=config.concurrency,
                    timeout_s=serving.request_timeout_s,
                )
        rows = load_answers(log)
        frame = pd.DataFrame([rows[question.key] for question in asked], columns=list(COLUMNS))
        write_samples(out, frame, current_provenance())
        for finished in folder.glob("answers-*.jsonl"):
            finished.unlink()


def _identity(
    config: EvaluationConfig,
    serving: ServingConfig,
    served: ServedDecoder,
    asked: Sequence[Question],
) -> str:
    """Digest of all that shapes an answer, so that no other run's answer is taken for ours."""
    weights = [served.model / "config.json", *sorted(served.model.glob("*.safetensors"))]
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in weights]
    keep_sets = [path.read_text("utf-8") for path in served.pools.values()]
    prompts = [(question.request.messages, question.request.tools) for question in asked]
    return config_digest(
        config.model_copy(update={"concurrency": 1}),
        serving.model_dump_json(include={"dtype", "max_model_len_tokens", "extra_args"}),
        json.dumps([str(served.model), stamps, prompts, keep_sets]),
        code_digest("slimwise.generate.run"),
    )
