"""Who has used how much, for fair share, and who is at a limit: accounts of users, groups and partitions."""

import math
from typing import NamedTuple

import numpy as np

from swflow.kernels import Handle, Kernel, call_formula, lean

#: An account: processor-seconds used up to ``since``, decayed and in units of the half-life where there is one, and
#: the processors that run for it from then on; its share of the whole as it was asked for last, and when that was.
ACCOUNT = np.dtype(
    [
        ("seconds", np.float64),
        ("processors", np.int64),
        ("since", np.float64),
        ("share", np.float64),
        ("at", np.float64),
    ]
)

#: Running jobs and processors of an account at one machine, and the most that it may have there.
LIMIT = np.dtype([("jobs", np.int64), ("processors", np.int64), ("most_jobs", np.int64), ("most_processors", np.int64)])

#: Whose a job is: the rows of its accounts, -1 where unknown, and what else formulas know of them.
OWNER = np.dtype(
    [
        ("user", np.int64),
        ("group", np.int64),
        ("partition", np.int64),
        ("partition_id", np.float64),
        ("user_share", np.float64),
        ("group_share", np.float64),
    ]
)

#: More than any job or machine has.
UNLIMITED = 1 << 60

#: Of the accounts: that of everybody together.
_EVERYBODY = 0


class Owners(NamedTuple):
    """
    Whose the jobs are.

    Parameters
    ----------
    user, group, partition : int64 array of shape (jobs,)
        Numbers from 0, without gaps; -1 where unknown. Who is not known has no usage and no limit.
    partition_id : float64 array of shape (jobs,)
        As in the log, NaN where unknown.
    user_share, group_share : float64 array of shape (jobs,)
        The shares that they are entitled to, of 1.
    """

    user: np.ndarray
    group: np.ndarray
    partition: np.ndarray
    partition_id: np.ndarray
    user_share: np.ndarray
    group_share: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many users, groups and partitions there are."""
        return tuple(int(of.max(initial=-1)) + 1 for of in (self.user, self.group, self.partition))  # type: ignore[return-value]


class Usage(NamedTuple):
    """The accounts of all machines together, whose each job is, and the limits of a machine."""

    accounts: np.ndarray
    owners: np.ndarray
    limits: np.ndarray


def new_usage(owners: Owners | None, limits: np.ndarray | None, items: np.ndarray | None, since: float) -> Usage:
    """
    Make accounts in which nothing is used.

    Parameters
    ----------
    owners : Owners, optional
        Without them there are no accounts.
    limits : int64 array of shape (accounts, 2), optional
        The most running jobs and processors: of everybody together, then of every user, group and partition.
    items : int64 array, optional
        The job of each item, if an item is not a job.
    since : float
        A time before the first event, seconds.
    """
    if owners is None:
        return Usage(np.zeros(0, ACCOUNT), np.zeros(0, OWNER), np.zeros(0, LIMIT))
    users, groups, partitions = owners.sizes
    accounts = np.zeros(1 + users + groups + partitions, ACCOUNT)
    accounts["since"], accounts["at"] = since, -np.inf
    table = np.zeros(owners.user.size, OWNER)
    first = 1
    for name, of, count in zip(("user", "group", "partition"), owners, (users, groups, partitions), strict=False):
        table[name] = np.where(of < 0, -1, of + first)
        first += count
    for name in ("partition_id", "user_share", "group_share"):
        table[name] = getattr(owners, name)
    counted = np.zeros(0 if limits is None else accounts.size, LIMIT)
    if limits is not None:
        counted["most_jobs"], counted["most_processors"] = limits[:, 0], limits[:, 1]
    return Usage(accounts, table if items is None else table[items], counted)


# -- usage


@lean
def _used(accounts: np.ndarray, row: int, now: float, half_life: float) -> float:
    """Return what an account has used by now; with a half-life in units of half_life / log(2) processor-seconds."""
    one = accounts[row]
    passed = now - one.since
    if passed <= 0:
        return one.seconds
    if half_life == np.inf:
        return one.seconds + one.processors * passed
    kept = math.exp2(-passed / half_life)
    return one.seconds * kept + one.processors * (1.0 - kept)


@lean
def share_of(accounts: np.ndarray, row: int, now: float, half_life: float) -> float:
    """Return an account's usage by now as a share of everybody's; 0 as long as nobody has used anything."""
    if row < 0:
        return 0.0
    one = accounts[row]
    if one.at != now:  # a start at this instant changes nothing yet
        whole = accounts[_EVERYBODY]
        if whole.at != now:
            whole.share = _used(accounts, _EVERYBODY, now, half_life)
            whole.at = now
        one.share = _used(accounts, row, now, half_life) / whole.share if whole.share > 0 else 0.0
        one.at = now
    return one.share


@lean
def _book(accounts: np.ndarray, row: int, now: float, half_life: float, processors: int) -> None:
    """Let an account have more processors from now on."""
    if row >= 0:
        one = accounts[row]
        one.seconds = _used(accounts, row, now, half_life)
        one.since = now
        one.processors += processors


@lean
def _count(limits: np.ndarray, row: int, jobs: int, processors: int) -> None:
    if row >= 0:
        limits[row].jobs += jobs
        limits[row].processors += processors


@lean
def book_use(usage: Usage, item: int, now: float, half_life: float, jobs: int, processors: int) -> None:
    """Note that a job started (1 job and its processors), or ended (-1 and minus them)."""
    owner = usage.owners[item]
    _book(usage.accounts, _EVERYBODY, now, half_life, processors)
    _book(usage.accounts, owner.user, now, half_life, processors)
    _book(usage.accounts, owner.group, now, half_life, processors)
    if usage.limits.size > 0:
        _count(usage.limits, owner.user, jobs, processors)
        _count(usage.limits, owner.group, jobs, processors)
        _count(usage.limits, owner.partition, jobs, processors)


# -- limits


@lean
def _passes(limits: np.ndarray, row: int, processors: int) -> bool:
    if row < 0:
        return False
    one = limits[row]
    return one.jobs >= one.most_jobs or one.processors + processors > one.most_processors


@lean
def at_limit(usage: Usage, item: int, processors: int) -> bool:
    """Return whether a job may not start now whatever is free, since its user, group or partition has too much."""
    owner = usage.owners[item]
    return (
        _passes(usage.limits, owner.user, processors)
        or _passes(usage.limits, owner.group, processors)
        or _passes(usage.limits, owner.partition, processors)
    )


# -- formulas that know of owners


@lean
def key_of_owner(
    formula: int,
    now: float,
    submit: float,
    planned: float,
    processors: int,
    attributes: np.ndarray,
    usage: Usage,
    item: int,
    machine: int,
    half_life: float,
) -> float:
    """Return the key of a job by the address of a formula that knows of owners."""
    owner = usage.owners[item]
    key = call_formula(
        formula,
        (
            now, submit, planned, float(processors), attributes[0], attributes[1], attributes[2], attributes[3],
            attributes[4], owner.partition_id, share_of(usage.accounts, owner.user, now, half_life),
            share_of(usage.accounts, owner.group, now, half_life), owner.user_share, owner.group_share, float(machine),
        ),
    )  # fmt: skip
    return math.inf if math.isnan(key) else key


def keys_of_owners(
    formula: int,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray,
    owners: np.ndarray,
) -> np.ndarray:
    """
    Return the keys of all jobs under a formula that knows of owners, but of nothing that changes.

    Parameters
    ----------
    formula : int
        Its address.
    submit, planned, processors : arrays of shape (jobs,)
        Submit times and planned run times in seconds, and processors.
    attributes : float64 array of shape (jobs, 5)
        User, group, queue, executable and job id.
    owners : array of `OWNER` of shape (jobs,)
        Whose they are.

    Returns
    -------
    float64 array of shape (jobs,)
        The smallest is served first.
    """
    keys = np.empty(submit.size)
    _FILL_KEYS_OF_OWNERS(
        formula, Handle([_OwnedColumns(submit, planned, processors.astype(np.int64), attributes, owners, keys)])
    )
    return keys


class _OwnedColumns(NamedTuple):
    """What a formula takes of all jobs, and what it gives."""

    submit: np.ndarray
    planned: np.ndarray
    processors: np.ndarray
    attributes: np.ndarray
    owners: np.ndarray
    keys: np.ndarray


def _fill_keys_of_owners(formula: int, jobs: _OwnedColumns) -> int:
    for job in range(jobs.keys.size):
        owner, at, submit = jobs.owners[job], jobs.attributes[job], jobs.submit[job]
        jobs.keys[job] = call_formula(
            formula,
            (
                submit, submit, jobs.planned[job], float(jobs.processors[job]), at[0], at[1], at[2], at[3], at[4],
                owner.partition_id, 0.0, 0.0, owner.user_share, owner.group_share, 0.0,
            ),
        )  # fmt: skip
    return 0


_FILL_KEYS_OF_OWNERS = Kernel(_fill_keys_of_owners)
