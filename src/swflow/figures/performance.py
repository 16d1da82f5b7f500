"""Figures of load and performance: heatmaps, bubble plots and differences of runs."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import duckdb
import numpy as np
import polars as pl

from swflow.analysis.comparison import Comparison, compare
from swflow.analysis.heatmap import ABOVE_1, HEATMAP_MEASURES, Heatmap, bubbles, heatmap, read_bubbles, read_heatmaps
from swflow.errors import SwflowError, suggest
from swflow.figures.charts.heatmaps import Block, Panel, bubble_chart, difference_chart, heatmap_chart
from swflow.figures.charts.parts import Spec
from swflow.figures.charts.styles import Style, run_styles
from swflow.figures.request import Request, describe, frame
from swflow.figures.runs import short_names
from swflow.jobs.conditions import check_condition, fulfilled, names_in
from swflow.names import worth_comparing

#: The largest number of subsets by the values of a column; the jobs of all other values are drawn together.
MOST_SUBSETS = 6

#: With more pairs of runs than this, only the differences between the first run and the others are drawn.
MOST_PAIRS = 3

_COLUMNS = ("load", "run_time", *HEATMAP_MEASURES)

#: The types that conditions assume for columns of the database.
_TYPES = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "BOOLEAN": pl.Boolean()}


def draw_heatmap(request: Request) -> Spec:
    """Draw jobs per load and performance, one column per run."""
    if not request.split and request.scale == "log":  # the database contains their counts
        blocks = [_block_of_load(request)]
    else:
        tables = [_outcomes(request.connection, run["run"], request.split) for run in request.runs]
        subsets = _subsets(tables, request.split)
        blocks = [_block(label, _columns(request), parts, request.scale) for label, parts in subsets]
    return heatmap_chart(blocks, f"{request.title}: performance against load", interactive=request.interactive)


def draw_bubbles(request: Request) -> Spec:
    """Draw the mean and the median slowdown per tenth of the load."""
    kept, every = (
        [read_bubbles(request.connection, run["run"], "slowdown", filtered) for run in request.runs]
        for filtered in (True, False)
    )
    # Medians are robust against a few very large slowdowns.
    medians = [points.with_columns(mean_load="median_load", mean_value="median_value") for points in every]
    rows = [
        ("1 min and more, slowdown to 1000", request.names, kept, "mean"),
        ("all", request.names, every, "mean"),
        ("all", request.names, medians, "median"),
    ]
    return bubble_chart(rows, f"{request.title}: slowdown by load", request.scale)


def draw_difference(request: Request) -> Spec:
    """Draw the difference between the job distributions of two runs."""
    named = list(zip(short_names(request.runs, request.titles), request.runs, strict=True))
    pairs = [pair for pair in combinations(named, 2) if worth_comparing(pair[0][1], pair[1][1])]
    if not pairs:
        raise SwflowError("figure: difference: no two of the runs share a workload or a scheduler")
    if len(pairs) > MOST_PAIRS:
        pairs = [pair for pair in pairs if pair[0] is pairs[0][0]]
    maps = read_heatmaps(request.connection, {run["run"] for run in request.runs})
    panels = {
        measure: [_compared(request, one["run"], other["run"], measure, maps) for (_, one), (_, other) in pairs]
        for measure in HEATMAP_MEASURES
    }
    names = [(one, other) for (one, _), (other, _) in pairs]
    title = f"{request.title}: differences at equal load"
    return difference_chart(names, panels, title, interactive=request.interactive)


def _columns(request: Request) -> dict[str, Style]:
    """Return the names of the runs and the styles of their lines."""
    return dict(zip(request.names, run_styles(request.runs), strict=True))


def _outcomes(connection: duckdb.DuckDBPyConnection, run: str, split: Sequence[str]) -> pl.DataFrame:
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


def _subsets(tables: Sequence[pl.DataFrame], split: Sequence[str]) -> list[tuple[str, list[pl.DataFrame]]]:
    """Return all jobs, followed by the subsets of each part of the split, with their names."""
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


def _block(label: str, names: Mapping[str, Style], tables: Sequence[pl.DataFrame], scale: str) -> Block:
    columns = [{name: table[name].to_numpy() for name in _COLUMNS} for table in tables]
    panels = {}
    for measure in HEATMAP_MEASURES:
        top = max((float(np.nanmax(part[measure], initial=1.0)) for part in columns), default=1.0)
        panels[measure] = [
            Panel(
                heatmap(part["load"], part[measure], scale, top),
                bubbles(part["load"], part[measure]),
                int((part["load"][~np.isnan(part[measure])] > ABOVE_1).sum()),
            )
            for part in columns
        ]
    return Block(label, names, panels)


def _block_of_load(request: Request) -> Block:
    """Return the result of `_block` for all jobs, from the counts in the database."""
    runs = [run["run"] for run in request.runs]
    maps = read_heatmaps(request.connection, set(runs))
    found = request.connection.execute("SELECT run, measure, above_1 FROM correlations").fetchall()
    above = {(run, measure): count or 0 for run, measure, count in found}
    panels = {
        measure: [
            Panel(maps[run, measure], read_bubbles(request.connection, run, measure), above[run, measure])
            for run in runs
        ]
        for measure in HEATMAP_MEASURES
    }
    return Block("", _columns(request), panels)


def _compared(
    request: Request, first: str, second: str, measure: str, maps: Mapping[tuple[str, str], Heatmap]
) -> tuple[Heatmap, Heatmap, Comparison]:
    """Return the maps of two runs, and their comparison as the load computed it; computed here for runs of two logs."""
    one, other = maps[first, measure], maps[second, measure]
    row = request.connection.execute(
        """SELECT variant = $a, distance, score, variant_wins, base_wins, better FROM comparisons
        WHERE measure = $m AND (variant = $a AND base = $b OR variant = $b AND base = $a)""",
        {"a": first, "b": second, "m": measure},
    ).fetchone()
    if row is None:
        return one, other, compare(one, other)
    forward, distance, score, wins, losses, better = row
    winner = {first: "variant", second: "base"}.get(better)
    if forward:
        return one, other, Comparison(distance, score, wins, losses, winner)
    return one, other, Comparison(distance, -score, losses, wins, winner)
