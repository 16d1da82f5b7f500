"""
Kill the whole workflow at random moments, and check that its final files equal those of an undisturbed run.

Run it manually (minutes to 1 hour): python tests/kill.py --mirror FOLDER [--log KTH-SP2] [--times 20] [--seeds 2]
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from swflow.files.query import query
from swflow.files.reading import file_digest

ROOT = Path(__file__).parents[1]

#: Permitted differences: clock times, and Snakemake's own files.
IGNORED = (
    "results/log/",
    "results/benchmark/",
    "results/swflow.json",
    "results/swflow.duckdb",
    "results/.swflow.duckdb",
    "runs.json",
    ".snakemake_timestamp",
)


def small(config: dict, seeds: int) -> dict:
    """Return the config of the papers with few replicates and few points of each sweep."""
    for study in config["studies"].values():
        if study.get("seeds"):
            study["seeds"] = seeds
    for sweep in config["sweeps"].values():
        sweep["seeds"] = seeds
        sweep |= {
            name: "0:100:50" if name == "d" else "0:10:5" for name in ("d", "excess") if ":" in str(sweep.get(name))
        }
    return config


def make_project(folder: Path, config: dict) -> None:
    """Create a folder with the workflow and a config."""
    for name in ("config", "workflow"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    (folder / "profiles").symlink_to("workflow/profiles")
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))


def snakemake(folder: Path, *arguments: str) -> subprocess.Popen:
    """Start Snakemake in a new session."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all", *arguments],
        cwd=folder, env=os.environ | {"PATH": path}, start_new_session=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def run(folder: Path, *arguments: str) -> None:
    """Run Snakemake to completion."""
    if snakemake(folder, *arguments).wait():
        sys.exit(f"kill: Snakemake failed in {folder}; see its log there")


def made(folder: Path) -> dict[str, str]:
    """Return the results: the digest of every file, and the rows of every table."""
    files = [path for path in (folder / "results").rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in files}
    found = {name: _content(path) for name, path in names.items() if not any(part in name for part in IGNORED)}
    database = folder / "results/swflow.duckdb"
    for (table,) in query(database, "SELECT table_name FROM information_schema.tables")[1]:
        columns = "* EXCLUDE (seconds)" if table == "runs" else "*"
        rows = query(database, f"SELECT count(*), bit_xor(hash(t)) FROM (SELECT {columns} FROM {table}) t")[1]
        found[f"table {table}"] = str(rows[0])
    return found


def _content(path: Path) -> str:
    """Return the digest of a file; of the record of a run, without its seconds."""
    if path.suffix != ".json" or ".store" not in path.parts:
        return file_digest(path)
    record = json.loads(path.read_text())
    record.pop("seconds", None)
    return json.dumps(record, sort_keys=True)


def main() -> None:
    """Compare an undisturbed run with one that is killed repeatedly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--log", default="KTH-SP2")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    config = small(yaml.safe_load((ROOT / "config/archive.yaml").read_text()), options.seeds)
    config |= {"mirror": str(Path(options.mirror).resolve()), "logs": [options.log]}
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        calm, hit = Path(name) / "calm", Path(name) / "hit"
        for folder in (calm, hit):
            make_project(folder, config)
        began = time.monotonic()
        run(calm)
        lasted = time.monotonic() - began
        print(f"undisturbed: {lasted:.0f} s", flush=True)
        for number in range(1, options.times + 1):
            child = snakemake(hit)
            try:
                child.wait(timeout=2 * lasted / options.times * chance.random())
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                runs = len(list((hit / "results/runs").glob("*/*.parquet")))
                print(f"killed {number}: {runs} runs are there", flush=True)
            run(hit, "--unlock")
        run(hit)
        expected, found = made(calm), made(hit)
        different = sorted(name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name))
        for name in different:
            print(f"differs: {name}")
        print(f"{len(expected)} files and tables compared, {len(different)} differ")
        sys.exit(bool(different))


if __name__ == "__main__":
    main()
