"""
Evaluate forecasts on recorded logs and on a table of polls: coverage, scores, time and memory.

Usage: ``python benchmarks/forecasts.py [--polls FILE --split 2021-06-06] [LOG …]``. The last third of each log is
forecast from the data before each moment, in all and by partition, size and wait so far. For a table of polls,
the days before the split are the past. Each method is compared with the baseline like QBETS, with a 95 % interval of
the difference of the interval score over the weeks. ``--method best`` adds simulated futures, for about 1,000 jobs.

``--simulated`` makes a log under EASY from known distributions instead, forecasts 10,000 of its jobs by both methods,
and compares some of the intervals with those of futures drawn from the true distributions.
"""

import argparse
import resource
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
from scipy.stats import norm

import swflow
from swflow.analysis.intervals import difference_of
from swflow.analysis.resampling import mean_of
from swflow.figures.pictures import to_svg
from swflow.forecast.cases import Cases, decades
from swflow.forecast.evaluation import (
    BEST,
    CLASSES,
    PAST,
    SIMULATION,
    WARM_UP,
    Evaluated,
    chance_scores,
    interval_score,
    outcomes,
    summary,
    walk_forward,
)
from swflow.forecast.forecaster import fit, open_recorded, read_cases
from swflow.forecast.model import QUANTILES
from swflow.forecast.record import Request
from swflow.forecast.simulation import HORIZONS, Simulator, simulator_of
from swflow.forecast.sweep import from_log
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.values import DAY, WEEK

EASY = Scheduler(backfill="easy")

_COLUMNS = ("jobs", "coverage", "coverage_low", "coverage_high", "width", "pinball", "score", "squared_error")


def _table(found: dict[str, Evaluated], few: int) -> pl.DataFrame:
    """Return the scores in all, and by partition, size and wait so far where a group has enough jobs."""
    dimensions = ["all", "partition", "size", "waited"]
    scores = summary(found, few).filter(pl.col("dimension").is_in(dimensions))
    return scores.select("dimension", "group", "method", *_COLUMNS).with_columns(pl.col(pl.Float64).round(3))


def _chances(found: dict[str, Evaluated]) -> pl.DataFrame:
    """Return what followed the chances of starts, by method, time and tenth of the chances."""
    return chance_scores({name: one for name, one in found.items() if name != CLASSES})


def write_diagram(chances: dict[str, pl.DataFrame], path: Path) -> None:
    """Draw the share of jobs that started over their chance, by log and time: on the diagonal, chances are right."""
    words = {60.0: "within 1 min", 3600.0: "within 1 h", 4 * 3600.0: "within 4 h", DAY: "within 24 h"}
    rows = pl.concat([table.with_columns(log=pl.lit(name)) for name, table in chances.items()])
    rows = rows.with_columns(within=pl.col("within").replace_strict(words, return_dtype=pl.String))
    percent = alt.Scale(domain=[0, 1])
    labels = alt.Axis(format="%", values=[0, 0.5, 1])
    base = alt.Chart(alt.Data(values=rows.to_dicts()))
    points = base.mark_line(point=True, strokeWidth=1).encode(
        alt.X("chance:Q", title="chance of a start", scale=percent, axis=labels),
        alt.Y("started:Q", title="jobs that started", scale=percent, axis=labels),
        alt.Color("within:N", title=None, sort=[*words.values()]),
        alt.Shape("within:N", sort=[*words.values()], legend=None),
    )
    diagonal = base.transform_aggregate(jobs="sum(jobs)", groupby=["log"])
    diagonal = diagonal.mark_rule(color="gray", strokeDash=[2, 2]).encode(
        x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1)
    )
    figure = (
        alt.layer(diagonal, points).properties(width=130, height=130).facet(alt.Facet("log:N", title=None), columns=4)
    )
    path.write_text(to_svg(figure.to_dict()))


def _compare(found: dict[str, Evaluated]) -> None:
    score = {
        method: mean_of(outcomes(one).filter(pl.col("hit").is_not_null()), "score") for method, one in found.items()
    }
    base = score.pop(CLASSES)
    for method, one in score.items():
        difference = difference_of(one, base)
        low, high = difference.interval
        share = 100 / base.value
        bounds = "" if low is None or high is None else f" ({share * low:+.1f} to {share * high:+.1f} %)"
        print(f"score of {method} against {CLASSES}: {share * difference.value:+.1f} %{bounds}, {difference.verdict()}")


def _evaluate(
    name: str,
    cases: Cases,
    begin: float,
    refit: float,
    few: int,
    polls: bool = False,
    method: str = PAST,
    simulator: Simulator | None = None,
) -> dict[str, Evaluated]:
    began = time.process_time()
    end = float(cases.asked[-1]) + 1
    found = walk_forward(cases, begin, end, refit, method=method, simulator=simulator)
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
        print("Chances of a start, by tenth")
        print(_chances(found))
    _compare(at_submission)
    if simulator is not None:
        asked = ((cases.asked >= begin) & (cases.asked < end)).sum()
        print(f"{found[CLASSES].cases.asked.size:,} of {asked:,} cases, the share that is simulated")
    return found


