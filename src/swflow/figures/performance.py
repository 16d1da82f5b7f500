"""Figures of load and performance: heatmaps, bubble plots and differences of runs."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.comparison import compare, worth_comparing
from swflow.analysis.heatmap import HEATMAP_MEASURES, bubbles, heatmap, read_bubbles, read_heatmaps
from swflow.charts.heatmaps import Block, Panel, bubble_chart, difference_chart, heatmap_chart
from swflow.errors import SwflowError, suggest
from swflow.expressions import check_condition, fulfilled, names_in
from swflow.figures.request import Request, describe, frame

#: A column may split jobs into so many subsets of their own; the jobs of its other values are drawn together.
MOST_SUBSETS = 6

_COLUMNS = ("load", "run_time", *HEATMAP_MEASURES)


def draw_heatmap(request: Request) -> dict[str, Any]:
    """Draw jobs per load and performance, a column per run."""
    if not request.split and request.scale == "log":  # the load has counted them
        return heatmap_chart([_block_of_load(request)], f"{request.title}: performance against load",
                             interactive=request.interactive)  # fmt: skip
    blocks = [
        _block(label, request.names, parts, request.scale) for label, parts in _subsets(_tables(request), request.split)
    ]
    return heatmap_chart(blocks, f"{request.title}: performance against load", interactive=request.interactive)


def draw_bubbles(request: Request) -> dict[str, Any]:
    """Draw the mean and the median slowdown per tenth of the load."""
    rows = _bubble_rows(request)
    return bubble_chart(rows, f"{request.title}: slowdown by load", request.scale)


def draw_difference(request: Request) -> dict[str, Any]:
    """Draw what one run has more of than another."""
    title = f"{request.title}: differences at equal load"
    return _difference(request, title)


def _tables(request: Request) -> list[pl.DataFrame]:
    return [_outcomes(request.connection, run["run"], request.split) for run in request.runs]


def _outcomes(connection: duckdb.DuckDBPyConnection, run: str, split: Sequence[str]) -> pl.DataFrame:
    """Return what is drawn of a run's jobs, and a column for each part of the split."""
    parts = [_part(text) for text in split]
    if not parts:
        return frame(connection, f"SELECT {', '.join(_COLUMNS)} FROM outcomes WHERE run = $run", run)
    tables = {table: {row[0]: row[1] for row in describe(connection, table)} for table in ("jobs", "outcomes")}
    kinds = {name: _kind(kind) for kind_of in tables.values() for name, kind in kind_of.items()}
    owner = {name: "o" if name in tables["outcomes"] else "j" for name in kinds}
    conditions, columns = {}, {}
    for number, (name, predicate) in enumerate(parts):
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


def _kind(name: str) -> pl.DataType:
    """Return the type that a condition takes a column of the database for."""
    return {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "BOOLEAN": pl.Boolean()}.get(name, pl.Object())


def _part(text: str) -> tuple[str, str | None]:
    """Return name and condition of a part of the split: ``NAME=CONDITION``, or a column and None."""
    name, equals, predicate = text.partition("=")
    if not name.strip():
        raise SwflowError(f"figure: split: {text!r} is neither a column nor NAME=CONDITION")
    return name, predicate if equals else None


def _subsets(tables: Sequence[pl.DataFrame], split: Sequence[str]) -> list[tuple[str, list[pl.DataFrame]]]:
    """Return all jobs, and then the subsets of each part of the split, with their names."""
    subsets = [("all" if split else "", list(tables))]
    for number, text in enumerate(split):
        name, column = _part(text)[0], f"part_{number}"
        if "=" in text:
            subsets.append((name, [table.filter(pl.col(column)) for table in tables]))
            continue
        counts = tables[0][column].drop_nulls().value_counts(sort=True)
        values = counts[column].head(MOST_SUBSETS).sort().to_list()
        subsets += [
            (f"{name} {value}", [table.filter(pl.col(column) == value) for table in tables]) for value in values
        ]
        rest = [table.filter(~pl.col(column).is_in(values).fill_null(False)) for table in tables]
        if any(table.height for table in rest):
            subsets.append((f"{name} other or unknown", rest))
    return subsets


def _arrays(table: pl.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in _COLUMNS}


def _block(label: str, names: Sequence[str], tables: Sequence[pl.DataFrame], scale: str) -> Block:
    columns = [_arrays(table) for table in tables]
    panels = {}
    for measure in HEATMAP_MEASURES:
        top = max((float(np.nanmax(part[measure], initial=1.0)) for part in columns), default=1.0)
        panels[measure] = [
            Panel(heatmap(part["load"], part[measure], scale, top), bubbles(part["load"], part[measure]))
            for part in columns
        ]
    return Block(label, names, panels)


def _block_of_load(request: Request) -> Block:
    """Return what `_block` does of all jobs, from what the load has counted."""
    runs = [run["run"] for run in request.runs]
    maps = read_heatmaps(request.connection, set(runs))
    panels = {
        measure: [Panel(maps[run, measure], read_bubbles(request.connection, run, measure)) for run in runs]
        for measure in HEATMAP_MEASURES
    }
    return Block("", request.names, panels)


def _bubble_rows(request: Request) -> list[tuple[str, list[str], list[pl.DataFrame], str]]:
    kept, every = (
        [read_bubbles(request.connection, run["run"], "slowdown", filtered) for run in request.runs]
        for filtered in (True, False)
    )
    names = request.names
    return [
        ("1 min and more, slowdown to 1000", list(names), kept, "mean"),
        ("all", list(names), every, "mean"),
        ("all", list(names), [_medians(points) for points in every], "median"),
    ]


def _medians(points: pl.DataFrame) -> pl.DataFrame:
    """Return bubbles at the medians of their jobs, which a few that were slowed down a thousand times do not move."""
    return points.with_columns(mean_load="median_load", mean_value="median_value")


def _difference(request: Request, title: str) -> dict[str, Any]:
    runs, names = request.runs, request.names
    pairs = [pair for pair in combinations(range(len(runs)), 2) if worth_comparing(runs[pair[0]], runs[pair[1]])]
    if not pairs:
        raise SwflowError("figure: difference: no two of the runs share a workload or a scheduler")
    found = read_heatmaps(request.connection, {run["run"] for run in runs})
    panels = {}
    for measure in HEATMAP_MEASURES:
        maps = [found[run["run"], measure] for run in runs]
        panels[measure] = [(maps[a], maps[b], compare(maps[a], maps[b])) for a, b in pairs]
    labels = [(_short(names, a, b), _short(names, b, a)) for a, b in pairs]
    return difference_chart(labels, panels, title, interactive=request.interactive)


def _short(names: Sequence[str], which: int, other: int) -> str:
    """Return what tells a run from the other one: the scheduler, unless it is the same."""
    workload, scheduler = names[which].split(", ")
    return scheduler if scheduler != names[other].split(", ")[1] else workload
