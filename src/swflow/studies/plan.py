"""Plan studies: expand the lists of a config to runs, and write settings as options of commands."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from swflow.errors import SwflowError, suggest
from swflow.jobs.conditions import check_condition
from swflow.log.settings import CONDITION_COLUMNS
from swflow.names import (
    check_length,
    first_replicates,
    log_of,
    recipe_of,
    replicate_of,
    split_step,
    steps_of,
    with_parents,
    worth_comparing,
)
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.studies.figure_options import (
    FOREST,
    OF_REPLICATES,
    check_figure,
    kind_of_figure,
    name_of_figure,
    options_of_figure,
)
from swflow.studies.points import grid, values
from swflow.studies.step_options import SEEDED_KINDS, Config, sources_behind

#: The value of ``schedulers`` of runs that selects all schedulers of the config.
ALL = "all"


class Entry(NamedTuple):
    """An entry of a study with one of its workloads: the study, the place in the config, and all settings."""

    study: str
    where: str
    workload: str
    schedulers: list[str]
    settings: Config


@dataclass(frozen=True)
class Plan:
    """
    What the studies of a config need.

    ``runs`` maps workloads to schedulers, ``sweeps`` maps workloads and sweeps to schedulers, all sorted. ``whatifs``
    and ``forecasts`` map studies and workloads to the options of ``swflow whatif`` and ``swflow forecast --evaluate``.
    ``bounds`` are the workloads of runs whose lower bounds a study requests with ``bounds: true``, ``reasons`` those
    whose waits it divides with ``wait_reasons: true``. ``figures`` maps file names in ``results/figures``, without
    endings, to kind and options: those of `swflow.figures.draw_sweep` for each sweep, or else those of
    `swflow.figures.draw`, with ``runs`` in the study's order, of which the first replicate represents its recipe.
    """

    runs: dict[str, list[str]]
    sweeps: dict[tuple[str, str], list[str]]
    whatifs: dict[tuple[str, str], dict[str, Any]]
    forecasts: dict[tuple[str, str], dict[str, Any]]
    bounds: list[str]
    reasons: list[str]
    figures: dict[str, dict[str, Any]]

    @property
    def workloads(self) -> list[str]:
        """The workloads of runs, what-ifs, forecasts and sweeps."""
        of_studies = (name for _, name in (*self.whatifs, *self.forecasts))
        return list(dict.fromkeys([*self.runs, *of_studies, *(name for name, _ in self.sweeps)]))


def plan_studies(config: Config, logs: Collection[str]) -> Plan:
    """
    Expand the studies of a config.

    ``logs`` are the names of the catalogue. ``logs`` of the config limits every study to the named logs (null: no
    limit). All names are checked, and at least one run, what-if or forecast must be left.

    Examples
    --------
    >>> config = {
    ...     "logs": ["KTH-SP2"], "steps": {"ran": {}}, "schedulers": {"easy": {}}, "sweeps": {"d": {}},
    ...     "studies": {"heatmaps": {
    ...         "logs": ["KTH-SP2", "HPC2N"], "figures": ["heatmap"], "split": {"wide": "processors > 32"},
    ...         "runs": [{"workloads": ["{log}"], "schedulers": ["log"]},
    ...                  {"workloads": ["{log}+ran"], "schedulers": "all"}],
    ...         "sweeps": [{"workloads": ["{log}"], "sweeps": ["d"], "schedulers": ["easy"]}],
    ...         "whatif": [{"workloads": ["{log}"], "schedulers": ["easy"], "processors": ["+20%"]}],
    ...         "forecast": [{"workloads": ["{log}"], "weeks": 8}],
    ...     }},
    ... }
    >>> plan = plan_studies(config, ["KTH-SP2", "HPC2N"])
    >>> plan.runs, plan.sweeps
    ({'KTH-SP2': ['log'], 'KTH-SP2+ran': ['easy']}, {('KTH-SP2', 'd'): ['easy']})
    >>> plan.whatifs
    {('heatmaps', 'KTH-SP2'): {'schedulers': ['easy'], 'processors': ['+20%']}}
    >>> plan.forecasts
    {('heatmaps', 'KTH-SP2'): {'weeks': 8}}
    >>> for name, options in plan.figures.items():
    ...     print(name, options["kind"], options.get("runs"), options.get("split"))
    heatmaps/KTH-SP2-heatmap heatmap ['KTH-SP2/log', 'KTH-SP2+ran/easy'] ['wide=processors > 32']
    heatmaps/KTH-SP2+d sweep None None
    """
    limit = config.get("logs")
    for log in limit or ():
        _require(log, logs, "logs", "log")
    for study, content in config["studies"].items():
        for log in content["logs"]:
            _require(log, logs, f"studies: {study}: logs", "log")
    planned_runs, planned_sweeps = (list(entries(config, part, logs)) for part in ("runs", "sweeps"))
    whatifs, forecasts = (_once(entries(config, part, logs)) for part in ("whatif", "forecast"))
    runs: dict[str, set[str]] = {}
    for entry in planned_runs:
        runs.setdefault(entry.workload, set()).update(entry.schedulers)
    sweeps: dict[tuple[str, str], set[str]] = {}
    for entry in planned_sweeps:
        for sweep in entry.settings["sweeps"]:
            sweeps.setdefault((entry.workload, sweep), set()).update(entry.schedulers)
    if not runs and not whatifs and not forecasts:
        raise SwflowError("studies: no runs" + (f" of logs={limit}" if limit is not None else ""))
    bounds, reasons = (
        sorted({entry.workload for entry in planned_runs if config["studies"][entry.study].get(key)})
        for key in ("bounds", "wait_reasons")
    )
    figures = _figures(config, planned_runs)
    for name, about in _forests(config, planned_runs, whatifs):
        if name in figures:
            study, _, figure = name.partition("/")
            raise SwflowError(
                f"studies: {study}: figures: two figures named {figure!r}; expected different names: "
                "{kind: forest, name: …}"
            )
        figures[name] = about
    for entry in sorted(planned_sweeps, key=lambda entry: entry.workload):
        for sweep in entry.settings["sweeps"]:
            about = {"kind": "sweep", "log": entry.workload, "sweep": sweep}
            figures[f"{entry.study}/{entry.workload}+{sweep}"] = about
    return Plan(_sorted(runs), _sorted(sweeps), whatifs, forecasts, bounds, reasons, figures)


def _once(planned: Iterable[Entry]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return study and workload to the settings of entries; raise an error if a study names a workload twice."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in planned:
        key = entry.study, entry.workload
        if key in found:
            problem = "is in two entries; expected one, or another study"
            raise SwflowError(f"{entry.where}: workloads: {entry.workload}: {problem}")
        found[key] = {name: value for name, value in entry.settings.items() if name != "workloads"}
    return found


def _sorted(names: Mapping[Any, Iterable[str]]) -> dict[Any, list[str]]:
    return {key: sorted(names[key]) for key in sorted(names)}


def entries(config: Config, part: str, logs: Collection[str] | None = None) -> Iterator[Entry]:
    """
    Yield the entries of a part of all studies, such as ``runs``, with each workload of the config.

    With ``logs``, the names of the catalogue, all names are checked, also those of workloads that ``logs`` of the
    config excludes.
    """
    for study, content in config["studies"].items():
        for number, group in enumerate(content.get(part) or ()):
            where = f"studies: {study}: {part}[{number}]"
            named = group.get("schedulers", ())  # forecasts need none
            schedulers = list(config["schedulers"] if named == ALL else named)
            if logs is not None:
                _check_entry(config, study, group, schedulers, where)
            for workload in _expanded(content, group):
                if logs is not None:
                    _check_workload(workload, config["steps"], logs, f"{where}: workloads")
                if not isinstance(config.get("logs"), list) or log_of(workload) in config["logs"]:
                    yield Entry(study, where, workload, schedulers, group)


def _check_entry(config: Config, study: str, group: Config, schedulers: list[str], where: str) -> None:
    for scheduler in schedulers:
        _require(scheduler, {LOG, *config["schedulers"]}, f"{where}: schedulers", "scheduler")
    if "scheduler" in group:
        _require(group["scheduler"], config["schedulers"], f"{where}: scheduler", "scheduler")
    for sweep in group.get("sweeps", ()):
        _require(sweep, config.get("sweeps", {}), f"{where}: sweeps", "sweep")
    if "sweeps" in group and LOG in schedulers:
        raise SwflowError(f"{where}: schedulers: a scaled workload has no recorded schedule; remove log")
    for template in group["workloads"]:
        if "{seed}" in template and not config["studies"][study].get("seeds"):
            raise SwflowError(f"studies: {study}: seeds: missing, but {template!r} has {{seed}}; expected a number")


def _check_workload(workload: str, steps: Config, logs: Collection[str], where: str) -> None:
    """Raise an error for an unknown log or step, also of workloads that steps are ``like``, and for a long name."""
    _check_parts(workload, steps, logs, where)
    for step in steps_of(workload):
        name = split_step(step)[0]
        like = steps[name].get("like")
        if like is not None:
            _check_parts(like, steps, logs, f"steps: {name}: like")
            if len(sources_behind(like, steps)) > 1:
                raise SwflowError(
                    f"steps: {name}: like: {like}: its demands are drawn; expected a workload that records memory"
                )
    check_length(workload, where)


def _check_parts(workload: str, steps: Config, logs: Collection[str], where: str) -> None:
    _require(log_of(workload), logs, where, "log")
    for step in steps_of(workload):
        name, replicate = split_step(step)
        _require(name, steps, where, "step")
        kind = steps[name].get("kind")
        if replicate is not None and kind not in SEEDED_KINDS:
            raise SwflowError(f"{where}: {step}: a step of kind {kind} draws no random numbers; remove @{replicate}")


def _expanded(content: Config, group: Config) -> Iterable[str]:
    """Yield the workloads of an entry of a study: every template with each log and each replicate."""
    for template in group["workloads"]:
        for log in content["logs"] if "{log}" in template else [""]:
            for seed in range(1, (content.get("seeds") or 1) + 1) if "{seed}" in template else [1]:
                yield template.replace("{log}", log).replace("{seed}", str(seed))


def planned_replicates(workloads: Iterable[str]) -> dict[str, list[str]]:
    """
    Return the replicates among workloads and the workloads that these are made from, in the order of their numbers.

    The result maps a recipe to its replicates, which one job generates. In all of them, the same steps are replicates.

    Examples
    --------
    >>> planned_replicates(["KTH-SP2+first+moldable@2", "KTH-SP2+first+moldable@1"])
    {'KTH-SP2+first+moldable': ['KTH-SP2+first+moldable@1', 'KTH-SP2+first+moldable@2']}
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(with_parents(workloads), key=lambda name: (recipe_of(name), replicate_of(name) or 0, name)):
        if replicate_of(name) is not None:
            groups.setdefault(recipe_of(name), []).append(name)
    for recipe, (first, *others) in groups.items():
        for other in others:
            if _drawn_steps(other) != _drawn_steps(first):
                raise SwflowError(
                    f"studies: workloads: {first} and {other} differ in the steps that are replicates, but {recipe} "
                    "would summarize both; define one of the steps again under another name"
                )
    return groups


