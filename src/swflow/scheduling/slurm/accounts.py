"""Accounts as Slurm keeps them: usage in periods and in a tree of accounts, limits that are left to running jobs."""

import math
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.slurm.fair_tree import (
    NO_TREE,
    FairTree,
    add_up,
    new_fair_tree,
    rank_users,
    set_effective,
    spread_usage,
)
from swflow.scheduling.state import accounts as plain
from swflow.scheduling.state import operations
from swflow.scheduling.state.accounts import (
    ALL,
    OF_GROUP,
    OF_PARTITION,
    OF_USER,
    UNLIMITED,
    Accounting,
    Owners,
    arguments_of,
    at_limit,
    at_needs,
    book,
    count_running,
    share_of,
    with_bounds,
)

#: Of an account at one machine: the fields of `swflow.scheduling.state.accounts.LIMIT`, the processor-seconds ``left``
#: to its running jobs, the limit of processor-minutes, and the jobs ``tested`` in a cycle.
LIMIT = record("left most_minutes", "jobs processors most_jobs most_processors tested")

#: How usage is counted: formulas are computed at multiples of ``calc_period``, or at any time if it is 0; usage may
#: count in ``whole_periods`` of it; some limits are of processor-``minutes``, for which what is left to running jobs
#: was ``counted`` at a time.
COUNTING = record("calc_period counted", "whole_periods minutes")


class SlurmUsage(NamedTuple):
    """
    The accounts of all machines together, the owners of each job, and the limits of a machine.

    The first fields are those of `swflow.scheduling.state.accounts.Usage`. If usage is computed in periods, that of an
    account is the one of `compute_usage`, and ``since`` is infinite.
    """

    accounts: np.ndarray
    rows: np.ndarray
    variables: np.ndarray
    limits: np.ndarray
    needs: np.ndarray
    used_needs: np.ndarray
    most_needs: np.ndarray
    bounds: np.ndarray
    counting: np.ndarray
    tree: FairTree  # with rows of the accounts
    line: np.ndarray  # the submitted jobs in order of their numbers; empty unless usage is computed in periods
    over: np.ndarray  # whether each job has ended or left the queue, which removes it from the line later
    periods: np.ndarray  # the number of jobs in the line, and of the periods that have passed, now and at the beginning


def new_usage(
    owners: Owners | None, items: np.ndarray | None, since: float, period: float = 0.0, half_life: float = np.inf
) -> SlurmUsage:
    """Return accounts with their usage at the time ``since``, without limits; ``items`` has the job of each item."""
    half_life = np.inf if period else half_life
    usage = plain.new_usage(owners, items, since, half_life)
    accounts, tree, count = usage.accounts, NO_TREE, len(usage.rows)
    if owners is not None:
        tree = NO_TREE if owners.tree is None else new_fair_tree(owners.tree)
        nodes, first = tree.nodes.copy(), accounts.size
        nodes["row"][nodes["row"] >= 0] += first
        accounts = np.zeros(nodes["row"].max(initial=first - 1) + 1, plain.ACCOUNT)
        accounts["at"], accounts[:first] = -np.inf, usage.accounts
        accounts["since"] = np.inf if period else since
        if owners.used is not None:
            numbers, seconds = owners.used[:, 2].astype(np.int64), plain.used_before(owners.used, half_life)
            np.add.at(accounts["seconds"], first + numbers[numbers >= 0], seconds[numbers >= 0])
        chosen = slice(None) if items is None else items
        tree = tree._replace(leaf=tree.leaf[chosen] if tree.leaf.size else tree.leaf, nodes=nodes)
    count = count if period else 0
    passed = math.floor(since / period) - 1 if count else 0
    counting = np.zeros(1, COUNTING)
    counting["calc_period"], counting["counted"] = period, -np.inf
    return SlurmUsage(
        accounts, usage.rows, usage.variables, np.zeros(0, LIMIT), *usage[4:], counting, tree,
        np.empty(count, np.int64), np.zeros(count, np.bool_), np.array([0, passed, passed]),
    )  # fmt: skip


def limits_of(most: np.ndarray | None) -> np.ndarray:
    """Return the limits of accounts of jobs, processors and processor-minutes, which are the first three columns."""
    limits = plain.limits_of(most, LIMIT)
    if most is not None:
        limits["most_minutes"] = most[:, 2]
    return limits


