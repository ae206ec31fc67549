import json
import resource
import signal

import pytest

from slimwise.errors import ArtifactError
from slimwise.sweep.point_log import PointLog


def test_a_point_is_found_again_with_its_origin(tmp_path):
    path = tmp_path / "60_serve" / "rows.jsonl"
    PointLog(path, commit="abc").append("p1", {"step_ms": 2.0})
    log = PointLog(path)
    assert "p1" in log
    assert "p2" not in log
    assert log.row("p1")["step_ms"] == 2.0
    assert log.row("p1")["commit"] == "abc"
    assert {"date", "hardware", "versions"} <= log.row("p1").keys()


def test_a_line_that_a_kill_cut_off_is_measured_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    PointLog(path).append("p1", {})
    path.write_text(path.read_text() + '{"point": "p2", "ste')
    log = PointLog(path)
    assert "p2" not in log
    log.append("p2", {"step_ms": 1.0})
    assert [json.loads(line)["point"] for line in path.read_text().splitlines()] == ["p1", "p2"]


def test_a_full_disk_costs_no_measured_point(tmp_path):
    path = tmp_path / "rows.jsonl"
    PointLog(path).append("p1", {})
    whole = path.read_text()
    path.write_text(whole + '{"point": "p2", "ste')
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 8, limits[1]))
        log = PointLog(path)
        with pytest.raises(ArtifactError, match="the same command resumes"):
            log.append("p2", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert "p2" not in log
    assert path.read_text() == whole


@pytest.mark.parametrize("line", ["no JSON", "[]", '{"step_ms": 1}'])
def test_a_whole_line_that_is_no_point_is_refused(tmp_path, line):
    path = tmp_path / "rows.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ArtifactError, match="no measured point"):
        PointLog(path)
