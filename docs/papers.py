"""
Store what the database of the archive's studies says about the papers, as data of the documentation.

`python docs/papers.py results/swflow.duckdb` rewrites the CSV files in docs/papers, from which docs/generate.py builds
the figures of the papers and the page of evidence. It also rewrites the figures in the sentences of the pages and of
README.md: each is between `<!--=NAME-->` and `<!--.-->`, and docs/papers/numbers.yaml has its query. With `--check`, it
only reports what differs; without a database, it compares the pages with docs/papers/numbers.csv.
"""

import argparse
import csv
import io
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import yaml

from swflow.files.query import connect

FOLDER = Path(__file__).parent / "papers"
COVERAGE, OPEN, CLAIMS, FIGURES, DRAWN, DEFINITIONS, NUMBERS = (
    FOLDER / f"{name}.csv" for name in ("coverage", "open", "claims", "figures", "drawn", "definitions", "numbers")
)
#: What was tried for open values, by regular expressions of their rows and columns. It is written by hand.
TRIED = FOLDER / "tried.csv"
#: The pages with figures in their sentences, and such a figure.
PAGES = (*sorted(FOLDER.glob("*.md")), FOLDER.parents[1] / "README.md")
NUMBER = re.compile(r"<!--=([a-z0-9-]+)-->(.*?)<!--\.-->", re.DOTALL)

#: The tables and their queries.
TABLES = {
    COVERAGE: """SELECT paper, "table", published, compared, within_1, within_5, within_10, inside_draws, other_version,
        other_reading, open FROM coverage ORDER BY ALL""",
    OPEN: """SELECT paper, "table", row, "column", explanation FROM reproduction
        JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published) p
            USING (paper, "table", row, "column")
        WHERE verdict = 'open' ORDER BY place""",
    DRAWN: """SELECT paper, "table", row, "column", explanation FROM reproduction
        JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published) p
            USING (paper, "table", row, "column")
        WHERE verdict = 'inside the draws' ORDER BY place""",
    DEFINITIONS: """SELECT paper, string_agg(DISTINCT "table", ', ' ORDER BY "table") AS tables, "column", words,
        figure, expression, difference FROM (SELECT rowid AS place, * FROM definitions)
        GROUP BY paper, "column", words, figure, expression, difference ORDER BY min(place)""",
    CLAIMS: """SELECT paper, section, claim, holds, judged_by, logs_held || ' of ' || logs AS logs,
        other_logs_held || ' of ' || other_logs AS other_logs,
        if(holds IN ('holds', 'cannot be checked here'), '', evidence) AS evidence FROM claims ORDER BY rowid""",
}

#: The columns of a figure's data: panel, row and series of a value, and its interval.
COLUMNS = ("figure", "panel", "row", "series", "value", "low", "high")

_ERNEMANN = """
    WITH cells AS (
        SELECT replace("table", 'Table ', '') || ', ' || regexp_extract(row, '^\\w+ (.+) FCFS$', 1) AS name, published,
            ours, low, high, place
        FROM reproduction JOIN (SELECT rowid AS place, paper, "table", row, "column" FROM published)
            USING (paper, "table", row, "column")
        WHERE paper = 'Ernemann 2003' AND "column" = 'AWRT' AND reason IS NULL AND row LIKE '{log} % FCFS')
    SELECT '' AS panel, name, series, value, low, high FROM (
        SELECT place, 1 AS part, name, 'published' AS series, published AS value, NULL AS low, NULL AS high FROM cells
        UNION ALL SELECT place, 2, name, 'swflow, median and where one more replicate lies', ours, low, high FROM cells)
    ORDER BY place, part"""

