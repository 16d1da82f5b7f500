"""The queues of a log, which are the QOS of a Slurm site: jobs, time limits, waits, and the priorities they suggest."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from swflow.jobs.eligibility import waits
from swflow.jobs.header import Header
from swflow.jobs.table import SWF_FIELDS, conformed
from swflow.phrases import hours

#: A queue is taken for preferred if its mean wait is below that of the next one by at least this factor.
_PREFERRED = 1.5

#: Queues that are named in a sentence.
_MOST = 4


@dataclass(frozen=True)
class Queue:
    """A queue or QOS of a log: its share of the jobs, and their longest time limit and mean recorded wait, seconds."""

    name: str
    jobs: int
    share: float
    max_limit: float | None = None
    mean_wait: float | None = None


def queues_of(jobs: pl.DataFrame, header: Header) -> list[Queue]:
    """
    Return the queues that occur in a log, sorted by number of jobs, with the names in its header.

    ``jobs`` is a job table, or the fields of a log; unknown values are null or -1. Waits count from the time at which a
    job was eligible; jobs that never ran do not count.

    Examples
    --------
    >>> jobs = pl.DataFrame({"queue_id": [1, 1, 2, -1], "wait_time": [60.0, 0.0, 10.0, 5.0],
    ...                      "requested_time": [3600.0, 7200.0, 60.0, 60.0]})
    >>> for queue in queues_of(jobs, Header({"Queue": ["1 normal", "2 high"]})): print(queue)
    Queue(name='normal', jobs=2, share=0.5, max_limit=7200.0, mean_wait=30.0)
    Queue(name='high', jobs=1, share=0.25, max_limit=60.0, mean_wait=10.0)
    """
    limit = pl.when(pl.col("requested_time") > 0).then("requested_time")
    wait = pl.when((pl.col("wait_time") != -1) & (pl.col("run_time").fill_null(1.0) > 0)).then("wait_time")
    if "wait_time" in jobs.columns:
        jobs = jobs.with_columns(waits(jobs))
    table = (
        conformed(jobs, {name: SWF_FIELDS[name] for name in ("queue_id", "requested_time", "wait_time", "run_time")})
        .filter(pl.col("queue_id") >= 0)
        .group_by("queue_id")
        .agg(jobs=pl.len(), limit=limit.max(), wait=wait.mean())
        .sort(["jobs", "queue_id"], descending=[True, False])
    )
    names = header.names_of("queue_id")
    return [
        Queue(names.get(number, str(number)), count, count / jobs.height, longest, waited)
        for number, count, longest, waited in table.iter_rows()
    ]


def priorities_of(queues: Sequence[Queue]) -> dict[str, object] | None:
    """
    Return the priorities that the recorded waits suggest, as values of the scheduler option ``priority``.

    Jobs of a queue with a shorter mean wait are served first. The log does not state priorities, so this is a guess:
    jobs of a queue also wait less if they are small or use another partition. The result is None if no mean wait is
    shorter than the next one by a factor of at least 1.5.

    Examples
    --------
    >>> priorities_of([Queue("normal", 9, 0.9, mean_wait=7200.0), Queue("high", 1, 0.1, mean_wait=600.0)])
    {'qos': 1, 'qos_factors': {'high': 2, 'normal': 1}}
    >>> priorities_of([Queue("a", 9, 0.9, mean_wait=600.0), Queue("b", 1, 0.1, mean_wait=610.0)]) is None
    True
    """
    ranked = sorted((queue.mean_wait, queue.name) for queue in queues if queue.mean_wait is not None)
    factors: dict[str, int] = {}
    rank, longest = 1, ranked[-1][0] if ranked else 0.0
    for wait, name in reversed(ranked):
        if wait * _PREFERRED < longest:
            rank, longest = rank + 1, wait
        factors[name] = rank
    return {"qos": 1, "qos_factors": dict(reversed(factors.items()))} if rank > 1 else None


def queues_in_words(queues: Sequence[Queue]) -> str:
    """
    Return share, longest time limit and mean wait of the queues with most jobs.

    Examples
    --------
    >>> queues_in_words([Queue("normal", 9, 0.9, 86400.0, 7200.0), Queue("high", 1, 0.1)])
    'normal 90 % of the jobs, limits up to 24 h, mean wait 2 h; high 10 % of the jobs'
    """
    parts = []
    for queue in queues[:_MOST]:
        text = f"{queue.name} {100 * queue.share:.2g} % of the jobs"
        text += "" if queue.max_limit is None else f", limits up to {hours(queue.max_limit)}"
        text += "" if queue.mean_wait is None else f", mean wait {hours(queue.mean_wait)}"
        parts.append(text)
    return "; ".join(parts + ["…"] * (len(queues) > _MOST))
