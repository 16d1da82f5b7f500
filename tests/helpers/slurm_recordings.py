"""
Recorded runs of a real Slurm (22.05, on daemons of one machine), and the simulation of the same jobs.

`benchmarks/slurm_oracle.py` runs the traces, and packs what is needed of the recordings into `ARCHIVE`.
"""

import csv
import io
import math
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import t as student

from swflow.jobs.table import Workload
from swflow.log.imported import write_log
from swflow.log.importers.records import Site
from swflow.log.importers.sacct import import_sacct
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.sites.slurm_site import read_site
from swflow.workload.clean import open_workload

#: The recordings: TRACE/RUN/FILE, as they are in the folder of benchmarks/slurm_oracle.py.
ARCHIVE = Path(__file__).parents[1] / "data" / "slurm_recordings.tar.xz"

#: The columns of sacct that the simulation needs.
COLUMNS = (
    "JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End", "Timelimit",
    "ReqCPUS", "AllocCPUS", "ReqMem", "ReqTRES", "AllocTRES", "Constraints",
)  # fmt: skip

#: The files of a run besides sacct.txt and sdiag.txt.
OTHERS = ("slurm.conf", "qos.txt", "assoc.txt", "sprio.txt")

#: The usage before a trace, if earlier jobs made some: a line with the time, then the output of sshare.
USAGE = "sshare_before.txt"

#: The output of `scontrol show res`, if there were reservations.
RESERVATIONS = "res.txt"

#: The line of sdiag with the start of its statistics, seconds since 1970.
_SINCE = re.compile(r"Data since.*\((\d+)\)")


def unpack(folder: Path) -> None:
    """Write the files of the recordings into a folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


def pack(folder: Path) -> None:
    """Write what the simulation needs of the recordings in a folder; names of hosts and paths are left out."""
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as archive:
        for run in runs_in(folder, "*"):
            for name, text in _needed(run):
                member = tarfile.TarInfo(f"{run.relative_to(folder).as_posix()}/{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))


def _needed(run: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and text of each file of a run."""
    since = _SINCE.search((run / "sdiag.txt").read_text())
    assert since is not None
    yield "sdiag.txt", f"Data since ({since[1]})\n"
    rows = _with_whole_runs((run / "sacct.txt").read_text())
    yield (
        "sacct.txt",
        "".join("|".join(row) + "\n" for row in [COLUMNS, *([one.get(name, "") for name in COLUMNS] for one in rows)]),
    )
    for name in (*OTHERS, RESERVATIONS):
        if name in OTHERS or (run / name).exists():
            yield name, (run / name).read_text()
    if (run / USAGE).exists():
        time, *table = (run / USAGE).read_text().splitlines()
        used = csv.DictReader(table, delimiter="|")
        columns = ("Account", "User", "RawUsage")
        lines = ["|".join(columns), *("|".join(row[name] for name in columns) for row in used)]
        yield USAGE, "\n".join([time, *lines]) + "\n"


def _with_constraint(names: list[str], fields: list[str]) -> list[str]:
    """Return the fields of a record whose constraint, and command with that, may contain separators."""
    if len(fields) == len(names):
        return fields
    first = names.index("Constraints")
    command = next((place for place in range(first, len(fields)) if fields[place].startswith("sbatch ")), len(fields))
    ends = ["|".join(fields[command:])] if command < len(fields) else []
    return [*fields[:first], "|".join(fields[first:command]), *ends]


def _with_whole_runs(text: str) -> list[dict[str, str]]:
    """
    Return the records of sacct, with the end that each run would have had if it had not been cancelled by preemption.

    Simulations need the time for which a job would have slept; runs that came again need no such end.
    """
    names, *lines = (line.split("|") for line in text.splitlines())
    rows = [dict(zip(names, _with_constraint(names, fields), strict=True)) for fields in lines]
    last = {row["JobID"]: row for row in rows}
    for row in last.values():
        if row["State"] == "PREEMPTED" and "SubmitLine" in row:
            slept = re.search(r"sleep (\d+)", row["SubmitLine"])
            assert slept is not None, row
            row["End"] = str((datetime.fromisoformat(row["Start"]) + timedelta(seconds=int(slept[1]))).isoformat())
    return rows


