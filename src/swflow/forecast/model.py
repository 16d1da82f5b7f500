"""Forecasts from the past: boosted quantiles of the wait, calibrated by conformal prediction that follows drift."""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from swflow.forecast.cases import Cases, third_of, thirds
from swflow.values import DAY

#: The level of the intervals, and the quantiles that are fitted: both ends and the median.
LEVEL = 0.9
QUANTILES = ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)

#: At most this many of the latest cases are fitted.
MOST_CASES = 120_000

#: Days after which a residual counts half for the calibration.
HALF_LIFE = 14.0

#: The weight of the wider groups beside a group without residuals; half of it beside as many recent cases.
GROUP_WEIGHT = 200.0

#: The residuals of one day in one group count like at most this many recent cases, because they hit or miss together.
DAY_WEIGHT = 20.0

#: The largest factor by which a long wait is weighted up because others like it are still unknown.
_MOST_WEIGHT = 10.0

#: The share of misses beyond each end; adaptive levels are at least `_LEAST_TAIL`.
TAIL, _LEAST_TAIL = (1 - LEVEL) / 2, 0.005

#: The change of the level of an end after misses only, as many as there are forecasts on a mean day.
_STEP = 0.02

#: Days of residuals that are used, and the decades by which an end moves outwards where nothing is known.
_WINDOW, _UNKNOWN = 70.0, 1.0

_ROUNDS = 120
_BOOSTING = {
    "objective": "quantile", "learning_rate": 0.08, "num_leaves": 31, "min_data_in_leaf": 80, "feature_fraction": 0.5,
    "bagging_fraction": 0.6, "bagging_freq": 1, "max_bin": 127, "verbosity": -1, "deterministic": True,
    "force_row_wise": True, "num_threads": 1, "seed": 1, "lambda_l2": 1.0,
}  # fmt: skip
_DATA = {name: _BOOSTING[name] for name in ("max_bin", "verbosity", "min_data_in_leaf", "num_threads")}


class Quantiles:
    """
    Gradient boosting of quantiles (LightGBM) of the logarithm of the wait.

    The cases asked before ``now`` (s) are fitted; waits that were not known then are not used.
    """

    def __init__(self, cases: Cases, now: float) -> None:
        import lightgbm

        recent = np.flatnonzero(cases.asked < now)[-MOST_CASES:]
        value, started = (part[recent] for part in cases.known(now))
        weight = censoring_weights(cases.asked[recent], value, started, now)
        rows = recent[started]
        data = lightgbm.Dataset(
            cases.values[rows].astype(np.float64), value[started], weight=weight[started], params=_DATA
        ).construct()
        with ThreadPoolExecutor(2) as pool:  # each model is trained in one thread, so that its bits do not vary
            self.models = list(
                pool.map(lambda quantile: lightgbm.train({**_BOOSTING, "alpha": quantile}, data, _ROUNDS), QUANTILES)
            )

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> "Quantiles":
        """Return the models of LightGBM's texts."""
        import lightgbm

        found = cls.__new__(cls)
        found.models = [lightgbm.Booster(model_str=text) for text in texts]
        return found

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Return the quantiles of the decades, one row per case, in increasing order."""
        if not len(values):
            return np.empty((0, len(QUANTILES)))
        rows = values.astype(np.float64)
        found = np.column_stack([model.predict(rows, num_threads=1) for model in self.models])
        return np.sort(np.maximum(found, 0.0), axis=1)


def censoring_weights(asked: np.ndarray, value: np.ndarray, started: np.ndarray, now: float) -> np.ndarray:
    """
    Return weights that make the known waits represent the unknown ones, which are longer.

    A wait of w seconds is known at a moment if the job was submitted at least w seconds before. The weight is the
    inverse of the share of cases that were (inverse probability of censoring), at most 10.

    The moments ``asked`` (s) increase, ``value`` has the waits in decades, and ``started`` is True for those known at
    ``now`` (s).

    Examples
    --------
    >>> asked = np.arange(10.0) * 100
    >>> censoring_weights(asked, np.full(10, np.log10(500)), asked <= 400, 900.0).round(2).tolist()[:5]
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    observable = np.searchsorted(asked, now - 10.0**value, side="right") / max(asked.size, 1)
    return np.where(started, 1 / np.maximum(observable, 1 / _MOST_WEIGHT), 0.0)


