"""HumanEval+: functions to complete, with evalplus's tests; prompts as in lm-eval's chat task."""

from types import MappingProxyType

from slimwise.benchmarks.base import BenchmarkItem
from slimwise.benchmarks.code.program import preamble_of
from slimwise.benchmarks.code.program_benchmark import ProgramBenchmark
from slimwise.benchmarks.data import DataSource, Row
from slimwise.benchmarks.few_shot import conversation
from slimwise.benchmarks.settings import USUAL, DataSettings

TEST = DataSource(
    dataset="evalplus/humanevalplus",
    revision="d32357cf319e50e9c8d8dab5ea876c72b0fd321b",
    split="test",
    local="humanevalplus/HumanEvalPlus-OriginFmt.jsonl",
    num_rows=164,
    columns=("task_id", "prompt", "canonical_solution", "entry_point", "test"),
)
BROKEN = MappingProxyType({"HumanEval/32": "its assertion compares a root with its polynomial"})
"""Items that no program passes, by what is wrong with them."""


def humaneval_plus(settings: DataSettings = USUAL) -> ProgramBenchmark:
    """HumanEval+; what the prompt defines is there for answers."""
    return ProgramBenchmark("humaneval_plus", TEST, _item, broken=BROKEN, settings=settings)


def _item(row: Row) -> BenchmarkItem:
    prompt, entry = row["prompt"], row["entry_point"]
    question = (
        "Write a solution to the following problem and make sure that it passes the tests:\n"
        f"```python\n{prompt}\n```\n"
    )
    reference = {
        "task_id": row["task_id"],
        "entry_point": entry,
        "preamble": preamble_of(prompt, entry),
        "canonical_solution": prompt + row["canonical_solution"],
        "test": row["test"],
        "assertions": [],
    }
    return BenchmarkItem(row["task_id"], conversation([], question), reference)
