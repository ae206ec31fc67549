"""Keep sets for the tiny models, and the export of one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.export.config import ExportConfig
from slimwise.export.run import run
from slimwise.provenance import Provenance

KEPT = ((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12))


@pytest.fixture
def export(tmp_path, inspected) -> Callable[..., Path]:
    """A function that prunes a checkpoint to the kept experts and returns the new folder."""

    def prune(folder: Path, kept: Sequence[Sequence[int]] = KEPT, **settings: float) -> Path:
        backbone = inspected(folder)
        record = read_backbone_record(backbone)
        keep_set = KeepSet(tuple(map(tuple, kept)), record.shape.num_experts, record.shape.top_k)
        chosen = KeepSetRecord(keep_set, Criterion.REAP, record.digest, record.model_type)
        write_keep_set(tmp_path / "keep.json", chosen, Provenance("", "", "", {}, ""))
        out = tmp_path / "pruned"
        config = ExportConfig.model_validate(settings)
        run(config, backbone=backbone, keep_set=tmp_path / "keep.json", out=out)
        return out

    return prune
