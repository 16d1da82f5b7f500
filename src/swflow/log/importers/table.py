"""Import tables of jobs (CSV or Parquet) by a mapping of their columns: open data sets, and exports of a site."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from swflow.columns import rounded_up
from swflow.errors import SwflowError, require_known, shown, suggest
from swflow.files.tables import read_parquet
from swflow.files.yaml import read_yaml
from swflow.log.importers.cells import is_separator, read_cells
from swflow.log.importers.demands import demand, read_formulas
from swflow.log.importers.lines import read_text
from swflow.log.importers.notation import (
    NO_VALUE,
    amounts,
    doubtful_points,
    epoch,
    filled,
    is_no_value,
    local_moments,
    moments,
    spans,
)
from swflow.log.importers.records import RECORD_COLUMNS, ImportedLog, Site, Tally, make_log
from swflow.log.importers.slurm import STATES, kilobytes, state
from swflow.values import number

#: Target columns of a mapping; other keys are ``status_values`` and ``where``.
TARGETS = {
    "job_id": "site_job_id", "submit_time": "submit", "eligible_time": "eligible", "start_time": "start",
    "end_time": "end", "wait_time": "wait",
    "run_time": "run_time", "processors": "allocated_processors", "requested_processors": "requested_processors",
    "requested_time": "requested_time", "average_cpu_time": "average_cpu_time", "used_memory": "used_memory",
    "requested_memory": "requested_memory", "status": "status", "user": "user", "group": "group", "queue": "queue",
    "partition": "partition", "constraint": "constraint", "executable": "executable", "nodes": "nodes",
    "gpus": "gpus", "licenses": "licenses",
    "memory": "memory", "array": "array", "array_limit": "array_limit", "depends_on": "depends_on",
    "requested_nodes": "requested_nodes", "suspended_time": "suspended_time", "unix_group": "unix_group",
    "eligible_after": "delay", "preceding_job": "preceding", "think_time": "think_time", "site_job_id": "own_id",
}  # fmt: skip

_TIMES = ("submit_time", "eligible_time", "start_time", "end_time")
_SPANS = ("wait_time", "run_time", "requested_time", "average_cpu_time", "suspended_time", "eligible_after",
          "think_time")  # fmt: skip
_MEMORY = ("used_memory", "requested_memory", "memory")
_COUNTS = ("processors", "requested_processors", "nodes", "requested_nodes", "gpus", "licenses", "array_limit")
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0, "days": 86400.0}
_KILOBYTES = {"B": 1 / 1024, "KB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}
_KEYS = ("column", "optional", "unit", "format", "factor", "pattern")

#: The keys besides ``column`` of each target; others have none.
_KEYS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TIMES, ("unit", "format")),
    **dict.fromkeys((*_SPANS, *_MEMORY), ("unit", "factor", "pattern")),
    **dict.fromkeys(_COUNTS, ("factor", "pattern")),
}

#: Mappings of well-known data sets, stored next to this module.
PRESETS = Path(__file__).parent / "columns"


def import_table(path: str, site: Site, mapping: str, *, resources: Mapping[str, str] | None = None) -> ImportedLog:
    """
    Import a table of jobs: CSV (plain or gzipped; the separator is detected in the header) or Parquet.

    ``mapping`` is a YAML file, or the name of a mapping included in swflow, with ``columns`` (name in `TARGETS` to a
    column's name, or to a mapping of ``column``, ``optional``, ``unit``, ``format``, ``factor`` and ``pattern``),
    ``status`` (a value to 0, 1 or 5), ``delimiter`` and ``resources``. A ``pattern`` is a regular expression with one
    group: the value is the sum of the numbers that it finds in the text. ``memory`` is that of the whole job, by
    default in MB.

    ``resources`` maps names to formulas of the table's columns, see `swflow.log.importers.demands.demand`: each becomes
    a column with the units that a job occupies. The argument adds to those of the mapping.
    """
    about = _read_mapping(mapping)
    formulas = read_formulas(about.get("resources", {}), f"{mapping}: resources")
    formulas |= read_formulas(resources or {}, "--resource")
    for name in formulas:
        if name in about["columns"]:
            raise SwflowError(f"--resource: {name}: {mapping} has a column for it; name it in one place")
    places = {name: f"{mapping}: columns: {name}" for name in about["columns"]}
    columns = {name: _explained(name, entry, places[name]) for name, entry in about["columns"].items()}
    table, header_line = _read_table(path, about.get("delimiter"))
    lacking = {name for name, entry in columns.items() if entry["column"] not in table.columns}
    columns = {name: entry for name, entry in columns.items() if name not in lacking or not entry.get("optional")}
    for name, entry in columns.items():
        column = entry["column"]
        if name in lacking:
            raise SwflowError(f"{places[name]}: {path} has no column {column!r}{suggest(column, table.columns)}")
    tally = Tally()
    lines = pl.int_range(table.height, dtype=pl.Int64, eager=True) + header_line + 1  # a column can be named "line"
    records = pl.DataFrame({"line": lines})
    for name, entry in columns.items():
        given = _without_nothing(_unnested(table[entry["column"]], name, places[name]), name, records, tally)
        values = _converted(given, name, entry, site, about.get("status"), places[name])
        records = records.with_columns(values.alias(TARGETS[name]))
        if name in _MEMORY and given.dtype == pl.String:
            records = records.with_columns(given.str.extract(r"[A-Za-z]([cn])$", 1).alias(f"{TARGETS[name]}_each"))
        if "pattern" in entry:  # a text in which it finds nothing has none of it
            continue
        if name in (*_SPANS, *_MEMORY) and given.dtype == pl.String:
            doubtful = given.to_frame("v").select(doubtful_points(pl.col("v"))).to_series()
            tally.note(records, f"{name} with a point before three digits, read as decimal", pl.lit(doubtful))
            short = given.str.contains(r"^\d+:\d\d$") & (name in _SPANS)
            tally.note(records, f"{name} with one colon, read as minutes and seconds", pl.lit(short))
        unread = given.is_not_null() & values.is_null()
        nothing = ["-1", *(["0"] if name == "array" or name in _TIMES else [])]
        if not (given.dtype.is_temporal() or given.dtype.is_nested()):
            unread &= given.cast(pl.String).is_in(nothing).not_()
        hint = " (give its format, or --timezone)" if name in _TIMES and "format" not in entry else ""
        tally.note(records, f"unreadable {name}{hint}", pl.lit(unread))
    for name, formula in formulas.items():
        units = demand(table, name, formula, records, tally, "--resource")
        records = records.with_columns(units.alias(name))
    identity = [TARGETS[name] for name in columns if name == "job_id" or name in (*_TIMES, *_SPANS, *_COUNTS)]
    if "job_id" in columns:
        is_first = pl.struct(identity).is_first_distinct()
        tally.note(records, "the id, times and sizes of an earlier job (kept)", ~is_first)
    form = f"csv ({Path(mapping).stem})"
    options: dict[str, Any] = {"source": path, "form": form, "resources": tuple(formulas)}
    return make_log(_completed(records, tally), tally, site, **options, keeps_times=mapping == "swflow")


def _unnested(values: pl.Series, name: str, where: str) -> pl.Series:
    """Return a column in which lists of names are texts with commas; raise an error for other nested values."""
    is_list = isinstance(values.dtype, pl.List | pl.Array) and not values.dtype.inner.is_nested()
    if is_list and TARGETS[name] in RECORD_COLUMNS and RECORD_COLUMNS[TARGETS[name]] == pl.String:
        return values.cast(pl.List(pl.String)).list.join(",")
    if (values.dtype.is_nested() and name != "depends_on") or values.dtype == pl.Binary:
        raise SwflowError(f"{where}: column {values.name!r} holds {values.dtype}; expected numbers, times or texts")
    return values


def _without_nothing(values: pl.Series, name: str, records: pl.DataFrame, tally: Tally) -> pl.Series:
    """Return values with null for placeholders, and for NO_VAL and INFINITE of Slurm, which are counted."""
    if values.dtype == pl.String:
        values = values.to_frame("v").select(filled(pl.col("v"))).to_series()
    elif not values.dtype.is_numeric():
        return values
    if name in (*_TIMES, *_SPANS, *_MEMORY, *_COUNTS, "array"):
        where = values.to_frame("v").select(is_no_value(pl.col("v"))).to_series().fill_null(False)
        tally.note(records, f"{name}: {NO_VALUE}", pl.lit(where))
        values = values.set(where, None)
    return values


def _read_mapping(mapping: str) -> Mapping[str, Any]:
    """Read a mapping; raise an error that names its file if it is invalid."""
    path = Path(mapping)
    shipped = sorted(file.stem for file in PRESETS.glob("*.yaml"))
    if mapping in shipped:
        path = PRESETS / f"{mapping}.yaml"
    elif not path.exists():
        raise SwflowError(
            f"--columns {mapping}: no such file, and not a mapping included in swflow ({', '.join(shipped)})"
        )
    content = read_yaml(path)
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping):
        raise SwflowError(f"{mapping}: must have 'columns', such as columns: {{submit_time: submitted, run_time: …}}")
    require_known(content, ("columns", "status", "delimiter", "source", "resources"), mapping)
    if not isinstance(content.get("resources", {}), Mapping):
        raise SwflowError(f"{mapping}: resources: expected names with formulas, as {{watts: node_power*nodes}}")
    for name in content["columns"]:
        if name not in TARGETS:
            raise SwflowError(f"{mapping}: columns: unknown {name!r}{suggest(str(name), TARGETS)}")
    needed = [{"submit_time"}, {"run_time", "end_time"}, {"processors", "requested_processors", "nodes"}]
    for options in needed:
        if not options & content["columns"].keys():
            raise SwflowError(f"{mapping}: columns: {' or '.join(sorted(options))} is missing, but required")
    if "run_time" not in content["columns"] and not {"start_time", "wait_time"} & content["columns"].keys():
        raise SwflowError(f"{mapping}: columns: run_time, or start_time and end_time, is missing")
    delimiter = content.get("delimiter") or ","
    if not is_separator(delimiter):
        raise SwflowError(
            f"{mapping}: delimiter: {shown(delimiter)}; expected one or several characters, as ';' or '||'"
        )
    status = content.get("status")
    if status is not None and not (
        isinstance(status, Mapping)
        and all(value in (0, 1, 5) and not isinstance(value, bool) for value in status.values())
    ):
        raise SwflowError(f"{mapping}: status: must map values to 0 (failed), 1 (completed) or 5 (cancelled)")
    return content


def _explained(name: str, entry: Any, where: str) -> dict[str, Any]:
    """Return a column's entry in its long form."""
    if isinstance(entry, str):
        return {"column": entry}
    if not isinstance(entry, Mapping) or not isinstance(entry.get("column"), str):
        raise SwflowError(f"{where}: give a column's name, or {{column: NAME, unit: min}}")
    require_known(entry, _KEYS, where)
    for key in entry:
        if key not in ("column", "optional") and key not in _KEYS_OF.get(name, ()):
            applicable = ", ".join(_KEYS_OF.get(name, ())) or "none of them"
            raise SwflowError(f"{where}: {key} does not apply to it; expected {applicable}")
    units: Mapping[str, float] = _KILOBYTES if name in _MEMORY else _SECONDS if name in (*_SPANS, *_TIMES) else {}
    unit = entry.get("unit")
    if unit is not None and (not isinstance(unit, str) or unit not in units):
        raise SwflowError(f"{where}: unknown unit {shown(unit)}{suggest(str(unit), units)}")
    form = entry.get("format", "")
    if not isinstance(form, str):
        raise SwflowError(f"{where}: format: {shown(form)}; expected a text such as '%Y-%m-%d %H:%M'")
    pattern = entry.get("pattern")
    try:
        groups = 1 if pattern is None else re.compile(pattern).groups
    except (re.error, TypeError):
        groups = 0
    if groups != 1:
        raise SwflowError(
            f"{where}: pattern: {shown(pattern)}; expected a regular expression with one group, as gpu:(\\d+)"
        )
    factor = number(entry.get("factor", 1), f"{where}: factor", least=1e-12, most=1e12)
    return {**entry, "factor": factor}


def _read_table(path: str, delimiter: str | None) -> tuple[pl.DataFrame, int]:
    """Return a table, and the number of its header's line."""
    if path.endswith(".parquet"):
        return read_parquet(path), 1
    return read_cells(read_text(path), path, delimiter)


def _converted(
    values: pl.Series, name: str, entry: Mapping[str, Any], site: Site, status: Any, where: str
) -> pl.Series:
    """Return a column in the units of records; null for unreadable values."""
    if name in _TIMES:
        return _moments(values, entry, site, where)
    if name in (*_SPANS, *_MEMORY, *_COUNTS):
        if "pattern" in entry:
            values = _extracted(values, entry["pattern"])
        is_span = values.dtype == pl.Duration
        numbers = values.dt.total_milliseconds() / 1000 if is_span else _numbers(values, are_whole=name in _COUNTS)
        unit, is_memory = entry.get("unit"), name == "memory"
        spelled = None
        if values.dtype == pl.String and name in _SPANS:
            spelled = spans(values)
        elif values.dtype == pl.String and name in _MEMORY:
            spelled = _with_unit(values) / (1024 if is_memory else 1)
        of_unit = _KILOBYTES[unit or "MB"] / 1024 if is_memory else {**_SECONDS, **_KILOBYTES}.get(unit or "", 1.0)
        numbers = numbers * of_unit
        numbers = (numbers if spelled is None else spelled.fill_null(numbers)) * entry.get("factor", 1)
        is_known = numbers.is_finite() & ((numbers > 0) if is_memory else (numbers >= 0))
        numbers = numbers.set(~is_known, None)
        if name not in (*_COUNTS, "memory"):
            return numbers
        return numbers.to_frame("n").select(rounded_up(pl.col("n"))).to_series()
    if name == "status":
        return _statuses(values.cast(pl.String), status)
    if name == "depends_on":
        if isinstance(values.dtype, pl.List):
            return values.cast(pl.List(pl.String))
        found = values.cast(pl.String).str.replace(r"^\[(.*)\]$", "${1}").str.extract_all(r"[^\s,;:|]+")
        return found.set(found.list.len() == 0, None)
    text = values.cast(pl.String)
    # A task id of 0 stands for a job without an array in Slurm's database.
    return text.set(text == "0", None) if name == "array" else text


def _numbers(values: pl.Series, *, are_whole: bool = False) -> pl.Series:
    """Return numbers as floats; texts can have decimal commas and grouped thousands."""
    return amounts(values, are_whole=are_whole) if values.dtype == pl.String else values.cast(pl.Float64, strict=False)


def _with_unit(values: pl.Series) -> pl.Series:
    """Return texts of memory with a unit, such as 64GB, 1.5 GiB or 64Gn, in KB; null for others."""
    text = values.str.replace(r"(?i)\s*(?:bytes|byte)$", "B")
    has_unit = text.str.contains(r"(?i)^[\d.,]+\s*[KMGTPEB]")
    found = text.to_frame("t").select(kilobytes(pl.col("t"), unit="")).to_series()
    return found.set(~has_unit.fill_null(False), None)


def _extracted(values: pl.Series, pattern: str) -> pl.Series:
    """Return the sum of the numbers that a pattern finds in each text; null without any."""
    parts = values.cast(pl.String).str.extract_all(pattern)
    numbers = parts.list.eval(pl.element().str.extract(pattern, 1).cast(pl.Float64, strict=False))
    return numbers.list.sum().set(numbers.list.len() == 0, None)


#: What the status means if a mapping does not say it: states of Slurm, other words, and the numbers of the format.
_STATUS = {
    **{name: status for name, status in STATES.items() if status is not None},
    **dict.fromkeys(("DONE", "FINISHED", "SUCCESS", "SUCCEEDED", "PASS", "PASSED"), 1), "ERROR": 0, "CANCELED": 5,
}  # fmt: skip


def _statuses(text: pl.Series, status: Mapping[object, int] | None) -> pl.Series:
    """Return the status of jobs from words or numbers, by a mapping or by `_STATUS`."""
    if not status:
        words = text.to_frame("t").select(
            pl.coalesce(
                pl.when(pl.col("t").str.contains(r"^[015](?:\.0+)?$")).then(pl.col("t").str.slice(0, 1)),
                state(pl.col("t")).replace_strict(_STATUS, default=None).cast(pl.String),
            ).cast(pl.Int64)
        )
        return words.to_series()
    mapping = {_shortened(str(key).lower() if isinstance(key, bool) else str(key)): int(value)
               for key, value in status.items()}  # fmt: skip
    text = text.str.replace(_WHOLE, "${1}")
    word = text.str.extract(r"^\s*(\S+)", 1)
    exact = text.replace_strict(mapping, default=None, return_dtype=pl.Int64)
    exact = exact.fill_null(word.replace_strict(mapping, default=None, return_dtype=pl.Int64))
    other = mapping.get("other")
    return exact if other is None else exact.set(exact.is_null() & text.is_not_null(), other)


#: A whole number with decimals, as programs write a column of numbers that has unknown values.
_WHOLE = r"^(-?\d+)\.0+$"


def _shortened(text: str) -> str:
    """Return a text, without the decimals of a whole number."""
    return re.sub(_WHOLE, r"\1", text)


def _moments(values: pl.Series, entry: Mapping[str, Any], site: Site, where: str) -> pl.Series:
    """Return a column of times in Unix seconds; the column holds numbers, text, or Parquet times."""
    if isinstance(values.dtype, pl.Datetime):
        if values.dtype.time_zone:
            return values.dt.epoch("ms") / 1000
        return local_moments(values.cast(pl.Datetime("ms")), site.time_zone)[0]
    if "unit" in entry:
        return _numbers(values) * _SECONDS[entry["unit"]]
    if values.dtype.is_numeric() and not values.dtype.is_integer():
        return values.to_frame("v").select(epoch(pl.col("v"))).to_series()
    text = values.cast(pl.String).str.strip_chars()
    form = entry.get("format")
    if form:
        try:
            clock = text.str.to_datetime(form, strict=False, time_unit="ms")
        except pl.exceptions.PolarsError as error:
            raise SwflowError(f"{where}: format {form!r}: {str(error).splitlines()[0]}") from None
        return _moments(clock, {}, site, where)
    return moments(text, site.time_zone, zero=True)[0]


def _completed(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Derive missing columns: start from submission and wait, run time from start and end, processors from nodes."""
    if "wait" in records.columns:
        start = pl.col("submit") + pl.col("wait")
        if "start" in records.columns:
            records = records.with_columns(wait=pl.when(pl.col("start").is_null()).then("wait"))
            start = pl.coalesce("start", start)
        records = records.with_columns(start=start)
    if "start" in records.columns:
        start, end = pl.col("start"), pl.col("end") if "end" in records.columns else pl.lit(None, pl.Float64)
        idle = pl.col("run_time").fill_null(0) == 0 if "run_time" in records.columns else pl.lit(True)
        if {"run_time", "end"} <= {*records.columns}:
            began = pl.when(pl.col("run_time") > 0).then(pl.col("end") - pl.col("run_time"))
            records = records.with_columns(start=start.fill_null(began))
        cancelled = pl.col("status") == 5 if "status" in records.columns else pl.lit(False)
        # Slurm's database has a start of 0 for these, others none or the planned one.
        never = ((start == 0) & (pl.col("submit") > 0)) | (start.is_null() & end.is_not_null() & idle)
        never |= (start > end) & cancelled & (end >= pl.col("submit"))
        chosen = tally.note(records, "never started (kept, with a run time of 0)", never)
        records = records.with_columns(start=pl.when(chosen).then(end).otherwise(start))
        if "wait" in records.columns:
            records = records.with_columns(wait=pl.when(~chosen).then("wait"))
        if "run_time" in records.columns:
            records = records.with_columns(run_time=pl.when(chosen).then(0.0).otherwise("run_time"))
    if "run_time" not in records.columns:
        records = records.with_columns(run_time=pl.col("end") - pl.col("start"))
        records = tally.drop(records, "ended before it started", pl.col("run_time") < 0)
        tally.note(records, "without a start or an end (the run time is unknown)", pl.col("run_time").is_null())
    if not {"allocated_processors", "requested_processors"} & set(records.columns):
        tally.note(records, "nodes taken for processors", pl.lit(True))
        records = records.with_columns(allocated_processors=pl.col("nodes"))
    return _of_whole_jobs(records, tally)


def _of_whole_jobs(records: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Multiply amounts of memory for each node (64Gn) or each processor (2Gc), as old versions of Slurm write them."""
    processors = pl.coalesce(
        *(name for name in ("allocated_processors", "requested_processors") if name in records.columns)
    )
    stated = pl.col("nodes") if "nodes" in records.columns else pl.lit(None, pl.Int64)
    nodes = stated.fill_null(1)
    for name in ("memory", "requested_memory", "used_memory"):
        if f"{name}_each" in records.columns:
            each, amount = pl.col(f"{name}_each"), pl.col(name)
            tally.note(
                records, f"{name} per node without a number of nodes (taken as 1)", (each == "n") & stated.is_null()
            )
            total = pl.when(each == "n").then(amount * nodes).when(each == "c").then(amount * processors)
            value = total if name == "memory" else total / processors
            records = records.with_columns(pl.when(each.is_null()).then(amount).otherwise(value).alias(name))
    return records