@dataclass
class World:
    """
    The distributions of a simulated log.

    Jobs arrive by a Poisson process with hourly rates that depend on hour and day. Each is that of a random user, with
    a size of the model of Lublin and Feitelson. The logarithm of a user's run times is normal; runs end at the limit.
    """

    rate: np.ndarray  # jobs in each hour of a week, from Monday
    share: np.ndarray  # the shares of the users
    mean: np.ndarray  # the mean of the logarithm of each user's run times
    deviation: np.ndarray
    limit: np.ndarray  # the limit of each user, seconds

    def arrivals(self, hours: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return the sorted arrivals in consecutive hours, which are numbered from a Monday's midnight."""
        count = random.poisson(self.rate[hours % 168])
        return np.sort(np.repeat(hours, count) + random.random(count.sum())) * 3600

    def draw(self, request: Request, elapsed: float, now: float, random: np.random.Generator, count: int) -> np.ndarray:
        """Draw run times as `swflow.forecast.simulation.RunTimes` does, from the true distribution."""
        mean, deviation = self.mean[request.user], self.deviation[request.user]
        low = norm.cdf((np.log(max(elapsed, 1e-9)) - mean) / deviation)
        run = np.exp(mean + deviation * norm.isf((1 - low) * (1 - random.random(count))))
        return np.maximum(np.minimum(run, request.limit), elapsed)


@dataclass
class Truth(Simulator):
    """Simulations with the true distributions; requests are those of random jobs of the log."""

    world: World | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.run_times, self.user = self.world, np.array([one.user for one in self.requests])

    def arrivals(self, now: float, when: np.random.Generator, runs: np.random.Generator, futures: int) -> "Drawn":
        """Return arrivals from the true distribution."""
        return Drawn(self, now, when, futures)


class Drawn:
    """The arrivals of each future, drawn from the true distributions."""

    def __init__(self, truth: Truth, now: float, random: np.random.Generator, futures: int) -> None:
        hours = np.arange(int(now // 3600), int(now // 3600) + int(HORIZONS[-1] // 3600))
        self.futures = []
        for _ in range(futures):
            when = truth.world.arrivals(hours, random)
            when = when[when > now] - now
            rows = random.integers(0, len(truth.requests), when.size)
            user = truth.user[rows]
            run = np.exp(random.normal(truth.world.mean[user], truth.world.deviation[user]))
            self.futures.append((rows, when, np.minimum(run, truth.limit[rows])))

    def until(self, horizon: float, futures: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return positions in ``futures``, rows of the log, seconds from the moment and run times of the arrivals."""
        parts = [self.futures[future] for future in futures]
        last = [np.searchsorted(when, horizon, side="right") for _, when, _ in parts]
        number = np.repeat(np.arange(len(parts)), last)
        columns = (
            np.concatenate([part[: last[place]] for place, part in enumerate(one)]) for one in zip(*parts, strict=True)
        )
        return number, *columns


def simulated_log(weeks: int = 30, processors: int = 128, load: float = 0.85, seed: int = 1) -> tuple[Workload, World]:
    """Return a log under EASY, with the distributions from which it was drawn."""
    random = generator(seed, "benchmark", "forecasts")
    users = 40
    mean, deviation = np.log(random.lognormal(np.log(2400), 1.2, users)), random.uniform(0.5, 1.3, users)
    limits = np.array([1, 4, 12, 24, 72]) * 3600.0
    limit = limits[np.minimum(np.searchsorted(limits, np.exp(mean + 1.5 * deviation)), limits.size - 1)]
    share = 1 / np.arange(1, users + 1)
    hour = np.arange(168)
    shape = (1 + 0.7 * np.sin((hour % 24 - 8) / 24 * 2 * np.pi)) * np.where(hour >= 120, 0.5, 1.0)
    world = World(shape, share / share.sum(), mean, deviation, limit)
    sizes = swflow.generate(jobs=20_000, processors=processors, name="sizes", seed=seed).jobs["processors"].to_numpy()
    some = random.choice(users, 100_000, p=world.share)
    work = np.minimum(np.exp(random.normal(mean[some], deviation[some])), limit[some]).mean() * sizes.mean()
    world.rate = shape / shape.mean() * load * processors * 3600 / work
    submit = np.ceil(world.arrivals(np.arange(weeks * 168), random))
    user = random.choice(users, submit.size, p=world.share)
    run = np.minimum(np.exp(random.normal(mean[user], deviation[user])), limit[user])
    jobs = pl.DataFrame({
        "job_id": np.arange(1, submit.size + 1), "submit_time": submit, "run_time": run,
        "processors": random.choice(sizes, submit.size), "requested_time": limit[user], "estimate": limit[user],
        "user_id": user, "group_id": np.zeros(submit.size, int), "queue_id": np.zeros(submit.size, int),
        "partition_id": np.zeros(submit.size, int),
    }).with_columns(requested_processors="processors")  # fmt: skip
    monday = {"UnixStartTime": ["345600"]}
    workload = Workload(jobs, Machine(processors, processors), "simulated", monday)
    waits = swflow.simulate(workload, EASY)["wait_time"]
    return workload.with_jobs(jobs.with_columns(wait_time=waits), {"stage": "simulated"}), world


def _against_truth(found: dict[str, Evaluated], truth: Truth, count: int) -> pl.DataFrame:
    """
    Compare intervals with simulations from the same state under the true distributions.

    ``probability`` is the mean probability with which a job starts within its interval; ``deviation`` is the mean
    distance of this probability from 90 %. The error is that of both ends and the median, decades.
    """
    cases = found[CLASSES].cases
    random = generator(0, "benchmark", "subsample")
    rows = np.sort(random.choice(cases.asked.size, min(count, cases.asked.size), replace=False))
    drawn = []
    for case in rows:
        row, now = truth.place[int(cases.job[case])], float(cases.asked[case])
        state = truth.state(now, None if cases.waited[case] > 0 else row + 1)
        drawn.append(truth.starts(state, [state.jobs.index(row)], f"truth {case}", 400)[0])
    values = decades(np.array(drawn))
    ends = np.quantile(values, QUANTILES, axis=1, method="inverted_cdf").T
    table = []
    for method, one in {"truth": None, **found}.items():
        forecasts = ends if one is None else one.forecasts[rows]
        inside = ((values >= forecasts[:, :1]) & (values <= forecasts[:, 2:])).mean(axis=1)
        error = np.abs(forecasts - ends).mean(axis=0)
        score = np.mean([interval_score(one, forecasts).mean() for one in values.T])
        table.append((method, rows.size, inside.mean(), np.abs(inside - 0.9).mean(), *error, score))
    names = ["method", "jobs", "probability", "deviation", "error low", "error median", "error high", "score"]
    return pl.DataFrame(table, names, orient="row").with_columns(pl.col(pl.Float64).round(3))


def _evaluate_simulated(forecasts: int, subsample: int) -> None:
    workload, world = simulated_log()
    cases, _ = from_log(workload)
    begin, end = 18 * WEEK, float(cases.asked[-1]) + 1
    simulator = simulator_of(workload, EASY, cases, begin - WARM_UP * WEEK, end)
    simulator.share = min(forecasts / ((cases.asked >= begin) & (cases.asked < end)).sum(), 1.0)
    found = _evaluate("simulated", cases, begin, WEEK, 500, method=BEST, simulator=simulator)
    parts = {
        name: getattr(simulator, name) for name in ("processors", "requests", "submit", "start", "end", "left", "ids")
    }
    truth = Truth(**parts, scheduler=EASY, world=world)
    print("Against futures drawn from the true distributions")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, tbl_hide_dataframe_shape=True,
                   tbl_hide_column_data_types=True, tbl_formatting="ASCII_MARKDOWN"):  # fmt: skip
        print(_against_truth(found, truth, subsample))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("logs", nargs="*", type=Path)
    parser.add_argument("--polls", type=Path)
    parser.add_argument("--split", default="2021-06-06", help="the first day that is forecast in the polls")
    parser.add_argument("--refit", type=float, default=14, help="days after which a model is fitted anew")
    parser.add_argument("--speed", action="store_true", help="also time the fit of a forecaster and one forecast")
    parser.add_argument("--method", choices=(PAST, SIMULATION, BEST), default=PAST)
    parser.add_argument("--diagram", type=Path, help="draw the share of starts over their chances (.svg)")
    parser.add_argument(
        "--simulated", type=int, nargs="?", const=10_000, help="forecast this number of jobs of a simulated log"
    )
    parser.add_argument("--subsample", type=int, default=500, help="jobs whose true distribution is drawn")
    options = parser.parse_args()
    if options.simulated:
        _evaluate_simulated(options.simulated, options.subsample)
    chances = {}
    if options.polls:
        cases, _ = read_cases(options.polls)
        split = datetime.fromisoformat(options.split).replace(tzinfo=UTC).timestamp()
        name = options.polls.name
        chances[name] = _chances(_evaluate(name, cases, split, options.refit * DAY, 500, True))
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
            end, simulator = float(cases.asked[-1]) + 1, None
            if options.method != PAST:
                warm = begin - WARM_UP * options.refit * DAY
                simulator = simulator_of(open_recorded(path), EASY, cases, warm, end)
            refit, few = options.refit * DAY, 100 if simulator else 500
            found = _evaluate(path.name, cases, begin, refit, few, method=options.method, simulator=simulator)
            chances[path.name] = _chances(found)
    if options.diagram:
        shown = {name.partition(".")[0]: table.filter(pl.col("method") == PAST) for name, table in chances.items()}
        write_diagram(shown, options.diagram)


if __name__ == "__main__":
    main()
