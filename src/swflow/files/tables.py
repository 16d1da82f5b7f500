"""Tables in Parquet files with swflow's metadata; those of workloads have their machine, header and history in it."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import polars as pl

from swflow.errors import SwflowError, one_line, shown
from swflow.files.atomic import atomic_path
from swflow.files.reading import parse_json, require_file
from swflow.jobs.machine import Machine
from swflow.jobs.table import ELIGIBILITY_COLUMNS, NEEDED_COLUMNS, Entry, Workload, check_columns
from swflow.values import number, text, whole_number

#: Tables with more rows are read and written part by part: 100 million jobs in all columns take 16 GB.
MOST_AT_ONCE = 2**22

#: Rows per row group of files that are written part by part.
ROW_GROUP = 2**17

#: Key of swflow's metadata in a Parquet file.
METADATA_KEY = "swflow"


def read_workload(path: str | os.PathLike[str], columns: Iterable[str] | None = None) -> Workload:
    """
    Read a workload from a Parquet file written by swflow; its name is that of the file.

    With ``columns``, read only these, if present, and those that every workload must have, those of
    `ELIGIBILITY_COLUMNS`, and the demands for the machine's resources.
    """
    return workload_with(read_metadata(path), path, columns)


def workload_with(
    about: Mapping[str, Any],
    path: str | os.PathLike[str],
    columns: Iterable[str] | None = None,
    processors: int | None = None,
) -> Workload:
    """Return the workload in a file, as `read_workload` does, from its metadata, on a machine of ``processors``."""
    if about.get("kind") != "workload":
        raise SwflowError(
            f"{path}: not a workload of swflow; create one with: swflow clean LOG.swf.gz -o WORKLOAD.parquet"
        )
    made_for = Machine(**about["machine"])
    if columns is not None:
        columns = {*columns, *NEEDED_COLUMNS, *ELIGIBILITY_COLUMNS, *made_for.resources}
        columns |= {"think_time"} if "depends_on" in parquet_schema(path) else set()
    jobs = read_columns(path, columns)
    jobs = check_columns(jobs, str(path))
    for name in (*made_for.resources, *made_for.capacities):
        if name in jobs.columns and not (jobs[name].dtype.is_numeric() or jobs[name].dtype == pl.Null):
            raise SwflowError(f"{path}: column {name} holds {jobs[name].dtype}, not numbers; convert it")
    return Workload(
        jobs=jobs,
        machine=made_for if processors is None else made_for.with_processors(processors),
        name=Path(path).stem,
        header=about["header"],
        history=tuple(about["history"]),
    )


def read_columns(path: str | os.PathLike[str], columns: Iterable[str] | None = None) -> pl.DataFrame:
    """
    Read columns of a Parquet file, if present (default: all), in the file's order.

    Columns of a large file are read one by one, each into one array.
    """
    file = Path(path)
    names = list(parquet_schema(file))
    if columns is not None:
        wanted = set(columns)
        names = [name for name in names if name in wanted]
    # The ids of jobs differ, so that a job takes more than a byte: counting the rows of a small file would be a waste.
    if file.stat().st_size <= MOST_AT_ONCE or height_of(file) <= MOST_AT_ONCE:
        return read_parquet(file, names)
    # Reading all columns at once would hold them twice, as parts and as a whole.
    return pl.DataFrame([read_parquet(file, [name]).to_series().rechunk() for name in names])


def height_of(path: str | os.PathLike[str]) -> int:
    """Return the number of rows of a Parquet file, from its footer."""
    return int(pl.scan_parquet(Path(path), glob=False).select(pl.len()).collect(engine="in-memory").item())


def write_workload(workload: Workload, path: str | os.PathLike[str]) -> None:
    """Write a workload to a Parquet file, atomically; equal workloads give identical files."""
    write_table(workload.jobs, path, about_workload(workload.machine, workload.header, workload.history))


def about_workload(machine: Machine, header: Mapping[str, list[str]], history: Iterable[Entry]) -> dict[str, object]:
    """Return the metadata of a workload's file."""
    return {"kind": "workload", "machine": machine.to_dict(), "header": dict(header), "history": list(history)}


def write_table(
    table: pl.DataFrame | pl.LazyFrame, path: str | os.PathLike[str], about: Mapping[str, object], rows: int = 0
) -> None:
    """
    Write a table to Parquet atomically, with ``about`` as JSON in its metadata.

    ``rows`` is the number of rows of a lazy table. If it is above `MOST_AT_ONCE`, the table is never in memory as a
    whole.
    """
    notes = {METADATA_KEY: json.dumps(about, sort_keys=True)}
    with atomic_path(path) as temporary:
        if isinstance(table, pl.LazyFrame) and rows > MOST_AT_ONCE:
            table.sink_parquet(temporary, compression="zstd", metadata=notes, row_group_size=ROW_GROUP)
        else:
            table.lazy().collect(engine="in-memory").write_parquet(temporary, compression="zstd", metadata=notes)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return swflow's metadata of a Parquet file; empty if swflow did not write it."""
    stored = parquet_metadata(path).get(METADATA_KEY, "{}")
    about = parse_json(stored, f"{path}: metadata")
    if not isinstance(about, dict):
        raise SwflowError(f"{path}: metadata: {shown(about)}; expected an object; create the file again")
    _check_metadata(about, str(path))
    return about


