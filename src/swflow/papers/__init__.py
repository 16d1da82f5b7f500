"""Published tables of the papers as CSV files, for comparison with simulated values."""

from pathlib import Path
from typing import Any

import polars as pl

from swflow.files.yaml import parse_yaml

#: Columns of Ernemann 2003 that have whole seconds without the digits behind the point: on NASA's log, weighted waits
#: of 6.03 s and 6.65 s are both printed as 6, and weighted responses that differ as much as 9,482.
CUT_OFF = ("AWRT", "AWWT")


def published_values() -> pl.DataFrame:
    """
    Return the published values of all papers; those that are illegible in our copy of a paper are null.

    ``workload``, ``scheduler`` and ``figure`` locate the corresponding simulated value: a column of the table
    ``metrics``, or ``spearman_`` and a measure of the table ``correlations``. Without a scheduler, the figure belongs
    to the workload: ``power_of_two_percent`` of its jobs, or a measure of the table ``model_fit``. ``rounding`` is half
    a unit of the last printed digit, or a whole unit where the paper cuts off further digits (`CUT_OFF`).

    Examples
    --------
    >>> published_values().filter(row="KTH SP2 slowdown", column="EASY").select("value", "rounding").rows()
    [(0.55, 0.005)]
    """
    printed = _read("*_table*.csv")
    digits = pl.col("value").str.extract(r"\.(\d+)$").str.len_chars().fill_null(0)
    is_cut = (pl.col("paper") == "Ernemann 2003") & pl.col("column").is_in(CUT_OFF)
    unit = 10.0 ** -digits.cast(pl.Float64)
    return printed.with_columns(
        pl.col("value").cast(pl.Float64), rounding=pl.when(is_cut).then(unit).otherwise(0.5 * unit)
    )


def published_tables() -> dict[str, pl.DataFrame]:
    """
    Return the tables of the database with the statements of the papers, by their names.

    - ``published``: the result of `published_values`.
    - ``trends``: pairs of figures of which the papers report that one is lower, namely that of the workload that ends
      with ``lower_step``, under ``lower_scheduler``.
    - ``reading_parts``: other readings of a paper, one replacement per row. In the rows of the paper, the value in
      column ``ours`` stands for the value in column ``published``. The column ``part`` states what is replaced: the
      ``scheduler``, the ``figure``, the ``log``, or the last ``step`` of the workload. A step is removed if ``ours`` is
      null, and added to workloads without steps if ``published`` is null.
      A ``log`` that is read for another one also stands in for it where the other one is not in the database.
    - ``conventions``: the same for the conventions that all papers leave open; ``part`` may also be the ``log``.
    - ``definitions``: for each column of each table, the words of the paper, the figure that is compared with it,
      swflow's expression of the figure, and where the two differ.

    Examples
    --------
    >>> tables = published_tables()
    >>> tables["trends"].row(0, named=True)["trend"]
    'bounded slowdown grows LOW < MED under First Fit'
    >>> tables["reading_parts"].filter(reading="pass after every event")["ours"].to_list()
    ['easy-per-event', 'fcfs-per-event']
    >>> tables["conventions"].filter(convention="cancelled jobs")["choice"].to_list()
    ['with them', 'without them']
    """
    files = {
        "trends": "*_trends.csv",
        "reading_parts": "readings.csv",
        "conventions": "conventions.csv",
        "definitions": "definitions.csv",
    }
    return {"published": published_values(), **{name: _read(pattern) for name, pattern in files.items()}}


def read_papers() -> dict[str, dict[str, Any]]:
    """
    Return ``authors``, ``citation``, ``note``, ``figures`` and ``beside`` of each paper, by its name in the tables.

    A figure has its number in the paper, and ``kind``, ``log``, ``runs`` and ``window`` as for `swflow.figures.draw`.
    ``beside`` is the reading that the report shows next to swflow's value.

    Examples
    --------
    >>> read_papers()["Krakov 2012"]["authors"]
    'Krakov and Feitelson 2012'
    """
    papers: dict[str, dict[str, Any]] = parse_yaml(Path(__file__).with_name("papers.yaml").read_text("utf-8"))
    return papers


def _read(pattern: str) -> pl.DataFrame:
    """Return the rows of the tables whose file names match a pattern, all columns as text."""
    files = sorted(Path(__file__).parent.glob(pattern))
    return pl.concat(pl.read_csv(file, infer_schema=False) for file in files)
