"""Pools: the values of a column for each class of a log's jobs, drawn with the log's frequencies."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

#: The fields of a fitted model, or of a part of one, as its JSON file has them.
Plain = Mapping[str, Any]


def as_plain(model: Any) -> dict[str, object]:
    """Return the fields of a dataclass as JSON-compatible data, with lists instead of arrays."""
    return {part.name: _plain(getattr(model, part.name)) for part in fields(model)}


def _plain(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return as_plain(value) if is_dataclass(value) else value


def of_plain(content: Plain) -> dict[str, Any]:
    """Return the result of `as_plain` with arrays of floats instead of lists."""
    return {name: np.array(one, dtype=float) if isinstance(one, list) else one for name, one in content.items()}


@dataclass(frozen=True)
class Pools:
    """
    The values of a column and their numbers of jobs, for every class of jobs.

    ``groups`` has the different values of each class, ascending, and the number of jobs with each; ``unknown`` has the
    number of jobs with an unknown value. The name of a class is its labels, joined by commas: ``"3,9"``.
    """

    groups: Mapping[str, tuple[np.ndarray, np.ndarray]]
    unknown: Mapping[str, int]

    def draw(self, keys: np.ndarray, rng: np.random.Generator, *, least: np.ndarray | None = None) -> np.ndarray:
        """
        Draw a value for every job, uniformly from the log's jobs of its class; one random number is drawn per job.

        ``keys`` are the jobs' classes. With ``least``, draw among values that are at least as large; if the class has
        none, the value is ``least``. NaN, an unknown value, has the same frequency as in the log.

        Examples
        --------
        >>> pools = pools_of(np.array(["a", "a", "b"]), np.array([10.0, 20.0, 5.0]))
        >>> pools.draw(np.array(["a", "b", "a"]), np.random.default_rng(1), least=np.array([15.0, 7.0, 12.0]))
        array([20.,  7., 20.])
        """
        chance = rng.random(len(keys))
        drawn = np.full(len(keys), np.nan)
        names, inverse = np.unique(keys, return_inverse=True)
        for number, name in enumerate(names):
            mine = np.flatnonzero(inverse == number)
            values, counts = self.groups.get(str(name), (np.empty(0), np.empty(0, dtype=np.int64)))
            share = self.unknown.get(str(name), 0) / max(counts.sum() + self.unknown.get(str(name), 0), 1)
            known = mine[chance[mine] >= share]
            if len(known):
                floor = None if least is None else least[known]
                drawn[known] = _draw(values, counts, (chance[known] - share) / (1 - share), floor)
        return drawn

    def to_dict(self) -> dict[str, object]:
        """Return JSON-compatible data: class to [value, jobs] pairs and to the number of unknown values."""
        return {
            name: {"values": _whole(values), "jobs": counts.tolist(), "unknown": self.unknown.get(name, 0)}
            for name, (values, counts) in sorted(self.groups.items())
        }

    @classmethod
    def from_dict(cls, content: Plain) -> "Pools":
        """Create pools from the result of `to_dict`."""
        return cls(
            {
                name: (np.array(pool["values"], dtype=float), np.array(pool["jobs"], dtype=np.int64))
                for name, pool in content.items()
            },
            {name: int(pool["unknown"]) for name, pool in content.items() if pool["unknown"]},
        )


def pools_of(keys: np.ndarray, values: np.ndarray) -> Pools:
    """Collect the values of each class of jobs; NaN is an unknown value."""
    groups, unknown = {}, {}
    names, inverse = np.unique(keys, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    for name, mine in zip(names, np.split(values[order], np.cumsum(np.bincount(inverse))[:-1]), strict=True):
        missing = np.isnan(mine)
        groups[str(name)] = np.unique(mine[~missing], return_counts=True)
        if missing.any():
            unknown[str(name)] = int(missing.sum())
    return Pools(groups, unknown)


def class_keys(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """
    Join the two labels of each job into the name of its class.

    Examples
    --------
    >>> class_keys(np.array([3, 1]), np.array([9, 2])).tolist()
    ['3,9', '1,2']
    """
    return np.char.add(np.char.add(first.astype(str), ","), second.astype(str))


def _draw(values: np.ndarray, counts: np.ndarray, chance: np.ndarray, least: np.ndarray | None) -> np.ndarray:
    """Map numbers in [0, 1) to values by their counts."""
    cumulative = np.cumsum(counts)
    if not len(cumulative):
        return np.full(len(chance), np.nan) if least is None else least
    first = np.zeros(len(chance), dtype=np.int64) if least is None else np.searchsorted(values, least)
    before = np.concatenate([[0], cumulative])[first]
    place = np.searchsorted(cumulative, before + chance * (cumulative[-1] - before), side="right")
    drawn = values[np.minimum(place, len(values) - 1)]
    return drawn if least is None else np.where(first < len(values), drawn, least)


def _whole(values: np.ndarray) -> list[float]:
    """Convert whole numbers to integers."""
    return [int(value) if float(value).is_integer() else float(value) for value in values]
