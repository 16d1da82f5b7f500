"""The parts of a paper's page: its claims, and its tables as printed, with swflow's value below each published one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from swflow.analysis.verdicts import NOT_DISTINGUISHABLE
from swflow.files.query import fetched
from swflow.papers.claims import FAILS, HOLDS, UNCHECKED
from swflow.papers.views import VERDICTS, WITHIN
from swflow.report.tables import Block, quoted
from swflow.report.units import shortened

#: The style and the sign of each verdict, in the order of `swflow.papers.views.VERDICTS`. The sign repeats the colour.
_STYLES = ("w1", "w5", "w10", "drawn", "version", "reading", "open", "missing")
TONES = dict(zip(VERDICTS, zip(_STYLES, ("=", "≈", "~", "∈", "v", "r", "≠", ""), strict=True), strict=True))
TONES |= {verdict: TONES[VERDICTS[place]] for verdicts in WITHIN.values() for place, verdict in enumerate(verdicts)}

#: The style of each verdict on a claim.
CLAIM_TONES = {HOLDS: "good", FAILS: "far", NOT_DISTINGUISHABLE: "none", UNCHECKED: "none"}

_CELLS = """SELECT r.paper, r."table", r.row, r."column", r.published, r.ours, r.difference, verdict, explanation,
    draws, low, high, b.ours AS beside, r.workload, r.scheduler, r.figure
FROM reproduction r JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published) p
    USING (paper, "table", row, "column")
LEFT JOIN (SELECT paper, "table", row, "column", any_value(ours) AS ours FROM readings WHERE reading = {beside}
    GROUP BY ALL) b USING (paper, "table", row, "column")
WHERE paper = {paper} ORDER BY place"""

_CLAIMS = """SELECT paper, section, claim, holds, logs_held, logs, other_logs_held, other_logs, judged_by, evidence, sql
FROM claims WHERE paper = {paper} ORDER BY rowid"""


@dataclass(frozen=True)
class Count:
    """How much of a paper was reproduced: the numbers of cells and of claims by verdict."""

    verdicts: Mapping[str, int]
    claims: Mapping[str, int]

    @property
    def compared(self) -> int:
        """The number of compared cells."""
        return sum(self.verdicts.values()) - self.verdicts["not compared"]

    @property
    def checked(self) -> int:
        """The number of claims with evidence."""
        return sum(self.claims.values()) - self.claims[UNCHECKED]

    def sentence(self) -> str:
        """Return the counts as one or two sentences."""
        near, left = sum(self.verdicts[verdict] for verdict in VERDICTS[:3]), self.verdicts["open"]
        text = "No published value is compared."
        if self.compared:
            text = (
                f"{self.compared:,} of {sum(self.verdicts.values()):,} published values are compared: within 10 %: "
                f"{near:,}, explained otherwise: {self.compared - near - left:,}, open: {left:,}."
            )
        return text + (f" {self.claims[HOLDS]} of {self.checked} checked claims hold." if self.checked else "")


def count_papers(connection: duckdb.DuckDBPyConnection) -> dict[str, Count]:
    """Return the counts of each paper with a compared cell or a checked claim, by its name."""
    found = connection.execute("SELECT paper, holds, count(*) FROM claims GROUP BY ALL").fetchall()
    claims = {(paper, holds): count for paper, holds, count in found}
    rows = connection.execute(
        """SELECT paper, sum(within_1), sum(within_5 - within_1), sum(within_10 - within_5), sum(inside_draws),
            sum(other_version), sum(other_reading), sum(open), sum(missing)
        FROM coverage GROUP BY paper ORDER BY paper"""
    ).fetchall()
    counts = {}
    for paper, *verdicts in rows:
        by_verdict = dict(zip(VERDICTS, map(int, verdicts), strict=True))
        counts[paper] = Count(by_verdict, {holds: claims.get((paper, holds), 0) for holds in CLAIM_TONES})
    return {paper: count for paper, count in counts.items() if count.compared or count.checked}


def overview_item(paper: str, count: Count, page: str, title: str) -> Block:
    """Return the row of a paper in the overview: its link, the bar of its verdicts, and the number of its claims."""
    return {
        "page": page,
        "name": paper,
        "title": title,
        "parts": [(TONES[verdict][0], count.verdicts[verdict], verdict) for verdict in VERDICTS],
        "text": count.sentence(),
    }


def legend() -> list[tuple[str, str, str]]:
    """Return style, sign and verdict of each entry of the legend."""
    return [(*TONES[verdict], verdict) for verdict in VERDICTS]


def claims_block(connection: duckdb.DuckDBPyConnection, paper: str) -> Block:
    """Return the claims of a paper with their verdicts, as a block of a page."""
    sql = _CLAIMS.format(paper=quoted(paper))
    names, rows = fetched(connection.execute(sql))
    items = []
    for values in rows:
        row = dict(zip(names, values, strict=True))
        tried = [f"{row['logs_held']} of {row['logs']} logs of the paper"] if row["logs"] else []
        tried += [f"{row['other_logs_held']} of {row['other_logs']} other logs"] if row["other_logs"] else []
        items.append({**row, "tone": CLAIM_TONES[row["holds"]], "tried": tried and f"Holds on {' and '.join(tried)}."})
    return {
        "kind": "claims",
        "name": f"claims-{paper.replace(' ', '-').lower()}",
        "title": "Claims",
        "sql": sql,
        "items": items,
        **_data(names, rows),
    }


def definitions_block(connection: duckdb.DuckDBPyConnection, paper: str) -> Block:
    """Return the definitions of the columns of a paper's tables, as a block of a page."""
    sql = f"""SELECT string_agg(DISTINCT "table", ', ' ORDER BY "table") AS tables, "column", words, figure, expression,
    difference
FROM (SELECT rowid AS place, * FROM definitions) WHERE paper = {quoted(paper)}
GROUP BY "column", words, figure, expression, difference ORDER BY min(place)"""
    names, rows = fetched(connection.execute(sql))
    return {
        "kind": "table",
        "name": f"definitions-{paper.replace(' ', '-').lower()}",
        "title": "Definitions",
        "note": "",
        "sql": sql,
        "columns": [
            {"name": name, "kind": "text", "long": name not in ("tables", "column", "figure")} for name in names
        ],
        "rows": [["" if value is None else value for value in row] for row in rows],
    }


