import json

import pytest

from slimwise.backbones.mini.chat import split_thought
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.benchmarks.mini import MiniBenchmark
from slimwise.benchmarks.registry import benchmark_named
from slimwise.benchmarks.settings import DataSettings
from slimwise.errors import ConfigError

MINI = [MiniBenchmark(family).name for family in GRADED.values()]


@pytest.mark.parametrize("name", MINI)
def test_fewer_items_are_the_first_of_more(name):
    assert benchmark_named(name).items(4) == benchmark_named(name).items(9)[:4]


@pytest.mark.parametrize("name", MINI)
def test_references_survive_json(name):
    for item in benchmark_named(name).items(20):
        assert json.loads(json.dumps(item.reference)) == item.reference


@pytest.mark.parametrize("family", GRADED.values(), ids=list(GRADED))
def test_no_item_is_trained_on(family):
    drawn, asked = draw_items(family, 300, 0, Split.TRAIN), MiniBenchmark(family).items(300)
    trained = {json.dumps([item.prompt, item.tools]) for item in drawn}
    assert not trained & {json.dumps([each.messages[0]["content"], each.tools]) for each in asked}


def test_an_answer_to_another_item_is_wrong():
    for family in GRADED.values():
        first, second = draw_items(family, 2, 5, Split.TEST)
        _, answer = split_thought(first.response)
        assert answer is not None
        assert not family.grade(answer, second.reference).correct


def test_shots_are_refused_where_there_are_none():
    with pytest.raises(ConfigError, match="mini_maths has at most 0 shots, not 3"):
        benchmark_named("mini_maths", DataSettings(num_shots=3)).items(1)
