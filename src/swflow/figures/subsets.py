"""Subsets of the jobs of runs, for heatmaps: by the values of a column, or by a condition."""

from collections.abc import Sequence

import duckdb
import polars as pl

from swflow.analysis.heatmap import HEATMAP_MEASURES
from swflow.errors import SwflowError, suggest
from swflow.figures.request import describe, frame
from swflow.jobs.conditions import check_condition, fulfilled, names_in

#: The largest number of subsets by the values of a column; the jobs of all other values are drawn together.
MOST_SUBSETS = 6

_COLUMNS = ("load", "run_time", *HEATMAP_MEASURES)

#: The types that conditions assume for columns of the database.
_TYPES = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "BOOLEAN": pl.Boolean()}


def outcomes(connection: duckdb.DuckDBPyConnection, run: str, split: Sequence[str]) -> pl.DataFrame:
    """Return the plotted columns of a run's jobs, and one column for each part of the split."""
    if not split:
        return frame(connection, f"SELECT {', '.join(_COLUMNS)} FROM outcomes WHERE run = $run", run)
    tables = {table: describe(connection, table) for table in ("jobs", "outcomes")}
    kinds = {name: _TYPES.get(kind, pl.Object()) for name, kind in (tables["jobs"] | tables["outcomes"]).items()}
    owner = {name: "o" if name in tables["outcomes"] else "j" for name in kinds}
    conditions, columns = {}, {}
    for number, (name, predicate) in enumerate(map(_part, split)):
        if predicate is None:
            if name not in kinds:
                raise SwflowError(f"figure: split: {name}: no such column{suggest(name, kinds)}")
            columns[f"part_{number}"] = name
        else:
            conditions[f"part_{number}"] = check_condition(predicate, f"figure: split: {name}", kinds)
    needed = sorted(set().union(*map(names_in, conditions.values())))
    drawn = [f'o."{name}"' for name in _COLUMNS]
    drawn += [f'{owner[name]}."{name}" AS "of_{name}"' for name in needed]
    drawn += [f'CAST({owner[name]}."{name}" AS VARCHAR) AS {part}' for part, name in columns.items()]
    sql = f"SELECT {', '.join(drawn)} FROM outcomes o JOIN jobs j USING (workload, job_id) WHERE o.run = $run"
    table = frame(connection, sql, run)
    values = table.select(pl.col(f"of_{name}").alias(name) for name in needed)
    return table.drop(f"of_{name}" for name in needed).with_columns(
        fulfilled(tree, values).alias(part) for part, tree in conditions.items()
    )


def _part(text: str) -> tuple[str, str | None]:
    """Return name and condition of a part of the split, from ``NAME=CONDITION``, or a column and None."""
    name, equals, predicate = text.partition("=")
    if not name.strip():
        raise SwflowError(f"figure: split: {text!r}; expected a column or NAME=CONDITION")
    return name, predicate if equals else None


def subsets(tables: Sequence[pl.DataFrame], split: Sequence[str]) -> list[tuple[str, list[pl.DataFrame]]]:
    """Return all jobs, followed by the subsets of each part of the split, with their names."""
    found = [("all" if split else "", list(tables))]
    for number, text in enumerate(split):
        name, column = _part(text)[0], f"part_{number}"
        if "=" in text:
            found.append((name, [table.filter(pl.col(column)) for table in tables]))
            continue
        counts = tables[0][column].drop_nulls().value_counts(sort=True)
        values = counts[column].head(MOST_SUBSETS).sort().to_list()
        found += [(f"{name} {value}", [table.filter(pl.col(column) == value) for table in tables]) for value in values]
        rest = [table.filter(~pl.col(column).is_in(values).fill_null(False)) for table in tables]
        if any(table.height for table in rest):
            found.append((f"{name} other or unknown", rest))
    return found
