"""
Write what the database of the archive's studies says about the papers into the documentation.

`python docs/papers.py results/swflow.duckdb` rewrites the page docs/reference/claims.md and the generated parts of the
pages in docs/explanation; with `--check`, it only reports whether they differ from the database.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb

from swflow.files.query import connect
from swflow.papers import read_papers
from swflow.papers.claims import HOLDS, UNCHECKED

DOCS = Path(__file__).parent
PAPERS, MODEL_PAGE = DOCS / "explanation/papers.md", DOCS / "explanation/models.md"
SCALING, SHARING = DOCS / "explanation/scaling.md", DOCS / "explanation/resource-sharing.md"
CLAIMS = DOCS / "reference/claims.md"

#: The columns of the table of verdicts, with their headings.
COVERAGE = {
    "published": "published", "compared": "compared", "within_1": "within 1 %", "within_5": "5 %", "within_10": "10 %",
    "inside_draws": "inside the draws", "other_version": "other version", "other_reading": "other reading",
    "open": "open",
}  # fmt: skip


def coverage(connection: duckdb.DuckDBPyConnection) -> str:
    """Return table ``coverage`` as Markdown, with a last row of sums."""
    sums = ", ".join(f"sum({name})::BIGINT" for name in COVERAGE)
    names = ", ".join(COVERAGE)
    rows = connection.execute(f"SELECT paper || ', ' || \"table\", {names} FROM coverage ORDER BY ALL").fetchall()
    total = connection.execute(f"SELECT '**all**', {sums} FROM coverage").fetchall()
    return _table(["paper, table", *COVERAGE.values()], [*rows, *total])


def open_values(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the values with the verdict ``open`` as a table, with their explanations."""
    rows = connection.execute(
        """SELECT r.paper || ', ' || r."table", r.row, r."column", explanation FROM reproduction r
        JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published) p
            USING (paper, "table", row, "column")
        WHERE verdict = 'open' ORDER BY place"""
    ).fetchall()
    return _table(["table", "row", "column", "explanation"], rows)


