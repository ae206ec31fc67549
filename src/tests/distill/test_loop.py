import csv
import os
import random
import signal
import sys
from pathlib import Path

import pytest
import torch

from slimwise.artifacts.distill_log import LOG_COLUMNS, LOG_NAME
from slimwise.core.vocabulary import Distillation
from slimwise.distill.loop import distil
from slimwise.errors import SlimWiseError
from slimwise.processes import Processes

ALONE = Processes(0, 1)


class Numbers:
    """Sequences that count; kill_at is the draw in which the process dies."""

    def __init__(self, kill_at: int | None = None) -> None:
        self._kill_at = kill_at
        self._num_drawn = 0

    def draw(self, rng: random.Random) -> list[int]:
        self._num_drawn += 1
        if self._num_drawn == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        first = rng.randrange(1, 32)
        return [first + n % 7 for n in range(rng.randrange(8, 30))]


def _settings(config, **changes):
    return config(
        steps=6, batch_sequences=4, learning_rate=1e-2, warmup_steps=2, checkpoint_every_steps=2,
        micro_batch_tokens=128, max_sequence_tokens=32, **changes,
    )  # fmt: skip


def _rows(work: Path) -> list[dict[str, str]]:
    with (work / LOG_NAME).open() as log:
        return [{**row, "seconds": ""} for row in csv.DictReader(log)]


def _run(student, settings, work, source=None, rule=Distillation.UNIFORM):
    work.mkdir(exist_ok=True)
    distil(student, source or Numbers(), rule, settings, work=work, processes=ALONE)
    return {name: weight.detach().clone() for name, weight in student.trained().items()}


def test_only_the_trained_set_moves(build_student, config, tmp_path):
    student = build_student()
    frozen = {
        name: weight.clone()
        for name, weight in student.model.state_dict(keep_vars=True).items()
        if not weight.requires_grad
    }
    before = {name: weight.clone() for name, weight in student.trained().items()}
    after = _run(student, _settings(config), tmp_path)
    for name, weight in student.model.state_dict().items():
        assert name not in frozen or torch.equal(weight, frozen[name]), name
    assert all(not torch.equal(after[name], before[name]) for name in after)
    rows = _rows(tmp_path)
    assert tuple(rows[0]) == LOG_COLUMNS
    assert all(float(row["kl"]) > 0 for row in rows)
    assert all(int(row["student_tokens"]) < int(row["sequence_tokens"]) for row in rows)


@pytest.fixture
def one_thread():
    """Sums round by the number of threads, and a forked process can only have one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_killed_run_ends_as_an_unbroken_one(build_student, config, kind, tmp_path):
    """SIGKILL in the fourth step, which draws the fifth; the last state saved is that of two."""
    unbroken = _run(build_student(), _settings(config), tmp_path / "unbroken")
    killed = tmp_path / "killed"
    killed.mkdir()
    pid = os.fork()
    if pid == 0:
        torch.set_num_threads(1)
        _run(build_student(), _settings(config), killed, Numbers(kill_at=18))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert len(_rows(killed)) == 3
    resumed = _run(build_student(), _settings(config), killed)
    assert _rows(killed) == _rows(tmp_path / "unbroken")
    for name, weight in unbroken.items():
        assert torch.equal(resumed[name], weight), name


class _WithAHostThatIsBehind(Processes):
    """Two processes, of which the other has done three steps fewer."""

    def gathered(self, tensor):
        return [tensor, tensor - 3]


def test_hosts_with_different_resume_points_are_refused(build_student, config, tmp_path):
    with pytest.raises(SlimWiseError, match=r"steps, -3, 0: .* Put results/ on a file system"):
        distil(
            build_student(),
            Numbers(),
            Distillation.UNIFORM,
            _settings(config),
            work=tmp_path,
            processes=_WithAHostThatIsBehind(0, 2),
        )


def test_a_loss_that_is_not_finite_names_step_and_batch(build_student, config, tmp_path):
    student = build_student()
    student.trained()["model.norm.trained"].data.fill_(torch.nan)
    with pytest.raises(SlimWiseError, match="loss is nan at step 0, batch 0"):
        _run(student, _settings(config), tmp_path)
    assert not (tmp_path / "state.safetensors").exists()


def test_a_gradient_that_is_not_finite_is_never_saved(build_student, config, tmp_path):
    """Its step has a finite loss; another process may have had one that is not."""
    student = build_student()
    student.trained()["model.norm.trained"].register_hook(lambda gradient: gradient * torch.inf)
    settings = _settings(config).model_copy(update={"checkpoint_every_steps": 1})
    with pytest.raises(SlimWiseError, match=r"gradient norm is (inf|nan) at step 0: lower"):
        _run(student, settings, tmp_path)
    assert not (tmp_path / "state.safetensors").exists()


_TWO_PROCESSES = """
import sys
from pathlib import Path
import torch
import transformers
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule
from slimwise.core.vocabulary import Distillation
from slimwise.distill.config import DistillationConfig
from slimwise.distill.loop import distil
from slimwise.processes import joined_processes
from slimwise.distill.student import make_student

class Numbers:
    def draw(self, rng):
        first = rng.randrange(1, 32)
        return [first + n % 7 for n in range(rng.randrange(8, 30))]

torch.set_num_threads(1)
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
keep_set = KeepSet(((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12)), 16, 4)
student = make_student(model, keep_set, rule)
config = DistillationConfig.model_validate_json(sys.argv[2])
with joined_processes(torch.device("cpu")) as processes:
    work = Path(sys.argv[3])
    distil(student, Numbers(), Distillation.UNIFORM, config, work=work, processes=processes)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hybrid"])
def test_two_processes_take_the_steps_of_one_on_one_host_or_two(
    tiny_checkpoint, kind, config, tmp_path, starts
):
    folder, settings = tiny_checkpoint(kind), _settings(config).model_dump_json()
    script = tmp_path / "distil.py"
    script.write_text(_TWO_PROCESSES)
    rows = {}
    for name, start in starts.items():
        work = tmp_path / name
        work.mkdir()
        start([sys.executable, str(script), str(folder), settings, str(work)])
        rows[name] = _rows(work)
    assert rows["hosts"] == rows["processes"]
    for alone, both in zip(rows["alone"], rows["hosts"], strict=True):
        assert float(both["loss"]) == pytest.approx(float(alone["loss"]), rel=1e-4)
        assert float(both["gradient_norm"]) == pytest.approx(
            float(alone["gradient_norm"]), rel=1e-2, abs=2e-4
        )
