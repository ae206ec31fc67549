"""What the decoders are asked, and how they decode."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from slimwise.artifacts.chat_row import folder_files
from slimwise.benchmarks.settings import DataSettings
from slimwise.core.vocabulary import DecoderId, Decoding, Distillation, ServingMode
from slimwise.stage_config import StageConfig

ColocatedMode = Literal[ServingMode.SLIMWISE, ServingMode.REVERSE]
DistilledMode = Literal[ServingMode.PRUNED, ServingMode.SLIMWISE, ServingMode.REVERSE]


class EvaluationConfig(StageConfig):
    """Benchmarks, runs, budget, and the modes of each decoder."""

    benchmarks: tuple[str, ...] = Field(
        min_length=1,
        description="One or more of mini_maths, mini_code, mini_tools, gsm8k, math_500, "
        "humaneval_plus, mbpp_plus, bfcl_v4_live_ast, bfcl_v4_non_live_ast, bfcl_v4_relevance, "
        "bfcl_v4_irrelevance.",
    )
    data_folder: str | None = Field(
        default=None,
        description="Folder of benchmark data: gsm8k/{train,test}.jsonl, math500/test.jsonl, "
        "humanevalplus/HumanEvalPlus-OriginFmt.jsonl, mbppplus/MbppPlus-OriginFmt.jsonl, "
        "bfcl_v4/*.json; if null from the hub at a fixed revision, BFCL from bfcl-eval.",
    )
    num_shots: dict[str, Annotated[int, Field(ge=0)]] = Field(
        default={},
        description="Solved examples before an item, by benchmark, where not lm-eval's number: 5 "
        "for gsm8k, 4 for math_500, none elsewhere.",
    )
    num_items: int = Field(
        default=500, ge=1, description="Items a benchmark and run. GSM8K: first 500."
    )
    num_items_of: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={},
        description="Items by benchmark, where not num_items. SlimWise: all 1351 of "
        "bfcl_v4_live_ast and all 1150 of bfcl_v4_non_live_ast.",
    )
    floor_items: int | None = Field(
        default=None,
        ge=1,
        description="Items a benchmark in the full decoder's greedy run, on which its accuracy "
        "floors are checked; num_items if null. Tables have the items that all decoders are asked.",
    )
    sampled_runs: int = Field(default=3, ge=0, description="Runs with sampling, one seed each.")
    greedy: bool = Field(default=True, description="One more run, greedy. SlimWise, figure 5.")
    temperature: float = Field(
        default=1.0, gt=0, description="Softmax temperature of sampled runs. SlimWise, Evaluate."
    )
    top_p: float = Field(
        default=0.95,
        gt=0,
        le=1,
        description="Nucleus of sampled runs, share of probability. SlimWise, Evaluate.",
    )
    budget_tokens: int = Field(
        default=32768, ge=1, description="Output limit, tokens. SlimWise, Evaluate."
    )
    thinking: bool = Field(
        default=True, description="Whether chat templates open a thought. SlimWise, Evaluate."
    )
    colocated_num_kept: dict[ColocatedMode, tuple[Annotated[int, Field(ge=1)], ...]] = Field(
        default={},
        description="Experts kept (m') by the decoders that are asked in each of these modes too, "
        "one server of the full model for each decoder, the keep set its pool. SlimWise, table 3.",
    )
    disaggregated_decoders: tuple[str, ...] = Field(
        default=(),
        description="Decoders, such as reap-m32-kd_uniform, that are asked in mode slimwise with "
        "prefill and decode on a server each too, the decoder's server from its own checkpoint.",
    )
    distilled_modes: tuple[DistilledMode, ...] = Field(
        default=(ServingMode.SLIMWISE,),
        description="Modes of each distilled decoder: pruned from its own checkpoint, the others "
        "from the full model, the trained tensors part of the pool. SlimWise, tables 1 and 2.",
    )
    concurrency: int = Field(default=64, ge=1, description="Requests in flight.")
    seed: int = Field(default=0, description="Run r draws the seed of each request from seed + r.")

    @model_validator(mode="after")
    def _numbers_are_of_benchmarks(self) -> Self:
        for key in ("num_shots", "num_items_of"):
            for name in getattr(self, key):
                if name not in self.benchmarks:
                    raise ValueError(
                        f"evaluation.{key} names {name}, which evaluation.benchmarks "
                        f"({', '.join(self.benchmarks)}) does not"
                    )
        return self

    def data_files(self) -> list[Path]:
        """What data_folder holds now; none if the data come from the hub."""
        return [] if self.data_folder is None else folder_files(self.data_folder, recursive=True)

    def data_settings(self, benchmark: str) -> DataSettings:
        """The part that concerns one benchmark's items."""
        folder = None if self.data_folder is None else Path(self.data_folder)
        return DataSettings(folder, self.num_shots.get(benchmark))

    def only(
        self, decoder: DecoderId | str, *, colocated: bool = False, disaggregated: bool = False
    ) -> "EvaluationConfig":
        """The slice of one decoder and server, the same whatever others the study asks."""
        named = DecoderId.parse(str(decoder))
        modes = self.colocated_modes(named) if colocated else ()
        is_distilled = named.distilled is not Distillation.NONE
        changes = {
            "colocated_num_kept": {mode: (named.num_kept,) for mode in modes if not is_distilled},
            "distilled_modes": modes if is_distilled else (),
            "disaggregated_decoders": (str(named),) if disaggregated else (),
            "floor_items": self.floor_items if named.is_full else None,
        }
        return self.model_copy(update=changes)

    def without_haste(self) -> "EvaluationConfig":
        """The slice that says what is asked, however much of it at a time."""
        return self.by_default("concurrency")

    def colocated_modes(self, decoder: DecoderId) -> tuple[ServingMode, ...]:
        """The modes in which the decoder is asked from the full model, as a pool."""
        if decoder.distilled is not Distillation.NONE:
            return tuple(mode for mode in self.distilled_modes if mode is not ServingMode.PRUNED)
        counts = self.colocated_num_kept
        return tuple(mode for mode in counts if decoder.num_kept in counts[mode])

    def items_asked(self, benchmark: str, decoding: Decoding) -> int:
        """Items of the benchmark in a run of that decoding."""
        usual = self.num_items_of.get(benchmark, self.num_items)
        return max(usual, self.floor_items or 0) if decoding is Decoding.GREEDY else usual
