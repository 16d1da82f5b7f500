"""Tests of closed standard streams, and of files that are created once."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.files.atomic import create_once
from swflow.files.reading import expanded


def run(*words: object, closed: str) -> subprocess.CompletedProcess:
    """Run the command line with some standard streams closed."""
    call = [sys.executable, "-c", "from swflow.cli import main; main()", *map(str, words)]
    return subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *call], text=True, capture_output=True)


@pytest.mark.parametrize(
    "closed",
    ["2>&-", *(pytest.param(one, marks=pytest.mark.slow) for one in ("1>&-", "0<&-", "1>&- 2>&-")), "0<&- 1>&- 2>&-"],
)
def test_closed_streams_change_no_output(tmp_path: Path, closed: str):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    for words, status in ((("generate", "lublin", "--jobs", 20, "-o", tmp_path / "x.swf"), 0),
                          (("check", tmp_path / "a.parquet"), 1)):  # fmt: skip
        done = run(*words, closed=closed)
        assert done.returncode == status
        assert "Traceback" not in done.stderr + done.stdout and "swflow:" not in done.stdout
        if status and "2>" not in closed:
            assert done.stderr.startswith("swflow: ") and done.stderr.count("\n") == 1
    lines = (tmp_path / "x.swf").read_text().splitlines()
    assert sum(not line.startswith(";") for line in lines) == 20
    assert all(line.startswith(";") or len(line.split()) == 18 for line in lines)


@pytest.mark.parametrize("has_links", [True, False])
def test_of_many_creators_one_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool):
    def refuse(*paths: object, **options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    target, found = tmp_path / "sub/key", []

    def create(number: int) -> None:
        is_new = create_once(target, f"{number}\n" * 1000)
        found.append((is_new, target.read_text()))

    threads = [threading.Thread(target=create, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(is_new for is_new, _ in found) == 1
    assert {text for _, text in found} == {target.read_text()} and len(target.read_text()) == 2000
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["key"]


def test_a_lock_that_was_left_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*paths: object, **options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr("swflow.files.atomic._LONGEST_LOCK", 0.0)
    (tmp_path / ".key.lock").mkdir()
    with pytest.raises(OSError, match=r"remove .*\.key\.lock"):
        create_once(tmp_path / "key", "text")
    assert [path.name for path in tmp_path.iterdir()] == [".key.lock"]


def test_without_a_home_folder_the_path_is_named(monkeypatch: pytest.MonkeyPatch):
    def refuse(path: str) -> str:
        return path

    monkeypatch.setattr(os.path, "expanduser", refuse)
    with pytest.raises(SwflowError, match="~/x: the home folder is unknown; set HOME"):
        expanded("~/x")
