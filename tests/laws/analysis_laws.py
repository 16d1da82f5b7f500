"""Laws of analyses: of metrics, loads, heatmaps, bounds, comparisons, fidelity, fairness and statistics."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from laws import draw_log, draw_options, law, run, starts, times, with_jobs
from swflow.analysis import verdicts
from swflow.analysis.bounds import bounds
from swflow.analysis.comparison import compare
from swflow.analysis.fidelity import fidelity
from swflow.analysis.heatmap import Heatmap, bubbles, heatmap, heatmap_of_cells
from swflow.analysis.intervals import difference_of, score_of
from swflow.analysis.job_load import loads_of
from swflow.analysis.metrics import MEASURES, correlations, fairness_indices, fairness_table, metrics
from swflow.analysis.plausibility import check_workload
from swflow.analysis.resampling import distribution_of, statistic
from swflow.analysis.timeline import interval_means
from swflow.jobs.busy import use_of
from swflow.values import WEEK


def draw_run(rng: random.Random, most: int = 40) -> tuple[pl.DataFrame, int]:
    """Draw the outcomes of a run, and its machine."""
    log = draw_log(rng, most)
    return run(log, draw_options(rng)), log.machine.processors


def draw_values(rng: random.Random, most: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Draw loads and values, some of which are unknown."""
    jobs = rng.randint(1, most)
    load = np.array([rng.choice([0.0, 0.5, 1.0, rng.random(), rng.random(), math.nan]) for _ in range(jobs)])
    return load, np.array([rng.choice([0.0, 1.0, 10 ** (5 * rng.random()), math.nan]) for _ in range(jobs)])


def same(first: Any, second: Any) -> bool:
    """Return whether two results are equal up to the rounding of sums."""
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    if first is None or second is None or isinstance(first, str):
        return bool(first == second)
    return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-9)


@law()
def metrics_of_parts(rng: random.Random) -> None:
    """Means of parts add up: n mean(a + b) = n_a mean(a) + n_b mean(b), area(a + b) = area(a) + area(b)."""
    found, machine = draw_run(rng)
    cut = rng.randint(1, found.height)
    one, two, both = (metrics(table, machine) for table in (found[:cut], found[cut:], found))
    if cut < found.height:
        for name in ("jobs", "killed", "squashed_area"):
            assert same(both[name], one[name] + two[name])
        for name in ("mean_wait_time", "mean_response_time", "mean_slowdown", "mean_bounded_slowdown"):
            assert same(both[name] * both["jobs"], one[name] * one["jobs"] + two[name] * two["jobs"])
        for name in ("awrt", "awwt"):
            parts = [part[name] * part["squashed_area"] for part in (one, two)]
            assert same(both[name] * both["squashed_area"], sum(parts))


@law()
def metrics_in_any_order(rng: random.Random) -> None:
    """metrics(permuted jobs) = metrics(jobs)."""
    found, machine = draw_run(rng)
    shuffled = found.sample(fraction=1.0, shuffle=True, seed=rng.randint(0, 999))
    assert same(metrics(shuffled, machine), metrics(found, machine))


@law()
def metrics_of_twice_the_jobs(rng: random.Random) -> None:
    """mean(log + log) = mean(log), median(log + log) = median(log)."""
    found, machine = draw_run(rng)
    one, two = metrics(found, machine), metrics(pl.concat([found, found]), machine)
    for measure in MEASURES:
        assert same(one[f"mean_{measure}"], two[f"mean_{measure}"])
        assert same(one[f"median_{measure}"], two[f"median_{measure}"])
    assert same(two["utilization"], 2 * one["utilization"])


