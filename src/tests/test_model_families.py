import ast
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
# A norm of vLLM with weights around zero, which several families use.
_LAYER_CLASSES = {"GemmaRMSNorm"}
_FAMILY = re.compile(r"qwen|gemma|mixtral|olmoe|deepseek|llama", re.IGNORECASE)


def _words(tree: ast.AST):
    """Every name and string of the code; prose aside."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.alias(name=word):
                yield word
            case ast.Constant(value=str(word)) if "\n" not in word.strip():
                yield word


def test_code_names_model_families_under_backbones_only():
    named = {
        f"{path.relative_to(SOURCE)}: {word}"
        for path in SOURCE.glob("slimwise*/**/*.py")
        if "backbones" not in path.parts
        for word in _words(ast.parse(path.read_text(encoding="utf-8")))
        if _FAMILY.search(word) and word not in _LAYER_CLASSES
    }
    assert named == set()
