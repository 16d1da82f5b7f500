"""The cache of compiled kernels: its folder, and what its entries depend on."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from swflow.files.fingerprint import cache_home, source_digest

#: How many folders of compiled kernels are kept, one per Python and version of the compiler.
KEPT_CACHES = 4

#: Seconds after which an entry that no process loaded is removed.
KEPT_SECONDS = 30 * 86_400

_COMPILER = [Path(__file__).with_name(name) for name in ("numba_compiler.py", "numba_internals.py")]


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of Python, numba and llvmlite; numba is not imported."""
    return sys.version, version("numba"), version("llvmlite")


@cache
def processor() -> tuple[str, ...]:
    """Return the name of the CPU and its instruction set."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def object_key(functions: Iterable[Callable[..., Any]], variant: Any) -> str:
    """
    Return the key of a compiled object.

    It depends on the import closure of the functions and of the compiler, on Python, numba, llvmlite and the CPU, and
    on the settings of numba in the environment. numba itself does not notice an edit to a function that a kernel calls
    in another file. ``variant`` is what else tells objects apart, such as the types of the arguments.
    """
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    settings = [one for one in settings if not one.startswith("NUMBA_CACHE_DIR=")]
    files = {*_COMPILER, *(Path(function.__code__.co_filename) for function in functions)}
    about = repr((source_digest("", *files), variant, compiler_versions(), processor(), settings))
    return hashlib.blake2b(about.encode(), digest_size=12).hexdigest()


def _use_cache() -> None:
    """Point numba at a folder for the versions of Python and the compiler, which its own cache does not tell apart."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    digest = hashlib.blake2b(repr(compiler_versions()).encode(), digest_size=8).hexdigest()
    folder = cache_home() / f"kernels-{digest}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        others = sorted(folder.parent.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-KEPT_CACHES]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return  # a read-only home: numba uses a folder of its own
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:  # imported before us: its setting is already read
        import numba

        numba.config.reload_config()


def kernel_folder() -> Path | None:
    """Return the folder of compiled kernels; None if no folder can be written."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) if "NUMBA_CACHE_DIR" in os.environ else None


def remove_unused(folder: Path) -> None:
    """Remove compiled objects that no process has loaded for `KEPT_SECONDS`."""
    limit = time.time() - KEPT_SECONDS
    for path in folder.glob("*.o"):
        with suppress(OSError):  # removed by another process
            if path.stat().st_mtime < limit:
                path.unlink()


_use_cache()
