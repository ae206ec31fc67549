import platform
import signal
import subprocess
import sys

_STAGE = (
    "import time; from slimwise.engine_watch import end_with_the_engine as e; e(); time.sleep(60)"
)


def _stage(engine: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", _STAGE], env={"SLIMWISE_ENGINE": engine})


def test_a_stage_ends_with_a_killed_engine():
    engine = subprocess.Popen(["sleep", "60"])
    stage = _stage(f"{platform.node()}:{engine.pid}")
    assert stage.poll() is None
    engine.kill()
    engine.wait()
    assert stage.wait(timeout=20) == -signal.SIGTERM


def test_a_stage_on_another_host_or_by_hand_goes_on():
    for engine in ("another-host:1", ""):
        stage = _stage(engine)
        try:
            stage.wait(timeout=1.5)
        except subprocess.TimeoutExpired:
            stage.kill()
            stage.wait()
        else:
            raise AssertionError(f"stage ended with {stage.returncode}")
