"""A slice's identity, so that resumable work is never continued under other settings."""

import hashlib

from slimwise.stage_config import StageConfig


def config_digest(config: StageConfig, *parts: str) -> str:
    """16 hex digits of SHA-256 over the slice and any further identifying parts."""
    text = "\n".join([config.model_dump_json(), *parts])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
