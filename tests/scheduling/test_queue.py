"""The tree of queued jobs and the heap, against lists that are scanned and sorted."""

import math
import random

import numpy as np
import pytest

from helpers.kernels import for_python
from swflow.scheduling.state import heap as heaps
from swflow.scheduling.state import queue as trees
from swflow.scheduling.state.queue import NO_JOB, new_tree


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


@pytest.mark.parametrize(
    "jobs", [0, 1, 16, 17, 257, *(pytest.param(one, marks=pytest.mark.slow) for one in (256, 700))]
)
def test_a_tree_finds_what_a_scan_of_all_jobs_finds(jobs: int) -> None:
    put, following, root_of = map(for_python, (trees.put, trees.following, trees.root_of))
    rng = random.Random(jobs)
    tree, _ = new_tree(None, jobs)
    queued: dict[int, tuple[int, float]] = {}
    for turn in range(40 + jobs):
        if jobs and (turn < jobs or rng.random() < 0.5):  # the queue fills up, and then nearly empties
            rank = rng.randrange(jobs)
            if turn > jobs and queued:
                rank = rng.choice([rank, *queued])
            queued.pop(rank, None)
            if turn < jobs or rng.random() < 0.1:
                queued[rank] = rng.randint(1, 12), rng.choice([-math.inf, float(rng.randint(1, 12))])
            put(tree, rank, *queued.get(rank, (NO_JOB, math.inf)))
        assert root_of(tree).width == min((width for width, _ in queued.values()), default=NO_JOB)
        assert root_of(tree).length == min((length for _, length in queued.values()), default=math.inf)
        narrow, wide, now = rng.choice([-1, rng.randint(0, 6)]), rng.randint(0, 13), float(rng.randint(0, 5))
        latest, begin = now + rng.choice([-math.inf, rng.randint(0, 9)]), rng.randrange(jobs + 1)
        fits = [
            rank
            for rank, (width, length) in queued.items()
            if rank >= begin and (width <= narrow or (width <= wide and now + length <= latest))
        ]
        assert following(tree, begin, narrow, wide, now, latest) == min(fits, default=-1)


def test_ranks_are_by_key_and_then_by_index() -> None:
    keys = np.array([2.0, math.nan, -1.0, 2.0, math.inf, -math.inf])
    tree, rank = new_tree(keys, keys.size)
    assert rank.tolist() == [2, 4, 1, 3, 5, 0]
    assert tree.job_at.tolist() == [5, 2, 0, 3, 1, 4]
    assert new_tree(None, 3)[1].tolist() == [0, 1, 2]


def test_a_heap_returns_its_elements_in_order() -> None:
    push, pop, change = map(for_python, (heaps.push, heaps.pop, heaps.change))
    rng = random.Random(1)
    heap, size = np.zeros(60, heaps.ELEMENT), 0
    held: dict[int, float] = {}
    for turn in range(1200):
        time = float(rng.randint(0, 20))
        kind = rng.random()
        if kind < 0.3 and held:
            job = rng.choice(list(held))
            held[job] = time
            change(heap, size, time, job)
        elif len(held) < 60 and kind < (0.8 if turn % 300 < 150 else 0.5):
            job = rng.choice([one for one in range(90) if one not in held])
            held[job] = time
            size = push(heap, size, time, job)
        elif held:
            held.pop(int(heap[0]["job"]))
            size = pop(heap, size)
        assert size == len(held)
        first = min(((time, job) for job, time in held.items()), default=None)
        assert first is None or first == (heap[0]["time"], heap[0]["job"])
    while held:
        first = min((time, job) for job, time in held.items())
        assert first == (heap[0]["time"], heap[0]["job"])
        del held[first[1]]
        size = pop(heap, size)
