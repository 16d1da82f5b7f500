"""A second simulator, slow and right at a glance, that the kernels must equal."""

from dataclasses import dataclass


@dataclass
class Job:
    """A job: times in seconds; ``planned`` is what the scheduler takes for its run time."""

    number: int
    submit: float
    run: float
    planned: float
    processors: int


def simulate(jobs: list[Job], machine: int, backfill: str = "none") -> dict[int, float]:
    """
    Return the start time of every job under first come, first served.

    At each instant completions come first, then arrivals, then one pass over the queue.
    """
    starts: dict[int, float] = {}
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    queue: list[Job] = []
    running: list[Job] = []

    def free() -> int:
        return machine - sum(job.processors for job in running)

    def begin(job: Job, now: float) -> None:
        starts[job.number] = now
        queue.remove(job)
        running.append(job)

    while coming or running:
        now = min([job.submit for job in coming] + [starts[job.number] + job.run for job in running])
        running = [job for job in running if starts[job.number] + job.run > now]
        queue += [job for job in coming if job.submit <= now]
        coming = [job for job in coming if job.submit > now]

        while queue and queue[0].processors <= free():
            begin(queue[0], now)
        if queue and backfill == "easy":
            shadow, extra = reservation(queue[0], running, starts, free())
            for job in queue[1:]:
                if job.processors > free():
                    continue
                if now + job.planned <= shadow:
                    begin(job, now)
                elif job.processors <= extra:
                    extra -= job.processors
                    begin(job, now)
    return starts


def reservation(head: Job, running: list[Job], starts: dict[int, float], free: int) -> tuple[float, int]:
    """Return the head's shadow time, and the extra processors that are left then beside it."""
    ends = sorted(starts[job.number] + job.planned for job in running)
    for shadow in ends:
        available = free + sum(job.processors for job in running if starts[job.number] + job.planned <= shadow)
        if available >= head.processors:
            return shadow, available - head.processors
    raise AssertionError("the head is wider than the machine")
