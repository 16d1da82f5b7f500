"""The config of a small report, and published values for it."""

import duckdb

from swflow.papers.views import COVERAGE

CONFIG = {
    "seed": 1,
    "studies": {
        "waits": {"title": "Who waits <less>?", "logs": ["A", "B"],  # prose: ignore
                  "runs": [{"workloads": ["{log}"], "schedulers": ["fcfs", "easy"]}]},
        "one": {"logs": ["A"], "figures": ["bubbles"], "runs": [{"workloads": ["{log}"], "schedulers": ["easy"]}]},
    },
}  # fmt: skip


#: The same studies, which ask for published values.
ASKING = {**CONFIG, "studies": {
    name: {**study, "figures": ["published", *study.get("figures", ())]} for name, study in CONFIG["studies"].items()
}}  # fmt: skip


def published(database, rows):
    """Put published values into a database."""
    with duckdb.connect(database) as connection:
        connection.executemany(
            'INSERT INTO published (paper, "table", row, "column", value, workload, scheduler, figure) '
            "VALUES ('Some 2001', 'Table I', ?, ?, ?, ?, ?, ?)", rows)  # fmt: skip
        connection.execute("DELETE FROM coverage")
        connection.execute(COVERAGE)
