"""The scores that lm-eval gives on MBPP+, which reads none of the added tests.

As there, the assertions run in the program's own process, so a program can fool them, and without
the imports that the data set lists for them: the published solutions of Mbpp/98, 124, 137 and 300,
whose assertions call math, fail. These scores stand beside the one that cannot be fooled.
"""

from collections.abc import Mapping, Sequence

from slimwise.benchmarks.code.sandbox import ProgramLimits, run_program

_NUM_ASSERTIONS = {"lm_eval_mbpp_plus": 3, "lm_eval_mbpp_plus_instruct": 1}
"""Finding, named after lm-eval's task, and how many of the first assertions it reads."""

_RUNNER = """

def run_assertions(_assertions):
    exec(_assertions, globals())
"""


def assertion_findings(
    source: str, assertions: Sequence[str], limits: ProgramLimits
) -> Mapping[str, bool]:
    """Whether the program holds by each of lm-eval's tasks; none if there are no assertions."""
    if not assertions:
        return {}
    inputs = [["\n".join(assertions[:count])] for count in _NUM_ASSERTIONS.values()]
    outcome = run_program(source + _RUNNER, "run_assertions", repr(inputs), limits)
    outputs = outcome.outputs or [None] * len(inputs)
    return {
        task: output == ["none", None]
        for task, output in zip(_NUM_ASSERTIONS, outputs, strict=True)
    }
