"""The plan of numbered processors, and the choice among shared nodes, against sets of Python and the slow simulator."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest

import naive
from helpers.kernels import for_python
from helpers.sets import as_bits, as_set, runs_of
from swflow.scheduling.machine import node_sharing, numbered_plan
from swflow.scheduling.machine.resources import Resources


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


Span = tuple[float, float, frozenset[int]]  # from, until, processors


@pytest.mark.slow
@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("machine", [1, 6, 63, 127])
def test_a_plan_finds_what_a_scan_of_sets_finds(machine: int, contiguous: bool) -> None:
    earliest_set, enter, withdraw, new_row, free_row, add, remove = map(
        for_python,
        (
            numbered_plan.earliest_set,
            numbered_plan.enter,
            numbered_plan.withdraw,
            numbered_plan.new_row,
            numbered_plan.free_row,
            numbered_plan.add,
            numbered_plan.remove,
        ),
    )
    rng = random.Random(f"{machine} {contiguous}")
    for _ in range(60 if machine < 60 else 20):
        times = [float(time) for time in sorted(rng.sample(range(40), rng.choice([0, 0, 2, 4])))]
        times[-1:] = rng.choice([times[-1:], [math.inf] * len(times[-1:])])
        pairs = zip(times[::2], times[1::2], strict=True)
        windows = [(begin, until, rng.randint(1, machine)) for begin, until in pairs]
        closed = [(begin, until, frozenset(range(machine - away, machine))) for begin, until, away in windows]
        plan = numbered_plan.new_numbered_plan(machine, (machine + 63) // 64, 30, windows)
        plan.changes[:] = (0.5, -1, 0, -machine)  # nothing may read an unused element
        plan = plan._replace(sets=plan.sets[:6].copy(), spare_rows=plan.spare_rows[:6].copy())
        words, eligible = as_bits(set(), machine), as_bits(set(), machine)
        words[:] = plan.free
        assert as_set(words) == set(range(machine))
        spans: dict[int, Span] = {}  # running jobs, which start at -inf, and reservations
        rows: dict[int, int] = {}
        now = 0.0
        for job in range(30):
            width, length = rng.randint(1, machine), float(rng.choice([1, 5, rng.randint(1, 20)]))
            taken = [*spans.values(), *closed]
            since = now + rng.choice([0, 0, 0, 3])

            def free_at(start: float, length: float = length, taken: list[Span] = taken) -> set[int]:
                busy = [span[2] for span in taken if span[0] < start + length and span[1] > start]
                return set(range(machine)).difference(*busy)

            def holds(free: set[int], width: int = width) -> bool:
                longest = max([last - first + 1 for first, last in runs_of(free, machine)], default=0)
                return (longest if contiguous else len(free)) >= width

            moments = {since, *(until for _, until, _ in taken if since < until < math.inf)}
            expected = min((moment for moment in moments if holds(free_at(moment))), default=math.inf)
            assert earliest_set(plan, since, width, length, contiguous, machine, eligible) == expected
            ends = [time for time, _, size in plan_of(plan) if size > 0]
            assert ends == sorted(until for _, until, _ in spans.values())
            if expected < math.inf and len(spans) < 6:
                free = free_at(expected)
                assert as_set(eligible) == free
                runs = [first for first, last in runs_of(free, machine) if last - first + 1 >= width]
                chosen = range(runs[-1], runs[-1] + width) if contiguous else rng.sample(sorted(free), width)
                rows[job] = new_row(plan, as_bits(set(chosen), machine))
                runs_now = expected == now and not any(
                    span[0] <= now for span in spans.values() if span[2] & set(chosen)
                )
                if runs_now:
                    remove(plan.free, as_bits(set(chosen), machine))
                else:
                    enter(plan, expected, job, rows[job], -width)
                enter(plan, expected + length, job, rows[job], width)
                spans[job] = (-math.inf if runs_now else expected, expected + length, frozenset(chosen))
            if rng.random() < 0.3:
                now += 1.0
            gone = [one for one, (begin, _, _) in spans.items() if -math.inf < begin <= now]
            gone += [one for one, span in spans.items() if span[1] <= now and rng.random() < 0.7]  # others are late
            gone += rng.sample(list(spans), 1) if spans and rng.random() < 0.4 else []
            for one in dict.fromkeys(gone):  # some end or are cancelled early
                begin, _, processors = spans.pop(one)
                if begin == -math.inf:
                    add(plan.free, as_bits(set(processors), machine))
                withdraw(plan, one)
                free_row(plan, rows[one])
            withdraw(plan, 77)  # a job without changes
            assert int(plan.numbers["reservations"][0]) == sum(span[0] > -math.inf for span in spans.values())
            assert int(plan.numbers["changes"][0]) == sum(1 + (span[0] > -math.inf) for span in spans.values())
            assert all(as_set(plan.sets[rows[one]]) == set(span[2]) for one, span in spans.items())


def plan_of(plan: numbered_plan.NumberedPlan) -> list[tuple[float, int, int]]:
    """Return the changes of a plan, which are sorted: sets that become free, in order of entry, before others."""
    changes = plan.changes[: int(plan.numbers["changes"][0])]
    found = [(float(one["time"]), int(one["job"]), int(one["size"])) for one in changes]
    assert [one[0] for one in found] == sorted(one[0] for one in found)
    for before, after in pairwise(found):
        assert before[0] < after[0] or after[2] < 0 or (before[2] > 0 and before[1] < after[1])
    return found


@pytest.mark.slow
def test_processes_go_to_the_nodes_to_which_the_slow_simulator_assigns_them() -> None:
    choose, limit_of, whole_nodes = map(
        for_python, (node_sharing.choose_least_shared, node_sharing.limit_of, node_sharing.whole_nodes)
    )
    rng = random.Random(1)
    found, failed = 0, 0
    for _ in range(250):
        per_node, nodes, kinds = rng.randint(1, 5), rng.randint(1, 12), rng.randint(1, 2)
        machine, keeps = per_node * nodes, rng.random() < 0.5
        demands = [[rng.choice([0, 1, 2, 3]) for _ in range(kinds)] for _ in range(5)]
        capacities = [rng.choice([2, 3, 4]) for _ in range(kinds)]
        shared = naive.Resources(per_node, demands, capacities, [], limit=rng.choice([0.0, 0.25, 1.0]))
        slow = naive.Machine(
            machine, naive.Policy(allocation="threshold" if keeps else "least-shared", resources=shared)
        )
        owners = [rng.choice([-1, -1, rng.randrange(4)]) for _ in range(machine)]
        for number in range(4):
            places = [place for place, owner in enumerate(owners) if owner == number]
            slow.running[number] = naive.Job(number, 0.0, 9.0, 9.0, 1), naive.Occupation(0.0, 9.0, places)
        usage = np.array([shared.usage(slow.processes_of(node)) for node in range(nodes)], np.float64)
        free = [place for place, owner in enumerate(owners) if owner < 0 and rng.random() < 0.9]
        width = rng.randint(1, min(machine, len(free) + 1))
        job = naive.Job(4, 1.0, 1.0, 1.0, width)
        expected = slow.select_least_shared(job, free, 1.0) if width <= len(free) else None
        resources = Resources(per_node, np.array(demands), np.array(capacities), limit=shared.limit)
        sharing = node_sharing.new_sharing(resources, 5, machine, keeps)
        limit = limit_of(sharing, 4, width, machine)
        assert limit == (slow.limit(job) if keeps else math.inf)
        chosen = as_bits(set(range(0, machine, 2)), machine)
        bits = as_bits(set(free), machine)
        assert choose(sharing, usage, bits, width, 4, limit, machine, chosen) == (expected is not None)
        if expected is None:
            failed += 1
            continue
        found += 1
        assert as_set(chosen) == set(expected)
        whole_nodes(sharing, chosen, machine)
        used = {place // per_node for place in expected}
        assert as_set(chosen) == {place for place in range(machine) if place // per_node in used}
    assert min(found, failed) > 30
