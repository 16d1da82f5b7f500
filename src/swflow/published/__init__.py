"""The papers' tables as CSV files: facts to compare with."""

from pathlib import Path

import polars as pl

#: The columns of every file here. ``workload``, ``scheduler`` and ``figure`` say where ours is found: a column of the
#: table ``metrics``, or ``spearman_`` and a measure of the table ``correlations``. Without a scheduler it is a figure
#: of the workload: ``power_of_two_percent`` of its jobs, or a measure of the table ``model_fit``.
COLUMNS = ("paper", "table", "row", "column", "value", "workload", "scheduler", "figure")

#: The columns of the files of trends: the figure of the workload that ends with ``lower_step``, under
#: ``lower_scheduler``, is the lower one of the two.
TREND_COLUMNS = (
    "paper",
    "trend",
    "figure",
    "lower_step",
    "lower_scheduler",
    "higher_step",
    "higher_scheduler",
)

#: The columns of the file of readings: in a paper's rows, what ``published`` names is replaced by ``ours``. ``part`` is
#: what is replaced: ``step`` (the last of the workload), ``scheduler`` or ``figure``.
READING_COLUMNS = ("paper", "reading", "part", "published", "ours")

#: The columns of the file of conventions that papers leave open: in the rows of all papers, what ``published`` names
#: is replaced by ``ours``. ``part`` is ``scheduler``, ``log``, or ``step``: a last step that is left out or, of a log
#: itself, added.
CONVENTION_COLUMNS = ("convention", "choice", "part", "published", "ours")


def published_values() -> pl.DataFrame:
    """
    Return the published values of all papers; what our copy of a paper does not let us read is null.

    Returns
    -------
    polars.DataFrame
        One row a value, with the columns of `COLUMNS`.

    Examples
    --------
    >>> published_values().filter(row="KTH SP2 slowdown", column="EASY")["value"].to_list()
    [0.55]
    """
    return _read("*_table*.csv", {name: pl.Float64() if name == "value" else pl.String() for name in COLUMNS})


def published_trends() -> pl.DataFrame:
    """
    Return what the papers found to be lower than what.

    Returns
    -------
    polars.DataFrame
        One row a trend, with the columns of `TREND_COLUMNS`.

    Examples
    --------
    >>> published_trends().row(0, named=True)["trend"]
    'bounded slowdown grows LOW < MED under First Fit'
    """
    return _read("*_trends.csv", {name: pl.String() for name in TREND_COLUMNS})


def published_readings() -> pl.DataFrame:
    """
    Return what else the papers' rows may mean: other schedulers, steps or figures to compare them with.

    Returns
    -------
    polars.DataFrame
        One row a replacement, with the columns of `READING_COLUMNS`.

    Examples
    --------
    >>> published_readings().filter(reading="pass after every event")["ours"].to_list()
    ['easy-per-event', 'fcfs-per-event']
    """
    return _read("readings.csv", {name: pl.String() for name in READING_COLUMNS})


def published_conventions() -> pl.DataFrame:
    """
    Return the conventions that papers leave open, with what each choice would be compared with.

    Returns
    -------
    polars.DataFrame
        One row a replacement, with the columns of `CONVENTION_COLUMNS`.

    Examples
    --------
    >>> published_conventions().filter(convention="cancelled jobs")["choice"].to_list()
    ['with them', 'without them']
    """
    return _read("conventions.csv", {name: pl.String() for name in CONVENTION_COLUMNS})


def _read(pattern: str, types: dict[str, pl.DataType]) -> pl.DataFrame:
    files = sorted(Path(__file__).parent.glob(pattern))
    return pl.concat(pl.read_csv(file, schema=types) for file in files)
