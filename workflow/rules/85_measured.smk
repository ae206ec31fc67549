# REQUIRED INPUTS: h200/20_calibration/scoring_speed.jsonl, 40_checkpoints/export_speed.jsonl (of a
#                  CPU), 50_distilled/distill_speed.jsonl and split_rules.jsonl,
#                  60_serve/decode_steps.jsonl; all are committed, so that none of this needs a GPU.
# OUTPUTS: h200/80_tables/*.csv and *.md, 80_figures/. No study asks for them: name one to make all.
MEASURED_TABLES = expand(
    measured.table("{name}", "{suffix}"),
    name=[
        "throughput",
        "ratio_at_target",
        "mask_overhead",
        "masked_and_exported",
        "coverage",
        "prefill_throughput",
        "capacity",
        "scoring_speed",
        "distill_speed",
        "export_speed",
        "split_rules",
    ],
    suffix=["csv", "md"],
)
MEASURED_FIGURES = expand(
    measured.figure("{name}", "{suffix}"),
    name=["throughput", "coverage", "mask_overhead", "split_rules"],
    suffix=study.report.figure_formats,
)
MEASURED_FIGURES.append(measured.figure("captions", "json"))


rule write_measured_tables:
    input:
        decode_steps=measured.decode_rows("decode_steps"),
        scoring_speed=measured.scoring_speed,
        distill_speed=measured.distill_speed,
        export_speed=measured.export_speed,
        split_rules=measured.split_rules,
        paper=PAPER_THROUGHPUT,
    output:
        MEASURED_TABLES,
    log:
        measured.log("write_measured_tables"),
    benchmark:
        measured.benchmark("write_measured_tables")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.measured.tables"),
        backbone="Qwen3.6-35B-A3B",
        out=measured.tables,
    shell:
        "slimwise write-measured-tables --config {params.cfg:q} --backbone {params.backbone} --decode-steps {input.decode_steps} --scoring-speed {input.scoring_speed} --distill-speed {input.distill_speed} --export-speed {input.export_speed} --split-rules {input.split_rules} --paper {input.paper} --out {params.out} 2> {log}"


rule draw_measured_figures:
    input:
        MEASURED_TABLES,
    output:
        MEASURED_FIGURES,
    log:
        measured.log("draw_measured_figures"),
    benchmark:
        measured.benchmark("draw_measured_figures")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.measured.figures.run"),
        tables=measured.tables,
        out=measured.figures,
    shell:
        "slimwise draw-measured-figures --config {params.cfg:q} --tables {params.tables} --out {params.out} 2> {log}"
