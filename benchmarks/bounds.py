"""
Verify that no lower bound is above a metric of a run, or above the exhaustive optimum of a few jobs.

    python benchmarks/bounds.py --workloads 10000            # random workloads: runs and exhaustive optima
    python benchmarks/bounds.py --results results            # the runs of a built project

The script prints the number of comparisons, the violations, and how close the bounds come. It exits with status 1 if
there is a violation.
"""

import argparse
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.bound_checks import Job, best_metrics, exceeded
from swflow.analysis.bounds import BOUNDED, bounds
from swflow.database.leaderboard import GAPS, RIGID
from swflow.files.tables import read_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

SCHEDULERS = {
    "FCFS": Scheduler(),
    "EASY": Scheduler(backfill="easy"),
    "EASY, 3 reservations": Scheduler(backfill="easy", reservations=3),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "SJF, EASY": Scheduler(order="sjf", backfill="easy"),
    "formula, EASY": Scheduler(order="estimate * processors - 10 * wait", backfill="easy"),
    "conservative": Scheduler(backfill="conservative"),
    "LAF, conservative": Scheduler(order="laf", backfill="conservative"),
    "EASY, first contiguous fit": Scheduler(backfill="easy", allocation="first-contiguous"),
}


def random_jobs(draw: np.random.Generator, machine: int) -> pl.DataFrame:
    """Return 2 to 60 jobs: narrow or wide, of similar or heavy-tailed run times, some 0, at a low or high load."""
    count = int(draw.integers(2, 61))
    widest = machine if draw.random() < 0.7 else max(1, machine // 4)
    processors = draw.integers(1, widest + 1, count)
    if draw.random() < 0.3:
        processors = np.where(draw.random(count) < 0.3, machine - processors // 3, processors)
    run_time = np.floor(draw.exponential(50, count) if draw.random() < 0.5 else draw.lognormal(3, 1.5, count))
    run_time = np.where(draw.random(count) < 0.05, 0, run_time)
    load = draw.choice([0.3, 0.8, 1.2, np.inf])
    gap = float(processors @ run_time) / count / machine / load
    submit_time = np.floor(np.cumsum(draw.exponential(gap, count))) if gap else np.zeros(count)
    return pl.DataFrame(
        {
            "job_id": np.arange(1, count + 1),
            "submit_time": submit_time,
            "run_time": run_time,
            "processors": processors,
            "estimate": np.maximum(1.0, np.floor(run_time * draw.uniform(0.7, 4, count))),
        }
    )


def bounded_metrics(outcomes: pl.DataFrame, machine: int) -> dict[str, float | None]:
    """Return the bounded metrics, without the percentiles that `swflow.metrics` computes."""
    names = ("submit_time", "start_time", "run_time", "processors")
    submit, start, run, processors = (outcomes[name].to_numpy() for name in names)
    wait, area = start - submit, processors * run
    total, makespan = float(area.sum()), float((start + run).max() - submit.min())
    return {
        "awrt": float(area @ (wait + run)) / total if total else None,
        "awwt": float(area @ wait) / total if total else None,
        "mean_response_time": float((wait + run).mean()),
        "mean_wait_time": float(wait.mean()),
        "makespan": makespan,
        "utilization": total / (machine * makespan) if makespan else None,
    }


def check_runs(workloads: int, seed: int) -> int:
    """Compare bounds and metrics on random workloads, each under three schedulers; return the number of violations."""
    runs = compared = wrong = 0
    names = list(SCHEDULERS)
    reached = dict.fromkeys(BOUNDED, 0)
    for number in range(workloads):
        draw = np.random.default_rng([seed, number])
        machine = int(draw.choice([2, 5, 16, 100, 1024]))
        jobs = random_jobs(draw, machine)
        found = {bound.measure: bound.value for bound in bounds(jobs, machine)}
        workload = Workload(jobs, Machine.of(machine), f"random-{number}")
        for name in draw.choice(names, 3, replace=False):
            measured = bounded_metrics(simulate(workload, SCHEDULERS[name]), machine)
            above = exceeded(found, measured)
            runs, compared, wrong = runs + 1, compared + len(found), wrong + len(above)
            for measure, bound in found.items():
                reached[measure] += abs(measured[measure] - bound) <= 1e-9 * max(1.0, abs(bound))
            if above:
                print(f"random workload {number} of seed {seed}, {name}: bound above the metric: {', '.join(above)}")
    print(f"{workloads:,} random workloads, {runs:,} runs: {compared:,} comparisons, {wrong:,} violations")
    print("runs that reach the bound: " + ", ".join(f"{name} {count / runs:.1%}" for name, count in reached.items()))
    return wrong


def check_optima(workloads: int, seed: int) -> int:
    """Compare bounds and exhaustive optima on random workloads of 2 to 7 jobs; return the number of violations."""
    compared = wrong = 0
    shares: dict[str, list[float]] = {name: [] for name in BOUNDED}
    for number in range(workloads):
        draw = np.random.default_rng([seed, 1, number])
        machine, count = int(draw.choice([2, 3, 4, 7, 12])), int(draw.integers(2, 8))
        span = int(draw.choice([0, 5, 20, 60]))
        rows = zip(
            np.sort(draw.integers(0, span + 1, count)).tolist(),
            draw.choice([0, 1, 2, 3, 5, 8, 20], count).tolist(),
            draw.integers(1, machine + 1, count).tolist(),
            strict=True,
        )
        jobs: list[Job] = list(rows)
        table = pl.DataFrame(jobs, ["submit_time", "run_time", "processors"], orient="row")
        found = {bound.measure: bound.value for bound in bounds(table, machine)}
        best = best_metrics(jobs, machine)
        above = exceeded(found, best)
        compared, wrong = compared + len(found), wrong + len(above)
        for name, bound in found.items():
            if best[name]:
                shares[name].append(bound / best[name])
        if above:
            print(f"small workload {number} of seed {seed}: bound above the optimum: {', '.join(above)}; {jobs}")
    print(f"{workloads:,} random workloads of 2 to 7 jobs: {compared:,} comparisons, {wrong:,} violations")
    print("bound / optimum, mean: " + ", ".join(f"{name} {np.mean(values):.1%}" for name, values in shares.items()))
    return wrong


def check_results(folder: Path, steps: bool) -> int:
    """
    Compare bounds and metrics of the runs of rigid jobs of a project; return the number of violations.

    Parameters
    ----------
    folder : Path
        The folder with ``swflow.duckdb`` and ``workloads/``.
    steps : bool
        Whether workloads with steps are included.
    """
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"ATTACH '{folder / 'swflow.duckdb'}' AS built (READ_ONLY)")
        for name in ("metrics", "runs", "workloads", "schedulers"):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM built.{name}")
        connection.execute("CREATE TABLE bounds (workload VARCHAR, measure VARCHAR, value DOUBLE, theorem VARCHAR)")
        connection.execute(GAPS)
        names = connection.execute(
            f"""SELECT DISTINCT workload FROM ({RIGID}) AS rigid JOIN workloads USING (workload)
            WHERE workload = log OR ? ORDER BY workload""",
            [steps],
        ).fetchall()
        for (name,) in names:
            workload = read_workload(folder / "workloads" / f"{name}.parquet")
            found = bounds(workload.jobs, workload.machine.processors)
            connection.executemany(
                "INSERT INTO bounds VALUES (?, ?, ?, ?)", [(name, one.measure, one.value, one.theorem) for one in found]
            )
        compared = connection.execute(
            "SELECT run, measure, value, bound, gap FROM gaps WHERE value IS NOT NULL ORDER BY run, measure"
        ).fetchall()
        table = connection.execute(
            """SELECT workload, count(DISTINCT run),
                arg_min(metrics.scheduler, (gap, metrics.scheduler)) FILTER (measure = 'awrt'),
                min(gap) FILTER (measure = 'awrt'), min(gap) FILTER (measure = 'mean_response_time')
            FROM gaps JOIN metrics USING (run) JOIN workloads USING (workload)
            WHERE workload = log AND metrics.scheduler <> 'log' GROUP BY workload ORDER BY workload"""
        ).fetchall()
    wrong = 0
    for run, measure, value, bound, gap in compared:
        if exceeded({measure: bound}, {measure: value}):
            wrong += 1
            print(f"{run}: {measure} {value:g}, bound {bound:g}, gap {gap}")
    print("| log | runs | closest AWRT | gap of AWRT | gap of mean response time |\n|---|---|---|---|---|")
    for log, runs, closest, awrt, response in table:
        print(f"| {log} | {runs} | {closest} | {awrt:.1%} | {response:.1%} |")
    runs = len({run for run, *_ in compared})
    print(f"{len(names):,} workloads, {runs:,} runs of rigid jobs: {len(compared):,} comparisons, {wrong:,} violations")
    return wrong


def main() -> None:
    """Check, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--workloads", type=int, default=0, help="random workloads under each scheduler (default: 0)")
    parser.add_argument("--small", type=int, help="random workloads of 2 to 7 jobs (default: as --workloads)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random workloads (default: 1)")
    parser.add_argument("--results", type=Path, help="folder with swflow.duckdb and workloads/ of a built project")
    parser.add_argument("--steps", action="store_true", help="with --results: include workloads with steps")
    options = parser.parse_args()
    began = time.perf_counter()
    wrong = check_results(options.results, options.steps) if options.results else 0
    if options.workloads:
        wrong += check_runs(options.workloads, options.seed)
    small = options.workloads if options.small is None else options.small
    if small:
        wrong += check_optima(small, options.seed)
    print(f"{time.perf_counter() - began:.0f} s")
    sys.exit(min(wrong, 1))


if __name__ == "__main__":
    main()