def _new_usage(problem: Any) -> SlurmUsage:
    policy = problem.policy
    priority = policy.priority or {}
    usage = new_usage(*arguments_of(problem), priority.get("calc_period", 0), policy.half_life or np.inf)
    usage.counting["whole_periods"] = priority.get("whole_periods", False)
    return usage


def _at_machine(usage: SlurmUsage, most: np.ndarray | None, bounds: np.ndarray | None) -> SlurmUsage:
    counting = usage.counting.copy()
    counting["minutes"] = most is not None and bool((most[:, 2] < UNLIMITED).any())
    return with_bounds(usage._replace(limits=limits_of(most), counting=counting), most, bounds)


# -- usage


def of_tree(usage: SlurmUsage, item: int, now: float, half_life: float) -> tuple[float, float]:
    """
    Return the factor of a job's user in its account by the fair tree, and the effective usage there over the share.

    They are 0 and infinite if the user or the account is unknown.
    """
    tree = usage.tree
    if tree.leaf.size == 0 or tree.leaf[item] < 0:
        return 0.0, np.inf
    if tree.at[0] != now:
        tree.at[0] = now
        for node in range(tree.nodes.size):
            tree.nodes[node].usage = share_of(usage.accounts, tree.nodes[node].row, now, half_life)
        rank_users(tree)
        if usage.line.size == 0:
            spread_usage(tree)
    leaf = tree.nodes[tree.leaf[item]]
    return leaf.factor, leaf.effective / leaf.entitled if leaf.entitled > 0 else np.inf


def computed_at(now: float, period: float) -> float:
    """Return the last time until now at which priorities were computed: at multiples of a period, 0: now."""
    return math.floor(now / period) * period if period > 0 else now


def _rows_of(usage: SlurmUsage, item: int) -> tuple[int, int, int, int]:
    """Return the accounts whose usage a job adds to: of all, its user, its group, and its user in its group."""
    tree = usage.tree
    leaf = tree.leaf[item] if tree.leaf.size > 0 else -1
    own = tree.nodes[leaf].row if leaf >= 0 else -1
    return ALL, usage.rows[item, OF_USER], usage.rows[item, OF_GROUP], own


def book_use(usage: SlurmUsage, item: int, now: float, half_life: float, jobs: int, processors: int) -> None:
    """Count a start (1 job and its processors) or an end (-1 and minus its processors)."""
    if usage.line.size == 0:
        for row in _rows_of(usage, item):
            book(usage.accounts, row, now, half_life, processors)
    count_running(usage, item, jobs, processors)


# -- usage in periods


def _add(
    usage: SlurmUsage, item: int, begin: float, start: float, end: float, processors: int, half_life: float
) -> None:
    """
    Add a job's usage from the beginning of a period, or its start, to an end.

    All of it decays as its first second (`_apply_new_usage` in Slurm's priority_multifactor.c).
    """
    seconds = end - max(start, begin)
    used = processors * seconds * max(0.0, 1.0 - 0.693 / half_life) ** seconds
    for row in _rows_of(usage, item):
        if row >= 0:
            usage.accounts[row].seconds += used


def _set_user(usage: SlurmUsage, item: int) -> None:
    """Compute the effective usage of a job's user from the usage that is counted now, unless it is computed."""
    tree, whole = usage.tree, usage.accounts[ALL].seconds
    if tree.leaf.size > 0 and tree.leaf[item] >= 0:
        leaf = tree.leaf[item]
        one = tree.nodes[leaf]
        if np.isnan(one.effective):
            one.usage = usage.accounts[one.row].seconds / whole if whole > 0 else 0.0
            set_effective(tree.nodes, leaf)


def _forget_users(usage: SlurmUsage) -> None:
    """Compute the effective usage of accounts, and forget that of users."""
    nodes, whole = usage.tree.nodes, usage.accounts[ALL].seconds
    for node in range(nodes.size):
        row = nodes[node].row
        nodes[node].usage = usage.accounts[row].seconds / whole if row >= 0 and whole > 0 else 0.0
    add_up(usage.tree)
    spread_usage(usage.tree)
    for node in range(nodes.size):
        if nodes[node].end < 0:
            nodes[node].effective = np.nan


