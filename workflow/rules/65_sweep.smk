# REQUIRED INPUTS: {study}/10_backbone/backbone.json; for a decoder of throughput.decoders the
#                  manifest.json of 40_checkpoints/{decoder}/, or as a pool its keep set and, if it
#                  is distilled, the manifest.json of 50_distilled/{decoder}/.
#                  config/h200/throughput.json, the deployments of a measurement, and a GPU.
# OUTPUTS: {study}/60_serve/{decoder}.jsonl; h200/60_serve/throughput.jsonl, to which rows are
#          appended.
from slimwise.sweep.config import Placement, SweptDecoder


def served_files(wildcards):
    """What the decoder is served from, beside the backbone."""
    decoder, placement = SweptDecoder.parse(wildcards.decoder)
    if decoder.is_full:
        return []
    if placement is Placement.POOL:
        return paths.pool_files(decoder)
    return [paths.checkpoint(decoder)]


# Alone on the machine: what else ran would be measured too.
rule sweep_throughput:
    input:
        backbone=paths.backbone_record,
        files=served_files,
    output:
        rows=paths.throughput_rows("{decoder}"),
    log:
        paths.log("sweep_throughput/{decoder}"),
    benchmark:
        paths.benchmark("sweep_throughput/{decoder}")
    threads: workflow.cores
    resources:
        **study.resources.model_job(
            study.serving.gpus, num_servers=study.throughput.num_servers
        ),
    params:
        **serving_words,
        **layout_words,
        cfg=stage_json(study.throughput.load),
        code=code_digest("slimwise.sweep.run"),
        work=str(paths.work("throughput/{decoder}")),
    shell:
        "slimwise sweep-throughput --config {params.cfg:q} --serving {params.serving:q} --disaggregation {params.layout:q} --backbone {input.backbone} --decoder {wildcards.decoder} --files {input.files} --out {output.rows} --work {params.work} 2> {log}"


rule measure_throughput:
    output:
        rows=update(measured.served_throughput),
    log:
        measured.log("measure_throughput"),
    benchmark:
        measured.benchmark("measure_throughput")
    resources:
        **measurement_resources,
    params:
        cfg=measurement_json(measured.served_throughput),
        code=code_digest("slimwise.sweep.alone"),
        work=str(measured.work("throughput")),
    shell:
        'for slice in {params.cfg:q}; do slimwise measure-throughput --config "$slice" --out {output.rows} --work {params.work}; done 2> {log}'
