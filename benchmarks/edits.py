"""
Edit random configs, disturb their results, run Snakemake again, and compare with a run from nothing.

    python benchmarks/edits.py --seed 1 --cases 20 --edits 5
    python benchmarks/edits.py --seed 1 --case 7 --keep /tmp/case   # repeat one case, and keep its two folders

A case draws a small config and runs it. Then it repeats: edit the config or an input, possibly disturb the results
(delete, touch, damage, kill, two calls at once), call Snakemake, and compare the results with those
of the same config in an empty folder: all tables of the database, and the bytes of all figures, pages, CSV and Parquet
files. A further call must have nothing to do, no job may run whose command, inputs and outputs are unchanged, and
no run may be simulated, nor a replicate drawn, that was made from the same inputs before. Each line states how many
runs were simulated.

Every command runs in a fork of a process that has imported swflow and Snakemake already, which takes a fifth of the
time. The exit status is 1 if anything differs.
"""

import argparse
import base64
import contextlib
import gzip
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.forked import Server
from swflow.errors import SwflowError
from swflow.files.store import STORE
from swflow.names import log_of, split_step, steps_of
from swflow.studies.asked import asked_pairs
from swflow.studies.figure_options import FOREST
from swflow.studies.plan import plan_studies, planned_replicates

ROOT = Path(__file__).parents[1]

# -- configs

SCHEDULERS: list[dict[str, Any]] = [
    {"backfill": "none"}, {"backfill": "easy"}, {"backfill": "easy", "reservations": 2}, {"backfill": "conservative"},
    {"order": "sjf", "backfill": "easy"}, {"order": "wfp3", "backfill": "easy", "estimates": "kill"},
    {"backfill": "easy", "backfill_order": "sjf"}, {"backfill": "easy", "prediction": "perfect"},
    {"backfill": "easy", "allocation": "first-fit", "places": True},
    {"order": "-(wait / estimate) ** 3 * processors", "backfill": "easy"},
    {"order": "orders.py:favor", "backfill": "easy"}, {"policy": "policy.py:Mine"},
    {"backfill": "easy", "unavailable": [{"from": 0, "until": 7200, "processors": 8}]},
    {"order": "fair-share", "backfill": "easy"}, {"backfill": "easy", "shapes": "submit"},
]  # fmt: skip

#: How many of them run on every workload.
GENERAL = len(SCHEDULERS) - 2

STEPS: list[dict[str, Any]] = [
    {"kind": "select", "jobs": 100}, {"kind": "select", "jobs": 60}, {"kind": "select", "where": "job_id % 3 != 0"},
    {"kind": "machine", "preset": "alvio-node"}, {"kind": "memory", "high": 0.8, "medium": 0.1, "low": 0.1},
    {"kind": "memory", "high": 0.2, "medium": 0.2, "low": 0.6}, {"kind": "memory", "file": "demands.txt"},
    {"kind": "memory", "like": "SITE", "from_log": "requested"}, {"kind": "moldable"}, {"kind": "moldable", "pb": 0.5},
    {"kind": "model", "model": "resample"}, {"kind": "model", "model": "lublin", "jobs": 90},
    {"kind": "scale", "processors": 128, "d": 20}, {"kind": "scale", "processors": 256},
    {"kind": "intensify", "factor": 1.2}, {"kind": "intensify", "factor": 1.5, "by": "run-times"},
]  # fmt: skip

FIGURES = ("heatmap", "bubbles", "difference", "timeline", "waits", "distributions", "arrivals", "composition",
           "offered-load", "marginals", "forest")  # fmt: skip

POLICY = """from swflow.policies import Easy


class Mine(Easy):
    slack = {number}
"""

ORDER = """from pathlib import Path

WEIGHT = float(Path("weight.txt").read_text())


def favor(estimate, processors):
    return estimate * processors + {number} * WEIGHT * processors
"""


