"""The columns of every table of measurements before its provenance; others rely on these names."""

THROUGHPUT_COLUMNS = (
    "backbone",
    "deployment",
    "mode",
    "num_kept",
    "routing",
    "kernels",
    "batch_offered",
    "batch_running",
    "context_tokens",
    "step_ms",
    "tokens_per_s_per_user",
    "tokens_per_s_per_gpu",
    "vllm",
    "step_error_ms",
    "weights",
    "engine",
)
_NEIGHBOURS = tuple(
    f"{decoder}{side}_{quantity}"
    for decoder in ("full_", "")
    for side in ("faster", "slower")
    for quantity in ("batch", "tokens_per_s_per_user", "tokens_per_s_per_gpu")
)
RATIO_COLUMNS = (
    "backbone",
    "deployment",
    "num_kept",
    "routing",
    "kernels",
    "target_tokens_per_s_per_user",
    "ratio",
    "paper_ratio",
    "full_tokens_per_s_per_gpu",
    "tokens_per_s_per_gpu",
    *_NEIGHBOURS,
    "weights",
    "engine",
    "full_engine",
)
MASK_OVERHEAD_COLUMNS = (
    "backbone",
    "batch",
    "step_ms_full",
    "step_ms_slimwise",
    "overhead_ms",
    "overhead_share",
    "overhead_error_ms",
    "coverage_overhead_ms",
    "coverage_overhead_error_ms",
    "routing",
)
MASKED_AND_EXPORTED_COLUMNS = (
    "backbone",
    "num_kept",
    "routing",
    "batch",
    "step_ms_masked",
    "step_error_ms_masked",
    "kernels_masked",
    "step_ms_exported",
    "step_error_ms_exported",
    "kernels_exported",
    "masked_minus_exported_ms",
)
PREFILL_COLUMNS = (
    "backbone",
    "num_kept",
    "weights",
    "kernels",
    "prompt_tokens",
    "requests",
    "prefill_tokens_per_s",
    "spread_tokens_per_s",
    "engine",
)
CAPACITY_COLUMNS = (
    "backbone",
    "num_kept",
    "weights",
    "request_tokens",
    "capacity_requests",
    "ratio_to_full",
    "kv_blocks",
    "block_tokens",
    "engine",
)
KERNEL_TUNING_COLUMNS = (
    "backbone",
    "num_experts",
    "batch",
    "distinct_experts",
    "layer_us_default",
    "layer_us_shipped",
    "layer_us_tuned",
    "vllm_to_tuned",
    "setting",
    "triton",
)
SCORING_SPEED_COLUMNS = (
    "backbone",
    "implementation",
    "tokens_per_s",
    "peak_gib",
    "ratio_to_reap_observer",
    "mixture_hours",
    "batch_sequences",
    "sequence_tokens",
)
DISTILL_SPEED_COLUMNS = (
    "backbone",
    "implementation",
    "sequence_tokens",
    "tokens_per_s",
    "peak_gib",
    "num_layers",
    "route",
    "ratio_to_two_copies",
    "training_hours",
    "failure",
)
EXPORT_SPEED_COLUMNS = (
    "checkpoint_gib",
    "gib_per_s",
    "copy_gib_per_s",
    "peak_rss_gib",
    "pruned_gib",
    "ratio_to_copy",
    "repeats",
)
SPLIT_RULE_COLUMNS = (
    "backbone",
    "criterion",
    "num_kept",
    "steps",
    "benchmark",
    "decoding",
    "items",
    "seeds",
    "accuracy_full",
    "accuracy_undistilled",
    "accuracy_uniform_mean",
    "accuracy_uniform_std",
    "accuracy_zero_mean",
    "accuracy_zero_std",
    "difference_mean",
    "difference_low",
    "difference_high",
    "confidence",
)
