"""The page of what the last load changed, by study."""

from collections.abc import Mapping, Sequence
from typing import Any

from swflow.database.changes import MEASURES
from swflow.figures.provenance import with_values
from swflow.report.blocks import Page, Section
from swflow.report.tables import Block
from swflow.report.units import kind_of, shortened

_VERDICTS = ("variant", "base", "measure", "before", "after")


def changes_page(found: Mapping[str, Any]) -> Page:
    """Return the page of a result of `swflow.database.changes.changes`."""
    studies = found.get("studies")
    if studies is None:
        lead = "There was no earlier database to compare with."
    elif not studies:
        lead = "The last load changed no value of a run and no verdict."
    else:
        lead = "The values and verdicts of the database before the last load, and those of the present one."
    sections = [Section(study, blocks=_blocks(study, parts)) for study, parts in (studies or {}).items()]
    return Page("changes", "What changed", lead=lead, sections=sections)


def _blocks(study: str, parts: Mapping[str, Any]) -> list[Block]:
    tables: list[Block] = []
    for measure in MEASURES:
        rows = [row for row in parts["values"] if row[1] == measure]
        if rows:
            tables.append(_values(study, measure, rows))
    if parts["verdicts"]:
        query = "SELECT variant, base, measure, mean_verdict_holm FROM comparisons WHERE study = $study"
        sql = with_values(query, {"study": study})
        tables.append(_table(f"{study}-verdicts", "Verdicts", "", sql, _VERDICTS, parts["verdicts"]))
    rows = [[run, "new"] for run in parts["added"]] + [[run, "removed"] for run in parts["removed"]]
    if rows:
        sql = "SELECT run FROM runs"
        tables.append(_table(f"{study}-runs", "New and removed runs", "", sql, ("run", "change"), rows))
    return tables


def _values(study: str, measure: str, rows: Sequence[Sequence[Any]]) -> Block:
    """Return the table of a measure; times have their units."""
    kinds = {"before": kind_of(measure, [1.5]), "after": kind_of(measure, [1.5]), "change": "percent"}
    shown = [
        [run, before, after, after / before - 1 if before and after is not None else None]
        for run, _, before, after in rows
    ]
    names = ("run", "before", "after", "change")
    title = "AWRT" if measure == "awrt" else measure.replace("_", " ")
    sql = f"SELECT run, {measure} FROM metrics ORDER BY run"
    return _table(f"{study}-{measure}", title[:1].upper() + title[1:], "", sql, names, shown, kinds)


def _table(
    name: str, title: str, note: str, sql: str, names: Sequence[str], rows: Sequence[Sequence[Any]],
    kinds: Mapping[str, str] | None = None,
) -> Block:  # fmt: skip
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return {
        "kind": "table",
        "name": name,
        "title": title,
        "note": note,
        "sql": sql,
        "columns": [{"name": key, "kind": (kinds or {}).get(key) or kind_of(key, columns[key])} for key in names],
        "rows": [[shortened(value) for value in row] for row in rows],
    }
