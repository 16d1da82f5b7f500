"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def traces() -> Path:
    """Return the folder of real logs, or skip the test where there is none."""
    folder = Path(os.environ.get("SWFLOW_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"no real logs at {folder} (set SWFLOW_TRACES)")
    return folder
