"""Usage, limits, the fair tree, sorted lists and the order of arrival: random changes, against plain Python."""

import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import naive
import naive_slurm
from helpers.kernels import for_python
from swflow.compiled.source import Linker, plain_argument, register_formula
from swflow.jobs.eligibility import Dependencies
from swflow.scheduling.slurm import accounts, fair_tree
from swflow.scheduling.slurm import search as slurm_search
from swflow.scheduling.state import cancellations, changes, dependents, heap, layout, operations, search
from swflow.scheduling.state.accounts import AccountTree
from swflow.scheduling.state.heap import ELEMENT
from swflow.scheduling.state.variables import Variables


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


Given = dict[str, dict[str, Any]]


def drawn_accounts(rng: random.Random) -> Given:
    """Return accounts in a tree, with users; many have equal shares, or none."""
    found: Given = {}
    for name in range(rng.randint(1, 7)):
        parent = rng.choice([fair_tree.TOP, *found])
        users = {str(user): rng.choice([0, 1, 1, 2]) for user in range(rng.randint(0, 3))}
        found[str(name)] = {"parent": parent, "share": rng.choice([0, 1, 1, 2]), "users": users}
    return found


def plain_tree(given: Given) -> naive_slurm.Node:
    """Return accounts as the slow simulator has them, users before accounts, in the order of their names."""

    def node_of(name: str) -> naive_slurm.Node:
        own = given.get(name, {"share": 1, "users": {}})
        below = [naive_slurm.Node(share, (int(name), int(user))) for user, share in sorted(own["users"].items())]
        below += [node_of(other) for other in sorted(given) if given[other]["parent"] == name]
        return naive_slurm.Node(own["share"], below=below)

    return node_of(fair_tree.TOP)


def test_users_of_a_fair_tree_have_the_factors_of_the_slow_simulator() -> None:
    rank_users = for_python(fair_tree.rank_users)
    rng = random.Random(1)
    for _ in range(300):
        given = drawn_accounts(rng)
        users = [(name, user) for name, one in given.items() for user in one["users"]]
        pairs = [pair for pair in users if rng.random() < 0.8]
        used = [rng.choice([0.0, 0.0, 1.0, 2.0, 3.0]) for _ in pairs]
        tree = fair_tree.new_fair_tree(AccountTree(given, pairs, np.arange(len(pairs))))
        tree.nodes["usage"][tree.leaf] = used
        if users:
            rank_users(tree)
        numbers = [(int(name), int(user)) for name, user in pairs]
        factors = naive_slurm.fair_tree(plain_tree(given), dict(zip(numbers, used, strict=True)))
        assert tree.nodes["factor"][tree.leaf].tolist() == [factors[pair] for pair in numbers], (given, pairs, used)


def test_an_account_that_is_named_only_as_a_parent_or_by_jobs_is_at_the_top() -> None:
    tree = fair_tree.new_fair_tree(
        AccountTree({"a": {"parent": "b", "users": {"x": 3}}}, [("c", "y"), ("a", "y")], np.array([1, -1]))
    )
    nodes = tree.nodes
    # root: b, c; b: a; c: y; a: x, y
    assert nodes["above"].tolist() == [0, 0, 0, 1, 2, 3, 3]
    assert nodes["share"].tolist() == [0, 0.5, 0.5, 1, 1, 0.75, 0.25]
    assert nodes["row"].tolist() == [-1, -1, -1, -1, 0, -1, 1]
    assert nodes["first"].tolist() == [1, 3, 4, 5, -1, -1, -1]
    assert nodes["end"].tolist() == [3, 4, 5, 7, -1, -1, -1]
    assert tree.leaf.tolist() == [6, -1]


