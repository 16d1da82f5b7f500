"""Fingerprints of the code behind each command, so that an edit reruns the stages that use it and no others."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent


@cache
def fingerprint(command: str) -> str:
    """
    Return a hash of everything that a command of ``swflow`` runs.

    That is the command's function in ``cli/``, the functions there that it calls, and every module of the
    package that these import, directly or through others, with the data files beside them. Comments and
    docstrings do not count.

    Parameters
    ----------
    command : str
        The name of the function in ``cli/``, such as ``clean``.

    Returns
    -------
    str
        16 hexadecimal digits.

    Raises
    ------
    KeyError
        If there is no such function.

    Examples
    --------
    >>> fingerprint("clean") == fingerprint("simulate")
    False
    """
    functions = _command_functions()
    reached = _reached_functions(command, functions)
    digest = hashlib.blake2b(digest_size=8)
    modules: set[str] = set()
    for name in sorted(reached):
        digest.update(ast.dump(functions[name]).encode())
        modules.update(_imported(functions[name]))
    for module in sorted(_closure(modules)):
        digest.update(_module_digest(module))
    return digest.hexdigest()


def modules_behind(command: str) -> list[str]:
    """Return the modules of the package that count for `fingerprint`, sorted."""
    functions = _command_functions()
    reached = _reached_functions(command, functions)
    return sorted(_closure({module for name in reached for module in _imported(functions[name])}))


@cache
def _command_functions() -> dict[str, ast.FunctionDef]:
    """Return the functions of the command line by name, whichever file they stand in."""
    trees = [_without_docstrings(ast.parse(path.read_text())) for path in sorted((PACKAGE / "cli").glob("*.py"))]
    return {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


def _reached_functions(command: str, functions: dict[str, ast.FunctionDef]) -> set[str]:
    reached: set[str] = set()
    waiting = [functions[command].name]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _used_names(functions[name]) & functions.keys()
    return reached


def _used_names(function: ast.FunctionDef) -> set[str]:
    """Return the names that a function uses but does not bind itself: a variable may be called like a command."""
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.FunctionDef) and node is not function:
            bound.add(node.name)
    return used - bound


def _closure(modules: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += _imports_of_module(module)
    return reached


def _path(module: str) -> Path:
    """Return a module's file; of a package, its ``__init__.py``."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _imports_of_module(module: str) -> frozenset[str]:
    return frozenset(_imported(ast.parse(_path(module).read_text())))


def _imported(tree: ast.AST) -> Iterator[str]:
    """Give the modules of the package that a tree imports, at its top or inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("swflow."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "swflow":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            submodules = [name for name in names if _path(name).is_file()]
            yield from submodules
            if len(submodules) < len(names) and node.module != "swflow":
                yield node.module


@cache
def _module_digest(module: str) -> bytes:
    path = _path(module)
    digest = hashlib.blake2b(module.encode(), digest_size=16)
    digest.update(ast.dump(_without_docstrings(ast.parse(path.read_text()))).encode())
    beside = _beside_package(path.parent) if path.stem == "__init__" else path.parent.glob(f"{path.stem}.*")
    for data in sorted(beside):
        if data.is_file() and data.suffix not in {".py", ".pyc"}:
            digest.update(data.read_bytes())
    return digest.digest()


def _beside_package(folder: Path) -> Iterator[Path]:
    """Give the files of a package and of its folders of data, those without modules."""
    for path in folder.iterdir():
        if path.is_dir() and not any(path.glob("*.py")) and path.name != "__pycache__":
            yield from path.rglob("*")
        else:
            yield path


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body[:1] = [ast.Pass()]
    return tree
