# REQUIRED INPUTS: config/default.yaml and one overlay.
# OUTPUTS: none; the names that the other rule files use.
from slimwise.config import load_study, slice_json
from slimwise.paths import PAPER_RESULTS, StudyPaths
from slimwise.provenance import code_digest
from slimwise.select.check import check_if_known

study = load_study(config)
paths = StudyPaths.of(study.study)
check_if_known(
    study.selection, name=study.backbone.name, backbone=paths.backbone_record
)
PRUNED = "{criterion}-m{num_kept}"
DISTILLED = "{criterion}-m{num_kept}-kd_{rule}"
model_resources = {
    "gpu": study.resources.gpus,
    "mem_mb": study.resources.model_memory_mb,
}
record_resources = {"mem_mb": study.resources.record_memory_mb}


def embedded_files(wildcards):
    """The tensors that ship for a distilled decoder, where the study takes any."""
    decoder = DISTILLED.format(**wildcards)
    return paths.embedded_files(decoder) if study.distillation.embedded else []


def process_launcher(num_gpus):
    """The command line's beginning; one process for each GPU, and one without any."""
    if num_gpus < 2:
        return "slimwise"
    return f"torchrun --standalone --nproc-per-node {num_gpus} --no-python slimwise"


def stage_json(stage_config):
    """A parameter that holds the slice; a plain string would have its braces expanded."""
    return lambda wildcards: slice_json(stage_config)


wildcard_constraints:
    criterion="mass|ean|reap|frequency",
    num_kept=r"\d+",
    rule="uniform|zero",
    pruned=r"[a-z]+-m\d+(-kd_[a-z]+)?",
    decoder=r"full|[a-z]+-m\d+(-kd_[a-z]+)?(-colocated|-disaggregated)?",


localrules:
    all,
