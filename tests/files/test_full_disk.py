"""Commands on a full disk: the old output stays, or the new one is complete. benchmarks/full_disk.py has all sizes."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks/full_disk.py"


@pytest.mark.slow
def test_commands_with_little_space_lose_nothing():
    words = ["--points", "3", "load", "clean", "figure", "sql", "import sacct"]
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no mount namespace")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("wrong: 0")
