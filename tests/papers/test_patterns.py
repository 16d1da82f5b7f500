"""Patterns in the differences from published values."""

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

from patterns import patterns


@pytest.fixture
def differing():
    """Return a database in which all makespans lack the time before the first submission."""
    with duckdb.connect() as connection:
        connection.execute(
            """CREATE TABLE reproduction (paper VARCHAR, "table" VARCHAR, row VARCHAR, "column" VARCHAR,
                workload VARCHAR, published DOUBLE, ours DOUBLE, reason VARCHAR, scale VARCHAR, verdict VARCHAR);
            CREATE TABLE workloads (workload VARCHAR, first_submit_time DOUBLE, last_submit_time DOUBLE, jobs BIGINT,
                processors BIGINT);
            CREATE TABLE removals (workload VARCHAR, position INTEGER, stage VARCHAR, reason VARCHAR, jobs BIGINT);
            INSERT INTO workloads VALUES ('K', 599850, 29000000, 28000, 100);
            INSERT INTO removals VALUES ('K', 0, 'clean', 'kept', 28000), ('K', 0, 'clean', 'zero-run-time', 150);
            INSERT INTO reproduction SELECT 'P', 'T', 'f=' || i, 'makespan', 'K+f' || i, 29363625 + 1000 * i,
                28763776 + 1000 * i, NULL, 'relative', 'within 5 %' FROM range(4) t(i);
            INSERT INTO reproduction SELECT 'P', 'T', 'f=' || i, 'area', 'K+f' || i, 100 * (1 + i), 95 * (1 + i), NULL,
                'relative', 'within 5 %' FROM range(4) t(i);
            INSERT INTO reproduction SELECT 'P', 'T', 'f=' || i, 'awrt', 'K+f' || i, 1000, 1000 + 20 * i * i - 50, NULL,
                'relative', 'open' FROM range(4) t(i)"""
        )
        yield connection


def test_a_missing_datum_and_a_constant_factor_are_found(differing):
    assert patterns(differing) == [
        "P, area, K: factor 0.9500 in all 4 different values (within 5 %)",
        "P, makespan, K: 4 of 4 values differ by first_submit_time, 599,850 (T) (within 5 %)",
        "P, makespan, K: -599,849 in all 4 different values (within 5 %)",
    ]


def test_equal_values_and_chance_have_no_pattern(differing):
    differing.execute("UPDATE reproduction SET ours = published * 1.009 WHERE \"column\" = 'makespan'")
    differing.execute("DELETE FROM reproduction WHERE \"column\" = 'area' AND row = 'f=0' OR row = 'f=1'")
    assert patterns(differing) == []