@law()
def metrics_of_doubled_times(rng: random.Random) -> None:
    """times(2 S) = 2 times(S), shares(2 S) = shares(S), and slowdowns(2 S) = slowdowns(S)."""
    log, options = draw_log(rng), draw_options(rng)
    one, two = (run(one, options) for one in (log, with_jobs(log, *times(2.0))))
    first, second = (metrics(table, log.machine.processors) for table in (one, two))
    for name, value in first.items():
        if value is None or "bounded" in name:
            continue
        kind = name.split("_", 1)[-1]
        doubles = name in ("makespan", "last_end", "awrt", "awwt", "squashed_area")
        doubles = doubles or kind.startswith(("wait_time", "response_time"))
        assert same(second[name], value * (2 if doubles else 1)), name


@law()
def responses_are_waits_and_runs(rng: random.Random) -> None:
    """Responses: response = wait + run, slowdown = response / run, awrt - awwt = sum of area times run / area."""
    found, machine = draw_run(rng)
    totals = metrics(found, machine)
    assert (found["response_time"] == found["wait_time"] + found["run_time"]).all()
    assert (found["slowdown"] * found["run_time"] - found["response_time"]).abs().max() < 1e-9
    area = found["processors"] * found["run_time"]
    assert same((totals["awrt"] - totals["awwt"]) * area.sum(), (area * found["run_time"]).sum())


@law()
def load_is_the_area(rng: random.Random) -> None:
    """load(j) (end - submit) m = the integral of the busy processors from j's submission to its end."""
    found, machine = draw_run(rng, 20)
    loads = loads_of(found, machine)
    rows = found.select("submit_time", "start_time", "end_time", "processors").rows()
    for place, (submit, _, end, _) in enumerate(rows):
        for begins, load in ((1, loads.load), (0, loads.backlog_load)):
            area = Fraction(0)
            for other in rows:
                common = Fraction(min(other[2], end)) - Fraction(max(other[begins], submit))
                area += max(common, Fraction(0)) * other[3]
            assert float(area / (Fraction(end - submit) * machine)) == load[place]


@law()
def load_of_the_whole_run(rng: random.Random) -> None:
    """load(j) = utilization if j stays from the first submission to the last end; backlog load >= load."""
    found, machine = draw_run(rng)
    loads = loads_of(found, machine)
    whole = (found["submit_time"] == found["submit_time"].min()) & (found["end_time"] == found["end_time"].max())
    for place in np.flatnonzero(whole.to_numpy()):
        assert same(float(loads.load[place]), metrics(found, machine)["utilization"])
    assert (loads.backlog_load >= loads.load).all() and (loads.load <= 1).all()
    assert loads.peak_processors <= machine


@law()
def load_without_units(rng: random.Random) -> None:
    """load(2 S + c) = load(S): neither the unit nor the origin of time matters."""
    found, machine = draw_run(rng)
    factor, later = rng.choice([0.5, 2.0, 64.0]), rng.choice([0.0, 256.0, -4096.0])
    names = ("submit_time", "start_time", "end_time")
    moved = found.with_columns(pl.col(name) * factor + later for name in names)
    for one, two in zip(loads_of(found, machine), loads_of(moved, machine), strict=True):
        assert np.array_equal(one, two)


@law()
def use_without_units(rng: random.Random) -> None:
    """peak(S) = max over starts of the running widths, area(S) = sum of widths times run times."""
    found, machine = draw_run(rng)
    start, end, width = (found[name].to_numpy() for name in ("start_time", "end_time", "processors"))
    used = use_of(start, end, width, machine)
    assert used.peak == max(width[(start <= moment) & (end > moment)].sum() for moment in start)
    assert used.area == (width * (end - start)).sum() and used.beyond == 0
    assert used.span == end.max() - start.min()


@law()
def heatmap_counts(rng: random.Random) -> None:
    """Sum of the cells = number of jobs with a known load and value."""
    load, values = draw_values(rng)
    known = ~np.isnan(load) & ~np.isnan(values)
    for scale in ("log", "linear"):
        assert heatmap(load, values, scale).jobs.sum() == known.sum()
    for classes in (10, 11):
        found = bubbles(load, values, classes)
        assert found["jobs"].sum() == known.sum()
        assert same(float((found["jobs"] * found["mean_value"]).sum()), float(values[known].sum()))
        assert same(float((found["jobs"] * found["mean_load"]).sum()), float(load[known].sum()))


