"""Grades a program by its outputs on every input of a suite's tests."""

from typing import Any

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.code.sandbox import ProgramLimits, run_program
from slimwise.benchmarks.code.suite import Comparison, Tests, read_tests
from slimwise.benchmarks.code.values import Opaque, decoded, matches
from slimwise.errors import SandboxError


def grade_program(source: str, entry: str, test: str, limits: ProgramLimits) -> Verdict:
    """The verdict on a program; SandboxError if there is no sandbox to run it in."""
    tests = read_tests(test)
    if tests.comparison is Comparison.UNSOUND:
        return Verdict(False, source, "the suite's own assertion fails for every program")
    outcome = run_program(source, entry, tests.inputs, limits)
    if outcome.error:
        return Verdict(False, source, outcome.error)
    expected = _expected(tests, limits)
    outputs = [decoded(output) for output in outcome.outputs]
    if len(outputs) != len(expected):
        return Verdict(False, source, f"{len(outputs)} outputs for {len(expected)} inputs")
    for index, (output, wanted) in enumerate(zip(outputs, expected, strict=True)):
        if not _passes(output, wanted, tests):
            return Verdict(False, source, f"input {index}: {outcome.outputs[index]}"[:200])
    return Verdict(True, source)


def _expected(tests: Tests, limits: ProgramLimits) -> tuple[Any, ...]:
    if tests.expected is not None:
        return tests.expected
    outcome = run_program(tests.reference_source, "ref_func", tests.inputs, limits)
    if outcome.error:
        raise SandboxError(
            f"the suite's reference function failed: {outcome.error}. Raise the limits of time "
            f"({limits.time_s} s) or memory ({limits.memory_gib:g} GiB)."
        )
    return tuple(decoded(output) for output in outcome.outputs)


def _passes(output: Any, expected: Any, tests: Tests) -> bool:
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
