"""Stage select-experts: the experts that one pruned decoder keeps."""

import logging
from pathlib import Path

import pandas as pd

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.expert_scores import read_expert_scores
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.selection import select_keep_set
from slimwise.core.vocabulary import Criterion, DecoderId
from slimwise.errors import ArtifactError, ConfigError
from slimwise.provenance import current_provenance
from slimwise.select.config import SelectionConfig

logger = logging.getLogger(__name__)


def run(
    config: SelectionConfig,
    *,
    backbone: Path,
    scores: Path,
    criterion: Criterion,
    num_kept: int,
    out: Path,
) -> None:
    """Write the keep set of one criterion and count, which the slice must contain."""
    if criterion not in config.criteria or num_kept not in config.num_kept:
        raise ConfigError(
            f"decoder {DecoderId(criterion, num_kept)} is not in the study: selection has criteria "
            f"{', '.join(config.criteria)} and num_kept {', '.join(map(str, config.num_kept))}. "
            "Ask for one of these, or add it."
        )
    record = read_backbone_record(backbone)
    scores_LE = _score_matrix(read_expert_scores(scores), criterion, record, scores)
    keep_set = select_keep_set(scores_LE, num_kept, top_k=record.shape.top_k, backbone=record.name)
    chosen = KeepSetRecord(keep_set, criterion, record.digest, record.model_type)
    write_keep_set(out, chosen, current_provenance())
    logger.info(
        "%s keeps %d of %d experts in each of %d layers",
        criterion,
        num_kept,
        keep_set.num_experts,
        keep_set.num_layers,
    )


def _score_matrix(
    scores: pd.DataFrame, criterion: Criterion, record: BackboneRecord, path: Path
) -> list[list[float]]:
    """Scores as [L][E]; ArtifactError unless they are of the backbone's shape."""
    matrix_LE = scores.pivot(index="layer", columns="expert", values=criterion.value).to_numpy()
    expected = (record.shape.num_layers, record.shape.num_experts)
    if matrix_LE.shape != expected:
        raise ArtifactError(
            f"{path} scores {matrix_LE.shape[0]} layers x {matrix_LE.shape[1]} experts; "
            f"{record.name} has {expected[0]} x {expected[1]}. Run the collect_stats rule again."
        )
    return matrix_LE.tolist()
