"""The workflow through a real Slurm: the same bytes as on one machine, and a job that dies is tried again."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from slurm import Slurm, Unavailable

from kill import made, make_project

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    """Give a Slurm; skip with the reason where none can be started, or its plugin is missing."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs swflow[slurm]")
    try:
        with Slurm(accounting=False, cpus=os.cpu_count() or 1, memory=16000) as running:
            yield running
    except Unavailable as reason:
        pytest.skip(str(reason))


def snakemake(folder, *arguments):
    """Run Snakemake to its end; return what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *arguments],
        cwd=folder, env=os.environ | {"PATH": path}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def cancel_the_first(cluster, word, cancelled):
    """Cancel the first running job of a rule, as if its node had died."""

    def is_cancelled():
        for line in cluster.run("squeue", "-h", "-t", "R", "-o", "%i %k").splitlines():
            job, _, comment = line.partition(" ")
            if word in comment:
                cluster.run("scancel", job)
                cancelled.append(job)
                return True
        return False

    cluster.wait_for(f"a running job of {word}", is_cancelled, 600)


def test_the_default_config_through_slurm_with_a_job_that_dies(cluster, tmp_path):
    """
    Run the embedded default through Slurm; all is as on one machine, whoever was killed on the way.

    Where ``SWFLOW_LOCAL_RESULTS`` names the results of a run on one machine, these are compared with.
    """
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    local = Path(os.environ["SWFLOW_LOCAL_RESULTS"]).parent if "SWFLOW_LOCAL_RESULTS" in os.environ else None
    if local is None:
        local = tmp_path / "local"
        make_project(local, config)
        snakemake(local, "--cores", "2", "--quiet", "all")
    folder = tmp_path / "cluster"
    make_project(folder, config)
    cancelled = []
    killer = threading.Thread(target=cancel_the_first, args=(cluster, "simulate", cancelled), daemon=True)
    killer.start()
    said = snakemake(
        folder, "--profile", "workflow/profiles/slurm", "--slurm-no-account", "--slurm-status-command", "squeue",
        "--default-resources", "slurm_partition=main", "mem_mb=1000", "runtime=10", "--latency-wait", "10",
        "--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2",
    )  # fmt: skip
    assert cancelled, "no job was cancelled"
    assert "Trying to restart job" in said
    assert "Nothing to be done" in snakemake(folder, "--cores", "1")
    assert made(folder) == made(local)
