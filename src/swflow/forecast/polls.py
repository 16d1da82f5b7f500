"""Read tables of polls: jobs that waited at a moment, with the state of queue and machine, and their later starts."""

import re
from pathlib import Path

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.files.tables import parquet_schema, read_parquet
from swflow.forecast.cases import Cases, Recent, decades, with_started
from swflow.log.importers.slurm import duration

#: Names of the columns for each meaning, in the order of preference.
_NAMES = {
    "poll": ("poll_time", "asked_time", "snapshot_time"),
    "submit": ("submit_time", "submit"),
    "start": ("start_time", "start"),
    "wait": ("poll_wait_sec", "poll_wait", "remaining_wait"),
    "job": ("job_unique_id", "job_id", "id"),
    "limit": ("time_limit", "timelimit", "requested_time", "req_time"),
    "processors": ("req_cpus", "cpus", "processors", "requested_processors", "req_cores"),
    "partition": ("partition", "partition_id", "queue", "queue_id"),
    "user": ("user", "user_id", "account", "account_id", "group", "group_id"),
}  # fmt: skip

#: Columns that are known at the poll. All others are ignored, because a value that is recorded later would be a leak.
_KNOWN = re.compile(
    r"(q|r|req|requested|queued|running)_\w+|\w+_poll|time_limit|timelimit|priority|partition\w*|account\w*|user\w*"
    r"|group\w*|qos\w*|queue\w*|cpus|gpus|nodes_requested|submit_hour|fairshare\w*|\w*level_fs\w*"
)

#: Parts of the names of columns that are recorded when a job starts or ends.
_LATER = re.compile(r"alloc|start|end_|_end|elapsed|state|exit|wait|used|max_?rss|node_?list|duration")

#: Quantities in the text of trackable resources (Slurm's TRES): the memory and the CPUs have columns of their own.
_TRES = {"gpus": r"gres/gpu(?:[:=]\w+)?=?(\d+)", "nodes": r"node=(\d+)", "billing": r"billing=(\d+)"}


def is_polls(path: Path) -> bool:
    """Return whether a file is a table of polls: Parquet with a moment of the poll and a start or a wait."""
    if path.suffix != ".parquet":
        return False
    names = set(parquet_schema(path))
    return bool(names & set(_NAMES["poll"])) and bool(names & {*_NAMES["wait"], *_NAMES["start"]})


