"""The assignment of runs to studies: from the config or, without a config, a single study."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from swflow.errors import SwflowError, reason_of
from swflow.names import first_replicates, log_of, recipe_of
from swflow.studies.levels import with_levels
from swflow.studies.plan import study_runs, study_sweeps, subsets, with_kept, with_titles
from swflow.studies.step_options import Config


@dataclass(frozen=True)
class Study:
    """
    A study as the report shows it: its question as a title, and its runs in the database, in the study's order.

    ``sweeps`` are pairs of workload and sweep, ``missing`` is the number of runs that are not in the database. The
    figures of each log are as for `swflow.figures.draw`. ``baseline`` and ``contrast`` are the question, as in
    `swflow.studies.asked`. The schedulers of a ``ranked`` study are compared with
    lower bounds.
    """

    name: str
    title: str
    runs: Sequence[dict[str, str]]
    sweeps: Sequence[tuple[str, str]] = ()
    missing: int = 0
    figures: Sequence[str | Mapping[str, Any]] = ("heatmap",)
    split: Sequence[str] = ()
    window: tuple[float | None, float | None] = (None, None)
    baseline: str | None = None
    contrast: str | None = None
    ranked: bool = False

    @property
    def recipes(self) -> list[str]:
        """Its workloads in order, with replicates counted once."""
        return list(dict.fromkeys(recipe_of(run["workload"]) for run in self.runs))

    @property
    def schedulers(self) -> list[str]:
        """Its schedulers, in order."""
        return list(dict.fromkeys(run["scheduler"] for run in self.runs))

    @property
    def logs(self) -> list[str]:
        """Its logs, in order."""
        return list(dict.fromkeys(log_of(run["workload"]) for run in self.runs))

    def first_runs(self, log: str) -> list[dict[str, str]]:
        """Return its runs of a log, without replicates after the first."""
        first = first_replicates(run["workload"] for run in self.runs if log_of(run["workload"]) == log)
        return [run for run in self.runs if run["workload"] in first]


@dataclass(frozen=True)
class Plan:
    """The studies of a report, the digest of their config (None without a config), and the titles of schedulers."""

    studies: Sequence[Study]
    digest: str | None = None
    titles: Mapping[str, str] = field(default_factory=dict)


def read_plan(path: str | os.PathLike[str] | None, runs: Sequence[dict[str, str]]) -> Plan:
    """
    Return the studies of a config (YAML or JSON) with at least one run, sweep or what-if; ``runs`` are in the database.

    Without a config, all runs are one study.
    """
    if path is None:
        return Plan([Study("runs", "All runs", list(runs))] if runs else [])
    try:
        config = yaml.safe_load(Path(path).read_text())
        if not isinstance(config, Mapping) or not isinstance(config.get("studies"), Mapping):
            raise SwflowError(f"{path}: not a config; expected studies")
        if "titles" not in config:  # not the settings that the workflow writes
            config = with_titles({"schedulers": {}} | with_kept(with_levels(config)))
        return Plan(list(_studies(config, runs)), _digest(config), config["titles"])
    except OSError as error:
        raise SwflowError(f"{path}: {reason_of(error)}") from None
    except (yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise SwflowError(f"{path}: not a config of the workflow: {str(error).splitlines()[0]}") from None


def _studies(config: Config, runs: Sequence[dict[str, str]]) -> Any:
    known = {(run["workload"], run["scheduler"]): run for run in runs}
    for name in config["studies"]:
        planned = study_runs(config, name)
        found = [known[key] for key in planned if key in known]
        sweeps = study_sweeps(config, name)
        if found or sweeps or config["studies"][name].get("whatif"):
            content = config["studies"][name]
            window = content.get("window") or {}
            yield Study(
                name, content.get("title") or name, found, sweeps, len(planned) - len(found),
                content.get("figures") or (), subsets(content), (window.get("from"), window.get("until")),
                content.get("baseline"), content.get("contrast"), bool(content.get("bounds")),
            )  # fmt: skip


def _digest(config: Config) -> str:
    content = {key: value for key, value in config.items() if key != "mirror"}
    return hashlib.blake2b(json.dumps(content, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
