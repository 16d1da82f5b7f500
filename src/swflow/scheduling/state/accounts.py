"""Accounts of the owners of jobs: usage for fair share, and limits of running jobs and processors."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.state import operations

#: An account: processor-seconds used up to ``since``, decayed and in units of the half-life if there is one; its
#: running processors since then; its last computed share of the usage of all, and the time of that.
ACCOUNT = record("seconds since share at", "processors")

#: Running jobs and processors of an account at one machine, and the limits of both.
LIMIT = record("", "jobs processors most_jobs most_processors")

#: The limits of `Usage.limits` among those of a machine; the others are of `Usage.most_needs`.
_OF_RECORD = 3

#: A limit that no job or machine reaches.
UNLIMITED = 1 << 60

#: The row of the account of all together, and the columns of `Usage.rows` with the accounts of users, groups and
#: partitions.
ALL, OF_USER, OF_GROUP, OF_PARTITION = 0, 0, 1, 2


class AccountTree(NamedTuple):
    """
    A tree of accounts, which are groups, and of their users.

    ``accounts`` is the option of the scheduler, and ``pairs`` are the account and the user of the leaves with jobs,
    whose number among these ``leaf`` has for each job, -1 where one of both is unknown.
    """

    accounts: Mapping[str, Mapping[str, Any]]
    pairs: Sequence[tuple[str, str]]
    leaf: np.ndarray


class Owners(NamedTuple):
    """
    The owners of jobs.

    ``numbers`` are int64 of shape (jobs, 4): the user, group, partition and job array of each job, each numbered from 0
    without gaps; -1 where unknown. Unknown owners have no usage and no limit. ``variables`` are float64 of shape
    (jobs, 3), for formulas: the partition as in the log, NaN where unknown; the shares of the user and of the group,
    which add up to 1 over all users, and over all groups. ``numbers`` may have more columns, of other accounts with
    limits. ``above`` has the accounts at and above each job's group, shape (jobs, levels), numbered from 0; -1: none.
    ``used`` are float64 of shape (users in groups, 4) with the usage before the first submission: the numbers of the
    user, the group, and of both in the ``tree``, -1 where there are no jobs, and processor-seconds. A tree is for the
    variables `swflow.scheduling.orders.vocabulary.OF_TREE`. ``needs`` are int64 of shape (jobs, columns): what each job
    has of further quantities with limits, such as GPUs; None if there are no such limits.
    """

    numbers: np.ndarray
    variables: np.ndarray
    above: np.ndarray | None = None
    tree: AccountTree | None = None
    used: np.ndarray | None = None
    needs: np.ndarray | None = None


class Usage(NamedTuple):
    """The accounts of all machines together, the owners of each job, and the limits of a machine."""

    accounts: np.ndarray
    rows: np.ndarray  # rows of each job's user, group, partition, array and more; -1 where unknown
    variables: np.ndarray  # the variables of `Owners`; one row of NaN if there are none
    limits: np.ndarray  # the limits of the accounts, and more that apply to some of their jobs; empty if there are none
    needs: np.ndarray  # int64 (jobs, further quantities): what each job has of them
    used_needs: np.ndarray  # int64 (accounts, further quantities): what the running jobs of each account have
    most_needs: np.ndarray  # the same: the limits
    bounds: np.ndarray  # int64, as ``rows``: the row of the limits that apply to each job, -1: none


#: The further quantities of `Usage` if none has limits.
NO_NEEDS = np.zeros((0, 0), np.int64)


@dataclass(frozen=True, eq=False)
class Accounting:
    """
    How usage and limits are counted.

    ``new_usage`` returns the usage of a `swflow.scheduling.problem.Problem` before the first event, without limits;
    ``at_machine`` returns it with the limits of a machine and the rows of these that apply to each job, by default its
    accounts. The functions of ``operations`` keep account.
    """

    new_usage: Callable[[Any], Any]
    at_machine: Callable[[Any, np.ndarray | None, np.ndarray | None], Any]
    operations: dict[Any, Any]


def new_usage(owners: Owners | None, items: np.ndarray | None, since: float, half_life: float = np.inf) -> Usage:
    """Return accounts with their usage at the time ``since``, without limits; ``items`` has the job of each item."""
    none = np.zeros(0, LIMIT)
    if owners is None:
        return Usage(np.zeros(0, ACCOUNT), np.empty((0, 4), np.int64), np.full((1, 3), np.nan), none, *4 * (NO_NEEDS,))
    sizes, rows = owners.numbers.max(axis=0, initial=-1) + 1, rows_of(owners)
    above = -1 if owners.above is None else owners.above.max(initial=-1)
    accounts = np.zeros(2 + sizes.sum() + above, ACCOUNT)
    accounts["since"], accounts["at"] = since, -np.inf
    if owners.used is not None:
        who, seconds = owners.used[:, :2].astype(np.int64), used_before(owners.used, half_life)
        accounts["seconds"][ALL] = seconds.sum()
        for numbers, first in zip(who.T, (1, 1 + sizes[0]), strict=True):
            np.add.at(accounts["seconds"], first + numbers[numbers >= 0], seconds[numbers >= 0])
    chosen = slice(None) if items is None else items
    needs = NO_NEEDS if owners.needs is None else owners.needs[chosen]
    return Usage(accounts, rows[chosen], owners.variables[chosen], none, needs, NO_NEEDS, NO_NEEDS, NO_NEEDS)


def rows_of(owners: Owners) -> np.ndarray:
    """Return the rows of the accounts of each job, also of those above its group; -1 where unknown."""
    sizes = owners.numbers.max(axis=0, initial=-1) + 1
    rows = np.where(owners.numbers < 0, -1, owners.numbers + 1 + np.cumsum(sizes) - sizes)
    if owners.above is not None:
        rows = np.column_stack([rows, np.where(owners.above < 0, -1, owners.above + 1 + sizes.sum())])
    return rows


def used_before(used: np.ndarray, half_life: float) -> np.ndarray:
    """Return the usage before the first submission of `Owners`, in the units of accounts."""
    return used[:, 3] * math.log(2) / half_life if half_life < np.inf else used[:, 3]


def arguments_of(problem: Any) -> tuple[Owners | None, np.ndarray | None, float]:
    """Return the first arguments of `new_usage` for a problem."""
    items = problem.items
    jobs = items.job if items.first.size else None
    return problem.accounts, jobs, items.submit.min() if items.submit.size else 0.0


def _new_usage(problem: Any) -> Usage:
    return new_usage(*arguments_of(problem), problem.policy.half_life or np.inf)


def limits_of(most: np.ndarray | None, kind: np.dtype = LIMIT) -> np.ndarray:
    """Return the limits of accounts, given those of running jobs and processors in the first columns."""
    limits = np.zeros(0 if most is None else len(most), kind)
    if most is not None:
        limits["most_jobs"], limits["most_processors"] = most.T[:2]
    return limits


def with_bounds(usage: Any, most: np.ndarray | None, bounds: np.ndarray | None) -> Any:
    """Return usage with the limits of further quantities at a machine, and the limits that apply to each job."""
    if most is not None:
        rows = usage.rows if bounds is None else bounds
        has_limit = np.append((most < UNLIMITED).any(axis=1), False)
        usage = usage._replace(bounds=np.where(has_limit[rows], rows, -1))
    if most is None or not usage.needs.shape[1]:
        return usage._replace(needs=NO_NEEDS, used_needs=NO_NEEDS, most_needs=NO_NEEDS)
    further = np.ascontiguousarray(most[:, _OF_RECORD:])
    return usage._replace(used_needs=np.zeros_like(further), most_needs=further)


def _at_machine(usage: Usage, most: np.ndarray | None, bounds: np.ndarray | None) -> Usage:
    return with_bounds(usage._replace(limits=limits_of(most)), most, bounds)


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
        whole = accounts[ALL]
        if whole.at != now:
            whole.share = _used(accounts, ALL, now, half_life)
            whole.at = now
        if row != ALL:
            one.share = _used(accounts, row, now, half_life) / whole.share if whole.share > 0 else 0.0
            one.at = now
    return one.share


def book(accounts: np.ndarray, row: int, now: float, half_life: float, processors: int) -> None:
    """Change the number of an account's running processors from now on."""
    if row >= 0:
        one = accounts[row]
        one.seconds = _used(accounts, row, now, half_life)
        one.since = now
        one.processors += processors


