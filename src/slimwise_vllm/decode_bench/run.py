"""The decode benchmark: `python -m slimwise_vllm.decode_bench.run --plan PLAN --out ROWS`.

Engines run one after another, each in a process of its own, because one GPU holds one of them.
Finished rows are on disk at once, so a run that is killed keeps them; --engine picks engines, and
rows are appended, so that a plan can be measured in several calls.
"""

import argparse
import logging
import subprocess
import sys
import time
from pathlib import Path

from slimwise_vllm.decode_bench.plan import BenchPlan
from slimwise_vllm.row_writer import RowWriter

_log = logging.getLogger("slimwise_vllm.decode_bench")
_LONG_COLUMNS = ("block_step_ms",)


def main() -> int:
    """Measure the plan's engines; the number of those that failed is the exit status."""
    arguments = _arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    plan = BenchPlan.model_validate_json(arguments.plan.read_text("utf-8"))
    names = [engine.name for engine in plan.engines]
    unknown = set(arguments.engine or ()) - set(names)
    if unknown:
        raise SystemExit(f"--engine {', '.join(sorted(unknown))}: the plan has {', '.join(names)}")
    if arguments.alone:
        _measure_here(plan, arguments)
        return 0
    return sum(_measure_apart(name, arguments) for name in arguments.engine or names)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time the decode steps of a plan's engines.")
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="rows are appended, JSON lines")
    parser.add_argument("--work", type=Path, default=Path("decode_bench_work"))
    parser.add_argument("--engine", action="append", help="measure only this one; may repeat")
    parser.add_argument("--commit", help="commit to record where git is not at hand")
    parser.add_argument("--alone", action="store_true", help="measure it in this process")
    return parser.parse_args()


def _measure_apart(name: str, arguments: argparse.Namespace) -> int:
    """Measure one engine in a new process; 1 if that fails, and the next engine has its turn."""
    command = [sys.executable, "-m", "slimwise_vllm.decode_bench.run", "--alone"]
    command += ["--plan", str(arguments.plan), "--out", str(arguments.out), "--engine", name]
    command += ["--work", str(arguments.work)]
    command += ["--commit", arguments.commit] if arguments.commit else []
    started = time.perf_counter()
    status = subprocess.run(command, check=False).returncode
    _log.info("engine %s: status %d, %.0f s", name, status, time.perf_counter() - started)
    return int(status != 0)


def _measure_here(plan: BenchPlan, arguments: argparse.Namespace) -> None:
    from slimwise_vllm.decode_bench.engine import start_engine
    from slimwise_vllm.decode_bench.measure import EngineMeasurement
    from slimwise_vllm.decode_bench.skew_strength import skew_strength

    (name,) = arguments.engine
    engine = next(engine for engine in plan.engines if engine.name == name)
    arguments.work.mkdir(parents=True, exist_ok=True)
    writer = RowWriter(arguments.out, arguments.commit, _LONG_COLUMNS)
    strength = skew_strength(plan, engine, arguments.out)
    started = start_engine(plan, engine, arguments.work)
    EngineMeasurement(plan, engine, started, writer.write).measure(strength)


if __name__ == "__main__":
    sys.exit(main())
