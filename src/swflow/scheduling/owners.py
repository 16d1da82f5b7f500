"""Whose the jobs are: fair share, limits and partitions, from names in the options to numbers of a workload."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs import Workload
from swflow.log_table import names_of
from swflow.scheduling.options import LIMITED, LIMITS, MULTIFACTOR
from swflow.scheduling.orders import OF_OWNERS, mentioned

#: The columns of the job table that say whose a job is.
_COLUMNS = {"user": "user_id", "group": "group_id", "partition": "partition_id", "qos": "queue_id"}

#: How jobs are left out.
_HINT = "with swflow select --where"

#: The columns that each name of formulas needs.
_NEEDS = {"user_usage": "user", "user_share": "user", "group_usage": "group", "group_share": "group",
          "partition_id": "partition"}  # fmt: skip


def multifactor(priority: Mapping[str, Any], number_of: Callable[[str, str], int]) -> str:
    """
    Write Slurm's multifactor priority as a formula; the queue is served by the smallest value, so that it is negative.

    Age counts up to ``max_age``; the fair-share factor is 2 to the power of minus usage over share (over the damping),
    the size factor is the share of the machine, and partitions and QOS count by their priority over the largest.

    Parameters
    ----------
    priority : mapping
        As `swflow.scheduling.options.PRIORITY` says; a weight that is not named is 0.
    number_of : callable
        The number of a ``partition`` or ``qos``, given that word and the name.

    Returns
    -------
    str

    References
    ----------
    SchedMD, "Multifactor Priority Plugin" and "Classic Fairshare Algorithm", Slurm's manual
    (slurm.schedmd.com/priority_multifactor.html, classic_fair_share.html).

    Examples
    --------
    >>> multifactor({"age": 1000, "fair_share": 500, "max_age": 86400}, lambda kind, name: 0)
    '-(1000 * min(1, wait / 86400) + 500 * 2 ** (-user_usage / user_share))'
    >>> multifactor({"partition": 10, "partition_factors": {"a": 1, "b": 4}}, lambda kind, name: ord(name))
    '-(10 * max(0.25 * (partition_id == 97), 1.0 * (partition_id == 98)))'
    """
    who = priority.get("fair_share_of", "user")
    damping = priority.get("dampening", 1)
    size = "processors / machine_processors"
    factors = {
        "age": f"min(1, wait / {priority.get('max_age', 604800)!r})",
        "fair_share": f"2 ** (-{who}_usage / {who}_share{f' / {damping!r}' if damping != 1 else ''})",
        "size": f"(1 - {size})" if priority.get("favor_small") else size,
    }
    for kind, column in (("partition", "partition_id"), ("qos", "queue_id")):
        points = priority.get(f"{kind}_factors") or {}
        each = [f"{points[name] / max(points.values())!r} * ({column} == {number_of(kind, name)})" for name in points]
        factors[kind] = f"max({', '.join(each if len(each) > 1 else [*each, '0'])})"
    terms = [f"{priority[name]!r} * {factor}" for name, factor in factors.items() if priority.get(name)]
    return f"-({' + '.join(terms)})" if terms else "0"


class Names:
    """
    The numbers of a workload's users, groups, partitions and QOS.

    Parameters
    ----------
    workload : Workload
        Its header has the names.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self._known: dict[str, dict[str, int]] = {}

    def number_of(self, kind: str, name: str, where: str) -> int:
        """Return the number of a name, or of a number; an error says where an unknown name stands."""
        if kind not in self._known:
            names = names_of(self.workload.header, _COLUMNS[kind])
            self._known[kind] = {text: number for number, text in names.items()}
        known = self._known[kind]
        if name in known:
            return known[name]
        if name.isdecimal():
            return int(name)
        listed = suggest(name, known) if known else "; it has no names, give the number"
        raise SwflowError(f"{where}: {self.workload.name} has no {kind} {name!r}{listed}")

    def shown(self, kind: str, number: int) -> str:
        """Return a number with its name, if it has one."""
        name = names_of(self.workload.header, _COLUMNS[kind]).get(number)
        return f"{name} ({number})" if name else str(number)


def formula_of(order: Any, priority: Mapping[str, Any] | None, names: Names) -> Any:
    """Return an order with the weights of the scheduler in it, if it has some."""
    if order != MULTIFACTOR or priority is None:
        return order
    return multifactor(priority, lambda kind, name: names.number_of(kind, name, f"priority: {kind}_factors"))


