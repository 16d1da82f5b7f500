"""The cache of compiled kernels: its folder, and what its entries depend on."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from swflow.files.cache import remove_folders
from swflow.files.fingerprint import source_digest

#: How many folders of compiled kernels are kept, one per Python and version of the compiler.
KEPT_CACHES = 4

#: Seconds after which an entry that no process loaded is removed.
KEPT_SECONDS = 30 * 86_400

_COMPILER = [Path(__file__).with_name(name) for name in ("numba_compiler.py", "numba_internals.py")]


@cache
def compiler_versions() -> tuple[str, ...]:
    """Return the versions of Python, numba, llvmlite and NumPy; numba is not imported."""
    return sys.version, *map(version, ("numba", "llvmlite", "numpy"))


@cache
def processor() -> tuple[str, ...]:
    """Return the name of the CPU and its instruction set."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def object_key(functions: Iterable[Callable[..., Any]], variant: Any) -> str:
    """
    Return the key of a compiled object.

    It depends on the import closure of the functions and of the compiler, on Python, numba, llvmlite, NumPy and the
    CPU, and on the settings of numba in the environment. numba itself does not notice an edit to a function that a
    kernel calls in another file. ``variant`` is what else tells objects apart, such as the types of the arguments.
    """
    settings = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    settings = [one for one in settings if not one.startswith("NUMBA_CACHE_DIR=")]
    files = {*_COMPILER, *(Path(function.__code__.co_filename) for function in functions)}
    about = repr((source_digest("", *files), variant, compiler_versions(), processor(), settings))
    return hashlib.blake2b(about.encode(), digest_size=12).hexdigest()


@cache
def kernel_folder() -> str:
    """Return the folder of compiled kernels in the cache, one per version of Python and the compiler."""
    folder = f"kernels-{hashlib.blake2b(repr(compiler_versions()).encode(), digest_size=8).hexdigest()}"
    remove_folders("kernels-", KEPT_CACHES, folder)
    return folder