class Case:
    """A config with its input files, and edits of both."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self.numbers = {"policy.py": 1, "orders.py": 1, "weight.txt": 1, "TEXT": 1, "SITE": 1, "demands.txt": 1}
        self.comments = 0
        logs = chance.sample(["A", "B", "TEXT", "SITE"], chance.choice([1, 2, 2]))
        self.config: dict[str, Any] = {
            "seed": 1,
            "logs": {name: self.log(name) for name in sorted({*logs, "A", "SITE"})},
            "steps": {f"s{number}": self.one(STEPS) for number in (1, 2)},
            "schedulers": {name: self.one(SCHEDULERS[:GENERAL]) for name in ("a", "b", "c")},
            "sweeps": {"wide": {"processors": 128, "d": [0, 50], "seeds": 2}},
            "studies": {},
        }
        self.config["studies"]["one"] = self.study(logs)
        if chance.random() < 0.6:
            self.config["studies"]["two"] = self.study(logs[:1])

    def one(self, choices: Any) -> Any:
        """Return a copy of a random choice."""
        return json.loads(json.dumps(self.chance.choice(list(choices))))

    def log(self, name: str) -> dict[str, Any]:
        """Return the entry of a log."""
        if name == "TEXT":
            return {"path": "text.swf", "processors": 32}
        if name == "SITE":
            return {"path": "site.parquet", "processors": 32}
        return {
            "generate": "lublin",
            "processors": self.chance.choice([32, 64]),
            "jobs": self.chance.choice([120, 200]),
        }

    def workload(self) -> str:
        """Return the template of a workload."""
        steps = list(self.config["steps"])
        chosen = self.chance.sample(steps, self.chance.choice([0, 0, 1, 1, min(2, len(steps))]))
        return "+".join(["{log}", *chosen])

    def study(self, logs: list[str]) -> dict[str, Any]:
        """Return a random study."""
        chance, schedulers = self.chance, list(self.config["schedulers"])
        study: dict[str, Any] = {"logs": list(logs), "runs": []}
        for _ in range(chance.choice([1, 1, 2])):
            chosen = chance.choice(["all", chance.sample(schedulers, min(2, len(schedulers)))])
            study["runs"].append({"workloads": [self.workload() for _ in range(chance.choice([1, 2]))],
                                  "schedulers": chosen})  # fmt: skip
        if chance.random() < 0.25:
            study["figures"] = chance.sample(FIGURES, 1)
        seeded = [name for name, step in self.config["steps"].items() if step["kind"] in ("memory", "moldable", "model")
                  and not {"file", "like"} & step.keys()]  # fmt: skip
        if seeded and chance.random() < 0.5:
            study["seeds"] = chance.choice([1, 2, 3])
            study["runs"].append({"workloads": [f"{{log}}+{chance.choice(seeded)}@{{seed}}"],
                                  "schedulers": chance.sample(schedulers, 1)})  # fmt: skip
        if chance.random() < 0.25:
            study["whatif"] = [{"workloads": ["{log}"], "schedulers": chance.sample(schedulers, 1),
                                "processors": ["+50%"]}]  # fmt: skip
        if chance.random() < 0.25 and self.config["sweeps"]:
            study["sweeps"] = [{"workloads": ["{log}"], "sweeps": [next(iter(self.config["sweeps"]))],
                                "schedulers": chance.sample(schedulers, 1)}]  # fmt: skip
        if chance.random() < 0.2:
            study["bounds"] = True
        return study

    def write(self, folder: Path, server: Server) -> None:
        """Write the config and its inputs to a folder; files whose content stays keep their time."""
        files = {
            "config/config.yaml": yaml.safe_dump(self.config, sort_keys=False),
            "policy.py": POLICY.format(number=self.numbers["policy.py"]) + "# comment\n" * self.comments,
            "orders.py": ORDER.format(number=self.numbers["orders.py"]) + "# comment\n" * self.comments,
            "weight.txt": f"{self.numbers['weight.txt']}\n",
            "text.swf": _swf(self.numbers["TEXT"]),
            "site.csv": _site(self.numbers["SITE"]),
            "demands.txt": "".join(f"{job} {100 * (job % 7 + self.numbers['demands.txt'])}\n" for job in range(1, 400)),
        }
        for name, text in files.items():
            path = folder / name
            if path.is_file() and path.read_text() == text:
                continue
            # A log that is replaced keeps its size and its time: only its content is different.
            stat = path.stat() if name == "text.swf" and path.is_file() else None
            path.write_text(text)
            if stat is not None:
                assert stat.st_size == path.stat().st_size
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
            if name == "site.csv":
                words = ("import", "sacct", "site.csv", "-o", "site.parquet", "--processors", "32")
                child = server.start(folder, "swflow", *words)
                said = child.communicate()[0]
                assert child.returncode == 0, said

    # Edits return a description, or None if the config has nothing to edit in this way.

    def edit(self) -> str:
        """Apply a random edit, and return its description."""
        edits = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("edit_")]
        while True:
            before = json.dumps(self.config)
            change = self.chance.choice(edits)()
            if change and self._is_sound():
                return str(change)
            self.config = json.loads(before)

    def _is_sound(self) -> bool:
        """Return whether the config is valid, and its runs are probably possible."""
        config = json.loads(json.dumps(self.config))
        names, config["logs"] = config["logs"], None
        try:
            runs = plan_studies(config, names).runs
            planned_replicates(runs)
            for name, study in config["studies"].items():
                if FOREST in study.get("figures", ()) and not (study.get("whatif") or asked_pairs(config, name)):
                    return False
        except SwflowError:
            return False
        return bool(self.config["studies"]) and all(map(self._is_simulated, runs, runs.values()))

    def _is_simulated(self, workload: str, schedulers: list[str]) -> bool:
        """Return whether no two steps add the same column, and the schedulers find the columns that they need."""
        kinds = [self.config["steps"][split_step(step)[0]]["kind"] for step in steps_of(workload)]
        options = [self.config["schedulers"].get(name, {}) for name in schedulers]
        has_users = log_of(workload) in ("TEXT", "SITE") and "model" not in kinds
        return (
            max(kinds.count("memory"), kinds.count("moldable")) < 2
            and (has_users or all(one.get("order") != "fair-share" for one in options))
            and ("moldable" in kinds or all("shapes" not in one for one in options))
        )

    def _named(self, part: str) -> str | None:
        names = sorted(self.config[part])
        return self.chance.choice(names) if names else None

    def _new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _groups(self) -> Iterator[dict[str, Any]]:
        for study in self.config["studies"].values():
            yield from [*study["runs"], *study.get("whatif", ()), *study.get("sweeps", ())]

    def edit_scheduler(self) -> str | None:
        """Change the options of a scheduler."""
        if name := self._named("schedulers"):
            self.config["schedulers"][name] = self.one(SCHEDULERS)
        return name and f"scheduler {name} becomes {self.config['schedulers'][name]}"

    def edit_swapped_schedulers(self) -> str | None:
        """Swap the options of two schedulers."""
        schedulers = self.config["schedulers"]
        if len(schedulers) < 2:
            return None
        first, second = self.chance.sample(sorted(schedulers), 2)
        schedulers[first], schedulers[second] = schedulers[second], schedulers[first]
        return f"schedulers {first} and {second} swapped"

    def edit_renamed_scheduler(self) -> str | None:
        """Rename a scheduler."""
        old, new = self._named("schedulers"), self._new("r")
        schedulers = self.config["schedulers"]
        self.config["schedulers"] = {new if name == old else name: schedulers[name] for name in schedulers}
        for group in self._groups():
            if group["schedulers"] != "all":
                group["schedulers"] = [new if name == old else name for name in group["schedulers"]]
        return f"scheduler {old} renamed {new}"

    def edit_removed_scheduler(self) -> str | None:
        """Remove a scheduler."""
        name = self._named("schedulers")
        if name is None or len(self.config["schedulers"]) < 2:
            return None
        del self.config["schedulers"][name]
        left = next(iter(self.config["schedulers"]))
        for group in self._groups():
            if group["schedulers"] != "all":
                group["schedulers"] = [other for other in group["schedulers"] if other != name] or [left]
        return f"scheduler {name} removed"

    def edit_added_scheduler(self) -> str | None:
        """Add a scheduler."""
        if len(self.config["schedulers"]) > 4:
            return None
        name = self._new("n")
        self.config["schedulers"][name] = self.one(SCHEDULERS)
        for group in self._groups():
            if group["schedulers"] != "all" and self.chance.random() < 0.5:
                group["schedulers"].append(name)
        return f"scheduler {name} added"

    def edit_step(self) -> str | None:
        """Change a step."""
        if name := self._named("steps"):
            self.config["steps"][name] = self.one(STEPS)
        return name and f"step {name} becomes {self.config['steps'][name]}"

    def edit_swapped_steps(self) -> str | None:
        """Swap two steps."""
        steps = self.config["steps"]
        if len(steps) < 2:
            return None
        first, second = self.chance.sample(sorted(steps), 2)
        steps[first], steps[second] = steps[second], steps[first]
        return f"steps {first} and {second} swapped"

    def edit_renamed_step(self) -> str | None:
        """Rename a step."""
        old, new = self._named("steps"), self._new("t")
        if old is None:
            return None
        self.config["steps"] = {new if name == old else name: step for name, step in self.config["steps"].items()}
        for group in self._groups():
            group["workloads"] = [re.sub(rf"\+{old}(?![\w.-])", f"+{new}", name) for name in group["workloads"]]
        return f"step {old} renamed {new}"

    def edit_seed(self) -> str | None:
        """Change the seed."""
        self.config["seed"] += 1
        return f"seed {self.config['seed']}"

    def edit_seeds(self) -> str | None:
        """Change the number of replicates of a study."""
        study = self.config["studies"][self._named("studies")]
        if "seeds" not in study:
            return None
        study["seeds"] = study["seeds"] % 3 + 1
        return f"seeds {study['seeds']}"

    def edit_study(self) -> str | None:
        """Replace a study."""
        name = self._named("studies")
        self.config["studies"][name] = self.study(self.config["studies"][name]["logs"])
        return f"study {name} becomes {json.dumps(self.config['studies'][name])}"

    def edit_added_study(self) -> str | None:
        """Add a study."""
        if len(self.config["studies"]) > 2:
            return None
        name, logs = self._new("study"), sorted(self.config["logs"])
        self.config["studies"][name] = self.study(self.chance.sample(logs, 1))
        return f"study {name} added: {json.dumps(self.config['studies'][name])}"

    def edit_removed_study(self) -> str | None:
        """Remove a study."""
        if len(self.config["studies"]) < 2:
            return None
        name = self._named("studies")
        del self.config["studies"][name]
        return f"study {name} removed"

    def edit_renamed_study(self) -> str | None:
        """Rename a study."""
        old, new = self._named("studies"), self._new("renamed")
        self.config["studies"] = {new if name == old else name: one for name, one in self.config["studies"].items()}
        return f"study {old} renamed {new}"

    def edit_title(self) -> str | None:
        """Change the title of a study."""
        name = self._named("studies")
        self.config["studies"][name]["title"] = self._new("Title ")
        return f"title of {name}"

    def edit_figures(self) -> str | None:
        """Change the figures of a study."""
        name = self._named("studies")
        self.config["studies"][name]["figures"] = figures = self.chance.sample(FIGURES, self.chance.choice([0, 1]))
        return f"figures of {name}: {figures}"

    def edit_split(self) -> str | None:
        """Change the subsets of a study."""
        name = self._named("studies")
        self.config["studies"][name]["split"] = {self._new("wide"): "processors > 4"}
        return f"split of {name}"

    def edit_logs(self) -> str | None:
        """Change the logs of a study."""
        name = self._named("studies")
        logs = self.chance.sample(sorted(self.config["logs"]), self.chance.choice([1, 1, 2]))
        self.config["studies"][name]["logs"] = logs
        return f"logs of {name}: {logs}"

    def edit_log(self) -> str | None:
        """Change a synthetic log."""
        self.config["logs"]["A"] = self.log("A")
        return f"log A: {self.config['logs']['A']}"

    def edit_processors(self) -> str | None:
        """Change the machine of a local log."""
        name = "TEXT" if "TEXT" in self.config["logs"] else "SITE"
        self.config["logs"][name]["processors"] = self.chance.choice([32, 40, 64])
        return f"processors of {name}: {self.config['logs'][name]['processors']}"

    def edit_inputs(self) -> str | None:
        """Replace an input: a log with another one of equal size and time, a dump, a policy, an order, its weight."""
        name = self.chance.choice(sorted(self.numbers))
        self.numbers[name] = self.numbers[name] % 9 + 1
        return f"input {name} replaced: {self.numbers[name]}"

    def edit_comments(self) -> str | None:
        """Add comments to the policies, which change nothing."""
        self.comments += 1
        return "comments in policies"

    def edit_order_of_keys(self) -> str | None:
        """Reverse the order of the keys."""
        for part in ("steps", "logs", "sweeps"):
            self.config[part] = dict(reversed(self.config[part].items()))
        return "order of keys reversed"

    def edit_sweep(self) -> str | None:
        """Change a sweep."""
        self.config["sweeps"]["wide"]["d"] = self.chance.choice([[0, 50], [50], [0, 100], [20, 50]])
        self.config["sweeps"]["wide"].pop("keep", None)
        if self.chance.random() < 0.3:
            self.config["sweeps"]["wide"]["keep"] = "outcomes"
        return f"sweep {self.config['sweeps']['wide']}"

    def edit_clean(self) -> str | None:
        """Change the cleaning."""
        self.config["clean"] = {"without_status": self.chance.choice([[], [5], [0]])}
        return f"clean {self.config['clean']}"


def _swf(number: int) -> str:
    """Return a log as SWF; logs of different numbers have the same size."""
    chance = random.Random(number)
    lines, time_ = ["; MaxProcs: 32", "; UnixStartTime: 1700000000"], 100000
    for job in range(100, 250):
        time_ += chance.randrange(100, 1000)
        wait, run = chance.randrange(100, 999), chance.randrange(1000, 9999)
        size = chance.choice([2, 4, 8])
        lines.append(f"{job} {time_:07d} {wait} {run} {size} -1 -1 {size} 9999 -1 1 {job % 5} {job % 2} -1 1 -1 -1 -1")
    return "\n".join(lines) + "\n"


def _site(number: int) -> str:
    """Return a Slurm accounting dump."""
    chance = random.Random(number)
    lines, time_ = ["JobID|User|State|Submit|Start|End|AllocCPUS|Timelimit|ReqMem"], 1_700_000_000
    for job in range(1, 120):
        time_ += chance.randrange(100, 1500)
        start = time_ + chance.randrange(0, 600)
        end = start + chance.randrange(60, 6000)
        times = "|".join(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(one)) for one in (time_, start, end))
        lines.append(f"{job}|user{job % 4}|COMPLETED|{times}|{2 ** (job % 5)}|02:00:00|{256 * (job % 6 + 1)}Mc")
    return "\n".join(lines) + "\n"


# -- a folder with results

#: The way out of results whose records are gone, which Snakemake needs after an edit.
FORCE = "snakemake --forceall"


class Folder:
    """A copy of the workflow with a config and results."""

    def __init__(self, path: Path, server: Server) -> None:
        self.path, self.server = path, server
        for name in ("config", "workflow"):
            shutil.copytree(ROOT / name, path / name)
        shutil.copy(ROOT / "Snakefile", path)
        (path / "profiles").symlink_to("workflow/profiles")
        self.results = path / "results"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake."""
        return self.server.start(self.path, "snakemake", "--cores", "2", *arguments)

    def run(self, *arguments: str) -> tuple[bool, str]:
        """Run Snakemake; return whether it succeeded, and what it printed."""
        child = self.start(*arguments)
        said = child.communicate()[0]
        if FORCE in said and "--unlock" not in arguments:
            (self.results / "settings.json").unlink()
            return self.run("--forceall", *arguments)
        return child.returncode == 0, said

    def empty(self) -> None:
        """Remove all results."""
        for name in ("results", ".snakemake"):
            shutil.rmtree(self.path / name, ignore_errors=True)

    def files(self) -> dict[str, Path]:
        """Return all result files by their names."""
        found = (path for path in self.results.rglob("*") if path.is_file())
        return {path.relative_to(self.results).as_posix(): path for path in found}

    def kept(self) -> set[tuple[int, int]]:
        """Return the numbers and the sizes of all files in stores."""
        states = [path.stat() for path in self.results.rglob("*.parquet") if STORE in path.parts]
        return {(state.st_ino, state.st_size) for state in states}

    def made(self) -> dict[str, tuple[int, int]]:
        """Return the inputs of each run and the content of each replicate, with the number and the size of the file."""
        from swflow.files.tables import read_metadata

        found = {}
        for path in self.results.glob("runs/[!.]*/*.parquet"):
            about = read_metadata(path)
            inputs = {key: about.get(key) for key in ("workload", "scheduler", "options", "input", "measured")}
            found[json.dumps(inputs, sort_keys=True)] = (path.stat().st_ino, path.stat().st_size)
        for path in self.results.glob("workloads/*@*.parquet"):
            found[f"{path.name} {_digest(path)}"] = (path.stat().st_ino, path.stat().st_size)
        return found

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Return Snakemake's records of the jobs by the first output: what each ran, on which content, and when."""
        found: dict[str, dict[str, Any]] = {}
        for file in (self.path / ".snakemake/metadata").glob("*"):
            with contextlib.suppress(ValueError, OSError):
                record = json.loads(gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_text())
                if record.get("incomplete"):
                    continue
                output = base64.b64decode(file.name).decode()
                inputs = {name: _digest(self.path / name) for name in record["input"] or ()}
                found[output] = {
                    "rule": record["rule"], "ended": record["endtime"], "shell": record["shellcmd"],
                    "params": record["params"], "inputs": inputs, "digest": _digest(self.path / output),
                }  # fmt: skip
        return found


