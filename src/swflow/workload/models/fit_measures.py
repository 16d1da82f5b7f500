"""Measure how well a synthetic workload fits its log, with the measures of the papers."""

import numpy as np

from swflow.workload.models.repetition import repetition_distance


def fit_measures(
    run_times: np.ndarray, processors: np.ndarray, source_run_times: np.ndarray, source_processors: np.ndarray
) -> dict[str, tuple[float | None, float | None]]:
    """
    Compare a synthetic workload with the source of its model.

    Run times (seconds) and processors are in the order of arrivals. The result has each measure with the value of the
    synthetic workload and that of the source. For a measure that is a difference, the source's value is 0. Undefined
    values, such as the correlation with a constant, are None. The squashed area is in processor-seconds, its difference
    in percent of the source's; ``_ks`` is the largest difference of the distribution functions.

    References
    ----------
    T. N. Minh, L. Wolters, "Modeling parallel system workloads with temporal locality", JSSPP 2009, section 5:
    eqs. (1) and (2), Tables 2 and 3, Figures 1 to 3.

    Examples
    --------
    >>> measures = fit_measures([10, 20, 30], [1, 2, 4], [10, 20, 20], [1, 2, 4])
    >>> measures["squashed_area"], round(measures["squashed_area_difference"][0], 2)
    ((170.0, 130.0), 30.77)
    """
    mine = [np.asarray(column, dtype=float) for column in (run_times, processors)]
    source = [np.asarray(column, dtype=float) for column in (source_run_times, source_processors)]
    area, source_area = float(mine[0] @ mine[1]), float(source[0] @ source[1])
    return {
        "jobs": (float(len(mine[0])), float(len(source[0]))),
        "squashed_area": (area, source_area),
        "squashed_area_difference": (100 * (area - source_area) / source_area if source_area else None, 0.0),
        "correlation": (correlation(*mine), correlation(*source)),
        "run_time_ks": (kolmogorov_smirnov(mine[0], source[0]), 0.0),
        "processors_ks": (kolmogorov_smirnov(mine[1], source[1]), 0.0),
        "repetition_distance": (repetition_distance(mine[0], source[0]), 0.0),
        "autocorrelation_1": (autocorrelation(mine[0], 1), autocorrelation(source[0], 1)),
        "autocorrelation_10": (autocorrelation(mine[0], 10), autocorrelation(source[0], 10)),
    }


def correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """
    Return Pearson's correlation of two columns, or None if one is constant.

    Examples
    --------
    >>> round(correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])), 3)
    0.982
    """
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def autocorrelation(series: np.ndarray, lag: int) -> float | None:
    """
    Return the autocorrelation of a series at a lag; None if the series is too short or constant.

    Examples
    --------
    >>> autocorrelation(np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), 2)
    0.6666666666666666
    """
    deviation = np.asarray(series, dtype=float) - np.mean(series)
    power = float(deviation @ deviation)
    if len(series) <= lag or power == 0:
        return None
    return float(deviation[:-lag] @ deviation[lag:]) / power


def kolmogorov_smirnov(first: np.ndarray, second: np.ndarray) -> float:
    """
    Return the largest difference between the empirical distribution functions of two samples.

    Examples
    --------
    >>> kolmogorov_smirnov(np.array([1, 2, 3, 4]), np.array([3, 4, 5, 6]))
    0.5
    """
    first, second = np.sort(first), np.sort(second)
    places = np.concatenate([first, second])
    below = [np.searchsorted(sample, places, side="right") / len(sample) for sample in (first, second)]
    return float(np.abs(below[0] - below[1]).max())
