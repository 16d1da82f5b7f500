"""Test the commands that the workflow calls for many files."""

from pathlib import Path

import pytest

from helpers.runs import write_workloads
from swflow.cli import main
from swflow.files.reading import file_digest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the current folder, which contains a workload A.parquet."""
    (path,) = write_workloads(tmp_path, jobs=60)
    monkeypatch.chdir(path.parent)
    return path.parent


def replicate(*words: str) -> dict[str, int]:
    """Draw replicates with a store; return the number of each replicate's file, which a drawn one has anew."""
    with pytest.raises(SystemExit, match="0"):
        main(["replicate", *words, "--store", ".store/code"])
    return {path.stem: path.stat().st_ino for path in sorted(Path().glob("*@*.parquet"))}


def test_another_seed_draws_the_added_replicate_only(folder):
    first = replicate("moldable", "-o", "A+m@1-2.parquet", "--seed", "1")
    digests = {name: file_digest(f"{name}.parquet") for name in first}
    for path in folder.glob("*@*.parquet"):
        path.unlink()  # as Snakemake does before a job
    second = replicate("moldable", "-o", "A+m@1-3.parquet", "--seed", "1")
    assert second == first | {"A+m@3": second["A+m@3"]} and len(set(second.values())) == 3
    assert digests == {name: file_digest(f"{name}.parquet") for name in first}
    other = replicate("moldable", "-o", "A+m@1-3.parquet", "--seed", "2")
    assert not set(other.values()) & set(second.values())
    assert replicate("moldable", "-o", "A+m@1-3.parquet", "--seed", "1") == second


def test_replicates_of_other_inputs_are_drawn_again(folder):
    demands = folder / "demands.txt"
    demands.write_text("".join(f"{job} 100\n" for job in range(1, 61)))
    words = ("memory", "-o", "A+m@1.parquet", "--file", "demands.txt")
    first = replicate(*words)
    assert replicate(*words) == first
    demands.write_text(demands.read_text().replace(" 100", " 200"))
    second = replicate(*words)
    assert second != first
    (source,) = write_workloads(folder / "other", jobs=50)
    (folder / "A.parquet").write_bytes(source.read_bytes())
    assert replicate(*words) not in (first, second)


def test_a_damaged_replicate_is_drawn_again(folder):
    words = ("moldable", "-o", "A+m@1.parquet", "--seed", "1")
    first, content = replicate(*words), (folder / "A+m@1.parquet").read_bytes()
    (folder / "A+m@1.parquet").write_bytes(content[:-9])  # a link of the file in the store
    assert replicate(*words) != first
    assert (folder / "A+m@1.parquet").read_bytes() == content