@pytest.mark.parametrize("half_life", [math.inf, *(pytest.param(one, marks=pytest.mark.slow) for one in (6.0, 0.5))])
@pytest.mark.parametrize("period", [0, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("cases", [4, pytest.param(25, marks=pytest.mark.slow)])
def test_usage_and_limits_are_those_of_the_slow_simulator(half_life: float, period: int, cases: int) -> None:
    names = ("compute_usage", "submit_use", "book_use", "leave_line", "end_use", "share_of", "of_tree", "at_limit")
    call = {name: for_python(getattr(accounts, name)) for name in names}
    rng = random.Random(f"{half_life} {period}")
    for _ in range(cases):
        jobs = [
            naive.Job(number, 0.0, 1.0, 1.0, rng.randint(1, 4), user=rng.randint(-1, 2), group=rng.randint(-1, 1))
            for number in range(15)
        ]
        given: Given = {str(group): {"parent": fair_tree.TOP, "share": 1, "users": {}} for group in (0, 1)}
        given["1"]["parent"] = rng.choice(["0", fair_tree.TOP])
        known = sorted({(job.group, job.user) for job in jobs if min(job.group, job.user) >= 0})
        for group, user in known:
            given[str(group)]["users"][str(user)] = 1.0
        leaf = np.array([known.index(one) if one in known else -1 for one in ((job.group, job.user) for job in jobs)])
        tree = AccountTree(given, [(str(group), str(user)) for group, user in known], leaf)
        numbers = np.array([[job.user, job.group, -1, job.number // 3] for job in jobs])
        owners = accounts.Owners(numbers, np.full((len(jobs), 3), math.nan), tree=tree)
        usage = accounts.new_usage(owners, None, 0.0, period)
        most = np.array([[rng.randint(1, 3), rng.randint(2, 6), 1] for _ in range(usage.accounts.size)])
        usage = accounts.with_bounds(usage._replace(limits=accounts.limits_of(most)), most, None)
        whole = rng.random() < 0.5
        fair = naive_slurm.SlurmShare(half_life, period=period, whole_periods=whole, tree=plain_tree(given))
        records = np.zeros(len(jobs), layout.JOB)
        records["start"], records["processors"] = math.nan, [job.processors for job in jobs]
        coming, queued, running = list(range(len(jobs))), list[int](), list[int]()
        now = 0.0
        for _ in range(50):
            now += rng.choice([0.0, 0.0, 1.0, 2.5, 4.0, 12.0])
            call["compute_usage"](usage, records, now, half_life, period)
            fair.pass_time(now)
            source = rng.choice([coming, queued, running])
            if not source:
                continue
            number = source.pop(rng.randrange(len(source)))
            job, start = jobs[number], records[number]["start"]
            if source is coming:
                call["submit_use"](usage, number)
                fair.submit(job)
                queued.append(number)
            elif source is queued and rng.random() < 0.2:
                call["leave_line"](usage, number)
                fair.submitted.pop(number, None)
            elif source is queued:
                records[number]["start"] = now
                call["book_use"](usage, number, now, half_life, 1, job.processors)
                fair.change(job, now, job.processors)
                running.append(number)
            else:
                call["book_use"](usage, number, now, half_life, -1, -job.processors)
                call["leave_line"](usage, number)
                if not whole:
                    call["end_use"](usage, number, start, now, job.processors, half_life, period)
                fair.change(job, now, -job.processors)
            if rng.random() < 0.5:  # usage is not computed at every time
                continue
            time = fair.computed_at(now)
            for one in (jobs[number] for number in queued):
                for column, kind in ((accounts.OF_USER, "user"), (accounts.OF_GROUP, "group")):
                    found = call["share_of"](usage.accounts, usage.rows[one.number, column], time, half_life)
                    assert found == pytest.approx(fair.usage(kind, one, now))
                factor, effective = call["of_tree"](usage, one.number, time, half_life)
                assert factor == fair.factor(one, now)
                assert effective == pytest.approx(fair.effective(one, now))
            for one in jobs:
                asked = rng.choice([0, one.processors])
                expected = False
                for row in usage.rows[one.number]:
                    beside = [jobs[number] for number in running if row >= 0 and row in usage.rows[number]]
                    expected |= row >= 0 and len(beside) >= most[row, 0]
                    expected |= row >= 0 and sum(other.processors for other in beside) + asked > most[row, 1]
                assert call["at_limit"](usage, one.number, asked) == expected


def test_classic_fair_share_computes_users_one_after_the_other() -> None:
    # One account with three users; job 0 of user 0 runs from 10 to 70, job 3 of user 2 from 60 on, others are queued.
    names = ("compute_usage", "submit_use", "leave_line", "end_use", "of_tree", "share_of")
    call = {name: for_python(getattr(accounts, name)) for name in names}
    users = np.array([0, 1, 0, 2, 0])
    given: Given = {"lab": {"users": {str(user): 1.0 for user in range(3)}}}
    tree = AccountTree(given, [("lab", str(user)) for user in range(3)], users)
    numbers = np.column_stack([users, np.zeros_like(users), np.full((5, 2), -1)])
    usage = accounts.new_usage(accounts.Owners(numbers, np.zeros((5, 3)), tree=tree), None, 0.0, 60.0)
    records = np.zeros(5, layout.JOB)
    records["start"], records["processors"] = math.nan, 2
    leaves = usage.tree.leaf

    def effective(now: float) -> list[float]:
        """Return the effective usage of users; NaN where it is not computed yet."""
        call["compute_usage"](usage, records, now, 300.0, 60.0)
        return usage.tree.nodes["effective"][[leaves[0], leaves[1], leaves[3]]].tolist()

    effective(10.0)
    for item in range(4):
        call["submit_use"](usage, item)
    records["start"][0] = 10.0
    # At 60 the account has no usage yet; that of user 0, who is alone, is 1, of which a third is taken back.
    assert effective(60.0) == pytest.approx([2 / 3, 0, 0])
    records["start"][3] = 60.0
    call["leave_line"](usage, 0)
    call["end_use"](usage, 0, 10.0, 70.0, 2, 300.0, 60.0)
    # At 120 the account has all usage, of which user 1 gets a third, and user 0 has all, since both are computed before
    # the usage of job 3 is added. User 2 has no queued job.
    left = 1 - 0.693 / 300
    assert effective(120.0) == pytest.approx([1, 1 / 3, math.nan], nan_ok=True)
    used = [(2 * 50 * left**50 + 2 * 10 * left**10) * left**60, 0, 2 * 60 * left**60]
    shares = [call["share_of"](usage.accounts, 1 + user, 120.0, 300.0) for user in range(3)]
    assert shares == pytest.approx([one / sum(used) for one in used])
    # At 180 the first queued job of user 0 is job 4, after job 3.
    call["leave_line"](usage, 2)
    call["submit_use"](usage, 4)
    share = used[0] / (sum(used) + 2 * 60)
    assert effective(180.0) == pytest.approx([share + (1 - share) / 3, 1 / 3, math.nan], nan_ok=True)
    assert call["of_tree"](usage, 1, 180.0, 300.0)[1] == pytest.approx(1)  # a third of all, over its share of a third


def test_owners_have_the_rows_of_their_accounts() -> None:
    numbers = np.array([[1, 0, -1, 0], [-1, 2, 0, -1], [0, 1, 0, 1]])
    owners = accounts.Owners(numbers, np.zeros((3, 3)), above=np.array([[1, -1], [-1, 0], [1, 0]]))
    # Row 0 is of all together; then 2 users, 3 groups, 1 partition, 2 arrays, and 2 accounts above groups.
    usage = accounts.new_usage(owners, None, 3.0)
    assert usage.rows.tolist() == [[2, 3, -1, 7, 10, -1], [-1, 5, 6, -1, -1, 9], [1, 4, 6, 8, 10, 9]]
    assert usage.accounts["since"].tolist() == [3.0] * 11
    assert accounts.new_usage(owners, np.array([2, 2, 0]), 3.0).rows[:, 0].tolist() == [1, 1, 2]


def test_a_cycle_tests_as_many_jobs_of_each_user_and_partition_as_it_may() -> None:
    may_test, forget_tests = for_python(accounts.may_test), for_python(accounts.forget_tests)
    owners = accounts.Owners(np.array([[0, -1, 0, -1], [1, -1, 0, -1], [-1, -1, -1, -1]]), np.zeros((3, 3)))
    usage = accounts.new_usage(owners, None, 0.0)._replace(limits=accounts.limits_of(np.ones((4, 3), np.int64)))
    for of_user, of_partition, expected in (
        (2, 0, [True, True, True, False, True, True, True, True, False]),
        (0, 3, [True, True, True, False, False, True, True, True, False]),
        (1, 2, [True, False, True, False, False, True, True, True, False]),
        (0, 0, [True] * 9),
    ):
        for _ in range(2):
            found = [may_test(usage, item, of_user, of_partition) for item in (0, 0, 1, 0, 1, 2, 2, 2, 1)]
            assert found == expected
            forget_tests(usage)


def test_a_sorted_list_has_its_jobs_by_key_and_then_by_number() -> None:
    insert = for_python(slurm_search._insert)
    rng = random.Random(2)
    for _ in range(60):
        first, room = rng.randint(0, 4), rng.randint(1, 12)
        line = np.zeros(first + room + 2, ELEMENT)
        line["time"], line["job"] = rng.choice([-math.inf, math.inf]), -1  # elements of other lists
        expected: list[tuple[float, int]] = []
        for item in rng.sample(range(room), room):
            before = line.copy()
            key = rng.choice([math.inf, float(rng.randint(0, 3))])
            insert(line, first, len(expected), key, item)
            expected = sorted([*expected, (key, item)], reverse=True)  # the last one is served first
            after = first + len(expected)
            assert line[first:after].tolist() == expected
            assert line[:first].tolist() == before[:first].tolist()
            assert line[after:].tolist() == before[after:].tolist()


def test_jobs_arrive_by_submit_time_and_then_by_number() -> None:
    release_dependents = for_python(dependents._release_dependents)
    rng = random.Random(3)
    for _ in range(100):
        count = rng.randint(2, 12)
        needs = {job: set(rng.sample(range(job), rng.randint(0, min(job, 3)))) for job in range(count)}
        pairs = [(earlier, job) for job in range(count) for earlier in sorted(needs[job])]
        rng.shuffle(pairs)
        think = np.array([float(rng.randint(0, 4)) for _ in range(count)])
        least = np.array([float(rng.randint(0, 20)) for _ in range(count)]) if rng.random() < 0.5 else None
        jobs = np.zeros(count, layout.JOB)
        jobs["submit"] = sorted(float(rng.randint(0, 9)) for _ in range(count))
        previous, dependent = np.array(pairs, np.int64).reshape(-1, 2).T
        several = Dependencies(previous, think, dependent, least)
        if all(len(one) <= 1 for one in needs.values()) and least is None:
            several = Dependencies(np.array([min(one, default=-1) for one in needs.values()]), think)
        order = dependents.new_dependents(several)
        known = {job: jobs["submit"][job] for job in range(count) if not needs[job]}
        ended: set[int] = set()
        now = 0.0
        while known:
            at = int(order.at[0])
            assert order.line[at:].tolist() == sorted(set(known) | ended, key=lambda job: (jobs["submit"][job], job))
            now += rng.choice([0.0, 1.0, 3.0])
            job = rng.choice(list(known))
            del known[job]
            ended.add(job)
            release_dependents(order, jobs, job, now)
            for other in range(count):
                if job in needs[other] and needs[other] <= ended:
                    earliest = -math.inf if least is None else least[other]
                    known[other] = max(now + think[other], earliest)
                    assert jobs["submit"][other] == known[other]
        assert ended == set(range(count))


def test_queued_jobs_are_cancelled_in_the_order_of_their_cancellations() -> None:
    note_arrival, next_cancellation = (
        for_python(cancellations._note_arrival),
        for_python(cancellations._next_cancellation),
    )
    rng = random.Random(4)
    for _ in range(40):
        after = np.array([rng.choice([math.inf, float(rng.randint(0, 9))]) for _ in range(9)])
        jobs, found = np.zeros(9, layout.JOB), cancellations.new_cancellations(after)
        jobs["start"] = math.nan
        leaves: dict[int, float] = {}
        for item in range(9):
            note_arrival(found, item, float(item))
            leaves[item] = item + after[item]
            started = rng.choice([None, *leaves])
            if started is not None:
                jobs["start"][started] = 0.0
                del leaves[started]
            time = min(leaves.values(), default=math.inf)
            assert next_cancellation(found, jobs) == time
            if time < math.inf:
                assert leaves[int(found.heap[0]["job"])] == time


def ignored(*arguments: Any) -> None:
    """Stand for an operation of a machine."""


def test_predictions_grow_by_increments_up_to_the_estimate() -> None:
    correct, push = Linker({operations.extend: ignored}).link(changes.correct), for_python(heap.push)
    rng = random.Random(5)
    corrected = 0
    for _ in range(150):
        now = float(rng.choice([0, 59, 60, 361, 5000, 400_000, rng.randint(0, 2_000_000)]))
        jobs, predicted = np.zeros(4, layout.JOB), np.zeros(4, layout.PREDICTED)
        predictions, counts, agenda = np.zeros(5, ELEMENT), np.zeros(1, layout.COUNTS), np.zeros(1, layout.AGENDA)
        predicted["corrections"] = [rng.choice([0, 0, 1, 9, 10]) for _ in jobs]
        expected = []
        for item, job in enumerate(jobs):
            job["run"] = rng.choice([0.0, now / 2, now, now + 1, 10 * now + 10])
            predicted["estimate"][item] = job["run"] + rng.choice([0.0, 5.0, 100.0, 9e6])
            job["planned_end"] = end = min(rng.choice([1.0, 60.0, now, now + 1]), predicted["estimate"][item])
            push(predictions, item, end, item)
            number = predicted["corrections"][item]
            while end <= now < job["run"]:
                end = min(end + naive.INCREMENTS[min(number, 10)], predicted["estimate"][item])
                number += 1
            expected.append((end, number))
        before = jobs["planned_end"].copy()
        counts["predicted"] = 4
        fields = {"jobs": jobs, "predicted": predicted, "predictions": predictions, "counts": counts, "agenda": agenda}
        correct(SimpleNamespace(**{name: plain_argument(array) for name, array in fields.items()}), now)
        assert list(zip(jobs["planned_end"], predicted["corrections"], strict=True)) == expected
        assert agenda["full"][0] == agenda["corrected"][0] == (jobs["planned_end"] != before).any()
        left = [item for item in range(4) if jobs["planned_end"][item] > now]
        held = predictions[: counts["predicted"][0]]
        assert {(item, end) for end, item in held.tolist()} == {(item, jobs["planned_end"][item]) for item in left}
        corrected += agenda["corrected"][0]
    assert corrected > 50


def test_formulas_receive_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, float] = {}

    def formula(*values: float) -> float:
        found.update(zip(Variables._fields, values, strict=True))
        return 7.0

    number = register_formula(formula)
    monkeypatch.setattr(search, "usage_of", lambda state, item, now: (4.0, 5.0, 6.0, 7.0))
    state = SimpleNamespace(
        options=[SimpleNamespace(processors=8)],
        jobs=[None, SimpleNamespace(submit=1.0)],
        capacities=np.array([100, 0, 80, 50]),
        demands=np.array([[30, 31, 32, 33], [40, 41, 42, 43]]),
        slots=np.array([2, 0, -1, 3]),
        attributes=np.array([np.zeros(6), np.arange(10.0, 16.0)]),
        usage=SimpleNamespace(variables=np.array([np.zeros(3), np.arange(20.0, 23.0)])),
    )
    assert search._key_of_all(state, number, 1, 0.0, 2.0, 3) == 7
    assert found == {
        "now": 1, "submit_time": 1, "estimate": 2, "processors": 3, "user_usage": 4, "group_usage": 5, "fair_tree": 6,
        "association_usage": 7, "machine_processors": 8, "dominant_share": 41, "user_id": 10, "group_id": 11,
        "queue_id": 12, "executable_id": 13, "job_id": 14, "requested_nodes": 15, "partition_id": 20, "user_share": 21,
        "group_share": 22,
        "resource_1": 42, "resource_2": 40, "resource_3": 0, "resource_4": 43,
    }  # fmt: skip
    assert search.plain_key_of(number, 50.0, 51.0, 52.0, 53.0) == 7
    assert [found[name] for name in Variables._fields[:4]] == [50, 51, 52, 53]
    assert all(math.isnan(found[name]) for name in Variables._fields[4:])
