"""Writing files so that a reader sees the old one or the new one, never a half."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """
    Give a temporary path beside ``path`` that is moved over it when the block ends without an error.

    Parameters
    ----------
    path : path-like
        The file to be written. Its folder is made if need be.

    Yields
    ------
    pathlib.Path
        Where to write. It keeps the endings of ``path``, so that writers that look at them work.

    Examples
    --------
    >>> with atomic_path("/tmp/example.txt") as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{os.getpid()}.{target.name}")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
