"""Code fingerprints: hashes of the code behind a command or plugin, so that an edit reruns the stages that use it."""

import ast
import hashlib
import importlib.util
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, cast

from swflow.files.cache import read_cached, write_cached
from swflow.files.reading import file_digest

PACKAGE = Path(__file__).parents[1]

#: Seconds for which a file counts as just written: a second edit may then leave its time and its size unchanged.
_JUST_WRITTEN = 2


@cache
def fingerprint(*commands: str) -> str:
    """
    Return a hash of all code that a command of ``swflow`` runs, or several commands: 16 hexadecimal digits.

    A command is named by its function in ``cli/``, such as ``clean``. The hash covers the definitions in ``cli/`` that
    the command uses, every module that these import, directly or through others, and every module that is loaded with
    the command line, with their data files. Comments, docstrings and help texts of options do not count.

    Raises
    ------
    KeyError
        If there is no such function.

    Examples
    --------
    >>> fingerprint("clean") == fingerprint("simulate")
    False
    """
    return installed().fingerprint(*commands)


def source_digest(name: str, *files: Path) -> str:
    """
    Return a hash of source files, of modules that they import, and of files that they name, 16 hexadecimal digits.

    Modules beside the files count, and so do modules of the package. A file is named by a text in the code that is its
    path, from the current folder or the folder of the code. Comments, docstrings and missing files do not count.
    ``name`` is what is used of the files, such as the name of a user-defined policy; it is a part of the hash.
    """
    digest = hashlib.blake2b(name.encode(), digest_size=8)
    package = installed()
    reached: dict[Path, Source] = {}
    modules: set[str] = set()
    named: set[str] = set()
    waiting = [file for file in files if file.is_file()]
    while waiting:
        path = waiting.pop()
        module = package.names.get(path.resolve())
        if module is not None:
            modules.add(module)
        elif path not in reached:
            reached[path] = source = read_source(path)
            modules.update(package.imported(source.imports))
            beside = (path.parent / f"{(module or name).split('.')[0]}.py" for module, name in source.imports)
            waiting += [file for file in beside if file.is_file()]
            named.update(_files_named(path))
    for path in sorted(reached):
        digest.update(reached[path].digest.encode())
    digest.update("".join([*sorted(named), *package.parts(modules)]).encode())
    package.kept.save()
    return digest.hexdigest()


@cache
def installed() -> "Package":
    """Return the package that is running."""
    return Package(PACKAGE)


#: A module, and the name that is imported from it; an empty name stands for the module itself.
Import = tuple[str, str]


class Definition(NamedTuple):
    """
    A function, class or constant of a module, or its other statements, which count as one definition.

    ``digest`` is a hash of its syntax tree, ``names`` are the names that it uses (also those that a function binds for
    itself), ``imports`` is what it imports while it runs.
    """

    digest: str
    names: set[str]
    imports: set[Import]


class Source(NamedTuple):
    """The content of a source file as far as fingerprints need it."""

    digest: str  # hash of the syntax tree without docstrings
    imports: set[Import]  # imports at the top or inside functions, except those for type checkers
    loaded: set[Import]  # the imports that run when the module is imported
    bound: Mapping[str, Import]  # name that an import at the top binds, to the import
    # Name to definition, for modules of the command line; the empty name stands for all other statements.
    definitions: Mapping[str, Definition]


