"""From a workload to its outcomes, and the figures of the papers."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from swflow.analysis.metrics import CORRELATED, correlations, metrics
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import OUTCOME_COLUMNS, simulate
from swflow.studies.runs import run
from swflow.workload.clean import clean_log
from swflow.workload.steps.select import select

MACHINE = 8


@st.composite
def workloads(draw) -> Workload:
    """Draw a few jobs with many ties, zero run times and wide jobs."""
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 12), st.sampled_from([0, 1, 2, 5, 9, 30]), st.sampled_from([0, 0, 1, 5, 40]),
                st.integers(1, MACHINE),
            ),
            min_size=1,
            max_size=30,
        )
    )  # fmt: skip
    jobs = pl.DataFrame(
        [(number, float(s), float(r), float(r + more), p) for number, (s, r, more, p) in enumerate(rows, 1)],
        schema=["job_id", "submit_time", "run_time", "estimate", "processors"],
        orient="row",
    )
    return Workload(jobs.sort("submit_time", "job_id"), Machine.of(MACHINE), "drawn")


@given(workloads(), st.sampled_from(["none", "easy", "conservative"]))
def test_outcomes_equal_the_naive_simulator(workload, backfill):
    jobs = [
        naive.Job(number, row["submit_time"], row["run_time"], max(row["estimate"], 1.0), row["processors"])
        for number, row in enumerate(workload.jobs.iter_rows(named=True))
    ]
    policy = naive.Policy(backfill={"easy": "lookahead"}.get(backfill, backfill))
    expected = naive.simulate(jobs, MACHINE, policy).starts
    outcomes = simulate(workload, Scheduler(backfill=backfill))
    assert dict(enumerate(outcomes["start_time"])) == expected


def tiny(**columns) -> Workload:
    """Make a workload of two jobs."""
    table = {"job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [10.0, 5.0], "estimate": [4.0, 5.0]}
    return Workload(pl.DataFrame(table | {"processors": [8, 8]} | columns), Machine.of(MACHINE), "tiny")


def test_estimates_are_raised_or_kill():
    raised, killed = (simulate(tiny(), Scheduler(estimates=how)) for how in ("raise", "kill"))
    assert raised.select("start_time", "run_time", "killed").rows() == [(0, 10, False), (10, 5, False)]
    assert killed.select("start_time", "run_time", "killed").rows() == [(0, 4, True), (4, 5, False)]


@pytest.mark.parametrize(("prediction", "start"), [("user", 2.0), ("distinct", 10.0)])
def test_ends_at_one_instant_are_counted_one_by_one(prediction, start):
    # Jobs 1 and 2 end at 10, but 1 alone leaves enough for job 3; the processors of 2 are extra only if all ends count.
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3, 4], "submit_time": [0.0, 0.0, 1.0, 2.0], "run_time": [10.0, 10.0, 10.0, 100.0],
        "estimate": [10.0, 10.0, 10.0, 100.0], "processors": [2, 2, 3, 1],
    })  # fmt: skip
    scheduler = Scheduler(backfill="easy", prediction=prediction)
    assert list(simulate(Workload(jobs, Machine.of(5), "ends"), scheduler)["start_time"]) == [0.0, 0.0, 10.0, start]


def test_outcomes_follow_from_start_and_run_time():
    outcome = simulate(tiny(), Scheduler())
    assert outcome.schema == pl.Schema(OUTCOME_COLUMNS)
    row = outcome.row(1, named=True)
    assert (row["wait_time"], row["response_time"], row["end_time"]) == (9, 14, 15)
    assert (row["slowdown"], row["bounded_slowdown"]) == (14 / 5, 1.4)


def test_statuses_are_left_out_and_recorded_starts_replayed():
    workload = tiny(status=[5, 1], wait_time=[None, 7.0])
    assert simulate(workload, Scheduler(without_status=(5,)))["start_time"].to_list() == [1.0]
    assert simulate(workload, Scheduler(order="log")).select("job_id", "start_time").rows() == [(2, 8.0)]


def test_a_run_without_jobs_has_no_figures():
    workload = tiny(wait_time=pl.Series([None, None], dtype=pl.Float64))
    result = run(workload, Scheduler(order="log"))
    assert result.metrics["jobs"] == 0
    assert result.metrics["awrt"] is None
    assert {result.correlations[measure] for measure in CORRELATED} == {None}
    assert result.correlations["jobs"] == 0


def test_what_cannot_be_simulated_says_why():
    with pytest.raises(SwflowError, match="job 2 needs 9 of 8 processors"):
        simulate(tiny(processors=[1, 9]), Scheduler())
    with pytest.raises(SwflowError, match="1 jobs have no run time; drop them"):
        simulate(tiny(run_time=[None, 1.0]), Scheduler())
    with pytest.raises(SwflowError, match="schedulers: mine: unknown key 'backfil'; did you mean 'backfill'"):
        Scheduler.of("mine", {"backfil": "easy"})
    with pytest.raises(SwflowError, match="schedulers: mine: backfill: unknown value 'eazy'; did you mean 'easy'"):
        Scheduler.of("mine", {"backfill": "eazy"})


def busy_processors(outcomes: pl.DataFrame) -> int:
    """Return the most processors that were ever busy."""
    times = np.concatenate([outcomes["end_time"], outcomes["start_time"]])
    changes = np.concatenate([-outcomes["processors"], outcomes["processors"]])
    return int(np.cumsum(changes[np.argsort(times, kind="stable")]).max())


LOGS = {"KTH-SP2": ("KTH-SP2-1996-2.1-cln", 100), "SDSC-SP2": ("SDSC-SP2-1998-3.1-cln", 128),
        "HPC2N": ("HPC2N-2002-2.1-cln", 240), "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln", 1152)}  # fmt: skip


@pytest.fixture(scope="module")
def archive(traces):
    """Return a function that cleans a log of the archive, once."""
    cleaned: dict[str, Workload] = {}

    def get(name: str) -> Workload:
        file, processors = LOGS[name]
        if name not in cleaned:
            cleaned[name] = clean_log(traces / f"{file}.swf.gz", name=name, processors=processors)
        return cleaned[name]

    return get


@pytest.mark.archive
@pytest.mark.parametrize(("backfill", "awwt", "awrt"), [("easy", 25_124.8, 76_179.4), ("none", 390_900.1, 441_954.6)])
def test_reference_figures_of_the_scaling_paper(archive, backfill, awwt, awrt):
    """Ernemann, Song, Yahyapour 2003: the source workload KTH, measured on the cleaned log."""
    workload = archive("KTH-SP2")
    figures = metrics(simulate(workload, Scheduler(backfill=backfill)), workload.machine.processors)
    assert figures["squashed_area"] == 2_016_591_520
    assert (figures["awwt"], figures["awrt"]) == (pytest.approx(awwt, abs=0.1), pytest.approx(awrt, abs=0.1))


TABLE_1 = {
    ("KTH-SP2", "log"): (-0.01, 0.15, 0.09, 0.01),
    ("KTH-SP2", "easy"): (0.54, 0.06, 0.44, 0.01),
    ("KTH-SP2", "none"): (-0.10, -0.28, -0.26, 0.01),
    ("SDSC-SP2", "log"): (0.16, 0.02, 0.11, 0.01),
    ("SDSC-SP2", "easy"): (0.60, 0.26, 0.55, 0.01),
    ("SDSC-SP2", "none"): (0.40, 0.28, 0.37, 0.01),
    ("HPC2N", "log"): (0.08, 0.05, 0.08, 0.01),
    ("HPC2N", "easy"): (0.72, 0.41, 0.70, 0.06),
    ("HPC2N", "none"): (0.68, 0.48, 0.69, 0.06),
    ("SDSC-BLUE", "log"): (0.04, 0.02, 0.00, 0.03),
    ("SDSC-BLUE", "easy"): (0.58, 0.32, 0.57, 0.06),
    ("SDSC-BLUE", "none"): (0.48, 0.39, 0.47, 0.06),
}


@pytest.mark.archive
@pytest.mark.parametrize(("name", "scheduler"), TABLE_1)
def test_correlations_of_the_heatmap_paper(archive, name, scheduler):
    """Krakov, Feitelson 2012, Table 1: slowdown, response time and wait time; cancelled jobs are not simulated."""
    workload = archive(name)
    if scheduler == "log":
        result = run(workload, Scheduler(order="log"))
    else:
        result = run(select(workload, without_status=[5]), Scheduler(backfill=scheduler))
    *published, tolerance = TABLE_1[name, scheduler]
    ours = [result.correlations[measure] for measure in ("slowdown", "response_time", "wait_time")]
    assert ours == pytest.approx(published, abs=tolerance + 0.005)


@pytest.mark.archive
@pytest.mark.parametrize("name", ["KTH-SP2", "SDSC-SP2", "HPC2N"])
@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_invariants_on_real_logs(archive, name, backfill):
    workload = archive(name)
    outcomes = simulate(workload, Scheduler(backfill=backfill))
    assert busy_processors(outcomes) <= workload.machine.processors
    assert (outcomes["wait_time"] >= 0).all()
    assert outcomes.height == workload.jobs.height
    assert correlations(outcomes.with_columns(load=0.5))["slowdown"] is None


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({}, "give a larger machine (--processors)"),
        ({"clusters": [{"processors": 4}, {"processors": 2}]}, "give larger clusters, or leave them out with"),
        (
            {"backfill": "slurm", "nodes": [{"count": 2, "processors": 2}]},
            "larger nodes, or leave them out with",
        ),
    ],
)
def test_the_remedy_for_wide_jobs_is_where_the_size_comes_from(options, remedy):
    jobs = pl.DataFrame({
        "job_id": [1], "submit_time": [0.0], "run_time": [5.0], "processors": [5], "estimate": [5.0],
    })  # fmt: skip
    with pytest.raises(SwflowError, match=re.escape(remedy)) as error:
        simulate(Workload(jobs, Machine.of(4), "tiny"), Scheduler(**options))
    assert "job 1 needs 5 of 4 processors" in str(error.value)
    if options:
        assert 'swflow select --where "processors <= 4"' in str(error.value)
