"""Runs that the cache keeps between calls, so that the base of a what-if is simulated once."""

import hashlib
import io
import json
import sys
from contextlib import suppress
from importlib.metadata import version

import polars as pl

from swflow.files.cache import read_cached, trim, write_cached
from swflow.files.fingerprint import fingerprint
from swflow.jobs.table import Workload
from swflow.scheduling.plugins.source import is_own
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.studies.runs import WHOLE, Middle, Run, run

#: The folder of the cache that keeps runs, how many it keeps, and the largest run, bytes.
_FOLDER, _KEPT, _LARGEST = "runs", 20, 32 << 20


def kept_run(workload: Workload, scheduler: Scheduler, middle: Middle = WHOLE) -> Run:
    """
    Return the run of a workload under a scheduler, from the cache if equal jobs were simulated with the same code.

    The cache is the folder ``runs`` of swflow's cache, which only the user can read, with the last 20 runs. If it
    cannot be used, the run is simulated. Recorded schedules and those of plugins, which may depend on other files, are
    not kept.
    """
    if scheduler.policy is not None or any(callable(one) or one == LOG or is_own(one) for one in scheduler.orders):
        return run(workload, scheduler, middle)
    name = f"{_key(workload, scheduler, middle)}.parquet"
    stored = read_cached(_FOLDER, name)
    if stored is not None:
        with suppress(ValueError, KeyError, TypeError, pl.exceptions.PolarsError):  # then it is simulated
            return _from_bytes(*stored)
    found = run(workload, scheduler, middle)
    with suppress(ValueError, TypeError, pl.exceptions.PolarsError):
        head, content = _to_bytes(found)
        if len(content) <= _LARGEST:
            write_cached(_FOLDER, name, head, content)
            trim(_FOLDER, most=_KEPT)
    return found


def _key(workload: Workload, scheduler: Scheduler, middle: Middle) -> str:
    """Return a digest of all that determines a run: the jobs, the machine, names, options, measured jobs and code."""
    content = io.BytesIO()
    workload.jobs.write_ipc(content)
    about = [
        workload.name, workload.machine.to_dict(), workload.header, scheduler.to_dict(), fingerprint("whatif"),
        str(middle), sys.version, *map(version, ("numpy", "polars")),
    ]  # fmt: skip
    found = hashlib.blake2b(repr(about).encode(), digest_size=16)
    found.update(content.getbuffer())
    return found.hexdigest()


def _to_bytes(found: Run) -> tuple[str, bytes]:
    """Return the values of a run as a line of JSON, and its table as Parquet."""
    head = json.dumps({
        "metrics": found.metrics, "correlations": found.correlations, "peak": found.peak_processors,
        "seconds": found.seconds,
    })  # fmt: skip
    content = io.BytesIO()
    found.table.write_parquet(content)
    return head, content.getvalue()


def _from_bytes(head: str, content: bytes) -> Run:
    """Return the run of `_to_bytes`; raise `ValueError` if it is none."""
    about = json.loads(head)
    table = pl.read_parquet(io.BytesIO(content))
    return Run(table, about["metrics"], about["correlations"], about["peak"], about["seconds"])
