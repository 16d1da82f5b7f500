"""Test the removal of results that no study of the config names."""

import json

import pytest

from swflow.errors import SwflowError
from swflow.files.reading import file_digest
from swflow.files.store import STORE, Store
from swflow.studies.former import REUSED, SHOWN, remove_former


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Return a folder of results, the current folder, with a plan that names some of them."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    for name in ("figures/one/A.png", "figures/old/A.png", "runs/A/easy.parquet", "runs/A/easy.digest",
                 "runs/B/easy.parquet", "workloads/A.parquet", "plans/load-1.json", "plans/keep-1.json"):  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    for number, name in enumerate(("A", "B")):
        file = folder / f"runs/{name}/easy.parquet"
        Store(folder / "runs" / STORE / "code").keep(f"key{number}", file, file_digest(file))
    kept = ["results/figures/one/A.png", "results/runs/A", "results/workloads/A.parquet"]
    (folder / "plans/keep-1.json").write_text(json.dumps({"files": kept}))
    return folder


def test_figures_of_former_configs_are_removed_and_runs_on_request(results):
    removed = remove_former("results/plans/keep-1.json", SHOWN)
    assert removed == ["results/figures/old/A.png"] and not (results / "figures/old").exists()
    assert (results / "runs/B/easy.parquet").is_file()
    stored = f"results/runs/{STORE}/code/ke/y1"
    assert set(remove_former("results/plans/keep-1.json", REUSED)) == {
        "results/runs/B/easy.parquet", "results/plans/load-1.json", f"{stored}.parquet", f"{stored}.json",
    }  # fmt: skip
    left = sorted(path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file())
    store = [name for name in left if STORE in name]
    assert [name for name in left if name not in store] == [
        "figures/one/A.png", "plans/keep-1.json", "runs/A/easy.digest", "runs/A/easy.parquet", "workloads/A.parquet",
    ]  # fmt: skip
    assert len(store) == 2
    again = results / "again.parquet"
    assert Store(results / "runs" / STORE / "code").restore("key0", again) is not None
    assert again.read_text() == "runs/A/easy.parquet"
    assert remove_former("results/plans/keep-1.json", REUSED) == []


@pytest.mark.parametrize("text", ["[]", "{}", '{"files": "results"}', "no JSON"])
def test_a_wrong_plan_removes_nothing(results, text):
    (results / "plans/keep-1.json").write_text(text)
    with pytest.raises(SwflowError, match=r"keep-1\.json: not a list of results; expected JSON: files"):
        remove_former("results/plans/keep-1.json", REUSED)
    assert (results / "runs/B/easy.parquet").is_file()
