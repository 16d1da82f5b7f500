"""
Check lower bounds against metrics, and find the best metrics of a few jobs by enumerating schedules.

A schedule is *active* if no job can start earlier while all other jobs keep their start times. `schedules` inserts the
jobs in every order, each at the earliest time at which it fits until its end. Every active schedule is among the
results: insert the jobs in the order of their start times. Suppose that a job then fits at a time t before its start s.
Before s, only jobs that were inserted earlier run. From s on, the active schedule has room for the job and all others.
The job therefore could start at t in the active schedule, which is a contradiction.

A metric is *regular* if it never falls when a completion time grows. For each regular metric, at least one active
schedule is optimal: take an optimal schedule and let jobs start earlier, one at a time, until no job can. Not every
optimal schedule is active, because a job that does not determine the makespan can start late. If the metric grows with
each completion time, as the mean response time does, every optimal schedule is active.

Source: A. Sprecher, R. Kolisch, A. Drexl, "Semi-active, active, and non-delay schedules for the resource-constrained
project scheduling problem", European Journal of Operational Research 80(1), 1995.
"""

from collections.abc import Mapping, Sequence

#: Submit time (s), run time (s), processors.
Job = tuple[int, int, int]


def exceeded(bounds: Mapping[str, float], measured: Mapping[str, float | None]) -> list[str]:
    """Return the measures whose bound is above the metric (below it for utilization) by more than rounding."""
    wrong = []
    for name, bound in bounds.items():
        value = measured.get(name)
        if value is not None:
            above = value - bound if name == "utilization" else bound - value
            if above > 1e-9 * max(1.0, abs(value)):
                wrong.append(name)
    return wrong


def earliest_start(job: Job, others: Sequence[tuple[int, int, int]], machine: int) -> int:
    """Return the first time at which the job fits until its end beside others, given as (start, end, processors)."""
    submit, run, width = job
    for time in sorted({submit, *(end for _, end, _ in others if end > submit)}):
        instants = [time, *(start for start, _, _ in others if time < start < time + run)]
        used = [sum(wide for start, end, wide in others if start <= instant < end) for instant in instants]
        if run == 0 or max(used) + width <= machine:
            return time
    raise AssertionError("a job of at most the machine's width fits after all others")


def schedules(jobs: Sequence[Job], machine: int) -> set[tuple[int, ...]]:
    """Return the start times of all schedules that insert the jobs in some order, each as early as it fits."""
    found: set[tuple[int | None, ...]] = {(None,) * len(jobs)}
    for _ in jobs:
        longer = set()
        for starts in found:
            placed = [
                (start, start + run, width)
                for start, (_, run, width) in zip(starts, jobs, strict=True)
                if start is not None
            ]
            for index, start in enumerate(starts):
                if start is None:
                    first = earliest_start(jobs[index], placed, machine)
                    longer.add((*starts[:index], first, *starts[index + 1 :]))
        found = longer
    return {tuple(start for start in starts if start is not None) for starts in found}


def best_metrics(jobs: Sequence[Job], machine: int) -> dict[str, float]:
    """Return the smallest value of each bounded metric over all schedules; of the utilization, the largest."""
    areas = [run * width for _, run, width in jobs]
    total, count, first = sum(areas), len(jobs), min(submit for submit, _, _ in jobs)
    waits = []
    makespans = []
    for starts in schedules(jobs, machine):
        waits.append([start - submit for start, (submit, _, _) in zip(starts, jobs, strict=True)])
        makespans.append(max(start + run for start, (_, run, _) in zip(starts, jobs, strict=True)) - first)
    mean = min(sum(one) for one in waits) / count
    makespan = min(makespans)
    best = {
        "mean_wait_time": mean,
        "mean_response_time": mean + sum(run for _, run, _ in jobs) / count,
        "makespan": float(makespan),
    }
    if total:
        weighted = min(sum(area * wait for area, wait in zip(areas, one, strict=True)) for one in waits) / total
        best["awwt"] = weighted
        best["awrt"] = weighted + sum(area * job[1] for area, job in zip(areas, jobs, strict=True)) / total
    if makespan:
        best["utilization"] = total / (machine * makespan)
    return best
