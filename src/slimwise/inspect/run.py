"""Stage inspect-backbone: what the model to prune is, before any weight is loaded."""

import logging
from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.backbones.registry import InspectedCheckpoint, inspect_checkpoint
from slimwise.errors import BackboneError
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.source import model_folder
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)


def run(config: BackboneConfig, *, trained: Path | None = None, out: Path) -> None:
    """Write the backbone's record; trained is the folder that "trained" stands for."""
    folder = model_folder(config, trained)
    record = _describe(config.name, folder, inspect_checkpoint(folder))
    write_backbone_record(out, record, current_provenance())
    logger.info(
        "%s: %s, %d MoE layers x %d experts, top-%d, %s, digest %s",
        record.name,
        record.architecture,
        record.shape.num_layers,
        record.shape.num_experts,
        record.shape.top_k,
        record.dtype,
        record.digest[:12],
    )


def _describe(name: str, folder: Path, found: InspectedCheckpoint) -> BackboneRecord:
    dtype = found.backbone.dtype(found.config)
    if dtype == "float16" and found.backbone.refuses_float16:
        raise BackboneError(
            f"{folder} is of dtype float16, in which the recurrent states of this family overflow "
            "to NaN. Convert the weights to bfloat16."
        )
    return BackboneRecord(
        name=name,
        model=folder,
        model_type=found.config["model_type"],
        architecture=_architecture(folder, found),
        shape=found.shape,
        gate_rule=found.gate_rule,
        dtype=dtype,
        digest=checkpoint_digest(folder),
    )


def _architecture(folder: Path, found: InspectedCheckpoint) -> str:
    architectures = found.config.get("architectures")
    if not isinstance(architectures, list) or len(architectures) != 1:
        raise BackboneError(
            f"{folder}/config.json says architectures = {architectures!r}; expected one class "
            "name, which is what the server starts. Use the configuration that was published with "
            "the weights."
        )
    return architectures[0]
