"""First come, first served; EASY; and slack-based backfilling, in short implementations."""

from collections.abc import Iterable, Mapping, Sequence

from swflow.scheduling.plugins.protocol import Job, MachineView, Profile


class Fcfs:
    """Start jobs in the order of submission, without overtaking."""

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Start jobs from the front of the queue while they fit."""
        free = machine.free
        for job in queue:
            free -= job.processors
            if free < 0:
                return
            yield job


class Easy:
    """
    EASY backfilling: the head of the queue has a reservation; a later job starts if it does not delay the head.

    D. A. Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995.
    """

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Start jobs from the front while they fit, then later jobs that do not delay the head."""
        free, starting = machine.free, []
        waiting = iter(queue)
        for head in waiting:
            if head.processors > free:
                break
            free -= head.processors
            starting.append(head)
        else:
            return starting
        shadow, extra = machine.shadow(head, starting)
        for job in self.backfill_order(waiting):
            in_time = now + job.estimate <= shadow
            if job.processors <= free and (in_time or job.processors <= extra):
                free -= job.processors
                extra -= 0 if in_time else job.processors
                starting.append(job)
                if not free:
                    break
        return starting

    def backfill_order(self, jobs: Iterable[Job]) -> Iterable[Job]:
        """Return the jobs behind the head in the order of backfilling; here, the order of the queue."""
        return jobs


class Slack:
    """
    Slack-based backfilling: a job can be overtaken if it still starts by its deadline.

    D. Talby, D. G. Feitelson, "Supporting priorities and improving utilization of the IBM SP scheduler using
    slack-based backfilling", IPPS 1999. The deadline of a job is its planned start at submission plus its slack. Jobs
    are planned in the order of their deadlines. A job that fits now starts, the shortest first, if the plan still
    meets every deadline that it met before.

    Parameters
    ----------
    slack : float
        The slack as a multiple of a job's estimate; with 0, no deadline is later than the first planned start.
    """

    def __init__(self, slack: float = 1.0) -> None:
        self.slack = slack
        self.deadlines: dict[int, float] = {}
        self.starts: dict[int, float] = {}  # last planned starts of the waiting jobs

    def decide(self, now: float, queue: Sequence[Job], running: Sequence[Job], machine: MachineView) -> Iterable[Job]:
        """Plan a start for new jobs, then try to start the shortest jobs."""
        waiting = sorted((job for job in queue if job.number in self.deadlines), key=self._deadline)
        planned = machine.profile()
        starts = {job.number: self._place(job, planned) for job in waiting}
        if not self._keeps(waiting, starts, self.starts):  # jobs ended early, but the old plan is still valid
            planned, starts = machine.profile(), {job.number: self.starts[job.number] for job in waiting}
            for job in waiting:
                planned.reserve(starts[job.number], job.estimate, job.processors)
        for job in queue:
            if job.number not in self.deadlines:
                starts[job.number] = self._place(job, planned)
                self.deadlines[job.number] = starts[job.number] + self.slack * job.estimate
                waiting.append(job)
        starting = [job for job in waiting if starts[job.number] <= now]
        free = machine.free - sum(job.processors for job in starting)
        waiting = sorted((job for job in waiting if starts[job.number] > now), key=self._deadline)
        for job in sorted(waiting, key=lambda job: (job.estimate, job.number)):
            if starts[job.number] > now and job.processors <= free:
                rest = [other for other in waiting if other is not job]
                planned = machine.profile([*starting, job])
                anew = {other.number: self._place(other, planned) for other in rest}
                if self._keeps(rest, anew, starts):
                    starts |= anew | {job.number: now}
                    # the others start at the place that the job vacates
                    more = [job, *(other for other in rest if anew[other.number] <= now)]
                    starting += more
                    free -= sum(one.processors for one in more)
                    waiting = [other for other in rest if anew[other.number] > now]
        self.starts = {job.number: starts[job.number] for job in waiting}
        if waiting:
            machine.wake_at(min(self.starts.values()))
        return starting

    def _keeps(self, jobs: Iterable[Job], starts: Mapping[int, float], before: Mapping[int, float]) -> bool:
        """Return whether a plan meets every deadline that the previous plan met."""
        return all(starts[job.number] <= max(self.deadlines[job.number], before[job.number]) for job in jobs)

    def _deadline(self, job: Job) -> tuple[float, int]:
        return self.deadlines[job.number], job.number

    def _place(self, job: Job, planned: Profile) -> float:
        """Put a job at its earliest place in a plan."""
        start = planned.earliest(job.processors, job.estimate)
        planned.reserve(start, job.estimate, job.processors)
        return start