@law()
def heatmap_of_parts(rng: random.Random) -> None:
    """cells(a + b) = cells(a) + cells(b), and cells(permuted jobs) = cells(jobs)."""
    load, values = draw_values(rng)
    cut = rng.randint(0, load.size)

    def cells(*maps: Heatmap) -> dict[tuple[float, float], int]:
        table = pl.concat([one.cells() for one in maps]).group_by("load_low", "value_low").agg(pl.col("jobs").sum())
        return {(row[0], row[1]): row[2] for row in table.rows()}

    whole = heatmap(load, values)
    assert cells(heatmap(load[:cut], values[:cut]), heatmap(load[cut:], values[cut:])) == cells(whole)
    order = np.random.default_rng(rng.randint(0, 999)).permutation(load.size)
    assert np.array_equal(heatmap(load[order], values[order]).jobs, whole.jobs)
    again = heatmap_of_cells(*whole.cells().select("load_low", "value_low", "jobs").get_columns())
    assert np.array_equal(again.jobs, whole.jobs)


@law()
def heatmap_cells_contain_their_jobs(rng: random.Random) -> None:
    """Jobs in a cell = number of jobs with low <= value < high in both directions."""
    load, values = draw_values(rng, 40)
    found = heatmap(load, values).cells()
    at_least_1 = np.maximum(values, 1.0)
    for load_low, load_high, low, high, jobs in found.rows():
        across = (load >= load_low) & ((load < load_high) | (load_high == 1.0))
        assert jobs == (across & (at_least_1 >= low) & (at_least_1 < high)).sum()


@law()
def bounds_below_every_schedule(rng: random.Random) -> None:
    """bound(log) <= metric(S) for every scheduler, and utilization(S) <= bound(log)."""
    log = draw_log(rng)
    jobs = log.jobs.select("submit_time", "run_time", "processors")
    limits = {one.measure: one.value for one in bounds(jobs, log.machine.processors)}
    for _ in range(3):
        figures = metrics(run(log, draw_options(rng, estimates="raise")), log.machine.processors)
        for name, value in limits.items():
            sign = -1 if name == "utilization" else 1
            assert sign * figures[name] >= sign * value - 1e-9 * max(1, abs(value)), name


@law()
def bounds_without_units(rng: random.Random) -> None:
    """bound(2 log + c) = 2 bound(log), bound(permuted log) = bound(log), and bound(log, m + 1) <= bound(log, m)."""
    log = draw_log(rng)
    machine = log.machine.processors

    def found(workload: Any, processors: int = machine) -> dict[str, float]:
        return {one.measure: one.value for one in bounds(workload.jobs, processors)}

    limits = found(log)
    doubled = found(with_jobs(log, *times(2.0, 1024.0)))
    assert same(doubled, {name: value * (1 if name == "utilization" else 2) for name, value in limits.items()})
    shuffled = log.jobs.sample(fraction=1.0, shuffle=True, seed=rng.randint(0, 999))
    assert same(found(replace(log, jobs=shuffled)), limits)
    larger = found(log, machine + 1)
    for name in ("awrt", "awwt", "makespan"):
        assert larger[name] <= limits[name] + 1e-9 * max(1, limits[name]), name


@law()
def comparison_is_antisymmetric(rng: random.Random) -> None:
    """score(a, b) = -score(b, a), distance(a, b) = distance(b, a), score(a, a) = distance(a, a) = 0."""
    a, b = (heatmap(*draw_values(rng)) for _ in range(2))
    there, back, self = compare(a, b), compare(b, a), compare(a, a)
    assert same(there.score, -back.score) and same(there.distance, back.distance)
    assert (there.variant_wins, there.base_wins) == (back.base_wins, back.variant_wins)
    assert there.better == {"variant": "base", "base": "variant", None: None}[back.better]
    assert (self.score, self.distance, self.better) == (0, 0, None)