_GUIM = """
    WITH cells AS (
        SELECT row, published, ours, 'swflow, defect of the released code' AS series FROM reproduction
        WHERE paper = 'Guim 2007' AND "table" = 'Table II' AND "column" = '{column}' AND ours IS NOT NULL
        UNION ALL SELECT row, published, ours, 'swflow, correct penalty' FROM readings
        WHERE paper = 'Guim 2007' AND "table" = 'Table II' AND "column" = '{column}' AND ours IS NOT NULL
            AND reading = 'corrected shadows, percent of the run time without penalty')
    SELECT if(row LIKE '% FF', 'First Fit', 'First Continuous Fit') AS panel, upper(split_part(row, ' ', 2)), series,
        value, NULL, NULL
    FROM (SELECT row, series, ours AS value FROM cells UNION SELECT row, 'published', published FROM cells)
    WHERE row LIKE 'SDSC %' ORDER BY ALL"""

#: The figures of the papers' pages and the queries of their data.
DATA = {
    "krakov-cancelled": """
        SELECT r."column", split_part(r.workload, '+', 1), series.name,
            CASE series.name WHEN 'published' THEN r.published WHEN 'without cancelled jobs' THEN r.ours ELSE w.ours
            END, NULL, NULL
        FROM reproduction r JOIN readings w USING (paper, "table", row, "column"),
            (VALUES ('published'), ('without cancelled jobs'), ('with cancelled jobs')) series(name)
        WHERE reading = 'with the cancelled jobs' AND r.ours IS NOT NULL AND r.figure = 'spearman_slowdown'
        ORDER BY ALL""",
    "krakov-loads": """
        SELECT '', workload, 'recorded schedule', 100 * above_1 / jobs, NULL, NULL FROM correlations
        JOIN runs USING (run) WHERE measure = 'slowdown' AND scheduler = 'log' AND workload IN ('KTH-SP2', 'SDSC-SP2',
            'HPC2N', 'SDSC-BLUE', 'LANL-CM5', 'RICC') ORDER BY ALL""",
    "ernemann-kth": _ERNEMANN.format(log="KTH"),
    "ernemann-sdsc00": _ERNEMANN.format(log="SDSC00"),
    "guim-penalty": _GUIM.format(column="% PRT"),
    "guim-kills": _GUIM.format(column="KJ"),
    "cirne-single": """
        SELECT '', log, series, value, NULL, NULL FROM (
            SELECT log, if(recipe LIKE '%printed', 'all shapes drawn, as printed', 'recorded shape kept') AS series,
                100 * avg((len(shapes) = 1)::INT) AS value
            FROM jobs JOIN workloads USING (workload)
            WHERE recipe IN (log || '+moldable', log || '+moldable-printed') GROUP BY ALL
            UNION ALL SELECT DISTINCT log, 'one request, published', 5 FROM workloads WHERE recipe = log || '+moldable')
        ORDER BY ALL""",
    "cirne-responses": """
        SELECT '', workload, 'rigid', mean_response_time, NULL, NULL FROM metrics
        WHERE scheduler = 'easy' AND workload IN (SELECT log FROM replicates WHERE recipe = log || '+moldable')
        UNION ALL SELECT '', log, replace(replace(scheduler, 'easy-', ''), '-efficient', ', efficient'), mean, low, high
        FROM replicates WHERE recipe = log || '+moldable' AND measure = 'mean_response_time'
            AND scheduler IN ('easy-submit', 'easy-submit-efficient', 'easy-start', 'easy-start-efficient')
        ORDER BY ALL""",
    "minh-repetitions": """
        SELECT log, replace(replace(recipe, log || '+', ''), 'minh-wolters-', ''), 'median ± standard deviation',
            median, median - deviation, median + deviation
        FROM replicates WHERE scheduler IS NULL AND measure = 'repetition_distance'
            AND log NOT IN ('HPC2N', 'SDSC-BLUE') AND recipe NOT LIKE '%-cycle' ORDER BY ALL""",
    "minh-waits": """
        SELECT workload, 'the log', '', mean_wait_time / 3600, NULL, NULL FROM metrics
        WHERE scheduler = 'easy' AND workload IN ('KTH-SP2', 'LANL-CM5-1996', 'SDSC-SP2')
        UNION ALL SELECT log, regexp_extract(recipe, '\\+(minh-wolters|resample)', 1)
            || if(recipe LIKE '%-cycle', ', daily cycle', ', log''s arrivals'), '', median / 3600, NULL, NULL
        FROM replicates WHERE scheduler = 'easy' AND measure = 'mean_wait_time'
            AND log IN ('KTH-SP2', 'LANL-CM5-1996', 'SDSC-SP2')
            AND regexp_full_match(recipe, '.*\\+(minh-wolters|resample)(-cycle)?') ORDER BY ALL""",
}


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of the documentation."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def tables(database: Path) -> dict[Path, str]:
    """Return the files as they should be for a database; figures and numbers without data keep their values."""
    written = {}
    with connect(database) as connection:
        for path, statement in TABLES.items():
            found = connection.execute(statement)
            heading, rows = [column[0] for column in found.description or ()], found.fetchall()
            if path == OPEN:
                heading, rows = [*heading, "tried"], [(*row, tried(*row[:4])) for row in rows]
            written[path] = _csv(heading, rows)
        written[FIGURES] = _csv(COLUMNS, [row for name in DATA for row in _data(name, connection)])
        written[NUMBERS] = _csv(["name", "text"], list(_numbers(connection).items()))
    return written


