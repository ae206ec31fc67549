import subprocess
import sys

import pytest

from slimwise.errors import ArtifactError, WorkDirectoryBusyError
from slimwise.work_directory import work_directory

_HOLD_FOREVER = """
import sys, time
from pathlib import Path
from slimwise.work_directory import work_directory
with work_directory(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_folder_is_made_and_released(tmp_path):
    path = tmp_path / "work" / "calibrate"
    for _ in range(2):
        with work_directory(path) as folder:
            assert folder.is_dir()


def test_a_second_holder_is_refused_at_once_and_told_who_holds_it(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD_FOREVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(WorkDirectoryBusyError, match=str(holder.pid)), work_directory(tmp_path):
            pass
    finally:
        holder.kill()
        holder.wait()
    with work_directory(tmp_path):
        pass


def test_a_path_under_a_file_is_refused_by_name(tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    with pytest.raises(ArtifactError, match="file"), work_directory(blocker / "work"):
        pass
