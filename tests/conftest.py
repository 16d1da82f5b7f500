"""Fixtures that several test files share."""

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def traces() -> Path:
    """Return the folder of real logs, or skip the test where there is none."""
    folder = Path(os.environ.get("SWFLOW_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"no real logs at {folder} (set SWFLOW_TRACES)")
    return folder


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Path:
    """Make the project that `swflow init` begins, with its database, once."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
    from examples import make_project

    folder = tmp_path_factory.mktemp("docs") / "demo"
    make_project(folder)
    return folder
