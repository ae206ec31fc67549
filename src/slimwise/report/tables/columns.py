"""The columns of every result table before its provenance; others rely on these names."""

_SETTING = (
    "backbone",
    "criterion",
    "num_kept",
    "mode",
    "deployment",
    "distilled",
    "decoding",
    "benchmark",
)

ACCURACY_COLUMNS = (
    *_SETTING,
    "runs",
    "accuracy_mean",
    "accuracy_std",
    "length_p50_tokens",
    "length_p90_tokens",
    "budget_hit_rate",
)
COMPARISON_COLUMNS = (
    *_SETTING,
    "num_items",
    "runs",
    "accuracy_mean",
    "accuracy_std",
    "accuracy_difference",
    "accuracy_difference_low",
    "accuracy_difference_high",
    "length_p50_tokens",
    "length_p50_low_tokens",
    "length_p50_high_tokens",
    "length_p90_tokens",
    "length_p90_low_tokens",
    "length_p90_high_tokens",
    "budget_hit_rate",
    "termination_rate",
    "num_resamples",
    "confidence",
    "paper_accuracy",
    "paper_length_p50_tokens",
    "paper_length_p90_tokens",
)
CATEGORY_COLUMNS = (
    *_SETTING,
    "category",
    "num_items",
    "runs",
    "accuracy_mean",
    "accuracy_std",
)
FINDING_COLUMNS = (
    *_SETTING,
    "finding",
    "runs",
    "share_mean",
    "share_std",
)
OVERLAP_COLUMNS = (
    "backbone",
    "criterion_a",
    "criterion_b",
    "num_kept",
    "num_experts",
    "jaccard_mean",
    "jaccard_min",
    "jaccard_max",
)
OVERLAP_BY_LAYER_COLUMNS = (
    "backbone",
    "criterion_a",
    "criterion_b",
    "num_kept",
    "num_experts",
    "layer",
    "jaccard",
)
STAGE_TIME_COLUMNS = ("stage", "seconds")
