"""
Print patterns in the differences between published values and those of swflow.

`python docs/patterns.py results/swflow.duckdb` looks at all values that differ by more than 1 %. A difference or ratio
that is the same in several rows of a column, or a difference that equals a datum of the log, comes from a definition
or from the log, not from chance: for example, a makespan that lacks the time before the first submission.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from swflow.files.query import connect

#: Values that differ by less than this share are left out.
LEAST = 0.01

#: The fewest different rows of a pattern, and the relative difference up to which two numbers are equal.
ROWS, EQUAL = 3, 2e-3

_CELLS = """SELECT paper, "column", split_part(workload, '+', 1) AS log, row, published, ours, verdict, "table"
FROM reproduction WHERE reason IS NULL AND scale = 'relative' AND published <> 0 AND ours IS NOT NULL
    AND abs(ours / published - 1) > $least ORDER BY ALL"""

#: What a difference may be: times and counts of each log itself.
_DATA = """SELECT workload, name, value FROM (
    UNPIVOT (SELECT workload, first_submit_time, last_submit_time, last_submit_time - first_submit_time AS
            time_of_submissions, jobs::DOUBLE AS jobs, processors::DOUBLE AS processors FROM workloads
        WHERE NOT contains(workload, '+')) ON COLUMNS(* EXCLUDE (workload)) INTO NAME name VALUE value)
UNION ALL SELECT workload, 'jobs removed: ' || reason, sum(jobs)::DOUBLE FROM removals
    WHERE NOT contains(workload, '+') AND reason <> 'kept' GROUP BY ALL
ORDER BY ALL"""


@dataclass(frozen=True)
class Cell:
    """A published value and that of swflow."""

    paper: str
    column: str
    log: str
    row: str
    published: float
    ours: float
    verdict: str
    table: str

    @property
    def difference(self) -> float:
        """The difference from the published value."""
        return self.ours - self.published


def patterns(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return one line for each pattern."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for row in connection.execute(_CELLS, {"least": LEAST}).fetchall():
        cell = Cell(*row)
        groups.setdefault((cell.paper, cell.column, cell.log), []).append(cell)
    data: dict[str, list[tuple[str, float]]] = {}
    for log, name, value in connection.execute(_DATA).fetchall():
        data.setdefault(log, []).append((name, value))
    lines = []
    for (paper, column, log), cells in groups.items():
        found = [*_equal_to_data(cells, data.get(log, ())), *_constant(cells)]
        verdicts = ", ".join(sorted({cell.verdict for cell in cells}))
        lines += [f"{paper}, {column}, {log}: {text} ({verdicts})" for text in found]
    return lines


def _constant(cells: list[Cell]) -> Iterable[str]:
    """Describe a difference or a ratio that several rows share; rows with one published value count once."""
    different = list({cell.published: cell for cell in cells}.values())
    if len(different) < ROWS:
        return
    differences = [cell.difference for cell in different]
    ratios = [cell.ours / cell.published for cell in different]
    for name, values in ((f"{differences[0]:+,.0f}", differences), (f"factor {ratios[0]:.4f}", ratios)):
        if max(values) - min(values) <= EQUAL * max(map(abs, values)):
            yield f"{name} in all {len(different)} different values"
            return


def _equal_to_data(cells: list[Cell], data: Iterable[tuple[str, float]]) -> Iterable[str]:
    """Describe differences that are a datum of the log."""
    for name, value in data:
        same = [
            cell for cell in cells if abs(value) > 1 and abs(abs(cell.difference) - abs(value)) <= 1e-4 * abs(value)
        ]
        if same:
            tables = ", ".join(sorted({cell.table for cell in same}))
            yield f"{len(same)} of {len(cells)} values differ by {name}, {value:,.0f} ({tables})"


def main() -> None:
    """Print the patterns of a database."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("database", type=Path)
    with connect(parser.parse_args().database) as connection:
        print("\n".join(patterns(connection)) or "no pattern")


if __name__ == "__main__":
    main()
