"""Runs lm-eval against a server and reads what it saved."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.cross_check.tasks import task_name
from slimwise.engine.api_key import api_key
from slimwise.engine.command import SERVED_NAME
from slimwise.errors import EngineError


@dataclass(frozen=True)
class LmEvalResult:
    """The answers lm-eval was given, thoughts cut off, and the mean of each of its metrics."""

    answers: tuple[str, ...]
    metrics: Mapping[str, float]


def run_lm_eval(
    base_url: str,
    benchmarks: Sequence[str],
    *,
    num_items: int,
    budget_tokens: int,
    concurrency: int,
    template_words: Mapping[str, Any],
    thought_end: str,
    timeout_s: float,
    folder: Path,
) -> dict[str, LmEvalResult]:
    """lm-eval's results by benchmark, from the task files in the folder.

    Its tasks' stop strings are left out: they would cut thoughts. EngineError if lm-eval fails.
    """
    model = {
        "model": SERVED_NAME,
        "base_url": f"{base_url}/v1/chat/completions",
        "num_concurrent": concurrency,
        "timeout": timeout_s,
        "think_end_token": thought_end,
    }
    decoding = {
        "temperature": 0,
        "max_gen_toks": budget_tokens,
        "until": [],
        "skip_special_tokens": False,
        "chat_template_kwargs": template_words,
    }
    command = [
        *(sys.executable, "-m", "lm_eval", "run", "--model", "local-chat-completions"),
        *("--model_args", json.dumps(model), "--gen_kwargs", json.dumps(decoding)),
        *("--tasks", ",".join(map(task_name, benchmarks)), "--include_path", str(folder)),
        *("--limit", str(num_items), "--apply_chat_template", "--log_samples"),
        *("--output_path", str(folder / "results")),
    ]
    _run(command, folder / "lm_eval.log")
    return {name: _result(name, folder / "results") for name in benchmarks}


def _run(command: Sequence[str], log: Path) -> None:
    # The client insists on a key.
    environment = os.environ | {"OPENAI_API_KEY": api_key() or "none"}
    with log.open("wb") as output:
        ended = subprocess.run(
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False
        )
    if ended.returncode:
        last = log.read_text("utf-8", errors="replace").strip().rpartition("\n")[2]
        raise EngineError(
            f"lm-eval ended with status {ended.returncode}: {last}. More is in {log}. Leave "
            "cross_check.benchmarks out to do without it."
        )


def _result(benchmark: str, results: Path) -> LmEvalResult:
    name = task_name(benchmark)
    (summary,) = results.rglob("results_*.json")
    (samples,) = results.rglob(f"samples_{name}_*.jsonl")
    # As bytes: text also ends lines where JSON does not, at U+2028 and others.
    rows = [json.loads(line) for line in samples.read_bytes().splitlines()]
    # One row for each filter of each item; all filters saw the same answer.
    answers = {row["doc_id"]: row["resps"][0][0] for row in rows}
    scores = json.loads(summary.read_bytes())["results"][name]
    metrics = {
        re.sub(r",none$", "", key): value
        for key, value in scores.items()
        if "," in key and "_stderr" not in key
    }
    return LmEvalResult(tuple(answers[index] for index in sorted(answers)), metrics)
