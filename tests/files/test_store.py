"""Test the store of results: restore what is current, and treat damaged entries as missing."""

import json
import os
from pathlib import Path

import pytest

from swflow.files.reading import file_digest
from swflow.files.store import STORE, Store, key_of, unnamed


@pytest.fixture
def kept(tmp_path):
    """Keep a result; return the store, its key, and the file."""
    file = tmp_path / "runs/A/easy.parquet"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"outcomes" * 100)
    store = Store(tmp_path / "runs" / STORE / "code")
    store.keep(key_of({"options": 1}), file, file_digest(file), seconds=2.5)
    return store, key_of({"options": 1}), file


def entries(store: Store) -> list[Path]:
    return sorted(path for path in store.folder.rglob("*") if path.is_file())


def test_a_removed_result_is_restored_without_a_copy(kept):
    store, key, file = kept
    content, node = file.read_bytes(), file.stat().st_ino
    file.unlink()
    assert store.restore(key, file) == {"digest": file_digest(file), "seconds": 2.5}
    assert (file.read_bytes(), file.stat().st_ino) == (content, node)
    assert store.restore(key, file) is not None  # onto itself
    assert [path.name for path in file.parent.iterdir()] == ["easy.parquet"]


def test_another_key_or_other_code_is_another_result(kept):
    store, key, file = kept
    assert store.restore(key_of({"options": 2}), file) is None
    assert Store(store.folder.with_name("other")).restore(key, file) is None


@pytest.mark.parametrize("damage", ["cut", "byte", "empty", "gone", "note cut", "note gone", "note of another type"])
def test_a_damaged_entry_is_missing(kept, damage):
    """Hard links share their content, so that damage of a result is damage of the store."""
    store, key, file = kept
    note, data = entries(store)
    assert note.suffix == ".json"
    content = bytearray(data.read_bytes())
    if damage == "cut":
        file.write_bytes(content[:-20])
    elif damage == "byte":
        content[77] ^= 1
        file.write_bytes(content)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "gone":
        data.unlink()
    elif damage == "note cut":
        note.write_text(note.read_text()[:-5])
    elif damage == "note gone":
        note.unlink()
    else:
        note.write_text(json.dumps({"digest": 3}))
    target = file.with_name("again.parquet")
    assert store.restore(key, target) is None
    assert not target.exists()


def test_a_file_system_without_hard_links_gets_copies(kept, monkeypatch):
    store, key, file = kept

    def refuse(*names: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    content, node = file.read_bytes(), file.stat().st_ino
    file.unlink()
    assert store.restore(key, file) is not None
    assert file.read_bytes() == content and file.stat().st_ino != node
    store.keep(key_of({"options": 3}), file, file_digest(file))
    assert store.restore(key_of({"options": 3}), file.with_name("copy.parquet")) == {"digest": file_digest(file)}


def test_entries_that_no_result_names_are_found(kept, tmp_path):
    store, _, file = kept
    digest = file_digest(file)
    other = file.with_name("other.parquet")
    other.write_bytes(b"other")
    store.keep(key_of({"options": 4}), other, file_digest(other))
    assert list(unnamed(tmp_path / "runs", {digest, file_digest(other)})) == []
    former = list(unnamed(tmp_path / "runs", {digest}))
    assert sorted(path.suffix for path in former) == [".json", ".parquet"]
    assert {path.read_bytes() for path in former if path.suffix == ".parquet"} == {b"other"}
