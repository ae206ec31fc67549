"""Stage sweep-throughput: one decoder of a study under every load."""

import json
from collections.abc import Sequence
from pathlib import Path

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.config_digest import config_digest
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.provenance import code_digest
from slimwise.stage_config import StageConfig
from slimwise.sweep.config import LoadConfig, SweptDecoder
from slimwise.sweep.deployments import swept_decoder
from slimwise.sweep.measure import Setup, measure
from slimwise.sweep.point_log import PointLog
from slimwise.sweep.points import points
from slimwise.work_directory import work_directory

_CODE = ("slimwise.sweep.run", "slimwise_vllm.plugin")


def run(
    config: LoadConfig,
    *,
    serving: ServingConfig,
    disaggregation: DisaggregationConfig,
    backbone: Path,
    decoder: str,
    files: Sequence[Path],
    out: Path,
    work: Path,
) -> None:
    """Write the decoder's rows, JSON lines; a killed run resumes with the points it lacks.

    decoder is spelled as SweptDecoder parses it, backbone the backbone's record. files are what
    the decoder is served from beside it: the manifest of its checkpoint, or its keep set and the
    manifest of what was trained, if anything.
    """
    record = read_backbone_record(backbone)
    named = SweptDecoder.parse(decoder)
    swept = swept_decoder(record, *named, files)
    alone, apart = serving.without_waiting(), disaggregation.without_places()
    settings = (alone,) if swept.decode is None else (alone, apart)
    with work_directory(work) as folder:
        identity = _identity(config, settings, record, files)
        wanted = list(points(config, swept, identity))
        log = PointLog(folder / "points.jsonl")
        measure(wanted, swept, Setup(serving, disaggregation, folder / "servers"), log)
        rows = [{"decoder": str(named.decoder), **log.row(point.digest)} for point in wanted]
        with atomic_file(out) as temporary:
            temporary.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")


def _identity(
    config: LoadConfig,
    settings: Sequence[StageConfig],
    record: BackboneRecord,
    files: Sequence[Path],
) -> str:
    """Digest of all that shapes a point beside its place on the ladder.

    settings are what the servers are started with.
    """
    return config_digest(
        config.without_ladder(),
        *(each.model_dump_json() for each in settings),
        record.digest,
        *(path.read_text("utf-8") for path in files),
        *map(code_digest, _CODE),
    )
