"""A name of the scheduling package is bound in one file: who reads it need not ask which one is meant."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import swflow.scheduling

PACKAGE = Path(swflow.scheduling.__file__).parent


def bound_at_top(tree: ast.Module) -> Iterable[str]:
    """Give the names that a module defines itself; imported ones are another's."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            names = ast.walk(target) if target is not None else ()
            yield from (name.id for name in names if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))


def test_no_name_is_bound_in_two_files() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for name in bound_at_top(ast.parse(path.read_text())):
            files[name].add(str(path.relative_to(PACKAGE)))
    assert len(files) > 300
    several = {name: where for name, where in files.items() if len(where) > 1 and not name.startswith("__")}
    assert not several
