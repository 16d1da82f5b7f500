"""Load: the utilization that each job experienced between its submission and its end."""

import numpy as np
import polars as pl


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
    if submit.size == 0:
        return np.empty(0)
    times = np.concatenate([start, end])
    changes = np.concatenate([processors, -processors])
    order = np.argsort(times, kind="stable")
    times = times[order]
    utilization = np.cumsum(changes[order]) / machine
    integral = np.concatenate([[0.0], np.cumsum(utilization[:-1] * np.diff(times))])

    def up_to(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return I and U at the moments; before the first start both are 0."""
        place = np.searchsorted(times, moments, side="right") - 1
        before = place < 0
        level = np.where(before, 0.0, utilization[place])
        return np.where(before, 0.0, integral[place] + level * (moments - times[place])), level

    at_end, _ = up_to(end)
    at_submit, level = up_to(submit)
    stay = end - submit
    return np.where(stay > 0, (at_end - at_submit) / np.where(stay > 0, stay, 1.0), level)


def with_load(outcomes: pl.DataFrame, machine: int) -> pl.DataFrame:
    """
    Fill the column ``load`` of an outcomes table.

    Parameters
    ----------
    outcomes : polars.DataFrame
        As `swflow.scheduling.simulate.simulate` returns it.
    machine : int
        Processors of the machine.

    Returns
    -------
    polars.DataFrame
        The same rows with their load.
    """
    submit, start, end, processors = (
        outcomes[name].to_numpy() for name in ("submit_time", "start_time", "end_time", "processors")
    )
    load = load_experienced(submit, start, end, processors, machine)
    return outcomes.with_columns(load=pl.Series(load, dtype=pl.Float64()))
