"""Every public module, class and function says what it is."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
Defined = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def test_what_is_public_has_a_docstring():
    paths = sorted([*SOURCE.glob("slimwise/**/*.py"), *SOURCE.glob("slimwise_vllm/**/*.py")])
    trees = {path: ast.parse(path.read_text()) for path in paths if path.stat().st_size}
    explained = protocol_methods(trees.values())
    missing = [f"{path}:{line}" for path in trees for line in undocumented(trees[path], explained)]
    assert not missing, "\n".join(missing)


def test_a_missing_docstring_is_found():
    tree = ast.parse("class A:\n    '''An A.'''\n    def b(self): ...\n    def _c(self): ...\n")
    assert list(undocumented(tree, set())) == [1, 3]
    assert list(undocumented(tree, {"b"})) == [1]


def undocumented(parent: ast.Module | Defined, explained: set[str]) -> Iterator[int]:
    """Lines of what has no docstring; methods of those names need none."""
    if ast.get_docstring(parent) is None:
        yield 1 if isinstance(parent, ast.Module) else parent.lineno
    if isinstance(parent, ast.Module | ast.ClassDef):
        for child in public(parent):
            if not (isinstance(parent, ast.ClassDef) and child.name in explained):
                yield from undocumented(child, explained)


def protocol_methods(trees: Iterable[ast.Module]) -> set[str]:
    """Methods that a protocol explains: the classes that follow it need not say it again."""
    return {
        method.name
        for tree in trees
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef) and "Protocol" in map(ast.unparse, kind.bases)
        for method in public(kind)
        if ast.get_docstring(method)
    }


def public(parent: ast.Module | ast.ClassDef) -> Iterator[Defined]:
    for node in parent.body:
        if isinstance(node, Defined) and not node.name.startswith("_"):
            yield node
