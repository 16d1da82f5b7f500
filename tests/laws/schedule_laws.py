"""Laws of simulated schedules: relations between the schedules of related logs."""

import random
from dataclasses import replace

import polars as pl

from laws import Case, draw_case, draw_log, draw_options, joined, law, part, run, starts, times, with_jobs
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, sort_jobs


@law()
def later_start(rng: random.Random) -> None:
    """S(log + c) = S(log) + c: a schedule does not depend on the origin of time."""
    case, later = draw_case(rng, "shared"), rng.choice([-64.0, 1.0, 4096.0, 2.0**31])
    assert case.moved(later).starts() == {job: start + later for job, start in case.starts().items()}


@law()
def doubled_times(rng: random.Random) -> None:
    """S(2 log) = 2 S(log): a schedule does not depend on the unit of time."""
    case, factor = draw_case(rng, "system"), rng.choice([2.0, 4.0, 1024.0])  # exceeded predictions grow by minutes
    assert case.scaled(factor).starts() == {job: start * factor for job, start in case.starts().items()}


@law()
def wider_machine_and_jobs(rng: random.Random) -> None:
    """S(k widths, k machine) = S(widths, machine): a schedule does not depend on the unit of processors."""
    log, options, factor = draw_log(rng), draw_options(rng), rng.choice([2, 3, 64])
    wide = replace(with_jobs(log, pl.col("processors") * factor), machine=Machine.of(log.machine.processors * factor))
    assert starts(wide, options) == starts(log, options)


@law()
def permuted_equal_jobs(rng: random.Random) -> None:
    """{S(j): j in log} = {S(j): j in permuted log}: equal jobs can be exchanged."""
    log, options = draw_log(rng), draw_options(rng)
    names = ["submit_time", "run_time", "estimate", "processors"]
    twice = joined(log, with_jobs(log, pl.col("job_id") + 1000))  # each job has an equal one
    ids = rng.sample(range(1, log.jobs.height + 1), rng.randint(1, log.jobs.height))
    other = pl.when((pl.col("job_id") % 1000).is_in(ids)).then((pl.col("job_id") + 1000) % 2000)
    permuted = with_jobs(twice, job_id=other.otherwise(pl.col("job_id")))

    def outcomes(workload: Workload) -> pl.DataFrame:
        table = run(workload, options).select("job_id", "start_time").join(workload.jobs, on="job_id")
        return table.select(*names, "start_time").sort(pl.all())

    if not permuted.jobs.select("job_id").is_duplicated().any():
        assert outcomes(permuted).equals(outcomes(twice))


@law()
def renumbered_jobs(rng: random.Random) -> None:
    """S(f(ids)) = S(ids) for every increasing f: only the order of the ids matters."""
    case = draw_case(rng)
    numbers = dict(enumerate(sorted(rng.sample(range(10**6), case.log.jobs.height)), 1))
    jobs = case.log.jobs.with_columns(pl.col("job_id").replace_strict(numbers))
    if "depends_on" in jobs.columns:
        jobs = jobs.with_columns(pl.col("depends_on").list.eval(pl.element().replace_strict(numbers)))
    renumbered = Case(replace(case.log, jobs=jobs), case.options)
    assert renumbered.starts() == {numbers[job]: start for job, start in case.starts().items()}


@law()
def split_at_an_idle_moment(rng: random.Random) -> None:
    """S(a + b) = S(a) + S(b) if every job of a ends before the first job of b is submitted."""
    first, options = draw_log(rng, 15), draw_options(rng)
    end = run(first, options)["end_time"].max()
    second = with_jobs(draw_log(rng, 15, processors=first.machine.processors), pl.col("job_id") + 100)
    second = with_jobs(second, *times(1.0, float(end) + rng.choice([0.25, 10]), "submit_time"))  # type: ignore[arg-type]
    assert starts(joined(first, second), options) == starts(first, options) | starts(second, options)


@law()
def another_processor(rng: random.Random) -> None:
    """S(m + 1) <= S(m) for every job under FCFS without backfilling: the order of the starts is that of the queue."""
    log, options = draw_log(rng), draw_options(rng, order="fcfs", backfill="none", event_order="batch")
    larger = starts(replace(log, machine=Machine.of(log.machine.processors + rng.randint(1, 3))), options)
    assert all(larger[job] <= start for job, start in starts(log, options).items())


@law()
def a_job_less(rng: random.Random) -> None:
    """S(log - j) <= S(log) for every other job under FCFS without backfilling, for the same reason."""
    log, options = draw_log(rng), draw_options(rng, order="fcfs", backfill="none", event_order="batch")
    if log.jobs.height > 1:
        without = starts(part(log, pl.col("job_id") != rng.randint(1, log.jobs.height)), options)
        whole = starts(log, options)
        assert all(start <= whole[job] for job, start in without.items())


