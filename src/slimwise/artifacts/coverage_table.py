"""The columns of the table of experts that a step reads, which several stages write or read."""

COVERAGE_COLUMNS = (
    "backbone",
    "batch",
    "pool_share_measured",
    "pool_share_uniform",
    "phase",
    "routing",
    "num_kept",
    "top_k",
    "distinct_experts",
    "num_steps",
)
