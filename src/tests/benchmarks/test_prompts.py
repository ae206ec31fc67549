"""Prompts and shots beside those of lm-eval's own task files."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

import pytest
from jinja2 import Template

from slimwise.benchmarks.data import read_data
from slimwise.benchmarks.maths import gsm8k
from slimwise.benchmarks.registry import BENCHMARKS, benchmark_named
from slimwise.benchmarks.settings import DataSettings
from slimwise.errors import ConfigError

TASK_FILES = {
    "gsm8k": ("gsm8k/gsm8k.yaml", 'doc_to_text: "(.*)"'),
    "humaneval_plus": ("humaneval/humaneval_instruct.yaml", 'doc_to_text: "(.*)"'),
    "mbpp_plus": ("mbpp/mbpp_plus_instruct.yaml", 'doc_to_text: "(.*)"'),
    "math_500": ("minerva_math/utils.py", r'return ("Problem:" .*)'),
}


def template(name: str) -> str:
    """What lm-eval asks, as a template of the row's columns."""
    file, pattern = TASK_FILES[name]
    text = (resources.files("lm_eval.tasks") / file).read_text("utf-8")
    (found,) = re.findall(pattern, text)
    if name == "math_500":
        return eval(found, {"doc": {"problem": "{{problem}}"}})
    return found.encode().decode("unicode_escape")


def rows(name: str, data: DataSettings) -> tuple[Mapping[str, Any], ...]:
    module = BENCHMARKS[name].__module__
    return read_data(__import__(module, fromlist=["TEST"]).TEST, data.folder).rows


@pytest.mark.parametrize("name", list(TASK_FILES))
def test_questions_are_those_of_lm_eval(name, data):
    rendered = Template(template(name), keep_trailing_newline=True)
    items = benchmark_named(name, data).items(12)
    asked = [item.messages[-1]["content"] for item in items]
    assert asked == [rendered.render(row) for row in rows(name, data)[:12]]


@pytest.mark.parametrize(
    ("name", "shots", "count"),
    [("gsm8k", 5, 1319), ("math_500", 4, 500), ("humaneval_plus", 0, 164), ("mbpp_plus", 0, 378)],
)
def test_shots_and_items_are_as_many_as_published(name, shots, count, data):
    items = benchmark_named(name, data).items(10_000)
    assert len({item.item_id for item in items}) == count
    roles = ["user", "assistant"] * shots + ["user"]
    assert all([turn["role"] for turn in item.messages] == roles for item in items)


def test_gsm8k_draws_shots_as_lm_evals_sampler_does(data):
    from lm_eval.api.samplers import ContextSampler

    train = [dict(row) for row in read_data(gsm8k.TRAIN, data.folder).rows]
    sampler = ContextSampler(train, rnd=1234)
    for item in benchmark_named("gsm8k", data).items(3):
        answers = [turn["content"] for turn in item.messages if turn["role"] == "assistant"]
        assert answers == [shot["answer"] for shot in sampler.sample(5)]


def test_math_500_has_the_shots_of_lm_eval(data):
    source = (resources.files("lm_eval.tasks") / "minerva_math/utils.py").read_text("utf-8")
    scope: dict[str, Any] = {}
    exec(
        source[source.index("def list_fewshot_samples") : source.index("def process_results")],
        scope,
    )
    (item,) = benchmark_named("math_500", data).items(1)
    answers = [turn["content"] for turn in item.messages if turn["role"] == "assistant"]
    assert answers == [shot["solution"] for shot in scope["list_fewshot_samples"]()]


@pytest.mark.parametrize("name", list(TASK_FILES))
def test_fewer_items_are_the_first_of_more(name, data):
    benchmark = benchmark_named(name, data)
    assert benchmark.items(3) == benchmark.items(9)[:3]


def test_fewer_shots_can_be_asked_and_more_than_there_are_cannot(data):
    (item,) = benchmark_named("gsm8k", DataSettings(data.folder, num_shots=1)).items(1)
    assert len(item.messages) == 3
    with pytest.raises(ConfigError, match="math_500 has at most 4 shots, not 5"):
        benchmark_named("math_500", DataSettings(data.folder, num_shots=5)).items(1)


def test_origins_name_every_file_that_was_read(data):
    origin = benchmark_named("gsm8k", data).origin()
    assert re.fullmatch(
        r"gsm8k/test\.jsonl sha256:[0-9a-f]{64}; gsm8k/train\.jsonl sha256:[0-9a-f]{64}", origin
    )
