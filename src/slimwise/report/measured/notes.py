"""What a reader must know of each table of measurements; ends its Markdown."""

_STEPS = (
    "Decode steps of the backbone's shape with random weights, bf16, CUDA graphs, no "
    "torch.compile, one GPU; a step's time is the median of blocks of 16 steps, its error that of "
    "the median."
)
_WEIGHTS = (
    'Weights "full" are the full model without the plugin; "full, masked" the full model whose '
    'decode tokens the plugin keeps to a pool (colocated); "exported" a checkpoint that holds only '
    "kept experts, which is what the decode instance of a disaggregated deployment runs, here "
    "without a prefill instance or KV transfer."
)
_ROUTING = (
    "Skewed routing scales router rows until the full model's step at batch 64 reads 75 % of its "
    "pool, as the paper measured; a pool holds the most popular experts."
)
_KERNELS = (
    "Kernels: settings of vLLM's MoE kernel, shipped where vLLM has a file for that number of "
    "experts on this GPU, default where it has none, tuned where they are ours."
)
_TUNED = (
    "Tuned steps and those with vLLM's own settings were taken in turns, in one engine on the same "
    "requests."
)
_RATIO = (
    "Throughput of a GPU over the full model's under the same routing, where a user gets the "
    "target. Interpolated between the two neighbouring points shown (batch: tokens/s/user, "
    "tokens/s/GPU), linearly in the two rates, which is to say that batch grows linearly with "
    "the time of a step."
)
_PAPER = "The paper's ratios are of 2 x A100."
SERVED = (
    "Requests of random prompts, all of one length, answered greedily and as long as asked, by "
    "`vllm bench serve`. Batch, step and both rates are means over the part of a load in which the "
    "whole batch decodes and no prompt is read, from the server's counters; times to the first "
    "token and per output token are medians over requests, from first to last. Context is the "
    "prompt and half of the answer."
)
SERVED_WEIGHTS = (
    'Weights "full" are the full model, "full, masked" a pool of it, "exported" a checkpoint that '
    "holds only kept experts, which is what decodes in a disaggregated deployment."
)
SERVED_PREFILL = (
    "Prompt tokens a second of requests for a single token each, from the first request to the "
    "last answer. Masked rows prune prefill too."
)
_SERVERS = (
    "An engine is a server of the backbone's shape with random weights, bf16, CUDA graphs, no "
    "torch.compile, one GPU. Disaggregated, a server of the full model prefills on a GPU of its "
    "own, NIXL hands its cache over, and rates are the decode GPU's."
)

NOTES = {
    "throughput": f"{_STEPS} {_WEIGHTS} {_ROUTING} {_KERNELS}",
    "ratio_at_target": f"{_RATIO} {_WEIGHTS} {_ROUTING} {_KERNELS} {_PAPER}",
    "tuned_throughput": f"{_STEPS} {_TUNED} {_WEIGHTS} {_ROUTING} {_KERNELS}",
    "tuned_ratio_at_target": (
        f"{_RATIO} {_TUNED} Tuned decoders are compared with the tuned full model, others with the "
        f"full model as vLLM has it. {_WEIGHTS} {_ROUTING} {_KERNELS} {_PAPER}"
    ),
    "long_context": (
        f"{_STEPS} A request of 1,024 prompt tokens and 8,192 answered ones has 5,120 tokens of "
        f"context in the mean: so has every sequence of these steps. {_WEIGHTS} {_ROUTING} "
        f"{_KERNELS}"
    ),
    "long_context_ratio": f"{_RATIO} {_WEIGHTS} {_ROUTING} {_KERNELS} {_PAPER}",
    "kernel_tuning": (
        "Microseconds of the routed experts of one layer, alone, in CUDA graphs of eight calls "
        "that are routed anew each, under skewed routing; medians of twelve turns. Default is the "
        "rule that vLLM takes for a shape that it ships no file for, the ratio is to what vLLM "
        "takes. A setting is tokens x columns x depth of a tile, warps, stages."
    ),
    "mask_overhead": (
        "The same requests decoded without the plugin (full) and with it, pools loaded, all "
        "experts in use (slimwise), in turns of 16 steps in one engine. The overhead is the median "
        "over rounds of the paired difference, its error that of the median; with coverage, the "
        f"experts of every step are counted too. {_STEPS} {_ROUTING}"
    ),
    "masked_and_exported": (
        "A pool of the full model beside a checkpoint that holds the same number of experts. The "
        "two run in engines of their own, so that differences below 2 % are not told from the "
        f"engines'. {_STEPS} {_ROUTING} {_KERNELS}"
    ),
    "coverage": (
        "Share of the experts it may use that a step reads, mean over layers and steps. Batch is "
        "sequences in decode, tokens in prefill. Uniform is m (1 - (1 - k/m)^B) / m. The weights "
        f"are random. {_ROUTING}"
    ),
    "prefill_throughput": (
        "Prompt tokens a second, median of three, and the difference between the fastest and the "
        f"slowest. Random weights. {_WEIGHTS} Masked rows prune prefill too. {_KERNELS}"
    ),
    "capacity": (
        "Requests of that many tokens whose KV cache and recurrent state fit at once, with 90 % of "
        "the GPU's memory for vLLM. The masked full model holds as many as the full one."
    ),
    "disaggregated": (
        "A real deployment of the shape with random weights, bf16: the full model prefills on one "
        "GPU, the decoder of num_kept experts decodes on the other, NIXL moves the cache over "
        "NVLink, vllm-router is asked by vllm bench serve in a closed loop, so that the batch "
        "falls short of the concurrency while prompts wait. Tokens/s of the decode GPU alone, over "
        "the whole run; time per output token without the first. Every decode server computed the "
        "last token of each prompt and no other. Throughput at the target is interpolated as in "
        f"ratio_at_target. {_KERNELS}"
    ),
    "served_throughput": f"{SERVED} {_SERVERS} {SERVED_WEIGHTS} {_ROUTING} {_KERNELS}",
    "served_ratio_at_target": (
        f"{_RATIO} The full model is that of a server without pools, if there is one. {SERVED} "
        f"{_SERVERS} {SERVED_WEIGHTS} {_ROUTING} {_KERNELS} {_PAPER}"
    ),
    "served_prefill_throughput": (
        f"{SERVED_PREFILL} {_SERVERS} {SERVED_WEIGHTS} {_ROUTING} {_KERNELS}"
    ),
    "scoring_speed": (
        "Forward passes of the shape with random weights and random tokens, bf16, all layers, LM "
        "head left out. The observer of the REAP code runs with one sequence a pass, as it is "
        "published; unobserved is the forward pass alone. Hours are for six components of 4,096 x "
        "2,048 tokens."
    ),
    "distill_speed": (
        "Optimiser steps of the shape with random weights and random tokens, bf16, half of the "
        "experts kept. Two copies is the straightforward way: teacher and student as whole models, "
        "full logits, linear attention as the library has it. Hours are for 282 M tokens on one "
        "GPU. A failure is what the device answered: the run does not fit."
    ),
    "export_speed": (
        "GiB/s of what is written, median, beside a copy of the same bytes, each synchronised with "
        "the disk; peak memory is the largest resident set of the exporting process."
    ),
    "split_rules": (
        "The miniature, trained on a GPU, answers in slimwise mode. Standard deviations "
        "over seeds; the difference is uniform - zero of the same seed, its interval Student's "
        "over seeds on one set of items, and missing for one seed."
    ),
}
"""By the names of the tables' files."""
