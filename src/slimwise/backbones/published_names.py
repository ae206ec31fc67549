"""Published backbones as tables name them. Torch-free."""

PUBLISHED_NAMES = {
    "qwen3_6_35b_a3b": "Qwen3.6-35B-A3B",
    "gemma4_26b_a4b": "gemma-4-26B-A4B",
}
"""Names by that of the shape, PublishedShape."""