def _digest(path: Path) -> str | None:
    """Return a digest of a file, or of the runs in a folder."""
    if path.is_dir():
        return " ".join(f"{file.name}:{_digest(file)}" for file in sorted(path.glob("*.parquet")))
    return hashlib.blake2b(path.read_bytes()).hexdigest() if path.is_file() else None


#: Files whose content is a time, a duration, or the difference from an earlier run, Snakemake's own, or the database,
#: whose tables are compared.
VOLATILE = (
    "log/",
    "benchmark/",
    "plans/",
    "swflow.json",
    "swflow.duckdb",
    ".swflow.duckdb",
    "logs/reached.json",
    "changes.json",
    "report/changes.html",
)

#: Folders that are one output of a job: Snakemake sees whether they are there, not each of their files.
WHOLE = ("verdicts/", "report/studies/", "report/logs/", "report/papers/", "report/assets/")

#: Folders in which results of former configs may stay: files that a later config may need again.
REUSED = ("logs/", "workloads/", "runs/", "sweeps/", "bounds/", "models/")


def differences(found: Folder, fresh: Folder, deleted: set[str]) -> list[str]:
    """Return how the results of a folder differ from those of a run from nothing."""
    import duckdb

    differs = []
    ours, theirs = found.files(), fresh.files()
    for name in sorted(ours.keys() | theirs.keys()):
        if name.startswith(VOLATILE) or name.endswith("/runs.json") or "/." in name:
            continue
        if name not in ours:
            if not (name.startswith(REUSED) and f"results/{name}" in deleted):  # Snakemake does not need it
                differs.append(f"missing: {name}")
        elif name not in theirs:
            if not name.startswith(REUSED):
                differs.append(f"left over: {name}")
        elif name.endswith(".swf.gz"):
            if gzip.decompress(ours[name].read_bytes()) != gzip.decompress(theirs[name].read_bytes()):
                differs.append(f"differs: {name}")
        elif ours[name].read_bytes() != theirs[name].read_bytes():
            differs.append(f"differs: {name}")
    with duckdb.connect() as connection:
        for name, folder in (("ours", found), ("theirs", fresh)):
            connection.execute(f"ATTACH '{folder.results / 'swflow.duckdb'}' AS {name} (READ_ONLY)")
        tables: dict[str, list[tuple[str, ...]]] = {}
        for schema in ("ours", "theirs"):
            rows = connection.execute(
                f"""SELECT table_name, list((column_name, data_type) ORDER BY column_index) FROM duckdb_columns()
                WHERE database_name = '{schema}' GROUP BY ALL"""
            ).fetchall()
            for table, columns in rows:
                tables.setdefault(table, []).append(columns)
        for table, columns in sorted(tables.items()):
            if len(columns) < 2 or columns[0] != columns[1]:
                differs.append(f"table {table}: columns {columns}")
                continue
            chosen = {"runs": "* EXCLUDE seconds", "leaderboard": "* EXCLUDE microseconds_per_job"}.get(table, "*")
            for one, other, what in (("ours", "theirs", "too many"), ("theirs", "ours", "missing")):
                rows = connection.execute(
                    f"FROM (SELECT {chosen} FROM {one}.{table} EXCEPT ALL SELECT {chosen} FROM {other}.{table}) LIMIT 3"
                ).fetchall()
                if rows:
                    differs.append(f"table {table}: rows {what}: {str(rows)[:300]}")
    return differs


