"""Benchmark data, if a checkout has it beside it or SLIMWISE_DATA names its folder."""

import os
from pathlib import Path

import pytest

from slimwise.benchmarks.settings import DataSettings, GradingLimits


@pytest.fixture(scope="session")
def data() -> DataSettings:
    """The published data of every benchmark."""
    beside = next(Path(__file__).parents[4].glob("*/data/gsm8k"), Path("absent")).parent
    folder = Path(os.environ.get("SLIMWISE_DATA", beside))
    if not (folder / "gsm8k").is_dir():
        pytest.skip("needs the benchmarks' data")
    return DataSettings(folder)


@pytest.fixture
def limits(tmp_path) -> GradingLimits:
    """Enough for every published solution."""
    return GradingLimits(
        workers=2, maths_timeout_s=30, program_time_s=120, program_memory_gib=6, cache=tmp_path
    )
