"""lm-eval itself, run against a server that answers what a test says."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pandas as pd
import pytest

from slimwise.artifacts.backbone_record import read_backbone_record, write_backbone_record
from slimwise.artifacts.grades import COLUMNS as GRADE_COLUMNS
from slimwise.artifacts.grades import write_grades
from slimwise.artifacts.tables import read_table
from slimwise.benchmarks.registry import benchmark_named
from slimwise.cross_check.config import CrossCheckConfig
from slimwise.cross_check.run import COLUMNS, run
from slimwise.engine.config import ServingConfig
from slimwise.errors import ArtifactError, EngineError
from slimwise.generate.config import EvaluationConfig
from slimwise.grade.config import GradeConfig
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance

from ..played_server import Asked, played_server

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
SERVING = ServingConfig(max_model_len_tokens=4096, request_timeout_s=60)
NUM_ITEMS = 3


class Server:
    """Answers by question; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict] = []
        self.answers: dict[str, str] = {}
        self.url = ""

    def reply(self, asked: Asked) -> tuple[int, str]:
        self.asked.append(asked.body)
        answer = self.answers[asked.body["messages"][-1]["content"]]
        message = {"role": "assistant", "content": answer}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return 200, json.dumps({"choices": choices})

    @contextmanager
    def serve(self, model, serving, log):
        """Stands in for slimwise.engine.deployment.serve."""
        yield self.url


@pytest.fixture
def server(monkeypatch):
    server = Server()
    monkeypatch.setattr("slimwise.cross_check.run.serve", server.serve)
    with played_server(server.reply) as server.url:
        yield server


@pytest.fixture
def cross_check(tmp_path, inspected, data):
    """A function that checks one benchmark, of which we graded the first item as right."""

    def check(
        name: str, *, num_graded: int = NUM_ITEMS, model_type: str = "qwen3_5_moe_text"
    ) -> pd.DataFrame:
        backbone = inspected(EMBEDDED_CHECKPOINT.resolve())
        record = replace(read_backbone_record(backbone), model_type=model_type)
        write_backbone_record(backbone, record, PROVENANCE)
        items = benchmark_named(name, data).items(num_graded)
        rows = [
            dict.fromkeys(GRADE_COLUMNS, "")
            | {
                "benchmark": name,
                "item_id": item.item_id,
                "decoding": "greedy",
                "correct": index == 0,
                "hit_budget": False,
                "run": 0,
                "completion_tokens": 9,
            }
            for index, item in enumerate(items)
        ]
        write_grades(tmp_path / "grades.parquet", pd.DataFrame(rows), PROVENANCE)
        run(
            CrossCheckConfig.model_validate({"benchmarks": [name], "num_items": NUM_ITEMS}),
            evaluation=EvaluationConfig(
                benchmarks=(name,), data_folder=str(data.folder), budget_tokens=512, concurrency=2
            ),
            grading=GradeConfig(workers=1, maths_timeout_s=30),
            serving=SERVING,
            backbone=backbone,
            grades=tmp_path / "grades.parquet",
            out=tmp_path / "table.csv",
            work=tmp_path / "work",
        )
        return read_table(tmp_path / "table.csv", COLUMNS)

    return check


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "form"), [("gsm8k", "so,\u2028\n#### {}"), ("math_500", "so $\\boxed{{{}}}$.")]
)
def test_lm_eval_asks_the_same_and_its_scores_stand_beside_ours(
    name, form, server, cross_check, data
):
    items = benchmark_named(name, data).items(NUM_ITEMS)
    for index, item in enumerate(items):
        gold = item.reference["answer"] if index < 2 else "12345"
        question = item.messages[-1]["content"]
        server.answers[question] = f"Question: is it \\boxed{{1}}?</think>{form.format(gold)}"
    table = cross_check(name)
    asked = {body["messages"][-1]["content"]: body for body in server.asked}
    assert len(server.asked) == NUM_ITEMS
    for item in items:
        body = asked[item.messages[-1]["content"]]
        assert body["messages"] == list(item.messages)
        assert (body["temperature"], body["max_tokens"]) == (0, 512)
        assert not body["stop"]
        assert body["chat_template_kwargs"] == {"enable_thinking": True}
    scores = dict(
        zip(zip(table["answers"], table["scorer"], strict=True), table["accuracy"], strict=True)
    )
    assert scores["slimwise", "slimwise"] == pytest.approx(1 / 3, abs=1e-3)
    assert scores["lm_eval", "slimwise"] == pytest.approx(2 / 3, abs=1e-3)
    theirs = {"gsm8k": "exact_match,strict-match", "math_500": "math_verify"}[name]
    assert scores["lm_eval", f"lm_eval {theirs}"] == pytest.approx(2 / 3, abs=1e-3)
    assert set(table["num_items"]) == {NUM_ITEMS}


@pytest.mark.parametrize(
    ("model_type", "thought_end"), [("qwen3_5_moe_text", "</think>"), ("gemma4", "<channel|>")]
)
def test_thoughts_end_as_the_family_ends_them(
    cross_check, server, monkeypatch, model_type, thought_end
):
    class StoppedError(Exception):
        """Ends the stage once lm-eval would start."""

    def stop(command, log):
        model = json.loads(command[command.index("--model_args") + 1])
        assert model["think_end_token"] == thought_end
        raise StoppedError

    monkeypatch.setattr("slimwise.cross_check.lm_eval_run._run", stop)
    with pytest.raises(StoppedError):
        cross_check("gsm8k", model_type=model_type)


def test_items_that_we_did_not_grade_are_named(server, cross_check):
    with pytest.raises(ArtifactError, match="no greedy answer to gsm8k item 2 and 0 others"):
        cross_check("gsm8k", num_graded=2)
    assert not server.asked


@pytest.mark.slow
def test_a_failure_of_lm_eval_is_told_with_its_last_words(cross_check, monkeypatch, server):
    monkeypatch.setattr("slimwise.cross_check.run.write_task", lambda *_: None)
    with pytest.raises(
        EngineError, match=r"status 1: ValueError: Tasks not found: slimwise_gsm8k\. More is in"
    ):
        cross_check("gsm8k")
