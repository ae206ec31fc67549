# REQUIRED INPUTS: {study}/10_backbone/backbone.json, accuracy_floor.json where floors are named,
#                  30_keep_sets/{criterion}-m{num_kept}.json, the tensors that ship for the
#                  decoder, if any do, and the files of distillation.chat_data and agent_data, where
#                  these are folders.
# OUTPUTS: {study}/50_distilled/{criterion}-m{num_kept}-kd_{rule}/: trained.safetensors,
#          distill_log.csv, manifest.json; h200/50_distilled/distill_speed.jsonl on a GPU.
DISTILL_THREADS = model_threads(study.resources.gpus)


rule distill_decoder:
    input:
        embedded_files,
        study.distillation.data_files(),
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=FLOOR,
    output:
        manifest=paths.trained(DISTILLED),
    log:
        paths.log(f"distill_decoder/{DISTILLED}"),
    benchmark:
        paths.benchmark(f"distill_decoder/{DISTILLED}")
    threads: lambda wildcards: 1 if embedded_files(wildcards) else DISTILL_THREADS
    resources:
        **study.resources.spread_job(),
    params:
        cfg=lambda wildcards: slice_json(study.distillation.only(wildcards.rule)),
        code=code_digest("slimwise.distill.embedded"),
        launcher=process_launcher(1),
        embedded=str(paths.embedded(DISTILLED)),
        out=subpath(output.manifest, parent=True),
        work=paths.work("distill"),
    shell:
        "{params.launcher} distill-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --rule {wildcards.rule} --embedded {params.embedded} --out {params.out} --work {params.work} 2> {log}"


rule measure_distillation:
    output:
        rows=update(measured.distill_speed),
    log:
        measured.log("measure_distillation"),
    benchmark:
        measured.benchmark("measure_distillation")
    resources:
        **measurement_resources,
    params:
        cfg=measurement_json(measured.distill_speed),
        code=code_digest("slimwise.distill.speed.run"),
    shell:
        'for slice in {params.cfg:q}; do slimwise measure-distillation --config "$slice" --out {output.rows}; done 2> {log}'
