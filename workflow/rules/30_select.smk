# REQUIRED INPUTS: {study}/20_calibration/expert_scores.parquet, 10_backbone/backbone.json.
# OUTPUTS: {study}/30_keep_sets/{criterion}-m{num_kept}.json.


rule select_experts:
    input:
        backbone=paths.backbone_record,
        scores=paths.expert_scores,
    output:
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
    log:
        paths.log("select_experts/{criterion}-m{num_kept}"),
    benchmark:
        paths.benchmark("select_experts/{criterion}-m{num_kept}")
    resources:
        **record_resources,
    params:
        cfg=lambda wildcards: slice_json(study.selection.only(**wildcards)),
        code=code_digest("slimwise.select.run"),
    shell:
        "slimwise select-experts --config {params.cfg:q} --backbone {input.backbone} --scores {input.scores} --criterion {wildcards.criterion} --num-kept {wildcards.num_kept} --out {output.keep_set} 2> {log}"
