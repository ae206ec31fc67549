from pathlib import Path

from slimwise.core.vocabulary import Phase, Routing, ServingMode
from slimwise.engine.deployment import ServedModel
from slimwise.sweep.config import LoadConfig
from slimwise.sweep.deployments import Swept, SweptArm
from slimwise.sweep.points import points

MODEL = ServedModel(Path("/model"))


def loads(decode: ServedModel | None):
    arms = [SweptArm(ServingMode.FULL, None, 8)]
    swept = Swept("full", "shape", Routing.UNIFORM, MODEL, decode, Path("/words"), arms)
    config = LoadConfig(concurrency=(2,), min_requests=3, prefill_requests=4)
    return {point.phase: point.load for point in points(config, swept, "identity")}


def test_prefill_is_timed_on_warm_kernels_and_decode_once_its_batch_is_whole():
    found = loads(decode=None)
    assert list(found) == [Phase.PREFILL, Phase.DECODE]
    assert (found[Phase.PREFILL].num_requests, found[Phase.PREFILL].num_warmups) == (4, 4)
    assert (found[Phase.DECODE].num_requests, found[Phase.DECODE].num_warmups) == (3, 0)


def test_prefill_is_not_timed_through_a_decode_server():
    assert list(loads(decode=ServedModel(Path("/decoder")))) == [Phase.DECODE]