@law()
def distance_is_a_metric(rng: random.Random) -> None:
    """distance(a, c) <= distance(a, b) + distance(b, c)."""
    a, b, c = (heatmap(*draw_values(rng, 30)) for _ in range(3))
    if all(one.jobs.sum() for one in (a, b, c)):
        assert compare(a, c).distance <= compare(a, b).distance + compare(b, c).distance + 1e-9


@law()
def fidelity_to_itself(rng: random.Random) -> None:
    """fidelity(S, S) = no difference."""
    found, machine = draw_run(rng)
    same_run = fidelity(found, found, machine)
    assert same_run["jobs"] == found.height and same_run["started_alike"] == 1
    assert same_run["start_order"] in (1, None)
    for name in ("wait_distance", "wait_difference", "utilization_difference", "heatmap_distance"):
        assert same_run[name] == 0


@law()
def fidelity_is_symmetric(rng: random.Random) -> None:
    """difference(a, b) = difference(b, a) for the waits by rank, the starts and the heatmaps."""
    log = draw_log(rng)
    a, b = (run(log, draw_options(rng)) for _ in range(2))
    there, back = fidelity(a, b, log.machine.processors), fidelity(b, a, log.machine.processors)
    for name in ("jobs", "wait_difference", "started_alike", "heatmap_distance"):
        assert same(there[name], back[name])
    assert same(there["recorded_mean_wait_time"], back["simulated_mean_wait_time"])


@law()
def fairness_of_all_users(rng: random.Random) -> None:
    """Sum over users of (jobs, shares of the use, jobs times mean wait) = (all jobs, 1, sum of waits)."""
    log = draw_log(rng)
    found = run(log, draw_options(rng))
    table = fairness_table(found, log.jobs)
    for kind in ("user", "group"):
        rows = table.filter(kind=kind)
        assert rows["jobs"].sum() == found.height and same(rows["use_share"].sum(), 1.0)
        assert same((rows["jobs"] * rows["mean_wait_time"]).sum(), found["wait_time"].sum())


@law()
def fairness_without_names_and_units(rng: random.Random) -> None:
    """index(2 waits) = index(waits) = index(f(users)) for every one-to-one f; 1/n <= Jain <= 1, 0 <= Gini < 1."""
    log = draw_log(rng)
    found = run(log, draw_options(rng))
    indices = fairness_indices(found, log.jobs)
    renamed = log.jobs.with_columns(user_id=1000 - pl.col("user_id"))
    assert same(fairness_indices(found.with_columns(pl.col("wait_time") * 2), renamed), indices)
    users = log.jobs["user_id"].n_unique()
    assert 1 / users - 1e-9 <= indices["jain_wait_time"] <= 1 + 1e-9  # type: ignore[operator]
    assert -1e-9 <= indices["gini_wait_time"] < 1  # type: ignore[operator]


@law()
def correlations_of_ranks(rng: random.Random) -> None:
    """rho(f(load), g(values)) = rho(load, values) for all increasing f and g, and -1 <= rho <= 1."""
    log = draw_log(rng)
    table = run(log, draw_options(rng))
    found = table.with_columns(load=pl.Series(loads_of(table, log.machine.processors).load))
    changed = found.with_columns(pl.col("load") / 2, pl.col("slowdown") * 4 + 1, pl.col("wait_time") * 2)
    one, two = correlations(found), correlations(changed)
    assert same({**one, "above_1": 0}, {**two, "above_1": 0})
    assert all(one[name] is None or abs(one[name]) <= 1 + 1e-9 for name in ("slowdown", "wait_time"))  # type: ignore[arg-type]


