# REQUIRED INPUTS: {study}/30_keep_sets/{criterion}-m{num_kept}.json, 10_backbone/backbone.json, and
#                  accuracy_floor.json beside it: nothing is pruned unless the full model passes.
# OUTPUTS: {study}/40_checkpoints/{criterion}-m{num_kept}/, whose manifest.json is written last.


rule export_decoder:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=paths.floor_record,
    output:
        manifest=paths.pruned_checkpoint("{criterion}", "{num_kept}") / "manifest.json",
    log:
        paths.log("export_decoder/{criterion}-m{num_kept}"),
    benchmark:
        paths.benchmark("export_decoder/{criterion}-m{num_kept}")
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.export),
        code=code_digest("slimwise.export.run"),
        out=subpath(output.manifest, parent=True),
    shell:
        "slimwise export-decoder --config {params.cfg:q} --backbone {input.backbone} --keep-set {input.keep_set} --out {params.out} 2> {log}"
