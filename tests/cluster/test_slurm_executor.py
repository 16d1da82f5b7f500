"""The workflow through a real Slurm: the same files as on one machine, and a job that dies is tried again."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from helpers.slurm import Slurm, Unavailable
from kill import made, make_project

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    """Give a Slurm; skip with the reason where none can be started, or its plugin is missing."""
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="needs the plugin: pip install -e '.[slurm]'")
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


def cancel_the_first(cluster, cancelled):
    """Cancel the first running job, as if its node had died; note what it asked for: MB, and minutes."""

    def is_cancelled():
        running = cluster.run("squeue", "-h", "-t", "R", "--noconvert", "-O", "JobID,MinMemory,TimeLimit").splitlines()
        if running:
            number, memory, limit = running[0].split()
            cluster.run("scancel", number)
            hours, minutes, _ = [0, *map(int, limit.split(":"))][-3:]
            cancelled.append((int(memory.removesuffix("M")), 60 * hours + minutes))
        return bool(running)

    cluster.wait_for("a running job", is_cancelled, 600)


def small():
    """Return a config with every kind of job: generate, clean, step, fit, replicates, simulate, sweep, and figures."""
    return {
        "steps": {"like": {"kind": "model", "model": "minh-wolters", "components": 6},
                  "moldable": {"kind": "moldable"}},
        "sweeps": {"d-128": {"processors": 128, "d": 50, "seeds": 2}},
        "schedulers": {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}},
        "studies": {
            "small": {
                "logs": ["synthetic-64"], "seeds": 2, "figures": ["heatmap"],
                "runs": [
                    {"workloads": ["{log}", "{log}+moldable@1"], "schedulers": ["fcfs", "easy"]},
                    {"workloads": ["{log}+like@{seed}"], "schedulers": ["easy"]},
                ],
                "sweeps": [{"workloads": ["{log}"], "sweeps": ["d-128"], "schedulers": ["easy"]}],
            }
        },
    }  # fmt: skip


def test_through_slurm_with_a_job_that_dies_all_is_as_on_one_machine(cluster, tmp_path):
    """
    Run a small config through Slurm; the results are those of one machine, whichever job was killed.

    Where ``SWFLOW_LOCAL_RESULTS`` names the results of the embedded default on one machine, it is the embedded default.
    """
    if "SWFLOW_LOCAL_RESULTS" in os.environ:
        local = Path(os.environ["SWFLOW_LOCAL_RESULTS"]).parent
        config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    else:
        local, config = tmp_path / "local", small()
        make_project(local, config)
        snakemake(local, "--cores", "2", "--quiet", "all")
    folder = tmp_path / "cluster"
    make_project(folder, config)
    cancelled = []
    killer = threading.Thread(target=cancel_the_first, args=(cluster, cancelled), daemon=True)
    killer.start()
    said = snakemake(
        folder, "--profile", "workflow/profiles/slurm", "--cores", str(min(4, os.cpu_count() or 1)),
        "--slurm-no-account", "--slurm-status-command", "squeue",
        "--default-resources", "slurm_partition=main", "mem_mb=1000", "runtime=10", "--latency-wait", "10",
        "--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2",
    )  # fmt: skip
    assert cancelled, "no job was cancelled"
    # The first group has files that it makes itself: they count, too.
    assert cancelled[0][0] >= 2000 and cancelled[0][1] >= 10, cancelled
    assert "Trying to restart" in said
    assert "Nothing to be done" in snakemake(folder, "--cores", "1")
    assert made(folder) == made(local)
