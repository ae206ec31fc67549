"""What a spoilt file, folder, disk or clock does to a study, and what mends it."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slimwise.artifacts.keep_set import read_keep_set

from .scratch_clone import ScratchClone, mounted, wait_until

pytestmark = pytest.mark.faults

_DAY_S = 24 * 3600


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0xFF
    path.write_bytes(content)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_DAMAGES: dict[str, Callable[[Path], None]] = {
    "a flipped byte": _flip,
    "half a file": _truncate,
    "an empty file": _empty,
    "a folder instead": _put_folder,
}


@pytest.mark.parametrize("damage", _DAMAGES)
def test_spoilt_scores_are_refused_and_made_again(clone, fault, damage):
    expected = "refused by name; once it is deleted, the same command makes it again"
    with fault(f"{damage}: expert_scores.parquet", expected) as row:
        scores, keep_set = clone.paths.expert_scores, clone.paths.keep_set("reap", 32)
        kept = read_keep_set(keep_set)
        _DAMAGES[damage](scores)
        failed = clone.run(keep_set)
        assert failed.status != 0
        row.message = failed.line("slimwise: ")
        shutil.rmtree(scores) if scores.is_dir() else scores.unlink()
        row.mended_by(clone.run(keep_set))
        row.seen = f"status {failed.status}; the same experts kept afterwards"
        assert read_keep_set(keep_set) == kept


def _settle(clone: ScratchClone, file: Path) -> None:
    """Make the file and what it is made of, or a rerun would replace what is spoilt next."""
    settled = clone.run(file)
    assert settled.status == 0, settled.output


_SPOILT_INPUTS: dict[str, Callable[[ScratchClone], tuple[Path, Path]]] = {
    "routing_stats.safetensors": lambda clone: (
        clone.paths.routing_stats,
        clone.paths.expert_scores,
    ),
    "reap-m32.json": lambda clone: (
        clone.paths.keep_set("reap", 32),
        clone.paths.checkpoint("reap-m32"),
    ),
    "samples.parquet": lambda clone: (
        clone.paths.samples("reap-m32"),
        clone.paths.grades("reap-m32"),
    ),
    "backbone.json": lambda clone: (clone.paths.backbone_record, clone.paths.keep_set("reap", 32)),
}


@pytest.mark.parametrize("name", _SPOILT_INPUTS)
def test_a_spoilt_input_is_refused(clone, fault, name):
    spoilt, made_of_it = _SPOILT_INPUTS[name](clone)
    _settle(clone, made_of_it)
    with fault(f"half a file: {name}", "refused by name; nothing is made of it") as row:
        good = spoilt.read_bytes()
        earlier = made_of_it.stat().st_mtime_ns
        _truncate(spoilt)
        failed = clone.run(made_of_it)
        assert failed.status != 0
        assert not made_of_it.exists() or made_of_it.stat().st_mtime_ns == earlier
        row.message = failed.line("slimwise: ")
        spoilt.write_bytes(good)
        row.mended_by(clone.run(made_of_it))
        row.seen = f"status {failed.status}, nothing made of it; finished once it was restored"


def test_a_checkpoint_that_changed_is_not_served(clone, pruned_answers, fault):
    folder = clone.paths.checkpoint("reap-m32").parent
    _settle(clone, folder / "manifest.json")
    with fault("a flipped byte: weights of a checkpoint", "refused before a server starts") as row:
        weights = next(folder.glob("*.safetensors"))
        good = weights.read_bytes()
        weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
        failed = clone.run(pruned_answers)
        assert failed.status != 0
        row.message = failed.line("slimwise: ")
        weights.write_bytes(good)
        row.mended_by(clone.run(pruned_answers))
        row.seen = f"status {failed.status}, no answer was asked for"


def test_a_foreign_file_in_a_checkpoint_is_named(clone, pruned_answers, fault):
    folder = clone.paths.checkpoint("reap-m32").parent
    _settle(clone, folder / "manifest.json")
    with fault("a foreign file in an output folder", "refused by name, not deleted") as row:
        foreign = folder / "notes.txt"
        foreign.write_text("mine")
        failed = clone.run(pruned_answers)
        assert failed.status != 0
        assert foreign.read_text() == "mine"
        row.message = failed.line("slimwise: ")
        foreign.unlink()
        row.mended_by(clone.run(pruned_answers))
        row.seen = f"status {failed.status}, the file is left alone"


needs_mounts = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("mount") is None, reason="only root may mount"
)


@needs_mounts
def test_a_full_disk_keeps_every_answer(clone, pruned_answers, fault):
    expected = "the cause is named, answers so far are kept; the next command goes on"
    with fault("disk full while answers come in", expected) as row:
        folder = clone.paths.work("generate")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with mounted(folder, "-t", "tmpfs", "-o", "size=28k", "none"):
            failed = clone.run(pruned_answers)
            assert failed.status != 0
            row.message = failed.line("slimwise: ")
            row.seen = f"status {failed.status}"
            subprocess.run(["mount", "-o", "remount,size=1g", folder], check=True)
            row.mended_by(clone.run(pruned_answers))


@needs_mounts
def test_a_disk_too_small_for_a_checkpoint_is_told_beforehand(clone, fault):
    manifest = clone.paths.checkpoint("reap-m32")
    with fault("disk full before an export", "refused with both sizes") as row:
        with mounted(manifest.parents[1], "-t", "tmpfs", "-o", "size=1m", "none"):
            failed = clone.run(manifest)
        assert failed.status != 0
        row.message = failed.line("slimwise: ")
        row.mended_by(clone.run(manifest))
        row.seen = f"status {failed.status}"


@needs_mounts
def test_read_only_results_are_named(clone, fault):
    keep_set = clone.paths.keep_set("reap", 32)
    with fault("read-only results", "refused by name") as row:
        keep_set.unlink()
        results = clone.root / "results"
        with mounted(results, "--bind", str(results)):
            subprocess.run(["mount", "-o", "remount,ro,bind", results], check=True)
            failed = clone.run(keep_set)
        assert failed.status != 0
        row.message = failed.line("Read-only")
        row.mended_by(clone.run(keep_set))
        row.seen = f"status {failed.status}"


@pytest.mark.parametrize("days", [1, -1])
def test_a_clock_that_jumped_reruns_and_settles(clone, fault, days):
    expected = "what may be stale is made again, once"
    with fault(f"a file {days:+d} day on the clock", expected) as row:
        scores, keep_set = clone.paths.expert_scores, clone.paths.keep_set("reap", 32)
        moved = time.time() + days * _DAY_S
        keep_set.unlink()
        os.utime(scores if days > 0 else clone.paths.backbone_record, (moved, moved))
        row.mended_by(clone.run(keep_set))
        row.message = clone.run(keep_set).line("Nothing to be done")
        row.seen = "made again; then nothing to do"


def test_a_lost_work_folder_costs_no_more_than_its_job(clone, pruned_answers, fault):
    expected = "the job goes on or says why; the next command finishes"
    with fault("the work folder is deleted while a job runs", expected) as row:
        run = clone.start(pruned_answers)
        wait_until(
            lambda: any(clone.paths.work("generate/reap-m32").glob("answers-*.jsonl")), "a log"
        )
        shutil.rmtree(clone.paths.root / "work")
        ended = run.finished()
        row.seen = f"status {ended.status}, alone after {clone.seconds_until_alone():.1f} s"
        row.message = ended.line("slimwise: " if ended.status else "100%")
        row.mended_by(clone.run(pruned_answers))


def test_stale_locks_are_cleared(clone, fault):
    keep_set = clone.paths.keep_set("reap", 32)
    with fault("stale locks of engine and job", "cleared without being asked") as row:
        locks = clone.root / ".snakemake" / "locks"
        locks.mkdir(exist_ok=True)
        for kind in ("input", "output"):
            (locks / f"0.{kind}.lock").write_text(f"{keep_set.relative_to(clone.root)}\n")
        work = clone.paths.work("generate/reap-m32")
        work.mkdir(parents=True, exist_ok=True)
        (work / ".lock").write_text("999999")
        keep_set.unlink()
        ended = clone.run(keep_set)
        row.message = ended.line("was killed")
        row.mended_by(ended)
        row.seen = "the first command went through"