# -- disturbances


class Disturber:
    """Random accidents; each returns a description, or None."""

    def __init__(self, chance: random.Random, folder: Folder) -> None:
        self.chance, self.folder = chance, folder
        #: The files that were changed behind Snakemake's back.
        self.changed: set[str] = set()
        self.all_changed: set[str] = set()

    def disturb(self) -> str | None:
        """Apply a random accident, or none."""
        kinds: list[Callable[[], str | None]] = [
            self.deleted, self.deleted, self.touched, self.emptied, self.damaged, self.forgotten,
        ]  # fmt: skip
        about = self.chance.choice(kinds)()
        self.all_changed |= self.changed
        return about

    def _file(self, hidden: bool = False) -> Path:
        files = self.folder.files()
        names = [name for name in sorted(files) if not name.startswith(("log/", "benchmark/"))]
        # A link in a store has the time of the result.
        names = [name for name in names if hidden or STORE not in Path(name).parts]
        folders = sorted({name.partition("/")[0] for name in names})
        chosen = self.chance.choice(folders)
        path = files[self.chance.choice([name for name in names if name.partition("/")[0] == chosen])]
        twins = (file for file in files.values() if file.samefile(path))  # names of the same file
        self.changed |= {file.relative_to(self.folder.path).as_posix() for file in twins}
        return path

    def deleted(self) -> str:
        """Delete a result; of several files that are one output, as the runs of a workload, the folder."""
        path = self._file(hidden=True)
        is_part = path.relative_to(self.folder.results).as_posix().startswith(WHOLE)
        if is_part or path.parent.parent == self.folder.results / "runs":
            path = path.parent
            self.changed.add(path.relative_to(self.folder.path).as_posix())
            self.changed |= {file.relative_to(self.folder.path).as_posix() for file in path.iterdir()}
            shutil.rmtree(path)
        elif STORE in path.parts:
            for file in path.parent.glob(f"{path.stem}.*"):
                file.unlink()
        else:
            path.unlink()
        return f"deleted {path.relative_to(self.folder.path)}"

    def touched(self) -> str:
        """Touch a result."""
        path = self._file()
        path.touch()
        return f"touched {path.relative_to(self.folder.path)}"

    def emptied(self) -> str:
        """Remove a folder of results."""
        path = self.chance.choice(sorted(path for path in self.folder.results.iterdir() if path.is_dir()))
        for file in path.rglob("*"):
            self.changed.add(file.relative_to(self.folder.path).as_posix())
        shutil.rmtree(path)
        return f"deleted {path.relative_to(self.folder.path)}/"

    def damaged(self) -> str | None:
        """Cut a run, and with it its link in the store; its folder is deleted, as the message of `load` demands."""
        runs = sorted(self.folder.results.glob("runs/[!.]*/*.parquet"))
        if not runs:
            return None
        path = self.chance.choice(runs)
        path.write_bytes(path.read_bytes()[:-9])
        self.changed |= {
            file.relative_to(self.folder.path).as_posix() for file in (path.parent, *path.parent.iterdir())
        }
        shutil.rmtree(path.parent)
        return f"damaged {path.relative_to(self.folder.path)}"

    def forgotten(self) -> str | None:
        """Remove Snakemake's records, as in a copy of the results."""
        if self.chance.random() < 0.7:
            return None
        shutil.rmtree(self.folder.path / ".snakemake", ignore_errors=True)
        return "no .snakemake"


