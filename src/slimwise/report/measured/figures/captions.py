"""The words that go with each figure of measurements."""

import pandas as pd

from slimwise.artifacts.captions import Caption

_SEE = "Values are in the table of the same name."
_COVERAGE = "Rising curves of the pool's share against batch"


def coverage_caption(coverage: pd.DataFrame) -> Caption:
    """Of the coverage of a study's own decoding."""
    shares = 100 * coverage["pool_share_measured"]
    steps = coverage["num_steps"].max()
    return Caption(
        "Experts that a decode step reads",
        "Share of its pool that a step of the full model reads, by the number of sequences in it; "
        f"markers are means over layers and up to {steps} steps of answers to the benchmarks, "
        f"the line is what uniform routing expects. Backbone: {coverage['backbone'].iloc[0]}.",
        f"{_COVERAGE}, {shares.min():.0f} % to {shares.max():.0f} %. {_SEE}",
    )


def throughput_caption(throughput: pd.DataFrame, ratios: pd.DataFrame, how: str) -> Caption:
    """Of the curves of figure 4, with how they were measured as the end of the title."""
    found = "; ".join(
        f"{row['deployment']}, {row['weights']}, {row['num_kept']} kept, {row['routing']} routing: "
        f"{row['ratio']:.2f}"
        for row in ratios.to_dict("records")
    )
    return Caption(
        f"Decode throughput of a GPU against the speed for each user, {how}",
        "A point for each batch; solid the full model and the full model masked by the plugin, "
        "dashed checkpoints that hold only kept experts; crosses are interpolated at the target, "
        f"with ratios to the full model. {_origin(throughput)}",
        f"Falling curves of tokens/s/GPU against tokens/s/user. Ratios at the target: {found}.",
    )


def _origin(throughput: pd.DataFrame) -> str:
    first = throughput.iloc[0]
    machines = "; ".join(
        f"{hardware}, contexts of {rows['context_tokens'].median():.0f} tokens"
        for hardware, rows in throughput.groupby("hardware")
    )
    return f"Shape of {first['backbone']} with random weights, vLLM {first['vllm']}, {machines}."


def measured_captions(throughput: pd.DataFrame, ratios: pd.DataFrame) -> dict[str, Caption]:
    """The caption of every figure by its name."""
    origin = _origin(throughput)
    return {
        "throughput": throughput_caption(throughput, ratios, "with the kernels that vLLM ships"),
        "coverage": Caption(
            "Experts that a decode step reads, and prefill speed by experts in use",
            "Left, the share of its pool that a decode step reads; markers are measured, means "
            "over layers, lines are what uniform routing expects. Right, prefill throughput: "
            f"filled the full model and its pools, open exported checkpoints. {origin}",
            f"{_COVERAGE}, 3 % to 100 %. {_SEE}",
        ),
        "mask_overhead": Caption(
            "Overhead of the plugin in a decode step",
            "Paired difference to the same step without the plugin, all experts in use, with and "
            f"without counting the experts of every step; bars are one standard error. {origin}",
            f"Line plots of overhead in ms and in per cent against batch. {_SEE}",
        ),
        "split_rules": Caption(
            "Uniform split points against s = 0",
            "The miniature in slimwise mode, by pool, steps of training and decoding. Above, "
            "accuracy, bars one standard deviation over seeds; below, uniform minus s = 0 of the "
            "same seed, bars its 95 % interval over three seeds.",
            f"Dot plots of accuracy and its difference by benchmark. {_SEE}",
        ),
    }
