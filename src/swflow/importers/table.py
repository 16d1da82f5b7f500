"""Tables of jobs, CSV or Parquet, whose columns a mapping explains: open data sets, and what a site exports itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from swflow.errors import SwflowError, suggest
from swflow.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log, unix_seconds
from swflow.importers.slurm import seconds

#: What a mapping may explain, besides ``status_values`` and ``where``.
TARGETS = {
    "job_id": "site_job_id", "submit_time": "submit", "start_time": "start", "end_time": "end", "wait_time": "wait",
    "run_time": "run_time", "processors": "allocated_processors", "requested_processors": "requested_processors",
    "requested_time": "requested_time", "average_cpu_time": "average_cpu_time", "used_memory": "used_memory",
    "requested_memory": "requested_memory", "status": "status", "user": "user", "group": "group", "queue": "queue",
    "partition": "partition", "executable": "executable", "nodes": "nodes", "gpus": "gpus",
}  # fmt: skip

_TIMES = ("submit_time", "start_time", "end_time")
_SPANS = ("wait_time", "run_time", "requested_time", "average_cpu_time")
_MEMORY = ("used_memory", "requested_memory")
_COUNTS = ("processors", "requested_processors", "nodes", "gpus")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "days": 86400.0}
_KILOBYTES = {"B": 1 / 1024, "KB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}
_KEYS = ("column", "unit", "format", "factor")

#: Mappings of well-known data sets, beside this file.
PRESETS = Path(__file__).parent / "columns"


def import_table(path: str, site: Site, mapping: str) -> ImportedLog:
    """
    Import a table of jobs.

    Parameters
    ----------
    path : str
        CSV (plain or gzipped; the separator is that of the header) or Parquet.
    site : Site
        What the user says of the machine.
    mapping : str
        A YAML file, or the name of one that comes with swflow: ``columns`` (of `TARGETS` to a column's name, or to a
        mapping of ``column``, ``unit``, ``format`` and ``factor``), ``status`` (a value to 0, 1 or 5),
        ``delimiter``.

    Raises
    ------
    SwflowError
        If a file cannot be read, the mapping is wrong, or no job can be used.
    """
    about, where = _read_mapping(mapping)
    columns = {name: _explained(name, entry, where) for name, entry in about["columns"].items()}
    table = _read_table(path, about.get("delimiter"))
    for name, entry in columns.items():
        if entry["column"] not in table.columns:
            raise SwflowError(
                f"{where}: columns: {name}: {path} has no column {entry['column']!r}"
                f"{suggest(entry['column'], table.columns)}"
            )
    tally = Tally()
    table = table.with_row_index("line", 2).with_columns(pl.col("line").cast(pl.Int64))
    records = table.select("line")
    for name, entry in columns.items():
        values = _converted(table[entry["column"]], name, entry, site, about.get("status"), f"{where}: columns: {name}")
        records = records.with_columns(values.alias(TARGETS[name]))
        unread = table[entry["column"]].is_not_null() & values.is_null()
        unread &= table[entry["column"]].cast(pl.String).str.strip_chars().is_in(["", "-1", "None", "nan"]).not_()
        tally.note(records.with_columns(unread=unread), f"{name} that is none", pl.col("unread"))
    return make_log(_completed(records, tally), tally, site, source=path, form=f"csv ({Path(mapping).stem})")


def _read_mapping(mapping: str) -> tuple[Mapping[str, Any], str]:
    """Read a mapping, or raise an error that names its file."""
    path = Path(mapping)
    shipped = sorted(file.stem for file in PRESETS.glob("*.yaml"))
    if mapping in shipped:
        path = PRESETS / f"{mapping}.yaml"
    try:
        content = yaml.safe_load(path.read_text())
    except OSError:
        raise SwflowError(
            f"--columns {mapping}: no such file, and no mapping of swflow ({', '.join(shipped)})"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SwflowError(f"{mapping}: no valid YAML ({str(error).splitlines()[0]})") from None
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping):
        raise SwflowError(f"{mapping}: must have 'columns', such as columns: {{submit_time: submitted, run_time: …}}")
    known = ("columns", "status", "delimiter", "source")
    for key in content:
        if key not in known:
            raise SwflowError(f"{mapping}: unknown key {key!r}{suggest(str(key), known)}")
    for name in content["columns"]:
        if name not in TARGETS:
            raise SwflowError(f"{mapping}: columns: unknown {name!r}{suggest(str(name), TARGETS)}")
    needed = [{"submit_time"}, {"run_time", "end_time"}, {"processors", "requested_processors", "nodes"}]
    for options in needed:
        if not options & content["columns"].keys():
            raise SwflowError(f"{mapping}: columns: {' or '.join(sorted(options))} is missing; it must be known")
    if "run_time" not in content["columns"] and not {"start_time", "wait_time"} & content["columns"].keys():
        raise SwflowError(f"{mapping}: columns: run_time, or start_time beside end_time, is missing")
    status = content.get("status")
    if status is not None and not (
        isinstance(status, Mapping) and all(value in (0, 1, 5) for value in status.values())
    ):
        raise SwflowError(f"{mapping}: status: must map values to 0 (failed), 1 (completed) or 5 (cancelled)")
    return content, mapping


def _explained(name: str, entry: Any, where: str) -> dict[str, Any]:
    """Return a column's entry in its long form."""
    if isinstance(entry, str):
        return {"column": entry}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise SwflowError(f"{where}: columns: {name}: give a column's name, or {{column: NAME, unit: min}}")
    for key in entry:
        if key not in _KEYS:
            raise SwflowError(f"{where}: columns: {name}: unknown key {key!r}{suggest(str(key), _KEYS)}")
    units: Mapping[str, float] = _KILOBYTES if name in _MEMORY else _SECONDS if name in (*_SPANS, *_TIMES) else {}
    unit = entry.get("unit")
    if unit is not None and unit not in units:
        raise SwflowError(f"{where}: columns: {name}: unknown unit {unit!r}{suggest(str(unit), units)}")
    factor = entry.get("factor", 1)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not factor > 0:
        raise SwflowError(f"{where}: columns: {name}: factor must be a positive number, not {factor!r}")
    return dict(entry)