def _updated(folder: Folder, chance: random.Random) -> tuple[bool, str, str]:
    """Call Snakemake, possibly killed before, or twice at once; return success, output and what was done."""
    kind = chance.choice(["", "", "", "killed", "twice"])
    if kind == "killed":
        child = folder.start()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(chance.uniform(1, 12))
            kind = "ended before the kill"
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        time.sleep(0.2)
        folder.run("--unlock")
    elif kind == "twice":
        other = folder.start()
        time.sleep(chance.uniform(0, 1))
        folder.run()
        other.communicate()
        return *folder.run(), kind
    return *folder.run(), kind


def run_case(number: int, options: argparse.Namespace, server: Server, home: Path) -> tuple[int, int]:
    """Run a case; return the numbers of edits and of differences."""
    chance = random.Random(f"{options.seed} {number}")
    shutil.rmtree(home, ignore_errors=True)
    edited, fresh = (Folder(home / name, server) for name in ("edited", "fresh"))
    case = Case(chance)
    while not case._is_sound():
        case = Case(chance)
    edits = failures = 0
    done, before = True, {}
    disturber = Disturber(chance, edited)
    known: dict[str, tuple[int, int]] = {}
    began = time.monotonic()
    for turn in range(options.edits + 1):
        made, former = [], (json.dumps(case.config), dict(case.numbers))
        if turn:
            for _ in range(chance.randint(1, options.together)):
                made.append(case.edit())
                edits += 1
        case.write(edited.path, server)
        disturber.changed.clear()
        if turn and done and chance.random() < 0.6:
            made.append(disturber.disturb() or "")
            kept = edited.kept()
            known = {what: file for what, file in known.items() if file in kept}
        done, said, how = _updated(edited, chance) if turn else (*edited.run(), "")
        made.append(how)
        label = f"case {number}.{turn}: {'; '.join(filter(None, made)) or 'first run'}"
        case.write(fresh.path, server)
        fresh.empty()
        fresh_done, fresh_said = fresh.run()
        problems = []
        if done != fresh_done:
            problems.append(f"run {done}, from nothing {fresh_done}:\n{said[-3000:]}\n---\n{fresh_said[-2000:]}")
        elif done:
            problems += differences(edited, fresh, disturber.all_changed)
            again, second = edited.run()
            if not again or "Nothing to be done" not in second:
                problems.append(
                    "a second call has work: " + "; ".join(re.findall(r"(?:Job [0-9]+|reason): .*", second))
                )
            jobs = edited.jobs()
            if how == "" and ".snakemake" not in label:
                problems += _needless(before, jobs, disturber.changed, said)
            before = jobs
            made_now = edited.made()
            anew = [what for what, file in made_now.items() if file not in known.values()]
            problems += [f"made needlessly: {what}" for what in anew if what in known]
            known |= made_now
            label += f": {sum(map(_is_run, anew))} of {sum(map(_is_run, made_now))} runs simulated"
        else:
            before = {}
            case.config, case.numbers = json.loads(former[0]), former[1]  # an edit that no run survives is taken back
            if not _error(said).startswith(("swflow:", "config:")):
                problems.append(f"no message of one line:\n{said[-3000:]}")
        failures += len(problems)
        state = "" if done else f" (fails in both: {_error(said)})" if not fresh_done else ""
        print(f"{label}{state}: {'ok' if not problems else 'DIFFERENT'} ({time.monotonic() - began:.0f} s)", flush=True)
        for problem in problems:
            print(f"    {problem}", flush=True)
        if problems and options.stop:
            print(yaml.safe_dump(case.config))
            break
    return edits, failures


