"""Print digests of schedules of every named scheduler of the configs on real logs, to compare two commits.

    python benchmarks/schedules.py [--traces FOLDER] [--logs KTH-SP2 HPC2N] [--jobs 10000] > before.txt

One line per run: config, scheduler, workload, jobs, and a hash of start times, places, run times and processors.
Equal digests before and after a change mean equal schedules, byte for byte. Schedulers with numbered processors,
shapes or shared nodes run on the first jobs only (``--jobs``), with demands and shapes of a fixed seed.
"""

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.log.catalogue import load_catalogue
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import clean_log
from swflow.workload.steps.memory import memory
from swflow.workload.steps.moldable import moldable
from swflow.workload.steps.set_machine import with_machine

ROOT = Path(__file__).parents[1]

#: Columns of the outcomes in the digest.
COLUMNS = ("job_id", "start_time", "end_time", "run_time", "processors", "penalty_time", "killed", "places", "centre")

#: Combinations that no config names, for coverage of all paths of the kernels on real logs.
MORE: dict[str, dict[str, Any]] = {
    "sjf-none": {"order": "sjf"},
    "lookahead-8": {"backfill": "easy", "reservations": 8},
    "saf-predicted": {"order": "saf", "backfill": "easy", "prediction": "system"},
    "conservative-predicted": {"backfill": "conservative", "prediction": "system"},
    "easy-per-event": {"backfill": "easy", "event_order": "per-event"},
    "easy-window": {"backfill": "easy", "unavailable": [{"from": 1e6, "until": 2e6, "processors": 30}]},
    "wfp3-conservative": {"order": "wfp3", "backfill": "conservative"},
    "first-fit": {"backfill": "easy", "allocation": "first-fit", "places": True},
    "first-fit-conservative": {"backfill": "conservative", "allocation": "first-fit", "places": True},
    "longest-idle-lookahead": {"backfill": "easy", "reservations": 4, "allocation": "longest-idle", "places": True},
    "first-fit-predicted": {"backfill": "easy", "allocation": "first-fit", "prediction": "system", "places": True},
    "unicef-first-contiguous": {"order": "unicef", "backfill": "easy", "allocation": "first-contiguous"},
    "centres": {"backfill": "easy", "clusters": [{"processors": 128}, {"processors": 240}], "dispatch": "least-loaded"},
    "centres-earliest": {
        "backfill": "conservative",
        "clusters": [{"processors": 128}, {"processors": 240, "order": "sjf", "backfill": "easy"}],
        "dispatch": "earliest-start",
    },
}


def schedulers() -> Iterable[tuple[str, str, Scheduler]]:
    """Return the named schedulers of the configs, and `MORE`."""
    for config in ("config", "archive"):
        content = yaml.safe_load((ROOT / f"config/{config}.yaml").read_text())
        for name, options in content["schedulers"].items():
            options.pop("title", None)
            yield config, name, Scheduler.of(name, options)
    for name, options in MORE.items():
        yield "more", name, Scheduler.of(name, options)


def digest(workload: Workload, scheduler: Scheduler) -> str:
    """Return a hash of the outcomes of every job."""
    table = simulate(workload, scheduler)
    found = hashlib.blake2b(digest_size=12)
    for name in COLUMNS:
        column = table[name]
        found.update(name.encode() + column.is_null().to_numpy().tobytes())
        if name == "places":
            found.update("|".join(column.fill_null("")).encode())
        else:
            found.update(column.fill_null(0).to_numpy().tobytes())
    return found.hexdigest()


def prepared(workload: Workload, scheduler: Scheduler, jobs: int) -> Workload:
    """Return the workload for the scheduler: all jobs for counted processors, else the first jobs."""
    slow = scheduler.allocation != "count" or scheduler.shapes != "requested"
    slow |= scheduler.backfill == "conservative" and scheduler.order == "wfp3"
    if slow:
        workload = replace(workload, jobs=workload.jobs.head(jobs))
    if scheduler.shares:
        workload = with_machine(workload, preset="alvio-node")
        workload = memory(workload, seed=1, step="memory")
    if scheduler.shapes != "requested":
        workload = moldable(workload, generator(1, "schedules"))
    return workload


def main() -> None:
    """Compute and print the digests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=default, help="a folder with the archive's files")
    parser.add_argument("--logs", nargs="*", default=["KTH-SP2", "SDSC-SP2", "HPC2N"], help="names of the catalogue")
    parser.add_argument("--jobs", type=int, default=10_000, help="Jobs of slow schedules (default: 10,000).")
    parser.add_argument("--only", nargs="*", help="Names of the schedulers (default: all).")
    arguments = parser.parse_args()
    catalogue = load_catalogue(ROOT / "config/logs.yaml")
    for log in arguments.logs:
        file = arguments.traces / str(catalogue[log].file)
        workload = clean_log(file, name=log, processors=catalogue[log].processors)
        for config, name, scheduler in schedulers():
            if arguments.only and name not in arguments.only:
                continue
            ready = prepared(workload, scheduler, arguments.jobs)
            began = time.perf_counter()
            found = digest(ready, scheduler)
            print(f"{config:8s} {name:32s} {log:10s} {ready.jobs.height:7,d} {found}", flush=True)
            print(f"{name} on {log}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
