"""Files and settings from outside, spoilt: they are refused in our words, or make sense."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from slimwise.artifacts.resume_state import read_resume_state, write_resume_state
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.benchmarks.data import DataSource, read_data
from slimwise.config import StudyConfig, load_study, parse_slice
from slimwise.core.vocabulary import Decoding, ServingMode
from slimwise.engine.chat import ChatRequest
from slimwise.errors import ConfigError, SlimWiseError
from slimwise.generate.answer_log import AnswerLog
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.generate.parsers import model_parsers
from slimwise.generate.questions import QuestionKey
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.study_plan.run import merged_study
from slimwise_vllm.settings import read_settings

from .damage import damaged

ROOT = Path(__file__).resolve().parents[2]
_REQUEST = ChatRequest([{"role": "user", "content": "2 + 2"}], [], 0.0, 1.0, 8, seed=0)
_SOURCE = DataSource("d/s", "r", "test", "rows.jsonl", num_rows=2, columns=("question",))
_POOLS = {"slimwise": {"pools": {"m32": "keep.json"}, "default_mode": "slimwise"}}
_STUDY = load_study(yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text()))


def _read_log(path: Path) -> object:
    with AnswerLog(path) as log:
        return len(log)


def _read_data(path: Path) -> object:
    read_data.cache_clear()
    return read_data(_SOURCE, path.parent)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "model configuration": ("config.json", lambda path: inspect_checkpoint(path.parent)),
    "parsers": ("config.json", lambda path: model_parsers(path.parent)),
    "tokenizer": ("tokenizer.json", lambda path: prompt_lengths([_REQUEST], path.parent)),
    "special tokens": (
        "tokenizer_config.json",
        lambda path: prompt_lengths([_REQUEST], path.parent),
    ),
    "chat template": (
        "chat_template.jinja",
        lambda path: prompt_lengths([_REQUEST], path.parent),
    ),
    "study": ("study.yaml", lambda path: merged_study([path])),
    "answers so far": ("answers.jsonl", _read_log),
    "benchmark data": ("rows.jsonl", _read_data),
    "resume point": ("state.safetensors", lambda path: read_resume_state(path.parent)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good file of each kind; the model has no weights."""
    made = tmp_path_factory.mktemp("inputs")
    for path in (ROOT / EMBEDDED_CHECKPOINT).iterdir():
        if path.suffix in (".json", ".jinja"):
            shutil.copy(path, made)
    write_resume_state(made, {"value.weight": torch.ones(2, 3)})
    shutil.copy(ROOT / "config" / "smoke.yaml", made / "study.yaml")
    (made / "rows.jsonl").write_text('{"question": "2 + 2"}\n' * 2)
    with AnswerLog(made / "answers.jsonl") as log:
        for run in range(3):
            key = QuestionKey(ServingMode.FULL, "mini_maths", "7", Decoding.SAMPLED, run)
            log.append(key, {**key._asdict(), "content": "4"})
    return made


@pytest.mark.parametrize("name", READERS)
def test_random_damage_is_refused_or_makes_sense(folder, tmp_path, name):
    file, read = READERS[name]
    good = (folder / file).read_bytes()
    place = tmp_path / "inputs"
    shutil.copytree(folder, place)
    read(place / file)
    for damage, content in damaged(good, seed=name):
        (place / file).write_bytes(content)
        refusal = _refusal(read, place / file)
        assert refusal is None or "inputs" in refusal or "configuration refused" in refusal, damage


def _refusal(read: Callable[[Path], object], path: Path) -> str | None:
    try:
        read(path)
    except SlimWiseError as failure:
        return str(failure)
    return None


_WORDS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
_VALUES = st.recursive(
    _WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner)
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.data(), value=_VALUES)
def test_any_value_of_a_key_makes_a_study_or_is_refused(data, value):
    raw = _with_value(_STUDY.model_dump(mode="json"), data, value)
    with suppress(ConfigError):
        assert load_study(raw).decoders()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data(), value=_VALUES)
def test_any_value_makes_settings_of_the_plugin_or_is_refused(data, value):
    with suppress(ConfigError):
        read_settings(_with_value(_POOLS, data, value))


def _with_value(tree: Any, data: st.DataObject, value: object) -> Any:
    """The tree with the value in the place of one of its nodes."""
    if not isinstance(tree, dict) or not tree or data.draw(st.integers(0, 3)) == 0:
        return value
    key = data.draw(st.sampled_from(sorted(tree)))
    return {**tree, key: _with_value(tree[key], data, value)}


@pytest.mark.parametrize("text", ["[" * 10**5, '{"study":' * 10**4, "", "\x00", "1e999", "NaN"])
def test_text_that_is_no_slice_is_refused(text):
    with pytest.raises(ConfigError, match="configuration refused"):
        parse_slice(StudyConfig, text)


@pytest.mark.parametrize("name", ["../other", "a/b", "..", ".", "", "a b", "/etc", "x\n"])
def test_a_study_is_named_by_one_plain_word(name):
    raw = {**_STUDY.model_dump(mode="json"), "study": name}
    with pytest.raises(ConfigError, match="study"):
        load_study(raw)


def test_json_with_a_key_twice_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "olmoe", "model_type": "mixtral"}')
    with pytest.raises(SlimWiseError, match="'model_type' stands twice"):
        inspect_checkpoint(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "mixtral"
