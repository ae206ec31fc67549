"""The columns of the tables of a study's throughput before their provenance."""

from slimwise.report.measured.columns import SERVED_COLUMNS, SERVED_PREFILL_COLUMNS

SWEPT_COLUMNS = tuple("decoder" if name == "pool" else name for name in SERVED_COLUMNS)
"""A study tells rows apart by decoder, of which a pool is one."""
SWEPT_PREFILL_COLUMNS = tuple(name for name in SERVED_PREFILL_COLUMNS if name != "routing")
"""The routing of a study is its model's."""
TRADE_OFF_COLUMNS = (
    "backbone",
    "criterion",
    "num_kept",
    "mode",
    "distilled",
    "decoding",
    "benchmark",
    "accuracy_mean",
    "accuracy_std",
    "target_tokens_per_s_per_user",
    "tokens_per_s_per_gpu",
    "ratio",
    "engine",
    "weights",
)
