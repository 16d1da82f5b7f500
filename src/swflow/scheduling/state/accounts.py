"""Accounts of users, groups, partitions, QOS and job arrays: usage for fair share, and limits."""

import math
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.slurm.fair_tree import NO_TREE, FairTree, add_up, rank_users, set_effective, spread_usage

#: An account: processor-seconds used up to ``since``, decayed and in units of the half-life if there is one; its
#: running processors since then; its last computed share of the usage of all, and the time of that. If usage is
#: computed in periods, it is that of `compute_usage`, and ``since`` is infinite.
ACCOUNT = record("seconds since share at", "processors")

#: Running jobs and processors of an account at one machine, the processor-seconds ``left`` to these jobs, and the
#: limits of all three; the jobs ``tested`` in a cycle.
LIMIT = record("left most_minutes", "jobs processors most_jobs most_processors tested")

#: A limit that no job or machine reaches.
UNLIMITED = 1 << 60

#: The row of the account of all together, and the columns of `Usage.rows` with the accounts of users and groups.
_ALL, OF_USER, OF_GROUP = 0, 0, 1


class Owners(NamedTuple):
    """
    The owners of jobs.

    ``numbers`` are int64 of shape (jobs, 4): the user, group, partition and job array of each job, each numbered from 0
    without gaps; -1 where unknown. Unknown owners have no usage and no limit. ``variables`` are float64 of shape
    (jobs, 3), for formulas: the partition as in the log, NaN where unknown; the shares of the user and of the group,
    which add up to 1 over all users, and over all groups. ``numbers`` may have more columns, of other accounts with
    limits. ``above`` has the accounts at and above each job's group, shape (jobs, levels), numbered from 0; -1: none.
    ``tree`` is for the variables `swflow.scheduling.orders.vocabulary.OF_TREE`. ``used`` are float64 of shape (users in
    groups, 4) with the usage before the first submission: the numbers of the user, the group, and the row of both in
    the tree, -1 where there are no jobs, and processor-seconds.
    """

    numbers: np.ndarray
    variables: np.ndarray
    above: np.ndarray | None = None
    tree: FairTree | None = None
    used: np.ndarray | None = None


class Usage(NamedTuple):
    """The accounts of all machines together, the owners of each job, and the limits of a machine."""

    accounts: np.ndarray
    rows: np.ndarray  # rows of each job's user, group, partition, array and more; -1 where unknown
    variables: np.ndarray  # the variables of `Owners`; one row of NaN if there are none
    limits: np.ndarray  # the limits; empty if there are none
    tree: FairTree  # with rows of the accounts
    line: np.ndarray  # the submitted jobs in order of their numbers; empty unless usage is computed in periods
    over: np.ndarray  # whether each job has ended or left the queue, which removes it from the line later
    periods: np.ndarray  # the number of jobs in the line, and of the periods that have passed, now and at the beginning


def new_usage(
    owners: Owners | None, items: np.ndarray | None, since: float, period: float = 0.0, half_life: float = np.inf
) -> Usage:
    """Return accounts with their usage at the time ``since``, without limits; ``items`` has the job of each item."""
    none, line = np.zeros(0, LIMIT), (np.empty(0, np.int64), np.empty(0, np.bool_), np.zeros(3, np.int64))
    if owners is None:
        return Usage(np.zeros(0, ACCOUNT), np.empty((0, 4), np.int64), np.full((1, 3), np.nan), none, NO_TREE, *line)
    sizes = owners.numbers.max(axis=0, initial=-1) + 1
    rows = np.where(owners.numbers < 0, -1, owners.numbers + 1 + np.cumsum(sizes) - sizes)
    count = 1 + sizes.sum()
    if owners.above is not None:
        rows = np.column_stack([rows, np.where(owners.above < 0, -1, owners.above + count)])
        count += owners.above.max(initial=-1) + 1
    tree = owners.tree or NO_TREE
    nodes, of_tree = tree.nodes.copy(), count
    nodes["row"][nodes["row"] >= 0] += count
    count = nodes["row"].max(initial=count - 1) + 1
    accounts = np.zeros(count, ACCOUNT)
    accounts["since"], accounts["at"] = np.inf if period else since, -np.inf
    if owners.used is not None:
        who, seconds = owners.used[:, :3].astype(np.int64), owners.used[:, 3]
        if half_life < np.inf and not period:
            seconds = seconds * math.log(2) / half_life
        accounts["seconds"][_ALL] = seconds.sum()
        for numbers, first in zip(who.T, (1, 1 + sizes[0], of_tree), strict=True):
            np.add.at(accounts["seconds"], first + numbers[numbers >= 0], seconds[numbers >= 0])
    chosen = slice(None) if items is None else items
    leaf = tree.leaf[chosen] if tree.leaf.size else tree.leaf
    rows, tree = rows[chosen], tree._replace(leaf=leaf, nodes=nodes)
    if period:
        passed = math.floor(since / period) - 1
        line = np.empty(len(rows), np.int64), np.zeros(len(rows), np.bool_), np.array([0, passed, passed])
    return Usage(accounts, rows, owners.variables[chosen], none, tree, *line)


