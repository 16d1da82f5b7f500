"""Tests of opening the files of users."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swflow.errors import SwflowError
from swflow.files import reading
from swflow.files.reading import opened, parse_json, read_bytes, read_text
from swflow.files.tables import read_parquet
from swflow.files.yaml import parse_user_yaml, read_yaml
from swflow.studies.config_files import check_config_files, mistakes_named
from swflow.values import Limit


def no_files(folder: Path) -> dict[str, Path]:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    return {
        "a folder": folder, "a named pipe": folder / "pipe", "a device": Path("/dev/zero"),
        "no such file": folder / "none", "cannot be read": folder / "loop",
    }  # fmt: skip


@pytest.mark.parametrize("read", [read_bytes, read_text, read_yaml, read_parquet])
def test_only_files_are_opened(tmp_path: Path, read):
    for words, path in no_files(tmp_path).items():
        with pytest.raises(SwflowError, match=f"^{path}: .*{words}"):
            read(path)


def test_a_pipe_is_opened_by_its_descriptor():
    code = "from swflow.files.reading import read_bytes; print(read_bytes('/dev/stdin'))"
    done = subprocess.run([sys.executable, "-c", code], input=b"a log", capture_output=True, check=True)
    assert done.stdout == b"b'a log'\n"


def test_sizes_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "big.yaml"
    file.write_bytes(b"x" * 101)
    with pytest.raises(SwflowError, match=r"big.yaml: more than 100 bytes; .* SWFLOW_LIMITS=10"):
        read_text(file, Limit(100, "bytes"))
    file.write_bytes(gzip.compress(b"x" * 200))
    monkeypatch.setattr(reading, "TEXT", Limit(100, "bytes of text"))
    with pytest.raises(SwflowError, match="more than 100 bytes of text"):
        read_bytes(file)


def test_a_text_is_utf8(tmp_path: Path):
    (tmp_path / "a.yaml").write_bytes("a: 1\nname: Zoë\n".encode("latin-1"))
    with pytest.raises(SwflowError, match=r"a.yaml:2: byte 0xeb is not UTF-8"):
        read_yaml(tmp_path / "a.yaml")


#: Aliases that stand for ten million values.
BOMB = "a: &a [x,x]\n" + "".join(
    f"{n}: &{n} [{','.join(['*' + o] * 9)}]\n" for o, n in ("ab", "bc", "cd", "de", "ef", "fg", "gh")
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2", "a.yaml:2: invalid YAML (a is given twice)"),
        ("b: 1\nfrom: 1996-09-31", "a.yaml:2: invalid YAML (1996-09-31: day is out of range"),
        (f"a: {'1' * 5000}", "not a valid value"),
        ("a: &a [*a]", "*a contains itself"),
        ("- " * 300, "too deeply nested"),
        (BOMB, "more than 2,000,000 values"),
    ],
)  # fmt: skip
def test_mistakes_in_yaml_are_one_line(text: str, words: str):
    with pytest.raises(SwflowError) as error:
        parse_user_yaml(text, "a.yaml")
    assert words in str(error.value)


def test_mistakes_in_json_are_one_line():
    for content, words in (("[" * 100_000, "nested"), ("{", ":1: invalid"), ("1" * 5000, "digits"), (b"\xff", "UTF-8")):
        with pytest.raises(SwflowError, match=words):
            parse_json(content, "a.json")
    with pytest.raises(SwflowError, match="'a' is given twice"):
        parse_json('{"a": 1, "a": 2}', "--scheduler", is_option=True)


@pytest.mark.parametrize("name", ["2024", "2024-01-01", "true", "null", "1.5"])
def test_a_name_in_a_config_is_a_text(tmp_path: Path, name: str):
    file = tmp_path / "config.yaml"
    file.write_text(f"schedulers:\n  {name}: {{order: sjf}}\n")
    with pytest.raises(SwflowError, match=r"config.yaml: schedulers: .*expected a text as a name"):
        check_config_files([file])
    file.write_text(f"schedulers:\n  '{name}': {{order: sjf}}\n")
    check_config_files([file])


def test_opening_does_not_wait(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SwflowError), opened(tmp_path / "pipe"):
        pass


def test_a_config_that_snakemake_cannot_read_is_named_with_its_line(tmp_path: Path):
    from snakemake.common.configfile import load_configfile

    file = tmp_path / "config.yaml"
    file.write_text("seed: 1\nstudies:\n\tmine: {}\n")
    with pytest.raises(SystemExit, match=r"config: .*config\.yaml:3: invalid YAML"), mistakes_named(str(file)):
        load_configfile(str(file))
    file.write_text("seed: 1\n")
    with mistakes_named(str(file)):
        assert load_configfile(str(file)) == {"seed": 1}
