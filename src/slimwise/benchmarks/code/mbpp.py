"""MBPP+: small tasks in a sentence, with evalplus's tests; prompts as in lm-eval's chat task."""

from slimwise.benchmarks.base import BenchmarkItem
from slimwise.benchmarks.code.program_benchmark import ProgramBenchmark
from slimwise.benchmarks.code.suite import tested_function
from slimwise.benchmarks.data import DataSource, Row
from slimwise.benchmarks.few_shot import conversation
from slimwise.benchmarks.settings import USUAL, DataSettings

TEST = DataSource(
    dataset="evalplus/mbppplus",
    revision="b2d74c91837c3f2a20c1299ae98133cbe7cfa077",
    split="test",
    local="mbppplus/MbppPlus-OriginFmt.jsonl",
    num_rows=378,
    columns=("task_id", "prompt", "code", "test_list", "test"),
)


def mbpp_plus(settings: DataSettings = USUAL) -> ProgramBenchmark:
    """MBPP+; findings by the assertions that lm-eval reads."""
    return ProgramBenchmark("mbpp_plus", TEST, _item, settings=settings)


def _item(row: Row) -> BenchmarkItem:
    task_id = f"Mbpp/{row['task_id']}"
    first = row["test_list"][0]
    question = f"{row['prompt']} Your code should satisfy the following assertion:\n{first}"
    reference = {
        "task_id": task_id,
        "entry_point": tested_function(row["test"]),
        "preamble": "",
        "canonical_solution": row["code"],
        "test": row["test"],
        "assertions": list(row["test_list"]),
    }
    return BenchmarkItem(task_id, conversation([], question), reference)
