# REQUIRED INPUTS: {study}/10_backbone/backbone.json; for a pruned decoder the manifest.json of
#                  40_checkpoints/{decoder}/, or to serve it colocated its keep set and, if it is
#                  distilled, the manifest.json of 50_distilled/{decoder}/; the files of
#                  evaluation.data_folder, if the items lie in one.
# OUTPUTS: {study}/70_evaluation/{decoder}[-colocated|-disaggregated]/: samples.parquet, grades.parquet,
#          disagreements.csv.


# First among the jobs that could run: a model below its floor should be known before calibration.
rule generate_full_answers:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
    output:
        samples=paths.samples("full"),
    log:
        paths.log("generate_answers/full"),
    benchmark:
        paths.benchmark("generate_answers/full")
    priority: 1
    threads: study.serving.cpu_threads or model_threads(study.serving.gpus)
    resources:
        **server_resources,
    params:
        **asking("full"),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work("generate/full")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --decoder full --out {output.samples} --work {params.work} 2> {log}"


rule generate_pruned_answers:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
        manifest=paths.checkpoint("{pruned}"),
    output:
        samples=paths.samples("{pruned}"),
    log:
        paths.log("generate_answers/{pruned}"),
    benchmark:
        paths.benchmark("generate_answers/{pruned}")
    threads: study.serving.cpu_threads or model_threads(study.serving.gpus)
    resources:
        **server_resources,
    params:
        **asking("{pruned}"),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work("generate/{pruned}")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --checkpoint {input.manifest} --decoder {wildcards.pruned} --out {output.samples} --work {params.work} 2> {log}"


rule generate_colocated_answers:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        floor=FLOOR,
    output:
        samples=paths.samples(paths.colocated(PRUNED)),
    log:
        paths.log(f"generate_answers/{paths.colocated(PRUNED)}"),
    benchmark:
        paths.benchmark(f"generate_answers/{paths.colocated(PRUNED)}")
    threads: study.serving.cpu_threads or model_threads(study.serving.gpus)
    resources:
        **server_resources,
    params:
        **asking(PRUNED, colocated=True),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work(f"generate/{paths.colocated(PRUNED)}")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --pool {input.keep_set} --decoder {wildcards.criterion}-m{wildcards.num_kept} --out {output.samples} --work {params.work} 2> {log}"


rule generate_distilled_answers:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
        keep_set=paths.keep_set("{criterion}", "{num_kept}"),
        trained=paths.trained(DISTILLED),
    output:
        samples=paths.samples(paths.colocated(DISTILLED)),
    log:
        paths.log(f"generate_answers/{paths.colocated(DISTILLED)}"),
    benchmark:
        paths.benchmark(f"generate_answers/{paths.colocated(DISTILLED)}")
    threads: study.serving.cpu_threads or model_threads(study.serving.gpus)
    resources:
        **server_resources,
    params:
        **asking(DISTILLED, colocated=True),
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work(f"generate/{paths.colocated(DISTILLED)}")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --pool {input.keep_set} {input.trained} --decoder {wildcards.criterion}-m{wildcards.num_kept}-kd_{wildcards.rule} --out {output.samples} --work {params.work} 2> {log}"


# Two servers and a router: twice the cores, GPUs and memory of one server.
rule generate_disaggregated_answers:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
        manifest=paths.checkpoint("{pruned}"),
        floor=FLOOR,
    output:
        samples=paths.samples(paths.disaggregated("{pruned}")),
    log:
        paths.log(f"generate_answers/{paths.disaggregated('{pruned}')}"),
    benchmark:
        paths.benchmark(f"generate_answers/{paths.disaggregated('{pruned}')}")
    threads: 2 * study.serving.cpu_threads or model_threads(2 * study.serving.gpus)
    resources:
        **study.resources.model_job(study.serving.gpus, num_servers=2),
    params:
        **asking("{pruned}", disaggregated=True),
        **layout_words,
        code=code_digest("slimwise.generate.run"),
        work=str(paths.work(f"generate/{paths.disaggregated('{pruned}')}")),
    shell:
        "slimwise generate-answers --config {params.cfg:q} --serving {params.serving:q} --backbone {input.backbone} --checkpoint {input.manifest} --disaggregation {params.layout:q} --decoder {wildcards.pruned} --out {output.samples} --work {params.work} 2> {log}"


rule grade_answers:
    input:
        samples=paths.samples("{decoder}"),
    output:
        grades=paths.grades("{decoder}"),
        disagreements=paths.disagreements("{decoder}"),
    log:
        paths.log("grade_answers/{decoder}"),
    benchmark:
        paths.benchmark("grade_answers/{decoder}")
    threads: study.grading.workers
    resources:
        **record_resources,
    params:
        **grading_words,
        code=code_digest("slimwise.grade.run"),
        cache=str(paths.work("grade")),
    shell:
        "slimwise grade-answers --config {params.grading:q} --samples {input.samples} --out {output.grades} --disagreements {output.disagreements} --cache {params.cache} 2> {log}"
