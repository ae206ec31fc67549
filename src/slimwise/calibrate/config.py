"""What the experts are observed on."""

from typing import Literal

from pydantic import Field

from slimwise.core.vocabulary import Packing
from slimwise.stage_config import StageConfig


class CalibrationConfig(StageConfig):
    dataset: Literal["mini_tasks", "reap_mixture"] = Field(
        default="mini_tasks",
        description="Calibration mixture: the miniature's tasks, or the REAP mixture of "
        "evol_codealpaca, xlam_function_calling, thoughts_code, thoughts_math, thoughts_science, "
        "swe_smith.",
    )
    data_folder: str | None = Field(
        default=None,
        description="Folder that holds {component}.jsonl or .parquet of the REAP mixture; from the "
        "hub if null.",
    )
    components: tuple[str, ...] = Field(
        default=("maths", "code", "tools"),
        description="Mixture components, observed in this order.",
    )
    sequences_per_component: int = Field(
        default=4096, ge=1, description="Sequences of each component. REAP mixture: 4,096."
    )
    max_sequence_tokens: int = Field(
        default=2048, ge=16, description="Sequence limit. REAP: 2,048."
    )
    packing: Packing = Field(
        default=Packing.NONE,
        description="One document a sequence (none), or full sequences of several, which do not "
        "attend to each other (isolated) or do (open, as the REAP code).",
    )
    allow_short: bool = Field(
        default=False, description="Accept fewer sequences than asked for instead of stopping."
    )
    batch_tokens: int = Field(
        default=16384, ge=16, description="Tokens a forward pass, with padding."
    )
    seed: int = Field(default=0, description="Seed of the drawn sequences.")
    dtype: Literal["float32", "bfloat16"] = Field(default="bfloat16", description="Compute type.")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where to observe.")
    cpu_threads: int = Field(default=0, ge=0, description="Threads on CPU; 0 = all cores.")
    save_every_batches: int = Field(default=50, ge=1, description="Resume point interval, batches.")
