# REQUIRED INPUTS: {study}/10_backbone/backbone.json; for a pruned decoder the manifest.json of
#                  40_checkpoints/{criterion}-m{num_kept}/, or its keep set to serve it colocated.
# OUTPUTS: {study}/70_evaluation/{decoder}[-colocated]/: samples.parquet, grades.parquet.


# First among the jobs that could run: a model below its floor should be known before calibration.
rule generate_full_answers:
    input:
        backbone=paths.backbone_record,
    output:
        samples=paths.samples("full"),
    log:
        paths.log("generate_answers/full"),
    benchmark:
        paths.benchmark("generate_answers/full")
    priority: 1
    threads: study.serving.cpu_threads or workflow.cores
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.evaluation),
        serving=stage_json(study.serving),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work("generate/full")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --decoder full --out {output.samples} --work {params.work} 2> {log}"


rule generate_pruned_answers:
    input:
        backbone=paths.backbone_record,
        manifest=paths.pruned_checkpoint("{criterion}", "{num_kept}") / "manifest.json",
    output:
        samples=paths.samples("{criterion}-m{num_kept}"),
    log:
        paths.log("generate_answers/{criterion}-m{num_kept}"),
    benchmark:
        paths.benchmark("generate_answers/{criterion}-m{num_kept}")
    threads: study.serving.cpu_threads or workflow.cores
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.evaluation),
        serving=stage_json(study.serving),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work("generate/{criterion}-m{num_kept}")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --checkpoint {input.manifest} --decoder {wildcards.criterion}-m{wildcards.num_kept} --out {output.samples} --work {params.work} 2> {log}"


rule generate_colocated_answers:
    input:
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=paths.floor_record,
    output:
        samples=paths.samples(paths.colocated("{criterion}-m{num_kept}")),
    log:
        paths.log("generate_answers/{criterion}-m{num_kept}-colocated"),
    benchmark:
        paths.benchmark("generate_answers/{criterion}-m{num_kept}-colocated")
    threads: study.serving.cpu_threads or workflow.cores
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.evaluation),
        serving=stage_json(study.serving),
        code=[code_digest("slimwise.generate.run"), code_digest("slimwise_vllm.plugin")],
        work=str(paths.work("generate/{criterion}-m{num_kept}-colocated")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --keep-set {input.keep_set} --decoder {wildcards.criterion}-m{wildcards.num_kept} --out {output.samples} --work {params.work} 2> {log}"


rule grade_answers:
    input:
        samples=paths.samples("{decoder}"),
    output:
        grades=paths.grades("{decoder}"),
    log:
        paths.log("grade_answers/{decoder}"),
    benchmark:
        paths.benchmark("grade_answers/{decoder}")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.grading),
        code=code_digest("slimwise.grade.run"),
    shell:
        "slimwise grade-answers --config {params.cfg:q} --samples {input.samples} --out {output.grades} 2> {log}"
