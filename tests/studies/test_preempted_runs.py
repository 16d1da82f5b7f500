"""Preempted runs of a log: joined as the importer joins them, only where the site preempts."""

import random

import pytest

from helpers.cli import call
from swflow.studies.preempted_runs import with_joined_runs
from swflow.workload.clean import open_workload

COLUMNS = ["submit_time", "wait_time", "run_time", "eligible_after", "processors", "user_id"]
HEAD = "JobID|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Timelimit|AllocCPUS"


def stamp(minutes: int) -> str:
    return f"2025-03-{10 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:00"


def accounting(seed: int) -> str:
    """Return jobs that run once, or are preempted or fail several times first."""
    rng, rows = random.Random(seed), [HEAD]
    for job in range(1, 60):
        time = rng.randrange(4000)
        preemptible = rng.random() < 0.5
        where = f"u{job % 5}|lab|{'low' if preemptible else 'high'}|{'free' if preemptible else 'normal'}"
        while True:
            start = time + rng.randrange(90)
            end = start + rng.randrange(1, 300)
            states = ["COMPLETED", "COMPLETED", "FAILED"] + ["PREEMPTED"] * 3 * preemptible
            state = rng.choice(states)
            eligible = min(time + rng.choice((0, 2)), start)
            rows.append(f"{job}|{where}|{state}|{stamp(time)}|{stamp(eligible)}|{stamp(start)}|{stamp(end)}|05:00:00|4")
            if state != "PREEMPTED" or rng.random() < 0.1:
                break
            time = end
    return "\n".join([HEAD, *rng.sample(rows[1:], len(rows) - 1)]) + "\n"


@pytest.mark.parametrize("seed", range(2))
def test_runs_are_joined_as_by_the_importer(tmp_path, seed):
    (tmp_path / "sacct.txt").write_text(accounting(seed))
    assert call("import", "sacct", tmp_path / "sacct.txt", "-o", tmp_path / "all.parquet") == 0
    assert call("import", "sacct", tmp_path / "sacct.txt", "--join-preempted", "-o", tmp_path / "joined.parquet") == 0
    every, joined = (open_workload(tmp_path / f"{name}.parquet") for name in ("all", "joined"))
    assert joined.jobs.height < every.jobs.height
    assert with_joined_runs(joined, {"preemption": {"qos": {"normal": ["free"]}}}) is joined
    lost, key = every.jobs.height - joined.jobs.height, ["site_job_id", *COLUMNS]
    for preemption in ({"qos": {"normal": ["free"]}}, {"partition": {"high": 2, "low": 1}}):
        found = with_joined_runs(every, {"preemption": preemption})
        assert found.jobs.select(key).equals(joined.jobs.select(key))  # also the order of equal submissions
        assert found.history[-1]["removed"] == {"preempted-run": lost}
        assert found.history[-1]["kept"] == joined.jobs.height
        assert with_joined_runs(found, {"preemption": preemption}) is found
    for other in ({}, {"preemption": {"qos": {"free": ["normal"]}}}):
        assert with_joined_runs(every, other) is every
