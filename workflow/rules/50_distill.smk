# REQUIRED INPUTS: {study}/10_backbone/backbone.json, accuracy_floor.json beside it, and
#                  30_keep_sets/{criterion}-m{num_kept}.json.
# OUTPUTS: {study}/50_distilled/{criterion}-m{num_kept}-kd_{rule}/: trained.safetensors,
#          distill_log.csv, manifest.json; 40_checkpoints/{criterion}-m{num_kept}-kd_{rule}/.
DISTILLED = [
    paths.distilled_checkpoint(decoder.criterion, decoder.num_kept, decoder.distilled)
    / "manifest.json"
    for decoder in study.distilled_decoders()
]


rule distill_decoder:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=paths.floor_record,
    output:
        manifest=paths.distilled("{criterion}", "{num_kept}", "{rule}")
        / "manifest.json",
    log:
        paths.log("distill_decoder/{criterion}-m{num_kept}-kd_{rule}"),
    benchmark:
        paths.benchmark("distill_decoder/{criterion}-m{num_kept}-kd_{rule}")
    threads: workflow.cores
    resources:
        **model_resources,
    params:
        cfg=lambda wildcards: slice_json(study.distillation.only(wildcards.rule)),
        code=code_digest("slimwise.distill.run"),
        launcher=process_launcher(study.resources.gpus),
        out=subpath(output.manifest, parent=True),
        work=paths.work("distill"),
    shell:
        "{params.launcher} distill-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --rule {wildcards.rule} --out {params.out} --work {params.work} 2> {log}"


rule export_distilled_decoder:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        trained=paths.distilled("{criterion}", "{num_kept}", "{rule}") / "manifest.json",
    output:
        manifest=paths.distilled_checkpoint("{criterion}", "{num_kept}", "{rule}")
        / "manifest.json",
    log:
        paths.log("export_distilled_decoder/{criterion}-m{num_kept}-kd_{rule}"),
    benchmark:
        paths.benchmark("export_distilled_decoder/{criterion}-m{num_kept}-kd_{rule}")
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.export),
        code=code_digest("slimwise.export.run"),
        out=subpath(output.manifest, parent=True),
    shell:
        "slimwise export-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --trained {input.trained} --out {params.out} 2> {log}"
