"""Demands of jobs for any resource, computed from the columns of a table: watts from the power of a node."""

from collections.abc import Mapping

import polars as pl
import polars.selectors as cs

from swflow.columns import rounded_up
from swflow.errors import SwflowError, one_line, shown, suggest
from swflow.jobs.machine import checked_resources
from swflow.jobs.table import ELIGIBILITY_COLUMNS, IMPORTED_COLUMNS, JOB_COLUMNS
from swflow.log.importers.notation import NO_VALUE, amounts, is_no_value
from swflow.log.importers.records import RECORD_COLUMNS, Tally
from swflow.values import MOST_UNITS

#: The columns of imported logs that are demands anyway; a formula can fill them, too.
_DEMANDS = ("gpus", "licenses", "memory")

_TAKEN = {*JOB_COLUMNS, *IMPORTED_COLUMNS, *ELIGIBILITY_COLUMNS, *RECORD_COLUMNS} - {*_DEMANDS}

#: What a formula can look like.
EXAMPLE = "watts=node_power*nodes"


def read_formulas(texts: Mapping[str, object], where: str) -> dict[str, str]:
    """
    Return the formulas of resources; raise an error if a name is none, or is that of another column of a log.

    Examples
    --------
    >>> read_formulas({"watts": "node_power * nodes"}, "--resource")
    {'watts': 'node_power * nodes'}
    """
    for name, formula in texts.items():
        checked_resources({name: 0}, where)
        if name in _TAKEN:
            raise SwflowError(f"{where}: {name!r} is a column of each log; choose another name, as in {EXAMPLE}")
        if isinstance(formula, bool) or not isinstance(formula, str | int | float) or not str(formula).strip():
            raise SwflowError(f"{where}: {name}: {shown(formula)}; expected a formula of columns, as in {EXAMPLE}")
    return {name: str(formula) for name, formula in texts.items()}


def with_demands(
    fields: pl.DataFrame, formulas: Mapping[str, str], where: str
) -> tuple[pl.DataFrame, Mapping[str, tuple[int, int]]]:
    """
    Return the fields of a log with a column for each formula, and notes: (jobs, place of the first) by reason.

    A formula can use the columns of the log, ``processors`` (allocated, else requested), and those of further fields
    (``field_19``), which are dropped.

    Examples
    --------
    >>> log = pl.DataFrame({"requested_processors": [4, -1], "field_19": ["300", "x"]})
    >>> with_demands(log, {"watts": "field_19 * processors"}, "--resource")[0]["watts"].to_list()
    [1200, None]
    """
    table = fields.with_columns(pl.when(cs.numeric() != -1).then(cs.numeric()))
    sizes = [pl.when(pl.col(name) > 0).then(name) for name in table.columns if name.endswith("ed_processors")]
    table = table.with_columns(processors=pl.coalesce(sizes)) if sizes else table
    lines, tally = pl.DataFrame({"line": pl.int_range(1, fields.height + 1, eager=True)}), Tally()
    demands = {name: demand(table, name, formula, lines, tally, where) for name, formula in formulas.items()}
    return fields.with_columns(**demands).drop(cs.matches(r"^field_\d+$")), tally.notes


def demand(table: pl.DataFrame, name: str, formula: str, records: pl.DataFrame, tally: Tally, where: str) -> pl.Series:
    """
    Return the units of a resource that each job occupies, rounded up; null, and noted, without a value of 0 or more.

    ``formula`` is an SQL expression of the columns of ``table``, whose texts are read as numbers; ``records`` has the
    ``line`` of each row.

    Examples
    --------
    >>> table = pl.DataFrame({"power": ["350", "1,5"], "Node Count": [2, 4]})
    >>> demand(table, "watts", 'power * "Node Count"', pl.DataFrame({"line": [2, 3]}), Tally(), "--resource").to_list()
    [700, 6]
    """
    try:
        expression = pl.sql_expr(formula)
        columns = dict.fromkeys(expression.meta.root_names())
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise _invalid(where, name, formula, error) from None
    for column in columns:
        if column not in table.columns:
            raise SwflowError(
                f"{where}: {name}={formula}: the table has no column {column!r}{suggest(column, table.columns)}"
            )
    numbers = pl.DataFrame([_numbers(table[column]).alias(column) for column in columns])
    for column in columns:
        nothing = numbers.select(is_no_value(pl.col(column))).to_series().fill_null(False)
        tally.note(records, f"{column}: {NO_VALUE}", pl.lit(nothing))
        numbers = numbers.with_columns(numbers[column].set(nothing, None))
    try:
        # A formula without a column is one value for all jobs.
        found = (numbers if columns else records).with_columns(expression.alias("")).to_series(-1).cast(pl.Float64)
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise _invalid(where, name, formula, error) from None
    found = found.set(~found.is_between(0, MOST_UNITS), None)
    tally.note(records, f"without a valid {name} (needs 0)", pl.lit(found.is_null()))
    return found.to_frame("units").select(rounded_up(pl.col("units"))).to_series()


def _numbers(values: pl.Series) -> pl.Series:
    return amounts(values) if values.dtype == pl.String else values.cast(pl.Float64, strict=False)


def _invalid(where: str, name: str, formula: str, error: Exception) -> SwflowError:
    reason = one_line(str(error))[:120]
    return SwflowError(f"{where}: {name}={shown(formula)}: not a formula ({reason}); expected one as in {EXAMPLE}")