class Package:
    """The source files of a package, which is a folder; each is parsed once and kept between calls."""

    def __init__(self, folder: Path) -> None:
        folder = folder.resolve()
        self.name = folder.name
        self.files: dict[str, Path] = {}
        for path in folder.rglob("*.py"):
            parts = [self.name, *path.relative_to(folder).with_suffix("").parts]
            self.files[".".join(parts[:-1] if path.stem == "__init__" else parts)] = path
        self.names = {path: name for name, path in self.files.items()}
        homes = {path.parent for path in self.names}
        #: The data files by the nearest folder around them that has modules.
        self.data: dict[Path, list[Path]] = defaultdict(list)
        for path in sorted(folder.rglob("[!.]*")):
            is_data = path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts and path.is_file()
            if is_data:
                self.data[next(home for home in path.parents if home in homes)].append(path)
        self.kept = _Kept(folder, [*self.names, *(file for files in self.data.values() for file in files)])

    def fingerprint(self, *commands: str) -> str:
        """Return the hash of a command; see `fingerprint`."""
        definitions, used = self._reached(commands)
        parts = [*sorted(one.digest for one in definitions), *self.parts(used, self._startup)]
        self.kept.save()
        return hashlib.blake2b("".join(parts).encode(), digest_size=8).hexdigest()

    def modules_behind(self, *commands: str) -> set[str]:
        """Return the modules that count for the fingerprint of a command, those of the command line included."""
        full = self.closure(self._reached(commands)[1])
        return full | self.closure({*full, *self._startup}, loaded=True) | self._cli.keys()

    def closure(self, modules: Iterable[str], loaded: bool = False) -> set[str]:
        """
        Return modules with all that these import, at their top or inside functions.

        With ``loaded``, only what is loaded when they are imported counts, the packages around them included.
        """
        reached: set[str] = set()
        waiting = list(modules)
        while waiting:
            module = waiting.pop()
            if module not in reached and module in self.files:
                reached.add(module)
                source = self.source(module)
                waiting += self.imported(source.loaded if loaded else source.imports)
                waiting += _around(module) if loaded else []
        return reached

    def imported(self, imports: Iterable[Import]) -> Iterator[str]:
        """Give the modules of the package among imports."""
        for module, name in imports:
            if f"{module}.{name}" in self.files:
                yield f"{module}.{name}"
            elif module in self.files and not (module == self.name and name.startswith("__")):
                yield module

    @cached_property
    def _startup(self) -> set[str]:
        """The modules that are loaded with the command line, itself left out."""
        return {name for name in self.closure([f"{self.name}.cli"], loaded=True) if not self._is_cli(name)}

    @cached_property
    def _cli(self) -> dict[str, Source]:
        return {name: self.source(name) for name in sorted(self.files) if self._is_cli(name)}

    def parts(self, used: Iterable[str], startup: Iterable[str] = ()) -> Iterator[str]:
        """
        Give the digests of the modules that are used or loaded, directly or through others, and of their data.

        The data of modules that are loaded only does not count.
        """
        full = self.closure(used)
        for module in sorted(full | self.closure({*full, *startup}, loaded=True)):
            if not self._is_cli(module):
                yield f"{module} {self.source(module).digest}"
        for module in sorted(full):
            for file in self._data_of(module):
                yield f"{file.name} {self.kept.value(file, lambda file: _digest(file.read_bytes()))}"

    def _data_of(self, module: str) -> list[Path]:
        """Return the data files of a module: of a package all in its folder, else those of its name."""
        path = self.files[module]
        beside = self.data[path.parent]
        if path.stem == "__init__":
            return beside
        return [file for file in beside if file.parent == path.parent and file.name.startswith(f"{path.stem}.")]

    def source(self, module: str) -> Source:
        """Return the content of a module."""
        return cast(Source, self.kept.value(self.files[module], lambda file: read_source(file, self._is_cli(module))))

    def _is_cli(self, module: str) -> bool:
        return f"{module}.".startswith(f"{self.name}.cli.")

    def _reached(self, commands: Iterable[str]) -> tuple[list[Definition], set[str]]:
        """Return the definitions of the command line that commands use, and the modules that these import."""
        waiting = [(name, "") for name in self._cli]
        for command in commands:
            homes = [name for name, source in self._cli.items() if command in source.definitions]
            if not homes:
                raise KeyError(command)
            waiting += [(name, command) for name in homes]
        reached: dict[tuple[str, str], Definition] = {}
        modules: set[str] = set()
        while waiting:
            module, name = waiting.pop()
            definition = self._cli[module].definitions.get(name)
            if definition is None or (module, name) in reached:
                continue
            reached[module, name] = definition
            if module == f"{self.name}.cli.app":
                continue  # it calls functions for help and completion only
            waiting += [(module, used) for used in definition.names]
            bound = self._cli[module].bound
            for imported in [*(bound[used] for used in definition.names if used in bound), *definition.imports]:
                if imported[0] in self._cli and imported[1] in self._cli[imported[0]].definitions:
                    waiting.append(imported)
                    continue
                for one in self.imported([imported]):
                    if one in self._cli:
                        waiting += [(one, other) for other in self._cli[one].definitions]
                    else:
                        modules.add(one)
        return list(reached.values()), modules


def _around(module: str) -> list[str]:
    """Return the packages around a module."""
    parts = module.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


# -- parsing


def read_source(path: Path, cli: bool = False) -> Source:
    """Parse a source file; with ``cli``, definition by definition. A file with a syntax error counts byte by byte."""
    text = path.read_bytes()
    try:
        tree = _Executed().visit(ast.parse(text))
    except (SyntaxError, ValueError):
        return Source(_digest(text), set(), set(), {}, {})
    loaded = list(_imports(_on_import(tree), path))
    return Source(
        _digest(ast.dump(tree).encode()),
        {one for _, one in _imports(ast.walk(tree), path)},
        {one for _, one in loaded},
        dict(loaded) if cli else {},
        _definitions(tree, path) if cli else {},
    )


