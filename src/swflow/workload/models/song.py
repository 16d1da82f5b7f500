"""Markov chains over classes of sizes and run times: a workload model after Song, Ernemann and Yahyapour."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swflow.workload.models.pools import Plain, Pools, class_keys, pools_of


@dataclass(frozen=True)
class MarkovModel:
    """The parameters fitted to a log; classes are powers of two, numbered from 0."""

    first: tuple[int, int]  # the classes of the first job's size and run time
    size_transitions: np.ndarray  # number of jobs of one class that are followed by a job of another
    run_time_transitions: np.ndarray  # for the class of a job's size: the same of the classes of run times
    sizes: Pools  # sizes of the log's jobs in each class
    shortest: float  # the range of the log's run times, seconds
    longest: float

    def to_dict(self) -> dict[str, object]:
        """Return the model as JSON-compatible data, with the transitions that occur."""
        return {
            "first": list(self.first),
            "size_transitions": _sparse(self.size_transitions),
            "run_time_transitions": [_sparse(table) for table in self.run_time_transitions],
            "run_time_classes": self.run_time_transitions.shape[1],
            "sizes": self.sizes.to_dict(),
            "shortest": self.shortest,
            "longest": self.longest,
        }

    @classmethod
    def from_dict(cls, content: Plain) -> "MarkovModel":
        """Create a model from the result of `to_dict`."""
        sizes, run_times = len(content["run_time_transitions"]), content["run_time_classes"]
        return cls(
            first=(content["first"][0], content["first"][1]),
            size_transitions=_dense(content["size_transitions"], sizes),
            run_time_transitions=np.stack([_dense(table, run_times) for table in content["run_time_transitions"]]),
            sizes=Pools.from_dict(content["sizes"]),
            shortest=content["shortest"],
            longest=content["longest"],
        )


def fit_markov(run_times: np.ndarray, processors: np.ndarray) -> tuple[MarkovModel, np.ndarray]:
    """
    Count the transitions between the classes of consecutive jobs.

    Run times (seconds) and sizes are in the order of the jobs' arrivals. The second result is the class of every job,
    "run-time class,size class".

    Notes
    -----
    The model follows B. Song, C. Ernemann, R. Yahyapour, "Parallel computer workload modeling with Markov chains",
    JSSPP 2004, in its classes (powers of two) and in its chain per attribute. The paper couples the two chains by a
    transformation of the states of one into those of the other. Here, the coupling is a condition: the class of a
    job's run time depends on the class of its size and on the class of the previous run time. Within a class of run
    times, the logarithm is uniform; within a class of sizes, the log's sizes are drawn.

    Examples
    --------
    >>> model, keys = fit_markov(np.array([100.0, 70.0, 5.0]), np.array([4, 4, 1]))
    >>> keys.tolist(), model.size_transitions.tolist()
    (['6,2', '6,2', '2,0'], [[0, 0, 0], [0, 0, 0], [1, 0, 1]])
    """
    size, run_time = power_of_two_class(processors), power_of_two_class(run_times)
    size_transitions = np.zeros((size.max() + 1,) * 2, dtype=np.int64)
    np.add.at(size_transitions, (size[:-1], size[1:]), 1)
    run_time_transitions = np.zeros((size.max() + 1, *(run_time.max() + 1,) * 2), dtype=np.int64)
    np.add.at(run_time_transitions, (size[1:], run_time[:-1], run_time[1:]), 1)
    model = MarkovModel(
        first=(int(size[0]), int(run_time[0])),
        size_transitions=size_transitions,
        run_time_transitions=run_time_transitions,
        sizes=pools_of(size.astype(str), np.asarray(processors, dtype=float)),
        shortest=float(np.min(run_times)),
        longest=float(np.max(run_times)),
    )
    return model, class_keys(run_time, size)


def generate_markov(
    model: MarkovModel, jobs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Generate run times (whole seconds), sizes, and the class of every job, "run-time class,size class".

    `swflow.workload.models.minh_wolters.generate_locality` describes parameters and results.
    """
    size = _walk(_rows(model.size_transitions)[None], np.zeros(jobs, dtype=np.int64), model.first[0], rng)
    # If the log has no transition from a run-time class with this size, use all jobs of the size.
    run_time = _walk(_rows(model.run_time_transitions), size, model.first[1], rng)
    low = np.maximum(np.where(run_time > 0, np.exp2(run_time), model.shortest), model.shortest)
    high = np.minimum(np.exp2(run_time + 1), model.longest + 1)
    low, high = np.maximum(low, 0.5), np.maximum(high, 0.5)
    drawn = np.floor(np.exp(np.log(low) + rng.random(jobs) * np.log(high / low)))
    run_times = np.clip(drawn, model.shortest, model.longest)
    return run_times, model.sizes.draw(size.astype(str), rng).astype(np.int64), class_keys(run_time, size)


def power_of_two_class(values: np.ndarray) -> np.ndarray:
    """
    Return the exponent of the largest power of two up to each value; 0 for values below 1.

    Examples
    --------
    >>> power_of_two_class(np.array([0, 1, 2, 3, 4, 100])).tolist()
    [0, 0, 1, 1, 2, 6]
    """
    return np.floor(np.log2(np.maximum(values, 1))).astype(np.int64)


def _rows(counts: np.ndarray) -> np.ndarray:
    """Convert counts to cumulative probabilities by row; an empty row gets the sum of its table's rows."""
    counts = counts.astype(float)
    counts = counts + ~counts.any(axis=-1, keepdims=True) * counts.sum(axis=-2, keepdims=True)
    cumulative = np.cumsum(counts, axis=-1)
    total = cumulative[..., -1:]
    # a table without counts, of a class that only the first job has, keeps its last class
    return np.where(total > 0, cumulative / np.where(total > 0, total, 1), 0.0)


def _walk(rows: np.ndarray, tables: np.ndarray, first: int, rng: np.random.Generator) -> np.ndarray:
    """Walk through states: draw each from the row of the previous state, in the table of its position."""
    chance = rng.random(len(tables)).tolist()
    states = np.empty(len(tables), dtype=np.int64)
    last = rows.shape[-1] - 1
    state = states[0] = first
    for place in range(1, len(tables)):
        drawn = rows[tables[place], state].searchsorted(chance[place], side="right")
        state = states[place] = min(int(drawn), last)
    return states


def _sparse(counts: np.ndarray) -> dict[str, dict[str, int]]:
    """Convert a table of counts to a mapping: previous class to class to count."""
    return {
        str(before): {str(after): int(row[after]) for after in np.flatnonzero(row)}
        for before, row in enumerate(counts)
        if row.any()
    }


def _dense(content: Mapping[str, Mapping[str, int]], classes: int) -> np.ndarray:
    """Convert the result of `_sparse` to a table of counts."""
    counts = np.zeros((classes, classes), dtype=np.int64)
    for before, row in content.items():
        for after, count in row.items():
            counts[int(before), int(after)] = count
    return counts