def count_running(usage: Any, item: int, jobs: int, processors: int) -> None:
    """Count a start (1 job and its processors) or an end (-1 and minus its processors) for limits."""
    if usage.limits.size > 0:
        for row in usage.rows[item]:
            if row >= 0:
                usage.limits[row].jobs += jobs
                usage.limits[row].processors += processors
                for column in range(usage.needs.shape[1]):
                    usage.used_needs[row, column] += jobs * usage.needs[item, column]


def at_limit(usage: Any, item: int, processors: int) -> bool:
    """Return whether a job may not start now because its user, group, partition or array would exceed a limit."""
    for column in range(usage.rows.shape[1]):
        bound = usage.bounds[item, column]
        if bound >= 0:
            one, most = usage.limits[usage.rows[item, column]], usage.limits[bound]
            if one.jobs >= most.most_jobs or one.processors + processors > most.most_processors:
                return True
    return False


def at_needs(usage: Any, item: int) -> bool:
    """Return whether a job would exceed a limit of further quantities, such as GPUs, if it started now."""
    for column in range(usage.needs.shape[1]):
        needed = usage.needs[item, column]
        for account in range(usage.rows.shape[1]):
            bound = usage.bounds[item, account]
            if (
                bound >= 0
                and usage.used_needs[usage.rows[item, account], column] + needed > usage.most_needs[bound, column]
            ):
                return True
    return False


# -- operations


def _note(state: Any, item: int, now: float, sign: int) -> None:
    usage, half_life, processors = state.usage, state.options[0].half_life, sign * state.jobs[item].processors
    if usage.accounts.size > 0:
        for row in (ALL, usage.rows[item, OF_USER], usage.rows[item, OF_GROUP]):
            book(usage.accounts, row, now, half_life, processors)
        count_running(usage, item, sign, processors)


def _note_start(state: Any, item: int, now: float) -> None:
    _note(state, item, now, 1)


def _note_end(state: Any, item: int, now: float) -> None:
    _note(state, item, now, -1)


def _is_limited(state: Any, item: int) -> bool:
    if state.options[0].limits == 0:
        return False
    return at_limit(state.usage, item, state.jobs[item].processors) or at_needs(state.usage, item)


def _usage_of(state: Any, item: int, now: float) -> tuple[float, float, float, float]:
    usage, half_life = state.usage, state.options[0].half_life
    if usage.accounts.size == 0:
        return 0.0, 0.0, 0.0, np.inf
    of_user = share_of(usage.accounts, usage.rows[item, OF_USER], now, half_life)
    return of_user, share_of(usage.accounts, usage.rows[item, OF_GROUP], now, half_life), 0.0, np.inf


#: Usage that is counted, and decays, all the time.
ACCOUNTING = Accounting(
    _new_usage,
    _at_machine,
    {
        operations.note_start: _note_start,
        operations.note_end: _note_end,
        operations.is_limited: _is_limited,
        operations.usage_of: _usage_of,
    },
)
