"""The figures of the workflow: which job draws which, and the files that a config makes."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from swflow.names import log_of, replicate_of
from swflow.studies.figure_options import FOREST, is_printed
from swflow.studies.runs import DIGEST
from swflow.studies.step_options import Config
from swflow.studies.workflow import REACHED, VERDICTS, Workflow, plan_file

#: Figures that one job draws at most, unless a study has more of a log; a process needs a second before its first one.
DRAWN_TOGETHER = 3


class Figures(NamedTuple):
    """The figures that one job draws: their files by ending, the file with their options, and what they depend on."""

    group: str
    png: list[str]
    others: list[str]
    plan: str
    shown: Callable[[Any], list[str]]

    @property
    def rule(self) -> str:
        """The name of the rule that draws them."""
        return f"figures_{self.group}".replace("/", "_")


def figure_jobs(plan: Workflow) -> list[Figures]:
    """Return the figures, by the jobs that draw them."""
    return [
        Figures(
            group, figure_files(some, "png"), figure_files(some, "svg", "json", "pdf"),
            plan_file("figures", {group: {name: _drawn(one) for name, one in some.items()}}),
            partial(_shown, plan, some),
        )
        for group, some in _groups(plan).items()
    ]  # fmt: skip


def _drawn(options: Config) -> Config:
    """Return the options with which a figure is drawn."""
    if options["kind"] != FOREST:
        return options
    return {key: value for key, value in options.items() if key not in ("runs", "whatifs", "logs")}


def _logs(options: Config) -> list[str]:
    """Return the logs of a figure: one, or those of a study."""
    return options["logs"] if "logs" in options else [options["log"]]


def _is_reached(plan: Workflow, options: Config) -> bool:
    """Return whether a log of a figure is available."""
    return any(plan.is_reached(plan.logs_behind(log)) for log in _logs(options))


def _groups(plan: Workflow) -> dict[str, dict[str, Config]]:
    """
    Return the figures by STUDY/LOG: those of a study that show a log, with a few of the log's next studies.

    The log of those that show all logs of a study is ``all``.
    """
    by_study: dict[str, dict[str, dict[str, Config]]] = {}
    for name, options in plan.drawn.items():
        of_log = by_study.setdefault("all" if options["kind"] == FOREST else log_of(options["log"]), {})
        of_log.setdefault(name.partition("/")[0], {})[name] = options
    groups: dict[str, dict[str, Config]] = {}
    for log, studies in by_study.items():
        group: dict[str, Config] = {}
        for study, figures in studies.items():
            if not group or len(group) + len(figures) > DRAWN_TOGETHER:
                group = groups.setdefault(f"{study}/{log}", {})
            group |= figures
    return groups


def _shown(plan: Workflow, figures: Mapping[str, Config], wildcards: Any) -> list[str]:
    """
    Return the digests of runs, the sweeps and the verdicts that figures show; first wait for the load.

    Papers publish values of many runs. The verdicts on two runs are corrected for all comparisons of a log.
    """
    plan.load()
    logs = {log_of(options["log"]) for options in figures.values() if options["kind"] == "published"}
    whatifs = {(one["studies"][0], name) for one in figures.values() for name in one.get("whatifs", ())}
    sweeps = {(one["log"], one["sweep"]) for one in figures.values() if one["kind"] == "sweep"}
    sweeps |= {(name, sweep) for name, sweep in plan.sweeps if log_of(name) in logs}
    runs = {run for options in figures.values() for run in options.get("runs", ())}
    runs |= {f"{name}/{one}" for name in plan.runs if log_of(name) in logs for one in plan.runs[name]}
    shown = {_digest_of(run): run.rpartition("/")[0] for run in runs}
    shown |= {f"results/sweeps/{name}+{sweep}.parquet": name for name, sweep in sweeps}
    shown |= {f"results/whatif/{study}/{name}.parquet": name for study, name in whatifs}
    verdicts = {
        _verdicts_of(name)
        for name, one in figures.items()
        if one["kind"] in ("difference", FOREST) and _is_reached(plan, one)
    }
    return sorted(verdicts.union(file for file, name in shown.items() if plan.is_reached(plan.logs_behind(name))))


def targets(plan: Workflow, wildcards: Any) -> list[str]:
    """Return the pictures and what-if tables of the studies whose logs are available."""
    whatifs = [
        f"results/whatif/{study}/{name}.{end}"
        for study, name in plan.whatifs
        if plan.is_reached(plan.logs_behind(name))
        for end in ("html", "csv")
    ]
    return pictures(plan, "png", "svg", "pdf") + whatifs


def drawings(plan: Workflow, wildcards: Any) -> list[str]:
    """Return the interactive figures of the studies whose logs are available; the report draws forest plots itself."""
    return [file for file in pictures(plan, "json") if plan.drawn[_name_of(file)]["kind"] != FOREST]


def pictures(plan: Workflow, *endings: str) -> list[str]:
    """Return the files of figures whose logs are available, of all kinds or with these endings."""
    shown = {name: one for name, one in plan.drawn.items() if _is_reached(plan, one)}
    return figure_files(shown, *endings)


def _name_of(file: str) -> str:
    """Return the name of a figure, ``STUDY/NAME``, from one of its files."""
    return file.removeprefix("results/figures/").rpartition(".")[0]


def files_to_keep(plan: Workflow, figures: Iterable[Figures]) -> str:
    """Return the file with the files and folders that the config's jobs make in results, also those of missing logs."""
    alone = [plan.simulations([name]) for name in plan.runs if replicate_of(name) is None]
    together = [plan.simulations(one.simulated) for one in plan.replicates.values() if one.simulated]
    files = {
        *(f"results/logs/{plan.source(log_of(name)).name}.swf.gz" for name in plan.workloads),
        *(f"results/workloads/{name}.parquet" for name in plan.workloads),
        *(file for name in plan.workloads if (file := plan.fit_of(name))),
        *plan.loaded_files(),
        *(f"results/whatif/{study}/{name}.{end}" for study, name in plan.whatifs for end in ("html", "csv")),
        *(f"results/forecasts/{study}/{name}.csv" for study, name in plan.forecasts),
        *figure_files(plan.drawn),
        *(str(REACHED), plan.settings, plan.to_load, *alone, *together, *(one.plan for one in figures)),
    }
    return plan_file("keep", {"files": sorted(files)})


def figure_labels(file: str) -> dict[str, Any]:
    """
    Return the category and the labels of a figure in Snakemake's own report.

    Examples
    --------
    >>> figure_labels("results/figures/heatmaps/KTH-SP2-difference.png")
    {'category': 'heatmaps', 'labels': {'figure': 'KTH-SP2-difference'}}
    """
    path = Path(file)
    return {"category": path.parent.name, "labels": {"figure": path.stem}}


def figure_files(figures: Mapping[str, Config], *endings: str) -> list[str]:
    """Return the files of figures, of all kinds or with these endings; those of a stated width are also PDF."""
    return [
        f"results/figures/{name}.{ending}"
        for name, options in figures.items()
        for ending in endings or ("png", "svg", "json", "pdf")
        if ending != "pdf" or is_printed(options)
    ]


def _verdicts_of(name: str) -> str:
    """Return the file with the verdicts of a figure, or the folder of all until the load of an edited config."""
    file = VERDICTS / f"{name}.json"
    return str(file if file.is_file() else VERDICTS)


def _digest_of(run: str) -> str:
    """Return the file with the digest of a run, or the folder of the run, which a job makes, if the file is missing."""
    file = Path(f"results/runs/{run}{DIGEST}")
    return str(file if file.is_file() else file.parent)