def tried(paper: str, table: str, row: str, column: str) -> str:
    """
    Return what was tried to explain an open value; empty if nothing is recorded.

    Examples
    --------
    >>> tried("Krakov 2012", "Table 1", "HPC2N response time", "EASY")[:13]
    'Machines of 2'
    """
    for one in read(TRIED):
        same = one["paper"] == paper and one["table"] == table
        if same and re.fullmatch(one["rows"], row) and re.fullmatch(one["columns"], column):
            return one["tried"]
    return ""


def queries() -> dict[str, str]:
    """Return the query of each figure in a sentence: one row with one text."""
    content: dict[str, str] = yaml.safe_load((FOLDER / "numbers.yaml").read_text(encoding="utf-8"))
    return content


def _numbers(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return the text of each figure in a sentence."""
    known = {row["name"]: row["text"] for row in read(NUMBERS)} if NUMBERS.exists() else {}
    found = {}
    for name, sql in queries().items():
        try:
            row = connection.execute(sql).fetchone()
        except (duckdb.BinderException, duckdb.CatalogException):  # a column or table that only some studies add
            row = None
        text = None if row is None or row[0] is None else str(row[0])
        if text is None:
            print(f"{name}: no data; its text is kept", file=sys.stderr)
        found[name] = known.get(name, "?") if text is None else text
    return found


def filled(page: str, numbers: dict[str, str]) -> str:
    """
    Return a page with the present text of each figure.

    Examples
    --------
    >>> filled("AWRT is <!--=awrt-->1<!--.--> s.", {"awrt": "2,345"})
    'AWRT is <!--=awrt-->2,345<!--.--> s.'
    """
    return NUMBER.sub(lambda match: f"<!--={match[1]}-->{numbers.get(match[1], '?')}<!--.-->", page)


def pages(numbers: dict[str, str]) -> dict[Path, str]:
    """Return the pages as they should be."""
    return {path: filled(path.read_text(encoding="utf-8"), numbers) for path in PAGES}


def _data(name: str, connection: duckdb.DuckDBPyConnection) -> list[Sequence[Any]]:
    try:
        rows = connection.execute(DATA[name]).fetchall()
    except duckdb.BinderException:  # a column that only a step of the paper's study adds
        rows = []
    if not rows:
        return [list(row.values()) for row in read(FIGURES) if row["figure"] == name]
    return [(name, *row[:3], *("" if value is None else f"{value:.6g}" for value in row[3:])) for row in rows]


def _csv(heading: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return text.getvalue()


def main() -> int:
    """Write or check the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("database", type=Path, nargs="?")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wanted = tables(arguments.database) if arguments.database else {NUMBERS: NUMBERS.read_text(encoding="utf-8")}
    numbers = {row["name"]: row["text"] for row in csv.DictReader(io.StringIO(wanted[NUMBERS]))}
    stale = []
    for path, text in (wanted | pages(numbers)).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not arguments.check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs' if arguments.check else 'written'}")
    return bool(stale) and arguments.check


if __name__ == "__main__":
    sys.exit(main())
