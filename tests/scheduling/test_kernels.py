"""The kernels that only count processors: against the slow simulator, by hand, and on real logs."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from helpers.kernels import for_python, simulate_arrays
from helpers.workloads import BACKFILLS, ORDERS, Jobs, arrays, random_jobs, random_windows
from swflow.errors import SwflowError
from swflow.scheduling.engine import solve as kernels
from swflow.scheduling.machine import ahead as plans_ahead
from swflow.scheduling.machine import moves
from swflow.scheduling.machine import plan as plans
from swflow.scheduling.options import CHOICES
from swflow.scheduling.orders.keys import key_function
from swflow.scheduling.state.items import Items, Shapes


def by_kernel(jobs: Jobs, machine: int, **options: Any) -> list[float]:
    return simulate_arrays(**arrays(jobs), machine=machine, **options).start.tolist()


def by_naive(jobs: Jobs, machine: int, per_event: bool = False, **options: Any) -> list[float]:
    policy = naive.Policy(event_order="per-event" if per_event else "batch", **options)
    done = naive.simulate([naive.Job(number, *job) for number, job in enumerate(jobs)], machine, policy)
    return [done.starts[number] for number in range(len(jobs))]


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("predict", [False, True])
@pytest.mark.parametrize("per_event", [False, True])
def test_seeded_workloads_have_the_schedule_of_the_slow_simulator(backfill: str, predict: bool, per_event: bool):
    rng = random.Random(f"{backfill} {predict} {per_event}")
    for _ in range(400):
        machine = rng.randint(1, 8)
        jobs = random_jobs(rng, machine, rng.randint(1, 25))
        options: dict[str, Any] = {
            "order": rng.choice(["fcfs", *ORDERS]),
            "backfill": backfill,
            "lookahead": rng.choice([1, 1, 2, 3, 5]),
            "backfill_order": rng.choice(["fcfs", *ORDERS]),
            "predict": predict,
            "per_event": per_event,
            "unavailable": random_windows(rng, machine),
        }
        if backfill == "lookahead" and rng.random() < 0.3:
            options["starts"] = rng.choice([1, 1, 2])
        assert by_kernel(jobs, machine, **options) == by_naive(jobs, machine, **options), (jobs, machine, options)


@pytest.mark.parametrize(
    ("starts", "per_event", "expected"),
    [(None, False, [0, 10, 4, 4, 4]), (1, False, [0, 10, 4, 5, 6]), (2, False, [0, 10, 4, 4, 5]),
     (1, True, [0, 10, 4, 5, 6])],
)  # fmt: skip
def test_a_pass_backfills_a_limited_number_of_jobs(
    monkeypatch: pytest.MonkeyPatch, starts: int | None, per_event: bool, expected: list[float]
):
    """A wide job waits for the first one; others are free at 4 and use what is left, one or two after each event."""
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    jobs = [(0.0, 10.0, 10.0, 1, 0), (0.0, 5.0, 5.0, 4, 0), *[(0.0, 1.0, 1.0, 1, 0)] * 3]
    first = [(0.0, 4.0, 4.0, 3, 0)]  # ends at 4, while three narrow jobs wait
    options = {"backfill": "lookahead", "per_event": per_event} | ({} if starts is None else {"starts": starts})
    found = by_kernel([*first, *jobs], 4, **options)
    assert found == by_naive([*first, *jobs], 4, **options)
    assert found[1:] == expected


@pytest.mark.slow
def test_backfilled_jobs_delay_no_reservation_of_several():
    """Some jobs start, a wide one waits, and of the narrow ones behind it some delay no reservation."""
    rng = random.Random(7)
    for _ in range(400):
        machine, jobs = rng.randint(6, 12), []
        for number in range(12):
            run = float(rng.randint(1, 40))
            low, high = (machine // 2, machine) if number == 3 else (1, machine // (2 if number < 3 else 3))
            jobs.append((0.0, run, run + rng.choice([0, 0, 0, 1, 7]), rng.randint(low, high), 0))
        options: dict[str, Any] = {"backfill": "lookahead", "lookahead": rng.choice([2, 3, 4])}
        options |= {"backfill_order": rng.choice(["fcfs", "sjf"]), "per_event": rng.random() < 0.3}
        assert by_kernel(jobs, machine, **options) == by_naive(jobs, machine, **options), (jobs, machine, options)


def test_reservations_that_begin_now_wait_for_the_completions_of_this_instant():
    """In a pass per event, the arrival is first, while all processors are still in use."""
    jobs = [(0.0, 10.0, 10.0, 1, 0)] * 6 + [(10.0, 1.0, 1.0, 1, 0)]
    assert by_kernel(jobs, 3, backfill="conservative", per_event=True) == [0, 0, 0, 10, 10, 10, 20]


def repeated(rng: random.Random, jobs: Jobs) -> Jobs:
    """Return the jobs, some of them several times in a row, as in a scaled workload."""
    return [job for job in jobs for _ in range(rng.choice([1, 1, 2, 3, 12]))]


@pytest.mark.slow
@pytest.mark.parametrize("backfill", ["none", "lookahead"])
@pytest.mark.parametrize("per_event", [False, True])
def test_identical_jobs_have_the_schedule_of_the_slow_simulator(backfill: str, per_event: bool):
    rng = random.Random(f"identical {backfill} {per_event}")
    for _ in range(200):
        machine = rng.randint(1, 30)
        jobs = repeated(rng, random_jobs(rng, min(machine, 8), rng.randint(1, 15)))
        options: dict[str, Any] = {"backfill": backfill, "per_event": per_event}
        assert by_kernel(jobs, machine, **options) == by_naive(jobs, machine, **options), (jobs, machine, options)


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Jobs, int]:
    machine = draw(st.integers(1, 8))
    jobs = []
    submit = 0.0
    for _ in range(draw(st.integers(1, 12))):
        submit += draw(st.integers(0, 5))
        run = draw(st.integers(0, 20))
        planned = max(1, run + draw(st.integers(0, 10)))
        jobs.append((submit, float(run), float(planned), draw(st.integers(1, machine)), draw(st.integers(0, 1))))
    return jobs, machine


@given(
    workloads(),
    st.sampled_from(ORDERS),
    st.sampled_from(list(BACKFILLS)),
    st.integers(1, 3),
    st.sampled_from(ORDERS),
    st.booleans(),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 8)), max_size=2),
)
def test_any_workload_has_the_schedule_of_the_slow_simulator(
    workload, order, backfill, lookahead, backfill_order, predict, per_event, windows
):
    jobs, machine = workload
    options: dict[str, Any] = {
        "order": order,
        "backfill": backfill,
        "lookahead": lookahead,
        "backfill_order": backfill_order,
        "predict": predict,
        "per_event": per_event,
        "unavailable": [(float(begin), float(begin + long), min(away, machine)) for begin, long, away in windows],
    }
    assert by_kernel(jobs, machine, **options) == by_naive(jobs, machine, **options)


@pytest.mark.slow
@pytest.mark.parametrize("backfill", BACKFILLS)
@pytest.mark.parametrize("order", ["fcfs", "sjf", "unicef"])
def test_a_long_queue_has_the_schedule_of_the_slow_simulator(order: str, backfill: str):
    # Enough jobs for trees of several levels and profiles of several blocks.
    rng = random.Random(order + backfill)
    count = 70 if backfill == "conservative" else 300
    jobs = [
        (float(rng.randint(0, 30)), float(rng.randint(1, 40)), 0.0, rng.choice([1, 1, 2, 3, rng.randint(1, 90)]), 0)
        for _ in range(count)
    ]
    jobs = sorted((submit, run, run + rng.choice([0.0, 0.5, 31.0]), *rest) for submit, run, _, *rest in jobs)
    options = {"order": order, "backfill": backfill, "backfill_order": order}
    assert by_kernel(jobs, 100, **options) == by_naive(jobs, 100, **options)


@pytest.mark.slow
def test_a_very_long_queue_moves_forward_as_if_every_job_were_searched_for():
    # With a single shape to choose among, every reservation is given up and sought anew; else what was seen is kept.
    rng = random.Random(8)
    sizes = [(rng.choice([1, 1, 2, 8, 90]), float(rng.choice([20, 60, 300]))) for _ in range(12)]
    drawn = [(float(rng.randint(0, 400)), rng.random(), *rng.choice(sizes)) for _ in range(900)]
    submit, share, width, planned = np.array(sorted(drawn)).T
    run, processors = np.ceil(share * planned), width.astype(np.int64)
    shapes = Shapes(np.arange(901), run, planned, processors)
    moved = simulate_arrays(submit, run, planned, processors, 100, backfill="conservative")
    sought = simulate_arrays(
        submit, run, planned, processors, 100, backfill="conservative", shapes=shapes, select="start"
    )
    assert (moved.start < moved.promise).mean() > 0.5
    assert moved.start.tolist() == sought.start.tolist()


# -- formulas and keys


@pytest.mark.compiled
def test_a_formula_orders_the_queue(monkeypatch: pytest.MonkeyPatch):
    def formula(now, submit, planned, processors, user, group, queue, executable, job):
        return -(now - submit) / (now - submit - 3 * user) + processors  # NaN for user 0 without a wait: last

    def slow(job: naive.Job, now: float) -> float:
        wait, divisor = now - job.submit, now - job.submit - 3 * job.user
        if divisor:
            return -wait / divisor + job.processors
        return math.inf if wait == 0 else -math.inf

    monkeypatch.setitem(naive.ORDERS, "formula", slow)
    compiled = key_function(formula)
    rng = random.Random(5)
    before = None
    for case in range(300):
        machine = rng.randint(1, 8)
        jobs = random_jobs(rng, machine, 20)
        backfill = rng.choice(list(BACKFILLS))
        second = rng.choice(["formula", "fcfs", "wfp3"])
        ours = {"order": compiled, "backfill": backfill, "backfill_order": compiled if second == "formula" else second}
        slowly = {"order": "formula", "backfill": backfill, "backfill_order": second}
        assert by_kernel(jobs, machine, **ours) == by_naive(jobs, machine, **slowly), (case, jobs, machine, slowly)
        before = before or len(kernels.kernel_with("counted", None).ready)
    by_kernel(jobs, machine, order=key_function(lambda now, a, b, c, d, e, f, g, job: -job))
    assert len(kernels.kernel_with("counted", None).ready) == before  # a new formula compiles nothing but itself


def test_static_keys_order_the_queue_and_unknown_ones_come_last():
    jobs: Jobs = [(0, 10, 10, 2, 0), (1, 1, 1, 2, 0), (1, 1, 1, 2, 0), (1, 1, 1, 2, 0)]
    keys = np.array([0.0, np.nan, 2.0, 1.0])
    for backfill in BACKFILLS:
        assert by_kernel(jobs, 2, order=keys, backfill=backfill, backfill_order=keys) == [0, 12, 11, 10]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backfill": "magic"}, "backfill: unknown value 'magic'"),
        ({"backfill": "reservation-table"}, "backfill: a reservation-table has numbered processors"),
        ({"order": "best"}, "order: unknown order 'best'"),
        ({"backfill": "lookahead", "backfill_order": "best"}, "backfill_order: unknown order 'best'"),
        ({"backfill": "lookahead", "lookahead": 0}, "reservations: 0; expected at least 1"),
        ({"unavailable": [(5.0, 5.0, 1)]}, "unavailable: the window from 5.0 until 5.0 is empty"),
        ({"unavailable": [(0.0, 5.0, 3)]}, "unavailable: 3 processors are not 1 to 2"),
        ({"unavailable": [(0.0, math.inf, 2)]}, "1 jobs never start"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], message: str):
    with pytest.raises(SwflowError, match=message):
        by_kernel([(1, 1, 1, 2, 0)], 2, **options)


# -- four faults of published EASY simulators: the faulty rule gives another schedule


def easy(jobs: Jobs, machine: int) -> list[float]:
    return by_kernel(jobs, machine, backfill="lookahead")


def test_the_shadow_time_is_of_estimated_ends():
    # By estimates the head starts at 100, so 50 seconds fit before it, though job 0 really ends at 10.
    jobs: Jobs = [(0, 10, 100, 3, 0), (1, 10, 10, 4, 0), (2, 50, 50, 1, 0)]
    assert easy(jobs, 4) == [0, 52, 2]  # by the actual end: [0, 10, 20]


def test_processors_that_the_head_leaves_over_may_be_taken_for_longer():
    jobs: Jobs = [(0, 10, 10, 3, 0), (1, 10, 10, 3, 0), (2, 99, 99, 1, 0)]
    assert easy(jobs, 4) == [0, 10, 2]  # without the rule: [0, 10, 10]


def test_the_next_head_has_a_reservation_in_the_same_pass():
    # At 10 job 1 starts, and job 2 is the head: job 3 would delay it.
    jobs: Jobs = [(0, 10, 10, 4, 0), (1, 5, 5, 3, 0), (2, 5, 5, 4, 0), (3, 50, 50, 1, 0)]
    assert easy(jobs, 4) == [0, 10, 15, 20]  # with the reservation of job 1 alone: [0, 10, 60, 10]


def test_the_head_is_tried_before_its_reservation():
    # Job 0 ends long before its estimate; the head starts then, not at its shadow time.
    jobs: Jobs = [(0, 10, 100, 4, 0), (1, 5, 5, 4, 0), (2, 5, 5, 4, 0)]
    assert easy(jobs, 4) == [0, 10, 15]  # at the reservation: [0, 100, 105]


def test_newcomers_of_the_same_time_are_all_tested():
    # At 5 the fourth job fits, and the one after it does not, which is the last newcomer.
    jobs: Jobs = [(0, 100, 100, 3, 0), (1, 10, 10, 4, 0), (3, 300, 300, 1, 0), (5, 20, 20, 1, 0), (5, 200, 200, 1, 0)]
    assert easy(jobs, 4) == [0, 100, 110, 5, 110]
    assert by_kernel(jobs, 4, backfill="easy", backfill_order="sjf") == [0, 100, 110, 5, 110]


# -- several clusters


def simulate_centres(columns: dict[str, np.ndarray], centres: list[dict[str, Any]], **options: Any) -> kernels.Schedule:
    widest = max(centre["machine"] for centre in centres)
    return simulate_arrays(**columns, machine=widest, centres=centres, **options)


@pytest.mark.slow
@pytest.mark.parametrize("dispatch", [rule for rule in CHOICES["dispatch"] if rule != "partition"])
def test_centres_have_the_schedule_of_the_slow_simulator(dispatch: str):
    rng = random.Random(dispatch)
    for case in range(500):
        predict, per_event = rng.random() < 0.3, rng.random() < 0.3
        centres = [
            {
                "machine": rng.randint(1, 6),
                "order": rng.choice(["fcfs", *ORDERS]),
                "backfill": rng.choice(list(BACKFILLS)),
                "lookahead": rng.choice([1, 1, 2, 3]),
                "backfill_order": rng.choice(["fcfs", *ORDERS]),
            }
            for _ in range(rng.randint(1, 3))
        ]
        for centre in centres:
            centre["unavailable"] = random_windows(rng, centre["machine"])
        jobs = random_jobs(rng, max(centre["machine"] for centre in centres), rng.randint(1, 20))
        machines = [
            naive.Machine(
                machine, naive.Policy(event_order="per-event" if per_event else "batch", predict=predict, **policy)
            )
            for machine, policy in (
                (centre["machine"], {key: value for key, value in centre.items() if key != "machine"})
                for centre in centres
            )
        ]
        naive.simulate_centres([naive.Job(number, *job) for number, job in enumerate(jobs)], machines, dispatch)
        expected = {
            number: (start, index) for index, machine in enumerate(machines) for number, start in machine.starts.items()
        }
        columns = arrays(jobs)
        found = simulate_centres(columns, centres=centres, dispatch=dispatch, per_event=per_event, predict=predict)
        pairs = dict(enumerate(zip(found.start.tolist(), found.cluster.tolist(), strict=True)))
        assert pairs == expected, (case, jobs, centres, predict, per_event)


@pytest.mark.slow
def test_a_plan_of_a_long_queue_finds_room():
    """The plan of a queue of hundreds has more changes than the running jobs and a reservation of EASY."""
    jobs: Jobs = [
        (float(number // 9), 50.0 + number % 7, 60.0 + number % 13, 1 + number % 8, 0) for number in range(900)
    ]
    columns = arrays(jobs)
    options = {"machine": 8, "backfill": "lookahead", "lookahead": 1, "order": "fcfs", "backfill_order": "fcfs"}
    alone = simulate_centres(columns, centres=[options], dispatch="round-robin")
    planned = simulate_centres(columns, centres=[options], dispatch="earliest-start")
    assert planned.start.tolist() == alone.start.tolist()


def test_bad_centres_are_named():
    columns = arrays([(0, 1, 1, 3, 0)])
    for centres, dispatch, message in [
        ([{"machine": 4}], "random", "dispatch: unknown value 'random'"),
        ([{"machine": 2}, {"machine": 1}], "round-robin", "dispatch: job 0 needs 3 of 2 processors"),
    ]:
        with pytest.raises(SwflowError, match=message):
            simulate_centres(columns, centres=centres, dispatch=dispatch)


# -- the plan


pass_by, earliest, add, free_at = map(for_python, (plans.advance, plans.earliest, plans.add, plans.free_at))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpret plans with few changes to a block and few known sizes, so that small plans have several blocks."""
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    for module, name, value in ((plans, "SIZE", 4), (moves, "LONG_QUEUE", 8), (moves, "SIZES", 5)):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(moves, "_HASH_BITS", 3)


