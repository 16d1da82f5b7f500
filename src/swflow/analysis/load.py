"""Load: what each job experienced between its submission and its end, without and with the queue's backlog."""

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import END_OF_TIME
from swflow.machine import require_machine


def load_experienced(
    submit: np.ndarray, start: np.ndarray, end: np.ndarray, processors: np.ndarray, machine: int
) -> np.ndarray:
    """
    Compute the load that each job experienced: the time average of the utilization over its stay.

    With ``I(t)`` the integral of the utilization U (busy processors over all) up to t, the load of a job is
    ``(I(end) - I(submit)) / (end - submit)``; for a stay of length 0 it is U at that time. Exact, and
    O(n log n) in the number of jobs.

    Parameters
    ----------
    submit, start, end : float64 array of shape (jobs,)
        Seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job.
    machine : int
        Processors of the machine.

    Returns
    -------
    float64 array of shape (jobs,)
        The load, 0 to 1; more where a log says that more processors were busy than there are.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 3.

    Examples
    --------
    >>> submit = start = np.array([0.0, 5.0])
    >>> load_experienced(submit, start, np.array([10.0, 10.0]), np.array([1, 2]), 4).tolist()
    [0.5, 0.75]
    """
    return _average_over_stay(submit, end, start, processors, machine)


def load_with_backlog(submit: np.ndarray, end: np.ndarray, processors: np.ndarray, machine: int) -> np.ndarray:
    """
    Compute the load with the queue's backlog: the time average of the demand over a job's stay.

    The demand at a time is that of the running *and* the waiting jobs: the processors of all jobs that were
    submitted and have not ended, over those of the machine. Where `load_experienced` cannot pass 1 and looks the
    same with a short queue and a long one, this one goes on growing. Exact, and O(n log n).

    Parameters
    ----------
    submit, end : float64 array of shape (jobs,)
        Seconds.
    processors : int64 array of shape (jobs,)
        Processors of each job.
    machine : int
        Processors of the machine.

    Returns
    -------
    float64 array of shape (jobs,)
        Never below the load experienced; above 1 while more is asked for than there is.

    References
    ----------
    D. Krakov, D. G. Feitelson, "High-resolution analysis of parallel job workloads", JSSPP 2012, section 7, asks
    how the backlog can be part of the load; this is one answer.

    Examples
    --------
    >>> submit, end = np.array([0.0, 0.0]), np.array([10.0, 20.0])
    >>> load_with_backlog(submit, end, np.array([4, 4]), 4).tolist()
    [2.0, 1.5]
    """
    return _average_over_stay(submit, end, submit, processors, machine)


def _average_over_stay(
    submit: np.ndarray, end: np.ndarray, counted_from: np.ndarray, processors: np.ndarray, machine: int
) -> np.ndarray:
    """Average over each stay the share of the machine taken by jobs that count from some time to their end."""
    _require_schedule({"submit time": submit, "end": end, "start": counted_from}, processors, machine)
    if submit.size == 0:
        return np.empty(0)
    times = np.concatenate([counted_from, end])
    changes = np.concatenate([processors, -processors])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(changes[order]) / machine
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])

    def up_to(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the integral and the level at the moments; before the first change both are 0."""
        place = np.searchsorted(times, moments, side="right") - 1
        before = place < 0
        now = np.where(before, 0.0, level[place])
        return np.where(before, 0.0, integral[place] + now * (moments - times[place])), now

    at_end, _ = up_to(end)
    at_submit, now = up_to(submit)
    stay = end - submit
    return np.where(stay > 0, (at_end - at_submit) / np.where(stay > 0, stay, 1.0), now)


def _require_schedule(times: dict[str, np.ndarray], processors: np.ndarray, machine: int) -> None:
    """Require times that are finite, one a job, and a machine; schedules may reach further than jobs."""
    require_machine(machine)
    for name, values in times.items():
        if values.shape != processors.shape or values.dtype.kind not in "fiu":
            raise SwflowError(f"load: the {name} must be a number a job, not {values.dtype} of {values.shape}")
        if values.size and not (values.min() >= -END_OF_TIME and values.max() <= END_OF_TIME):
            place = int(np.argmax(~(np.abs(values) <= END_OF_TIME)))
            raise SwflowError(
                f"load: job {place}: the {name} is {values[place]:g}; it must be at most {END_OF_TIME:.3g}"
            )


def with_load(outcomes: pl.DataFrame, machine: int) -> pl.DataFrame:
    """
    Fill the columns ``load`` and ``backlog_load`` of an outcomes table.

    Parameters
    ----------
    outcomes : polars.DataFrame
        As `swflow.scheduling.simulate.simulate` returns it.
    machine : int
        Processors of the machine.

    Returns
    -------
    polars.DataFrame
        The same rows with `load_experienced` and `load_with_backlog`.
    """
    for name in ("submit_time", "start_time", "end_time", "processors"):
        if name in outcomes.columns and not outcomes.schema[name].is_numeric():
            raise SwflowError(f"outcomes: column {name} holds {outcomes.schema[name]}, not numbers")
    submit, start, end, processors = (
        outcomes[name].to_numpy() for name in ("submit_time", "start_time", "end_time", "processors")
    )
    load = load_experienced(submit, start, end, processors, machine)
    backlog = load_with_backlog(submit, end, processors, machine)
    return outcomes.with_columns(
        load=pl.Series(load, dtype=pl.Float64()), backlog_load=pl.Series(backlog, dtype=pl.Float64())
    )