def _drawn_steps(workload: str) -> list[bool]:
    """Return for each step whether it is a replicate."""
    return [split_step(step)[1] is not None for step in steps_of(workload)]


def study_runs(config: Config, study: str) -> list[tuple[str, str]]:
    """
    Return workload and scheduler of each run of one study, in the study's order, without duplicates.

    Examples
    --------
    >>> group = {"workloads": ["{log}"], "schedulers": ["fcfs", "easy"]}
    >>> study_runs({"studies": {"mine": {"logs": ["A", "B"], "runs": [group]}}, "logs": ["A"]}, "mine")
    [('A', 'fcfs'), ('A', 'easy')]
    """
    found = (entry for entry in entries(config, "runs") if entry.study == study)
    return list(dict.fromkeys((entry.workload, scheduler) for entry in found for scheduler in entry.schedulers))


def study_sweeps(config: Config, study: str) -> list[tuple[str, str]]:
    """Return workload and sweep of each sweep of one study, in the study's order, without duplicates."""
    found = (entry for entry in entries(config, "sweeps") if entry.study == study)
    return list(dict.fromkeys((entry.workload, sweep) for entry in found for sweep in entry.settings["sweeps"]))


def with_titles(config: dict[str, Any]) -> dict[str, Any]:
    """
    Return the config with the titles of schedulers as a key of their own, so that they do not affect any run.

    Examples
    --------
    >>> with_titles({"schedulers": {"easy": {"title": "EASY", "backfill": "easy"}, "fcfs": {}}})
    {'schedulers': {'easy': {'backfill': 'easy'}, 'fcfs': {}}, 'titles': {'easy': 'EASY'}}
    """
    schedulers = {name: dict(options) for name, options in config["schedulers"].items()}
    titles = {name: options.pop("title") for name, options in schedulers.items() if "title" in options}
    return config | {"schedulers": schedulers, "titles": titles}


