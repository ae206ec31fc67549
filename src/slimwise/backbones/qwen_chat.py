"""The form of Qwen's turns, which its families share."""

from slimwise.backbones.base import ChatParsers

THOUGHT_END = "</think>"

_XML_CALL = "<function="
_JSON_CALL = "<tool_call>"


def qwen_chat_parsers(template: str) -> ChatParsers | None:
    """Calls are XML since Qwen3-Coder and JSON before; the template shows which."""
    if THOUGHT_END not in template or _JSON_CALL not in template:
        return None
    return ChatParsers("qwen3", "qwen3_coder" if _XML_CALL in template else "hermes")