def read_polls(path: Path) -> Cases:
    """
    Return the cases of a table of polls, one row per job and poll.

    The Parquet file has at least a moment (``poll_time``) and a wait from it (``poll_wait_sec``) or a start, null for
    jobs that have not started. Columns that describe the request, queue (``q_…``), running jobs (``r_…``) or fair share
    (``…_poll``) become features as they are; others, such as the final state, are not used. Recent waits of the same
    user, partition and request, known at the poll, are added. Raise `SwflowError` if a column is missing.
    """
    table = read_parquet(path)
    column = {part: next((n for n in names if n in table.columns), None) for part, names in _NAMES.items()}
    poll = _need(column, "poll", path)
    table = table.sort(poll, *([column["job"]] if column["job"] else []), maintain_order=True)
    asked = _seconds(table[poll])
    if column["wait"]:
        wait = table[column["wait"]].cast(pl.Float64).to_numpy()
    else:
        wait = _seconds(table[_need(column, "start", path)]) - asked
    wait = np.where(wait < 0, np.nan, wait)
    rows = np.arange(table.height)
    waited = asked - _seconds(table[column["submit"]]) if column["submit"] else np.zeros(rows.size)
    size = _numbers(table, column["processors"], 1.0)
    limit = _limits(table, column["limit"])
    partition, user = (_labels(table, column[part]) for part in ("partition", "user"))
    features = {
        name: _feature(table[name])
        for name in table.columns
        if name not in (poll, column["wait"], column["job"], column["start"], column["submit"])
        and _KNOWN.fullmatch(name) and not _LATER.search(name) and not table[name].dtype.is_temporal()
    }  # fmt: skip
    if column["limit"] in features:
        features[column["limit"]] = limit
    for name in [name for name in features if "tres" in name and table[name].dtype == pl.String]:
        del features[name]
        for part, pattern in _TRES.items():
            features[f"{name}_{part}"] = table[name].str.extract(pattern).cast(pl.Float64).fill_null(0).to_numpy()
    features |= {"waited": waited, "hour": asked % 86400 / 3600, "weekday": asked // 86400 % 7}
    if not np.isfinite(wait).any():
        raise SwflowError(f"{path}: no job has started; expected waits of past jobs to learn from")
    end = max(float(np.nanmax(asked + wait)), float(asked[-1]))
    features |= _recent(asked, wait, size, limit, partition, user)
    job = table[column["job"]].cast(pl.Int64).to_numpy() if column["job"] else rows
    values = np.column_stack(list(features.values())).astype(np.float32)
    return Cases(tuple(features), values, asked, wait, waited, size, partition, user, job, end, limit=limit)


def _need(column: dict[str, str | None], part: str, path: Path) -> str:
    name = column[part]
    if name is None:
        raise SwflowError(f"{path}: no column {_NAMES[part][0]}; expected one row per job that waits at a poll")
    return name


def _seconds(series: pl.Series) -> np.ndarray:
    """Return moments in seconds; text is read as ISO 8601."""
    if series.dtype == pl.String:
        series = series.str.to_datetime(strict=False)
    if series.dtype.is_temporal():
        series = series.cast(pl.Datetime("us")).dt.epoch("us") / 1e6
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _numbers(table: pl.DataFrame, name: str | None, default: float) -> np.ndarray:
    if name is None:
        return np.full(table.height, default)
    return table[name].cast(pl.Float64, strict=False).fill_null(default).to_numpy()


def _limits(table: pl.DataFrame, name: str | None) -> np.ndarray:
    """Return time limits in seconds: of numbers as they are, of texts such as ``1-12:00:00`` as Slurm writes them."""
    if name is None or table[name].dtype != pl.String:
        return _numbers(table, name, np.nan)
    known = {text: duration(text) if ":" in text or "-" in text else None for text in table[name].unique().drop_nulls()}
    of_text = pl.Series([known.get(text) for text in table[name]], dtype=pl.Float64)
    return of_text.fill_null(table[name].cast(pl.Float64, strict=False)).fill_null(np.nan).to_numpy()


def _labels(table: pl.DataFrame, name: str | None) -> np.ndarray:
    """Return labels as text; whole numbers without a fraction."""
    if name is None:
        return np.full(table.height, "", object)
    series = table[name]
    if series.dtype.is_float() and bool((series.drop_nulls() % 1 == 0).all()):
        series = series.cast(pl.Int64)
    return series.cast(pl.String).fill_null("").to_numpy().astype(object)


def _feature(series: pl.Series) -> np.ndarray:
    """Return a column as numbers; text becomes the rank of its first appearance."""
    if series.dtype == pl.String:
        codes = {text: float(code) for code, text in enumerate(series.unique(maintain_order=True).drop_nulls())}
        return np.array([codes.get(text, np.nan) for text in series], float)
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _recent(asked: np.ndarray, wait: np.ndarray, size: np.ndarray, limit: np.ndarray, partition: np.ndarray,
            user: np.ndarray) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the recent waits of like jobs that had started at each poll."""
    value = decades(wait)
    recent = Recent(0.05)
    limit = np.nan_to_num(limit, nan=-1.0)  # all unknown limits are the same
    keys = list(zip(
        [("partition", p, s.bit_length()) for p, s in zip(partition, size.astype(int).tolist(), strict=True)],
        [("user", u) for u in user],
        [("same", u, p, s, x) for u, p, s, x in zip(user, partition, size, limit, strict=True)],
        strict=True,
    ))  # fmt: skip
    found = np.full((asked.size, 6), np.nan)
    for row, started in with_started(asked, asked + wait):
        for known in started:
            for key in keys[known]:
                recent.add(key, value[known])
        found[row] = [part for key in keys[row] for part in recent.of(key)[:2]]
    names = [f"{kind}_{part}" for kind in ("alike", "user", "same") for part in ("wait", "last")]
    return dict(zip(names, found.T, strict=True))
