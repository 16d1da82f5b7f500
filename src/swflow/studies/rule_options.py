"""
What the rules of the workflow pass to commands: their names, their options and their fingerprints, by wildcards.

Snakemake runs a job again if its params change, but it does not record params that depend on its files. The rules
therefore have these functions, with the plan bound, as params.
"""

import json
from collections.abc import Iterable
from typing import Any

from swflow.files.fingerprint import fingerprint
from swflow.names import PARENT
from swflow.studies.step_options import (
    command_options,
    fit_name,
    fit_options,
    is_fitted,
    step_options,
    sweep_options,
)
from swflow.studies.workflow import Workflow, fit_file

# -- logs


def reach_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``reach``: the catalogues."""
    return command_options({"catalogue": plan.config["catalogue"]})


def fetch_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``fetch``: the entry of a log in the config, or else the catalogues."""
    if wildcards.log in plan.own_logs:
        return command_options({"entry": json.dumps(plan.own_logs[wildcards.log], sort_keys=True)})
    return reach_options(plan, wildcards)


def generated_model(plan: Workflow, wildcards: Any) -> str:
    """Return the model of a synthetic log, which is the command that generates it."""
    return str(plan.catalogue[wildcards.log].generate)


def generate_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``generate``: the parameters of the model, the size and the seed."""
    log = plan.catalogue[wildcards.log]
    size = {"processors": log.processors, "jobs": log.jobs, "seed": plan.config["seed"]}
    return command_options(log.parameters | size)


def generate_code(plan: Workflow, wildcards: Any) -> str:
    """Return the fingerprint of the command that generates a log."""
    return fingerprint(f"generate_{generated_model(plan, wildcards)}")


def clean_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``clean``: machine and period from the catalogue, rules from the config."""
    entry, source = plan.catalogue[wildcards.log], plan.source(wildcards.log)
    settings = plan.config["clean"] | source.clean | entry.clean
    machine = {
        "machine_processors": entry.processors or source.processors,
        "machine_nodes": entry.nodes or source.nodes,
        "from": entry.since,
        "until": entry.until,
    }
    return command_options(settings | {"drop": settings["drop"] or ["none"]} | machine)


# -- steps


def fit_kind(plan: Workflow, wildcards: Any) -> str:
    """Return the command that fits a model."""
    return "memory" if wildcards.fit.startswith("memory-") else "model"


def options_of_fit(plan: Workflow, wildcards: Any) -> str:
    """Return the options with which a model is fitted."""
    fits = {fit_name(step): step for step in plan.config["steps"].values() if is_fitted(step)}
    return command_options(fit_options(fits[wildcards.fit]))


def fit_code(plan: Workflow, wildcards: Any) -> str:
    """Return the fingerprint of the command that fits a model."""
    return fingerprint(fit_kind(plan, wildcards))


def step_kind(plan: Workflow, wildcards: Any) -> str:
    """Return the kind of a step, which is the command that applies it."""
    return str(plan.content_of(wildcards.step)["kind"])


def options_of_step(plan: Workflow, wildcards: Any) -> str:
    """Return the options of a step."""
    return _with_fit(plan, wildcards.step, wildcards.workload)


def replicate_options(plan: Workflow, recipe: str, wildcards: Any) -> str:
    """Return the options of the replicates of a recipe; each is drawn from a fit of its own parent."""
    return _with_fit(plan, recipe.rpartition("+")[2], PARENT)


def step_code(plan: Workflow, wildcards: Any) -> str:
    """Return the fingerprint of the command of a step."""
    return fingerprint(step_kind(plan, wildcards))


def _with_fit(plan: Workflow, step: str, parent: str) -> str:
    fitted, options = fit_file(plan.content_of(step), parent), step_options(step, plan.config)
    return f"--fitted {fitted} {options}" if fitted else options


# -- runs


def simulate_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``simulate``."""
    return command_options({name: plan.config[name] or None for name in ("warm_up", "cool_down")})


def sweep_command(plan: Workflow, wildcards: Any) -> str:
    """Return the command of a sweep: ``sweep``, or ``adjust``, which searches for a factor."""
    return sweep_options(wildcards.sweep, plan.config)[0]


def options_of_sweep(plan: Workflow, wildcards: Any) -> str:
    """Return the options of a sweep, with its schedulers."""
    schedulers = plan.sweeps[wildcards.workload, wildcards.sweep]
    return f"{sweep_options(wildcards.sweep, plan.config)[1]} {_named(plan, schedulers, '=')}"


def sweep_code(plan: Workflow, wildcards: Any) -> str:
    """Return the fingerprint of the command of a sweep."""
    return fingerprint(sweep_command(plan, wildcards))


def forecast_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``forecast``, with the scheduler that it simulates, if any."""
    forecast = dict(plan.forecasts[wildcards.study, wildcards.workload])
    named = _named(plan, [forecast.pop("scheduler")], ": ") if "scheduler" in forecast else ""
    return f"{command_options(forecast)} {named}".strip()


def whatif_options(plan: Workflow, wildcards: Any) -> str:
    """Return the options of ``whatif``, with its schedulers."""
    whatif = dict(plan.whatifs[wildcards.study, wildcards.workload])
    named = _named(plan, whatif.pop("schedulers"), ": ")
    return f"{command_options(whatif)} {named}"


def _named(plan: Workflow, names: Iterable[str], separator: str) -> str:
    named = [f"{name}{separator}{json.dumps(plan.schedulers[name], sort_keys=True)}" for name in names]
    return command_options({"scheduler": named})
