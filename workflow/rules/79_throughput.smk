# REQUIRED INPUTS: {study}/60_serve/{decoder}.jsonl of every decoder that throughput.decoders names,
#                  80_tables/accuracy.csv.
# OUTPUTS: {study}/80_tables/{throughput,ratio_at_target,prefill_throughput,accuracy_and_throughput}
#          as .csv and .md, 80_figures/{figure_1b,prefill_throughput,throughput} and
#          throughput_captions.json, where throughput.decoders names any.
THROUGHPUT_TABLES = expand(
    paths.table("{name}", "{suffix}"),
    name=[
        "throughput",
        "ratio_at_target",
        "prefill_throughput",
        "accuracy_and_throughput",
    ],
    suffix=["csv", "md"],
)
THROUGHPUT_FIGURES = expand(
    paths.figure("{name}", "{suffix}"),
    name=["figure_1b", "prefill_throughput", "throughput"],
    suffix=study.report.figure_formats,
)
THROUGHPUT_FIGURES.append(paths.figure("throughput_captions", "json"))
THROUGHPUT_ROWS = [paths.throughput_rows(name) for name in study.throughput.decoders]
# The rows stand here too: a fresh clone has the tables but not what they were made from.
THROUGHPUT = [*THROUGHPUT_ROWS, *THROUGHPUT_TABLES, *THROUGHPUT_FIGURES]
if not study.throughput.decoders:
    THROUGHPUT = []


rule write_throughput_tables:
    input:
        rows=THROUGHPUT_ROWS,
        accuracy=paths.table("accuracy"),
        paper=PAPER_THROUGHPUT,
    output:
        THROUGHPUT_TABLES,
    log:
        paths.log("write_throughput_tables"),
    benchmark:
        paths.benchmark("write_throughput_tables")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.served.tables"),
        out=paths.tables,
    shell:
        "slimwise write-throughput-tables --config {params.cfg:q} --rows {input.rows} --accuracy {input.accuracy} --paper {input.paper} --out {params.out} 2> {log}"


rule draw_throughput_figures:
    input:
        THROUGHPUT_TABLES,
    output:
        THROUGHPUT_FIGURES,
    log:
        paths.log("draw_throughput_figures"),
    benchmark:
        paths.benchmark("draw_throughput_figures")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.served.figures"),
        tables=paths.tables,
        out=paths.figures,
    shell:
        "slimwise draw-throughput-figures --config {params.cfg:q} --tables {params.tables} --out {params.out} 2> {log}"