def runs_in(folder: Path, trace: str) -> list[Path]:
    """Return the folders of the complete runs of a trace, sorted."""
    return sorted(file.parent for file in folder.glob(f"{trace}/*/sacct.txt"))


#: Seconds from the start of the daemon's threads to that of its statistics, before which `_slurmctld_background` in
#: Slurm's controller.c sleeps.
LEAD = 1

#: Seconds from the end of a job's sleep, counted from its start, to the line `_job_complete` in slurmctld.log, on the
#: machine of the recordings: the median of 1,023 jobs (the mean is 0.09).
END_DELAY = 0.08


class Recording(NamedTuple):
    """A recorded run: its jobs, the scheduler, the outcomes, and when the daemon started (seconds since 1970)."""

    workload: Workload
    scheduler: Scheduler
    recorded: pl.DataFrame
    began: int

    def moved(self, fraction: float) -> tuple[Workload, float]:
        """Return the jobs with times from the daemon's start on, and a fraction of a second later; and that shift."""
        later = int(self.workload.header["UnixStartTime"][0]) - self.began + fraction
        jobs = self.workload.jobs.with_columns(pl.col("submit_time") + later)
        header = {**self.workload.header, "UnixStartTime": [str(self.began)]}
        return replace(self.workload, jobs=jobs, header=header), later


def read_run(folder: Path) -> Recording:
    """Return the recording in a folder, with the scheduler that swflow imports from its configuration."""
    before, usage = folder / USAGE, None
    if before.exists():
        usage = folder / "usage.txt"
        usage.write_text(before.read_text().partition("\n")[2])
    reservations = folder / RESERVATIONS if (folder / RESERVATIONS).exists() else None
    others = {"qos": folder / "qos.txt", "associations": folder / "assoc.txt", "reservations": reservations}
    site = read_site(folder / "slurm.conf", **others, usage=usage)
    imported = import_sacct(str(folder / "sacct.txt"), Site(site.processors), join_preempted=True)
    log = folder / "log.parquet"
    write_log(log, imported.fields, imported.header, imported.history)
    workload = open_workload(log)
    recorded = simulate(workload, Scheduler(order="log")).sort("job_id")
    parameters = {**site.options.get("scheduler_parameters", {}), "end_delay": END_DELAY}
    scheduler = Scheduler.of("site", {**site.options, "scheduler_parameters": parameters})
    since = _SINCE.search((folder / "sdiag.txt").read_text())
    assert since is not None
    return Recording(workload, scheduler, recorded, int(since[1]) - LEAD)


def compare(folder: Path, phases: int) -> list[pl.DataFrame]:
    """
    Return the waits of a run's jobs in Slurm and in swflow, by the job's position in the trace, for each phase.

    The times of Slurm's passes, cycles and priorities depend on when its daemon started, which is the simulation's time
    0. That start and the records are whole seconds, so that jobs may have been submitted up to a second earlier or
    later after it. It was earlier if the first job, on an idle machine, started in the second of its submission: the
    daemon starts jobs once a second, counted from its start (`_slurmctld_background` in Slurm's controller.c). The
    shifts are quantiles of the difference of two uniform fractions of a second, given its sign.
    """
    recording, tables = read_run(folder), []
    recorded = recording.recorded
    first = recorded.sort("submit_time", "job_id").row(0, named=True)
    sign = 1 if first["start_time"] > first["submit_time"] else -1
    for phase in range(phases):
        workload, later = recording.moved(sign * (1 - math.sqrt((phase + 0.5) / phases)))
        simulated = simulate(workload, recording.scheduler).sort("job_id")
        tables.append(
            pl.DataFrame(
                {
                    "job_id": recorded["job_id"],
                    "slurm": recorded["start_time"] - recorded["submit_time"],
                    "swflow": simulated["start_time"] - simulated["submit_time"],
                    "slurm_start": recorded["start_time"],
                    "swflow_start": simulated["start_time"] - later,
                }
            )
        )
    return tables


def interval(means: Iterable[float]) -> tuple[float, float]:
    """Return the mean of the mean waits of runs, and half of its 95 % confidence interval; NaN for one run."""
    values = np.array(list(means))
    if values.size == 1:
        return float(values[0]), float("nan")
    half = student.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(half)
