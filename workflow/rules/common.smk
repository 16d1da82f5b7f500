# What the rules share: the checked config, the catalogue, the planned runs, and the fingerprints of code.
import json
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import validate

from swflow.database import expected
from swflow.errors import SwflowError
from swflow.fingerprint import fingerprint
from swflow.logs import is_at_hand, load_catalogue, source_of
from swflow.made import drop_broken, file_digest
from swflow.names import compact, log_of, parent_of, recipe_of, replicate_of, split_step, steps_of
from swflow.runs import scheduler_options, unmade
from swflow.scheduling.scheduler import Scheduler
from swflow.studies import (
    check_conditions,
    check_schedulers,
    command_options,
    explain,
    fit_name,
    fit_options,
    is_fitted,
    planned_figures,
    planned_runs,
    planned_sweeps,
    planned_whatifs,
    planned_workloads,
    sources_behind,
    step_options,
    sweep_options,
    with_kept,
)

try:
    validate(config, "../schemas/config.schema.yaml")
    config.update(with_kept(config))
    check_schedulers(config)
    check_conditions(config)
    OWN_LOGS = config["logs"] if isinstance(config["logs"], dict) else {}
    if OWN_LOGS:
        config["logs"] = None # entries of one's own, which limit nothing
    CATALOGUE = load_catalogue([*config["catalogue"], OWN_LOGS])
    RUNS = planned_runs(config, CATALOGUE)
    SWEEPS = planned_sweeps(config, CATALOGUE)
    WHATIFS = planned_whatifs(config, CATALOGUE)
    FIGURES = planned_figures(config, CATALOGUE)
except WorkflowError as error:
    cause = next((part for part in error.args if hasattr(part, "absolute_path")), error.__cause__ or error.__context__)
    sys.exit(f"config: {explain(cause) if hasattr(cause, 'absolute_path') else error}")
except SwflowError as error:
    sys.exit(f"config: {error}")


for workload in [*RUNS, *(workload for workload, _ in SWEEPS), *(workload for _, workload in WHATIFS)]:
    log = CATALOGUE[log_of(workload)]
    path = source_of(log, CATALOGUE).path
    if path is not None and not Path(path).is_file():
        sys.exit(f"config: catalogue: {log.name}: path: {path}: no such file")
    for step in steps_of(workload):
        file = config["steps"][split_step(step)[0]].get("file")
        if file is not None and not Path(file).is_file():
            sys.exit(f"config: steps: {split_step(step)[0]}: file: {file}: no such file")


# Workloads made one by one, and the replicates of a recipe, which one job makes.
SINGLE, REPLICATES = planned_workloads([*RUNS, *(workload for _, workload in WHATIFS)], SWEEPS)


def workload_file(workload):
    """Return the file that stands for a workload: its own, or the manifest of all replicates of its recipe."""
    grouped = workload in REPLICATES.get(recipe_of(workload), ())
    return f"results/workloads/{recipe_of(workload)}.json" if grouped else f"results/workloads/{workload}.parquet"


def runs_file(workload):
    """Return the manifest of a workload's runs: its own, or that of all replicates of its recipe."""
    grouped = workload in REPLICATES.get(recipe_of(workload), ())
    return f"results/runs/{recipe_of(workload)}.json" if grouped else f"results/runs/{workload}/manifest.json"


def fit_file(workload):
    """Return the fitted model that the last step of a workload draws from, if it draws from one."""
    content = config["steps"][split_step(workload.rpartition("+")[2])[0]]
    if not is_fitted(content):
        return ""
    return f"results/models/{content.get('like', parent_of(workload))}/{fit_name(content)}.json"


#: What the processes of Snakemake that start a batch job, and a job of a group in it, take beside the job itself (MB).
SNAKEMAKE = 500

#: What simulates may have to compile kernels first, on a node that has none: the peak of that (MB), whatever the log.
COMPILING = 600

#: MB per job of a log, of any file that is made of it: at most 50 bytes in workloads of the archive.
MB_PER_JOB = 6e-5

#: Jobs of a log of which the catalogue does not say how many it has.
MANY_JOBS = 250_000


def size_mb(wildcards, input):
    """
    Return the size (MB) of a job's input; of files that are not there yet, an estimate by the jobs of the log.

    A group of jobs is submitted when most of its files are not there; what Snakemake cannot evaluate then, it leaves
    out of the memory and the time of the group.
    """
    name = next((wildcards[key] for key in ("workload", "recipe", "log") if key in wildcards.keys()), None)
    log = CATALOGUE.get(log_of(name)) if name else None
    jobs = (log and (log.jobs or source_of(log, CATALOGUE).jobs)) or MANY_JOBS
    files = [Path(file) for file in input]
    return sum(file.stat().st_size / 1e6 if file.is_file() else jobs * MB_PER_JOB for file in files)


def memory(base, per_mb, size=size_mb):
    """Return the memory (MB) of a job: so much, and so much for every MB of its input; more at a further attempt."""
    own = SNAKEMAKE + base
    return lambda wildcards, input, attempt: int((own + per_mb * size(wildcards, input)) * 1.5 ** (attempt - 1))


def minutes(base, per_mb, size=size_mb):
    """Return the run time (minutes) of a job, likewise."""
    return lambda wildcards, input, attempt: int((base + per_mb * size(wildcards, input)) * 2 ** (attempt - 1) + 1)


def canonical(content):
    """Write settings so that the order of keys in the config does not count."""
    return json.dumps(content, sort_keys=True)


def schedulers_of(workload):
    """Return the schedulers that the studies run a workload under, all options filled in."""
    return options_of(RUNS.get(workload, [*config["schedulers"], "log"]))


def options_of(names):
    """Return schedulers by name, all options filled in."""
    return {name: Scheduler.of(name, scheduler_options(name, config["schedulers"])).to_dict() for name in names}


def named_schedulers(schedulers):
    """Return the options of a command that name schedulers."""
    return command_options({"scheduler": [f"{name}={canonical(spec)}" for name, spec in schedulers.items()]})


def sources_of(log):
    """Return the log whose file a log is cut from: itself, unless it is a period of another one."""
    return source_of(CATALOGUE[log], CATALOGUE)


def is_imported(log):
    """Return whether a log of the catalogue is one that swflow import wrote: it is cleaned as it lies."""
    return log.path is not None and log.path.endswith(".parquet")


def log_file(log):
    """Return the file that is cleaned."""
    return log.path if is_imported(log) else f"results/logs/{log.name}.swf.gz"


wildcard_constraints:
    log="[A-Za-z0-9][A-Za-z0-9._-]*",
    step="[A-Za-z0-9][A-Za-z0-9._@-]*",
    workload="[A-Za-z0-9][A-Za-z0-9._+@-]*",
    recipe="[A-Za-z0-9][A-Za-z0-9._+-]*",