def claims_page(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the page of table ``claims``."""
    rows = connection.execute(
        """SELECT paper, section, claim, holds, logs_held || ' of ' || logs, other_logs_held || ' of ' || other_logs,
            evidence FROM claims ORDER BY rowid"""
    ).fetchall()
    counts = connection.execute("SELECT holds, count(*) FROM claims GROUP BY holds ORDER BY holds").fetchall()
    lines = [
        "# Claims of the papers",
        "",
        f"Table `claims` has {len(rows)} statements of the papers.",
        "A claim holds if it holds on every log of the paper that is here.",
        "It is undecided if the 95 % intervals of two means of random draws overlap.",
        "Other logs are counted apart.",
        "`python docs/papers.py results/swflow.duckdb` writes this page after a run of `config/archive.yaml`.",
        "",
        _table(["verdict", "claims"], counts),
    ]
    for paper in dict.fromkeys(row[0] for row in rows):
        own = [row[1:] for row in rows if row[0] == paper]
        lines += ["", f"## {read_papers()[paper]['authors']}", ""]
        lines.append(_table(["section", "claim", "verdict", "logs of the paper", "other logs"],
                            [row[:5] for row in own]))  # fmt: skip
        others = [(claim, evidence) for _, claim, holds, _, _, evidence in own if holds not in (HOLDS, UNCHECKED)]
        if others:
            lines += ["", "Evidence of the claims that were checked and do not hold, or are open:", "",
                      _table(["claim", "evidence"], others)]  # fmt: skip
    return "\n".join(lines) + "\n"


#: The models of docs/explanation/models.md: heading and step.
MODELS = {
    "minh-wolters": "minh-wolters", "at-least-two": "minh-wolters-at-least-two", "window of 64": "minh-wolters-window",
    "as printed": "minh-wolters-printed", "mbc-ls": "mbc-ls", "song": "song-like", "lublin": "lublin",
    "resample": "resample",
}  # fmt: skip


def fit(measure: str, decimals: int, has_source: bool = False) -> Callable[[duckdb.DuckDBPyConnection], str]:
    """Return a function that writes a measure of the goodness of fit as a table of logs and models."""

    def written(connection: duckdb.DuckDBPyConnection) -> str:
        rows = connection.execute(
            "SELECT log, recipe, median, deviation FROM replicates WHERE scheduler IS NULL AND measure = $measure",
            {"measure": measure},
        ).fetchall()
        cells = {(log, recipe.removeprefix(f"{log}+")): (median, spread) for log, recipe, median, spread in rows}
        sources = dict(
            connection.execute(
                "SELECT source, any_value(source_value) FROM model_fit WHERE measure = $measure GROUP BY source",
                {"measure": measure},
            ).fetchall()
        )
        lines = []
        for log in dict.fromkeys(log for log, step in sorted(cells) if step in MODELS.values()):
            line = [log, *([f"{sources[log]:.{decimals}f}"] if has_source else [])]
            for step in MODELS.values():
                median, spread = cells.get((log, step), (None, None))
                line.append("" if median is None else f"{median:.{decimals}f} ± {spread or 0:.{decimals}f}")
            lines.append(line)
        return _table(["log", *(["the log"] if has_source else []), *MODELS], lines)

    return written


def awrt(log: str) -> Callable[[duckdb.DuckDBPyConnection], str]:
    """Return a function that writes the AWRTs of a log in the tables of Ernemann and others."""

    def written(connection: duckdb.DuckDBPyConnection) -> str:
        rows = connection.execute(
            """SELECT replace("table", 'Table ', '') || ', ' || row, published, ours, low, high, event, verdict
            FROM reproduction
            LEFT JOIN (SELECT "table", row, "column", ours AS event FROM readings
                WHERE paper = 'Ernemann 2003' AND reading = 'pass after every event')
                USING ("table", row, "column")
            JOIN (SELECT rowid AS place, "table", row, "column" FROM published WHERE paper = 'Ernemann 2003')
                USING ("table", row, "column")
            WHERE paper = 'Ernemann 2003' AND "column" = 'AWRT' AND reason IS NULL AND row LIKE $log ORDER BY place""",
            {"log": f"{log} %"},
        ).fetchall()
        heading = ["", "published", "pass per instant", "95 % of the draws", "pass per event", "verdict"]
        return _table(
            heading,
            [
                [cell.replace(f"{log} ", ""), f"{published:,.0f}", f"{ours:,.0f}",
                 "" if low is None else f"{low:,.0f} to {high:,.0f}", "" if event is None else f"{event:,.0f}", verdict]
                for cell, published, ours, low, high, event, verdict in rows
            ],
        )  # fmt: skip

    return written


def sharing(reading: str | None) -> Callable[[duckdb.DuckDBPyConnection], str]:
    """Return a function that writes Guim's Table II for SDSC: our main values, or those of a reading."""
    view = "reproduction" if reading is None else "readings"

    def written(connection: duckdb.DuckDBPyConnection) -> str:
        found = connection.execute(
            f"""SELECT row, "column", published, ours FROM {view}
            WHERE paper = 'Guim 2007' AND "table" = 'Table II' AND row LIKE 'SDSC %' AND ours IS NOT NULL"""
            + ("" if reading is None else " AND reading = $reading"),
            {} if reading is None else {"reading": reading},
        ).fetchall()
        cells = {(row, column): (ours, published) for row, column, published, ours in found}
        columns = {"B-SLD": ".1f", "WT": ",.0f", "% PRT": ".2f", "KJ": ".4g"}
        rows = [
            f"SDSC {level} {policy}" for policy in ("FF", "FC") for level in ("Low", "Med", "High")
        ]  # fmt: skip
        lines = [
            [row.removeprefix("SDSC "), *(f"{cells[row, column][which]:{form}}" if (row, column) in cells else ""
                                          for which in (0, 1) for column, form in columns.items())]
            for row in rows
        ]  # fmt: skip
        heading = ["", "B-SLD", "wait, s", "% PRT", "killed", "published: B-SLD", "wait, s", "% PRT", "killed"]
        return _table(heading, lines)

    return written


def cancelled(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the correlations of load and slowdown without and with cancelled jobs."""
    rows = connection.execute(
        """SELECT split_part(r.workload, '+', 1), r."column", r.published, r.ours, w.ours FROM reproduction r
        JOIN readings w USING (paper, "table", row, "column")
        JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published) p
            USING (paper, "table", row, "column")
        WHERE reading = 'with the cancelled jobs' AND r.ours IS NOT NULL AND r.figure = 'spearman_slowdown'
        ORDER BY place"""
    ).fetchall()
    return _table(
        ["log", "scheduler", "published", "without cancelled jobs", "with them"],
        [[log, scheduler, *(f"{value:.2f}" for value in values)] for log, scheduler, *values in rows],
    )


def crossings(connection: duckdb.DuckDBPyConnection) -> str:
    """Return the factors at which single draws first reach the source's AWRT."""
    rows = connection.execute(
        """SELECT source, scheduler, count(*), quantile_cont(factor, 0.5), quantile_cont(factor, 0.05),
            quantile_cont(factor, 0.95)
        FROM (SELECT source, scheduler, replicate, max(factor) AS factor FROM sweeps
            WHERE sweep LIKE 'first-crossing-1024%' GROUP BY ALL)
        WHERE factor IS NOT NULL GROUP BY ALL ORDER BY ALL"""
    ).fetchall()
    return _table(
        ["log", "scheduler", "searches", "median factor", "5 to 95 %"],
        [[log, scheduler, count, f"{median:.2f}", f"{low:.2f} to {high:.2f}"]
         for log, scheduler, count, median, low, high in rows],
    )  # fmt: skip


def _table(heading: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    texts = [[f"{cell:,}" if isinstance(cell, int) else str(cell).replace("|", "\\|") for cell in row] for row in rows]
    lines = [heading, ["---"] * len(heading), *texts]
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- ", "|---").replace("--- |", "---|") for line in lines)


#: The generated parts of each page, between `<!-- NAME: generated by docs/papers.py -->` and `<!-- end -->`.
PARTS: dict[Path, dict[str, Callable[[duckdb.DuckDBPyConnection], str]]] = {
    PAPERS: {"coverage": coverage, "open values": open_values, "cancelled jobs": cancelled},
    SCALING: {"crossings": crossings, "KTH": awrt("KTH"), "SDSC00": awrt("SDSC00")},
    SHARING: {
        "released code": sharing(None),
        "corrected": sharing("corrected shadows, percent of the run time without penalty"),
    },
    MODEL_PAGE: {
        "squashed area": fit("squashed_area_difference", 1),
        "correlation": fit("correlation", 3, has_source=True),
        "run times": fit("run_time_ks", 3),
        "repetitions": fit("repetition_distance", 3),
    },
}


def filled(page: Path, connection: duckdb.DuckDBPyConnection) -> str:
    """Return the text of a page with its generated parts replaced."""
    text = page.read_text(encoding="utf-8")
    for name, part in PARTS[page].items():
        found = re.search(rf"(<!-- {name}: generated by docs/papers.py -->\n).*?(\n<!-- end -->)", text, flags=re.S)
        assert found, f"{page}: no part {name!r}"
        text = text[: found.start()] + found[1] + "\n" + part(connection) + "\n" + found[2] + text[found.end() :]
    return text


def pages(database: Path) -> dict[Path, str]:
    """Return the pages as they should be for a database."""
    with connect(database) as connection:
        return {page: filled(page, connection) for page in PARTS} | {CLAIMS: claims_page(connection)}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("database", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    stale = []
    for path, text in pages(arguments.database).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs' if arguments.check else 'written'}")
    return bool(stale) and arguments.check


if __name__ == "__main__":
    sys.exit(main())
