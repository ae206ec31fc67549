"""What the trained tensors of one decoder follow from. Torch-free."""

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.artifacts.trained_record import TrainedRecord
from slimwise.core.vocabulary import DecoderId, Distillation
from slimwise.distill.config import DistillationConfig


def trained_record(
    config: DistillationConfig, record: BackboneRecord, chosen: KeepSetRecord, rule: Distillation
) -> TrainedRecord:
    """The record that goes beside the tensors; equal records mean equal tensors."""
    num_kept = chosen.keep_set.num_kept_per_layer[0]
    return TrainedRecord(
        decoder=str(DecoderId(chosen.criterion, num_kept, rule)),
        rule=rule,
        seed=config.seed,
        backbone_digest=record.digest,
        keep_set_digest=chosen.keep_set.digest,
        recipe=config.recipe(),
    )
