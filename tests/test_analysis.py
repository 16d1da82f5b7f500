"""Load and metrics against plain loops over seconds and jobs."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swflow.analysis.load import load_experienced, with_load
from swflow.analysis.metrics import MEASURES, correlations, metrics
from swflow.scheduling.simulate import outcomes

stays = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(1, 8)), min_size=1, max_size=15
)


def naive_load(submit, start, end, processors, machine):
    """Add up the utilization of every second of every job's stay."""

    def utilization(second):
        return sum(p for s, e, p in zip(start, end, processors, strict=True) if s <= second < e) / machine

    return [
        float(np.mean([utilization(second) for second in range(a, b)])) if b > a else utilization(a)
        for a, b in zip(submit, end, strict=True)
    ]


@settings(max_examples=300, deadline=None)
@given(stays)
def test_load_equals_the_sum_over_seconds(rows):
    submit = [s for s, *_ in rows]
    start = [s + wait for s, wait, *_ in rows]
    end = [s + wait + run for s, wait, run, _ in rows]
    processors = [row[3] for row in rows]
    arrays = [np.array(values, float) for values in (submit, start, end)]
    ours = load_experienced(*arrays, np.array(processors), 8)
    assert ours.tolist() == pytest.approx(naive_load(submit, start, end, processors, 8), abs=1e-12)


def drawn(jobs: int) -> pl.DataFrame:
    """Draw outcomes."""
    rng = np.random.default_rng(5)
    table = pl.DataFrame({
        "job_id": np.arange(jobs), "submit_time": np.sort(rng.integers(0, 1000, jobs)).astype(float),
        "processors": rng.integers(1, 9, jobs),
    })  # fmt: skip
    run = pl.Series(rng.integers(0, 100, jobs).astype(float))
    wait = pl.Series(rng.integers(0, 500, jobs).astype(float))
    result = outcomes(table, table["submit_time"] + wait, run, pl.Series(rng.random(jobs) < 0.1))
    return with_load(result, 16)


def test_metrics_equal_plain_python():
    table = drawn(200)
    rows = table.to_dicts()
    figures = metrics(table, 16)
    area = [row["processors"] * row["run_time"] for row in rows]
    assert figures["jobs"] == 200
    assert figures["squashed_area"] == sum(area)
    span = max(row["end_time"] for row in rows) - min(row["submit_time"] for row in rows)
    assert figures["makespan"] == span
    assert figures["utilization"] == pytest.approx(sum(area) / (16 * span))
    assert figures["killed"] == sum(row["killed"] for row in rows)
    for name, column in {"awrt": "response_time", "awwt": "wait_time"}.items():
        weighted = sum(weight * row[column] for weight, row in zip(area, rows, strict=True)) / sum(area)
        assert figures[name] == pytest.approx(weighted)
    for measure in MEASURES:
        values = [row[measure] for row in rows if row[measure] is not None]
        assert figures[f"mean_{measure}"] == pytest.approx(np.mean(values))
        assert figures[f"median_{measure}"] == pytest.approx(np.median(values))
        assert figures[f"p95_{measure}"] == pytest.approx(np.quantile(values, 0.95))


def test_correlations_equal_scipy():
    from scipy.stats import spearmanr

    table = drawn(300)
    known = table.filter(pl.col("slowdown").is_not_null())
    for measure, ours in correlations(table).items():
        assert ours == pytest.approx(spearmanr(known["load"], known[measure]).statistic)
