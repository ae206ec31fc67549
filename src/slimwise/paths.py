"""Every path of a study, in pipeline order. No other module spells a results folder."""

from dataclasses import dataclass
from pathlib import Path

from slimwise.core.vocabulary import Criterion, DecoderId, Distillation

# From the repository's root, where the workflow runs: a moved checkout has the same inputs.
EMBEDDED_CHECKPOINT = Path("src/slimwise/backbones/mini/checkpoint")
PAPER_RESULTS = Path("src/slimwise/report/paper/evaluation.csv")
PAPER_THROUGHPUT = Path("src/slimwise/report/paper/throughput.csv")
EMBEDDED_DISTILLED = Path("src/slimwise/backbones/mini/distilled")
MODEL_FILES = ("*.json", "*.safetensors", "*.jinja", "*.txt", "*.model")
"""What of a model's folder shapes its answers: configuration, weights, chat template, tokenizer."""
MEASURED_STUDY = "h200"
"""The folder of what was measured on a GPU, whose rows are committed."""
MEASUREMENT_SETTINGS = Path("config/h200")


@dataclass(frozen=True)
class StudyPaths:
    """Names under results/{study}; patterns in braces are workflow wildcards."""

    root: Path

    @classmethod
    def of(cls, study: str, results: Path = Path("results")) -> "StudyPaths":
        """The paths of the study of that name."""
        return cls(results / study)

    @property
    def study_record(self) -> Path:
        """Written when everything else is; the one product that is never committed."""
        return self.root / "study.json"

    @property
    def trained_backbone(self) -> Path:
        """Folder of a backbone that the study trains itself."""
        return self.root / "10_backbone" / "trained"

    @property
    def backbone_record(self) -> Path:
        """Shape, gate rule and digest of the model."""
        return self.root / "10_backbone" / "backbone.json"

    @property
    def floor_record(self) -> Path:
        """Proof that the full model is good enough to prune."""
        return self.root / "10_backbone" / "accuracy_floor.json"

    @property
    def routing_stats(self) -> Path:
        """Sums over calibration tokens."""
        return self.root / "20_calibration" / "routing_stats.safetensors"

    @property
    def expert_scores(self) -> Path:
        """Every criterion of each expert."""
        return self.root / "20_calibration" / "expert_scores.parquet"

    def keep_set(self, criterion: Criterion | str, num_kept: int | str) -> Path:
        """Experts that a pruned decoder keeps."""
        return self.root / "30_keep_sets" / f"{criterion}-m{num_kept}.json"

    def checkpoint(self, decoder: DecoderId | str) -> Path:
        """Manifest of the decoder's exported checkpoint."""
        return self.root / "40_checkpoints" / str(decoder) / "manifest.json"

    def trained(self, decoder: DecoderId | str) -> Path:
        """Manifest of what distillation trained for the decoder."""
        return self.root / "50_distilled" / str(decoder) / "manifest.json"

    def pool_files(self, decoder: DecoderId) -> list[Path]:
        """Keep set of a pruned decoder, and the manifest of what was trained for it, if anything.

        The full model serves the decoder as a pool by them.
        """
        assert decoder.criterion is not None
        assert decoder.num_kept is not None
        keep_set = self.keep_set(decoder.criterion, decoder.num_kept)
        is_distilled = decoder.distilled is not Distillation.NONE
        return [keep_set, self.trained(decoder)] if is_distilled else [keep_set]

    def embedded(self, decoder: DecoderId | str) -> Path:
        """Folder of the trained tensors that ship for the decoder; few decoders have one."""
        return EMBEDDED_DISTILLED / str(decoder)

    def embedded_files(self, decoder: DecoderId | str) -> list[Path]:
        """What that folder holds now."""
        return sorted(path for path in self.embedded(decoder).glob("*") if path.is_file())

    def colocated(self, decoder: DecoderId | str) -> str:
        """Name of the decoder's second evaluation folder: served from the full model by a pool."""
        return f"{decoder}-colocated"

    def disaggregated(self, decoder: DecoderId | str) -> str:
        """Name of the decoder's evaluation folder with prefill and decode on a server each."""
        return f"{decoder}-disaggregated"

    @property
    def scoring_speed(self) -> Path:
        """Rows of a measurement, as this and the next five: JSON lines, appended as they come."""
        return self.root / "20_calibration" / "scoring_speed.jsonl"

    @property
    def export_speed(self) -> Path:
        """Exports beside plain copies."""
        return self.root / "40_checkpoints" / "export_speed.jsonl"

    @property
    def distill_speed(self) -> Path:
        """Distillation steps by implementation."""
        return self.root / "50_distilled" / "distill_speed.jsonl"

    @property
    def split_rules(self) -> Path:
        """Accuracy by split rule and seed."""
        return self.root / "50_distilled" / "split_rules.jsonl"

    def decode_rows(self, plan: str) -> Path:
        """Times of the plan's decode steps, and the experts that they read."""
        return self.root / "60_serve" / f"{plan}.jsonl"

    def throughput_rows(self, decoder: DecoderId | str) -> Path:
        """Points of the throughput of one decoder; its name says what it was served from."""
        return self.root / "60_serve" / f"{decoder}.jsonl"

    @property
    def served_throughput(self) -> Path:
        """Points of the throughput of deployments outside a study."""
        return self.root / "60_serve" / "throughput.jsonl"

    @property
    def kernel_tuning(self) -> Path:
        """Settings of the MoE kernel by device, shape and batch, with their times."""
        return self.root / "60_serve" / "kernel_tuning.jsonl"

    @property
    def moe_kernels(self) -> Path:
        """Folder of those settings as vLLM reads them, by VLLM_TUNED_CONFIG_FOLDER."""
        return self.root / "60_serve" / "moe_kernels"

    def evaluation(self, decoder: DecoderId | str) -> Path:
        """Folder of the decoder's answers."""
        return self.root / "70_evaluation" / str(decoder)

    def samples(self, decoder: DecoderId | str) -> Path:
        """Every answer as it came."""
        return self.evaluation(decoder) / "samples.parquet"

    def grades(self, decoder: DecoderId | str) -> Path:
        """Each answer's verdict and length."""
        return self.evaluation(decoder) / "grades.parquet"

    def disagreements(self, decoder: DecoderId | str) -> Path:
        """Answers on which two comparisons disagree."""
        return self.evaluation(decoder) / "disagreements.csv"

    @property
    def tables(self) -> Path:
        """Folder of result tables."""
        return self.root / "80_tables"

    @property
    def figures(self) -> Path:
        """Folder of figures."""
        return self.root / "80_figures"

    @property
    def report(self) -> Path:
        """One page about the whole study."""
        return self.root / "80_report" / "report.html"

    def table(self, name: str, suffix: str = "csv") -> Path:
        """A result table; its Markdown twin has the suffix md."""
        return self.tables / f"{name}.{suffix}"

    def figure(self, name: str, suffix: str = "png") -> Path:
        """A figure in one of its formats."""
        return self.figures / f"{name}.{suffix}"

    def work(self, stage: str) -> Path:
        """Resumable state of a stage; outside declared outputs, which the engine deletes."""
        return self.root / "work" / stage

    def log(self, name: str) -> Path:
        """A job's output."""
        return self.root / "logs" / f"{name}.log"

    @property
    def benchmarks(self) -> Path:
        """Folder of the engine's timing files."""
        return self.root / "logs" / "benchmarks"

    def benchmark(self, name: str) -> Path:
        """A job's timing file."""
        return self.benchmarks / f"{name}.tsv"

    def model_files(self, model: str) -> list[Path]:
        """Files whose change means another backbone; none for a hub id, fixed by its revision."""
        if model == "trained":
            return [self.trained_backbone / "manifest.json"]
        folder = EMBEDDED_CHECKPOINT if model == "embedded" else Path(model).expanduser()
        return sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern))
