"""Code of the user's own that a config names, such as ``mypolicy:MyPolicy``: found, loaded, and fingerprinted."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import sys
import traceback
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.files.fingerprint import source_digest

#: The group of entry points with which a package names its policies.
GROUP = "swflow.policies"


def is_own(text: Any) -> bool:
    """
    Return whether a text names an object of a module or of a Python file.

    Examples
    --------
    >>> is_own("mypolicy:MyPolicy"), is_own("policies/mine.py:favor"), is_own("estimate * processors")
    (True, True, False)
    """
    if not isinstance(text, str):
        return False
    module, colon, name = text.rpartition(":")
    is_dotted = all(part.isidentifier() for part in module.split("."))
    return bool(colon) and name.isidentifier() and (module.endswith(".py") or is_dotted)


def named_by_packages() -> dict[str, str]:
    """
    Return the policies that installed packages name, by the names of their entry points of group ``swflow.policies``.

    Examples
    --------
    >>> named_by_packages()["slack"]
    'swflow.policies:Slack'
    """
    return {point.name: point.value for point in importlib.metadata.entry_points(group=GROUP)}


def load_own(text: str, option: str) -> Any:
    """
    Load the object that ``module:name`` or ``file.py:name`` stands for.

    A module is looked for in the current folder first, then where Python looks. Errors name ``option``.

    Raises
    ------
    SwflowError
        If there is no such module or object, or the module fails when it is loaded.
    """
    module, _, name = text.rpartition(":")
    loaded = _load_module(module, option)
    if not hasattr(loaded, name):
        known = [known for known in vars(loaded) if not known.startswith("_")]
        raise SwflowError(f"{option}: {module} has no {name!r}{suggest(name, known)}")
    return getattr(loaded, name)


def source_file(module: str) -> Path | None:
    """Return the file of a module, or None if it is none of Python's sources."""
    if module.endswith(".py"):
        return Path(module)
    beside = Path(*module.split("."))
    for candidate in (beside.with_suffix(".py"), beside / "__init__.py"):
        if candidate.is_file():
            return candidate
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin) if found and found.origin and found.origin.endswith(".py") else None


def _load_module(module: str, option: str) -> ModuleType:
    path = source_file(module)
    if path is None or not path.is_file():
        raise SwflowError(
            f"{option}: {module}: no such Python file or module; give a file (mine.py:Name), or a module in the "
            "current folder or an installed one (mine:Name)"
        )
    installed = not module.endswith(".py") and not path.resolve().is_relative_to(Path.cwd())
    try:
        if installed:
            return importlib.import_module(module)
        return _load_file(path.resolve(), path.stat().st_mtime_ns)
    except SyntaxError as error:
        raise SwflowError(f"{option}: {error.filename}:{error.lineno}: invalid Python ({error.msg})") from None
    except Exception as error:  # whatever the user's code raises
        raise SwflowError(f"{option}: {module}: {error_inside(error)}") from error


@cache
def _load_file(path: Path, changed: int) -> ModuleType:
    """Run a file as a module that can import modules of its folder."""
    name = f"_swflow_own_{hashlib.blake2b(str(path).encode(), digest_size=6).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def error_inside(error: BaseException) -> str:
    """Say in one line what went wrong in the user's code, and where."""
    frames = traceback.extract_tb(error.__traceback__)
    scheduling = Path(__file__).parents[1]
    ours = {scheduling, scheduling / "plugins", scheduling / "orders"}
    own = [frame for frame in frames if Path(frame.filename).parent not in ours]
    where = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    said = " ".join(str(error).split())
    return f"{where}{type(error).__name__}: {said}" if said else f"{where}{type(error).__name__}"


def own_digest(text: str) -> str:
    """
    Return a hash of the source behind ``module:name``: its file, and the modules that this file imports.

    Comments and docstrings do not count. The name of an installed module without sources stands for itself.
    """
    module, _, name = text.rpartition(":")
    file = source_file(module)
    return source_digest(name, *([file] if file else []))
