"""The cache: private folders, checked files, and failures that only cost time."""

import os
import threading
from pathlib import Path

import pytest

from swflow.files import cache
from swflow.files.cache import cache_home, read_cached, remove_folders, trim, write_cached


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path / "a/b"))
    cache._warn_once.cache_clear()
    return tmp_path / "a/b"


def mode(path: Path) -> int:
    return path.lstat().st_mode & 0o777


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_and_files_are_for_the_user_alone(home, mask):
    before = os.umask(mask)
    try:
        write_cached("kind", "x", "head of it", b"con\ntent")
    finally:
        os.umask(before)
    assert read_cached("kind", "x") == ("head of it", b"con\ntent")
    assert {mode(path) for path in (home.parent, home, home / "kind")} == {0o700}
    assert [(path.name, mode(path)) for path in (home / "kind").iterdir()] == [("x", 0o600)]


def test_every_damaged_byte_is_noticed(home):
    write_cached("kind", "x", "head", b"content")
    file = home / "kind/x"
    content = file.read_bytes()
    for place in range(len(content)):
        for other in (content[:place], content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]):
            file.write_bytes(other)
            assert read_cached("kind", "x") is None
    file.write_bytes(content)
    assert read_cached("kind", "x") == ("head", b"content")


@pytest.mark.parametrize("which", ["home", "folder"])
@pytest.mark.parametrize("bits", [0o777, 0o770, 0o720, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(home, caplog, which, bits):
    write_cached("kind", "x", "head", b"content")
    (home if which == "home" else home / "kind").chmod(bits)
    assert read_cached("kind", "x") is None
    write_cached("kind", "y", "head", b"content")
    assert [path.name for path in (home / "kind").iterdir()] == ["x"]
    (note,) = caplog.messages
    assert "other users can write to it; nothing is cached; run: chmod 700" in note
    (home if which == "home" else home / "kind").chmod(0o755)
    assert read_cached("kind", "x") == ("head", b"content")
    assert mode(home / "kind") == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give files away")
@pytest.mark.parametrize("which", [".", "kind", "kind/x"])
def test_what_belongs_to_others_is_not_used(home, caplog, which):
    write_cached("kind", "x", "head", b"content")
    os.chown(home / which, 12345, -1)
    assert read_cached("kind", "x") is None
    if which != "kind/x":
        assert "belongs to another user; nothing is cached" in caplog.text


def test_links_and_pipes_are_not_used(home, tmp_path):
    write_cached("kind", "x", "head", b"content")
    elsewhere = tmp_path / "elsewhere"
    (home / "kind").rename(elsewhere)
    (home / "kind").symlink_to(elsewhere)
    assert read_cached("kind", "x") is None
    write_cached("kind", "y", "head", b"content")
    assert [path.name for path in elsewhere.iterdir()] == ["x"]
    (home / "kind").unlink()
    write_cached("kind", "y", "head", b"content")
    (home / "kind/x").symlink_to(elsewhere / "x")
    os.mkfifo(home / "kind/z")
    assert read_cached("kind", "x") is None and read_cached("kind", "z") is None  # the pipe does not block
    write_cached("kind", "x", "head", b"new")
    assert read_cached("kind", "x") == ("head", b"new")
    assert b"content" in (elsewhere / "x").read_bytes()


def test_failures_are_silent(home, tmp_path, monkeypatch):
    home.parent.mkdir()
    home.write_text("a file")
    write_cached("kind", "x", "head", b"content")
    trim("kind", most=1)
    remove_folders("kind", 1, "kind")
    assert read_cached("kind", "x") is None and home.read_text() == "a file"
    home.unlink()

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "rename", full)
        write_cached("kind", "x", "head", b"content")
    assert list((home / "kind").iterdir()) == []

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SWFLOW_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(cache.Path, "home", no_home)
    assert cache_home() is None
    write_cached("kind", "x", "head", b"content")
    trim("kind", most=1)
    remove_folders("kind", 1, "kind")
    assert read_cached("kind", "x") is None


def test_several_processes_may_trim_at_once(home):
    errors = []

    def use(number: int) -> None:
        try:
            for step in range(40):
                write_cached("kind", f"{number}-{step}", "head", b"content")
                trim("kind", most=3)
                assert read_cached("kind", f"{number}-{step}") in (None, ("head", b"content"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trim("kind", most=3)
    assert not errors and len(list((home / "kind").iterdir())) <= 3


def test_of_files_of_one_moment_no_more_are_kept(home):
    for name in "abcde":
        write_cached("kind", name, "head", b"content")
        os.utime(home / "kind" / name, (1_700_000_000, 1_700_000_000))
    trim("kind", most=2)
    assert len(list((home / "kind").iterdir())) == 2


def test_the_latest_files_are_kept(home):
    for age, name in enumerate(("new", "old", "older", ".x.tmp")):
        write_cached("kind", name, "head", b"content")
        at = 2e9 - age * 1000
        os.utime(home / "kind" / name, (at, at))
    trim("kind", most=2)
    assert {path.name for path in (home / "kind").iterdir()} == {"new", "old", ".x.tmp"}
    os.utime(home / "kind/.x.tmp", (0, 0))
    os.utime(home / "kind/old", (0, 0))
    trim("kind", seconds=3600)
    assert {path.name for path in (home / "kind").iterdir()} == {"new"}


def test_folders_of_other_versions_are_removed(home):
    for age, name in enumerate(("k-new", "k-old", "k-older", "other")):
        write_cached(name, "x", "head", b"content")
        at = 1e9 - age * 1000
        os.utime(home / name, (at, at))
    remove_folders("k-", 2, "k-older")
    assert {path.name for path in home.iterdir()} == {"k-older", "k-new", "other"}