def table_blocks(connection: duckdb.DuckDBPyConnection, paper: str, beside: str | None) -> list[Block]:
    """
    Return the tables of a paper as printed, one block per table with a compared cell.

    A cell has the published value above swflow's, the style of its verdict, and the explanation. The value of the
    reading ``beside`` is shown below.
    """
    sql = _CELLS.format(paper=quoted(paper), beside=quoted(beside or ""))
    names, values = fetched(connection.execute(sql))
    tables: dict[str, list[Block]] = {}
    for row in values:
        cell = dict(zip(names, row, strict=True))
        tables.setdefault(cell["table"], []).append(cell)
    decimals = _decimals(connection, paper)
    blocks: list[Block] = []
    for table, cells in tables.items():
        if all(cell["verdict"] == "not compared" for cell in cells):
            continue
        rows, columns = [*dict.fromkeys(cell["row"] for cell in cells)], _columns(cells)
        shown = {
            (cell["row"], cell["column"]): _cell(cell, decimals[table, cell["row"], cell["column"]]) for cell in cells
        }
        blocks.append({
            "kind": "paper-table",
            "name": f"{paper}-{table}".replace(" ", "-").lower(),
            "title": table,
            "beside": beside if any(cell["beside"] is not None for cell in cells) else None,
            "sql": f'SELECT * FROM (\n{sql}\n) WHERE "table" = {quoted(table)}',
            "columns_shown": columns,
            "lines": [{"name": row, "cells": [shown.get((row, column)) for column in columns]} for row in rows],
            "open": [
                f"{cell['row']}, {cell['column']}: {cell['explanation']}" for cell in cells if cell["verdict"] == "open"
            ],
            **_data([*cells[0]], [[*cell.values()] for cell in cells]),
        })  # fmt: skip
    return blocks


def _cell(cell: Block, decimals: int) -> Block:
    """Return a cell as the page shows it."""
    tone, sign = TONES[cell["verdict"]]
    return {
        "tone": tone,
        "sign": sign,
        "verdict": cell["verdict"],
        "text": cell["explanation"],
        "published": "illegible" if cell["published"] is None else _printed(cell["published"], decimals),
        "ours": "–" if cell["ours"] is None else _printed(cell["ours"], decimals),
        "beside": None if cell["beside"] is None else _printed(cell["beside"], decimals),
    }


def _columns(cells: Sequence[Block]) -> list[str]:
    """
    Return the columns in the order of the paper: a column that the first rows lack follows its neighbour.

    Examples
    --------
    >>> _columns([{"row": row, "column": column} for row, column in ("1a", "1c", "2a", "2b", "2c")])
    ['a', 'b', 'c']
    >>> _columns([{"row": row, "column": column} for row, column in ("1a", "2a", "1b", "2b")])
    ['a', 'b']
    """
    columns: list[str] = []
    place = row = None
    for cell in cells:
        place = place if cell["row"] == row else None
        row = cell["row"]
        if cell["column"] not in columns:
            columns.insert(len(columns) if place is None else place + 1, cell["column"])
        place = columns.index(cell["column"])
    return columns


def _decimals(connection: duckdb.DuckDBPyConnection, paper: str) -> dict[tuple[str, str, str], int]:
    """Return the number of printed decimals of each published value, by table, row and column."""
    rows = connection.execute(
        'SELECT "table", row, "column", rounding FROM published WHERE paper = $paper', {"paper": paper}
    ).fetchall()
    return {
        (table, row, column): 0 if not rounding else max(0, round(-math.log10(2 * rounding)))
        for table, row, column, rounding in rows
    }


def _printed(value: float, decimals: int) -> str:
    """
    Return a number with the decimals of the published value, and one more if it has none and fewer than three digits.

    Examples
    --------
    >>> _printed(25124.8, 0), _printed(30.646, 0), _printed(0.5449, 2), _printed(2.0, 0)
    ('25,125', '30.6', '0.54', '2')
    """
    if not math.isfinite(value):
        return str(value)
    if not decimals and abs(value) < 100 and value != round(value):
        decimals = 1
    return f"{value:,.{decimals}f}".replace("-", "−")


def _data(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Block:
    """Return columns and rows of the CSV file."""
    return {
        "columns": [{"name": name} for name in names],
        "rows": [[shortened(value) for value in row] for row in rows],
    }