def limits_of(most: np.ndarray | None) -> np.ndarray:
    """Return the limits of accounts, given those of running jobs, processors and processor-minutes: (accounts, 3)."""
    limits = np.zeros(0 if most is None else len(most), LIMIT)
    if most is not None:
        limits["most_jobs"], limits["most_processors"], limits["most_minutes"] = most.T
    return limits


# -- usage


def _used(accounts: np.ndarray, row: int, now: float, half_life: float) -> float:
    """Return the usage of an account up to now; with a half-life in units of half_life / log(2) processor-seconds."""
    one = accounts[row]
    passed = now - one.since
    if passed <= 0:
        return one.seconds
    if half_life == np.inf:
        return one.seconds + one.processors * passed
    kept = math.exp2(-passed / half_life)
    return one.seconds * kept + one.processors * (1.0 - kept)


def share_of(accounts: np.ndarray, row: int, now: float, half_life: float) -> float:
    """Return an account's usage up to now as a share of that of all; 0 while there is no usage."""
    if row < 0:
        return 0.0
    one = accounts[row]
    if one.at != now:  # a start at this time adds no usage yet
        whole = accounts[_ALL]
        if whole.at != now:
            whole.share = _used(accounts, _ALL, now, half_life)
            whole.at = now
        if row != _ALL:
            one.share = _used(accounts, row, now, half_life) / whole.share if whole.share > 0 else 0.0
            one.at = now
    return one.share


def of_tree(usage: Usage, item: int, now: float, half_life: float) -> tuple[float, float]:
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


def _book(accounts: np.ndarray, row: int, now: float, half_life: float, processors: int) -> None:
    """Change the number of an account's running processors from now on."""
    if row >= 0:
        one = accounts[row]
        one.seconds = _used(accounts, row, now, half_life)
        one.since = now
        one.processors += processors


def computed_at(now: float, period: float) -> float:
    """Return the last time until now at which priorities were computed: at multiples of a period, 0: now."""
    return math.floor(now / period) * period if period > 0 else now


def _rows_of(usage: Usage, item: int) -> tuple[int, int, int, int]:
    """Return the accounts whose usage a job adds to: of all, its user, its group, and its user in its group."""
    tree = usage.tree
    leaf = tree.leaf[item] if tree.leaf.size > 0 else -1
    own = tree.nodes[leaf].row if leaf >= 0 else -1
    return _ALL, usage.rows[item, OF_USER], usage.rows[item, OF_GROUP], own


def book_use(usage: Usage, item: int, now: float, half_life: float, jobs: int, processors: int) -> None:
    """Count a start (1 job and its processors) or an end (-1 and minus its processors)."""
    if usage.line.size == 0:
        for row in _rows_of(usage, item):
            _book(usage.accounts, row, now, half_life, processors)
    if usage.limits.size > 0:
        for row in usage.rows[item]:
            if row >= 0:
                usage.limits[row].jobs += jobs
                usage.limits[row].processors += processors


# -- usage in periods


def _add(usage: Usage, item: int, begin: float, start: float, end: float, processors: int, half_life: float) -> None:
    """
    Add a job's usage from the beginning of a period, or its start, to an end.

    All of it decays as its first second (`_apply_new_usage` in Slurm's priority_multifactor.c).
    """
    seconds = end - max(start, begin)
    used = processors * seconds * max(0.0, 1.0 - 0.693 / half_life) ** seconds
    for row in _rows_of(usage, item):
        if row >= 0:
            usage.accounts[row].seconds += used


