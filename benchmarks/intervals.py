"""
Whether the intervals of comparisons hold what they promise: a scheduler with itself, on resampled logs.

    python benchmarks/intervals.py kth.swf.gz

Each comparison draws two logs, each of as many of the log's weeks with replacement, one after the other, simulates EASY
on both, and asks for each measure whether the 95 % intervals of the score at equal load and of the difference of the
means hold zero, as 95 % of them should. With `--of-weeks` a true difference is looked for: the weeks of two runs of
the log, under EASY and in another order, are drawn together, and the intervals should hold the difference over all
weeks.
"""

import argparse
from dataclasses import replace

import numpy as np
import polars as pl

from swflow.analysis import verdict
from swflow.analysis.comparison import compare
from swflow.analysis.heatmap import HEATMAP_MEASURES, heatmap
from swflow.analysis.load import with_load
from swflow.analysis.uncertainty import WEEK
from swflow.jobs import Workload, sort_jobs
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.workloads.clean import open_workload

#: What verdicts are given on, and what `swflow power` asks about besides.
MEASURES = (*HEATMAP_MEASURES, "bounded_slowdown")


def resampled(jobs: pl.DataFrame, weeks: int, draw: np.random.Generator) -> pl.DataFrame:
    """Return so many of a log's weeks, drawn with replacement, one after the other."""
    there = (jobs["submit_time"] // WEEK).cast(pl.Int64)
    parts = {int(week): jobs.filter(there == week) for week in there.unique()}
    drawn = [
        parts[week].with_columns(submit_time=pl.col("submit_time") - WEEK * (week - place))
        for place, week in enumerate(draw.integers(0, weeks, weeks))
        if week in parts
    ]
    return pl.concat(drawn).with_columns(job_id=pl.int_range(1, pl.len() + 1))


def estimates(first: pl.DataFrame, second: pl.DataFrame) -> list[verdict.Estimate]:
    """Return score and difference of two runs, by measure."""
    found = []
    weeks = [verdict.by_weeks(run) for run in (first, second)]
    for measure in MEASURES:
        maps = [heatmap(run["load"].to_numpy(), run[measure].to_numpy()) for run in (first, second)]
        one, other = (verdict.resample(run, measure) for run in weeks)
        found += [verdict.score_of(one, other, compare(*maps).score), verdict.difference_of(one, other)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", help="a log (.swf, .swf.gz) or a workload (.parquet)")
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--of-weeks", action="store_true", help="draw weeks of two runs instead of simulating anew")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    workload, draw = open_workload(options.log), np.random.default_rng(options.seed)
    machine, weeks = workload.machine.processors, int(workload.jobs["submit_time"].max() // WEEK) + 1
    easy = Scheduler(backfill="easy")

    def run(of: Workload, scheduler: Scheduler = easy) -> pl.DataFrame:
        return with_load(simulate(of, scheduler), machine)

    names = [f"{what} of {measure}" for measure in MEASURES for what in ("score", "difference of the means")]
    held = np.zeros(len(names))
    if options.of_weeks:
        both = [run(workload), run(workload, Scheduler(order="sjf", backfill="easy"))]
        true = [found.value for found in estimates(*both)]
    for _ in range(options.comparisons):
        if options.of_weeks:
            seed = draw.integers(2**32)
            one, other = (resampled(part, weeks, np.random.default_rng(seed)) for part in both)
        else:
            true = [0.0] * len(names)
            one, other = (
                run(replace(workload, jobs=sort_jobs(resampled(workload.jobs, weeks, draw)))) for _ in range(2)
            )
        for place, found in enumerate(estimates(one, other)):
            low, high = found.interval
            held[place] += low is not None and high is not None and low <= true[place] <= high
    print(f"{workload.name}: {weeks} weeks, {options.comparisons:,} comparisons")
    for name, count in zip(names, held, strict=True):
        print(f"{name:42s} {100 * count / options.comparisons:5.1f} % of the 95 % intervals hold the truth")


if __name__ == "__main__":
    main()
