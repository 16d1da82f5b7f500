"""Read ``sacct --json`` and ``sacct --yaml``, for all versions of Slurm's data parser, as the columns of sacct."""

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from swflow.errors import SwflowError
from swflow.files.reading import parse_documents
from swflow.files.yaml import parse_user_yaml
from swflow.log.importers.records import Tally


def read_json(text: bytes, path: str, tally: Tally) -> pl.DataFrame:
    """Convert ``sacct --json``, for all versions of its data parser, to ``line`` and the columns of sacct, as text."""
    jobs, _ = jobs_of_documents(text, path, "sacct")
    rows = []
    for place, job in enumerate(jobs, 1):
        try:
            rows.append(_of_types(_json_job(job, place)))
        except KeyError as error:
            tally.add(f"job without {error}", 1, place, removed=True)
        except (TypeError, ValueError, AttributeError, OverflowError):
            tally.add("malformed job", 1, place, removed=True)
    if not rows:
        found = f"none of {len(jobs)} jobs is valid" if jobs else "its list of jobs is empty"
        raise SwflowError(f"{path}: {found}; nothing to import")
    table = pl.DataFrame(rows, {name: _JSON_NUMBERS.get(name, pl.String()) for name in rows[0]}, orient="row")
    tally.add("steps, which are not jobs", int(table["steps"].sum()), 1)
    return table


def jobs_of_documents(text: bytes, path: str, command: str) -> tuple[list[Any], list[Mapping[str, Any]]]:
    """
    Return the jobs of the JSON or YAML that a command of Slurm prints, and the documents that contain them.

    Several documents can follow each other; a document is a mapping with ``jobs``, a list of jobs, or one job.
    """
    is_json = text.lstrip()[:1] in (b"{", b"[")
    contents = parse_documents(text, path) if is_json else [parse_user_yaml(text.decode("utf-8", "replace"), path)]
    jobs = list[Any]()
    for content in contents:
        found = (
            content.get("jobs", [content] if "job_id" in content else None) if isinstance(content, dict) else content
        )
        if not isinstance(found, list):
            raise SwflowError(f"{path}: JSON without a list 'jobs'; expected the output of {command} --json")
        jobs += found
    return jobs, [content for content in contents if isinstance(content, dict)]


#: The values of a job of the JSON that are no text.
_JSON_NUMBERS: dict[str, pl.DataType] = {
    "line": pl.Int64(), "steps": pl.Int64(), "limit_of_array": pl.Int64(), "step_memory": pl.Float64()
}  # fmt: skip


def _of_types(job: dict[str, object]) -> dict[str, object]:
    """Return a job with numbers instead of a text as text; raise an error for other types and invalid characters."""
    for name, value in job.items():
        if name in _JSON_NUMBERS:
            if isinstance(value, int) and abs(value) >= 2**63:
                raise OverflowError(name)
            continue
        if not isinstance(value, str):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(name)
            value = job[name] = str(value)
        if not value.isascii():
            value.encode()  # lone surrogates are an error
    return job


