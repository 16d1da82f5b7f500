"""Where compiled kernels are kept, never stale after an edit, and how long compiling takes."""

import hashlib
import os
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.files import atomic_path

#: How many sets of compiled kernels are kept before the oldest is removed.
KEPT_CACHES = 4


#: What the source of a kernel has in it.
_MARKS = (b"numba", b"swflow.kernels")


def _cache_folder() -> Path:
    """
    Return a folder named by the sources of all kernels.

    numba does not notice an edit to a function that a kernel calls in another file, so a cache must not
    outlive any edit.
    """
    package = Path(__file__).parent
    digest = hashlib.blake2b(sys.version.encode(), digest_size=8)
    for path in sorted(package.rglob("*.py")):
        source = path.read_bytes()
        if any(mark in source for mark in _MARKS):
            digest.update(source)
    home = os.environ.get("SWFLOW_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swflow"
    return Path(home) / f"kernels-{digest.hexdigest()}"


def _use_cache() -> None:
    """Point numba at the folder, and remove the oldest ones of earlier sources."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = _cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        others = sorted(folder.parent.glob("kernels-*"), key=lambda path: path.stat().st_mtime)
        for old in others[:-KEPT_CACHES]:
            shutil.rmtree(old, ignore_errors=True)
    except OSError:
        return  # a read-only home: numba chooses a place of its own
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:  # imported before us: its setting is already read
        import numba

        numba.config.reload_config()


def kernel_folder() -> Path | None:
    """Return the folder in which compiled kernels are kept; None where nothing can be written."""
    return Path(os.environ["NUMBA_CACHE_DIR"]) if "NUMBA_CACHE_DIR" in os.environ else None


def before_numba() -> None:
    """
    Keep numba from importing SciPy, which takes a quarter of a second, for matrix products that no kernel has.

    In the commands alone: whoever imports the package may have kernels of his own.
    """
    if "swflow.cli" not in sys.modules or "numba" in sys.modules:
        return
    name = "scipy.linalg.cython_blas"
    if name not in sys.modules:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails
        try:
            import numba.np.arraymath  # noqa: F401
        finally:
            del sys.modules[name]


_use_cache()
_lost = threading.local()


def make_ready(kernel: Any, *arguments: Any) -> None:
    """
    Load or compile a `swflow.kernels.Kernel`, so that the call that follows takes its own time alone.

    How long it took is added to `seconds_lost`.
    """
    began = time.perf_counter()
    kernel.prepare(*arguments)
    _lost.seconds = seconds_lost() + time.perf_counter() - began


def seconds_lost() -> float:
    """Return how many seconds this thread has spent in `make_ready`."""
    return getattr(_lost, "seconds", 0.0)


def source_file(source: str) -> Path | None:
    """
    Keep the source of a generated function beside the compiled kernels, so that numba keeps what it compiles of it.

    Parameters
    ----------
    source : str
        A module.

    Returns
    -------
    pathlib.Path, optional
        The file; None where none can be written.
    """
    name = hashlib.blake2b(source.encode(), digest_size=12).hexdigest()
    path = Path(os.environ.get("NUMBA_CACHE_DIR", "")) / "generated" / f"formula_{name}.py"
    if "NUMBA_CACHE_DIR" not in os.environ:
        return None
    try:
        if not path.is_file() or path.read_text() != source:
            with atomic_path(path) as temporary:
                temporary.write_text(source)
    except (OSError, SwflowError):
        return None
    return path
