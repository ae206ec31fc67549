import json
import re
from pathlib import Path

import pytest
import yaml

from slimwise.benchmarks.registry import BENCHMARKS
from slimwise.config import StudyConfig
from slimwise.config_documents import config_documents
from slimwise.generate.config import EvaluationConfig

CONFIG = Path(__file__).resolve().parents[2] / "config"


@pytest.mark.parametrize("name", ["default.yaml", "schema.json", "README.md"])
def test_the_committed_file_is_what_the_models_say(name):
    assert (CONFIG / name).read_text() == config_documents()[name], "run: slimwise write-config"


def test_defaults_and_a_studys_required_keys_make_a_study():
    defaults = yaml.safe_load(config_documents()["default.yaml"])
    defaults["study"] = "x"
    defaults["backbone"] |= {"model": "embedded", "name": "miniature"}
    defaults["selection"]["num_kept"] = [32]
    defaults["serving"]["max_model_len_tokens"] = 40000
    defaults["evaluation"]["benchmarks"] = ["mini_maths"]
    assert StudyConfig.model_validate(defaults).study == "x"


def test_every_key_has_a_meaning():
    schema = json.loads(config_documents()["schema.json"])
    slices = [schema, *schema["$defs"].values()]
    for fields in (item["properties"] for item in slices if "properties" in item):
        for name, field in fields.items():
            assert field.get("description"), name


def test_the_benchmarks_that_a_study_may_name_are_listed():
    described = EvaluationConfig.model_fields["benchmarks"].description
    assert described is not None
    assert set(re.findall(r"\w+_\w+|gsm8k", described)) == set(BENCHMARKS)
