"""Measure the load of a log's recorded schedule, as a multiple of a sort of its event times.

    python benchmarks/load.py [--traces FOLDER] [--log RICC] [--repeat 7]

The unit is `np.argsort(kind="stable")` of the start and end times, in the same process.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from swflow.analysis.job_load import loads_of
from swflow.log.catalogue import load_catalogue
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workload.clean import clean_log

ROOT = Path(__file__).parents[1]


def median_seconds(function: Callable[[], object], repeat: int) -> float:
    """Return the median time of a call."""
    seconds = []
    for _ in range(repeat):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = Path(os.environ.get("SWFLOW_TRACES", ROOT.parent / "shared" / "traces"))
    parser.add_argument("--traces", type=Path, default=folder, help="a folder with the archive's files")
    parser.add_argument("--log", default="RICC", help="a log of the catalogue")
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    entry = load_catalogue(ROOT / "config/logs.yaml")[options.log]
    file = options.traces / (entry.file or "")
    workload = clean_log(file, name=options.log, processors=entry.processors, nodes=entry.nodes)
    outcomes = simulate(workload, Scheduler(order="log"))
    times = np.concatenate([outcomes["start_time"].to_numpy(), outcomes["end_time"].to_numpy()])
    unit = median_seconds(lambda: np.argsort(times, kind="stable"), options.repeat)
    print(f"{options.log}: {outcomes.height:,} jobs; one sort of {times.size:,} event times {1000 * unit:.1f} ms")
    seconds = median_seconds(lambda: loads_of(outcomes, workload.machine.processors), options.repeat)
    print(f"both loads: {1000 * seconds:.0f} ms, {seconds / unit:.1f} sorts")


if __name__ == "__main__":
    main()
