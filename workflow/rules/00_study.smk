# REQUIRED INPUTS: config/default.yaml and one overlay.
# OUTPUTS: none; the names that the other rule files use.
import json

from slimwise.backbone_check import check_if_known
from slimwise.config import load_study, slice_json
from slimwise.paths import (
    MEASURED_STUDY,
    MEASUREMENT_SETTINGS,
    PAPER_RESULTS,
    PAPER_THROUGHPUT,
    StudyPaths,
)
from slimwise.provenance import code_digest

study = load_study(config)
paths = StudyPaths.of(study.study)
measured = StudyPaths.of(MEASURED_STUDY)
check_if_known(study, paths.backbone_record)
# Pruning waits for the full model's score only where the study says what it must be.
FLOOR = paths.floor_record if study.backbone.accuracy_floors else []
PRUNED = "{criterion}-m{num_kept}"
DISTILLED = "{criterion}-m{num_kept}-kd_{rule}"
server_resources = study.resources.model_job(study.serving.gpus)
measurement_resources = {**study.resources.model_job(), "gpu": 1}
record_resources = study.resources.record_job()
# A parameter that depends on threads reruns nothing by itself: the second one does.
grading_words = {
    "grading": lambda wildcards, threads: slice_json(study.grading),
    "graded": lambda wildcards: slice_json(study.grading.without_haste()),
}
serving_words = {
    "serving": lambda wildcards, threads: slice_json(study.serving),
    "served": lambda wildcards: slice_json(study.serving.without_waiting()),
}
layout_words = {
    "layout": lambda wildcards, threads: slice_json(study.disaggregation),
    "laid_out": lambda wildcards: slice_json(study.disaggregation.without_places()),
}


def model_threads(num_gpus):
    """Threads of a job whose models have that many GPUs, so that others run on the rest."""
    told = workflow.global_resources.get("gpu")
    gpus_in_all = None if told is None else told.value
    return study.resources.threads(workflow.cores, num_gpus, gpus_in_all)


def embedded_files(wildcards):
    """The tensors that ship for a distilled decoder, where the study takes any."""
    decoder = DISTILLED.format(**wildcards)
    return paths.embedded_files(decoder) if study.distillation.embedded else []


def process_launcher(gpus_per_process):
    """A parameter that depends on threads: what it depends on reruns nothing."""
    return lambda wildcards, threads: study.resources.launcher(
        threads, gpus_per_process
    )


def stage_json(stage_config):
    """A parameter that holds the slice; a plain string would have its braces expanded."""
    return lambda wildcards: slice_json(stage_config)


def asking(decoder, cfg="cfg", **server):
    """Parameters of a stage that asks a server; how fast and how patiently reruns nothing."""

    def chosen(wildcards):
        return study.evaluation.only(decoder.format(**wildcards), **server)

    return {
        cfg: lambda wildcards, threads: slice_json(chosen(wildcards)),
        "asked": lambda wildcards: slice_json(chosen(wildcards).without_haste()),
        **serving_words,
    }


def measurement_json(path):
    """A parameter that holds each slice that a measurement runs with, in turn."""
    settings = MEASUREMENT_SETTINGS / path.with_suffix(".json").name
    return lambda wildcards: list(map(json.dumps, json.loads(settings.read_text())))


wildcard_constraints:
    criterion="mass|ean|reap|frequency",
    num_kept=r"\d+",
    rule="uniform|zero",
    pruned=r"[a-z]+-m\d+(-kd_[a-z]+)?",
    decoder=r"full(-disaggregated)?|[a-z]+-m\d+(-kd_[a-z]+)?(-colocated|-disaggregated)?",


localrules:
    all,
