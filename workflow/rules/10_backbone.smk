# REQUIRED INPUTS: the model that backbone.model names.
# OUTPUTS: {study}/10_backbone/: backbone.json; accuracy_floor.json once the full model passes;
#          trained/ where the study trains its own backbone.
STUDY = slice_json(study)


rule train_backbone:
    output:
        manifest=paths.trained_backbone / "manifest.json",
    log:
        paths.log("train_backbone"),
    benchmark:
        paths.benchmark("train_backbone")
    threads: workflow.cores
    resources:
        **study.resources.model_job(1),
    params:
        cfg=stage_json(study.training),
        code=code_digest("slimwise.train.run"),
        out=subpath(output.manifest, parent=True),
        work=paths.work("train"),
    shell:
        "slimwise train-backbone --config {params.cfg:q} --out {params.out} --work {params.work} 2> {log}"


# The check has no output of its own: one more num_kept must not rerun what reads the backbone.
rule inspect_backbone:
    input:
        paths.model_files(study.backbone.model),
    output:
        backbone=paths.backbone_record,
    log:
        paths.log("inspect_backbone"),
    benchmark:
        paths.benchmark("inspect_backbone")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.backbone.without_floors()),
        code=code_digest("slimwise.inspect.run"),
        trained=paths.trained_backbone,
    shell:
        "slimwise inspect-backbone --config {params.cfg:q} --trained {params.trained} --out {output.backbone} 2> {log} && slimwise check-backbone --config {STUDY:q} --backbone {output.backbone} 2>> {log}"


rule check_floor:
    input:
        grades=paths.grades("full"),
    output:
        floor=paths.floor_record,
    log:
        paths.log("check_floor"),
    benchmark:
        paths.benchmark("check_floor")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.backbone),
        code=code_digest("slimwise.grade.floor"),
    shell:
        "slimwise check-floor --config {params.cfg:q} --grades {input.grades} --out {output.floor} 2> {log}"
