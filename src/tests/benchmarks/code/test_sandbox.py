import os
import shutil
import subprocess
import sys
import time

import pytest

from slimwise.benchmarks.code import sandbox
from slimwise.benchmarks.code.sandbox import ProgramLimits, run_program
from slimwise.errors import SandboxError

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
LIMITS = ProgramLimits(time_s=10, memory_gib=1)


def run(body: str, inputs: str = "[[]]", limits: ProgramLimits = LIMITS):
    source = "def answer(*given):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    return run_program(source, "answer", inputs, limits)


def output(body: str, **changes):
    (only,) = run(body, **changes).outputs
    return only


def test_outputs_come_back_typed():
    outcome = run("return given[0]", "[[1], [True], [(1.5, inf)], [{'a': {2}}], [None]]")
    assert outcome.outputs == (
        ["int", "1"],
        ["bool", True],
        ["tuple", [["float", "1.5"], ["float", "inf"]]],
        ["dict", [[["str", "a"], ["set", [["int", "2"]]]]]],
        ["none", None],
    )


def test_one_failing_input_leaves_the_others():
    outcome = run("return 1 // given[0]", "[[1], [0]]")
    assert outcome.outputs == (["int", "1"], ["error", outcome.outputs[1][1]])
    assert "ZeroDivisionError" in outcome.outputs[1][1]


def test_an_object_that_equals_everything_is_only_an_object():
    body = "class Sly:\n    def __eq__(self, other): return True\nreturn Sly()"
    assert output(body) == ["object", "Sly"]


def test_a_list_that_equals_everything_is_its_content():
    body = "class Sly(list):\n    def __eq__(self, other): return True\nreturn Sly([3])"
    assert output(body) == ["list", [["int", "3"]]]


def test_a_fork_bomb_starts_nothing():
    body = "import os\ncount = 0\nwhile count < 9:\n    os.fork()\n    count += 1\nreturn count"
    assert output(body)[0] == "error"


def test_threads_are_refused_too():
    body = "import threading\nthreading.Thread(target=print).start()\nreturn 1"
    assert output(body)[0] == "error"


def test_the_environment_is_empty(monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "hunter2")
    found = output("import os\nreturn 'SECRET_KEY' in os.environ, os.path.exists('/proc')")
    assert found == ["tuple", [["bool", False], ["bool", False]]]


def test_the_program_is_nobody():
    assert output("import os\nreturn os.getuid()") == ["int", format(65534, "x")]


def test_libraries_can_be_imported():
    body = "import decimal, fractions\nimport numpy\nreturn numpy.arange(3)"
    assert output(body)[0] == "array"


def test_there_is_no_network():
    body = "import socket\nsocket.create_connection(('1.1.1.1', 53), 2)\nreturn 1"
    assert output(body)[0] == "error"


def test_a_server_on_this_machine_is_out_of_reach():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        body = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nreturn 1"
        assert output(body)[0] == "error"


@pytest.mark.parametrize("folder", ["/tmp", "/", "/dev", "/usr"])
def test_the_disk_cannot_be_filled(folder):
    body = (
        "written = 0\n"
        "for name in range(40):\n"
        f"    with open('{folder}/f%d' % name, 'wb') as out:\n"
        "        for _ in range(60):\n"
        "            written += out.write(bytes(1 << 20))\n"
        "return written"
    )
    assert output(body)[0] == "error"


def test_files_of_this_machine_are_not_there(tmp_path):
    (tmp_path / "notes").write_text("private")
    assert output(f"return open({str(tmp_path / 'notes')!r}).read()")[0] == "error"


def test_64_gb_are_not_to_be_had():
    assert output("return len(bytearray(64 << 30))")[0] == "error"


def test_an_endless_loop_ends_at_the_limit():
    start = time.monotonic()
    outcome = run("while True: pass", limits=ProgramLimits(2, 1))
    assert outcome.error
    assert time.monotonic() - start < 6


def test_sleeping_ends_at_the_limit():
    outcome = run("import time\ntime.sleep(60)", limits=ProgramLimits(1, 1))
    assert outcome.error == "not finished within 1 s"


def test_endless_output_is_cut():
    body = "import os\nwhile True: [os.write(n, bytes(1 << 20)) for n in range(3, 9)]"
    assert run(body, limits=ProgramLimits(5, 1)).error == "stopped at its limits"


@pytest.mark.parametrize("body", ["import os\nos._exit(0)", "import os\nos.kill(os.getpid(), 9)"])
def test_a_program_that_ends_itself_has_no_outputs(body):
    assert run(body).error == "stopped at its limits"


def test_exit_is_a_failure_of_its_input():
    assert output("raise SystemExit(0)")[0] == "error"


def test_the_grader_may_be_huge():
    script = (
        "import mmap\n"
        "huge = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
        "from slimwise.benchmarks.code.sandbox import ProgramLimits, run_program\n"
        "source = 'def answer(n): return n + 1'\n"
        "print(run_program(source, 'answer', '[[1]]', ProgramLimits(10, 1)).outputs)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout == "(['int', '2'],)\n", ended.stderr


@pytest.fixture
def fresh_command():
    """The command line is made anew for the test, and for those after it."""
    sandbox._command.cache_clear()
    yield
    sandbox._command.cache_clear()


@pytest.mark.usefixtures("fresh_command")
def test_an_interpreter_of_a_relative_path_is_found(monkeypatch):
    monkeypatch.setattr(sys, "executable", os.path.relpath(sys.executable))
    assert output("return 1") == ["int", "1"]


@pytest.mark.usefixtures("fresh_command")
def test_a_missing_sandbox_names_the_install_line(monkeypatch):
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(SandboxError, match="apt-get install -y bubblewrap"):
        run("return 1")
