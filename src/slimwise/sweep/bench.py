"""Runs of `vllm bench serve`, in a process that is started once."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.engine.api_key import API_KEY_VARIABLE
from slimwise.engine.command import SERVED_NAME
from slimwise.errors import EngineError

_MODULE = "slimwise_vllm.bench_serve"
_TAIL_LINES = 15


@dataclass(frozen=True)
class Load:
    """Requests of random prompts, `concurrency` of them in flight until all are answered.

    Answers are greedy, and as long as asked. body is what each request says beyond that. As many as
    num_warmups, all of one prompt, are answered before and not counted.
    """

    concurrency: int
    num_requests: int
    prompt_tokens: int
    output_tokens: int
    seed: int
    body: dict[str, Any]
    num_warmups: int = 0


class Bench:
    """The process; measure() is all there is to call."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, timeout_s: float) -> None:
        self._process, self._log, self._timeout_s = process, log, timeout_s

    def measure(self, load: Load, *, base_url: str, tokenizer: Path) -> dict[str, Any]:
        """What the benchmark reports of the load, times in ms.

        EngineError if a request fails, or if all of them take longer than the limit.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(_arguments(load, base_url, tokenizer)).encode())
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as failure:
            raise EngineError(f"vllm bench serve has ended. {self._tail()}") from failure
        if not select.select([self._process.stdout], [], [], self._timeout_s)[0]:
            raise EngineError(
                f"{load.num_requests} requests took more than {self._timeout_s:g} s. Raise "
                "serving.request_timeout_s, or ask less."
            )
        reply = self._process.stdout.readline()
        if not reply:
            raise EngineError(f"vllm bench serve ended without a result. {self._tail()}")
        return self._checked(json.loads(reply), load)

    def _checked(self, result: dict[str, Any], load: Load) -> dict[str, Any]:
        if result["completed"] != load.num_requests:
            raise EngineError(
                f"{load.num_requests - result['completed']} of {load.num_requests} requests failed "
                f"at a concurrency of {load.concurrency}. {self._tail()}"
            )
        return result

    def _tail(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"Log {self._log}, last lines:\n  " + "\n  ".join(lines[-_TAIL_LINES:])


@contextmanager
def running_bench(log: Path, timeout_s: float) -> Iterator[Bench]:
    """The benchmark, importing what it needs while others start, and gone after the block."""
    log.parent.mkdir(parents=True, exist_ok=True)
    command = (
        *(sys.executable, "-m", "slimwise.engine.child", str(os.getpid())),
        *(sys.executable, "-m", _MODULE),
    )
    environment = {
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OPENAI_API_KEY": os.environ.get(API_KEY_VARIABLE, "none"),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            bufsize=0,
        )
    try:
        yield Bench(process, log, timeout_s)
    finally:
        process.kill()
        process.communicate()


def _arguments(load: Load, base_url: str, tokenizer: Path) -> Sequence[str]:
    return (
        *("--base-url", base_url),
        *("--model", SERVED_NAME),
        *("--tokenizer", str(tokenizer)),
        *("--dataset-name", "random"),
        *("--random-input-len", str(load.prompt_tokens)),
        *("--random-output-len", str(load.output_tokens)),
        *("--num-prompts", str(load.num_requests)),
        *("--max-concurrency", str(load.concurrency)),
        *("--num-warmups", str(load.num_warmups)),
        *("--seed", str(load.seed)),
        *("--temperature", "0"),
        *("--extra-body", json.dumps(load.body)),
        *("--ignore-eos", "--disable-tqdm"),
    )
