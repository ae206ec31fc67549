"""The kernel tuner: `python -m slimwise_vllm.moe_tuning.run --plan PLAN --out ROWS --kernels DIR`.

A row for each shape and batch says what was found, and how fast it is beside what vLLM takes by
itself. A batch that has its row, of the same device, Triton and skew, is not tuned again, so that a
run that was killed goes on where it stopped. A shape with rows for all batches gets its file in the
folder of kernels, where vLLM finds it by VLLM_TUNED_CONFIG_FOLDER.
"""

import argparse
import json
import logging
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from slimwise_vllm.decode_bench.folders import expert_widths, moe_shape
from slimwise_vllm.moe_tuning.candidates import all_candidates
from slimwise_vllm.moe_tuning.compilation import compile_beforehand
from slimwise_vllm.moe_tuning.kernel_files import file_name, write_kernel_file
from slimwise_vllm.moe_tuning.layer import ExpertShape
from slimwise_vllm.moe_tuning.plan import TuningPlan
from slimwise_vllm.moe_tuning.tune import KnownKernels, Row, tokens_per_expert, tune_shape
from slimwise_vllm.row_writer import RowWriter

_log = logging.getLogger("slimwise_vllm.moe_tuning")


def main() -> None:
    """Tune what the plan asks for and no row tells yet."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    plan = TuningPlan.model_validate_json(arguments.plan.read_text("utf-8"))
    conditions = _conditions(plan)
    known = KnownKernels(_rows(arguments.out), conditions)
    shapes = _shapes(plan)
    _compile_missing(shapes, known, plan)
    writer = RowWriter(arguments.out, arguments.commit)
    for shape in shapes:
        for found in tune_shape(shape, known.missing(shape, plan), plan):
            row = {**conditions, "shape": asdict(shape), **found}
            writer.write(row)
            known.add(row)
        path = arguments.kernels / file_name(shape)
        write_kernel_file(path, known.of(shape, plan), conditions["triton"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Tune vLLM's MoE kernel for pruned shapes.")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="rows are appended, JSON lines")
    parser.add_argument("--kernels", type=Path, required=True, help="folder of vLLM's files")
    parser.add_argument("--commit", help="commit to record where git is not at hand")
    return parser.parse_args()


def _conditions(plan: TuningPlan) -> dict[str, Any]:
    """What settings are the fastest for, besides shape and batch."""
    from vllm.triton_utils import triton

    return {
        "device": torch.cuda.get_device_name(),
        "skew_strength": plan.skew_strength,
        "triton": triton.__version__,
    }


def _rows(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _shapes(plan: TuningPlan) -> list[ExpertShape]:
    _, num_experts_full, top_k = moe_shape(plan.model_config_file)
    widths = expert_widths(plan.model_config_file)
    return [ExpertShape(kept, num_experts_full, top_k, *widths) for kept in plan.num_experts]


def _compile_missing(shapes: Iterable[ExpertShape], known: KnownKernels, plan: TuningPlan) -> None:
    loads = [
        tokens_per_expert(shape, batch) for shape in shapes for batch in known.missing(shape, plan)
    ]
    if not loads:
        return
    started = time.perf_counter()
    configs = all_candidates(loads)
    compile_beforehand(_shapes(plan)[0], configs, plan.compile_processes)
    _log.info("compiled %d settings in %.0f s", len(configs), time.perf_counter() - started)


if __name__ == "__main__":
    main()
