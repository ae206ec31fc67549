# REQUIRED INPUTS: h200/20_calibration/scoring_speed.jsonl, 40_checkpoints/export_speed.jsonl (of a
#                  CPU), 50_distilled/distill_speed.jsonl and split_rules.jsonl,
#                  60_serve/decode_steps.jsonl, tuned_decode.jsonl, long_context.jsonl,
#                  disaggregated.jsonl and kernel_tuning.jsonl; all are committed, so that none of
#                  this needs a GPU. 60_serve/throughput.jsonl, if there is one.
# OUTPUTS: h200/80_tables/*.csv and *.md, 80_figures/. No study asks for them: name one to make all.
# Of servers under load there may be none yet.
SERVED_ROWS = [path for path in [measured.served_throughput] if path.is_file()]
SERVED_TABLES = [
    "served_throughput",
    "served_ratio_at_target",
    "served_prefill_throughput",
]
MEASURED_TABLES = expand(
    measured.table("{name}", "{suffix}"),
    name=[
        "throughput",
        "ratio_at_target",
        "tuned_throughput",
        "tuned_ratio_at_target",
        "long_context",
        "long_context_ratio",
        "kernel_tuning",
        "mask_overhead",
        "masked_and_exported",
        "coverage",
        "prefill_throughput",
        "capacity",
        "disaggregated",
        "scoring_speed",
        "distill_speed",
        "export_speed",
        "split_rules",
        *(SERVED_TABLES if SERVED_ROWS else []),
    ],
    suffix=["csv", "md"],
)
MEASURED_FIGURES = expand(
    measured.figure("{name}", "{suffix}"),
    name=[
        "throughput",
        "tuned_throughput",
        "coverage",
        "mask_overhead",
        "split_rules",
        *(["served_throughput"] if SERVED_ROWS else []),
    ],
    suffix=study.report.figure_formats,
)
MEASURED_FIGURES.append(measured.figure("captions", "json"))


rule write_measured_tables:
    input:
        rows=[
            measured.decode_rows("decode_steps"),
            measured.decode_rows("tuned_decode"),
            measured.decode_rows("long_context"),
            measured.decode_rows("disaggregated"),
            measured.kernel_tuning,
            measured.scoring_speed,
            measured.distill_speed,
            measured.export_speed,
            measured.split_rules,
            *SERVED_ROWS,
        ],
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
        "slimwise write-measured-tables --config {params.cfg:q} --backbone {params.backbone} --rows {input.rows} --paper {input.paper} --out {params.out} 2> {log}"


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