def kaplan_meier(
    value: np.ndarray, known: np.ndarray, weight: np.ndarray, level: float, top: float = 0.0, bottom: float = 0.0
) -> float:
    """
    Return a quantile of values of which some are only lower bounds (Kaplan and Meier 1958).

    The quantile is infinite if lower bounds alone are left above the level. ``top`` or ``bottom`` is the weight of a
    further value at infinity or minus infinity, for the next case (conformal prediction). With ``bottom``, the quantile
    is the one from below: at most ``level`` of the weight is smaller, as at most ``1 - level`` is larger than the
    other one.

    Examples
    --------
    >>> kaplan_meier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, True]), np.ones(4), 0.5)
    3.0
    >>> twenty = np.arange(1.0, 21.0), np.ones(20, bool), np.ones(20)
    >>> kaplan_meier(*twenty, 0.05, bottom=1.0), kaplan_meier(*twenty, 0.95, top=1.0)
    (1.0, 20.0)
    """
    order = np.lexsort((~known, value))
    return _of_sorted(value[order], known[order], weight[order], level, top, bottom)


def _of_sorted(
    value: np.ndarray, known: np.ndarray, weight: np.ndarray, level: float, top: float = 0.0, bottom: float = 0.0
) -> float:
    """Return the quantile of `kaplan_meier` of values in ascending order, the known ones of equal values first."""
    at_risk = np.cumsum(weight[::-1])[::-1] + top
    with np.errstate(invalid="ignore", divide="ignore"):
        survival = np.cumprod(np.where(known & (weight > 0), 1 - weight / at_risk, 1.0))
    if bottom:
        total = float(weight.sum())
        if level * (total + bottom) < bottom - 1e-12:
            return -math.inf
        level = (level * (total + bottom) - bottom) / total
        place = int(np.searchsorted(-survival, -(1 - level) + 1e-12, side="right"))
    else:
        place = int(np.searchsorted(-survival, -(1 - level) - 1e-12, side="left"))
    return float(value[place]) if place < value.size else math.inf


