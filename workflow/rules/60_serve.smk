# REQUIRED INPUTS: config/h200/decode_steps.json, the plan, and a GPU.
# OUTPUTS: h200/60_serve/decode_steps.jsonl, to which rows are appended.


rule measure_decode_steps:
    output:
        rows=update(measured.decode_steps),
    log:
        measured.log("measure_decode_steps"),
    benchmark:
        measured.benchmark("measure_decode_steps")
    resources:
        **measurement_resources,
    params:
        cfg=lambda wildcards: (MEASUREMENT_SETTINGS / "decode_steps.json").read_text(),
        code=code_digest("slimwise_vllm.decode_bench.run"),
        plan=str(MEASUREMENT_SETTINGS / "decode_steps.json"),
        work=str(measured.work("decode_steps")),
    shell:
        "python -m slimwise_vllm.decode_bench.run --plan {params.plan} --out {output.rows} --work {params.work} 2> {log}"
