"""Commands on a full disk: the old output stays, or the new one is complete. benchmarks/full_disk.py has all sizes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks/full_disk.py"


def run_with_little_space(*commands: str) -> None:
    """Run commands whose names contain one of the words, with a few amounts of free space."""
    words = [sys.executable, PROGRAM, "--points", "2", *commands]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"SWFLOW_INTERPRET": "1"})
    if done.returncode == 77:
        pytest.skip("no mount namespace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(" commands; wrong: 0")


def test_commands_with_little_space_lose_nothing():
    run_with_little_space("--small", "clean x.parquet", "reach")


@pytest.mark.slow
def test_databases_and_figures_with_little_space_lose_nothing():
    run_with_little_space("load x.duckdb over", "load x.duckdb, x.json", "figure", "sql x.csv")