def with_kept(config: Config) -> dict[str, Any]:
    """
    Return the config with the steps and runs that ``keep`` of its sweeps represents.

    A row of a sweep names the workload that a step of the same name would draw, with identical jobs. The draws whose
    outcomes are kept therefore become steps, and ordinary runs of the studies that contain the sweep. ``keep`` is
    ``outcomes``, for the first draw of each setting; or a selection of ``d``, ``variant`` and ``factor`` of the sweep,
    and ``seeds``, the number of draws.

    Examples
    --------
    >>> entry = {"workloads": ["{log}"], "sweeps": ["d"], "schedulers": ["easy"]}
    >>> config = with_kept({
    ...     "steps": {}, "sweeps": {"d": {"processors": 64, "d": "0:100:50", "keep": {"d": 50, "seeds": 2}}},
    ...     "studies": {"scaling": {"logs": ["A"], "runs": [], "sweeps": [entry]}},
    ... })
    >>> config["steps"]
    {'precise-64-d50': {'kind': 'scale', 'processors': 64, 'd': 50, 'variant': 'precise'}}
    >>> config["studies"]["scaling"]["runs"]
    [{'workloads': ['{log}+precise-64-d50@1', '{log}+precise-64-d50@2'], 'schedulers': ['easy']}]
    """
    steps = dict(config.get("steps", {}))
    draws: dict[str, list[str]] = {}
    for sweep, content in config.get("sweeps", {}).items():
        if "keep" in content:
            kept, seeds = _kept_of(sweep, content)
            for step, definition in kept.items():
                if steps.setdefault(step, definition) != definition:
                    raise SwflowError(
                        f"sweeps: {sweep}: keep: {step}: name of another step of the config; rename that step"
                    )
            draws[sweep] = [f"{step}@{draw}" for step in kept for draw in range(1, seeds + 1)]
    studies = {}
    for study, content in config["studies"].items():
        runs = list(content["runs"])
        for group in content.get("sweeps", ()):
            suffixes = [suffix for sweep in group["sweeps"] for suffix in draws.get(sweep, ())]
            workloads = [f"{template}+{suffix}" for template in group["workloads"] for suffix in suffixes]
            if workloads:
                runs.append({"workloads": workloads, "schedulers": group["schedulers"]})
        studies[study] = {**content, "runs": runs}
    return {**config, "steps": steps, "studies": studies}