@law()
def shorter_runs(rng: random.Random) -> None:
    """S(r') <= S(r) if r' <= r for every job under FCFS without backfilling, for the same reason."""
    log = draw_log(rng)
    options = draw_options(rng, order="fcfs", backfill="none", event_order="batch", estimates="raise")
    shorter = with_jobs(log, run_time=pl.col("run_time") / rng.choice([1, 2, 8]))
    whole = starts(log, options)
    assert all(start <= whole[job] for job, start in starts(shorter, options).items())


@law()
def equal_widths(rng: random.Random) -> None:
    """S(easy) = S(conservative) = S(none) if all jobs have one width: where the first does not fit, none does."""
    width = rng.randint(1, 4)
    log = draw_log(rng, processors=rng.randint(width, 12))
    log = with_jobs(log, processors=pl.lit(width, pl.Int64))
    common = draw_options(rng, backfill="none", order=rng.choice(["fcfs", "sjf", "laf"]), event_order="batch")
    plain = starts(log, common)
    assert starts(log, common | {"backfill": "easy"}) == plain
    if common["order"] == "fcfs":
        assert starts(log, common | {"backfill": "conservative"}) == plain


@law()
def enough_processors(rng: random.Random) -> None:
    """S = submit times if the machine has a processor for each process."""
    log, options = draw_log(rng), draw_options(rng)
    wide = replace(log, machine=Machine.of(int(log.jobs["processors"].sum())))
    assert list(starts(wide, options).values()) == log.jobs.sort("job_id")["submit_time"].to_list()


@law()
def no_job_depends_on_a_later_one(rng: random.Random) -> None:
    """S(first n jobs) = first n of S under FCFS without backfilling: no job depends on a later one."""
    log = draw_log(rng)
    options = draw_options(rng, order="fcfs", backfill="none", event_order="batch")
    first = rng.randint(1, log.jobs.height)
    whole = starts(log, options)
    assert starts(part(log, pl.col("job_id") <= first), options) == {job: whole[job] for job in range(1, first + 1)}


@law()
def conservative_ignores_later_jobs(rng: random.Random) -> None:
    """S(first n jobs) = first n of S under conservative backfilling of FCFS, if the estimates are the run times."""
    log = draw_log(rng)
    options = {"order": "fcfs", "backfill": "conservative", "prediction": "perfect"}
    first = rng.randint(1, log.jobs.height)
    whole = starts(log, options)
    assert starts(part(log, pl.col("job_id") <= first), options) == {job: whole[job] for job in range(1, first + 1)}


@law()
def two_clusters(rng: random.Random) -> None:
    """S(a and b; clusters by partition) = S(a) + S(b): clusters that share no job do not interact."""
    first, second, options = draw_log(rng, partition_id=1), draw_log(rng, partition_id=2), draw_options(rng)
    second = with_jobs(second, pl.col("job_id") + 100)
    sizes = [one.machine.processors for one in (first, second)]
    both = replace(joined(first, second), machine=Machine.of(sum(sizes)))
    clusters = [{"processors": size, "partition": number} for number, size in enumerate(sizes, 1)]
    merged = starts(both, options | {"clusters": clusters, "dispatch": "partition"})
    assert merged == starts(first, options) | starts(second, options)


@law()
def one_cluster(rng: random.Random) -> None:
    """S(one cluster of the machine) = S(machine), whatever the dispatch is."""
    log, options = draw_log(rng), draw_options(rng)
    dispatch = rng.choice(["round-robin", "least-loaded", "earliest-start"])
    clustered = options | {"clusters": [{"processors": log.machine.processors}], "dispatch": dispatch}
    assert starts(log, clustered) == starts(log, options)


@law()
def renamed_users(rng: random.Random) -> None:
    """S(f(users)) = S(users) for every one-to-one f, with limits of users and groups, too."""
    case = draw_case(rng)
    users, groups = (dict(enumerate(rng.sample(range(1000), 5))) for _ in range(2))
    renamed = with_jobs(case.log, pl.col("user_id").replace_strict(users), pl.col("group_id").replace_strict(groups))
    assert starts(renamed, case.options) == case.starts()


@law()
def perfect_estimates(rng: random.Random) -> None:
    """S(log; prediction perfect) = S(log with estimates = run times)."""
    log, options = draw_log(rng), draw_options(rng, estimates="raise", prediction="perfect")
    exact = with_jobs(log, estimate=pl.col("run_time"), requested_time=pl.col("run_time"))
    assert starts(log, options) == starts(exact, options | {"prediction": "user"})


@law()
def kills_without_effect(rng: random.Random) -> None:
    """S(log; estimates kill) = S(log; estimates raise) if no estimate is below the run time."""
    log, options = draw_log(rng), draw_options(rng)
    assert starts(log, options | {"estimates": "kill"}) == starts(log, options | {"estimates": "raise"})


