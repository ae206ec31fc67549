# REQUIRED INPUTS: {study}/10_backbone/backbone.json, and the files of calibration.data_folder, if
#                  the mixture lies in one.
# OUTPUTS: {study}/20_calibration/: routing_stats.safetensors, expert_scores.parquet;
#          h200/20_calibration/scoring_speed.jsonl on a GPU, with a checkout of REAP at reap/.


rule collect_stats:
    input:
        study.calibration.data_files(),
        backbone=paths.backbone_record,
    output:
        stats=paths.routing_stats,
    log:
        paths.log("collect_stats"),
    benchmark:
        paths.benchmark("collect_stats")
    threads: study.calibration.cpu_threads or model_threads(study.resources.gpus)
    resources:
        **study.resources.spread_job(),
    params:
        cfg=stage_json(study.calibration),
        code=code_digest("slimwise.calibrate.run"),
        launcher=process_launcher(study.calibration.gpus_per_model),
        work=paths.work("calibrate"),
    # Threads that wait by spinning slow this stage 3 to 4 times where cores are shared.
    shell:
        "OMP_NUM_THREADS={threads} OMP_WAIT_POLICY=passive {params.launcher} collect-stats --config {params.cfg:q} --backbone {input.backbone} --out {output.stats} --work {params.work} 2> {log}"


rule score_experts:
    input:
        stats=paths.routing_stats,
    output:
        scores=paths.expert_scores,
    log:
        paths.log("score_experts"),
    benchmark:
        paths.benchmark("score_experts")
    resources:
        **record_resources,
    params:
        cfg=stage_json(study.scoring),
        code=code_digest("slimwise.score.run"),
    shell:
        "slimwise score-experts --config {params.cfg:q} --stats {input.stats} --out {output.scores} 2> {log}"


# Rows of measurements are appended, so a job adds to those that are there.
rule measure_scoring:
    output:
        rows=update(measured.scoring_speed),
    log:
        measured.log("measure_scoring"),
    benchmark:
        measured.benchmark("measure_scoring")
    resources:
        **measurement_resources,
    params:
        cfg=measurement_json(measured.scoring_speed),
        code=code_digest("slimwise.calibrate.speed.run"),
    shell:
        'for slice in {params.cfg:q}; do slimwise measure-scoring --config "$slice" --out {output.rows}; done 2> {log}'
