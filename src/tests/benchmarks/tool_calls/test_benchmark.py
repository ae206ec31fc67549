import json
import shutil
from collections import Counter

import pytest

from slimwise.benchmarks.registry import benchmark_named
from slimwise.benchmarks.settings import DataSettings
from slimwise.benchmarks.tool_calls.benchmark import Bfcl
from slimwise.benchmarks.tool_calls.categories import CATEGORIES, MEANS, category_of, item_weights
from slimwise.benchmarks.tool_calls.official import data_folder
from slimwise.errors import ConfigError

LIVE, NON_LIVE = "bfcl_v4_live_ast", "bfcl_v4_non_live_ast"


def test_every_item_of_every_category_is_asked_once(items):
    assert {name: len(group) for name, group in items.items()} == {
        LIVE: 1351,
        NON_LIVE: 1150,
        "bfcl_v4_relevance": 16,
        "bfcl_v4_irrelevance": 1124,
    }
    counts = Counter(category_of(item.item_id) for group in items.values() for item in group)
    assert counts == {name: category.num_items for name, category in CATEGORIES.items()}


def test_fewer_items_are_the_first_of_more_and_mix_the_categories(items):
    few = Bfcl(LIVE, DataSettings()).items(135)
    assert few == items[LIVE][:135]
    counts = Counter(category_of(item.item_id) for item in few)
    assert counts["live_multiple"] == pytest.approx(105, abs=2)
    assert counts["live_simple"] == pytest.approx(26, abs=2)
    assert counts["live_parallel"] >= 1


def test_references_survive_json(items):
    for group in items.values():
        for item in group:
            assert json.loads(json.dumps(item.reference)) == item.reference


def test_a_study_finds_them_by_name():
    assert benchmark_named(NON_LIVE, DataSettings()).items(3)[0].native_calls


def test_the_origin_names_the_release_and_its_content():
    origin = Bfcl("bfcl_v4_relevance", DataSettings()).origin()
    assert origin.startswith("bfcl-eval 2026.3.23: live_relevance sha256:")


def test_a_local_folder_takes_the_place_of_the_package(tmp_path):
    shutil.copytree(
        data_folder(), tmp_path / "bfcl_v4", ignore=shutil.ignore_patterns("*multi_turn*")
    )
    local = Bfcl("bfcl_v4_relevance", DataSettings(folder=tmp_path))
    assert local.items(99) == Bfcl("bfcl_v4_relevance", DataSettings()).items(99)
    with pytest.raises(ConfigError, match=r"gone/bfcl_v4/BFCL_v4_live_relevance\.json"):
        Bfcl("bfcl_v4_relevance", DataSettings(folder=tmp_path / "gone")).items(1)


def test_live_items_count_alike_and_other_categories_alike():
    ids = ["simple_python_0", "simple_python_1", "simple_java_0", "simple_javascript_0"]
    ids += ["multiple_0", "parallel_0", "parallel_1", "parallel_2", "parallel_multiple_0"]
    weights = dict(zip(ids, item_weights(NON_LIVE, ids), strict=True))
    right = {"simple_python_0", "simple_java_0", "parallel_1", "multiple_0"}
    # ((1/2 + 1 + 0) / 3 + 1 + 1/3 + 0) / 4
    assert sum(weights[item] for item in right) / len(ids) == pytest.approx(11 / 24)
    assert item_weights(LIVE, ["live_simple_0-0-0", "live_multiple_0-0-0"]) == [1.0, 1.0]


@pytest.mark.parametrize("name", list(MEANS))
def test_weights_are_one_on_average(items, name):
    ids = [item.item_id for item in items[name]]
    assert sum(item_weights(name, ids)) == pytest.approx(len(ids))
