"""The columns of the tables of served throughput before their provenance."""

from slimwise.report.measured.columns import PREFILL_COLUMNS, THROUGHPUT_COLUMNS

SERVED_COLUMNS = (
    *(name for name in THROUGHPUT_COLUMNS if name != "step_error_ms"),
    "decoder",
    "ttft_ms",
    "ttft_p99_ms",
    "tpot_ms",
    "tpot_p99_ms",
    "output_tokens_per_s",
    "num_requests",
    "prompt_tokens",
    "output_tokens",
    "steady_s",
    "gpus",
    "kv_cache_tokens",
    "kv_cache_share",
    "preemptions",
    "faults",
)
SERVED_PREFILL_COLUMNS = (
    *(name for name in PREFILL_COLUMNS if name != "spread_tokens_per_s"),
    "deployment",
    "mode",
    "vllm",
)
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
