"""Read Parquet files of users with Polars, whose errors and panics become errors of one line."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from swflow.errors import SwflowError, one_line
from swflow.files.reading import require_file


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the table of a Parquet file, or some of its columns; raise `SwflowError` if it is damaged."""
    with _readable(path):
        return pl.read_parquet(Path(path), glob=False, columns=None if columns is None else list(columns))


def parquet_schema(path: str | os.PathLike[str]) -> dict[str, pl.DataType]:
    """Return the columns of a Parquet file with their types; raise `SwflowError` if it is damaged."""
    with _readable(path):
        return dict(pl.read_parquet_schema(Path(path)))


def parquet_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the metadata of a Parquet file; raise `SwflowError` if it is damaged."""
    with _readable(path):
        return pl.read_parquet_metadata(Path(path))


@contextmanager
def _readable(path: str | os.PathLike[str]) -> Iterator[None]:
    """
    Require a file that can be read, and convert the errors of Polars to one line.

    In damaged data it panics: it prints several lines on standard error, which therefore leads nowhere meanwhile, and
    raises an exception outside of `Exception`.
    """
    require_file(path)
    try:
        with _silenced():
            yield
    except (pl.exceptions.PolarsError, OSError, ValueError, OverflowError) as error:
        raise SwflowError(f"{path}: not a readable Parquet file ({one_line(str(error))[:200]})") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise SwflowError(f"{path}: damaged data; create the file again") from None


@contextmanager
def _silenced() -> Iterator[None]:
    """Discard what is written to standard error, if it is open."""
    try:
        saved = os.dup(2)
    except OSError:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
