"""Convert columns of texts or numbers with ranges; a value that is invalid becomes null."""

from collections.abc import Callable

import polars as pl

from swflow.values import LONGEST_TIME, MOST_UNITS


def whole_numbers(column: pl.Expr, most: int = MOST_UNITS) -> pl.Expr:
    """
    Return a column of texts or numbers as whole numbers; null for others, and beyond ±``most``.

    Examples
    --------
    >>> texts = pl.Series(["12", "9223372036854775807", "1" * 5000, "x", "-1"])
    >>> texts.to_frame("t").select(whole_numbers(pl.col("t"))).to_series().to_list()
    [12, None, None, None, -1]
    """
    found = column.cast(pl.Int64, strict=False)
    return pl.when(found.is_between(-most, most)).then(found)


def rounded_up(column: pl.Expr, most: int = MOST_UNITS) -> pl.Expr:
    """Return a column of floats, rounded up to whole numbers; null for NaN, and beyond ±``most``."""
    return pl.when(column.is_between(-most, most)).then(column.ceil()).cast(pl.Int64)


def numbers(column: pl.Expr, most: float = LONGEST_TIME) -> pl.Expr:
    """Return a column of texts or numbers as floats; null for others, and unless they are within ±``most``."""
    found = column.cast(pl.Float64, strict=False)
    return pl.when(found.is_between(-most, most)).then(found)


def once_each(column: pl.Expr, convert: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """
    Return a column of texts converted to floats, with each distinct text converted once.

    Columns of accounting repeat few durations and amounts, whose notations are expensive to recognize.

    Examples
    --------
    >>> texts = pl.Series(["1.5", "2", None, "2"])
    >>> texts.to_frame("t").select(once_each(pl.col("t"), lambda text: text.cast(pl.Float64))).to_series().to_list()
    [1.5, 2.0, None, 2.0]
    """

    def converted(texts: pl.Series) -> pl.Series:
        table = texts.alias("text").to_frame()
        each = table.unique().with_columns(value=convert(pl.col("text")))
        return table.join(each, on="text", how="left", nulls_equal=True, maintain_order="left")["value"]

    return column.map_batches(converted, return_dtype=pl.Float64)


def sum_of(parts: pl.Expr, most: int = MOST_UNITS) -> pl.Expr:
    """
    Return the sum of each list of texts or whole numbers; null for an empty list, and beyond ``most``.

    Examples
    --------
    >>> lists = pl.Series([["2", "3"], ["9223372036854775807", "9223372036854775807"], []], dtype=pl.List(pl.String))
    >>> lists.to_frame("t").select(sum_of(pl.col("t"))).to_series().to_list()
    [5, None, None]
    """
    total = parts.list.eval(pl.element().cast(pl.Float64, strict=False)).list.sum()
    return pl.when((parts.list.len() > 0) & total.is_between(0, most)).then(total).cast(pl.Int64)
