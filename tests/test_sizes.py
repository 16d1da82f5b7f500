"""Sizes of the code: a function, a class, a module and a list of parameters can each be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src/swflow"

#: The most lines of a function without its docstring and signature, and of a module; the most methods of a class, and
#: parameters by position. A command of the command line has one parameter per option.
LINES, MODULE, METHODS, PARAMETERS = 60, 500, 25, 8


def too_large(text: str, where: str) -> Iterator[str]:
    """Yield the names of what is larger in a module."""
    if len(text.splitlines()) > MODULE:
        yield where
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and node.body[1:] else node.body
            is_command = any("command" in ast.unparse(one) for one in node.decorator_list)
            given = 0 if is_command else len(node.args.posonlyargs + node.args.args)
            if (node.end_lineno or 0) - body[0].lineno >= LINES or given > PARAMETERS:
                yield f"{where}: {node.name}"
        if isinstance(node, ast.ClassDef) and sum(isinstance(one, ast.FunctionDef) for one in node.body) > METHODS:
            yield f"{where}: {node.name}"


def test_nothing_is_too_large_to_read_at_once() -> None:
    found = {
        name
        for path in SOURCES.rglob("*.py")
        for name in too_large(path.read_text(), path.relative_to(SOURCES).as_posix())
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 501,
        "def large():\n" + "    x = 1\n" * 61,
        "def large(a, b, c, d, e, f, g, h, i): ...",
        "class Large:\n" + "".join(f"    def f{number}(self): ...\n" for number in range(26)),
    ],
)
def test_larger_code_is_found(text: str) -> None:
    assert len(list(too_large(text, "one.py"))) == 1