def _kept_of(sweep: str, content: Config) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the steps that draw the kept settings of a sweep, and the number of draws of each."""
    where = f"sweeps: {sweep}: keep"
    if content.get("search") or "excess" in content:
        why = "a search chooses its own factors" if content.get("search") else "excess depends on the source"
        raise SwflowError(f"{where}: {why}; keep factors of a separate sweep with fixed factors")
    chosen = {} if content["keep"] == "outcomes" else content["keep"]

    def of(settings: Config, key: str, default: Any) -> list[Any]:
        given = settings.get(key, default)
        items = given if isinstance(given, list) else [given]
        return items if key == "variant" else [one for item in items for one in values(str(item), f"{where}: {key}")]

    parts = {}
    for key, default in (("d", 50), ("variant", "precise"), ("factor", [])):
        all_of_them = of(content, key, default)
        parts[key] = of(chosen, key, all_of_them)
        for one in parts[key]:
            if one not in all_of_them:
                raise SwflowError(
                    f"{where}: {key}: the sweep has no {one if isinstance(one, str) else format(one, 'g')}"
                )
    seeds = chosen.get("seeds", 1)
    if seeds > content.get("seeds", seeds):
        raise SwflowError(f"{where}: seeds: {seeds}; the sweep has {content['seeds']} draws")
    points = grid(content["processors"], **parts, copies=content.get("copies"))
    return {point.step: point.as_step() for point in points}, seeds


def _figures(config: Config, entries: Iterable[Entry]) -> dict[str, dict[str, Any]]:
    """Return the figures of studies: each kind of ``figures`` of a study once per log."""
    columns: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in entries:
        runs = columns.setdefault((entry.study, log_of(entry.workload)), [])
        runs.extend((entry.workload, scheduler) for scheduler in entry.schedulers)
    figures: dict[str, dict[str, Any]] = {}
    for (study, log), planned in columns.items():
        content, shown = config["studies"][study], first_replicates(workload for workload, _ in planned)
        every = list(dict.fromkeys(planned))
        runs = [run for run in every if run[0] in shown]
        named = [{"workload": workload, "scheduler": scheduler} for workload, scheduler in runs]
        for place, entry in enumerate(content.get("figures", ())):
            kind, name = kind_of_figure(entry), f"{study}/{log}-{name_of_figure(entry)}"
            if kind == FOREST:
                continue
            check_figure(kind, {} if isinstance(entry, str) else entry, f"studies: {study}: figures: {place}: ")
            if kind == "difference" and not any(worth_comparing(*pair) for pair in combinations(named, 2)):
                raise SwflowError(f"studies: {study}: figures: difference: {log} has no two runs to compare")
            if name in figures:
                raise SwflowError(
                    f"studies: {study}: figures: {place}: two figures named {name_of_figure(entry)!r}; expected "
                    f"different names: {{kind: {kind}, name: …}}"
                )
            base = content.get("baseline") if kind == "difference" else None  # the first run is the base
            drawn = every if kind in OF_REPLICATES else runs
            ordered = sorted(drawn, key=lambda run: base is not None and run[1] != base)
            options: dict[str, Any] = {"kind": kind, "log": log, "title": log, "split": subsets(content)}
            options |= {"runs": ["/".join(run) for run in ordered]} | options_of_figure(entry)
            schedulers = {scheduler for _, scheduler in runs}
            if titles := {one: title for one, title in config.get("titles", {}).items() if one in schedulers}:
                options["titles"] = titles
            if kind == "difference":
                options["study"] = study
            if kind == "reservation-table" and "window" not in options:
                window = content.get("window") or {}
                options["window"] = [window.get("from"), window.get("until")]
            figures[name] = options
    return figures


def _forests(
    config: Config, entries: Collection[Entry], whatifs: Collection[tuple[str, str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures that show what a study asks for on all its logs, with the runs and what-if tables in them."""
    for study, content in config["studies"].items():
        for place, entry in enumerate(content.get("figures", ())):
            if kind_of_figure(entry) != FOREST:
                continue
            check_figure(FOREST, {} if isinstance(entry, str) else entry, f"studies: {study}: figures: {place}: ")
            own = [one for one in entries if one.study == study]
            asked = [workload for of, workload in whatifs if of == study]
            workloads = [*(one.workload for one in own), *asked]
            about = {
                "kind": FOREST, "studies": [study], "whatifs": asked,
                "runs": [f"{one.workload}/{scheduler}" for one in own for scheduler in one.schedulers],
                "logs": list(dict.fromkeys(map(log_of, workloads))),
            }  # fmt: skip
            yield f"{study}/{name_of_figure(entry)}", about | options_of_figure(entry)


