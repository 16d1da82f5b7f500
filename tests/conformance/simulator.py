"""
Simulate FCFS and EASY without swflow, optionally with one of five defects, for tests of the conformance suite.

    python simulator.py LOG PROCESSORS POLICY [DEFECT]
"""

import sys

DEFECTS = ("no-extra", "shadow-from-run-times", "head-not-reserved-again", "sorted-by-id", "kill-ignored")


def main(log: str, processors: str, policy: str, defect: str = "") -> None:
    """Print the start time of each job."""
    jobs = []
    with open(log) as lines:  # noqa: PTH123  a program of its own
        for line in lines:
            if line.strip() and not line.startswith(";"):
                numbers = [float(field) for field in line.split()]
                jobs.append((int(numbers[0]), numbers[1], numbers[3], int(numbers[4]), numbers[8]))
    for job, start in sorted(simulate(jobs, int(processors), policy, defect).items()):
        print(job, start)


def simulate(jobs, machine, policy, defect):
    """Process all completions of an instant, then its arrivals, then one scheduling pass."""
    kills = policy.endswith("kill") and defect != "kill-ignored"
    length = {job: min(run, estimate) if kills else run for job, _, run, _, estimate in jobs}
    planned = {job: max(estimate if kills else max(run, estimate), 1) for job, _, run, _, estimate in jobs}
    width = {job: processors for job, _, _, processors, _ in jobs}
    coming = sorted((submit, job) for job, submit, *_ in jobs)
    starts, running, queue, now = {}, [], [], 0.0
    while coming or running or queue:
        events = [starts[job] + length[job] for job in running] + [submit for submit, _ in coming[:1]]
        now = min(events)
        running = [job for job in running if starts[job] + length[job] > now]
        while coming and coming[0][0] <= now:
            queue.append(coming.pop(0)[1])
        if defect == "sorted-by-id":
            queue.sort()
        serve(now, machine, queue, running, starts, planned, length, width, policy, defect)
    return starts


def serve(now, machine, queue, running, starts, planned, length, width, policy, defect):
    """Start the jobs that the policy lets start now."""

    def start(job):
        starts[job] = now
        running.append(job)
        queue.remove(job)

    first = queue[0] if queue else None
    while queue and width[queue[0]] <= machine - sum(width[job] for job in running):
        start(queue[0])
    if policy == "fcfs" or not queue:
        return
    if defect == "head-not-reserved-again" and queue[0] != first:
        for job in queue[1:]:
            if width[job] <= machine - sum(width[other] for other in running):
                start(job)
        return
    known = length if defect == "shadow-from-run-times" else planned
    ends = sorted((max(starts[job] + known[job], now), job) for job in running)
    free, shadow = machine - sum(width[job] for job in running), now
    for end, job in ends:
        if free >= width[queue[0]] and end > shadow:
            break
        free, shadow = free + width[job], end
    extra = 0 if defect == "no-extra" else free - width[queue[0]]
    for job in queue[1:]:
        if width[job] > machine - sum(width[other] for other in running):
            continue
        if now + planned[job] <= shadow:
            start(job)
        elif width[job] <= extra:
            extra -= width[job]
            start(job)


if __name__ == "__main__":
    main(*sys.argv[1:])
