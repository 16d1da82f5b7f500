"""Test for saturation: the queue grows over the log, and the winner of a comparison is not such a run."""

import numpy as np
import polars as pl
import pytest

from swflow.analysis.intervals import over_replicates
from swflow.analysis.multiple_testing import columns_of
from swflow.analysis.resampling import WEEK
from swflow.analysis.saturation import is_saturated
from swflow.database.comparisons import with_verdicts
from swflow.database.load import load
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.studies.runs import simulate_all
from swflow.studies.variants import variants
from swflow.studies.whatif import ask


def single_server(load: float, seed: int, weeks: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return submissions, starts and areas of a queue with one processor, first come, first served."""
    generator = np.random.default_rng(seed)
    submit = np.sort(generator.uniform(0, weeks * WEEK, weeks * 60))
    run = generator.exponential(load * WEEK / 60, submit.size)
    start, free = np.empty(submit.size), 0.0
    for place, (arrival, length) in enumerate(zip(submit, run, strict=True)):
        start[place] = max(arrival, free)
        free = start[place] + length
    return submit, start, run


def test_only_overloaded_queues_are_saturated():
    stable = [is_saturated(*single_server(0.7, seed)) for seed in range(100)]
    overloaded = [is_saturated(*single_server(1.2, seed)) for seed in range(100)]
    assert sum(stable) <= 7 and sum(overloaded) >= 95


def test_a_queue_that_empties_or_few_weeks_are_not_saturated():
    submit, start, run = single_server(0.7, 1)
    busy = np.where(submit > 10 * WEEK, 2000.0, 0.0)  # later jobs wait for longer, but the queue empties
    busy[-9:] = 0.0
    assert is_saturated(submit, submit + busy, run) is False
    assert is_saturated(*single_server(1.2, 1, weeks=7)) is None
    assert is_saturated(np.empty(0), np.empty(0), np.empty(0)) is None
    assert is_saturated(submit, start - 1e6, run) is False  # recorded jobs can start before their submission


@pytest.fixture(scope="module")
def overloaded() -> Workload:
    """Return a workload of half a year with an offered load of 1.3."""
    generator = np.random.default_rng(3)
    submit = np.sort(generator.integers(0, int(26 * WEEK), 600)) * 1.0
    run = generator.exponential(1.0, 600)
    run = np.ceil(run * 1.3 * (submit[-1] - submit[0]) / run.sum())
    jobs = pl.DataFrame({"job_id": range(1, 601), "submit_time": submit, "run_time": run, "estimate": run})
    return Workload(jobs.with_columns(processors=pl.lit(4), requested_time="estimate"), Machine.of(4), "A")


def test_a_saturated_run_is_never_better(overloaded, tmp_path):
    """Workloads with an offered load above 1 were compared by their mean waits, which grow with the log."""
    write_workload(overloaded, tmp_path / "A.parquet")
    schedulers = {"ljf": {"order": "-estimate"}, "sjf": {"order": "sjf"}}
    simulate_all(tmp_path / "A.parquet", schedulers, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    sql = "SELECT saturated, metrics.offered_load, w.offered_load FROM metrics JOIN workloads w USING (workload)"
    for saturated, of_run, of_workload in query(tmp_path / "d.duckdb", sql)[1]:
        assert saturated == 1 and of_run == of_workload == pytest.approx(1.3, rel=1e-3)
    sql = """SELECT mean_verdict, mean_verdict_holm, score_verdict, mean_p < 0.05, variant_mean > 2 * base_mean
        FROM comparisons WHERE measure = 'wait_time'"""
    word = "cannot tell: saturated"
    assert query(tmp_path / "d.duckdb", sql)[1] == [(word, word, word, True, True)]
    answer = ask(overloaded, variants(schedulers)).table.filter(pl.col("measure") == "mean_wait_time")
    assert answer["verdict"].to_list() == answer["verdict_holm"].to_list() == ["base", word]
    larger = ask(overloaded, variants({"fcfs": {}}, processors=["+100%"])).table
    assert larger.filter(pl.col("measure") == "mean_wait_time")["verdict"][1] == "variant is better"


@pytest.mark.parametrize(
    ("saturated", "verdict"),
    [
        (set(), "variant is better"),
        ({"A+s@2/sjf"}, "cannot tell: saturated"),
        ({"A+s@1/fcfs", "A+s@3/fcfs"}, "variant is better"),
    ],
)
def test_a_recipe_with_a_saturated_replicate_is_never_better(saturated, verdict):
    """Whether one was saturated was read from verdicts on single replicates, which may be undecided."""
    runs = [(f"A+s@{number}/sjf", f"A+s@{number}/fcfs") for number in (1, 2, 3)]
    unknown = columns_of("score", over_replicates([])) | columns_of("mean", over_replicates([]))
    rows = [
        unknown | {
            "workload": variant.partition("/")[0], "measure": "wait_time", "variant": variant, "base": base,
            "basis": "weeks", "blocks": 9, "distance": 0.1, "score": 0.0, "variant_wins": 0.5, "base_wins": 0.5,
            "better": None, "variant_mean": 100.0 + number, "base_mean": 900.0 - number,
            "mean_difference": -800.0, "mean_verdict": "not distinguishable", "mean_p": 0.5,
        }
        for number, (variant, base) in enumerate(runs)
    ]  # fmt: skip
    found = with_verdicts(rows, {"one": runs}, saturated)
    (recipe,) = (row for row in found if row["basis"] == "replicates")
    assert (recipe["variant"], recipe["mean_verdict"]) == ("A+s/sjf", verdict)