def _read_table(path: str, delimiter: str | None) -> pl.DataFrame:
    from swflow.importers.lines import read_text

    if not path.endswith(".parquet"):
        text = read_text(path)
        header = text.split(b"\n", 1)[0].decode("utf-8", "replace")
        delimiter = delimiter or max(",;\t|", key=header.count)
    try:
        if path.endswith(".parquet"):
            return pl.read_parquet(Path(path), glob=False)
        return pl.read_csv(text, separator=delimiter or ",", infer_schema=False, encoding="utf8-lossy")
    except (pl.exceptions.PolarsError, OSError) as error:
        raise SwflowError(f"{path}: not a readable table ({str(error).splitlines()[0]})") from None


def _converted(
    values: pl.Series, name: str, entry: Mapping[str, Any], site: Site, status: Any, where: str
) -> pl.Series:
    """Return a column in the units of records; null where it cannot be read."""
    if name in _TIMES:
        return _moments(values, entry, site, where)
    if name in (*_SPANS, *_MEMORY, *_COUNTS):
        numbers = _numbers(values)
        unit = entry.get("unit")
        if unit is None and name in _SPANS and values.dtype == pl.String:
            spelt = values.to_frame("text").select(
                pl.when(pl.col("text").str.contains(":")).then(seconds(pl.col("text")))
            )
            numbers = spelt.to_series().zip_with(spelt.to_series().is_not_null(), numbers)
        factor = {**_SECONDS, **_KILOBYTES}.get(unit or "", 1.0) * entry.get("factor", 1)
        numbers = numbers * factor
        numbers = numbers.zip_with((numbers >= 0) & numbers.is_finite(), pl.Series([None], dtype=pl.Float64))
        return numbers.ceil().cast(pl.Int64) if name in _COUNTS else numbers
    if name == "status":
        text = values.cast(pl.String)
        mapping = {str(key): value for key, value in (status or _STATUS).items()}
        word = text.str.extract(r"^\s*(\S+)", 1)
        exact = text.replace_strict(mapping, default=None, return_dtype=pl.Int64)
        return exact.zip_with(exact.is_not_null(), word.replace_strict(mapping, default=None, return_dtype=pl.Int64))
    return values.cast(pl.String)


