"""Tests of the steps with a workload that has only the columns that every workload needs."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import NEEDED_COLUMNS, Workload
from swflow.workload.models.memory_model import fit_memory
from swflow.workload.steps.intensify import intensify
from swflow.workload.steps.memory import memory
from swflow.workload.steps.model import fit
from swflow.workload.steps.moldable import moldable
from swflow.workload.steps.scale import scale
from swflow.workload.steps.select import select
from swflow.workload.steps.set_machine import with_machine


@pytest.fixture
def workload(tmp_path: Path) -> Workload:
    count = 40
    jobs = pl.DataFrame(
        {
            "job_id": range(1, count + 1),
            "submit_time": [60.0 * number for number in range(count)],
            "run_time": [30.0 + number for number in range(count)],
            "processors": [1 + number % 4 for number in range(count)],
            "estimate": [100.0] * count,
        }
    )
    write_workload(Workload(jobs.select(NEEDED_COLUMNS), Machine.of(8), "few"), tmp_path / "few.parquet")
    return read_workload(tmp_path / "few.parquet")


@pytest.mark.parametrize(
    ("step", "column"),
    [
        (lambda jobs: select(jobs, status=[1]), "select: few: no column status"),
        (lambda jobs: select(jobs, without_status=[5]), "select: few: no column status"),
        (lambda jobs: memory(jobs, from_log="used"), "memory: few: no column used_memory"),
        (lambda jobs: fit_memory(jobs, "requested"), "memory: few: no column requested_memory"),
        (lambda jobs: fit(jobs), "model: few: no column requested_time"),
        (lambda jobs: fit(jobs, model="resample"), "model: few: no column requested_time"),
    ],
)
def test_steps_name_the_column_that_they_miss(workload, step, column):
    with pytest.raises(SwflowError, match=f"{column}; clean the log with swflow, or add it"):
        step(workload)


def test_other_steps_need_no_more_columns(workload):
    rng = np.random.default_rng(1)
    steps = [
        select(workload, jobs=30, where="processors <= 2"),
        memory(workload, high=1.0),
        with_machine(workload, processors=16),
        scale(workload, 16, generator=rng),
        moldable(workload, rng),
        *[intensify(workload, 1.5, by=by) for by in ("arrivals", "run-times")],
    ]
    assert all(one.jobs.height for one in steps)
