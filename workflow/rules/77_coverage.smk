# REQUIRED INPUTS: {study}/10_backbone/backbone.json, {study}/70_evaluation/full/samples.parquet.
# OUTPUTS: {study}/80_tables/coverage.csv and .md, 80_figures/coverage and coverage_captions.json,
#          where coverage.batches names any.
COVERAGE = expand(paths.table("coverage", "{suffix}"), suffix=["csv", "md"])
COVERAGE += expand(
    paths.figure("coverage", "{suffix}"), suffix=study.report.figure_formats
)
COVERAGE.append(paths.figure("coverage_captions", "json"))
if not study.coverage.batches:
    COVERAGE = []


rule measure_coverage:
    input:
        backbone=paths.backbone_record,
        samples=paths.samples("full"),
    output:
        table=paths.table("coverage"),
        twin=paths.table("coverage", "md"),
    log:
        paths.log("measure_coverage"),
    benchmark:
        paths.benchmark("measure_coverage")
    resources:
        **study.resources.model_job(1),
    params:
        cfg=stage_json(study.coverage),
        evaluation=stage_json(study.evaluation.only("full").without_haste()),
        code=code_digest("slimwise.generate.coverage.run"),
    shell:
        "OMP_NUM_THREADS={threads} slimwise measure-coverage --config {params.cfg:q} --evaluation {params.evaluation:q} --backbone {input.backbone} --samples {input.samples} --out {output.table} 2> {log}"


rule draw_coverage:
    input:
        coverage=paths.table("coverage"),
    output:
        expand(paths.figure("coverage", "{suffix}"), suffix=study.report.figure_formats),
        captions=paths.figure("coverage_captions", "json"),
    log:
        paths.log("draw_coverage"),
    benchmark:
        paths.benchmark("draw_coverage")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.measured.figures.coverage"),
        out=paths.figures,
    shell:
        "slimwise draw-coverage --config {params.cfg:q} --coverage {input.coverage} --out {params.out} 2> {log}"