_STATUS = {
    "COMPLETED": 1, "FAILED": 0, "CANCELLED": 5, "TIMEOUT": 0, "NODE_FAIL": 0, "OUT_OF_MEMORY": 0, "PREEMPTED": 0,
    "BOOT_FAIL": 0, "DEADLINE": 0, "completed": 1, "failed": 0, "cancelled": 5, "timeout": 0, "1": 1, "0": 0, "5": 5,
}  # fmt: skip


def _numbers(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Duration:
        return values.dt.total_milliseconds().cast(pl.Float64) / 1000
    return values.cast(pl.Float64, strict=False)


def _moments(values: pl.Series, entry: Mapping[str, Any], site: Site, where: str) -> pl.Series:
    """Return Unix seconds of a column of times: numbers, text, or Parquet's own times."""
    if isinstance(values.dtype, pl.Datetime):
        if values.dtype.time_zone:
            return values.dt.epoch("ms") / 1000
        return unix_seconds(values.cast(pl.Datetime("ms")), site.time_zone)[0]
    if values.dtype.is_numeric() or "unit" in entry:
        return values.cast(pl.Float64, strict=False) * _SECONDS[entry.get("unit", "s")]
    text = values.cast(pl.String).str.strip_chars()
    form = entry.get("format")
    if form:
        try:
            clock = text.str.to_datetime(form, strict=False, time_unit="ms")
        except pl.exceptions.PolarsError as error:
            raise SwflowError(f"{where}: format {form!r}: {str(error).splitlines()[0]}") from None
        if isinstance(clock.dtype, pl.Datetime) and clock.dtype.time_zone:
            return clock.dt.epoch("ms") / 1000
        return unix_seconds(clock, site.time_zone)[0]
    plain = text.cast(pl.Float64, strict=False)
    spaced = text.str.replace("T", " ", literal=True)
    zone = r"\s*(Z|UTC|[+-]\d\d:?\d\d)$"
    has_zone = spaced.str.contains(rf"\d{zone}")
    bare = spaced.str.replace(zone, "").str.replace(r"(\d\d:\d\d)$", "${1}")
    clock = bare.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", strict=False, time_unit="ms")
    local = unix_seconds(clock, site.time_zone)[0]
    offset = spaced.str.extract_groups(r"([+-])(\d\d):?(\d\d)$").struct
    shift = offset.field("2").cast(pl.Float64) * 3600 + offset.field("3").cast(pl.Float64) * 60
    shift = shift.zip_with(offset.field("1").fill_null("+") == "+", -shift).fill_null(0)
    utc = clock.dt.epoch("ms") / 1000 - shift
    found = utc.zip_with(has_zone.fill_null(False), local)
    return found.zip_with(plain.is_null(), plain)


def _completed(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Fill in what follows: a start of submission and wait, a run time of start and end, processors of nodes."""
    if "wait" in records.columns:
        start = pl.col("submit") + pl.col("wait")
        records = records.with_columns(start=pl.coalesce("start", start) if "start" in records.columns else start)
        records = records.drop("wait")
    if "run_time" not in records.columns:
        records = records.with_columns(run_time=pl.col("end") - pl.col("start"))
        records = tally.drop(records, "ended before it started", pl.col("run_time") < 0)
    if not {"allocated_processors", "requested_processors"} & set(records.columns):
        tally.note(records, "nodes taken for processors", pl.lit(True))
        records = records.with_columns(allocated_processors=pl.col("nodes"))
    return records.select(name for name in RECORD_COLUMNS if name in records.columns)
