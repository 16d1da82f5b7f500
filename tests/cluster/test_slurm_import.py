"""A real Slurm runs some dozens of jobs, and its own accounting comes through the importer."""

import json
import time
from collections import Counter

import pytest

from helpers.slurm import Slurm, Unavailable
from swflow.log.importers.records import Site
from swflow.log.importers.sacct import RECOMMENDED, import_sacct

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.fixture(scope="module")
def slurm():
    """Give a Slurm that has run its jobs; skip with the reason where none can be started."""
    try:
        with Slurm() as cluster:
            cluster.expected = _run_jobs(cluster)
            yield cluster
    except Unavailable as reason:
        pytest.skip(str(reason))


def _run_jobs(cluster: Slurm) -> dict[str, int]:
    """Run jobs of many kinds; return id to the status that they must have."""
    expected = {}
    for number in range(24):
        job = cluster.submit(
            "-n", str(1 + number % 4), "-t", "2", "-p", ("main", "quick")[number % 2], wrap="sleep 0.3"
        )
        expected[str(job)] = 1
    expected[str(cluster.submit("-n1", "-t1", wrap="exit 3"))] = 0
    expected[str(cluster.submit("-n1", "-t1", "--job-name=a|b c", "--comment=x|y", wrap="srun true | cat"))] = 1
    array = cluster.submit("-n1", "-t1", "--array=1-3%2", wrap="true")
    expected |= {f"{array}_{task}": 1 for task in (1, 2, 3)}
    running = cluster.submit("-n4", "-t1", wrap="sleep 60")
    cluster.wait_for("a running job", lambda: "R" in cluster.run("squeue", "-h", "-j", str(running), "-o", "%t"), 120)
    waiting = cluster.submit("-n4", "-t1", wrap="true")
    time.sleep(3)  # until it has been looked at: jobs that were never eligible are not in the accounting
    for job in (waiting, running):
        cluster.run("scancel", str(job))
        expected[str(job)] = 5
    cluster.wait_until_empty()
    return expected


def test_the_text_of_sacct(slurm, tmp_path):
    if not slurm.has_accounting:
        pytest.skip("no sacct without slurmdbd and MariaDB (Debian: slurmdbd, mariadb-server)")
    time.sleep(2)  # slurmdbd records the end after the queue is empty
    for columns in (RECOMMENDED, "ALL"):
        path = tmp_path / f"{columns[:3]}.txt"
        path.write_text(slurm.run("sacct", "-a", "-D", "-P", f"--format={columns}"))
        log = import_sacct(str(path), Site(processors=slurm.cpus))
        jobs = {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}
        assert {name: job["status"] for name, job in jobs.items()} == slurm.expected
        assert log.history[0]["removed"] == {}
        assert log.history[0]["notes"]["tasks of arrays"] == 3
        assert log.history[0]["notes"]["steps, which are not jobs"] >= len(jobs) - 1
        assert log.history[0]["notes"]["never started (kept, with a run time of 0)"] == 1
        assert all(job["wait_time"] >= 0 and job["requested_time"] in (60, 120) for job in jobs.values())
        assert {job["allocated_processors"] for job in jobs.values()} <= {1, 2, 3, 4, None}
        assert set(log.header.names_of("partition_id").values()) == {"main", "quick"}
        assert set(log.header.names_of("user_id").values()) == {"root"}
        assert log.header["Computer"] == ["swflowtest"]


def test_the_json_of_sacct(slurm, tmp_path):
    if not slurm.has_accounting:
        pytest.skip("no sacct without slurmdbd and MariaDB (Debian: slurmdbd, mariadb-server)")
    path = tmp_path / "sacct.json"
    path.write_text(slurm.run("sacct", "-a", "--json"))
    assert json.loads(path.read_text())["jobs"]
    log = import_sacct(str(path), Site(processors=slurm.cpus))
    jobs = {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}
    assert {name: job["status"] for name, job in jobs.items()} == slurm.expected
    assert all(job["requested_time"] in (60, 120) for job in jobs.values())


def test_the_job_completion_log(slurm):
    log = import_sacct(str(slurm.job_completions), Site(processors=slurm.cpus))
    # Slurm 22.05 does not write which tasks belong to an array, so that ids differ.
    assert Counter(log.fields["status"].to_list()) == Counter(slurm.expected.values())
    assert log.history[0]["notes"]["never started (kept, with a run time of 0)"] == 1
    assert set(log.fields["requested_time"].to_list()) == {60, 120}
    assert set(log.header.names_of("user_id").values()) == {"root"}


def test_the_machine_was_never_overused(slurm):
    log = import_sacct(str(slurm.job_completions), Site())
    assert int(log.header["MaxProcs"][0]) <= slurm.cpus