def _is_run(what: str) -> bool:
    """Return whether the inputs or the name of a result, as `Folder.made` returns them, are those of a run."""
    return what.startswith("{")


def _needless(before: dict[str, Any], after: dict[str, Any], changed: set[str], said: str) -> Iterator[str]:
    """Yield the jobs that ran although their command, inputs and outputs had not changed since the last time."""
    remade = {job["shell"] for output, job in after.items() if output in changed}
    ran = {output for output, job in after.items() if output not in before or before[output]["ended"] != job["ended"]}
    for output, job in after.items():
        old = before.get(output)
        if old is None or output not in ran or output in changed or changed & job["inputs"].keys():
            continue
        if old["digest"] is None:  # it was deleted when no study needed it
            continue
        if ran & job["inputs"].keys():  # Snakemake decides before the producer runs, whose content may stay
            continue
        if job["shell"] in remade:  # another output of the same job was changed
            continue
        if all(old[key] == job[key] for key in ("shell", "params", "inputs")):
            yield f"ran needlessly: {job['rule']} {output}"


def _error(said: str) -> str:
    """Return the first error, which can follow words of Snakemake in their line: jobs write at the same time."""
    found = re.search(r"(?:^|[a-z0-9)])((?:swflow|config): .*)", said, re.MULTILINE)
    return found[1] if found else said[-300:]


def main() -> None:
    """Run the cases."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run this case only")
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--first", type=int, default=1, help="the number of the first case")
    parser.add_argument("--edits", type=int, default=5, help="calls after edits per case")
    parser.add_argument("--together", type=int, default=2, help="the most edits between two calls")
    parser.add_argument("--keep", type=Path, help="use this folder, and keep it")
    parser.add_argument("--stop", action="store_true", help="end a case at the first difference, and print its config")
    options = parser.parse_args()
    began, total, failed = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as temporary, Server() as server:
        last = options.first + options.cases
        for number in [options.case] if options.case is not None else range(options.first, last):
            edits, failures = run_case(number, options, server, options.keep or Path(temporary) / "case")
            total, failed = total + edits, failed + failures
    elapsed = time.monotonic() - began
    print(f"{total} edits, {failed} differences, {elapsed / max(1, total):.1f} s per edit")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
