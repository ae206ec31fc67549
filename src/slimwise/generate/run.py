"""Asks one decoder every benchmark item and saves the answers as they came."""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.samples import COLUMNS, write_samples
from slimwise.config_digest import config_digest
from slimwise.core.vocabulary import DecoderId
from slimwise.engine.client import AskingLimits
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import decode_counts, refuse_faults
from slimwise.engine.deployment import ServedModel, serve, serve_disaggregated
from slimwise.errors import InvalidAnswersError
from slimwise.generate.answer_log import AnswerLog
from slimwise.generate.asking import ask_questions
from slimwise.generate.checks import check_calls_are_read, check_prompts_fit
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.parsers import (
    model_parsers,
    reads_calls,
    thoughts_in_text,
    with_parsers,
)
from slimwise.generate.questions import (
    Question,
    ServerTraits,
    data_origins,
    distinct_items,
    questions,
)
from slimwise.generate.served_decoder import ServedDecoder, served_decoder
from slimwise.provenance import code_digest, current_provenance
from slimwise.work_directory import work_directory

_log = logging.getLogger(__name__)
# Every server loads the plugin, with pools or without; named here, it is in this stage's digest.
_CODE = ("slimwise.generate.run", "slimwise_vllm.plugin")
_BATCH_ROWS = 64  # 8 MiB of answers of the longest budget


def run(
    config: EvaluationConfig,
    *,
    serving: ServingConfig,
    backbone: Path,
    checkpoint: Path | None = None,
    pool: Sequence[Path] = (),
    disaggregation: DisaggregationConfig | None = None,
    decoder: DecoderId,
    out: Path,
    work: Path,
) -> None:
    """Write samples.parquet of one decoder; a killed run resumes without asking anything twice.

    backbone is the backbone's record. A pruned decoder is served from its checkpoint, given by the
    manifest, or from the backbone as a pool: its keep set and the manifest of what was trained, if
    anything was. With disaggregation, the backbone prefills and the checkpoint decodes. Raises
    before a server starts if the answers could not be had; InvalidAnswersError at the end if the
    decode server prefilled too.
    """
    served = served_decoder(
        config,
        decoder=decoder,
        backbone=read_backbone_record(backbone).model,
        checkpoint=checkpoint,
        pool=pool,
        is_disaggregated=disaggregation is not None,
    )
    plan = _plan(config, served, serving)
    with work_directory(work) as folder:
        path = folder / f"answers-{_identity(config, plan, disaggregation)}.jsonl"
        with _answers(path) as log:
            pending = [question for question in plan.asked if question.key not in log]
            _log.info("%s: %d questions, %d answered before", decoder, len(plan.asked), len(log))
            if pending:
                with _server(plan, disaggregation, folder) as base_url:
                    asking = base_url, pending, log, _limits(config, plan.serving)
                    ask_questions(*asking, served=served, thoughts_in_text=plan.thoughts_in_text)
            provenance = current_provenance(data_origins(config))
            write_samples(out, _sample_batches(plan.asked, log), provenance)


@dataclass(frozen=True)
class _Plan:
    """What one decoder is asked, and how its server is started and answers."""

    served: ServedDecoder
    serving: ServingConfig
    asked: Sequence[Question]
    thoughts_in_text: bool


def _plan(config: EvaluationConfig, served: ServedDecoder, serving: ServingConfig) -> _Plan:
    """The plan; ConfigError or BackboneError if the questions could not be answered."""
    parsing = with_parsers(serving, model_parsers(served.model))
    server = ServerTraits(by_pool=bool(served.pools), parses_calls=reads_calls(parsing))
    asked = questions(config, served.modes, server)
    check_calls_are_read(asked, server)
    check_prompts_fit(asked, parsing, served.model)
    return _Plan(served, parsing, asked, thoughts_in_text(parsing, served.model))


def _limits(config: EvaluationConfig, serving: ServingConfig) -> AskingLimits:
    return AskingLimits(
        concurrency=config.concurrency,
        timeout_s=serving.request_timeout_s,
        outage_s=serving.outage_timeout_s,
    )


@contextmanager
def _answers(path: Path) -> Iterator[AnswerLog]:
    """The answers so far; they go when all are saved, or turn out to be of another method."""
    try:
        with AnswerLog(path) as log:
            yield log
    except InvalidAnswersError:
        path.unlink()
        raise
    for finished in path.parent.glob("answers-*.jsonl"):
        finished.unlink()


@contextmanager
def _server(plan: _Plan, layout: DisaggregationConfig | None, folder: Path) -> Iterator[str]:
    """The address of the decoder; InvalidAnswersError at the end if its decode server prefilled."""
    served, serving = plan.served, plan.serving
    if layout is None or served.decode_model is None:
        with serve(served.model, serving, folder / "server.log", served.pools) as base_url:
            yield base_url
        return
    prefill, decode = ServedModel(served.model), ServedModel(served.decode_model)
    with serve_disaggregated(prefill, decode, serving, layout, folder / "servers") as deployment:
        urls = deployment.prefill_urls, deployment.decode_urls
        earlier = decode_counts(*urls)
        try:
            yield deployment.base_url
        finally:
            refuse_faults(decode_counts(*urls) - earlier)


def _sample_batches(asked: Sequence[Question], log: AnswerLog) -> Iterator[pd.DataFrame]:
    """The rows of samples.parquet in the order of the questions, a batch at a time."""
    for start in range(0, len(asked), _BATCH_ROWS):
        rows = [
            {**log.row(question.key), "reference": json.dumps(question.item.reference)}
            for question in asked[start : start + _BATCH_ROWS]
        ]
        yield pd.DataFrame(rows, columns=list(COLUMNS))


def _identity(config: EvaluationConfig, plan: _Plan, layout: DisaggregationConfig | None) -> str:
    """Digest of all that shapes an answer, so that no other run's answer is taken for ours."""
    served = plan.served
    apart = layout and layout.without_places().by_default("shares_gpus")
    models = [folder for folder in (served.model, served.decode_model) if folder is not None]
    weights = [
        path
        for folder in models
        for path in (folder / "config.json", *sorted(folder.glob("*.safetensors")))
    ]
    stamps = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in weights]
    pools = [path.read_text("utf-8") for path in served.pool_files]
    prompts = [
        (question.request.messages, question.request.tools)
        for question in distinct_items(plan.asked)
    ]
    return config_digest(
        config.without_haste().by_default("data_folder"),
        plan.serving.model_dump_json(include={"dtype", "max_model_len_tokens", "extra_args"}),
        "" if apart is None else apart.model_dump_json(),
        json.dumps([*map(str, models), stamps, prompts, pools]),
        *map(code_digest, _CODE),
    )
