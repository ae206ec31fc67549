"""The columns of every result table before its provenance; others rely on these names."""

ACCURACY_COLUMNS = (
    "backbone",
    "criterion",
    "num_kept",
    "mode",
    "deployment",
    "distilled",
    "decoding",
    "benchmark",
    "runs",
    "accuracy_mean",
    "accuracy_std",
    "length_p50_tokens",
    "length_p90_tokens",
    "budget_hit_rate",
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
STAGE_TIME_COLUMNS = ("stage", "seconds")