def _json_job(job: Mapping[str, Any], place: int) -> dict[str, object]:
    """Return one job of the JSON in the notation of ``sacct -P``, with the memory of its steps."""
    array, het, association = (job.get(name) or {} for name in ("array", "het", "association"))
    time, required, tres = job["time"], job.get("required") or {}, job.get("tres") or {}
    allocated, requested = _tres(tres.get("allocated")), _tres(tres.get("requested"))
    name, leader, task = str(_plain(job["job_id"])), _number(het.get("job_id")), _text(array.get("task_id"))
    if leader:
        name = f"{leader}+{_number(het.get('job_offset')) or 0}"
    if _number(array.get("job_id")) and task:
        name = f"{_number(array['job_id'])}_{task}"
    elif array.get("task"):  # tasks that were cancelled before they started
        name = f"{_number(array.get('job_id')) or name}_[{str(array['task']).strip('[]')}]"
    limit = time.get("limit")
    status = job["state"]
    status = status.get("current", status) if isinstance(status, Mapping) else status
    per_processor, per_node = (_number(required.get(f"memory_per_{unit}")) for unit in ("cpu", "node"))
    if memory := _number(required.get("memory")):  # the highest bit marks an amount for each CPU
        is_per_processor = float(_plain(required["memory"])) > 2.0**63
        per_processor, per_node = (memory, per_node) if is_per_processor else (per_processor, per_node or memory)
    steps = job.get("steps") or []
    if not isinstance(steps, list):
        raise TypeError("steps")
    return {
        "line": place,
        "jobid": name,
        **{key: job.get(key) or association.get(key) or "" for key in ("cluster", "user", "account", "partition")},
        **{key: job.get(key) or "" for key in ("group", "qos", "licenses", "constraints")},
        "jobname": job.get("name") or "",
        "state": (status[0] if isinstance(status, list) and status else status) or "",
        "submit": _moment(time["submission"]),
        "eligible": _moment(time.get("eligible")),
        "start": _moment(time["start"]),
        "end": _moment(time["end"]),
        "elapsedraw": _text(time.get("elapsed")),
        "suspended": _span(time.get("suspended")),
        "timelimit": "UNLIMITED" if _is_infinite(limit) else _text(limit) or (limit if isinstance(limit, str) else ""),
        "reqcpus": "" if "cpu=" in requested else _text(required.get("CPUs")),
        "allocnodes": _text(job.get("allocation_nodes")),
        "reqmem": f"{per_processor}c" if per_processor else f"{per_node or 0}n",
        "alloctres": allocated,
        "reqtres": requested,
        "totalcpu": _span(time.get("total")),
        "steps": len(steps),
        "step_memory": max(filter(None, map(_step_memory, steps)), default=None),
        "reservation": (job.get("reservation") or {}).get("name") or "",
        "submitline": job.get("submit_line") or "",
        "limit_of_array": _number(((array.get("limits") or {}).get("max") or {}).get("running", {}).get("tasks")),
    }


def _plain(value: Any) -> Any:
    """Return a value that can be a mapping {set, infinite, number}; None if it is not set."""
    if isinstance(value, Mapping):
        return value.get("number") if value.get("set", True) and not value.get("infinite") else None
    return value


def _number(value: Any) -> int | None:
    """Return a number, plain or in a mapping; None if it is not set, and for NO_VAL and INFINITE of Slurm."""
    value = _plain(value)
    if isinstance(value, str):
        value = value.strip() if re.fullmatch(r"\s*-?[0-9]{1,20}\s*", value) else None
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    found = int(value)
    if found < 0 or found in _NO_VALUES:
        return None
    # The highest bit of an amount of memory marks an amount for each CPU.
    return found - 2**63 if found > 2**63 else found


def _is_infinite(value: Any) -> bool:
    """Return whether a number is INFINITE of 32 or 64 bits, or said to be infinite."""
    if isinstance(value, Mapping):
        return bool(value.get("infinite")) or (bool(value.get("set")) and _is_infinite(value.get("number")))
    return isinstance(value, int | float) and value in (2**32 - 1, 2**64 - 1)


#: NO_VAL and INFINITE of 32 and 64 bits; those of 64 bits can be rounded as floats.
_NO_VALUES = {2**32 - 2, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**64}


def _text(value: Any) -> str:
    number = _number(value)
    return "" if number is None else str(number)


def _moment(value: Any) -> str:
    """Return a time in seconds since 1970, or its text; empty for 0, with which Slurm means an unknown time."""
    plain = _plain(value)
    if isinstance(plain, str) and not re.fullmatch(r"[\s0-9]*", plain):
        return plain
    return _text(_number(plain) or None)


def _span(value: Any) -> str:
    """Return seconds as a duration of sacct."""
    if isinstance(value, Mapping) and "seconds" in value:
        return f"0:0:{_number(value['seconds']) or 0}.{_number(value.get('microseconds')) or 0:06}"
    number = _number(value)
    return "" if number is None else f"0:0:{number}"


def _tres(entries: Any) -> str:
    """Return trackable resources as a list of sacct, such as ``cpu=4,gres/gpu:a100=2``."""
    if isinstance(entries, str):
        return entries
    counts = [
        (entry["type"] + (f"/{entry['name']}" if entry.get("name") else ""), _number(entry.get("count")))
        for entry in entries or ()
    ]
    return ",".join(f"{name}={count}" for name, count in counts if count and count > 0)


def _step_memory(step: Mapping[str, Any]) -> float | None:
    """Return the memory of all tasks of a step, in KB."""
    requested = ((step.get("tres") or {}).get("requested") or {}) if isinstance(step, Mapping) else {}
    entries = [entry for key in ("total", "max") for entry in requested.get(key) or () if entry["type"] == "mem"]
    bytes_used = next(filter(None, (_number(entry.get("count")) for entry in entries)), None)
    return bytes_used / 1024 if bytes_used else None