def _files_named(path: Path) -> Iterator[str]:
    """
    Give the name and the digest of each file that a source file names, such as the weights of a trained policy.

    A name is a text of the code that is the path of a file, from the current folder or that of the source file.
    """
    with suppress(SyntaxError, ValueError):
        tree = _Executed().visit(ast.parse(path.read_bytes()))
        texts = {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
        for text in texts:
            for file in (Path(text), path.parent / text):
                with suppress(OSError, ValueError):  # no path
                    if file.is_file():
                        yield f"{text} {file_digest(file)}"


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class _Executed(ast.NodeTransformer):
    """Leave out docstrings, and what is for type checkers only."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        name = getattr(node.test, "id", getattr(node.test, "attr", None))
        return node.orelse if name == "TYPE_CHECKING" else node


def _on_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all nodes within it that are executed when the module is imported."""
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _on_import(child)


def _imports(nodes: Iterable[ast.AST], path: Path) -> Iterator[tuple[str, Import]]:
    """Give the imports among nodes: the name that each binds, and what it imports."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], (alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                around = _package_around(path)
                module = importlib.util.resolve_name("." * node.level + module, around) if around else module
            for alias in node.names:
                yield alias.asname or alias.name, (module, alias.name)


def _package_around(path: Path) -> str:
    """Return the name of the package that a file is in; empty if it is in none."""
    folders = takewhile(lambda folder: (folder / "__init__.py").is_file(), path.parents)
    return ".".join(reversed([folder.name for folder in folders]))


def _definitions(tree: ast.Module, path: Path) -> dict[str, Definition]:
    """Return the definitions of a module, and its other statements under the empty name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):  # help texts and completions of options do not count
            node.keywords = [one for one in node.keywords if one.arg not in ("help", "autocompletion")]
    statements: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            for name in _bound_by(node):
                statements.setdefault(name, []).append(node)
    found = {}
    for name, nodes in statements.items():
        inner = [one for node in nodes for one in ast.walk(node)]
        imports = list(_imports(inner, path))
        used = {one.id for one in inner if isinstance(one, ast.Name)} - {bound for bound, _ in imports}
        if not name:
            used = set()  # statements that add commands: what these do is not what a command does
        digest = _digest("".join(map(ast.dump, nodes)).encode())
        found[name] = Definition(digest, used, {one for _, one in imports})
    return found


def _bound_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [one.id for target in targets if target for one in ast.walk(target) if isinstance(one, ast.Name)]
    return names or [""]


# -- the cache


class _Kept:
    """
    What is read from the files of a package, kept in the cache folder by path, size and times.

    A cache that is damaged, or written by other code or another Python, is ignored.
    """

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self.states = {file: _state(file) for file in files}
        self.head = _digest(repr((sys.version, _digest(Path(__file__).read_bytes()))).encode())
        self.name = f"{_digest(os.fsencode(folder))[:16]}.json"
        head, content = read_cached("sources", self.name) or ("", b"")
        kept = json.loads(content) if head == self.head else {}
        self.stored = {
            file: kept[str(file)][1] for file, state in self.states.items() if kept.get(str(file), [[]])[0] == state
        }
        self.values: dict[Path, Source | str] = {}
        self.is_new = False

    def save(self) -> None:
        """Write what was read, unless nothing was; leave out files that may have changed meanwhile."""
        if not self.is_new:
            return
        latest = time.time_ns() - _JUST_WRITTEN * 10**9
        with suppress(OSError):  # a file is gone
            self.stored |= {file: _stored(value) for file, value in self.values.items()}
            kept = {
                str(file): (state, self.stored[file])
                for file, state in self.states.items()
                if file in self.stored and _state(file) == state and max(state[1:]) < latest
            }
            write_cached("sources", self.name, self.head, json.dumps(kept).encode())
        self.is_new = False

    def value(self, file: Path, read: Callable[[Path], Source | str]) -> Source | str:
        """Return what ``read`` returns for a file; each file is read once."""
        if file not in self.values:
            if file in self.stored:
                self.values[file] = _from_stored(self.stored[file])
            else:
                self.values[file], self.is_new = read(file), True
        return self.values[file]


def _stored(value: Source | str) -> Any:
    """Return a value in the form of JSON."""
    if isinstance(value, str):
        return value
    definitions = {name: (one.digest, list(one.names), list(one.imports)) for name, one in value.definitions.items()}
    return value.digest, list(value.imports), list(value.loaded), value.bound, definitions


def _from_stored(stored: Any) -> Source | str:
    """Return the value of `_stored`."""
    if isinstance(stored, str):
        return stored
    digest, imports, loaded, bound, definitions = stored
    return Source(
        digest, _pairs(imports), _pairs(loaded), {name: (module, used) for name, (module, used) in bound.items()},
        {name: Definition(one, set(names), _pairs(others)) for name, (one, names, others) in definitions.items()},
    )  # fmt: skip


def _pairs(imports: Iterable[Iterable[str]]) -> set[Import]:
    return {(module, name) for module, name in imports}


def _state(file: Path) -> list[int]:
    """Return what changes with a file's content: its size, and the times of its last change (ns)."""
    about = file.stat()
    return [about.st_size, about.st_mtime_ns, about.st_ctime_ns]
