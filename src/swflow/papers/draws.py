"""Table ``draws``: the replicates of each published figure, and the interval of one more draw."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import duckdb

#: The fewest draws from which an interval is computed.
FEWEST_DRAWS = 20

#: The fewest draws whose ranks alone bound one more draw with 95 %: 1 / 40 of the draws are below the least of 39.
FEWEST_RANKED = 39

_TAIL = 0.025

#: The sorted values of all replicates of each published figure, and of the logs that can stand in for its log.
_SORTED = """
    WITH wanted AS (
        SELECT workload, scheduler, figure FROM published
        UNION SELECT s.ours || substr(p.workload, len(s.published) + 1), scheduler, figure
        FROM published p JOIN reading_parts s ON s.paper = p.paper AND s.part = 'log'
            AND s.published = split_part(p.workload, '+', 1))
    SELECT recipe, figures.scheduler, figures.figure, list(figures.value ORDER BY figures.value)
    FROM figures JOIN (
        SELECT workload, recipe, replicate FROM workloads UNION SELECT workload, recipe, replicate FROM sweeps
    ) USING (workload)
    JOIN wanted p ON p.workload = recipe AND p.figure = figures.figure
        AND p.scheduler IS NOT DISTINCT FROM figures.scheduler
    WHERE replicate IS NOT NULL AND figures.value IS NOT NULL
    GROUP BY ALL ORDER BY ALL
"""


def fill_draws(connection: "duckdb.DuckDBPyConnection") -> None:
    """Fill table ``draws`` from the view ``figures``, which reads all jobs."""
    rows = [(*names, values, *one_more(values)) for *names, values in connection.execute(_SORTED).fetchall()]
    if rows:
        connection.executemany("INSERT INTO draws VALUES (?, ?, ?, ?, ?, ?)", rows)


def one_more(draws: list[float]) -> tuple[float, float] | tuple[None, None]:
    """
    Return an interval that contains one more independent draw with a probability of 95 %.

    From `FEWEST_RANKED` draws on, it is between two ranks, interpolated linearly, and holds for every continuous
    distribution: one more draw is below the k-th of n with probability k / (n + 1). Fewer draws are taken as normal,
    and the interval is Student's; below `FEWEST_DRAWS`, there is none.

    Examples
    --------
    >>> [round(end, 9) for end in one_more([float(value) for value in range(1, 80)])]
    [2.0, 78.0]
    >>> one_more([1.0] * 20)
    (1.0, 1.0)
    """
    from scipy.special import stdtrit

    values, count = np.sort(np.asarray(draws, dtype=float)), len(draws)
    if count < FEWEST_DRAWS:
        return None, None
    if count >= FEWEST_RANKED:
        low, high = np.quantile(values, [_TAIL, 1 - _TAIL], method="weibull")
    else:
        half = float(stdtrit(count - 1, 1 - _TAIL)) * values.std(ddof=1) * np.sqrt(1 + 1 / count)
        low, high = values.mean() - half, values.mean() + half
    return float(low), float(high)
