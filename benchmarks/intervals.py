"""
Measure how many of the 95 % intervals of comparisons contain the true value, and how many exclude 0.

    python benchmarks/intervals.py kth.swf.gz sdsc.swf.gz --weeks 4 8 16 0

For each comparison, weeks of a log are sampled with replacement and placed one after the other, with their jobs under
both schedulers.

- Pairs that differ: both runs get the same weeks. The intervals should contain the difference over the whole log
  (coverage), and exclude 0 if that difference is not 0 (power).
- EASY against itself: the two runs get different weeks. The intervals should contain 0.

Each cell has two percentages: with the interval of the difference of the two statistics, and with that of the
logarithm of their ratio, which swflow prints. With ``--together 4``, four neighboring weeks are sampled at a time,
which keeps most of the dependence between weeks.
"""

import argparse
from collections.abc import Iterator

import numpy as np

from swflow.analysis import resampling
from swflow.analysis.intervals import Estimate, _estimate, difference_of
from swflow.analysis.resampling import Resampled, Weeks
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.runs import run
from swflow.workload.clean import open_workload

SCHEDULERS = {
    "EASY": Scheduler(backfill="easy"),
    "FCFS": Scheduler(),
    "SJBF": Scheduler(backfill="easy", backfill_order="sjf"),
    "conservative": Scheduler(backfill="conservative"),
    "WFP3": Scheduler(order="wfp3", backfill="easy"),
}
MEANS = ("mean_wait_time", "mean_bounded_slowdown", "awrt")
PERCENTILE = "p95_wait_time"
ITSELF = "itself"


def mean_of_weeks(weeks: Weeks, name: str, weights: np.ndarray, chosen: np.ndarray) -> Iterator[Resampled]:
    """
    Yield a mean of a run in each sampled log.

    Parameters
    ----------
    weeks : Weeks
        The run.
    name : str
        One of `MEANS`.
    weights : float64 array of shape (samples, places)
        The weights of the places.
    chosen : int64 array of shape (logs, places)
        The week of the log at each place.
    """
    table, number = weeks.outcomes, weeks.weeks[weeks.week]
    values = table["response_time" if name == "awrt" else name.removeprefix("mean_")].cast(float).to_numpy()
    area = (table["processors"] * table["run_time"]).cast(float).to_numpy() if name == "awrt" else np.ones(number.size)
    size = int(weeks.weeks.max()) + 1
    totals, sums = (np.bincount(number, part, size)[chosen] for part in (area, area * values))
    with np.errstate(invalid="ignore"):
        every, sampled = sums.sum(axis=1) / totals.sum(axis=1), (sums @ weights.T) / (totals @ weights.T)
    places = np.arange(chosen.shape[1])
    for value, row in zip(every, sampled, strict=True):
        yield Resampled(float(value), row, places)


def percentile_of_weeks(weeks: Weeks, weights: np.ndarray, chosen: np.ndarray) -> Iterator[Resampled]:
    """Yield the percentile of a run in each sampled log: a week counts with the sum of the weights of its places."""
    size = int(weeks.weeks.max()) + 1
    for places in chosen:
        times = np.zeros((weights.shape[0] + 1, size))
        np.add.at(times.T, places, np.vstack([weights, np.ones(places.size)]).T)  # the last row: without weights
        times = times[:, weeks.weeks]
        resampling._weights_of = lambda some, times=times: (times, times)  # type: ignore[assignment,misc]
        found = resampling.statistic(weeks, PERCENTILE).sampled
        yield Resampled(float(found[-1]), found[:-1], np.arange(places.size))


def of_difference(variant: Resampled, base: Resampled) -> Estimate:
    """Return the estimate whose interval is that of the difference itself."""
    return _estimate(variant.value - base.value, variant.sampled - base.sampled, base.weeks.size, False)


def measure(log: str, options: argparse.Namespace) -> Iterator[tuple[str, int, str, dict[str, np.ndarray]]]:
    """Yield log, weeks, scheduler, and by statistic the shares that contain the true value, and that exclude 0."""
    workload, generator = open_workload(log), np.random.default_rng(options.seed)
    names = ["EASY", *(name for name in options.pairs if name != ITSELF)]
    runs = {name: resampling.by_weeks(run(workload, SCHEDULERS[name]).outcomes) for name in names}
    count = int(runs["EASY"].weeks.max()) + 1
    whole = {
        name: {measure: resampling.statistic(weeks, measure).value for measure in (*MEANS, PERCENTILE)}
        for name, weeks in runs.items()
    }
    original = resampling._weights_of
    for places in (number or count for number in options.weeks):
        weights = np.column_stack([resampling._weights(place) for place in range(places)])
        first = generator.integers(0, count, (2, options.comparisons, -(-places // options.together), 1))
        chosen, other = ((first + np.arange(options.together)) % count).reshape(2, options.comparisons, -1)[
            ..., :places
        ]
        for name in options.pairs:
            found = {}
            weeks, places_of = (runs["EASY"], other) if name == ITSELF else (runs[name], chosen)
            for statistic in (*MEANS, *([PERCENTILE] if options.percentiles else [])):
                if statistic == PERCENTILE:
                    few = slice(options.percentiles)
                    sides = [percentile_of_weeks(runs["EASY"], weights, chosen[few])]
                    sides.append(percentile_of_weeks(weeks, weights, places_of[few]))
                else:
                    sides = [mean_of_weeks(runs["EASY"], statistic, weights, chosen)]
                    sides.append(mean_of_weeks(weeks, statistic, weights, places_of))
                true = [whole["EASY"][statistic], whole["EASY" if name == ITSELF else name][statistic]]
                found[statistic] = np.mean([_held(*pair, *true) for pair in zip(*sides, strict=True)], axis=0)
            resampling._weights_of = original
            yield workload.name, places, name, found


def _held(variant: Resampled, base: Resampled, true: float, true_base: float) -> list[tuple[bool, bool]]:
    """Return for both methods whether the interval contains the true value, and whether it excludes 0."""
    difference, ratio = of_difference(variant, base), difference_of(variant, base)
    held = []
    for found, value in ((difference, true - true_base), (ratio, base.value * (true / true_base - 1))):
        low, high = found.interval
        known = low is not None and high is not None
        held.append((known and low <= value <= high, known and (low > 0 or high < 0)))
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="+", help="logs (.swf, .swf.gz) or workloads (.parquet)")
    parser.add_argument("--weeks", type=int, nargs="+", default=[4, 8, 16, 0], help="0: as many as the log has")
    parser.add_argument("--comparisons", type=int, default=2000)
    parser.add_argument(
        "--percentiles", type=int, default=0, help="Sampled logs for the 95th percentile, which is slow."
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--together", type=int, default=1, help="Neighboring weeks per sample (default: 1).")
    parser.add_argument("--pairs", nargs="+", default=list(SCHEDULERS)[1:], help="what EASY is compared with")
    options = parser.parse_args()
    statistics = [*MEANS, *([PERCENTILE] if options.percentiles else [])]
    rows = [row for log in options.logs for row in measure(log, options)]
    for title, place in (("Contain the true value (%)", 0), ("Exclude 0 (%)", 1)):
        print(f"\n{title}: difference, ratio\n")
        print(f"| log | EASY against | weeks | {' | '.join(statistics)} |")
        print("|---" * (3 + len(statistics)) + "|")
        for log, weeks, name, found in rows:
            cells = (", ".join(f"{100 * share:.0f}" for share in found[one][:, place]) for one in statistics)
            print(f"| {log} | {name} | {weeks} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
