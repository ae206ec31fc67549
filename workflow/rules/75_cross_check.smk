# REQUIRED INPUTS: {study}/10_backbone/backbone.json, {study}/70_evaluation/full/grades.parquet,
#                  and the files of evaluation.data_folder, if the items lie in one.
# OUTPUTS: {study}/80_tables/lm_eval_cross_check.csv and .md, where cross_check.benchmarks names any.
CROSS_CHECKS = expand(
    paths.table("lm_eval_cross_check", "{suffix}"), suffix=["csv", "md"]
)
if not study.cross_check.benchmarks:
    CROSS_CHECKS = []


rule cross_check_scores:
    input:
        study.evaluation.data_files(),
        backbone=paths.backbone_record,
        grades=paths.grades("full"),
    output:
        table=paths.table("lm_eval_cross_check"),
        twin=paths.table("lm_eval_cross_check", "md"),
    log:
        paths.log("cross_check_scores"),
    benchmark:
        paths.benchmark("cross_check_scores")
    threads: study.serving.cpu_threads or model_threads(study.serving.gpus)
    resources:
        **server_resources,
    params:
        **asking("full", cfg="evaluation"),
        **grading_words,
        cfg=stage_json(study.cross_check),
        code=code_digest("slimwise.cross_check.run"),
        work=str(paths.work("cross_check")),
    shell:
        "slimwise cross-check-scores --config {params.cfg:q} --evaluation {params.evaluation:q} --grading {params.grading:q} --serving {params.serving:q} --backbone {input.backbone} --grades {input.grades} --out {output.table} --work {params.work} 2> {log}"