class Calibrator:
    """
    Residuals of past forecasts, from which the ends of intervals are shifted so that these hold at their level.

    The ends are shifted by quantiles of the residuals (conformalized quantile regression), weighted by recency. The
    level of each end follows its misses (adaptive conformal inference): after a day with too many, it moves outwards,
    in proportion to their number.

    ``raw`` has the forecasts of the cases before calibration, of shape (cases, 3), each made before the case was asked
    for. ``bounds`` are the sizes that divide jobs into thirds (default: those of the cases).

    References
    ----------
    Y. Romano, E. Patterson, E. Candès, "Conformalized quantile regression", NeurIPS 2019. I. Gibbs, E. Candès,
    "Adaptive conformal inference under distribution shift", NeurIPS 2021.
    """

    def __init__(self, cases: Cases, raw: np.ndarray, bounds: np.ndarray | None = None) -> None:
        self.cases, self.raw, self.issued = cases, raw, np.full_like(raw, np.nan)
        self.bounds = thirds(cases.size) if bounds is None else bounds
        self.group = groups_of(cases.partition.tolist(), cases.size, cases.waited, self.bounds)
        wider = {name: wider_groups(name) for name in dict.fromkeys(self.group)}
        self._numbers: dict[str, int] = {}
        for names in wider.values():
            for name in names:
                self._numbers.setdefault(name, len(self._numbers))
        numbers = {name: [self._numbers[one] for one in names] for name, names in wider.items()}
        self._levels = np.array([numbers[name] for name in self.group], np.int64).reshape(-1, 3)
        self.tails = [TAIL, TAIL]  # the share of misses that each end aims at
        self._open = np.zeros(cases.asked.size, bool)  # issued forecasts of which hit or miss is not known yet
        self._seen = 0  # issued forecasts of which it is known
        self._late = np.zeros(cases.asked.size, bool)  # counted as misses although the jobs still wait
        self._taken_back = 0  # late jobs that were cancelled since the last day

    def walk(self, begin: float, end: float) -> None:
        """Issue the forecasts of the cases of each day from one moment to another, and follow their misses."""
        for day in np.arange(begin, end, DAY):
            low, high = np.searchsorted(self.cases.asked, [day, min(day + DAY, end)])
            if low == high:
                continue
            self.follow(day)
            of_day = slice(low, high)
            group = self.group[of_day]
            self.issued[of_day] = calibrated(self.raw[of_day], group, self.shifts(day, dict.fromkeys(group)))
            self._open[of_day] = True

    def follow(self, now: float) -> None:
        """
        Adapt the levels to the hits and misses that have become known.

        A job that waits for longer than the upper end is a miss; if it is cancelled, this is taken back.
        """
        gone = self.cases.gone(now)
        self._taken_back += int((self._late & gone).sum())
        self._open &= ~gone
        self._late &= ~gone
        rows = np.flatnonzero(self._open)
        value, started = self.cases.take(rows).known(now)
        low, _, high = self.issued[rows].T
        known = started | (value > high)
        self._open[rows[known]] = False
        self._late[rows[known & ~started]] = True
        if known.any():
            # every forecast counts the same, because coverage is a share of forecasts
            self._seen += int(known.sum())
            days = (now - float(self.cases.asked[0])) / DAY + 1
            step = _STEP * float(known.sum()) * days / self._seen
            above, self._taken_back = float((value > high)[known].sum()) - self._taken_back, 0
            misses = float((value < low)[known].mean()), above / float(known.sum())
            self.tails = [
                min(max(tail + step * (TAIL - missed), _LEAST_TAIL), 2 * TAIL)
                for tail, missed in zip(self.tails, misses, strict=True)
            ]

    def shifts(self, now: float, groups: Iterable[str]) -> dict[str, tuple[float, float]]:
        """
        Return by group the decades to add to the lower and to the upper end, from the data known at a moment.

        A job that still waits is a lower bound of its residual; one that was cancelled does not count. Beside
        the residuals of a group, the residuals of the wider ones count, and the less the more of its own it has. In the
        same proportion, an end moves outwards to that of the widest group, but never inwards, because the residuals of
        few days can be small by chance.
        """
        window = slice(*np.searchsorted(self.cases.asked, [now - _WINDOW * DAY, now]))
        cases = self.cases.take(np.arange(self.cases.asked.size)[window])
        value, started = cases.known(now)
        weight = np.where(cases.gone(now), 0.0, 0.5 ** ((now - cases.asked) / (HALF_LIFE * DAY)))
        day = ((now - cases.asked) // DAY).astype(int)
        raw, levels = self.raw[window], self._levels[window]

        def of_rows(rows: np.ndarray) -> np.ndarray:
            of_day = np.maximum(np.bincount(day[rows], weight[rows]), 1e-12)  # all of a day can be cancelled
            return weight[rows] * np.minimum(DAY_WEIGHT / of_day[day[rows]], 1.0)

        residuals = [value - raw[:, 0], value - raw[:, 2]]
        orders = [np.lexsort((~started, one)) for one in residuals]
        (low, low_known), (high, high_known) = (
            (one[order], started[order]) for one, order in zip(residuals, orders, strict=True)
        )

        def ends(counted: np.ndarray) -> tuple[float, float]:
            down = _of_sorted(low, low_known, counted[orders[0]], self.tails[0], bottom=1.0)
            up = _of_sorted(high, high_known, counted[orders[1]], 1 - self.tails[1], top=1.0)
            if math.isinf(down):  # too few cases, or none of the jobs that wait longest has started
                down = -_UNKNOWN if down < 0 else 0.0
            return down, up if math.isfinite(up) else _UNKNOWN

        found: dict[str, tuple[float, float]] = {}
        widest: dict[str, tuple[float, float]] = {}
        for name in groups:
            counted, rest, share = np.zeros_like(weight), np.ones(weight.size, bool), 1.0
            for level, wider in enumerate(wider_groups(name)):
                members = (levels[:, level] == self._numbers.get(wider, -1)) | (not name)
                rows, rest = rest & members, rest & ~members
                counted[rows] = of_rows(rows)
                if level:
                    limit = GROUP_WEIGHT * GROUP_WEIGHT / (GROUP_WEIGHT + float(counted[~rows].sum()))
                    counted[rows] *= min(limit / max(float(counted[rows].sum()), limit), 1.0)
                else:
                    share = GROUP_WEIGHT / (GROUP_WEIGHT + float(counted.sum()))
            if wider not in widest:
                everyone = np.zeros_like(weight)
                everyone[members] = of_rows(members)
                widest[wider] = ends(everyone)
            (down, up), (least, most) = ends(counted), widest[wider]
            found[name] = down + share * min(least - down, 0.0), up + share * max(most - up, 0.0)
        return found


def groups_of(partition: Sequence[str], size: np.ndarray, waited: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the group of each case for the calibration: partition, third of the size, waiting or not."""
    rows = zip(partition, third_of(size, bounds).tolist(), (waited > 0).tolist(), strict=True)
    return np.array([f"{part}/{number}/{int(wait)}" for part, number, wait in rows], object)


def wider_groups(name: str) -> tuple[str, str, str]:
    """
    Return a group and the wider ones: without the third of the size, and without the partition, too.

    Examples
    --------
    >>> wider_groups("gpu/2/0")
    ('gpu/2/0', 'gpu/0', '0')
    """
    partition, _, waits = name.rsplit("/", 2) if name else ("", "", "")
    return name, f"{partition}/{waits}", waits


def calibrated(raw: np.ndarray, group: np.ndarray, shifts: dict[str, tuple[float, float]]) -> np.ndarray:
    """Return forecasts with shifted ends, in increasing order and not below 0 decades."""
    low, high = np.array([shifts.get(name, (0.0, 0.0)) for name in group]).reshape(-1, 2).T
    moved = np.maximum(np.column_stack([raw[:, 0] + low, raw[:, 1], raw[:, 2] + high]), 0.0)
    moved[:, 0] = np.minimum(moved[:, 0], moved[:, 1])
    moved[:, 2] = np.maximum(moved[:, 2], moved[:, 1])
    return moved