# -- checks of metadata, once, where a file is opened

#: The keys that a file of each kind must have.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "workload": ("machine", "header", "history"),
    "log": ("header", "history"),
    "run": ("workload", "scheduler", "options", "machine", "input", "source", "metrics", "correlations",
            "peak_processors", "rows"),
    "bounds": ("workload", "input"),
    "sweep": ("workload", "schedulers"),
}  # fmt: skip


#: The options of a scheduler whose values are names, or none.
_NAMED = {
    "order", "backfill", "backfill_order", "estimates", "prediction", "allocation", "runtime", "event_order",
    "dispatch", "shapes",
}  # fmt: skip


def _check_metadata(about: Mapping[str, Any], where: str) -> None:
    """
    Raise an error if the metadata of a file lacks a key of its kind, or has a value of another type.

    Examples
    --------
    >>> _check_metadata({"kind": "log", "header": {"MaxProcs": 8}, "history": []}, "my.parquet")
    Traceback (most recent call last):
    swflow.errors.SwflowError: my.parquet: metadata: header: MaxProcs: 8; expected a list; create the file again
    """
    try:
        for key in _REQUIRED.get(str(about.get("kind")), ()):
            if key not in about:
                raise SwflowError(f"no key {key!r}")
        for key, check in _CHECKS.items():
            if key in about:
                check(about[key], key)
    except SwflowError as error:
        raise SwflowError(f"{where}: metadata: {error}; create the file again") from None


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SwflowError(f"{where}: {shown(value)}; expected an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise SwflowError(f"{where}: {shown(value)}; expected a list")
    return value


def _kind(value: Any, where: str) -> None:
    if value is not None:
        text(value, where)


def _machine(value: Any, where: str) -> None:
    known = {field.name for field in fields(Machine)}
    unknown = [name for name in _mapping(value, where) if name not in known]
    if unknown or not {"processors", "nodes"} <= value.keys():
        raise SwflowError(f"{where}: {shown(value)}; expected {', '.join(sorted(known))}")
    Machine(**value)


def _header(value: Any, where: str) -> None:
    for key, values in _mapping(value, where).items():
        for one in _list(values, f"{where}: {key}"):
            if not isinstance(one, str):
                raise SwflowError(f"{where}: {key}: {shown(one)}; expected a text")


def _counts(value: Any, where: str) -> None:
    for reason, count in _mapping(value, where).items():
        whole_number(count, f"{where}: {reason}")


def _history(value: Any, where: str) -> None:
    for place, entry in enumerate(_list(value, where), 1):
        at = f"{where}: entry {place}"
        text(_mapping(entry, at).get("stage"), f"{at}: stage")
        is_read = entry["stage"] in ("import", "clean")  # its counts are printed
        for key in ("read", "kept"):
            if key in entry or is_read:
                whole_number(entry.get(key), f"{at}: {key}")
        if "removed" in entry or is_read:
            _counts(entry.get("removed"), f"{at}: removed")
        _counts(entry.get("notes") or {}, f"{at}: notes")
        for key in ("machine_from", "format", "source", "model"):
            if entry.get(key) is not None:
                text(entry[key], f"{at}: {key}")
        if entry.get("guessed_processors") is not None:
            whole_number(entry["guessed_processors"], f"{at}: guessed_processors")
        for warning in _list(entry.get("warnings", []), f"{at}: warnings"):
            text(warning, f"{at}: warnings")
        for measure, pair in _mapping(entry.get("fit") or {}, f"{at}: fit").items():
            if len(_list(pair, f"{at}: fit: {measure}")) != 2:
                raise SwflowError(f"{at}: fit: {measure}: {shown(pair)}; expected two numbers")


def _metrics(value: Any, where: str) -> None:
    for name, figure in _mapping(value, where).items():
        if figure is not None:
            number(figure, f"{where}: {name}")


def _options(value: Any, where: str) -> None:
    if missing := {*_NAMED, "without_status"} - _mapping(value, where).keys():
        raise SwflowError(f"{where}: no key {min(missing)!r}")
    for name in _NAMED:
        if not isinstance(value[name], str | None):
            raise SwflowError(f"{where}: {name}: {shown(value[name])}; expected a text")


def _schedulers(value: Any, where: str) -> None:
    for name, options in _mapping(value, where).items():
        _options(options, f"{where}: {name}")


def _seconds(value: Any, where: str) -> None:
    number(value, where, least=0)


_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "kind": _kind,
    "machine": _machine,
    "header": _header,
    "history": _history,
    **dict.fromkeys(("workload", "scheduler", "input", "source", "log", "sweep", "measured"), text),
    "options": _options,
    "metrics": _metrics,
    "correlations": _metrics,
    "schedulers": _schedulers,
    "rows": whole_number,
    "peak_processors": whole_number,
    "seconds": _seconds,
}


# -- reading Parquet files of users: the errors and panics of Polars become errors of one line


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
