# REQUIRED INPUTS: {study}/70_evaluation/{decoder}/ of every decoder, 30_keep_sets/,
#                  20_calibration/routing_stats.safetensors and expert_scores.parquet,
#                  10_backbone/backbone.json, 50_distilled/{decoder}/ of every distilled decoder.
# OUTPUTS: {study}/80_tables/*.csv and *.md, 80_figures/, study.json, which lists all of them, and
#          80_report/report.html, written last.
TABLE_NAMES = [
    "accuracy",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "categories",
    "findings",
    "keep_set_overlap",
    "keep_set_overlap_by_layer",
    "stage_times",
]
TABLES = expand(paths.table("{name}"), name=TABLE_NAMES)
TWINS = expand(paths.table("{name}", "md"), name=TABLE_NAMES)
FIGURE_NAMES = [
    "accuracy_by_num_kept",
    "output_lengths",
    "expert_load",
    "expert_load_by_component",
    "keep_set_overlap",
    "keep_set_overlap_by_layer",
    "figure_3",
    "figure_5",
    "length_accuracy",
    "distillation",
]
IMAGE, *PRINTED = study.report.figure_formats
IMAGES = expand(paths.figure("{name}", IMAGE), name=FIGURE_NAMES)
FIGURES = expand(paths.figure("{name}", "{suffix}"), name=FIGURE_NAMES, suffix=PRINTED)
FIGURES.append(paths.figure("captions", "json"))
GRADES = [paths.grades(decoder) for decoder in study.standalone_decoders()]
GRADES += [
    paths.grades(paths.colocated(decoder)) for decoder in study.colocated_decoders()
]
GRADES += [
    paths.grades(paths.disaggregated(decoder))
    for decoder in study.disaggregated_decoders()
]
KEEP_SETS = [
    paths.keep_set(decoder.criterion, decoder.num_kept)
    for decoder in study.decoders()
    if not decoder.is_full
]


rule write_tables:
    input:
        backbone=paths.backbone_record,
        grades=GRADES,
        keep_sets=KEEP_SETS,
        paper=PAPER_RESULTS,
    output:
        report(TABLES, caption="../report/table.rst", category="Tables"),
        TWINS,
    log:
        paths.log("write_tables"),
    benchmark:
        paths.benchmark("write_tables")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.tables.run"),
        benchmarks=paths.benchmarks,
        out=paths.tables,
    shell:
        "slimwise write-tables --config {params.cfg:q} --backbone {input.backbone} --grades {input.grades} --keep-sets {input.keep_sets} --benchmarks {params.benchmarks} --paper {input.paper} --out {params.out} 2> {log}"


rule draw_figures:
    input:
        accuracy=paths.table("accuracy"),
        keep_set_overlap=paths.table("keep_set_overlap"),
        overlap_by_layer=paths.table("keep_set_overlap_by_layer"),
        grades=GRADES,
        stats=paths.routing_stats,
        scores=paths.expert_scores,
        distilled=[paths.trained(decoder) for decoder in study.distilled_decoders()],
    output:
        report(IMAGES, caption="../report/figure.rst", category="Figures"),
        FIGURES,
    log:
        paths.log("draw_figures"),
    benchmark:
        paths.benchmark("draw_figures")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.figures.run"),
        out=paths.figures,
    shell:
        "slimwise draw-figures --config {params.cfg:q} --accuracy {input.accuracy} --keep-set-overlap {input.keep_set_overlap} --overlap-by-layer {input.overlap_by_layer} --grades {input.grades} --stats {input.stats} --scores {input.scores} --distilled {input.distilled} --out {params.out} 2> {log}"


# The grades stand here too: a fresh clone has the tables but not what they were made from.
rule record_study:
    input:
        grades=GRADES,
        products=[
            *TABLES,
            *TWINS,
            *IMAGES,
            *FIGURES,
            *COVERAGE,
            *CROSS_CHECKS,
            *THROUGHPUT,
        ],
    output:
        study=paths.study_record,
    log:
        paths.log("record_study"),
    benchmark:
        paths.benchmark("record_study")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study),
        code=code_digest("slimwise.study_record"),
    shell:
        "slimwise record-study --config {params.cfg:q} --products {input.products} --out {output.study} 2> {log}"


rule write_report:
    input:
        study=paths.study_record,
        products=rules.record_study.input.products,
        grades=GRADES,
        keep_sets=KEEP_SETS,
        paper=PAPER_RESULTS,
    output:
        page=report(paths.report, caption="../report/page.rst", category="Page"),
    log:
        paths.log("write_report"),
    benchmark:
        paths.benchmark("write_report")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.report),
        code=code_digest("slimwise.report.page.run"),
        root=str(paths.root),
    shell:
        "slimwise report {params.root} --paper {input.paper} --out {output.page} 2> {log}"