def draw_weeks(rng: random.Random) -> pl.DataFrame:
    """Draw outcomes over some weeks."""
    jobs = rng.randint(1, 60)
    table = {
        "job_id": range(1, jobs + 1),
        "submit_time": sorted(rng.random() * rng.choice([7, 12, 40]) * WEEK for _ in range(jobs)),
        "wait_time": [rng.choice([0.0, rng.random() * 1000]) for _ in range(jobs)],
        "load": [rng.random() for _ in range(jobs)],
        "processors": [rng.randint(1, 8) for _ in range(jobs)],
        "run_time": [1 + rng.random() * 100 for _ in range(jobs)],
    }
    return pl.DataFrame(table)


#: The verdicts of a comparison with exchanged runs.
EXCHANGED = {verdicts.BETTER: verdicts.WORSE, verdicts.WORSE: verdicts.BETTER}


@law()
def differences_are_antisymmetric(rng: random.Random) -> None:
    """d(a, b) = -d(b, a), ratio(a, b) = 1 / ratio(b, a) with its interval and the same p; d(a, a) = 0, equal."""
    a = draw_weeks(rng)
    b = a.with_columns(wait_time=pl.col("wait_time") * rng.random() + rng.choice([0, 10]))
    name = rng.choice(["mean_wait_time", "median_wait_time", "p95_wait_time"])
    first, second = statistic(a, name), statistic(b, name)
    there, back = difference_of(first, second), difference_of(second, first)
    assert same(there.value, -back.value) and same(there.p, back.p) and same(there.center, -back.center)
    assert EXCHANGED.get(there.verdict(), there.verdict()) == back.verdict()
    if there.is_ratio:
        for low, high in zip(there.interval, back.interval[::-1], strict=True):
            assert low is None or high is None or same((1 + low / second.value) * (1 + high / first.value), 1.0)
    own = difference_of(first, first)
    assert own.value == 0 and own.verdict() == verdicts.EQUAL


@law()
def scores_are_antisymmetric(rng: random.Random) -> None:
    """score(a, b) = -score(b, a), score(a, a) = 0, -1 <= score <= 1."""
    a = draw_weeks(rng)
    b = a.with_columns(wait_time=pl.col("wait_time") * rng.random() + rng.choice([0, 10]))
    first, second = (distribution_of(one, "wait_time") for one in (a, b))
    there, back = score_of(first, second), score_of(second, first)
    assert same(there.value, -back.value) and abs(there.value) <= 1
    if there.p is not None and back.p is not None:
        assert math.isclose(there.p, back.p, abs_tol=1e-9)
    assert score_of(first, first).value == 0


@law()
def statistics_are_metrics(rng: random.Random) -> None:
    """value(statistic of S) = metric(S): the unweighted statistic is the metric of the same name."""
    log = draw_log(rng)
    found = run(log, draw_options(rng))
    figures = metrics(found, log.machine.processors)
    for name in ("mean_wait_time", "median_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt", "awwt"):
        assert same(statistic(found, name).value, figures[name]), name


@law()
def interval_means_are_the_area(rng: random.Random) -> None:
    """Sum of the means times the lengths = sum of widths times run times, over all intervals."""
    found, _ = draw_run(rng)
    start, end, width = (found[name].to_numpy() for name in ("start_time", "end_time", "processors"))
    inside = sorted(rng.random() * (end.max() - start.min()) + start.min() for _ in range(rng.randint(0, 9)))
    edges = np.array([start.min() - 1, *inside, end.max() + rng.random()])
    means = interval_means(start, end, width, edges)
    assert same(float(means @ np.diff(edges)), float((width * (end - start)).sum()))


@law()
def simulated_logs_are_plausible(rng: random.Random) -> None:
    """check(log with the waits of S) finds no more processors in use than the machine has."""
    log = draw_log(rng)
    found = run(log, draw_options(rng, estimates="raise"))
    recorded = with_jobs(log, wait_time=pl.Series(found["wait_time"]))
    assert starts(recorded, {"order": "log"}) == dict(found.select("job_id", "start_time").iter_rows())
    assert "use-beyond-machine" not in {one.check for one in check_workload(recorded)}
