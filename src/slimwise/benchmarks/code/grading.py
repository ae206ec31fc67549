"""Grades a program by its outputs on every input of a suite's tests."""

import functools
from collections.abc import Iterator
from typing import Any

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.code.sandbox import ProgramLimits, run_program
from slimwise.benchmarks.code.suite import Comparison, Tests, read_tests
from slimwise.benchmarks.code.values import Opaque, decoded, matches
from slimwise.errors import SandboxError

_CACHED_ITEMS = 4  # a reference's outputs may take 140 MB; answers to one item come together


def grade_program(source: str, entry: str, test: str, limits: ProgramLimits) -> Verdict:
    """The verdict on a program; SandboxError if there is no sandbox to run it in."""
    tests = _tests(test)
    if tests.comparison is Comparison.UNSOUND:
        return Verdict(False, source, "the suite's own assertion fails for every program")
    outcome = run_program(source, entry, tests.inputs, limits)
    if outcome.error:
        return Verdict(False, source, outcome.error)
    passes = list(_passes(outcome.outputs, tests, limits))
    if all(passes):
        return Verdict(True, source)
    index = passes.index(False)
    return Verdict(False, source, f"input {index}: {outcome.outputs[index]}"[:200])


_tests = functools.lru_cache(_CACHED_ITEMS)(read_tests)


def _passes(outputs: tuple[Any, ...], tests: Tests, limits: ProgramLimits) -> Iterator[bool]:
    """Whether each encoded output is as expected."""
    if tests.expected is not None:
        assert len(outputs) == len(tests.expected)
        for output, wanted in zip(outputs, tests.expected, strict=True):
            yield _agrees(decoded(output), wanted, tests)
        return
    reference = _reference_outputs(tests.reference_source, tests.inputs, limits)
    for output, wanted in zip(outputs, reference, strict=True):
        yield output == wanted or _agrees(decoded(output), decoded(wanted), tests)


@functools.lru_cache(_CACHED_ITEMS)
def _reference_outputs(source: str, inputs: str, limits: ProgramLimits) -> tuple[Any, ...]:
    outcome = run_program(source, "ref_func", inputs, limits)
    if outcome.error:
        raise SandboxError(
            f"the suite's reference function failed: {outcome.error}. Raise "
            f"grading.program_time_s = {limits.time_s} or grading.program_memory_gib = "
            f"{limits.memory_gib:g}."
        )
    return outcome.outputs


def _agrees(output: Any, expected: Any, tests: Tests) -> bool:
    match tests.comparison:
        case Comparison.FOUND:
            found = output if isinstance(output, bool) else output is not None
            return not _has_failed(output) and found == expected
        case Comparison.AS_SETS:
            try:
                output, expected = set(output), set(expected)
            except TypeError:
                return False
    return matches(output, expected, tests.tolerance)


def _has_failed(output: Any) -> bool:
    return isinstance(output, Opaque) and not output.is_object
