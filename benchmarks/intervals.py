"""
Measure how many of the 95 % intervals of comparisons contain the true value, on resampled logs.

    python benchmarks/intervals.py kth.swf.gz sdsc.swf.gz --seeds 1 7

For each comparison, as many weeks as the log has are drawn from its weeks, with replacement, and placed one after the
other, with their jobs under both schedulers.

- Pairs that differ: both runs get the same weeks. The intervals should contain the difference over the whole log.
- EASY against itself: the two runs get different weeks. The intervals should contain 0.

With ``--together 4``, four neighbouring weeks are drawn at a time, which keeps most of the dependence between weeks.

A week that is drawn for two places counts with the sum of the weights of these places. The benchmark therefore replaces
the weights of `swflow.analysis.verdict` and leaves the jobs in their places, which is much faster than moving them.
"""

import argparse

import numpy as np

from swflow.analysis import verdict
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import run
from swflow.workload.clean import open_workload

SCHEDULERS = {
    "EASY": Scheduler(backfill="easy"),
    "conservative": Scheduler(backfill="conservative"),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "FCFS": Scheduler(),
}
STATISTICS = ("mean_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt")
ITSELF = "itself"


def resampled(weeks: verdict.Weeks, weights: np.ndarray, chosen: np.ndarray) -> list[verdict.Resampled]:
    """
    Return the statistics of a run on drawn weeks.

    Parameters
    ----------
    weeks : verdict.Weeks
        The run.
    weights : float64 array of shape (draws, weeks)
        The weights of the places.
    chosen : int64 array of shape (weeks,)
        The week of the log at each place.
    """
    times = np.zeros((weights.shape[0] + 1, chosen.size))
    np.add.at(times.T, chosen, np.vstack([weights, np.ones(chosen.size)]).T)  # the last row: the drawn log as it is
    times = times[:, weeks.weeks]
    verdict._drawn = lambda some: (times, times)  # type: ignore[assignment]
    verdict.DRAWS = times.shape[0]
    found = [verdict.statistic(weeks, name) for name in STATISTICS]
    return [verdict.Resampled(float(one.drawn[-1]), one.drawn[:-1], np.arange(chosen.size)) for one in found]


def coverage(log: str, seed: int, comparisons: int, together: int, pairs: list[str]) -> dict[str, np.ndarray]:
    """Return the shares of the intervals that contain the true value, are below it, and are above it, by pair."""
    workload, draw = open_workload(log), np.random.default_rng(seed)
    runs = {
        name: verdict.by_weeks(run(workload, SCHEDULERS[name]).outcomes) for name in ("EASY", *pairs) if name != ITSELF
    }
    count = int(runs["EASY"].weeks.max()) + 1
    weights = np.column_stack([verdict._weights(number) for number in range(count)])
    every = np.arange(count)
    whole = {name: resampled(weeks, weights, every) for name, weeks in runs.items()}
    found = {name: np.zeros((3, len(STATISTICS))) for name in pairs}
    for _ in range(comparisons):
        chosen, other = (
            ((draw.integers(0, count, -(-count // together))[:, None] + np.arange(together)) % count).ravel()[:count]
            for _ in range(2)
        )
        easy = resampled(runs["EASY"], weights, chosen)
        for name in pairs:
            second = resampled(runs["EASY" if name == ITSELF else name], weights, other if name == ITSELF else chosen)
            for place in range(len(STATISTICS)):
                low, high = verdict.difference_of(easy[place], second[place]).interval
                true = 0.0 if name == ITSELF else whole["EASY"][place].value - whole[name][place].value
                if low is not None and high is not None:
                    found[name][:, place] += low <= true <= high, high < true, low > true
    return {name: counted / comparisons for name, counted in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="logs (.swf, .swf.gz) or workloads (.parquet)")
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--together", type=int, default=1, help="Neighbouring weeks per draw (default: 1).")
    parser.add_argument(
        "--pairs", nargs="+", default=[*list(SCHEDULERS)[1:], ITSELF], help="what EASY is compared with"
    )
    options = parser.parse_args()
    print(f"| log | EASY against | seed | {' | '.join(STATISTICS)} |")
    print("|---" * (3 + len(STATISTICS)) + "|")
    for log in options.logs:
        for seed in options.seeds:
            for name, shares in coverage(log, seed, options.comparisons, options.together, options.pairs).items():
                figures = (
                    f"{100 * held:.1f} ({100 * below:.1f}, {100 * above:.1f})" for held, below, above in shares.T
                )
                print(f"| {open_workload(log).name} | {name} | {seed} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
