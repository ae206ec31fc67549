from contextlib import contextmanager
from pathlib import Path

import pytest

from slimwise.artifacts.manifest import MANIFEST_NAME
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.artifacts.samples import read_samples
from slimwise.core.vocabulary import Criterion, DecoderId, Distillation, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import DecodeCounts
from slimwise.engine.deployment import RunningDeployment
from slimwise.engine.process import RunningServers
from slimwise.errors import (
    ArtifactError,
    BackboneError,
    ConfigError,
    EngineError,
    InvalidAnswersError,
)
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.run import run
from slimwise.paths import EMBEDDED_CHECKPOINT

CONFIG = EvaluationConfig(
    benchmarks=("mini_maths", "mini_tools"),
    num_items=5,
    sampled_runs=2,
    budget_tokens=64,
    concurrency=1,  # an answer still on its way when a run stops is rightly asked for again
)
SERVING = ServingConfig(max_model_len_tokens=640)
NUM_ANSWERS = 2 * 5 * 3
REAP = DecoderId(Criterion.REAP, 32)
DISTILLED = DecoderId(Criterion.REAP, 32, Distillation.UNIFORM)


@pytest.fixture
def generate(tmp_path, backbone):
    """Runs the stage for the full decoder and gives the samples."""

    def run_stage(config: EvaluationConfig = CONFIG, **changes):
        arguments = {
            "serving": SERVING,
            "backbone": backbone,
            "checkpoint": None,
            "decoder": DecoderId(),
            "out": tmp_path / "samples.parquet",
            "work": tmp_path / "work",
        }
        run(config, **(arguments | changes))
        return read_samples(tmp_path / "samples.parquet")

    return run_stage


def test_every_item_is_answered_once_a_run(decoder, generate):
    samples = generate()
    assert len(samples) == NUM_ANSWERS
    assert not samples.duplicated(["benchmark", "item_id", "decoding", "run"]).any()
    assert list(samples["run"].value_counts()) == [20, 10]
    assert set(decoder.asked.values()) == {1}


def test_runs_differ_in_seed_and_studies_do_not(decoder, generate):
    samples = generate()
    assert samples["seed"].equals(generate()["seed"])
    sampled = samples[samples["decoding"] == "sampled"]
    assert sampled["seed"].is_unique


def test_a_stopped_run_resumes_without_losing_or_repeating(decoder, generate, tmp_path):
    decoder.limit = 11
    with pytest.raises(EngineError, match="status 400"):
        generate()
    (log,) = (tmp_path / "work").glob("answers-*.jsonl")
    with log.open("ab") as content:
        content.write(b'{"benchmark": "mini_ma')
    decoder.limit = NUM_ANSWERS
    assert len(generate()) == NUM_ANSWERS
    assert set(decoder.asked.values()) == {1}


def test_answers_of_other_settings_are_not_reused(decoder, generate):
    decoder.limit = 11
    with pytest.raises(EngineError):
        generate()
    decoder.limit = 10**9
    generate(CONFIG.model_copy(update={"budget_tokens": 65}))
    assert decoder.asked.total() == 11 + NUM_ANSWERS


def test_a_changed_concurrency_keeps_the_answers(decoder, generate):
    decoder.limit = 11
    with pytest.raises(EngineError):
        generate()
    decoder.limit = NUM_ANSWERS
    generate(CONFIG.model_copy(update={"concurrency": 4}))
    assert decoder.asked.total() == NUM_ANSWERS


def test_a_finished_run_leaves_no_answers_to_resume_from(decoder, generate, tmp_path):
    generate()
    assert not list((tmp_path / "work").glob("answers-*"))


@pytest.mark.parametrize(
    ("config", "changes", "failure", "message"),
    [
        ({"benchmarks": ("mini_math",)}, {}, ConfigError, "did you mean mini_maths"),
        ({"budget_tokens": 639}, {}, ConfigError, r"evaluation\.budget_tokens = 639"),
        ({"greedy": False, "sampled_runs": 0}, {}, ConfigError, "nothing to ask"),
        ({}, {"checkpoint": Path("manifest.json")}, ConfigError, "full decoder takes neither"),
        ({}, {"decoder": REAP}, ConfigError, "a pruned one exactly one"),
        ({}, {"decoder": REAP, "pool": [Path("k.json")]}, ConfigError, "nothing to ask"),
        ({}, {"decoder": DISTILLED, "pool": [Path("k.json")]}, ConfigError, "was given 1 files"),
    ],
)
def test_bad_input_is_refused_before_a_server_starts(
    decoder, generate, config, changes, failure, message
):
    with pytest.raises(failure, match=message):
        generate(CONFIG.model_copy(update=config), **changes)
    assert decoder.starts == 0


@pytest.mark.parametrize(
    ("manifest", "failure"),
    [(EMBEDDED_CHECKPOINT / MANIFEST_NAME, "mini_backbone/1"), (Path("gone.json"), "cannot read")],
)
def test_a_manifest_that_is_no_checkpoints_is_refused(decoder, generate, manifest, failure):
    with pytest.raises(ArtifactError, match=failure):
        generate(decoder=REAP, checkpoint=manifest)
    assert decoder.starts == 0