def compute_usage(usage: SlurmUsage, jobs: np.ndarray, now: float, half_life: float, period: float) -> None:
    """
    Compute usage at the ends of the periods until now, before other events at these times.

    Usage decays at once, and then that of each running job is added, in the order of the jobs. Accounts have the
    effective usage from before that; users have that at their first queued job in this order, or at their next
    submission (`_decay_thread` and `_get_fairshare_priority` in Slurm's priority_multifactor.c).
    """
    if usage.line.size == 0:
        return
    line, periods = usage.line, usage.periods
    kept = max(0.0, 1.0 - 0.693 / half_life) ** period
    while periods[1] < math.floor(now / period):
        begin, end = periods[1] * period, (periods[1] + 1) * period
        _forget_users(usage)
        if periods[1] > periods[2]:
            for row in range(usage.accounts.size):
                usage.accounts[row].seconds *= kept
        periods[1] += 1
        left = 0
        for place in range(periods[0]):
            item = line[place]
            if usage.over[item]:
                continue
            line[left] = item
            left += 1
            if np.isnan(jobs[item].start):
                _set_user(usage, item)
            else:
                _add(usage, item, begin, jobs[item].start, end, jobs[item].processors, half_life)
        periods[0] = left


def submit_use(usage: SlurmUsage, item: int) -> None:
    """Add a submitted job to the line."""
    if usage.line.size > 0:
        line, place = usage.line, usage.periods[0]
        while place > 0 and line[place - 1] > item:
            line[place] = line[place - 1]
            place -= 1
        line[place] = item
        usage.periods[0] += 1
        _set_user(usage, item)


def end_use(
    usage: SlurmUsage, item: int, start: float, now: float, processors: int, half_life: float, period: float
) -> None:
    """Add the usage since the last period of a job that has ended (`priority_p_job_end`)."""
    if usage.line.size == 0:
        return
    begin = usage.periods[1] * period
    for row in _rows_of(usage, item):
        share_of(usage.accounts, row, begin, half_life)  # priorities until the next period are by the usage before
    _add(usage, item, begin, start, now, processors, half_life)


def leave_line(usage: SlurmUsage, item: int) -> None:
    """Remove a job that has ended or left the queue from the line."""
    if usage.line.size > 0:
        usage.over[item] = True


# -- limits


def minutes_of(planned: float) -> float:
    """
    Return the time limit of a job in minutes, given its planned run time: as in Slurm whole minutes, and at least 1.

    It is rounded down because recorded jobs that exceeded their limit are planned with their run time.
    """
    return max(1.0, math.floor(planned / 60.0))


def seconds_left(start: float, planned: float, now: float) -> float:
    """Return the seconds from a time, or from the start of a job if that is later, to its time limit; 0 after that."""
    return math.floor(max(0.0, start + 60.0 * minutes_of(planned) - max(start, now)) + 0.5)


def count_left(usage: SlurmUsage, item: int, seconds: float) -> None:
    """Add processor-seconds that are left to a running job, or subtract them."""
    for row in usage.rows[item]:
        if row >= 0:
            usage.limits[row].left += seconds


def at_minutes(usage: SlurmUsage, item: int, minutes: float) -> bool:
    """
    Return whether a job with this many processor-minutes would exceed a limit if it started.

    Those that are left to running jobs are rounded down (`acct_policy_job_runnable_post_select` in Slurm's
    acct_policy.c).
    """
    for column in range(usage.rows.shape[1]):
        bound = usage.bounds[item, column]
        if bound >= 0:
            left = usage.limits[usage.rows[item, column]].left
            if minutes > usage.limits[bound].most_minutes - math.floor(left / 60.0):
                return True
    return False


def has_all_jobs(usage: SlurmUsage, item: int) -> bool:
    """
    Return whether as many jobs are running as a limit that applies to a job allows.

    Slurm tests other limits later (`acct_policy_job_runnable_pre_select` in acct_policy.c).
    """
    for column in range(usage.rows.shape[1]):
        bound = usage.bounds[item, column]
        if bound >= 0 and usage.limits[usage.rows[item, column]].jobs >= usage.limits[bound].most_jobs:
            return True
    return False


def forget_tests(usage: SlurmUsage) -> None:
    """Start to count the jobs of each user and partition that a cycle tests."""
    for row in range(usage.limits.size):
        usage.limits[row].tested = 0


def may_test(usage: SlurmUsage, item: int, of_user: int, of_partition: int) -> bool:
    """
    Count a test of a job for its user and its partition, unless one had all its tests; return whether it is counted.

    In a cycle a user has ``of_user`` tests, and a partition ``of_partition``; 0: any number
    (`_job_exceeds_max_bf_param` in Slurm's backfill.c).
    """
    if of_user == 0 and of_partition == 0:
        return True
    user, partition = usage.rows[item, OF_USER], usage.rows[item, OF_PARTITION]
    if of_user > 0 and user >= 0 and usage.limits[user].tested >= of_user:
        return False
    if of_partition > 0 and partition >= 0 and usage.limits[partition].tested >= of_partition:
        return False
    if user >= 0:
        usage.limits[user].tested += 1
    if partition >= 0:
        usage.limits[partition].tested += 1
    return True


