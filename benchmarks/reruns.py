"""
Print what each kind of edit of a config repeats: the jobs that Snakemake plans, and the runs that are simulated.

    python benchmarks/reruns.py
    python benchmarks/reruns.py --config config/archive.yaml --logs KTH-SP2 --mirror FOLDER --step ran

The script runs a config in a temporary folder. Then it applies one edit after another, runs all simulations, counts the
runs whose files are new, and takes the edit back. The column "of the jobs" has the number of all runs of the planned
jobs, which a job would simulate that keeps none of them.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from swflow.studies.workflow import Workflow, read_config

ROOT = Path(__file__).parents[1]

#: The policy of the study that the script adds.
POLICY = """from swflow.policies import Easy


class Own(Easy):
    pass  {comment}
"""

Config = dict[str, Any]


class Project:
    """A copy of the workflow in the current folder, with a config that has a study with a policy in Python."""

    def __init__(self, options: argparse.Namespace) -> None:
        for name in ("config", "workflow"):
            shutil.copytree(ROOT / name, name)
        shutil.copy(ROOT / "Snakefile", ".")
        Path("profiles").symlink_to("workflow/profiles")
        self.config: Config = yaml.safe_load(Path(options.config).read_text())
        self.cores, self.scheduler, self.step, self.change = (
            options.cores,
            options.scheduler,
            options.step,
            options.change,
        )
        first = options.logs.split(",") if options.logs else next(iter(self.config["studies"].values()))["logs"]
        self.config["logs"] = first if options.logs else None
        self.config["mirror"] = options.mirror and str(Path(options.mirror).resolve())
        self.config["catalogue"] = ["config/logs.yaml", "more.yaml"]
        self.config["schedulers"]["own"] = {"policy": "own.py:Own"}
        short = {"kind": "select", "jobs": 200}
        self.config.setdefault("steps", {})["short"] = short
        runs = [{"workloads": ["{log}+short"], "schedulers": ["own", self.scheduler]}]
        self.config["studies"]["own"] = {"logs": [first[0]], "runs": runs}
        Path("more.yaml").write_text("more: {generate: lublin, processors: 64, jobs: 500}\n")
        Path("own.py").write_text(POLICY.format(comment=""))

    def groups(self) -> list[Config]:
        """Return all entries of studies that name schedulers in a list."""
        parts = ("runs", "whatif", "sweeps")
        every = [group for study in self.config["studies"].values() for part in parts for group in study.get(part, ())]
        return [group for group in every if isinstance(group["schedulers"], list)]

    def snakemake(self, *words: str) -> str:
        """Write the config, and call Snakemake; return its output."""
        Path("config/config.yaml").write_text(yaml.safe_dump(self.config, sort_keys=False))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = [sys.executable, "-m", "snakemake", "--cores", self.cores, *words]
        done = subprocess.run(
            command, env=os.environ | {"PATH": path}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        if done.returncode:
            sys.exit(f"reruns: {' '.join(words)} failed:\n{done.stdout[-3000:]}")
        return done.stdout

    def planned(self) -> dict[str, list[str]]:
        """Return the runs of the config: workloads with their schedulers."""
        config = yaml.safe_load(Path("config/config.yaml").read_text())
        return Workflow(read_config(config, "workflow/schemas/config.schema.yaml")).runs

    def simulate(self) -> None:
        """Make all runs of the config."""
        self.snakemake(*(f"results/runs/{name}" for name in self.planned()))

    def files(self) -> dict[str, int]:
        """Return the runs of the config with the numbers of their files."""
        runs = [f"{name}/{one}" for name, schedulers in self.planned().items() for one in schedulers]
        paths = {run: Path(f"results/runs/{run}.parquet") for run in runs}
        return {run: path.stat().st_ino for run, path in paths.items() if path.is_file()}


def jobs_of(said: str, planned: dict[str, list[str]]) -> tuple[int, int]:
    """Return the number of planned jobs of a dry run without targets, and the number of runs of its simulations."""
    names = set(re.findall(r"^Job \d+: (.+)$", said, re.MULTILINE))
    simulated = [name.split()[-1] for name in names if name.startswith("simulate ")]
    recipes = {name.split()[-1] for name in names if name.startswith("simulate replicates of ")}
    runs = 0
    for workload, schedulers in planned.items():
        is_replicate = "@" in workload
        recipe = "+".join(part.partition("@")[0] for part in workload.split("+"))
        runs += len(schedulers) * (recipe in recipes if is_replicate else workload in simulated)
    return len(names), runs


def edits(project: Project) -> dict[str, Callable[[], None]]:
    """Return the edits by name."""
    config, name = project.config, project.scheduler

    def change() -> None:
        config["schedulers"][name] |= json.loads(project.change)

    def add() -> None:
        config["schedulers"]["added"] = config["schedulers"][name] | {"order": "sjf"}
        project.groups()[0]["schedulers"].append("added")

    def remove() -> None:
        del config["schedulers"][name]
        for group in project.groups():
            group["schedulers"] = [one for one in group["schedulers"] if one != name]
        for title, study in [*config["studies"].items()]:
            for one in ("figures", *(key for key in ("baseline", "contrast") if study.get(key) == name)):
                study.pop(one, None)
            for part in ("runs", "whatif", "sweeps"):
                kept = [group for group in study.pop(part, ()) if group["schedulers"]]
                study |= {part: kept} if kept else {}
            if "runs" not in study:
                del config["studies"][title]

    def rename() -> None:
        config["schedulers"] = {"renamed" if one == name else one: of for one, of in config["schedulers"].items()}
        for group in project.groups():
            group["schedulers"] = ["renamed" if one == name else one for one in group["schedulers"]]

    def seed() -> None:
        study = next(study for study in config["studies"].values() if study.get("seeds"))
        study["seeds"] += 1

    def step() -> None:
        named, _, value = project.step.partition("=")
        config["steps"][named] |= json.loads(value)

    def title() -> None:
        next(iter(config["studies"].values()))["title"] = "Another title"

    def log() -> None:
        next(iter(config["studies"].values()))["logs"].append("more")
        if config["logs"]:
            config["logs"].append("more")

    return {
        "scheduler changed": change, "scheduler added": add, "scheduler removed": remove, "scheduler renamed": rename,
        "seed added": seed, "step parameter": step, "title": title, "log added": log,
        "policy edited": lambda: _write_policy("\n    slack = 2"),
        "comment in the policy": lambda: _write_policy("# a comment"),
    }  # fmt: skip


def _write_policy(comment: str) -> None:
    Path("own.py").write_text(POLICY.format(comment=comment))


def main() -> None:
    """Run, edit, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--config", default="config/config.yaml")
    parser.add_argument("--logs", help="Logs to include, separated by commas (default: all).")
    parser.add_argument("--mirror", help="A folder with the archive's files.")
    parser.add_argument("--scheduler", default="easy", help="The edited scheduler.")
    parser.add_argument("--change", default='{"reservations": 2}', help="Its new options (JSON).")
    parser.add_argument("--step", default='moldable={"pb": 0.5}', help="The edited step and its new options (JSON).")
    parser.add_argument("--cores", default="2")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        project = Project(options)
        project.snakemake()
        total = len(project.files())
        print(f"{total} runs\n\n| edit | jobs | runs of the jobs | runs simulated |\n|---|---|---|---|", flush=True)
        for what in edits(project):
            kept = json.dumps(project.config)
            before = project.files()
            edits(project)[what]()
            said = project.snakemake("-n")
            jobs, runs = jobs_of(said, project.planned())
            project.simulate()
            simulated = [run for run, number in project.files().items() if before.get(run) != number]
            print(f"| {what} | {jobs} | {runs} | {len(simulated)} |", flush=True)
            project.config = json.loads(kept)
            _write_policy("")
            project.snakemake()
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