def test_a_checkpoint_without_a_model_is_refused(decoder, generate, exported):
    (exported.parent / "config.json").unlink()
    with pytest.raises(BackboneError, match=r"has no config\.json"):
        generate(decoder=REAP, checkpoint=exported)
    assert decoder.starts == 0


def test_one_server_answers_every_colocated_mode(decoder, generate, tmp_path):
    keep_set = tmp_path / "reap-m32.json"
    keep_set.write_text("{}")
    counts = {ServingMode.SLIMWISE: (32, 16), ServingMode.REVERSE: (32,)}
    config = CONFIG.model_copy(update={"colocated_num_kept": counts})
    samples = generate(config, decoder=REAP, pool=[keep_set])
    assert decoder.starts == 1
    assert decoder.pools == {"reap-m32": PoolFiles(keep_set=keep_set)}
    assert samples["mode"].value_counts().to_dict() == {
        "slimwise": NUM_ANSWERS,
        "reverse": NUM_ANSWERS,
    }
    assert {key[3] for key in decoder.asked} == {"slimwise", "reverse"}
    seeds = samples.groupby("mode")["seed"].apply(list)
    assert seeds["slimwise"] == seeds["reverse"]


def test_a_distilled_decoders_pool_has_its_trained_tensors(decoder, generate, tmp_path):
    keep_set, trained = tmp_path / "reap-m32.json", tmp_path / "manifest.json"
    keep_set.write_text("{}")
    trained.write_text("{}")
    samples = generate(decoder=DISTILLED, pool=[keep_set, trained])
    files = PoolFiles(keep_set=keep_set, trained=trained)
    assert decoder.pools == {"reap-m32-kd_uniform": files}
    assert set(samples["decoder"]) == {"reap-m32-kd_uniform"}


def test_the_floor_asks_more_items_greedily_only(decoder, generate):
    samples = generate(CONFIG.model_copy(update={"floor_items": 8}))
    items = samples.groupby(["decoding", "benchmark"])["item_id"].nunique()
    assert items["greedy"].to_list() == [8, 8]
    assert items["sampled"].to_list() == [5, 5]


@pytest.fixture
def apart(decoder, monkeypatch, exported):
    """Stands in for a deployment with a decode server, whose counts a test may change."""
    counted = [
        DecodeCounts(7, 7, 0, 99, 1, 0),
        DecodeCounts(7 + NUM_ANSWERS, 7 + NUM_ANSWERS, 0, 999, 1, 0),
    ]

    @contextmanager
    def serve(prefill, decode, serving, layout, folder):
        decoder.starts += 1
        assert (prefill.folder, decode.folder) == (EMBEDDED_CHECKPOINT.resolve(), exported.parent)
        yield RunningDeployment(decoder.url, (), (), (), RunningServers())

    monkeypatch.setattr("slimwise.generate.run.serve_disaggregated", serve)
    monkeypatch.setattr("slimwise.generate.run.decode_counts", lambda *_: counted.pop(0))
    return counted


DISAGGREGATED = {
    "decoder": REAP,
    "disaggregation": DisaggregationConfig(),
}


def test_a_disaggregated_decoder_is_asked_in_its_one_mode(apart, generate, exported):
    samples = generate(checkpoint=exported, **DISAGGREGATED)
    assert set(samples["deployment"]) == {"disaggregated"}
    assert set(samples["mode"]) == {"slimwise"}
    assert len(samples) == NUM_ANSWERS


def test_answers_of_servers_that_start_otherwise_are_not_reused(apart, decoder, generate, exported):
    decoder.limit = 11
    with pytest.raises(EngineError):
        generate(checkpoint=exported, **DISAGGREGATED)
    decoder.limit = 10**9
    apart[:] = [DecodeCounts(0, 0, 0, 0, 0, 0)] * 2
    other = DisaggregationConfig(decode_args=("--quantization", "fp8"))
    generate(checkpoint=exported, decoder=REAP, disaggregation=other)
    assert decoder.asked.total() == 11 + NUM_ANSWERS


def test_another_port_of_two_servers_keeps_the_answers(apart, decoder, generate, exported):
    decoder.limit = 11
    with pytest.raises(EngineError):
        generate(checkpoint=exported, **DISAGGREGATED)
    decoder.limit = NUM_ANSWERS
    apart[:] = [DecodeCounts(0, 0, 0, 0, 0, 0)] * 2
    elsewhere = DisaggregationConfig(decode_port=8001, shares_gpus=True)
    generate(checkpoint=exported, decoder=REAP, disaggregation=elsewhere)
    assert decoder.asked.total() == NUM_ANSWERS


def test_answers_of_a_decode_server_that_prefilled_are_refused_and_forgotten(
    apart, decoder, generate, tmp_path, exported
):
    apart[1] = DecodeCounts(7 + NUM_ANSWERS, 7 + 2 * NUM_ANSWERS, 0, 99, 1, 0)
    with pytest.raises(InvalidAnswersError, match=f"{NUM_ANSWERS} prompt tokens beyond the last"):
        generate(checkpoint=exported, **DISAGGREGATED)
    assert not (tmp_path / "samples.parquet").exists()
    assert not list((tmp_path / "work").glob("answers-*"))


def test_a_disaggregated_decoder_needs_its_checkpoint(apart, generate, tmp_path):
    with pytest.raises(ConfigError, match="from its checkpoint"):
        generate(pool=[tmp_path / "kept.json"], **DISAGGREGATED)
