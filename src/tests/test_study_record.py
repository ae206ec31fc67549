import hashlib
from pathlib import Path

import pytest
import yaml

from slimwise.artifacts.study_record import read_study_record
from slimwise.config import load_study
from slimwise.errors import ArtifactError
from slimwise.study_record import record_study

SMOKE = Path(__file__).resolve().parents[2] / "config" / "smoke.yaml"


def test_the_record_tells_configuration_decoders_and_digests(tmp_path):
    study = load_study(yaml.safe_load(SMOKE.read_text()))
    product, out = tmp_path / "accuracy.csv", tmp_path / "study.json"
    product.write_text("a,b\n")
    record_study(study, products=[product], out=out)
    record = read_study_record(out)
    assert load_study(record.configuration) == study
    assert record.decoders == ("full", "reap-m32", "reap-m32-kd_uniform")
    assert record.sha256 == {"accuracy.csv": hashlib.sha256(b"a,b\n").hexdigest()}


def test_a_missing_product_is_named(tmp_path):
    study = load_study(yaml.safe_load(SMOKE.read_text()))
    with pytest.raises(ArtifactError, match=r"accuracy\.csv"):
        record_study(study, products=[tmp_path / "accuracy.csv"], out=tmp_path / "s.json")