def subsets(content: Config) -> list[str]:
    """
    Return the subsets of jobs that a study distinguishes, as options of ``swflow figure``.

    Examples
    --------
    >>> subsets({"split": "queue_id"}), subsets({"split": {"wide": "processors > 32"}}), subsets({})
    (['queue_id'], ['wide=processors > 32'], [])
    """
    split = content.get("split") or []
    if isinstance(split, Mapping):
        return [f"{name}={predicate}" for name, predicate in split.items()]
    return [split] if isinstance(split, str) else list(split)


def check_schedulers(config: Config) -> None:
    """Raise an error that names the scheduler and the option if a scheduler of the config is invalid."""
    for name, options in config["schedulers"].items():
        if name == LOG:
            raise SwflowError("schedulers: log: reserved for replaying the recorded start times; rename the scheduler")
        Scheduler.of(name, options)


def check_conditions(config: Config) -> None:
    """
    Raise an error that names the key if a condition of the config is invalid.

    Column names are checked when the table is read, since a step may add a column for any resource.

    Examples
    --------
    >>> config = {"steps": {"late": {"kind": "select", "where": "wait_time >> 60"}}, "studies": {}}
    >>> check_conditions(config)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    swflow.errors.SwflowError: steps: late: where: 'wait_time >> 60': RShift at position 1 is not allowed; ...
    """
    for flurry in config.get("clean", {}).get("flurries", ()):
        check_condition(flurry, "clean: flurries", CONDITION_COLUMNS)
    for name, step in config["steps"].items():
        if step.get("where") is not None:
            check_condition(step["where"], f"steps: {name}: where")
    for study, content in config["studies"].items():
        split = content.get("split")
        for name, predicate in split.items() if isinstance(split, Mapping) else ():
            check_condition(predicate, f"studies: {study}: split: {name}")


def _require(name: str, known: Collection[str], where: str, kind: str) -> None:
    if name not in known:
        raise SwflowError(f"{where}: unknown {kind} {name!r}{suggest(name, sorted(known))}")
