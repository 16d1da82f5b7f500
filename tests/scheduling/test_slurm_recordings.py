"""Backfill slurm against recorded runs of a real Slurm; benchmarks/slurm_oracle.py prints the whole comparison."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.slurm_recordings import COLUMNS, OTHERS, RESERVATIONS, USAGE, compare, interval, runs_in, unpack

#: Fractions of a second by which each run is simulated earlier or later than recorded.
PHASES = 3

#: The traces whose mean wait is inside the 95 % confidence interval of Slurm's runs.
INSIDE = (
    "builtin", "backfill", "backfill-default", "size", "small-first", "qos", "partitions", "begin", "fair-share",
    "fair-tree", "fair-tree-deep", "backfill-minute", "backfill-window", "backfill-test", "backfill-user",
    "backfill-partition", "overlapping", "user-limits", "account-limits", "qos-limits", "replaced-limits", "gpu-limits",
    "gpus", "weights", "preempt-qos", "preempt-exempt", "run-minutes", "initial-usage", "maintenance", "features",
    "requested-nodes", "mixed", "everything", "site",
)  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recordings")
    unpack(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("trace", INSIDE)
def test_mean_waits_are_inside_the_interval_of_slurms_runs(recordings: Path, trace: str):
    tables = [compare(run, PHASES) for run in runs_in(recordings, trace)]
    slurm, half = interval(one[0]["slurm"].mean() for one in tables)
    swflow = np.mean([table["swflow"].mean() for one in tables for table in one])
    assert len(tables) >= 4
    assert abs(swflow - slurm) <= half, f"{swflow:.1f} s instead of {slurm:.1f} ± {half:.1f} s"


@pytest.mark.slow
@pytest.mark.parametrize("trace", ["fair-share", "fair-tree", "fair-tree-deep", "initial-usage", "everything", "mixed"])
def test_priorities_are_those_that_sprio_printed(recordings: Path, trace: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    oracle = importlib.import_module("slurm_oracle")
    for run in runs_in(recordings, trace):
        assert oracle.priorities(run)["error"].abs().max() <= 1, run


def test_recordings_name_neither_hosts_nor_paths(tmp_path: Path):
    unpack(tmp_path)
    files = [file for run in runs_in(tmp_path, "*") for file in run.iterdir()]
    assert {file.name for file in files} - {USAGE, RESERVATIONS} == {"sacct.txt", "sdiag.txt", *OTHERS}
    for file in files:
        text = file.read_text()
        assert "/" not in re.sub("(sched|priority|preempt|gres)/|n/a", "", text)
        if file.name == "sacct.txt":
            assert text.splitlines()[0] == "|".join(COLUMNS)
