"""Job ownership: fair share, limits and partitions, from names in the options to numbers of a workload."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs.eligibility import demands_of, require_demands
from swflow.jobs.table import Workload, has_values
from swflow.scheduling.nested_options import (
    LIMITED_COLUMNS,
    LIMITS,
    USER_LIMITS,
    USERS,
    WITH_USER_LIMITS,
    Account,
    Cluster,
    Limits,
    accounts_above,
)
from swflow.scheduling.orders.keys import mentioned
from swflow.scheduling.orders.multifactor import formula_of
from swflow.scheduling.orders.replaced_limits import ASSOCIATION, with_replaced
from swflow.scheduling.orders.vocabulary import OF_ACCOUNTS, OF_TREE
from swflow.scheduling.state.accounts import UNLIMITED, AccountTree, Owners, rows_of

#: The columns of the job table with the owners of a job.
COLUMNS = {"user": "user_id", "group": "group_id", "partition": "partition_id", "qos": "queue_id"}

#: The number of a name without jobs: no job has it.
NO_JOB = -1

#: The command that leaves out jobs.
SELECT = "with swflow select --where"

#: The limits of a machine and their rows of each job; None if there are no limits.
AppliedLimits = tuple[np.ndarray | None, np.ndarray | None]

#: The kinds of accounts that each variable of formulas needs.
_NEEDS = {"user_usage": ("user",), "user_share": ("user",), "group_usage": ("group",), "group_share": ("group",),
          "fair_tree": ("user", "group"), "association_usage": ("user", "group"),
          "partition_id": ("partition",)}  # fmt: skip


class Names:
    """The users, groups, partitions and QOS of a workload: their names and numbers, and which kinds it records."""

    def __init__(self, workload: Workload) -> None:
        self.log, self.header, jobs = workload.name, workload.header, workload.jobs
        self.recorded = frozenset(kind for kind, column in COLUMNS.items() if has_values(jobs, column))
        self.has_jobs = not jobs.is_empty()
        self._known: dict[str, dict[str, int]] = {}

    def known(self, kind: str) -> dict[str, int]:
        """Return the numbers of all names of a kind."""
        if kind not in self._known:
            names = self.header.names_of(COLUMNS[kind])
            self._known[kind] = {text: number for number, text in names.items()}
        return self._known[kind]

    def number_of(self, kind: str, name: str) -> int:
        """Return the number of a name, or of a number as text; `NO_JOB` if the workload does not have it."""
        known = self.known(kind)
        if name in known:
            return known[name]
        return int(name) if name.isdecimal() else NO_JOB

    def name_of(self, kind: str, number: int) -> str:
        """Return the name of a user or group, or its number as text."""
        return self.header.names_of(COLUMNS[kind]).get(number, str(number))

    def shown(self, kind: str, number: int) -> str:
        """Return a number with its name, if it has one."""
        name = self.header.names_of(COLUMNS[kind]).get(number)
        return f"{name} ({number})" if name else str(number)


class _Accounts:
    """The owners of the jobs that are simulated, with their shares, limits and clusters."""

    def __init__(
        self,
        jobs: pl.DataFrame,
        scheduler: Any,
        names: Names,
        arrays: tuple[np.ndarray, np.ndarray] | None,
        planned: np.ndarray,
    ) -> None:
        self.names, self.jobs, self.arrays, self.planned = names, jobs, arrays, planned
        self.replaces = scheduler.is_slurm  # whether limits of partitions and QOS replace others
        self.has_nodes = bool(scheduler.nodes)
        self.cycles_count = _cycles_count(scheduler)
        self.widths = jobs["processors"].to_numpy()
        self.numbers: dict[str, np.ndarray] = {}  # the numbers of each account, in order
        rows = {kind: self._numbered(kind) for kind in ("user", "group", "partition")}
        partition = _column(jobs, "partition").cast(pl.Float64()).fill_null(float("nan")).to_numpy()
        shares = [self._shares(kind, rows[kind], getattr(scheduler, f"{kind}_shares")) for kind in ("user", "group")]
        tasks = np.full(jobs.height, -1) if arrays is None else arrays[0]
        limits = [queue.limits or {} for queue in scheduler.queues]
        self.more: dict[str, np.ndarray] = {}  # the further accounts of each job
        self.pairs: dict[str, np.ndarray] = {}  # the partition or QOS of each pair of it and a user
        if any("qos" in one for one in limits):
            rows["qos"] = self.more["qos"] = self._numbered("qos")
        for kind in WITH_USER_LIMITS:
            if any(_named_limits(one.get(kind, {}), USER_LIMITS) for one in limits):
                self.more[f"user of {kind}"], self.pairs[kind] = _pairs(rows[kind], rows["user"])
        if any(_users_in(one) for one in limits):
            self.more[ASSOCIATION], self.pairs[ASSOCIATION] = _pairs(rows["group"], rows["user"])
        self.rows = rows
        groups = [entry for one in limits for entry in one.get("group", {}).items()]
        self.named = sorted({name for name, limit in groups if isinstance(limit, Mapping)})
        self.above = self._above(scheduler.accounts) if scheduler.accounts else None
        self.needs = self._needed(limits)
        self.owners = Owners(
            np.column_stack([*(rows[kind] for kind in ("user", "group", "partition")), tasks, *self.more.values()]),
            np.column_stack([partition, *shares]),
            self.above,
            needs=self.needs,
        )

    def _needed(self, limits: Sequence[Limits]) -> np.ndarray | None:
        """Return what each job has of the quantities `LIMITED_COLUMNS`; None if no limit mentions them."""
        given = {
            name
            for name in LIMITED_COLUMNS
            for one in limits
            if any(_named_limits(of_kind, (name, f"user_{name}")) for of_kind in one.values())
        }
        missing = sorted(given.difference(self.jobs.columns))
        if missing:
            raise SwflowError(f"limits: {missing[0]}: {self.names.log} has no column {missing[0]}; leave the limit out")
        if not given:
            return None
        names = sorted(given)
        require_demands(self.jobs, names, self.names.log)
        needs = np.zeros((self.jobs.height, len(LIMITED_COLUMNS)), np.int64)
        columns = [LIMITED_COLUMNS.index(name) for name in names]
        units = demands_of(self.jobs, names, (), self.names.log)
        assert units is not None
        needs[:, columns] = units
        return needs

    def _numbered(self, kind: str) -> np.ndarray:
        """Return the account of each job, from 0, -1 where unknown."""
        column = _column(self.jobs, kind)
        known = column.is_not_null().to_numpy()
        rows = np.full(len(column), -1)
        self.numbers[kind], rows[known] = np.unique(column.drop_nulls().to_numpy(), return_inverse=True)
        return rows

    def _above(self, accounts: Mapping[str, Account]) -> np.ndarray:
        """Return the accounts with limits at and above each job's group, by their numbers in ``named``."""
        chains = [
            [self.named.index(one) for one in accounts_above(accounts, name) if one in self.named]
            for name in self._names("group")
        ]
        above = np.full((len(chains) + 1, max(map(len, chains), default=0)), -1)  # the last one: an unknown group
        for row, chain in enumerate(chains):
            above[row, : len(chain)] = chain
        return above[self.rows["group"]]

    def _names(self, kind: str) -> list[str]:
        """Return the names of users or groups, by their accounts."""
        return [self.names.name_of(kind, number) for number in self.numbers[kind].tolist()]

    def with_usage(self, accounts: Mapping[str, Account], has_tree: bool) -> Owners:
        """Return the owners, with their usage before the log, and with the tree of accounts."""
        owners = self.owners
        used = {(name, user): most for name, one in accounts.items() for user, most in one.get("usage", {}).items()}
        if not (used or has_tree):
            return owners
        groups, people, pairs = self._names("group"), self._names("user"), dict[tuple[str, str], int]()
        if has_tree:
            leaf, first = _pairs(self.rows["group"], self.rows["user"])
            users = np.full(first.size, -1)
            users[leaf[leaf >= 0]] = self.rows["user"][leaf >= 0]
            known = [(groups[group], people[user]) for group, user in zip(first.tolist(), users.tolist(), strict=True)]
            pairs = {pair: number for number, pair in enumerate(dict.fromkeys([*known, *used]))}
            owners = owners._replace(tree=AccountTree(accounts, list(pairs), leaf))
        if not used:
            return owners
        of_group, of_user = ({name: row for row, name in enumerate(names)} for names in (groups, people))
        rows = [
            [of_user.get(pair[1], -1), of_group.get(pair[0], -1), pairs.get(pair, -1), seconds]
            for pair, seconds in used.items()
        ]
        return owners._replace(used=np.array(rows, np.float64))

    def _shares(self, kind: str, rows: np.ndarray, given: Mapping[str, float] | None) -> np.ndarray:
        """
        Return the share of each job's owner, of 1; an unknown owner counts as one with share 1.

        Owners without jobs, of which a site has many, hold their shares, too.
        """
        shares, absent = np.ones(self.numbers[kind].size), 0.0
        for name, share in (given or {}).items():
            owned = self.numbers[kind] == self.names.number_of(kind, name)
            shares[owned] = share
            absent += 0.0 if owned.any() else share
        total = shares.sum() + absent or 1.0
        return np.append(shares, 1.0)[rows] / total  # the last one is for unknown owners

    def require(self, kinds: Iterable[str], option: str) -> None:
        """Raise an error if the log records the user, group or partition of no job."""
        for kind in kinds:
            if self.names.has_jobs and kind not in self.names.recorded:
                raise SwflowError(f"{option}: {self.names.log} does not say the {kind} of any job")

    def limits(self, limits: Limits | None, there: np.ndarray) -> AppliedLimits:
        """
        Return the limits of `LIMITS`, shape (accounts and more, limits), and the rows of those that apply to each job.

        Raise an error if one of the jobs ``there`` is wider than its limits allow.
        """
        limits = limits or {}
        if not limits and self.arrays is None and not self.cycles_count:
            return None, None
        self.require(limits, "limits")
        kinds, most, bounds = self._bounds(limits)
        for kind, rows in zip(kinds, bounds.T, strict=True):
            self._require_room(kind, most, rows, there)
        return most, bounds

    def beyond(self, limits: Limits | None) -> np.ndarray:
        """Return which jobs can never start, because one of their limits is smaller than what they need."""
        found, (_, most, bounds) = np.zeros(self.jobs.height, np.bool_), self._bounds(limits or {})
        for column, needed, _ in self._needs():
            found |= (needed[:, None] > np.append(most[:, column], UNLIMITED)[bounds]).any(axis=1)
        return found

    def _bounds(self, limits: Limits) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Return the kind of each account of a job, all limits, and the row of each job's accounts that apply to it."""
        tables, levels = list(self._tables(limits)), 0 if self.above is None else self.above.shape[1]
        kinds = [kind for kind, _ in tables[: len(tables) - (self.above is not None)]] + ["group"] * levels
        most = np.concatenate([np.full((1, len(LIMITS)), UNLIMITED), *(most for _, most in tables)])
        rows = rows_of(self.owners)
        return (kinds, *(with_replaced(most, rows, kinds, self.has_nodes) if self.replaces else (most, rows)))

    def _tables(self, limits: Limits) -> Iterator[tuple[str, np.ndarray]]:
        """Yield each kind of account with its limits, shape (accounts, limits), in the order of `Owners.numbers`."""
        for kind in ("user", "group", "partition"):
            yield kind, self._most(kind, limits.get(kind, {}), LIMITS)
        arrays = np.zeros(0, np.int64) if self.arrays is None else self.arrays[1]
        most = np.full((len(arrays), len(LIMITS)), UNLIMITED)
        most[:, 0] = arrays
        yield "array", most
        for name in self.more:
            if name == ASSOCIATION:
                yield name, self._most_of_associations(limits)
                continue
            kind = name.removeprefix("user of ")
            most = self._most(kind, limits.get(kind, {}), LIMITS if name == kind else USER_LIMITS)
            yield name, most if name == kind else most[self.pairs[kind]]
        if self.above is not None:
            own = limits.get("group", {})
            named = [limit if isinstance(limit := own.get(name), Mapping) else {} for name in self.named]
            most = np.array([[limit.get(what, UNLIMITED) for what in LIMITS] for limit in named])
            yield "group", most.reshape(-1, len(LIMITS))[: self.above.max(initial=-1) + 1]

    def _most(self, kind: str, of_kind: Mapping[str, int | Mapping[str, int]], quantities: Sequence[str]) -> np.ndarray:
        """Return the limits of each account of a kind, shape (accounts, limits): its own, or those of all."""
        of_all = {what: limit for what, limit in of_kind.items() if not isinstance(limit, Mapping)}
        most = np.full((self.numbers[kind].size, len(LIMITS)), [of_all.get(what, UNLIMITED) for what in quantities])
        for name, own in of_kind.items():
            if isinstance(own, Mapping):
                row = self.numbers[kind] == self.names.number_of(kind, name)
                most[row] = [own.get(what, of_all.get(what, UNLIMITED)) for what in quantities]
        return most

    def _most_of_associations(self, limits: Limits) -> np.ndarray:
        """Return the limits of each user in a group, shape (associations, limits)."""
        most = np.full((self.pairs[ASSOCIATION].size, len(LIMITS)), UNLIMITED)
        first = self.more[ASSOCIATION]
        users = np.full(most.shape[0], -1)
        users[first[first >= 0]] = self.rows["user"][first >= 0]
        groups = self.numbers["group"][self.pairs[ASSOCIATION]]
        people = self.numbers["user"][users]
        for (group, user), own in _users_in(limits).items():
            is_own = (groups == self.names.number_of("group", group)) & (people == self.names.number_of("user", user))
            most[is_own] = [own.get(what, UNLIMITED) for what in LIMITS]
        return most

    def _require_room(self, kind: str, most: np.ndarray, rows: np.ndarray, there: np.ndarray) -> None:
        """Raise an error if one of the jobs ``there`` needs more than the limit of its account allows."""
        for column, needed, what in self._needs():
            allowed = np.append(most[:, column], UNLIMITED)[rows]
            wide = np.flatnonzero(there & (needed > allowed))
            if wide.size:
                job = int(wide[0])
                raise SwflowError(
                    f"limits: {kind}: {wide.size:,} jobs can never start, the first is job {self.jobs['job_id'][job]} "
                    f"with {needed[job]:,} of {allowed[job]:,} {what}; raise the limit, or leave them out {SELECT}"
                )

    def _needs(self) -> list[tuple[int, np.ndarray, str]]:
        """Return the columns of limits that a single job can exceed, with what each job needs."""
        minutes = self.widths * np.maximum(self.planned // 60, 1).astype(np.int64)
        further = () if self.needs is None else self.needs.T
        return [
            (0, np.ones_like(self.widths), "jobs"),
            (1, self.widths, "processors"),
            (2, minutes, "processor-minutes"),
            *((LIMITS.index(name), needs, name) for name, needs in zip(LIMITED_COLUMNS, further, strict=False)),
        ]

    def clusters(self, clusters: Sequence[Cluster]) -> np.ndarray:
        """Return the index of each job's cluster, by its partition."""
        cluster_of: dict[int, int] = {}
        for index, cluster in enumerate(clusters):
            for name in cluster["partition"]:
                number = self.names.number_of("partition", name)
                if number != NO_JOB and cluster_of.setdefault(number, index) != index:
                    raise SwflowError(f"clusters: partition: {name} is named by two clusters; name it once")
        column = _column(self.jobs, "partition")
        found = column.replace_strict(cluster_of, default=None, return_dtype=pl.Int64)
        missing = found.is_null()
        if missing.any():
            job = int(np.argmax(missing.to_numpy()))
            number = column[job]
            what = "no partition" if number is None else f"partition {self.names.shown('partition', number)}"
            raise SwflowError(
                f"clusters: partition: {missing.sum():,} jobs of {self.names.log} have no cluster, the first "
                f"is job {self.jobs['job_id'][job]} with {what}; name it in clusters, or leave these jobs out {SELECT}"
            )
        return found.to_numpy()


def _users_in(limits: Limits) -> dict[tuple[str, str], Mapping[str, int]]:
    """Return the limits of named users in groups, by the names of both."""
    return {
        (group, user): own
        for group, limit in limits.get("group", {}).items()
        for user, own in (limit.get(USERS, {}) if isinstance(limit, Mapping) else {}).items()  # type: ignore[union-attr]
    }


def _named_limits(limits: Mapping[str, Any], quantities: Sequence[str]) -> bool:
    """Return whether the limits of a kind, for all or by name, mention one of these quantities."""
    return any(
        _named_limits(one, quantities) if isinstance(one, Mapping) else what in quantities
        for what, one in limits.items()
    )


def _pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pair of each job, from 0, -1 where one of both is unknown; and the first account of each pair."""
    known = (first >= 0) & (second >= 0)
    rows = np.full(first.size, -1)
    found, rows[known] = np.unique(np.column_stack([first, second])[known], axis=0, return_inverse=True)
    return rows, found[:, 0]


def jobs_within_limits(workload: Workload, scheduler: Any, planned: np.ndarray) -> pl.Series:
    """Return which jobs, with their ``planned`` run times (s), no limit of a scheduler and its clusters forbids."""
    jobs = workload.jobs
    limits = [queue.limits for queue in scheduler.queues if queue.limits]
    if not limits:
        return pl.repeat(True, jobs.height, eager=True)
    accounts = _Accounts(jobs, scheduler, Names(workload), None, planned)
    return pl.Series(~np.any([accounts.beyond(one) for one in limits], axis=0))


@dataclass(frozen=True)
class Ownership:
    """The options of all queues that name users, groups or partitions, for the jobs of a workload."""

    orders: tuple[tuple[Any, Any], ...]  # order and backfill order of each queue, with the weights as a formula
    limits: tuple[AppliedLimits, ...]  # the limits of each queue, as `_Accounts.limits` returns them
    owners: Owners | None = None  # if an order, a limit or the dispatch needs it
    clusters: np.ndarray | None = None  # the cluster of each job's partition, from 0, if jobs are dispatched by it


def ownership_of(
    names: Names,
    jobs: pl.DataFrame,
    scheduler: Any,
    arrays: tuple[np.ndarray, np.ndarray] | None,
    planned: np.ndarray,
) -> Ownership:
    """
    Return the ownership of the jobs that are simulated, and the options of the queues that depend on it.

    ``arrays`` is what `swflow.jobs.eligibility.array_limits` returns, ``planned`` are the planned run times.

    Raises
    ------
    SwflowError
        If the log does not record an owner that is needed, or a job needs more than its cluster or its limit.
    """
    formulas = [
        [formula_of(order, scheduler.priority, names.number_of) for order in (queue.order, queue.backfill_order)]
        for queue in scheduler.queues
    ]
    orders = tuple((order, order if second is None else second) for order, second in formulas)
    used = {name for pair in orders for order in pair for name in mentioned(order)}.intersection(OF_ACCOUNTS)
    given = [queue.limits for queue in scheduler.queues]
    counts = arrays is not None or _cycles_count(scheduler)
    if not (used or any(given) or counts or scheduler.dispatch == "partition"):
        return Ownership(orders, ((None, None),) * len(orders))
    accounts = _Accounts(jobs, scheduler, names, arrays, planned)
    for name in sorted(used & _NEEDS.keys()):
        accounts.require(_NEEDS[name], name)
    clusters = accounts.clusters(scheduler.clusters) if scheduler.dispatch == "partition" else None
    limits = []
    for index, most in enumerate(given):
        there = clusters == index if clusters is not None else np.full(jobs.height, not scheduler.clusters)
        limits.append(accounts.limits(most, there))
    owners = accounts.with_usage(scheduler.accounts or {}, bool(used & OF_TREE))
    return Ownership(orders, tuple(limits), owners, clusters)


def _cycles_count(scheduler: Any) -> bool:
    """Return whether cycles of backfill slurm count the jobs of users or partitions that they test."""
    return bool(scheduler.cycles["bf_max_job_user"] or scheduler.cycles["bf_max_job_part"])


def _column(jobs: pl.DataFrame, kind: str) -> pl.Series:
    name = COLUMNS[kind]
    return jobs[name] if name in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.Int64())
