"""
Compute `lublin_oracle.json` with the package parallelworkloads, which wraps the authors' programs.

The package's compiled modules exist for Python 3.6 to 3.10 only; on other versions it installs without them. Run this
script manually in a separate environment::

    python3.10 -m venv oracle
    oracle/bin/pip install parallelworkloads==0.1.3 numpy
    oracle/bin/python tests/workload/lublin_oracle.py tests/workload/lublin_oracle.json

Only summary statistics are stored. Properties of the authors' program:

* It generates jobs of both classes (0 interactive, 1 batch) for any first argument. The parameters of combined
  jobs are therefore passed to class 0, and the jobs of class 1 are dropped.
* It truncates every gap to whole seconds but not the daily cycle. Clock and cycle drift apart by 0.5 s per job
  (1 day after 170,000 jobs), so the cycle is measured in the first two days.
* The state of its arrivals is global and starts with one arrival that is not returned. Each sequence therefore
  uses a new process. Only sequences with a first arrival in the first half hour are used, because the hidden
  arrival was then also in it, and the clock began at midnight.
"""

import json
import multiprocessing
import sys
from pathlib import Path

import numpy as np

SEQUENCES = 12_000
SEQUENCE_JOBS = 1000
SAMPLE_JOBS = 2_000_000
ESTIMATE_JOBS = 100_000
MAXIMUM_ESTIMATE = 48 * 3600
DAY = 86400
#: Grid of the distribution functions: seconds, evenly spaced on a logarithmic scale.
GRID = np.exp(np.linspace(0, 13, 105))


def generate(seed: int, jobs: int, combined: bool) -> tuple[np.ndarray, list]:
    """Return an array (submit time, run time, size, class) and the job objects of the program."""
    from parallelworkloads.lublin99 import Lublin99

    model = Lublin99(1, seed)
    if combined:
        model.setSerialProbability(0, 0.244)
        model.setPower2Probability(0, 0.576)
        model.setParallelJobProbabilities(0, 0.8, 4.5, 7, 0.86)
        model.setRunTimeParameters(0, 4.2, 312, 0.94, 0.03, -0.0054, 0.78)
        model.setInterArrivalTimeParameters(0, 10.2303, 0.4871, 8.1737, 3.9631, 1.0225)
    model.numJobs = jobs
    model.start = 0
    made = model.generate()
    table = np.array([(j.submissionTime, j.runTime, j.allocProcs, j.queueNum) for j in made])
    return table, made


def first_days(arguments: tuple[int, bool]) -> dict[int, list[float]]:
    """Return each class's arrivals in the first two days, if the sequence is usable (see above)."""
    seed, combined = arguments
    table, _ = generate(seed, SEQUENCE_JOBS, combined)
    arrivals = {}
    for kind in (0, 1):
        times = table[table[:, 3] == kind, 0]
        if len(times) and times[0] < 1800 and table[-1, 0] >= 2 * DAY:
            arrivals[kind] = times[times < 2 * DAY].tolist()
    return arrivals


def distribution(values: np.ndarray) -> list[float]:
    """Return the share of values up to each point of the grid."""
    return np.round(np.searchsorted(np.sort(values), GRID, side="right") / len(values), 6).tolist()


def describe(table: np.ndarray, half_hours: np.ndarray) -> dict:
    """Return the summary statistics of one class."""
    sizes, counts = np.unique(table[:, 2].astype(int), return_counts=True)
    return {
        "jobs": len(table),
        "sizes": dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        "run_times": distribution(table[:, 1]),
        "run_times_serial": distribution(table[table[:, 2] == 1, 1]),
        "run_times_from_32": distribution(table[table[:, 2] >= 32, 1]),
        "gaps": distribution(np.diff(table[:, 0])),
        "half_hours": half_hours.tolist(),
    }


def sample(arguments: tuple[int, bool]) -> np.ndarray:
    """Return a long sequence."""
    return generate(arguments[0], SAMPLE_JOBS, arguments[1])[0]


def estimates(seed: int) -> dict:
    """Return the distribution of the program's run-time estimates over the jobs of a sequence."""
    from parallelworkloads.tsafrir05 import Tsafrir05

    _, made = generate(seed, ESTIMATE_JOBS, False)
    made = Tsafrir05(made, MAXIMUM_ESTIMATE).generate(made)
    requested = np.array([job.reqTime for job in made])
    run_times = np.array([job.runTime for job in made])
    values, counts = np.unique(requested, return_counts=True)
    return {
        "different": len(values),
        "popular": np.sort(counts)[::-1][:25].tolist(),
        "maximum": int(counts[-1]),
        "short": float((requested <= 3600).mean()),
        "median": float(np.median(requested)),
        "accuracy": np.histogram(run_times / requested, bins=20, range=(0, 1))[0].tolist(),
    }


def parameters(kind: int) -> list[float]:
    """Return the program's parameters of a class, in the order of `swflow.workload.models.lublin.LublinParameters`."""
    from parallelworkloads.lublin99 import Lublin99

    model = Lublin99(1, 0)
    shape_1, shape_2, scale_1, scale_2, slope, intercept = model.getRunTimeParameters(kind)
    return [
        model.getSerialProbability(kind),
        model.getPower2Probability(kind),
        model.getParallelJobULow(kind),
        model.getParallelJobUMed(kind),
        model.getParallelJobUHi(kind),
        model.getParallelJobUProb(kind),
        *(shape_1, scale_1, shape_2, scale_2, slope, intercept),
        *model.getInterArrivalTimeParameters(kind),  # the gaps' shape times the gaps' ratio
    ]


def main() -> None:
    """Write all statistics as JSON to the path on the command line."""
    result: dict = {"grid": GRID.round(6).tolist()}
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for combined in (False, True):
            days = np.zeros((2, 48), dtype=int)
            tasks = [(seed, combined) for seed in range(SEQUENCES)]
            for arrivals in pool.imap_unordered(first_days, tasks, chunksize=1):
                for kind, times in arrivals.items():
                    days[kind] += np.bincount((np.array(times) % DAY // 1800).astype(int), minlength=48)
            table = pool.apply(sample, ((1, combined),))
            if combined:
                result["combined"] = describe(table[table[:, 3] == 0], days[0])
                continue
            result["interactive_share"] = float((table[:, 3] == 0).mean())
            for kind, name in enumerate(("interactive", "batch")):
                result[name] = describe(table[table[:, 3] == kind], days[kind])
                result[name]["parameters"] = pool.apply(parameters, (kind,))
        result["estimates"] = [pool.apply(estimates, (seed,)) for seed in range(20)]
    Path(sys.argv[1]).write_text(json.dumps(result) + "\n")  # standard output contains the output of the program


if __name__ == "__main__":
    main()