def _set_user(usage: Usage, item: int) -> None:
    """Compute the effective usage of a job's user from the usage that is counted now, unless it is computed."""
    tree, whole = usage.tree, usage.accounts[_ALL].seconds
    if tree.leaf.size > 0 and tree.leaf[item] >= 0:
        leaf = tree.leaf[item]
        one = tree.nodes[leaf]
        if np.isnan(one.effective):
            one.usage = usage.accounts[one.row].seconds / whole if whole > 0 else 0.0
            set_effective(tree.nodes, leaf)


def _forget_users(usage: Usage) -> None:
    """Compute the effective usage of accounts, and forget that of users."""
    nodes, whole = usage.tree.nodes, usage.accounts[_ALL].seconds
    for node in range(nodes.size):
        row = nodes[node].row
        nodes[node].usage = usage.accounts[row].seconds / whole if row >= 0 and whole > 0 else 0.0
    add_up(usage.tree)
    spread_usage(usage.tree)
    for node in range(nodes.size):
        if nodes[node].end < 0:
            nodes[node].effective = np.nan


def compute_usage(usage: Usage, jobs: np.ndarray, now: float, half_life: float, period: float) -> None:
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


def submit_use(usage: Usage, item: int) -> None:
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
    usage: Usage, item: int, start: float, now: float, processors: int, half_life: float, period: float
) -> None:
    """Add the usage since the last period of a job that has ended (`priority_p_job_end`)."""
    if usage.line.size == 0:
        return
    begin = usage.periods[1] * period
    for row in _rows_of(usage, item):
        share_of(usage.accounts, row, begin, half_life)  # priorities until the next period are by the usage before
    _add(usage, item, begin, start, now, processors, half_life)


def leave_line(usage: Usage, item: int) -> None:
    """Remove a job that has ended or left the queue from the line."""
    if usage.line.size > 0:
        usage.over[item] = True


# -- limits


def at_limit(usage: Usage, item: int, processors: int) -> bool:
    """Return whether a job may not start now because its user, group, partition or array would exceed a limit."""
    for row in usage.rows[item]:
        if row >= 0:
            one = usage.limits[row]
            if one.jobs >= one.most_jobs or one.processors + processors > one.most_processors:
                return True
    return False


def minutes_of(planned: float) -> float:
    """
    Return the time limit of a job in minutes, given its planned run time: as in Slurm whole minutes, and at least 1.

    It is rounded down because recorded jobs that exceeded their limit are planned with their run time.
    """
    return max(1.0, math.floor(planned / 60.0))


def seconds_left(start: float, planned: float, now: float) -> float:
    """Return the seconds from a time, or from the start of a job if that is later, to its time limit; 0 after that."""
    return math.floor(max(0.0, start + 60.0 * minutes_of(planned) - max(start, now)) + 0.5)


def count_left(usage: Usage, item: int, seconds: float) -> None:
    """Add processor-seconds that are left to a running job, or subtract them."""
    for row in usage.rows[item]:
        if row >= 0:
            usage.limits[row].left += seconds


def at_minutes(usage: Usage, item: int, minutes: float) -> bool:
    """
    Return whether a job with this many processor-minutes would exceed a limit if it started.

    Those that are left to running jobs are rounded down (`acct_policy_job_runnable_post_select` in Slurm's
    acct_policy.c).
    """
    for row in usage.rows[item]:
        if row >= 0:
            one = usage.limits[row]
            if minutes > one.most_minutes - math.floor(one.left / 60.0):
                return True
    return False


def forget_tests(usage: Usage) -> None:
    """Start to count the jobs of each user that a cycle tests."""
    for row in range(usage.limits.size):
        usage.limits[row].tested = 0


def may_test(usage: Usage, item: int, most: int) -> bool:
    """Count a test of a job for its user, unless the user had ``most`` of them in this cycle; return whether it is."""
    row = usage.rows[item, OF_USER]
    if row < 0:
        return True
    usage.limits[row].tested += 1
    return usage.limits[row].tested <= most
