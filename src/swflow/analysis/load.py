"""Load: what each job experienced between its submission and its end, without and with the queue's backlog."""

from typing import NamedTuple

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import END_OF_TIME
from swflow.kernels import Handle, Kernel
from swflow.machine import require_machine
from swflow.workloads.busy import places_in_order, sealed


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
    _require_schedule({"submit time": submit, "end": end, "start": start}, processors, machine)
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
    _require_schedule({"submit time": submit, "end": end}, processors, machine)
    return _average_over_stay(submit, end, submit, processors, machine)


def _average_over_stay(
    submit: np.ndarray, end: np.ndarray, counted_from: np.ndarray, processors: np.ndarray, machine: int
) -> np.ndarray:
    """Average over each stay the share of the machine taken by jobs that count from some time to their end."""
    return _averages(submit, end, counted_from, processors, machine, places_in_order(end))


def _averages(
    submit: np.ndarray,
    end: np.ndarray,
    counted_from: np.ndarray,
    processors: np.ndarray,
    machine: int,
    by_end: np.ndarray,
) -> np.ndarray:
    """Do what `_average_over_stay` does for who has the jobs in the order of their ends."""
    by_submit = places_in_order(submit)
    by_begin = by_submit if counted_from is submit else places_in_order(counted_from)
    load = np.empty(submit.size)
    stays = _Stays(
        sealed(submit, np.float64), sealed(counted_from, np.float64), sealed(end, np.float64), by_submit, by_begin,
        by_end, sealed(processors, np.int64), load,
    )  # fmt: skip
    _SWEEP(Handle([stays]), machine)
    return load


class _Stays(NamedTuple):
    """
    When jobs come and go.

    Parameters
    ----------
    submit, begin, end : float64 array of shape (jobs,)
        When each job is submitted, counts from, and ends, seconds.
    by_submit, by_begin, by_end : int32 array of shape (jobs,) or (0,)
        The jobs in these orders; none if it is theirs.
    processors : int64 array of shape (jobs,)
        What each counts.
    load : float64 array of shape (jobs,)
        Is filled. Between its submission and its end a job has the integral at its submission here.
    """

    submit: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    by_submit: np.ndarray
    by_begin: np.ndarray
    by_end: np.ndarray
    processors: np.ndarray
    load: np.ndarray


def _sweep(stays: _Stays, machine: int) -> int:
    """Go once through all times at which jobs are submitted, begin to count and end."""
    submit, begin, end, processors, load = stays.submit, stays.begin, stays.end, stays.processors, stays.load
    by_submit, by_begin, by_end = stays.by_submit, stays.by_begin, stays.by_end
    jobs = submit.size
    submitted = begun = ended = 0
    level = 0
    share = integral = 0.0
    last = np.nan  # the last change
    while submitted < jobs or ended < jobs:
        next_submit = next_begin = next_end = np.inf
        if submitted < jobs:
            next_submit = submit[by_submit[submitted] if by_submit.size else submitted]
        if begun < jobs:
            next_begin = begin[by_begin[begun] if by_begin.size else begun]
        if ended < jobs:
            next_end = end[by_end[ended] if by_end.size else ended]
        now = min(next_submit, next_begin, next_end)
        if next_begin == now or next_end == now:
            if not np.isnan(last):
                integral += share * (now - last)
            last = now
            while begun < jobs:
                job = by_begin[begun] if by_begin.size else begun
                if begin[job] != now:
                    break
                level += processors[job]
                begun += 1
            first = ended
            while ended < jobs:
                job = by_end[ended] if by_end.size else ended
                if end[job] != now:
                    break
                level -= processors[job]
                ended += 1
            share = level / machine
            for place in range(first, ended):
                job = by_end[place] if by_end.size else place
                if end[job] > submit[job]:
                    load[job] = (integral - load[job]) / (end[job] - submit[job])
        while submitted < jobs:
            job = by_submit[submitted] if by_submit.size else submitted
            if submit[job] != now:
                break
            load[job] = share
            if end[job] > submit[job]:
                load[job] = 0.0 if np.isnan(last) else integral + share * (now - last)
            submitted += 1
    return 0


_SWEEP = Kernel(_sweep)


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
    submit, start, processors = (outcomes[name].to_numpy() for name in ("submit_time", "start_time", "processors"))
    end = outcomes["end_time"].to_numpy() if "end_time" in outcomes.columns else start + outcomes["run_time"].to_numpy()
    _require_schedule({"submit time": submit, "end": end, "start": start}, processors, machine)
    by_end = places_in_order(end)
    for name, counted_from in (("load", start), ("backlog_load", submit)):
        load = _averages(submit, end, counted_from, processors, machine, by_end)
        outcomes = outcomes.with_columns(pl.Series(name, load, dtype=pl.Float64()))
    return outcomes
