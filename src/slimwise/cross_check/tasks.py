"""lm-eval's own tasks, with their data from where ours come from."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from slimwise.benchmarks.data import DataSource
from slimwise.benchmarks.maths import gsm8k, math_500

_NUM_SHOTS = MappingProxyType({"gsm8k": 5, "math_500": 4})


@dataclass(frozen=True)
class LmEvalTask:
    """Where lm-eval describes the task, below its folder of tasks, and the splits it reads."""

    file: str
    splits: Mapping[str, DataSource]


TASKS: Mapping[str, LmEvalTask] = MappingProxyType(
    {
        "gsm8k": LmEvalTask("gsm8k/gsm8k.yaml", {"train": gsm8k.TRAIN, "test": gsm8k.TEST}),
        "math_500": LmEvalTask("minerva_math/minerva_math500.yaml", {"test": math_500.TEST}),
    }
)


def task_name(benchmark: str) -> str:
    """The name under which lm-eval finds the task."""
    return f"slimwise_{benchmark}"


def write_task(benchmark: str, num_shots: int | None, data: Path | None, folder: Path) -> None:
    """A task file that changes lm-eval's in name, shots and source of the data only."""
    task = TASKS[benchmark]
    shots = _NUM_SHOTS[benchmark] if num_shots is None else num_shots
    description = {
        "include": str(resources.files("lm_eval.tasks") / task.file),
        "task": task_name(benchmark),
        "num_fewshot": shots,
        **_source(task.splits, data),
    }
    (folder / f"{task_name(benchmark)}.yaml").write_text(yaml.safe_dump(description), "utf-8")


def _source(splits: Mapping[str, DataSource], data: Path | None) -> dict[str, Any]:
    if data is not None:
        root = data.expanduser().resolve()
        files = {split: str(root / source.local) for split, source in splits.items()}
        return {
            "dataset_path": "json",
            "dataset_name": None,
            "dataset_kwargs": {"data_files": files},
        }
    source = splits["test"]
    return {
        "dataset_path": source.dataset,
        "dataset_name": source.subset,
        "dataset_kwargs": {"revision": source.revision},
    }
