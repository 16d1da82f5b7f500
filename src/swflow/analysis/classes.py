"""Classes of jobs by size."""

import polars as pl


def with_size_class(table: pl.DataFrame) -> pl.DataFrame:
    """
    Add the class of jobs by processors (1, 2, 3–4, 5–8, …), with ``rank`` for the order.

    Examples
    --------
    >>> with_size_class(pl.DataFrame({"processors": [1, 3, 4, 9]})).rows()
    [(1, 0, '1'), (3, 2, '3–4'), (4, 2, '3–4'), (9, 4, '9–16')]
    """
    table = table.with_columns(rank=(pl.col("processors").cast(pl.Float64()).log(2) - 1e-9).ceil().cast(pl.Int64()))
    words = {rank: _size_class(rank) for rank in table["rank"].unique().to_list()}
    return table.with_columns(pl.col("rank").replace_strict(words, return_dtype=pl.String()).alias("class"))


def _size_class(rank: int) -> str:
    low, high = 2 ** (rank - 1) + 1 if rank > 0 else 1, 2**rank
    return f"{low:,}–{high:,}" if low < high else f"{high}"
