"""Read the output of ``squeue --json`` or ``--yaml``, in the forms of Slurm 20.11 to 25.11."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError, shown
from swflow.forecast.queued import SENTINELS, TASKS, Place, Queue, Queued, past, place_of, tasks_in
from swflow.log.importers.slurm_json import jobs_of_documents
from swflow.values import MOST_PROCESSORS, mapping, moment, whole_number
from swflow.values import seconds as span
from swflow.values import text as words


def read_json(text: str, path: Path) -> Queue:
    """Return the jobs that wait or run, and each task of the arrays that wait."""
    jobs, contents = jobs_of_documents(text.encode(), str(path), "squeue")
    found = Queue()
    for number, job in enumerate(jobs, 1):
        where = f"{path}: job {number} of {len(jobs)}"
        found.extend(_jobs_of(mapping(job, where, "a mapping of squeue --json"), where))
        TASKS.require(len(found), str(path))
    updated = [number_of(content.get("last_update"), f"{path}: last_update") for content in contents]
    for one in filter(None, updated):
        found.moment = past(moment(one, f"{path}: last_update"), f"{path}: last_update")
    return found


def _jobs_of(job: Mapping[str, Any], where: str) -> Iterator[Queued]:
    for key in ("job_id", "job_state", "submit_time"):
        if key not in job:
            raise SwflowError(f"{where}: no {key}; expected squeue --json")
    place = place_of(_states(job["job_state"], where), where)
    if place is Place.ENDED:
        return
    texts = {
        key: words(job.get(key) or "", f"{where}: {key}")
        for key in ("user_name", "partition", "account", "qos", "state_reason", "dependency", "array_task_string")
    }
    number = str(_whole(job["job_id"], f"{where}: job_id"))
    array = _whole(job.get("array_job_id"), f"{where}: array_job_id")
    limit = number_of(job.get("time_limit"), f"{where}: time_limit")
    submit = past(_moment(job["submit_time"], f"{where}: submit_time"), f"{where}: submit_time")
    waits, start = place is not Place.RUNS, None
    if not waits:
        start = past(_moment(job.get("start_time"), f"{where}: start_time"), f"{where}: start_time")
    found = Queued(
        number, texts["user_name"] or _user(job, where), texts["partition"], _processors(job, where),
        span(limit, f"{where}: time_limit") * 60 if limit else math.nan, submit, start,
        texts["account"], texts["qos"], texts["state_reason"] if waits else "", texts["dependency"] if waits else "",
        _begin(job, texts["state_reason"], submit, where) if waits else None,
        waits and (place is Place.HELD or job.get("hold") is True),
    )  # fmt: skip
    task = number_of(job.get("array_task_id"), f"{where}: array_task_id")
    tasks = texts["array_task_string"] if waits else ""
    if array and not tasks and task is not None and _has_task(job):
        found = found._replace(job=f"{array}_{_whole(task, f'{where}: array_task_id')}")
    yield from tasks_in(found, str(array or number), tasks, where)


def _has_task(job: Mapping[str, Any]) -> bool:
    """Return whether a task number is stated: in old versions of Slurm, 0 is also that of a job without tasks."""
    return isinstance(job.get("array_task_id"), dict) or bool(job.get("array_task_id"))


def _states(value: Any, where: str) -> list[str]:
    states = value if isinstance(value, list) else [value]
    if not states or not all(isinstance(name, str) for name in states):
        raise SwflowError(f"{where}: job_state: {shown(value)}; expected a state such as PENDING")
    return [part for name in states for part in name.strip().upper().split()[:1]]


def number_of(value: Any, where: str) -> Any:
    """
    Return a number of Slurm's JSON, which can be a mapping with ``set``, ``infinite`` and ``number``.

    None if it is missing, not set or infinite; old versions of Slurm write the largest numbers of 32 or 64 bits then.

    Examples
    --------
    >>> number_of({"set": True, "infinite": False, "number": 60}, "q.json"), number_of(4294967294, "q.json")
    (60, None)
    """
    if isinstance(value, dict):
        if value.get("infinite") or not value.get("set", True):
            return None
        if "number" not in value:
            raise SwflowError(f"{where}: {shown(value)}; expected a number")
        value = value["number"]
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 30:
        value = int(value)
    if not isinstance(value, int | float | str | None):
        raise SwflowError(f"{where}: {shown(value)}; expected a number")
    return None if value in SENTINELS or value in ("", math.inf) else value


def _whole(value: Any, where: str) -> int:
    found = number_of(value, where)
    return 0 if found is None else whole_number(found, where, most=2**63 - 1)


def _processors(job: Mapping[str, Any], where: str) -> int:
    """Return the CPUs of a job; if they are not set, its tasks or nodes."""
    for key in ("cpus", "tasks", "node_count"):
        found = number_of(job.get(key), f"{where}: {key}")
        if found is not None and found != 0:
            return whole_number(found, f"{where}: {key}", least=1, most=MOST_PROCESSORS)
    raise SwflowError(f"{where}: no cpus; expected squeue --json")


def _user(job: Mapping[str, Any], where: str) -> str:
    """Return the number of a user without a name."""
    found = number_of(job.get("user_id"), f"{where}: user_id")
    return "" if found is None else str(whole_number(found, f"{where}: user_id"))


def _moment(value: Any, where: str) -> float:
    return moment(number_of(value, where) or 0, where)


def _begin(job: Mapping[str, Any], reason: str, submit: float, where: str) -> float | None:
    """Return the earliest start of a job that waits for it: the later one of those that Slurm states."""
    if reason.lower() != "begintime":
        return None
    stated = [_moment(job.get(key), f"{where}: {key}") for key in ("eligible_time", "start_time")]
    return max((one for one in stated if one > submit), default=None)
