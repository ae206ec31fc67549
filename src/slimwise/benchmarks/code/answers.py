"""Grades answers that hold a program, once the published solutions have passed."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer, Grade
from slimwise.benchmarks.code.assertions import assertion_findings
from slimwise.benchmarks.code.grading import grade_program
from slimwise.benchmarks.code.program import program_in, with_preamble
from slimwise.benchmarks.code.sandbox import ProgramLimits
from slimwise.benchmarks.code.self_check import check_canonical
from slimwise.benchmarks.settings import GradingLimits

_NONE: Mapping[str, str] = MappingProxyType({})


@contextmanager
def program_grader(
    references: Sequence[Mapping[str, Any]],
    limits: GradingLimits,
    broken: Mapping[str, str] = _NONE,
) -> Iterator[Grade]:
    """Verdicts by the tests of each reference; broken names items that no program can pass.

    A reference holds task_id, entry_point, preamble (prepended to the answer's program), test,
    assertions and canonical_solution. GradingError if a published solution fails.
    """
    allowed = ProgramLimits(limits.program_time_s, limits.program_memory_gib)

    def grade(answer: Answer, reference: Mapping[str, Any]) -> Verdict:
        entry = reference["entry_point"]
        program = program_in(answer.text, entry)
        if program is None:
            return Verdict(False, "", f"no code block defines {entry}")
        source = with_preamble(reference["preamble"], program)
        verdict = grade_program(source, entry, reference["test"], allowed)
        findings = assertion_findings(source, reference["assertions"], allowed)
        return dataclasses.replace(verdict, extracted=program, findings=findings)

    def grade_canonical(reference: Mapping[str, Any]) -> Verdict:
        return grade(Answer(f"```python\n{reference['canonical_solution']}\n```"), reference)

    check_canonical(references, grade_canonical, limits, broken)
    yield grade