# -- operations


def _pass_time(state: Any, now: float) -> None:
    usage, counting = state.usage, state.usage.counting[0]
    compute_usage(usage, state.jobs, now, state.options[0].half_life, counting.calc_period)
    if counting.minutes and counting.calc_period > 0:
        _count_time(state, computed_at(now, counting.calc_period))


def _count_time(state: Any, now: float) -> None:
    """
    Subtract from what is left to running jobs the time that passed until the end of a period.

    Slurm's multifactor plugin subtracts it only then (`_apply_new_usage` in priority_multifactor.c), and without that
    plugin nothing is subtracted before a job ends (`priority_p_job_end` in priority_basic.c).
    """
    counting = state.usage.counting[0]
    if now <= counting.counted:
        return
    for k in range(state.counts[0].running):
        item = state.running[k].job
        job = state.jobs[item]
        passed = seconds_left(job.start, job.planned, counting.counted) - seconds_left(job.start, job.planned, now)
        count_left(state.usage, item, -job.processors * passed)
    counting.counted = now


def _note_submission(state: Any, item: int) -> None:
    submit_use(state.usage, item)


def _note_start(state: Any, item: int, now: float) -> None:
    usage, job = state.usage, state.jobs[item]
    if usage.accounts.size > 0:
        book_use(usage, item, now, state.options[0].half_life, 1, job.processors)
        if usage.counting[0].minutes:
            count_left(usage, item, job.processors * seconds_left(now, job.planned, now))


def _note_end(state: Any, item: int, now: float) -> None:
    usage, job, half_life = state.usage, state.jobs[item], state.options[0].half_life
    counting = usage.counting[0]
    if usage.accounts.size == 0:
        return
    book_use(usage, item, now, half_life, -1, -job.processors)
    leave_line(usage, item)
    if counting.minutes:
        left = seconds_left(job.start, job.planned, counting.counted)
        count_left(usage, item, -job.processors * left)
    if not counting.whole_periods:
        end_use(usage, item, job.start, now, job.processors, half_life, counting.calc_period)


def _note_withdrawal(state: Any, item: int) -> None:
    leave_line(state.usage, item)


def _is_limited(state: Any, item: int) -> bool:
    if state.options[0].limits == 0:
        return False
    usage, job = state.usage, state.jobs[item]
    if at_limit(usage, item, job.processors) or at_needs(usage, item):
        return True
    return usage.counting[0].minutes != 0 and at_minutes(usage, item, job.processors * minutes_of(job.planned))


def _usage_of(state: Any, item: int, now: float) -> tuple[float, float, float, float]:
    usage, half_life = state.usage, state.options[0].half_life
    if usage.accounts.size == 0:
        return 0.0, 0.0, 0.0, np.inf
    factor, effective = of_tree(usage, item, now, half_life)
    of_user = share_of(usage.accounts, usage.rows[item, OF_USER], now, half_life)
    return of_user, share_of(usage.accounts, usage.rows[item, OF_GROUP], now, half_life), factor, effective


def _time_of_keys(state: Any, now: float) -> float:
    return computed_at(now, state.usage.counting[0].calc_period)


#: Usage and limits as Slurm counts them.
SLURM_ACCOUNTING = Accounting(
    _new_usage,
    _at_machine,
    {
        operations.pass_time: _pass_time,
        operations.note_submission: _note_submission,
        operations.note_start: _note_start,
        operations.note_end: _note_end,
        operations.note_withdrawal: _note_withdrawal,
        operations.is_limited: _is_limited,
        operations.usage_of: _usage_of,
        operations.time_of_keys: _time_of_keys,
    },
)


def counts_as_slurm(problem: Any) -> bool:
    """Return whether a problem has usage or limits that only Slurm counts."""
    owners: Owners | None = problem.accounts
    if (problem.policy.priority or {}).get("calc_period") or (owners is not None and owners.tree is not None):
        return True
    limits = [machine.limits for machine in problem.machines if machine.limits is not None]
    return any((most[:, 2] < UNLIMITED).any() for most in limits)
