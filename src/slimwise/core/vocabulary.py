"""The closed word lists of the project: one spelling each, in paths, tables and configuration."""

import re
from dataclasses import dataclass
from enum import StrEnum

from slimwise.errors import ConfigError


class Criterion(StrEnum):
    """How experts are ranked within a layer. SlimWise, Calibrate; frequency is a baseline."""

    MASS = "mass"
    EAN = "ean"
    REAP = "reap"
    FREQUENCY = "frequency"


class ScoringGate(StrEnum):
    """Which weight of an expert's output enters Mass and REAP."""

    MODEL = "model"
    SOFTMAX = "softmax"


class Phase(StrEnum):
    """What a token belongs to: the prompt, or what is decoded after it."""

    PREFILL = "prefill"
    DECODE = "decode"


class ServingMode(StrEnum):
    """Which of the two phases runs on the pruned pool. SlimWise, table 3."""

    FULL = "full"
    PRUNED = "pruned"
    SLIMWISE = "slimwise"
    REVERSE = "reverse"

    def prunes(self, phase: Phase) -> bool:
        """True if this mode routes the tokens of the phase to kept experts only."""
        match self:
            case ServingMode.FULL:
                return False
            case ServingMode.PRUNED:
                return True
            case ServingMode.SLIMWISE:
                return phase is Phase.DECODE
            case ServingMode.REVERSE:
                return phase is Phase.PREFILL


class Deployment(StrEnum):
    """Whether one server answers, or prefill and decode have a server each."""

    COLOCATED = "colocated"
    DISAGGREGATED = "disaggregated"


class Routing(StrEnum):
    """How tokens choose experts: as a model's weights say, or as random ones do."""

    REAL = "real"
    UNIFORM = "uniform"
    SKEWED = "skewed"


class MoeKernels(StrEnum):
    """Where vLLM has its settings of the MoE kernel from, for a shape and a device."""

    DEFAULT = "default"
    """A rule that knows no device, because vLLM ships no file for the shape."""
    SHIPPED = "shipped"
    TUNED = "tuned"
    """A file of ours."""
    UNKNOWN = "unknown"
    """The server runs elsewhere, or does not say."""


class Distillation(StrEnum):
    """The split-point rule a decoder was distilled with, if any. SlimWise, Distil."""

    NONE = "none"
    UNIFORM = "uniform"
    ZERO = "zero"


class Packing(StrEnum):
    """Whether documents share a calibration sequence, and whether they see each other in it."""

    NONE = "none"
    ISOLATED = "isolated"
    OPEN = "open"


class Decoding(StrEnum):
    """Whether the next token is drawn, or the likeliest one taken."""

    SAMPLED = "sampled"
    GREEDY = "greedy"


_DECODER_PATTERN = re.compile(r"(?P<criterion>[a-z]+)-m(?P<num_kept>\d+)(?:-kd_(?P<rule>[a-z]+))?")


@dataclass(frozen=True)
class DecoderId:
    """A decoder's name: "full", "reap-m32" or "reap-m32-kd_uniform", the spelling of all paths."""

    criterion: Criterion | None = None
    num_kept: int | None = None
    distilled: Distillation = Distillation.NONE

    @property
    def is_full(self) -> bool:
        """True for the decoder that keeps every expert."""
        return self.criterion is None

    def __str__(self) -> str:
        if self.criterion is None:
            return "full"
        suffix = "" if self.distilled is Distillation.NONE else f"-kd_{self.distilled}"
        return f"{self.criterion}-m{self.num_kept}{suffix}"

    @classmethod
    def parse(cls, text: str) -> "DecoderId":
        """The decoder that the text names; ConfigError if it names none."""
        if text == "full":
            return cls()
        match = _DECODER_PATTERN.fullmatch(text)
        if match is None or match["criterion"] not in set(Criterion):
            raise ConfigError(
                f"decoder {text!r} is not a decoder name: expected 'full' or "
                f"'<criterion>-m<num_kept>[-kd_<rule>]' with a criterion of {', '.join(Criterion)}."
            )
        rule = match["rule"]
        if rule is not None and rule not in {Distillation.UNIFORM, Distillation.ZERO}:
            raise ConfigError(f"decoder {text!r}: split rule {rule!r} is not 'uniform' or 'zero'.")
        return cls(
            Criterion(match["criterion"]),
            int(match["num_kept"]),
            Distillation(rule) if rule else Distillation.NONE,
        )