@pytest.mark.slow
def test_a_plan_of_small_blocks_finds_what_a_scan_finds(small_blocks: None):
    pass_by, earliest, add, free_at, is_free = map(
        for_python, (plans.advance, plans.earliest, plans.add, plans.free_at, plans.is_free)
    )
    rng = random.Random(4)
    for machine in (3, 9, 20):
        free, spans, now, most = scribbled(machine, 400), [], 0.0, 0
        pass_by(free, now)

        def level(time: float, spans: list[tuple[float, float, int]] = spans, machine: int = machine) -> int:
            return machine - sum(width for start, end, width in spans if start <= time < end)

        for turn in range(300):
            width, length = rng.randint(1, machine), float(rng.choice([1, 4, rng.randint(1, 30)]))
            since = rng.choice([-math.inf, now, now + rng.randint(0, 40)])
            before = rng.choice([math.inf, now + rng.randint(1, 60)]) if since == -math.inf else math.inf
            ends = (time for span in spans for time in span[:2])
            moments = sorted({max(now, since), *(time for time in ends if time > max(now, since))})

            def fits(start: float, until: float, width: int = width, moments: list[float] = moments) -> bool:
                return all(level(time) >= width for time in moments if start <= time < until)

            starts = [time for time in moments if time < before and fits(time, min(time + length, before))]
            assert earliest(free, width, length, since, before) == min(starts, default=before), turn
            assert [free_at(free, time) for time in moments] == [level(time) for time in moments]
            assert (
                is_free(free, width, now + length)
                == all(level(time) >= width for time in {now, *moments} if now <= time < now + length)
                or since > now
            )
            start = min(starts, default=before)
            if turn % 60 < 40 and before == math.inf:
                spans.append((start, start + length, width))
                add(free, start, -width)
                add(free, start + length, width)
            elif spans and turn % 60 >= 40:  # a job leaves, or ends before its planned end
                start, end, width = spans.pop(rng.randrange(len(spans)))
                if end > now:
                    add(free, max(start, now), width)
                    add(free, end, -width)
            most = max(most, require_sound(free))
            if turn % 3 == 0 or turn % 60 >= 45:  # the plan nearly empties
                now += rng.choice([0.0, 1.0, 7.0])
                pass_by(free, now)
                require_sound(free)
                spans[:] = [span for span in spans if span[1] > now]
        assert most > 3