@law()
def killed_jobs_are_short_jobs(rng: random.Random) -> None:
    """S(log; estimates kill) = S(log with run times min(r, estimate); estimates raise)."""
    log, options = draw_log(rng), draw_options(rng, prediction="user")
    low = pl.max_horizontal(pl.col("run_time") / rng.choice([2, 4]), pl.lit(1.0))
    log = with_jobs(log, estimate=pl.when(pl.col("job_id") % 3 == 0).then(low).otherwise("estimate"))
    cut = with_jobs(log, run_time=pl.min_horizontal("run_time", "estimate"))
    assert starts(log, options | {"estimates": "kill"}) == starts(cut, options | {"estimates": "raise"})


@law()
def numbered_processors(rng: random.Random) -> None:
    """S(numbered processors) = S(counted processors) without backfilling if any free processors serve a job."""
    log, options = draw_log(rng), draw_options(rng, backfill="none")
    places = {"allocation": rng.choice(["first-fit", "longest-idle"]), "places": True}
    assert starts(log, options | places) == starts(log, options)


@law()
def window_of_the_whole_time(rng: random.Random) -> None:
    """S(m; k processors away for ever) = S(m - k)."""
    small, options = draw_log(rng), draw_options(rng)
    away = rng.randint(1, 5)
    window = {"from": -1000.0, "until": 2.0**30, "processors": away}
    large = replace(small, machine=Machine.of(small.machine.processors + away))
    assert starts(large, options | {"unavailable": [window]}) == starts(small, options)


@law()
def window_after_the_end(rng: random.Random) -> None:
    """S(log; window after the last end) = S(log)."""
    log, options = draw_log(rng), draw_options(rng)
    window = {"from": 2.0**30, "until": 2.0**31, "processors": rng.randint(1, log.machine.processors)}
    assert starts(log, options | {"unavailable": [window]}) == starts(log, options)


@law()
def one_event_at_a_time(rng: random.Random) -> None:
    """S(per-event) = S(batch) if no two events have the same time."""
    log, options = draw_log(rng, 20), draw_options(rng)
    moved = with_jobs(
        log,
        submit_time=pl.Series([rng.random() * 100 for _ in range(log.jobs.height)]).sort(),
        run_time=pl.Series([1 + rng.random() * 30 for _ in range(log.jobs.height)]),
    )
    moved = with_jobs(moved, estimate=pl.col("run_time") * 2)
    plain = run(moved, options | {"event_order": "batch"})
    events = plain["submit_time"].to_list() + plain["end_time"].to_list()
    if len(set(events)) == len(events):
        assert run(moved, options | {"event_order": "per-event"}).equals(plain)


@law()
def replayed_schedule(rng: random.Random) -> None:
    """S(log with the waits of S; order log) = S: a replay gives the recorded schedule."""
    log, options = draw_log(rng), draw_options(rng)
    found = run(log, options)
    recorded = with_jobs(log, wait_time=pl.Series(found["wait_time"]), run_time=pl.Series(found["run_time"]))
    assert starts(recorded, {"order": "log"}) == dict(found.select("job_id", "start_time").iter_rows())


@law()
def order_of_rows(rng: random.Random) -> None:
    """S(sorted rows) = S(rows as cleaned): a schedule depends on the set of jobs only."""
    case = draw_case(rng)
    shuffled = case.log.jobs.sample(fraction=1.0, shuffle=True, seed=rng.randint(0, 1000))
    assert starts(replace(case.log, jobs=sort_jobs(shuffled)), case.options) == case.starts()


@law()
def never_more_than_the_machine(rng: random.Random) -> None:
    """Sum of widths of running jobs <= m at every instant, and S >= submit times."""
    log, options = draw_log(rng), draw_options(rng)
    found = run(log, options)
    assert (found["start_time"] >= found["submit_time"]).all()
    for start in found["start_time"]:
        running = (pl.col("start_time") <= start) & (pl.col("end_time") > start)
        assert found.filter(running)["processors"].sum() <= log.machine.processors


@law()
def head_keeps_its_reservation(rng: random.Random) -> None:
    """S(j; easy) <= S(j; none) for the first job that waits under FCFS with true estimates."""
    log = draw_log(rng)
    options = {"order": "fcfs", "prediction": "perfect"}
    plain, easy = (run(log, options | {"backfill": backfill}) for backfill in ("none", "easy"))
    waits = plain.filter(pl.col("wait_time") > 0).sort("submit_time", "job_id")
    if waits.is_empty():
        return False
    head = waits["job_id"][0]
    assert easy.filter(job_id=head)["start_time"][0] <= waits["start_time"][0]
    return None


@law()
def conservative_delays_nobody(rng: random.Random) -> None:
    """S(conservative) <= S(none) for every job under FCFS with true estimates."""
    log = draw_log(rng)
    options = {"order": "fcfs", "prediction": "perfect"}
    plain = starts(log, options | {"backfill": "none"})
    assert all(start <= plain[job] for job, start in starts(log, options | {"backfill": "conservative"}).items())
