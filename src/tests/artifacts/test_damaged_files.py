"""Every reader meets damaged files: it refuses them in our words, or reads what was written."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import slimwise.artifacts
from slimwise.artifacts.backbone_record import read_backbone_record, write_backbone_record
from slimwise.artifacts.captions import Caption, read_captions, write_captions
from slimwise.artifacts.distill_log import LOG_COLUMNS, LOG_NAME, read_distill_log
from slimwise.artifacts.expert_scores import read_expert_scores, write_expert_scores
from slimwise.artifacts.grades import COLUMNS as GRADE_COLUMNS
from slimwise.artifacts.grades import read_grades, write_grades
from slimwise.artifacts.json_record import read_json_provenance, read_json_schema
from slimwise.artifacts.json_rows import read_json_rows
from slimwise.artifacts.keep_set import read_keep_set, write_keep_set
from slimwise.artifacts.manifest import MANIFEST_NAME
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.resume_state import read_resume_state, write_resume_state
from slimwise.artifacts.routing_stats import read_routing_stats, write_routing_stats
from slimwise.artifacts.routing_sums import read_routing_sums
from slimwise.artifacts.samples import COLUMNS as SAMPLE_COLUMNS
from slimwise.artifacts.samples import read_samples, write_samples
from slimwise.artifacts.study_record import (
    StudyRecord,
    read_study_record,
    write_study_record,
)
from slimwise.artifacts.tables import read_table, read_table_cells, write_table
from slimwise.artifacts.trained_record import (
    TrainedRecord,
    read_trained_record,
    trained_digest,
    write_trained_record,
)
from slimwise.artifacts.trained_tensors import (
    FILE_NAME,
    read_trained_tensors,
    write_trained_tensors,
)
from slimwise.artifacts.weight_files import INDEX_NAME, read_weight_file, read_weights
from slimwise.core.routing_stats import RoutingStats
from slimwise.core.vocabulary import Distillation
from slimwise.errors import ArtifactError, SlimWiseError

from ..damage import damaged

_READ_BY_OTHERS = {"read_json_record", "read_typed_record", "read_rows"}
"""Of which the readers below are made."""
_VALUES = {"str": "maths", "int64": 3, "float64": 0.5, "bool": True}


class Format(NamedTuple):
    """One file of a folder, what reads it, and whether a change of its content must be noticed."""

    file: str
    read: Callable[[Path], Any]
    is_checksummed: bool = False


def _read_resume_state(path: Path) -> Any:
    state = read_resume_state(path.parent)
    if state is None:
        raise ArtifactError(f"{path} holds nothing")
    return state


FORMATS = {
    "backbone record": Format("backbone.json", read_backbone_record),
    "captions": Format("captions.json", read_captions),
    "distillation log": Format(LOG_NAME, read_distill_log),
    "expert scores": Format("scores.parquet", read_expert_scores, is_checksummed=True),
    "grades": Format("grades.parquet", read_grades, is_checksummed=True),
    "measured rows": Format("rows.jsonl", read_json_rows),
    "provenance of a record": Format("keep.json", read_json_provenance),
    "schema of a record": Format("keep.json", read_json_schema),
    "resume point": Format("state.safetensors", _read_resume_state),
    "routing sums": Format("stats.safetensors", read_routing_sums, is_checksummed=True),
    "study record": Format("study.json", read_study_record),
    "cells of a table": Format("table.csv", read_table_cells),
    "keep set": Format("keep.json", read_keep_set),
    "provenance of rows": Format("grades.parquet", read_rows_provenance),
    "routing statistics": Format("stats.safetensors", read_routing_stats, is_checksummed=True),
    "samples": Format("samples.parquet", read_samples, is_checksummed=True),
    "table": Format("table.csv", lambda path: read_table(path, ["name", "value"])),
    "manifest of trained tensors": Format(
        f"trained/{MANIFEST_NAME}", lambda path: read_trained_record(path.parent)
    ),
    "files of a manifest": Format(
        f"trained/{FILE_NAME}", lambda path: read_trained_record(path.parent), is_checksummed=True
    ),
    "digest of trained tensors": Format(
        f"trained/{MANIFEST_NAME}", lambda path: trained_digest(path.parent)
    ),
    "trained tensors": Format(
        f"trained/{FILE_NAME}", lambda path: read_trained_tensors(path.parent)
    ),
    "weights": Format(f"trained/{FILE_NAME}", read_weight_file),
    "index of weights": Format(f"model/{INDEX_NAME}", lambda path: read_weights(path.parent)),
}


@pytest.fixture
def folder(tmp_path, backbone_record, keep_set_record, scores, provenance) -> Path:
    """One good file of each format."""
    write_backbone_record(tmp_path / "backbone.json", backbone_record, provenance)
    captions = {"load": Caption("Load", "Tokens by expert.", "A map.")}
    write_captions(tmp_path / "captions.json", captions, provenance)
    log = pd.DataFrame([[step, *[0.5] * 7] for step in range(4)], columns=list(LOG_COLUMNS))
    log.to_csv(tmp_path / LOG_NAME, index=False)
    write_expert_scores(tmp_path / "scores.parquet", scores, provenance)
    write_grades(tmp_path / "grades.parquet", _rows(GRADE_COLUMNS), provenance)
    write_samples(tmp_path / "samples.parquet", [_rows(SAMPLE_COLUMNS)], provenance)
    row = json.dumps({"batch": 8, "step_ms": 6.5, **dataclasses.asdict(provenance)})
    (tmp_path / "rows.jsonl").write_text(f"{row}\n{row}\n")
    write_keep_set(tmp_path / "keep.json", keep_set_record, provenance)
    write_routing_stats(
        tmp_path / "stats.safetensors",
        {"maths": RoutingStats(*torch.arange(48, dtype=torch.float64).reshape(6, 2, 4))},
        provenance,
    )
    origin = {"commit": "1", "date": "2", "hardware": "3"}
    table = pd.DataFrame([{"name": "a", "value": 0.25, **origin}])
    write_table(tmp_path / "table.csv", table, ["name", "value"], digits=3)
    write_study_record(tmp_path / "study.json", StudyRecord({"study": "x"}, (), {}), provenance)
    write_resume_state(tmp_path, {"value.weight": torch.ones(2, 3)})
    trained = tmp_path / "trained"
    write_trained_tensors(trained, {"norm.weight": torch.ones(3), "gate.weight": torch.eye(3)})
    record = TrainedRecord("reap-m2", Distillation.UNIFORM, 3, "a" * 64, "b" * 64, {"steps": 4})
    write_trained_record(trained, record, provenance)
    model = tmp_path / "model"
    model.mkdir()
    index = {}
    for name in ("norm", "gate"):
        save_file({f"{name}.weight": torch.ones(3)}, model / f"{name}.safetensors")
        index[f"{name}.weight"] = f"{name}.safetensors"
    (model / INDEX_NAME).write_text(json.dumps({"weight_map": index}))
    return tmp_path


def _rows(columns: dict[str, str]) -> pd.DataFrame:
    return pd.DataFrame([{name: _VALUES[kind] for name, kind in columns.items()}] * 3)


@pytest.mark.parametrize("name", FORMATS)
def test_random_damage_is_refused_or_harmless(folder, name):
    form = FORMATS[name]
    path = folder / form.file
    good, written = path.read_bytes(), _comparable(form.read(path))
    for damage, content in damaged(good, seed=name):
        path.write_bytes(content)
        refusal, read = _refusal_or_value(form, path)
        if refusal is not None:
            assert path.name in refusal or path.parent.name in refusal, damage
        elif form.is_checksummed:
            assert read == written, damage


def test_no_reader_is_left_out():
    sources = [path.read_text() for path in Path(slimwise.artifacts.__path__[0]).glob("*.py")]
    readers = {name for source in sources for name in re.findall(r"^def (read_\w+)", source, re.M)}
    assert readers - set(globals()) == _READ_BY_OTHERS


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_file_is_refused_by_name(folder, name):
    form = FORMATS[name]
    path = folder / form.file
    path.unlink()
    for prepare in (lambda: None, path.mkdir):
        prepare()
        with pytest.raises(SlimWiseError, match=rf"{path.parent.name}|{path.stem}"):
            form.read(path)


def _refusal_or_value(form: Format, path: Path) -> tuple[str | None, Any]:
    try:
        return None, _comparable(form.read(path))
    except SlimWiseError as failure:
        return str(failure), None


def _comparable(value: Any) -> Any:
    """The value as something that == compares, NaN with NaN."""
    match value:
        case pd.DataFrame():
            return value.to_json()
        case torch.Tensor():
            return str(value.tolist())
        case dict():
            return {key: _comparable(item) for key, item in value.items()}
        case RoutingStats():
            return {key: _comparable(item) for key, item in vars(value).items()}
        case _:
            return repr(value)
