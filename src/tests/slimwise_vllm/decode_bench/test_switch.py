from types import SimpleNamespace

import pytest

from slimwise_vllm.decode_bench.switch import Capture, GraphSets, HookSet


class Layer:
    def dispatch(self):
        return "plain"


def test_hooks_come_off_and_go_back():
    layer = Layer()
    layer.dispatch = lambda: "masked"  # type: ignore[method-assign]
    hooks = HookSet([(layer, "dispatch")])
    seen = []
    for on in (True, False, False, True):
        hooks.turn(on)
        seen.append(layer.dispatch())
    assert seen == ["masked", "plain", "plain", "masked"]


def test_only_hooked_attributes_can_be_switched():
    with pytest.raises(KeyError):
        HookSet([(Layer(), "dispatch")])


def test_without_graphs_nothing_is_captured():
    runner = SimpleNamespace(model=Layer(), vllm_config=None)
    captured = Capture(masks=True, counts=True, tuned=False)
    GraphSets(runner, captured).use(Capture(masks=False, counts=False, tuned=True))
