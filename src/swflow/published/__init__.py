"""The papers' tables as CSV files: facts to compare with."""

from pathlib import Path

import polars as pl

#: The columns of every file here. ``workload``, ``scheduler`` and ``figure`` say where ours is found:
#: a column of the table ``metrics``, or ``spearman_`` and a measure of the table ``correlations``.
COLUMNS = ("paper", "table", "row", "column", "value", "workload", "scheduler", "figure")


def published_values() -> pl.DataFrame:
    """
    Return the published values of all papers.

    Returns
    -------
    polars.DataFrame
        One row a value, with the columns of `COLUMNS`.

    Examples
    --------
    >>> published_values().filter(row="KTH SP2 slowdown", column="EASY")["value"].to_list()
    [0.55]
    """
    types = {name: pl.Float64() if name == "value" else pl.String() for name in COLUMNS}
    files = sorted(Path(__file__).parent.glob("*.csv"))
    return pl.concat(pl.read_csv(file, schema=types) for file in files)
