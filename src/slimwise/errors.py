"""Every failure that a user can cause. A message says what, the value, the limit and the remedy."""


class SlimWiseError(Exception):
    """Base of all errors that the command line reports as one line, without a traceback."""


class ConfigError(SlimWiseError):
    """A configuration key or value that the study cannot run with."""


class BackboneError(SlimWiseError):
    """A model that is missing, unsupported, or not what its configuration says."""


class KeepSetError(SlimWiseError):
    """A keep set that is malformed or belongs to another model."""


class ArtifactError(SlimWiseError):
    """A file of ours that is missing, truncated, of another schema, or cannot be written."""


class CheckpointError(SlimWiseError):
    """Model weights on disk whose tensors, index and configuration do not agree."""


class EngineError(SlimWiseError):
    """A server that did not start, died, or answered with a failure."""


class InvalidAnswersError(EngineError):
    """Answers that were not computed in the way they were asked for."""


class SandboxError(SlimWiseError):
    """No closed room for generated programs can be had on this machine."""


class GradingError(SlimWiseError):
    """A grader that cannot be trusted on this machine: it fails what is known to be right."""


class AccuracyFloorError(SlimWiseError):
    """A full model below the accuracy that the study requires before it prunes anything."""


class WorkDirectoryBusyError(SlimWiseError):
    """A work directory that another process is using."""
