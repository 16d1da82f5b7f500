"""Outputs that are no regular files: links are followed, pipes and devices are written to, others are refused."""

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from swflow.errors import SwflowError
from swflow.files.atomic import atomic_path, check_output, create_once, folder_beside, write_text


def test_the_target_of_links_is_replaced(tmp_path):
    for name in ("store", "links"):
        (tmp_path / name).mkdir()
    (tmp_path / "links/first").symlink_to("second")
    (tmp_path / "links/second").symlink_to("../store/file.txt")
    for text in ("new", "newer"):  # the first time, the target is missing
        write_text(tmp_path / "links/first", text)
        assert (tmp_path / "store/file.txt").read_text() == text
        assert (tmp_path / "links/first").readlink() == Path("second")
        assert (tmp_path / "links/second").readlink() == Path("../store/file.txt")
    with pytest.raises(KeyError), atomic_path(tmp_path / "links/first") as temporary:
        temporary.write_text("half")
        raise KeyError
    assert (tmp_path / "store/file.txt").read_text() == "newer"
    assert {path.name for path in tmp_path.rglob("*")} == {"store", "links", "first", "second", "file.txt"}


def test_links_in_a_circle_and_to_folders_are_errors(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "c").symlink_to("folder")
    for name, words in (("a", "symbolic links that refer"), ("c", "it is a folder")):
        with pytest.raises(SwflowError, match=f"[abc]: cannot be written .{words}"):
            write_text(tmp_path / name, "x")
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "c", "folder"}


def test_a_pipe_gets_the_content(tmp_path):
    pipe = tmp_path / "pipe.bin"
    os.mkfifo(pipe)
    check_output(pipe)
    with pytest.raises(SwflowError, match="a pipe or a device; expected a file"):
        check_output(pipe, stream=False)
    content = os.urandom(300_000)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with atomic_path(pipe) as temporary:
        assert temporary.suffix == ".bin" and temporary.parent != tmp_path
        temporary.write_bytes(content)
    reader.join()
    assert found == [content] and pipe.is_fifo() and [path.name for path in tmp_path.iterdir()] == ["pipe.bin"]


def test_devices_stay(tmp_path):
    write_text("/dev/null", "nothing")
    assert Path("/dev/null").is_char_device()
    (tmp_path / "link").symlink_to("/dev/full")
    with pytest.raises(SwflowError, match=r"link: cannot be written \(the disk is full"):
        write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink() and Path("/dev/full").is_char_device()
    with folder_beside("/dev/null") as folder:
        assert folder.parent != Path("/dev")


def test_folders_of_one_process_are_apart(tmp_path):
    with folder_beside(tmp_path / "a.parquet") as first, folder_beside(tmp_path / "b.parquet") as second:
        assert first != second and {first, second} == {*tmp_path.iterdir()}
        (first / "part").touch()
        with pytest.raises(SwflowError, match="cannot be written"), folder_beside(tmp_path / "a.parquet"):
            pass
        assert (first / "part").exists()
    assert not [*tmp_path.iterdir()]
    with folder_beside(tmp_path / ("n" * 255)) as folder:
        assert len(folder.name) == 255


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("x.csv")
        for write in (check_output, lambda path: write_text(path, "x")):
            with pytest.raises(SwflowError, match=r"x\.csv: a socket; expected a file, a pipe, or a device"):
                write("x.csv")
        assert Path("x.csv").is_socket()


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_standard_output_is_written_between_other_text(tmp_path, output, to):
    program = f"""
from swflow.files.atomic import write_text
print("before")
write_text({output!r}, "text\\n")
print("after")
"""
    with (tmp_path / "out").open("w") as file:
        file.write("first\n")
        file.flush()
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=subprocess.PIPE if to == "pipe" else file, text=True, check=True
        )
    found = done.stdout if to == "pipe" else (tmp_path / "out").read_text().removeprefix("first\n")
    assert found == "before\ntext\nafter\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_is_created_once(tmp_path):
    found, barrier = [], threading.Barrier(8)

    def create(number: int) -> None:
        barrier.wait()
        is_new = create_once(tmp_path / "a/key", f"{number}\n")
        found.append((is_new, number, (tmp_path / "a/key").read_text()))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [number for is_new, number, _ in found if is_new]
    assert {text for *_, text in found} == {f"{winner}\n"} and len(found) == 8
    assert (tmp_path / "a/key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["key"]
