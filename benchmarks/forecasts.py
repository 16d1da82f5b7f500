"""
Evaluate forecasts on recorded logs and on a table of polls: coverage, scores, time and memory.

Usage: ``python benchmarks/forecasts.py [--polls FILE --split 2021-06-06] [LOG …]``. The last third of each log is
forecast from the data before each moment, in all and by partition, size and wait so far. For a table of polls,
the days before the split are the past. Each method is compared with the baseline like QBETS, with a 95 % interval of
the difference of the interval score over the weeks.
"""

import argparse
import resource
import time
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from swflow.analysis.intervals import difference_of
from swflow.analysis.resampling import mean_of
from swflow.forecast.cases import DAY, Cases
from swflow.forecast.evaluation import CLASSES, PAST, Evaluated, outcomes, summary, walk_forward
from swflow.forecast.forecaster import fit, read_cases

_COLUMNS = ("jobs", "coverage", "coverage_low", "coverage_high", "width", "pinball", "score", "squared_error")


def _table(found: dict[str, Evaluated], few: int) -> pl.DataFrame:
    """Return the scores in all, and by partition, size and wait so far where a group has enough jobs."""
    dimensions = ["all", "partition", "size", "waited"]
    scores = summary(found, few).filter(pl.col("dimension").is_in(dimensions))
    return scores.select("dimension", "group", "method", *_COLUMNS).with_columns(pl.col(pl.Float64).round(3))


def _compare(found: dict[str, Evaluated]) -> None:
    past, base = (
        mean_of(outcomes(found[method]).filter(pl.col("hit").is_not_null()), "score") for method in (PAST, CLASSES)
    )
    difference = difference_of(past, base)
    low, high = difference.interval
    share = 100 / base.value
    bounds = "" if low is None or high is None else f" ({share * low:+.1f} to {share * high:+.1f} %)"
    print(f"score of {PAST} against {CLASSES}: {share * difference.value:+.1f} %{bounds}, {difference.verdict()}")


def _evaluate(name: str, cases: Cases, begin: float, refit: float, few: int, polls: bool = False) -> None:
    began = time.process_time()
    found = walk_forward(cases, begin, float(cases.asked[-1]) + 1, refit)
    at_submission = {}
    for method, (some, forecasts) in found.items():
        rows = (some.waited == 0) | polls
        at_submission[method] = Evaluated(some.take(rows), forecasts[rows])
    print(f"\n{name}: {time.process_time() - began:.0f} s of CPU time for the evaluation")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, tbl_hide_dataframe_shape=True,
                   tbl_hide_column_data_types=True, tbl_formatting="ASCII_MARKDOWN"):  # fmt: skip
        print("Jobs at the polls" if polls else "Jobs at their submission")
        print(_table(at_submission, few))
        if not polls:
            print("Also jobs that wait at noon")
            print(_table(found, few).filter(pl.col("dimension").is_in(["all", "waited"])))
    _compare(at_submission)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--polls", type=Path)
    parser.add_argument("--split", default="2021-06-06", help="the first day that is forecast in the polls")
    parser.add_argument("--refit", type=float, default=14, help="days after which a model is fitted anew")
    parser.add_argument("--speed", action="store_true", help="also time the fit of a forecaster and one forecast")
    options = parser.parse_args()
    if options.polls:
        cases, _ = read_cases(options.polls)
        split = datetime.fromisoformat(options.split).replace(tzinfo=UTC).timestamp()
        _evaluate(options.polls.name, cases, split, options.refit * DAY, 500, True)
    for path in options.logs:
        began = time.process_time(), time.perf_counter()
        cases, state = read_cases(path)
        swept = time.process_time() - began[0]
        if options.speed:
            forecaster = fit(cases, **state)
            whole = time.process_time() - began[0], time.perf_counter() - began[1]
            began_one = time.perf_counter()
            forecaster.of_requests([forecaster.describe(1, 3600.0, None, None)])
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(
                f"{path.name}: {swept:.1f} s of CPU time to read and replay, {whole[0]:.0f} s with the fit "
                f"({whole[1]:.0f} s elapsed), {time.perf_counter() - began_one:.3f} s for a forecast; {memory:.2f} GB"
            )
        else:
            begin = float(cases.asked[0]) + (float(cases.asked[-1]) - float(cases.asked[0])) * 2 / 3
            _evaluate(path.name, cases, begin, options.refit * DAY, 500)


if __name__ == "__main__":
    main()
