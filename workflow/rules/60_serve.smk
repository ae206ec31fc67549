# REQUIRED INPUTS: config/h200/{rows}.json, the plan of each measurement, and a GPU; for plans with
#                  tuned arms h200/60_serve/moe_kernels/, which tune_moe_kernels fills. That folder
#                  is no declared input: a clone gives all files one age, and would measure again.
# OUTPUTS: h200/60_serve/{rows}.jsonl, to which rows are appended; moe_kernels/ beside the rows of
#          kernel_tuning, for VLLM_TUNED_CONFIG_FOLDER.


rule tune_moe_kernels:
    output:
        rows=update(measured.kernel_tuning),
    log:
        measured.log("tune_moe_kernels"),
    benchmark:
        measured.benchmark("tune_moe_kernels")
    resources:
        **measurement_resources,
    params:
        cfg=lambda wildcards: (MEASUREMENT_SETTINGS / "kernel_tuning.json").read_text(),
        code=code_digest("slimwise_vllm.moe_tuning.run"),
        plan=str(MEASUREMENT_SETTINGS / "kernel_tuning.json"),
        kernels=str(measured.moe_kernels),
    shell:
        "python -m slimwise_vllm.moe_tuning.run --plan {params.plan} --out {output.rows} --kernels {params.kernels} 2> {log}"


rule measure_decode_steps:
    output:
        rows=update(measured.decode_rows("{plan}")),
    log:
        measured.log("measure_{plan}"),
    benchmark:
        measured.benchmark("measure_{plan}")
    wildcard_constraints:
        plan="decode_steps|tuned_decode|long_context",
    resources:
        **measurement_resources,
    params:
        cfg=lambda wildcards: (
            MEASUREMENT_SETTINGS / f"{wildcards.plan}.json"
        ).read_text(),
        code=code_digest("slimwise_vllm.decode_bench.run"),
        plan=str(MEASUREMENT_SETTINGS / "{plan}.json"),
        work=str(measured.work("{plan}")),
    shell:
        "python -m slimwise_vllm.decode_bench.run --plan {params.plan} --out {output.rows} --work {params.work} 2> {log}"
