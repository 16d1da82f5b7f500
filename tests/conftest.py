"""Fixtures shared by several test files."""

import gc
import gzip
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from helpers.cli import HEADER, LINES
from helpers.forked import Server
from swflow.cli.terminal import Watch

# Importing readline, as pytest does, sets this variable for child processes; their tables would get its width.
os.unsetenv("COLUMNS")


# No test depends on the speed of the machine: commands do not name their long stages, and draws may take any time.
Watch.PATIENCE = dict.fromkeys(Watch.PATIENCE, 1e6)
UNHURRIED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}

# `pytest --hypothesis-profile=thorough` draws more.
settings.register_profile("default", max_examples=25, **UNHURRIED)
settings.register_profile("thorough", max_examples=300, **UNHURRIED)
settings.load_profile("default")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start no processes for some files only: importing all libraries takes each some seconds."""
    return None if config.args == config.getini("testpaths") else 0


#: Folders and files whose tests run kernels or need packages that the extra `test` does not install.
COMPILING = {
    "analysis", "compiled", "conformance", "laws", "scheduling", "test_clean_eligibility.py", "test_eligible.py",
    "test_fuzz.py", "test_notebook.py",
}  # fmt: skip


#: Files whose slow tests take the better part of a minute or longer, besides those of the workflow and of Slurm.
LONGEST = {
    "test_accounts.py", "test_browser.py", "test_docs.py", "test_fingerprint.py", "test_full_disk.py", "test_fuzz.py",
    "test_kernels.py", "test_mangle.py", "test_numbered.py", "test_reasons.py", "test_sharing.py", "test_slurm.py",
    "test_waits.py",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Mark the tests that do more in `.ci/run` than in `pytest`, and put the longest tests first.

    The former compile kernels, draw more examples, read real logs, or are slow. With the longest files first, the last
    one leaves no process waiting for minutes.
    """
    for item in items:
        marks = {"slow", "archive", "compiled"} & {mark.name for mark in item.iter_markers()}
        compiles = COMPILING & set(item.path.relative_to(item.config.rootpath).parts)
        if marks or compiles or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("more")
        if "compiled" in marks and os.environ.get("SWFLOW_INTERPRET", "0") not in ("", "0"):
            item.add_marker(pytest.mark.skip(reason="it checks what is compiled"))
    items.sort(
        key=lambda item: (
            not {"cluster", "workflow"} & {mark.name for mark in item.iter_markers()},
            item.path.name not in LONGEST,
        )
    )


def pytest_collection_finish() -> None:
    """Let the garbage collector leave out thousands of tests and modules, which stay to the end."""
    gc.collect()
    gc.freeze()


#: Folders and files whose cases by hand run as plain Python: a wrong index is an error, and nothing is compiled.
PLAIN = {
    "conformance", "laws", "scheduling", "test_clean_eligibility.py", "test_eligible.py", "test_fuzz.py",
    "test_oversubscribed.py", "test_resource_metrics.py", "test_shadows.py",
}  # fmt: skip


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run the kernels of cases by hand as plain Python, unless ``SWFLOW_INTERPRET`` is set, as `.ci/run` does."""
    plain = PLAIN & set(item.path.relative_to(item.config.rootpath).parts)
    compiled = {"slow", "archive", "compiled"} & {mark.name for mark in item.iter_markers()}
    if plain and not compiled and "SWFLOW_INTERPRET" not in os.environ:
        os.environ["SWFLOW_INTERPRET"] = "1"
        try:
            return (yield)
        finally:
            os.environ.pop("SWFLOW_INTERPRET", None)
    return (yield)


@pytest.fixture(scope="session")
def traces() -> Path:
    """Return the folder of real logs; skip the test if there is none."""
    folder = Path(os.environ.get("SWFLOW_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
    if not folder.is_dir():
        pytest.skip(f"no real logs at {folder} (set SWFLOW_TRACES)")
    return folder


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Path:
    """Build the project created by `swflow init`, with its database, once."""
    return _built("project", tmp_path_factory)


@pytest.fixture(scope="session")
def default(tmp_path_factory) -> Path:
    """Build the runs of one log of the embedded default, with their database, once."""
    return _built("default", tmp_path_factory)


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Build the files of a synthetic Slurm site, with a database of its log, once."""
    return _built("site", tmp_path_factory)


def _built(place: str, tmp_path_factory) -> Path:
    sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
    from examples import PLACES

    folder = tmp_path_factory.mktemp("docs") / place
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SWFLOW_INTERPRET", raising=False)  # it simulates months
        PLACES[place](folder)
    return folder


@pytest.fixture(scope="session")
def server() -> Generator[Server, None, None]:
    """Provide the process that runs commands in forks of itself."""
    with Server() as server:
        yield server


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Write a small log to the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "toy.swf.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(LINES) + "\n").encode()))
    return path
