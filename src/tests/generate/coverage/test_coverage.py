from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tokenizers import Tokenizer

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.samples import COLUMNS, read_samples, write_samples
from slimwise.artifacts.tables import read_table
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.benchmarks.registry import benchmark_named
from slimwise.engine.chat import ChatRequest
from slimwise.errors import ConfigError
from slimwise.generate.chat_prompt import answer_tokens, prompt_lengths
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.coverage.config import CoverageConfig
from slimwise.generate.coverage.run import distinct_experts, run
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
EVALUATION = EvaluationConfig(
    benchmarks=("mini_maths",), num_items=2, budget_tokens=32, sampled_runs=0
)
MODEL = EMBEDDED_CHECKPOINT.resolve()


def count(chosen_NLK: list, lengths: list[int], batch: int) -> float:
    config = CoverageConfig(batches=(batch,), num_steps=50)
    generator = np.random.default_rng(0)
    return distinct_experts(np.array(chosen_NLK), lengths, batch, config, generator)


def test_distinct_experts_are_counted_by_layer_and_averaged():
    # Two answers of one token: layer 0 shares one of two experts, layer 1 both.
    chosen = [[[0, 1], [4, 5]], [[1, 2], [5, 4]]]
    assert count(chosen, [1, 1], batch=1) == 2.0
    assert count(chosen, [1, 1], batch=2) == pytest.approx((3 + 2) / 2)


def test_a_step_never_holds_two_tokens_of_one_answer():
    # Tokens of the first answer differ from each other, the second has one that is the same as its
    # first: a step of both answers reads 1 or 2 experts, never what two of the first would.
    chosen = [[[0]], [[0]], [[0]], [[1]]]
    assert count(chosen, [3, 1], batch=2) == 2.0


@pytest.fixture
def study(tmp_path) -> Path:
    """The miniature's record, and two greedy answers of a few tokens."""
    found = inspect_checkpoint(MODEL)
    record = BackboneRecord(
        name="miniature",
        model=MODEL,
        model_type=found.config["model_type"],
        architecture=found.config["architectures"][0],
        shape=found.shape,
        gate_rule=found.gate_rule,
        dtype="float32",
        digest="0",
    )
    write_backbone_record(tmp_path / "backbone.json", record, PROVENANCE)
    text = {"mode": "full", "deployment": "colocated", "decoding": "greedy", "decoder": "full"}
    text |= {"reasoning": "", "tool_calls": "[]", "finish_reason": "stop", "reference": "0"}
    numbers = dict.fromkeys(["run", "seed", "prompt_tokens", "completion_tokens", "attempts"], 0)
    rest = {"thought_split": False, "latency_s": 1.0, "benchmark": "mini_maths"}
    items = list(benchmark_named("mini_maths", EVALUATION.data_settings("mini_maths")).items(2))
    rows = [
        {**text, **numbers, **rest, "item_id": item.item_id, "content": "3+4=7"} for item in items
    ]
    frame = pd.DataFrame(rows)[list(COLUMNS)]
    write_samples(tmp_path / "samples.parquet", [frame], PROVENANCE)
    return tmp_path


@pytest.mark.parametrize("taken", [{"reasoning": "3+4"}, {"tool_calls": '[{"name": "add"}]'}])
def test_answers_that_a_server_took_apart_are_refused(study, taken):
    samples = read_samples(study / "samples.parquet").assign(**taken)
    write_samples(study / "samples.parquet", [samples], PROVENANCE)
    with pytest.raises(ConfigError, match=r"2 of 2 .* coverage\.batches"):
        measure(study, 1)


def measure(study: Path, *batches: int) -> pd.DataFrame:
    run(
        CoverageConfig(batches=batches, num_steps=20),
        evaluation=EVALUATION,
        backbone=study / "backbone.json",
        samples=study / "samples.parquet",
        out=study / "coverage.csv",
    )
    return read_table(study / "coverage.csv", COVERAGE_COLUMNS)


def test_one_token_reads_its_top_k_and_two_read_more(study):
    table = measure(study, 1, 2)
    assert table["distinct_experts"].iloc[0] == 4.0
    assert 4.0 < table["distinct_experts"].iloc[1] < 8.0
    # The table has six digits.
    assert table["pool_share_uniform"].tolist() == pytest.approx(
        [4 / 64, (8 - 1 / 4) / 64], rel=1e-5
    )


def test_more_sequences_than_answers_are_refused(study):
    with pytest.raises(ConfigError, match="2 greedy answers"):
        measure(study, 3)


def test_tokens_of_prompt_and_answer_are_those_of_the_whole_turn():
    request = ChatRequest(
        messages=({"role": "user", "content": "3 + 4?"},),
        tools=(),
        temperature=0.0,
        top_p=1.0,
        seed=0,
        max_tokens=8,
    )
    ((prompt, answer),) = answer_tokens([(request, "3+4=7")], MODEL)
    assert len(prompt) == prompt_lengths([request], MODEL)[0]
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    assert tokenizer.decode(answer) == "3+4=7"