class Accounts:
    """
    Whose the jobs of a workload are, as the engine takes it.

    Parameters
    ----------
    jobs : polars.DataFrame
        The jobs that take part.
    scheduler : Scheduler
        Its shares.
    names : Names
        Of the workload.

    Attributes
    ----------
    owners : swflow.scheduling.engine.usage.Owners
        For the engine.
    """

    def __init__(self, jobs: pl.DataFrame, scheduler: Any, names: Names) -> None:
        from swflow.scheduling.engine.usage import Owners

        self.names, self.jobs = names, jobs
        self.numbers: dict[str, np.ndarray] = {}  # of each account, in order
        rows = {kind: self._numbered(kind) for kind in LIMITED}
        partition = _column(jobs, "partition").cast(pl.Float64()).fill_null(float("nan")).to_numpy()
        shares = [self._shares(kind, rows[kind], getattr(scheduler, f"{kind}_shares")) for kind in ("user", "group")]
        self.owners = Owners(rows["user"], rows["group"], rows["partition"], partition, shares[0], shares[1])

    def _numbered(self, kind: str) -> np.ndarray:
        """Return the account of each job, from 0, -1 where unknown."""
        column = _column(self.jobs, kind)
        known = column.is_not_null().to_numpy()
        rows = np.full(len(column), -1)
        self.numbers[kind], rows[known] = np.unique(column.drop_nulls().to_numpy(), return_inverse=True)
        return rows

    def _shares(self, kind: str, rows: np.ndarray, given: Mapping[str, float] | None) -> np.ndarray:
        """Return the share of each job's owner, of 1; who is not known has as much as one who has 1 share."""
        shares = np.ones(self.numbers[kind].size)
        for name, number in (given or {}).items():
            shares[self.numbers[kind] == self.names.number_of(kind, name, f"{kind}_shares")] = number
        total = shares.sum() or 1.0
        return np.append(shares, 1.0)[rows] / total  # the last is of who is not known

    def require(self, kinds: Iterable[str], option: str) -> None:
        """Raise an error if of no job it is known whose it is; of the few of a warm-up it may well be so."""
        for kind in kinds:
            if self.jobs.height > 2 and not self.numbers[kind].size:
                raise SwflowError(f"{option}: {self.names.workload.name} does not say the {kind} of any job")

    def limits(self, limits: Mapping[str, Any] | None) -> np.ndarray | None:
        """Return the most jobs and processors of all accounts, shape (accounts, 2); None without limits."""
        from swflow.scheduling.engine.usage import UNLIMITED

        if not limits:
            return None
        self.require(limits, "limits")
        tables = [np.full((1, 2), UNLIMITED)]
        for kind in LIMITED:
            most = np.full((self.numbers[kind].size, 2), UNLIMITED)
            of_kind = limits.get(kind, {})
            for place, what in enumerate(LIMITS):
                if not isinstance(of_kind.get(what, {}), Mapping):
                    most[:, place] = of_kind[what]
            for name, own in of_kind.items():
                if isinstance(own, Mapping):
                    row = self.numbers[kind] == self.names.number_of(kind, name, f"limits: {kind}")
                    for place, what in enumerate(LIMITS):
                        most[row, place] = own.get(what, UNLIMITED)
            tables.append(most)
        return np.concatenate(tables)

    def require_room(self, most: np.ndarray | None, there: np.ndarray) -> None:
        """Raise an error if a job, of those that are there, is wider than its own limits allow."""
        if most is None:
            return
        widths = self.jobs["processors"].to_numpy()
        first = 1
        for kind in LIMITED:
            rows = getattr(self.owners, kind)
            allowed = np.append(most[first : first + self.numbers[kind].size, 1], np.iinfo(np.int64).max)[rows]
            first += self.numbers[kind].size
            wide = np.flatnonzero(there & (widths > allowed))
            if wide.size:
                job = int(wide[0])
                raise SwflowError(
                    f"limits: {kind}: {wide.size:,} jobs can never start, the first is job {self.jobs['job_id'][job]} "
                    f"with {widths[job]:,} of {allowed[job]:,} processors; raise the limit, or leave them out {_HINT}"
                )

    def centres(self, centres: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return the index of each job's centre, by its partition."""
        centre_of: dict[int, int] = {}
        for index, centre in enumerate(centres):
            for name in centre["partition"]:
                number = self.names.number_of("partition", name, "centres: partition")
                if centre_of.setdefault(number, index) != index:
                    raise SwflowError(f"centres: partition: {name} is named by two centres; let one have it")
        column = _column(self.jobs, "partition")
        found = column.replace_strict(centre_of, default=None, return_dtype=pl.Int64)
        missing = found.is_null()
        if missing.any():
            job = int(np.argmax(missing.to_numpy()))
            number = column[job]
            what = "no partition" if number is None else f"partition {self.names.shown('partition', number)}"
            raise SwflowError(
                f"centres: partition: {missing.sum():,} jobs of {self.names.workload.name} have no centre, the first "
                f"is job {self.jobs['job_id'][job]} with {what}; name it in centres, or leave these jobs out {_HINT}"
            )
        chosen = found.to_numpy()
        self._require_width(chosen, np.array([one["processors"] for one in centres]))
        return chosen

    def _require_width(self, centre: np.ndarray, sizes: np.ndarray) -> None:
        """Raise an error if a job is wider than its centre."""
        widths = self.jobs["processors"].to_numpy()
        wide = np.flatnonzero(widths > sizes[centre])
        if wide.size:
            job = int(wide[0])
            number = self.jobs["partition_id"][job]
            raise SwflowError(
                f"centres: {wide.size:,} jobs are wider than their partition's centre, the first is job "
                f"{self.jobs['job_id'][job]} with {widths[job]:,} of {sizes[centre[job]]:,} processors of "
                f"{self.names.shown('partition', number)}; give it more, or leave them out {_HINT}"
            )


def accounts_of(jobs: pl.DataFrame, scheduler: Any, names: Names) -> Accounts | None:
    """Return whose the jobs are, if it matters to the scheduler."""
    own = [centre.get(option) for centre in scheduler.centres for option in ("order", "backfill_order")]
    orders = [
        formula_of(order, scheduler.priority, names) for order in (scheduler.order, scheduler.backfill_order, *own)
    ]
    used = {name for order in orders for name in mentioned(order)}
    used.intersection_update(OF_OWNERS)
    limited = scheduler.limits or any(centre.get("limits") for centre in scheduler.centres)
    if not (used or limited or scheduler.dispatch == "partition"):
        return None
    accounts = Accounts(jobs, scheduler, names)
    for name in sorted(used & _NEEDS.keys()):
        accounts.require([_NEEDS[name]], name)
    return accounts


def _column(jobs: pl.DataFrame, kind: str) -> pl.Series:
    name = _COLUMNS[kind]
    return jobs[name] if name in jobs.columns else pl.Series([None] * jobs.height, dtype=pl.Int64())
