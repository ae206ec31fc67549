# REQUIRED INPUTS: {study}/30_keep_sets/{criterion}-m{num_kept}.json, 10_backbone/backbone.json, and
#                  accuracy_floor.json beside it, where the study names floors: nothing is
#                  pruned unless the full model passes;
#                  for a distilled decoder 50_distilled/{decoder}/manifest.json.
# OUTPUTS: {study}/40_checkpoints/{decoder}/, whose manifest.json is written last.
#          h200/40_checkpoints/export_speed.jsonl, with room for a checkpoint and two pruned ones.


rule export_decoder:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=FLOOR,
    output:
        manifest=paths.checkpoint(PRUNED),
    log:
        paths.log(f"export_decoder/{PRUNED}"),
    benchmark:
        paths.benchmark(f"export_decoder/{PRUNED}")
    resources:
        **study.resources.model_job(),
    params:
        cfg=stage_json(study.export),
        code=code_digest("slimwise.export.run"),
        out=subpath(output.manifest, parent=True),
    shell:
        "slimwise export-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --out {params.out} 2> {log}"


rule export_distilled_decoder:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        trained=paths.trained(DISTILLED),
    output:
        manifest=paths.checkpoint(DISTILLED),
    log:
        paths.log(f"export_decoder/{DISTILLED}"),
    benchmark:
        paths.benchmark(f"export_decoder/{DISTILLED}")
    resources:
        **study.resources.model_job(),
    params:
        cfg=stage_json(study.export),
        code=code_digest("slimwise.export.run"),
        out=subpath(output.manifest, parent=True),
    shell:
        "slimwise export-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --trained {input.trained} --out {params.out} 2> {log}"


rule measure_export:
    output:
        rows=update(measured.export_speed),
    log:
        measured.log("measure_export"),
    benchmark:
        measured.benchmark("measure_export")
    resources:
        **record_resources,
    params:
        cfg=measurement_json(measured.export_speed),
        code=code_digest("slimwise.export.speed.run"),
        work=str(measured.work("export_speed")),
    shell:
        'for slice in {params.cfg:q}; do slimwise measure-export --config "$slice" --out {output.rows} --work {params.work}; done 2> {log}'
