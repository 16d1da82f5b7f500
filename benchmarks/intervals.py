"""
Measure how often the verdicts of comparisons are wrong, and how often they show a real difference.

    python benchmarks/intervals.py kth.swf.gz sdsc.swf.gz --weeks 8 16 0
    python benchmarks/intervals.py --simulated

- A/A: a pair of runs of EASY on two independent, slightly changed copies of a log. The estimates of jobs are multiplied
  by 0.9 to 1.1, their submissions are delayed by up to 60 s, or both. No run is better, so that every verdict that
  decides is wrong: at most 5 % should, apart from chance. The pair is compared over some consecutive weeks of the log,
  which keeps the dependence between its weeks. Every pair has two runs of its own: rates of pairs that share runs vary
  more than their number suggests. A pair of fewer weeks than the log is compared in ``--windows`` places.
- Power: EASY and another scheduler on the same copy, over consecutive weeks: the share of verdicts that decide.
- With ``--simulated``: how many 95 % intervals contain the true change of the mean wait by SJF backfilling. The
  workloads are years in which the rate of arrivals varies from week to week. The truth is the ratio of the means of
  400 further years.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from swflow.analysis.intervals import Estimate, difference_of
from swflow.analysis.resampling import by_weeks, mean_of, statistic
from swflow.analysis.verdicts import BETTER, WORSE
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, sort_jobs
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate_counted, with_derived
from swflow.values import WEEK
from swflow.workload.clean import open_workload

SCHEDULERS = {
    "EASY": Scheduler(backfill="easy"),
    "FCFS": Scheduler(),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "conservative": Scheduler(backfill="conservative"),
    "WFP3": Scheduler(order="wfp3", backfill="easy"),
}
MEASURES = ("mean_wait_time", "mean_bounded_slowdown", "awrt", "p95_wait_time")
COLUMNS = ("submit_time", "wait_time", "response_time", "bounded_slowdown", "processors", "run_time")
CHANGES = ("estimates", "submissions", "both")


def changed(workload: Workload, change: str, generator: np.random.Generator) -> Workload:
    """Return a slightly changed copy of a workload."""
    jobs = workload.jobs
    if change in ("estimates", "both"):
        run_time, estimate = (jobs[name].cast(pl.Float64).to_numpy() for name in ("run_time", "estimate"))
        other = np.maximum(estimate * generator.uniform(0.9, 1.1, jobs.height), np.minimum(run_time, estimate))
        jobs = jobs.with_columns(estimate=pl.lit(other), requested_time=pl.lit(other))
    if change in ("submissions", "both"):
        jobs = jobs.with_columns(submit_time=pl.col("submit_time") + pl.lit(generator.uniform(0, 60, jobs.height)))
    return replace(workload, jobs=sort_jobs(jobs))


def simulated(workload: Workload, scheduler: str) -> pl.DataFrame:
    """Return the outcomes of a workload under a scheduler."""
    table, _, _ = simulate_counted(workload, SCHEDULERS[scheduler])
    return with_derived(table.lazy()).select(COLUMNS).collect()


def between(outcomes: pl.DataFrame, first: int, weeks: int) -> pl.DataFrame:
    """Return the jobs of consecutive weeks."""
    return outcomes.filter(pl.col("submit_time").is_between(first * WEEK, (first + weeks) * WEEK, closed="left"))


def decided(pair: Sequence[pl.DataFrame], weeks: int, generator: np.random.Generator) -> list[bool]:
    """Return for each measure whether the verdict on a pair of runs decides, over random consecutive weeks."""
    last = int(min(run["submit_time"].max() for run in pair) // WEEK) + 1  # type: ignore[type-var,operator]
    weeks = weeks or last
    first = int(generator.integers(0, last - weeks + 1))
    parts = [by_weeks(between(run, first, weeks)) for run in pair]
    found = (difference_of(*(statistic(part, measure) for part in parts)) for measure in MEASURES)
    return [difference.verdict() in (BETTER, WORSE) for difference in found]


def rates(log: str, options: argparse.Namespace) -> Iterator[tuple[str, str, int, list[float]]]:
    """Yield the log, what is compared, the number of weeks, and by measure the percentage of verdicts that decide."""
    workload = open_workload(log)
    last = int(workload.jobs["submit_time"].max() // WEEK) + 1  # type: ignore[operator]
    for number, compared in enumerate((*CHANGES, *options.power)):
        if compared in CHANGES and compared not in options.changes:
            continue
        is_same = compared in CHANGES
        generator = np.random.default_rng([options.seed, number])
        verdicts: dict[int, list[list[bool]]] = {weeks: [] for weeks in options.weeks if weeks <= last}
        for _ in range(options.pairs if is_same else math.ceil(options.pairs / 5)):
            if is_same:
                pair = [simulated(changed(workload, compared, generator), "EASY") for _ in range(2)]
            else:
                copy = changed(workload, "submissions", generator)
                pair = [simulated(copy, name) for name in (compared, "EASY")]
            for weeks, found in verdicts.items():
                found += [decided(pair, weeks, generator) for _ in range(options.windows if weeks else 1)]
        for weeks, found in verdicts.items():
            yield workload.name, compared, weeks, (100 * np.mean(found, axis=0)).tolist()


def simulated_year(number: int, options: argparse.Namespace) -> list[pl.DataFrame]:
    """Return a year of a synthetic workload under SJF backfilling and EASY, after ten weeks of warm-up."""
    generator, weeks, per_week, processors = np.random.default_rng([options.seed, number]), 62, 200, 64
    busy = np.zeros(weeks)  # the logarithm of the rate of arrivals: an autoregressive process over weeks
    for week in range(1, weeks):
        busy[week] = 0.5 * busy[week - 1] + generator.normal(0, options.variation)
    counts = generator.poisson(per_week * np.exp(busy))
    jobs = int(counts.sum())
    width = 2 ** generator.integers(0, 6, jobs)
    mean = options.load * processors * WEEK / per_week / np.mean(2 ** np.arange(6))
    run_time = np.ceil(generator.lognormal(math.log(mean) - 0.5, 1, jobs))
    table = pl.DataFrame({
        "job_id": np.arange(1, jobs + 1),
        "submit_time": np.sort((np.repeat(np.arange(weeks), counts) + generator.random(jobs)) * WEEK),
        "run_time": run_time, "estimate": run_time * generator.uniform(1, 5, jobs), "processors": width,
    })  # fmt: skip
    year = Workload(table, Machine.of(processors), f"year-{number}")
    return [between(simulated(year, name), 10, 52) for name in ("SJBF", options.than)]


def coverage(options: argparse.Namespace) -> Iterator[tuple[int, float, float]]:
    """Yield the number of weeks, and the percentages of intervals that contain the true change and that decide."""
    sums = np.array([[run["wait_time"].mean() for run in simulated_year(number, options)] for number in range(400)])
    true = float(np.log(sums[:, 0].mean() / sums[:, 1].mean()))
    left = [np.log(np.delete(sums, year, 0).mean(axis=0)) @ (1, -1) for year in range(400)]
    print(f"true change: {100 * math.expm1(true):.2f} %, standard error {100 * np.std(left) * 400**0.5:.2f} %")
    held: dict[int, list[tuple[bool, bool]]] = {weeks: [] for weeks in (8, 16, 52)}
    for number in range(400, 700):
        year = simulated_year(number, options)
        for weeks, found in held.items():
            found.append(_held(difference_of(*(mean_of(between(run, 10, weeks), "wait_time") for run in year)), true))
    for weeks, found in held.items():
        yield weeks, *(100 * np.mean(found, axis=0)).tolist()


def _held(found: Estimate, true: float) -> tuple[bool, bool]:
    """Return whether the interval of the logarithm of a ratio contains the true value, and whether it excludes 0."""
    low, high = found.interval
    if low is None or high is None or not found.base:
        return False, False
    return found.base * math.expm1(true) >= low and found.base * math.expm1(true) <= high, low > 0 or high < 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", help="logs (.swf, .swf.gz) or workloads (.parquet)")
    parser.add_argument("--weeks", type=int, nargs="+", default=[8, 16, 0], help="0: as many as the log has")
    parser.add_argument("--pairs", type=int, default=150, help="of runs, each with two of its own (default: 150)")
    parser.add_argument("--windows", type=int, default=3, help="places of fewer weeks than the log, per pair")
    parser.add_argument("--changes", nargs="*", default=CHANGES, choices=CHANGES, help="of A/A pairs (default: all)")
    parser.add_argument(
        "--power", nargs="*", default=[], help=f"schedulers compared with EASY: {', '.join(SCHEDULERS)}"
    )
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--load", type=float, default=0.6, help="of simulated years (default: 0.6)")
    parser.add_argument("--variation", type=float, default=0.1, help="of the weekly rate of arrivals (default: 0.1)")
    parser.add_argument("--than", default="EASY", help="the base in simulated years (default: EASY)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.logs:
        print(f"| log | compared | weeks | {' | '.join(MEASURES)} |")
        print("|---" * (3 + len(MEASURES)) + "|")
    for log in options.logs:
        for name, compared, weeks, found in rates(log, options):
            print(f"| {name} | {compared} | {weeks} | {' | '.join(f'{share:.1f}' for share in found)} |", flush=True)
    if options.simulated:
        for weeks, contained, shown in coverage(options):
            print(f"{weeks} weeks: {contained:.1f} % contain the true change, {shown:.1f} % exclude 0", flush=True)


if __name__ == "__main__":
    main()
