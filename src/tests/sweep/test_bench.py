import pytest

from slimwise.errors import EngineError
from slimwise.sweep import bench
from slimwise.sweep.bench import Load, running_bench

LOAD = Load(2, 4, 16, 8, 0, {"vllm_xargs": {"slimwise_mode": "full"}}, num_warmups=3)
_STAND_IN = """
import json, sys, time
for line in sys.stdin:
    words = json.loads(line)
    said = dict(zip(words, words[1:]))
    print("warned", file=sys.stderr, flush=True)
    {act}
    print(json.dumps({{"completed": {completed}, "said": said}}), flush=True)
"""


@pytest.fixture
def started(monkeypatch, tmp_path):
    """Starts a stand-in for vllm bench serve that acts so before it answers."""

    def start(act: str = "pass", completed: int = 4, timeout_s: float = 30):
        (tmp_path / "stand_in.py").write_text(_STAND_IN.format(act=act, completed=completed))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(bench, "_MODULE", "stand_in")
        return running_bench(tmp_path / "logs" / "bench.log", timeout_s)

    return start


def test_one_process_measures_load_after_load(started, tmp_path):
    with started() as running:
        running.measure(LOAD, base_url="http://b:2", tokenizer=tmp_path)
        said = running.measure(LOAD, base_url="http://a:1", tokenizer=tmp_path)["said"]
    assert said["--base-url"] == "http://a:1"
    assert said["--tokenizer"] == str(tmp_path)
    assert (said["--num-prompts"], said["--max-concurrency"]) == ("4", "2")
    assert said["--num-warmups"] == "3"
    assert (said["--random-input-len"], said["--random-output-len"]) == ("16", "8")
    assert said["--extra-body"] == '{"vllm_xargs": {"slimwise_mode": "full"}}'


@pytest.mark.parametrize(
    ("act", "completed", "message"),
    [
        ("pass", 3, "1 of 4 requests failed at a concurrency of 2"),
        ("raise SystemExit(1)", 4, "ended without a result"),
    ],
)
def test_a_load_that_fails_says_why(started, tmp_path, act, completed, message):
    failure = pytest.raises(EngineError, match=rf"(?s){message}.*warned")
    with started(act, completed) as running, failure:
        running.measure(LOAD, base_url="http://a:1", tokenizer=tmp_path)


def test_a_load_that_takes_too_long_is_given_up(started, tmp_path):
    failure = pytest.raises(EngineError, match=r"took more than 0\.1 s")
    with started("time.sleep(60)", timeout_s=0.1) as running, failure:
        running.measure(LOAD, base_url="http://a:1", tokenizer=tmp_path)
