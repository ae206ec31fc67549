"""What the experts are observed on."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from slimwise.artifacts.chat_row import DATA_FORMATS
from slimwise.core.vocabulary import Packing
from slimwise.stage_config import StageConfig


class CalibrationConfig(StageConfig):
    """Data, length of sequences, and how they are batched."""

    dataset: Literal["mini_tasks", "reap_mixture", "chats"] = Field(
        default="mini_tasks",
        description="Calibration mixture: the miniature's tasks, the REAP mixture of "
        "evol_codealpaca, xlam_function_calling, thoughts_code, thoughts_math, thoughts_science, "
        "swe_smith, or conversations of data_folder, a component each file.",
    )
    data_folder: str | None = Field(
        default=None,
        description="Folder that holds {component}.jsonl or .parquet; the REAP mixture is from the "
        "hub if null. Rows of chats have messages, and tools if any, as the chat API does.",
    )
    components: tuple[str, ...] = Field(
        default=("maths", "code", "tools"),
        min_length=1,
        description="Mixture components, observed in this order, each once.",
    )
    sequences_per_component: int = Field(
        default=4096, ge=1, description="Sequences of each component. REAP mixture: 4,096."
    )
    max_sequence_tokens: int = Field(
        default=2048, ge=16, description="Sequence limit, tokens. REAP: 2,048."
    )
    packing: Packing = Field(
        default=Packing.NONE,
        description="One document a sequence (none), or full sequences of several, which do not "
        "attend to each other (isolated) or do (open, as the REAP code).",
    )
    allow_short: bool = Field(
        default=False, description="Accept fewer sequences than asked for instead of stopping."
    )
    batch_tokens: int | None = Field(
        default=None,
        ge=16,
        description="Tokens a forward pass, with padding; null = what a GPU's free memory takes, "
        "65,536 at most, and 16,384 on CPU. Halved when memory runs out.",
    )
    seed: int = Field(default=0, description="Seed of the drawn sequences.")
    dtype: Literal["float32", "bfloat16"] = Field(default="bfloat16", description="Compute type.")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where to observe.")
    gpus_per_model: int = Field(
        default=1,
        ge=1,
        description="GPUs that one model is spread over; resources.gpus / as many processes "
        "observe a share of the mixture each.",
    )
    cpu_threads: int = Field(default=0, ge=0, description="Threads on CPU; 0 = all cores.")
    save_every_batches: int = Field(default=50, ge=1, description="Resume point interval, batches.")

    @model_validator(mode="after")
    def _chats_lie_in_a_folder(self) -> Self:
        if self.dataset == "chats" and self.data_folder is None:
            raise ValueError("calibration.dataset = chats needs calibration.data_folder")
        return self

    def data_files(self) -> list[Path]:
        """What data_folder holds of the components now; none if the data come from the hub."""
        if self.data_folder is None:
            return []
        folder = Path(self.data_folder).expanduser()
        named = (folder / f"{part}{end}" for part in self.components for end in DATA_FORMATS)
        return [path for path in named if path.is_file()]
