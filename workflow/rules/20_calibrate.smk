# REQUIRED INPUTS: {study}/10_backbone/backbone.json.
# OUTPUTS: {study}/20_calibration/: routing_stats.safetensors, expert_scores.parquet.


rule collect_stats:
    input:
        backbone=paths.backbone_record,
    output:
        stats=paths.routing_stats,
    log:
        paths.log("collect_stats"),
    benchmark:
        paths.benchmark("collect_stats")
    threads: study.calibration.cpu_threads or workflow.cores
    resources:
        **model_resources,
    params:
        cfg=stage_json(study.calibration),
        code=code_digest("slimwise.calibrate.run"),
        work=paths.work("calibrate"),
    # Threads that wait by spinning slow this stage 3 to 4 times where cores are shared.
    shell:
        "OMP_NUM_THREADS={threads} OMP_WAIT_POLICY=passive slimwise collect-stats --config {params.cfg:q} --backbone {input.backbone} --out {output.stats} --work {params.work} 2> {log}"


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
