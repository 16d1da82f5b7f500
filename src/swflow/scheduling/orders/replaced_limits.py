"""Limits that others replace under Slurm: the partition and QOS of a job decide which limits of its accounts apply."""

from collections.abc import Sequence

import numpy as np

from swflow.scheduling.nested_options import LIMITS
from swflow.scheduling.state.accounts import UNLIMITED

#: The account of a user in a group.
ASSOCIATION = "user in group"

#: Accounts whose limits others replace, and the accounts with these limits.
_REPLACED_BY = {
    "qos": ("partition",),
    "user of qos": ("user of partition",),
    "group": ("partition", "qos"),
    "user": ("partition", "qos"),
    ASSOCIATION: ("partition", "qos"),
}

#: What replaces the limit of the jobs of a user: that of the jobs of each user of a partition or QOS.
_JOBS_REPLACED_BY = dict.fromkeys(("user", ASSOCIATION), ("user of partition", "user of qos"))

#: The kinds of accounts whose limits replace others.
_REPLACING = frozenset({*_REPLACED_BY["group"], *_JOBS_REPLACED_BY["user"]})


def replaced_by(kind: str, what: str) -> tuple[str, ...]:
    """
    Return the kinds of accounts whose limit of a quantity replaces that of accounts of some kind.

    Examples
    --------
    >>> replaced_by("user", "processors"), replaced_by("user", "jobs")
    (('partition', 'qos'), ('user of partition', 'user of qos'))
    """
    if what == "jobs" and kind in _JOBS_REPLACED_BY:
        return _JOBS_REPLACED_BY[kind]
    return _REPLACED_BY.get(kind, ())


def with_replaced(
    most: np.ndarray, rows: np.ndarray, kinds: Sequence[str], has_nodes: bool
) -> tuple[np.ndarray, np.ndarray]:
    """
    Return limits, with further rows for accounts without limits that are replaced, and the row of each job's accounts.

    The QOS of a partition is the first whose limits count; what it does not limit, the QOS of the job may limit, and
    what neither limits, the associations: the user and its accounts (`_qos_job_runnable_pre_select`,
    `acct_policy_job_runnable_pre_select` and those for `post_select` in Slurm's acct_policy.c).

    Parameters
    ----------
    most : numpy.ndarray
        int64 of shape (accounts, limits).
    rows : numpy.ndarray
        int64 of shape (jobs, accounts of a job): rows of ``most``; -1 where a job has no such account.
    kinds : sequence of str
        The kind of each of the accounts of a job.
    has_nodes : bool
        Whether jobs are placed on nodes. Otherwise a partition's limit of processors is its size, and replaces none.

    Examples
    --------
    The first job has a QOS with a limit of processors, which replaces that of its user:

    >>> none = UNLIMITED
    >>> most = np.array([[none] * 5, [3, 8, none, none, none], [none, 64, none, none, none]])
    >>> found, bounds = with_replaced(most, np.array([[1, 2], [1, -1]]), ["user", "qos"], True)
    >>> bounds.tolist(), (found[3] < none).tolist(), found[3, 0].tolist()
    ([[3, 2], [1, -1]], [True, False, False, False, False], 3)
    """
    stated = np.append(most < UNLIMITED, np.zeros((1, most.shape[1]), np.bool_), axis=0)  # the last: no account
    of_job = {kind: stated[rows[:, column]] for column, kind in enumerate(kinds) if kind in _REPLACING}
    if not has_nodes:
        of_job["partition"][:, LIMITS.index("processors")] = False
    codes = np.zeros(rows.shape, np.int64)  # the limits of each account that are replaced for each job, as bits
    for column, kind in enumerate(kinds):
        for bit, what in enumerate(LIMITS):
            for other in of_job.keys() & {*replaced_by(kind, what)}:
                codes[:, column] |= (of_job[other] & stated[rows[:, column]])[:, bit].astype(np.int64) << bit
    bounds, others = rows.copy(), codes > 0
    pairs, number = np.unique(np.column_stack([rows[others], codes[others]]), axis=0, return_inverse=True)
    bounds[others] = len(most) + number.reshape(-1)
    is_replaced = (pairs[:, 1, None] >> np.arange(most.shape[1])) & 1 > 0
    return np.concatenate([most, np.where(is_replaced, UNLIMITED, most[pairs[:, 0]])]), bounds
