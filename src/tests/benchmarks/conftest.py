import pytest

from slimwise.benchmarks.settings import GradingLimits


@pytest.fixture
def limits(tmp_path) -> GradingLimits:
    """Enough for every published solution."""
    return GradingLimits(
        workers=2, maths_timeout_s=30, program_time_s=120, program_memory_gib=6, cache=tmp_path
    )