def scribbled(machine: int, changes: int) -> plans.Plan:
    """Return a new plan whose unused elements have values, which nothing may read."""
    plan = plans.new_plan(machine, changes)
    plan.blocks[:] = (-1.0, 7, -5, 5, 2, 1, 0)
    plan.changes[:] = (-1.0, 1000)
    plan.sums[:] = 99
    return plan


def require_sound(free: plans.Plan) -> int:
    """Check what the blocks say of their changes, and that none are left to merge; return their number."""
    count = int(free.head["blocks"][0])
    sizes = free.blocks["count"][:count]
    assert (sizes[:-1] + sizes[1:] > plans.SIZE // 2).all()
    times: list[float] = []
    for block in free.blocks[:count]:
        changes = free.changes[block["row"], : block["count"]]
        sums = np.cumsum(changes["change"])
        times += changes["time"].tolist()
        assert (block["first"], block["total"]) == (changes["time"][0], sums[-1])
        if not block["stale"]:
            assert (block["lowest"], block["highest"]) == (sums.min(), sums.max())
    assert times == sorted(set(times))
    assert len({int(block["row"]) for block in free.blocks[:count]}) == count
    return count


@pytest.mark.slow
def test_the_profile_finds_what_a_scan_of_all_changes_finds():
    rng = random.Random(3)
    machine = 50
    free = plans.new_plan(machine, 4000)
    pass_by(free, 0.0)
    spans: list[tuple[float, float, int]] = []
    now = 0.0
    most = 0
    for turn in range(2800):
        width, length = rng.randint(1, machine), float(rng.choice([rng.randint(1, 60), 300]))
        before = rng.choice([math.inf, math.inf, math.inf, now + rng.randint(1, 900)])
        since = rng.choice([-math.inf, now, now + 100 * rng.random()] if before == math.inf else [-math.inf])
        starts, ends, widths = np.array([*spans, (-2.0, -1.0, 0)]).T
        moments = np.unique(np.concatenate([[max(now, since)], starts, ends]))
        moments = moments[moments >= max(now, since)]
        times, changes = np.concatenate([starts, ends]), np.concatenate([-widths, widths])
        sums = np.append(0, np.cumsum(changes[np.argsort(times)]))
        level = machine + sums[np.searchsorted(np.sort(times), moments, side="right")]
        expected = before
        for moment in moments[level >= width]:
            if moment < before:
                until = min(moment + length, before)
                if (level[(moments >= moment) & (moments < until)] >= width).all():
                    expected = moment
                    break
        found = earliest(free, width, length, since, before)
        assert found == expected, turn
        assert [free_at(free, moment) for moment in moments] == level.tolist()
        grows = turn % 1400 < 1150  # several blocks come and go
        if grows and before == math.inf:
            spans.append((found, found + length, width))
            add(free, found, -width)
            add(free, found + length, width)
        if turn % 5 == 0:
            now += rng.choice([0.0, 1.0, 2.5])
            pass_by(free, now)
        if spans and not grows:  # the rest of one of them is given back
            start, end, width = spans.pop(rng.randrange(len(spans)))
            if end > now:
                add(free, max(start, now), width)
                add(free, end, -width)
                spans.append((start, max(start, now), width))
        spans = [span for span in spans if span[1] > max(span[0], now)]
        most = max(most, require_sound(free))
    assert most > 10


@pytest.mark.slow
@pytest.mark.parametrize("far", [0, 3])
def test_a_plan_of_many_jobs_finds_what_a_search_for_each_job_finds(far: int, monkeypatch: pytest.MonkeyPatch):
    plan_many(1500, far, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("far", [0, 3])
def test_a_plan_of_jobs_finds_what_a_search_for_each_job_finds(
    far: int, small_blocks: None, monkeypatch: pytest.MonkeyPatch
):
    plan_many(60, far, monkeypatch)


def plan_many(jobs: int, far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pass_by, earliest, add = map(for_python, (plans.advance, plans.earliest, plans.add))
    rng = random.Random(far)
    machine = 40
    monkeypatch.setattr(plans_ahead, "FAR", far)
    monkeypatch.setattr(plans_ahead, "MOST_WIDTHS", 6)
    monkeypatch.setattr(plans_ahead, "MOST_LENGTHS", 8)
    next_place, plan_anew = map(for_python, (plans_ahead.next_place, plans_ahead.plan_anew))
    widths = np.array([rng.choice([1, 1, 2, 8, rng.randint(1, machine)]) for _ in range(jobs)])
    lengths = np.array([float(rng.choice([5, 300, rng.randint(2, 400)])) for _ in widths])
    running, ahead, plain = (scribbled(machine, 2 * (widths.size + machine)) for _ in range(3))
    bounds = plans_ahead.new_bounds(widths, lengths)
    assert bounds.since.shape <= (6, 8)
    lengths[::5] = 1.0  # predictions can be shorter than all that bounds are kept for
    for now in (0.0, 3.0, 40.0):
        for each in (running, plain):  # the changes of the last round remain in what is planned anew
            pass_by(each, now)
        for end in rng.sample(range(1, 500), 12):
            for each in (running, plain):
                each.head["level"] -= 3
                add(each, now + end, 3)
        plan_anew(ahead, bounds, running)
        assert changes_of(ahead) == changes_of(running)
        remembered = 0
        for width, length in zip(widths.tolist(), lengths.tolist(), strict=True):
            expected = earliest(plain, width, length, -math.inf, math.inf)
            remembered += (bounds.since > now).any()
            assert next_place(ahead, bounds, width, length) == expected
            for each in (ahead, plain):
                add(each, expected, -width)
                add(each, expected + length, width)
        require_sound(ahead)
        assert changes_of(ahead) == changes_of(plain)
        assert remembered > widths.size / 2
        plain = plans.new_plan(machine, 2 * (widths.size + machine))
        plain.head["level"] = running.head["level"]
        pass_by(plain, now)
        for time, change in changes_of(running)[1:]:
            add(plain, time, change)


def changes_of(free: plans.Plan) -> list[tuple[float, int]]:
    blocks = free.blocks[: int(free.head["blocks"][0])]
    return [(-math.inf, int(free.head["level"][0]))] + [
        (float(time), int(change)) for block in blocks for time, change in free.changes[block["row"]][: block["count"]]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("machine", [40, 100])
def test_a_round_of_moves_finds_what_a_search_for_each_job_finds(machine: int):
    moved, failed, together = rounds_of_moves(machine, 60)
    assert moved > 300
    assert failed > 3000
    assert together > 30, together


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "turns"), [(12, 16), (8, 60)])
def test_a_round_of_moves_with_few_known_sizes_finds_what_a_search_for_each_job_finds(
    machine: int, turns: int, small_blocks: None
):
    moved, failed, together = rounds_of_moves(machine, turns)
    assert moved > 20 and failed > 100 and together > 1


@pytest.mark.slow
def test_the_most_free_processors_of_a_span_are_those_of_a_scan(small_blocks: None):
    pass_by, add, free_at, most_free = map(for_python, (plans.advance, plans.add, plans.free_at, moves._most_free))
    rng, plan, moments = random.Random(3), scribbled(90, 400), set[float]()
    pass_by(plan, 0.0)
    for _ in range(30):
        begin, width = float(rng.randint(1, 150)), rng.randint(1, 3)
        end = begin + rng.randint(1, 60)
        add(plan, begin, -width)
        add(plan, end, width)
        moments |= {begin, end}
    for begin in range(1, 200):
        end = begin + rng.randint(1, 60)
        expected = max(free_at(plan, time) for time in {begin, *(time for time in moments if begin < time < end)})
        assert most_free(plan, begin, end) == expected, (begin, end)


def rounds_of_moves(machine: int, turns: int) -> tuple[int, int, int]:
    """Check the moves of random rounds; return how many jobs moved, stayed, and moved together with the one before."""
    pass_by, earliest, add, begin_round, move, end_round = map(
        for_python, (plans.advance, plans.earliest, plans.add, moves.begin_round, moves.move, moves.end_round)
    )
    # Jobs come in bursts of one size, as those that move together.
    rng = random.Random(machine)
    sizes = [(1, 300.0)] * 9 + [(rng.choice([1, 2, 3, machine]), float(rng.choice([5, 20, 60, 300]))) for _ in range(9)]
    free, plain = scribbled(machine, 4000), scribbled(machine, 4000)
    moving = moves.new_moving(free)
    count = moves.LONG_QUEUE + 20
    moved = failed = together = 0
    running: list[list[float]] = []

    def change(where: plans.Plan, start: float, end: float, width: int) -> None:
        add(where, start, width)
        add(where, end, -width)

    for each in (free, plain):
        pass_by(each, 0.0)
    # Width, length, start of the reservation, in order of the queue; at first the machine is full.
    jobs: list[list[float]] = [[1, float(rng.randint(1, 300)), 0.0] for _ in range(machine)]
    for _, length, _ in jobs:
        for each in (free, plain):
            change(each, 0.0, length, -1)
    for turn in range(turns):
        now = 2.0 * turn
        for each in (free, plain):
            pass_by(each, now)
        require_sound(free)
        running = [job for job in [*running, *jobs] if job[2] <= now < job[2] + job[1]]
        jobs = [job for job in jobs if job[2] > now]
        while len(jobs) < count:
            width, length = rng.choice(sizes)
            for _ in range(rng.choice([1, 1, 4, 30])):
                start = earliest(plain, width, length, -math.inf, math.inf)
                for each in (free, plain):
                    change(each, start, start + length, -width)
                jobs.append([width, length, start])
                moving.head["seen"] = max(moving.head["seen"][0], start)
        rng.shuffle(running)
        for width, length, start in [running.pop() for _ in range(min(2, len(running)))]:  # these end early
            for each in (free, plain):
                change(each, now, start + length, int(width))
        begin_round(moving, len(jobs))
        for job in jobs:
            width, length, start = int(job[0]), job[1], job[2]
            before = int(moving.head["moved"][0])
            expected = earliest(plain, width, length, -math.inf, start)
            assert move(moving, width, length, start) == expected, (turn, job)
            if expected < start:
                change(plain, start, start + length, width)
                change(plain, expected, expected + length, -width)
                job[2] = expected
                together += int(moving.head["moved"][0]) == before + 1 > 1
            moved += expected < start
            failed += expected == start
        end_round(moving)
        require_sound(free)
        assert changes_of(free) == changes_of(plain)
    return moved, failed, together


# -- real logs

LOGS = [("KTH-SP2-1996-2.1-cln", 100), ("SDSC-SP2-1998-3.1-cln", 128), ("HPC2N-2002-2.1-cln", 240)]
POLICIES: dict[str, dict[str, Any]] = {
    "easy": {"backfill": "lookahead"},
    "sjbf": {"backfill": "lookahead", "backfill_order": "sjf"},
    "sjf": {"order": "sjf"},
    "conservative": {"backfill": "conservative"},
    "per-event": {"backfill": "lookahead", "per_event": True},
    "predict": {"backfill": "lookahead", "predict": True},
}


@pytest.fixture(scope="module", params=LOGS, ids=lambda log: log[0])
def log(request: pytest.FixtureRequest, traces: Path) -> tuple[dict[str, np.ndarray], int]:
    from swflow.workload.clean import clean_log

    name, machine = request.param
    jobs = clean_log(traces / f"{name}.swf.gz", processors=machine).jobs
    columns = {
        "submit": jobs["submit_time"].to_numpy(),
        "run": jobs["run_time"].to_numpy(),
        "planned": np.maximum(jobs["estimate"].to_numpy(), jobs["run_time"].to_numpy()).clip(1.0),
        "processors": jobs["processors"].to_numpy(),
        "users": jobs["user_id"].fill_null(-1).to_numpy(),
    }
    return columns, machine


@pytest.mark.archive
@pytest.mark.parametrize("policy", POLICIES)
def test_real_logs_keep_within_the_machine(log: tuple[dict[str, np.ndarray], int], policy: str):
    jobs, machine = log
    found = simulate_arrays(**jobs, machine=machine, **POLICIES[policy])
    start, promise = found.start, found.promise
    assert (start >= jobs["submit"]).all()
    times = np.concatenate([start + jobs["run"], start])
    change = np.concatenate([-jobs["processors"], jobs["processors"]])
    busy = np.cumsum(change[np.lexsort((change, times))])  # at one instant, ends first
    assert busy.max() <= machine
    assert busy[-1] == 0
    if policy == "conservative":
        assert (start <= promise).all()


@pytest.mark.archive
def test_easy_never_delays_the_head_of_a_real_log(log: tuple[dict[str, np.ndarray], int]):
    jobs, machine = log
    submit, run, planned, processors = (jobs[name] for name in ("submit", "run", "planned", "processors"))
    start = simulate_arrays(**jobs, machine=machine, backfill="lookahead").start
    end, planned_end = start + run, start + planned
    over = checked = 0
    for now in np.unique(np.concatenate([submit, end])):
        while over < submit.size and end[over] <= now:  # only the jobs from `over` on can be there still
            over += 1
        there = np.arange(over, np.searchsorted(submit, now, side="right"))
        waiting = there[start[there] > now]
        if not waiting.size:
            continue
        head = waiting[0]
        running = there[(start[there] <= now) & (end[there] > now)]
        ahead = running[(start[running] < now) | (running < head)]
        shadows = []
        for among in (ahead, running):
            order = among[np.argsort(planned_end[among], kind="stable")]
            idle = machine - processors[order].sum()
            enough = np.flatnonzero(idle + np.cumsum(processors[order]) >= processors[head])
            shadows.append(now if idle >= processors[head] else planned_end[order[enough[0]]])
        checked += ahead.size < running.size
        assert shadows[1] <= shadows[0], (now, head)
        assert start[head] <= shadows[1], (now, head)
    assert checked > 100  # backfilling took place


@pytest.mark.slow
@pytest.mark.parametrize("per_event", [False, True])
def test_the_list_and_the_tree_give_the_same_easy_schedule(monkeypatch, per_event: bool):
    """The kernel for short queues against the general one, and what happens when it gives up."""
    rng = random.Random(11)
    cases = [(machine := rng.randint(1, 8), repeated(rng, random_jobs(rng, machine, 30))) for _ in range(300)]
    options: dict[str, Any] = {"backfill": "lookahead", "per_event": per_event}
    by_list = [by_kernel(jobs, machine, **options) for machine, jobs in cases]
    given_up = []

    def gives_up(*arguments: Any, **_: Any) -> tuple[np.ndarray, bool]:
        given_up.append(arguments[0].submit.size)
        return np.full(arguments[0].submit.size, np.nan), False

    monkeypatch.setattr(kernels, "serve_by_arrival", gives_up)
    assert [by_kernel(jobs, machine, **options) for machine, jobs in cases] == by_list
    assert len(given_up) == len(cases)


@pytest.mark.compiled
@pytest.mark.slow
def test_the_list_gives_up_on_long_queues():
    """A queue of thousands that is gone through at every completion is left to the tree."""
    count = 4000
    jobs: Jobs = [(0.0, 10.0 + number % 7, 20.0, 3, 0) for number in range(count)]
    table = np.array([job[:4] for job in jobs])
    submit, run, planned, processors = (np.ascontiguousarray(table[:, field]) for field in range(4))
    none = np.empty(0, np.int64)
    items = Items(submit, run, planned, processors.astype(np.int64), none, none)
    _, finished = kernels.serve_by_arrival(items, 8, backfill=True)
    assert not finished
    assert np.isfinite(by_kernel(jobs, 8, backfill="lookahead")).all()
