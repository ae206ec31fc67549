"""What a job may ask of the machine it runs on."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class ResourceConfig(StageConfig):
    """Requests that the workflow engine schedules by; no stage reads them."""

    gpus: int = Field(
        default=0, ge=0, description="GPUs of a job that runs a model; 0 runs it on CPU."
    )
    model_memory_mb: int = Field(
        default=8000, ge=1, description="Memory of a job that runs a model, MB."
    )
    record_memory_mb: int = Field(default=2000, ge=1, description="Memory of every other job, MB.")
