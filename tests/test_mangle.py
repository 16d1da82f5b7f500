"""Tests of damaged files: every command ends with a result or with one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from damages import Damage
from mangle import COMMANDS, GROUP, Result, faults

GOOD = Result(0, "a table\n", "a note\n", "hash", "")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, ""),
        ({"status": 1, "said": "swflow: a.txt: no such file\n", "output": ""}, ""),
        ({"status": 1, "said": "swflow: a.txt: no such file\n"}, "an output in spite of an error"),
        ({"status": 1, "said": "swflow: a\nmore\n", "output": ""}, "1 lines of errors"),
        ({"status": 1, "said": "", "output": ""}, "0 lines of errors"),
        ({"status": 1, "said": f"swflow: {'a' * 501}\n", "output": ""}, "an error of 509 characters"),
        ({"status": -11}, "exit status -11"),
        ({"trace": "Traceback\nKeyError: 'x'"}, "traceback: KeyError"),
        ({"printed": "a\x1b[31m"}, "control character"),
        ({"output": "another"}, "another result without a note"),
        ({"output": "another", "said": "1 line left out\n"}, ""),
    ],
)
def test_violations_are_found(changes: dict, fault: str):
    found = list(faults(GOOD._replace(**changes), GOOD, Damage("a number of 5,000 digits", must_note=True)))
    assert any(one.startswith(fault) for one in found) if fault else not found


def run(*words: object) -> str:
    """Run cases in another process, which has not used Polars before it forks."""
    done = subprocess.run(
        [sys.executable, "tests/mangle.py", *map(str, words)], cwd=Path(__file__).parents[1],
        text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def test_damaged_files_give_one_line_or_a_result():
    assert f"{2 * GROUP} cases" in run("--seed", 1, "--cases", 2 * GROUP)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_many_damaged_files_give_one_line_or_a_result(seed: int):
    assert "300 cases" in run("--seed", seed, "--cases", 300)


def test_every_format_is_damaged():
    names = {name for command in COMMANDS for name in command.inputs}
    assert names >= {
        "my.swf", "my.swf.gz", "log.parquet", "workload.parquet", "run.parquet", "sacct.txt", "sacct.json",
        "jobcomp.txt", "pbs.txt", "my.gwf", "jobs.csv", "jobs.parquet", "columns.yaml", "slurm.conf", "qos.txt",
        "assoc.txt", "res.txt", "usage.txt", "squeue.txt", "squeue.json",
        "logs.yaml", "site.yaml", "demands.txt", "starts.txt",
        "key",
    }  # fmt: skip
