import json
import os
from functools import partial

import pytest

from slimwise.errors import ArtifactError
from slimwise.report.tables.stage_times import stage_times as times_of

stage_times = partial(times_of, pools={"reap-m32"})
HEADER = "s\th:m:s\tmax_rss\n"


@pytest.fixture
def benchmarks(tmp_path):
    """Timings of two jobs; the one later in the alphabet ended first."""
    folder = tmp_path / "benchmarks"
    (folder / "export").mkdir(parents=True)
    first, second = folder / "select.tsv", folder / "export" / "reap-m32.tsv"
    first.write_text(HEADER + "2.0\t0:00:02\t-\n4.0\t0:00:04\t-\n")
    second.write_text(HEADER + "7.5\t0:00:07\t81.2\n")
    os.utime(first, (100, 100))
    os.utime(second, (200, 200))
    return folder


def test_jobs_in_the_order_they_ended_after_the_set_up(benchmarks, tmp_path):
    record = tmp_path / "setup.json"
    record.write_text(json.dumps({"seconds": 61.5}))
    rows = stage_times(benchmarks, record).to_numpy().tolist()
    assert rows == [["set_up", 61.5], ["select", 3.0], ["export/reap-m32", 7.5]]


def test_set_up_is_left_out_where_nothing_recorded_it(benchmarks):
    assert list(stage_times(benchmarks, None)["stage"]) == ["select", "export/reap-m32"]


def test_decoders_of_an_earlier_configuration_are_left_out(benchmarks):
    for name in ("reap-m16", "reap-m32-kd_zero-colocated", "ean-m32-kd_zero", "full"):
        (benchmarks / "export" / f"{name}.tsv").write_text(HEADER + "1.0\t0:00:01\t-\n")
    found = set(stage_times(benchmarks, None)["stage"])
    assert found == {"select"} | {
        f"export/{name}" for name in ("reap-m32", "reap-m32-kd_zero-colocated", "full")
    }


def test_no_timings_are_refused(tmp_path):
    with pytest.raises(ArtifactError, match="no timings under"):
        stage_times(tmp_path / "absent", None)


@pytest.mark.parametrize("text", ["", "seconds\n3\n", HEADER + "-\t-\t-\n"])
def test_a_timing_without_seconds_is_refused(benchmarks, text):
    (benchmarks / "select.tsv").write_text(text)
    with pytest.raises(ArtifactError, match=r"select\.tsv has no numeric column"):
        stage_times(benchmarks, None)


def test_a_set_up_record_without_seconds_is_refused(benchmarks, tmp_path):
    (tmp_path / "setup.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"setup\.json is not"):
        stage_times(benchmarks, tmp_path / "setup.json")
