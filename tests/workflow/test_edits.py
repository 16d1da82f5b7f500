"""Edits of a random config, compared with a run from nothing; benchmarks/edits.py makes many more."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]

ROOT = Path(__file__).parents[2]


def test_edits_of_a_config_give_the_results_of_a_run_from_nothing():
    command = [sys.executable, "benchmarks/edits.py", "--seed", "1", "--case", "1", "--edits", "2"]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    assert " edits, 0 differences" in done.stdout
