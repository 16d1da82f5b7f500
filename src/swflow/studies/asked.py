"""The comparisons that a study asks for: which runs, and which of them is the base."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from swflow.errors import SwflowError, UnsupportedError
from swflow.names import log_of, recipe_of, replicate_of
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.scheduler import LOG, OWN_CODE, Scheduler
from swflow.studies.changed_policies import with_policies
from swflow.studies.plan import Config, study_runs
from swflow.studies.variants import read_nodes, read_processors, read_resource, variants

#: The value of ``contrast`` that compares workloads under one scheduler.
WORKLOAD = "workload"

#: Runs or recipes, ``workload/scheduler``, or names of schedulers: the variant and its base.
Pair = tuple[str, str]

#: Options that belong to another one: a class decides which jobs start, so that an order has no effect.
_WITH = {
    "policy": {"policy_options", "order", "backfill", "backfill_order", "reservations"},
    "backfill": {"reservations", "backfill_starts"},
}


def scheduler_pairs(
    names: Sequence[str], options: Mapping[str, Unchecked], baseline: str | None = None, contrast: str | None = None
) -> list[Pair]:
    """
    Return the compared schedulers of a workload: pairs of a scheduler and its base.

    The base is ``baseline``, by default the first scheduler; the recorded schedule takes part only if it is the base.
    With ``contrast``, the name of an option, the pairs are those that differ in this option only; the base of a
    scheduler is then the first other one, beginning with ``baseline`` and, for ``backfill``, with those that do not
    backfill. ``options`` are those of the schedulers with their defaults.

    Examples
    --------
    >>> options = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"},
    ...            "wfp3": {"backfill": "easy", "order": "wfp3"}}
    >>> scheduler_pairs(["easy", "fcfs", "wfp3"], options)
    [('fcfs', 'easy'), ('wfp3', 'easy')]
    >>> scheduler_pairs(["easy", "fcfs", "wfp3"], options, contrast="backfill")
    [('easy', 'fcfs')]
    """
    names = [name for name in names if name != LOG or baseline == LOG]
    names.sort(key=lambda name: name != baseline)  # stable: the order of the study
    if contrast is None:
        is_missing = baseline is not None and baseline not in names
        return [] if is_missing else [(name, names[0]) for name in names[1:]]
    if contrast == "backfill":
        names.sort(key=lambda name: (name != baseline, options[name].get("backfill", "none") != "none"))
    pairs = []
    for place, name in enumerate(names):
        bases = (base for base in names[:place] if _differ_in(options[name], options[base]) == contrast)
        pairs += [(name, base) for base in bases][:1]
    return pairs


def _differ_in(one: Unchecked, other: Unchecked) -> str | None:
    """Return the option in which two schedulers differ; None if there is none, or several."""
    keys = {key for key in {**one, **other} if one.get(key) != other.get(key)} - {OWN_CODE}
    for key, others in _WITH.items():
        keys -= others if key in keys else set()
    return next(iter(keys)) if len(keys) == 1 else None


def workload_pairs(workloads: Sequence[str]) -> list[Pair]:
    """
    Return the compared workloads of a study: those of a log, each with the one of the fewest steps.

    A replicate is compared with the replicate of the same number, or with the workload that has none.

    Examples
    --------
    >>> workload_pairs(["A", "A+like@1", "A+like@2", "B+like@1", "B+like+wide@1"])
    [('A+like@1', 'A'), ('A+like@2', 'A'), ('B+like+wide@1', 'B+like@1')]
    """
    sources: dict[str, str] = {}
    for workload in workloads:
        recipe = recipe_of(workload)
        source = sources.setdefault(log_of(workload), recipe)
        if recipe.count("+") < source.count("+"):
            sources[log_of(workload)] = recipe
    known = {(recipe_of(workload), replicate_of(workload)): workload for workload in workloads}
    pairs = []
    for workload in workloads:
        source = sources[log_of(workload)]
        base = known.get((source, replicate_of(workload)), known.get((source, None)))
        if recipe_of(workload) != source and base is not None:
            pairs.append((workload, base))
    return pairs


def asked_pairs(config: Config, study: str) -> list[Pair]:
    """
    Return the runs that a study compares, ``workload/scheduler``: pairs of a variant and its base.

    Schedulers are compared on the same workload. Workloads are compared under the same scheduler if the study has
    ``contrast: workload``. A ranking, which ``bounds: true`` requests, compares all schedulers of a workload.
    """
    runs = study_runs(config, study)
    content = config["studies"][study]
    if content.get("contrast") == WORKLOAD:
        pairs = []
        for scheduler in dict.fromkeys(scheduler for _, scheduler in runs):
            of_scheduler = workload_pairs([workload for workload, other in runs if other == scheduler])
            pairs += [(f"{variant}/{scheduler}", f"{base}/{scheduler}") for variant, base in of_scheduler]
        return pairs
    options = _options(config, dict.fromkeys(scheduler for _, scheduler in runs)) if content.get("contrast") else {}
    pairs = []
    for workload, names in _by_workload(runs).items():
        if content.get("bounds"):
            compared = list(combinations([name for name in names if name != LOG], 2))
        else:
            compared = scheduler_pairs(names, options, content.get("baseline"), content.get("contrast"))
        pairs += [(f"{workload}/{variant}", f"{workload}/{base}") for variant, base in compared]
    return pairs


def _by_workload(runs: Iterable[Pair]) -> dict[str, list[str]]:
    """Return the schedulers of each workload, in the study's order."""
    found: dict[str, list[str]] = {}
    for workload, scheduler in runs:
        found.setdefault(workload, []).append(scheduler)
    return found


def _options(config: Config, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    known = {**config["schedulers"], LOG: {"order": LOG}}
    return {name: Scheduler.of(name, known[name]).to_dict() for name in names}


def check_questions(config: Config) -> None:
    """Raise an error for a ``baseline`` or ``contrast`` that no run of its study matches, with the values that do."""
    for study, content in config["studies"].items():
        baseline, contrast = content.get("baseline"), content.get("contrast")
        if baseline is None and contrast is None:
            continue
        runs = study_runs({**config, "logs": None}, study)
        names = list(dict.fromkeys(scheduler for _, scheduler in runs))
        if baseline is not None and baseline not in names:
            raise SwflowError(f"studies: {study}: baseline: {baseline!r}; expected one of {', '.join(names)}")
        if contrast is not None:
            valid = _valid_contrasts(config, runs, names)
            if contrast not in valid:
                expected = f"expected one of {', '.join(valid)}" if valid else "no value does; remove it"
                raise SwflowError(
                    f"studies: {study}: contrast: {contrast!r} matches no two runs that differ only in it; {expected}"
                )


#: The options of a what-if whose values are amounts or changes, with their readers.
_AMOUNTS = {"processors": read_processors, "nodes": read_nodes, "resource": read_resource}


def check_whatifs(config: Config) -> None:
    """Raise an error for a what-if of a study with a change that cannot be read, or that makes a scheduler invalid."""
    known = {LOG: {"order": LOG}, **config["schedulers"]}
    for study, content in config["studies"].items():
        for number, entry in enumerate(content.get("whatif") or ()):
            schedulers = {name: known[name] for name in entry["schedulers"]}
            try:
                for key, read in _AMOUNTS.items():
                    for value in entry.get(key, ()):
                        read(str(value))
                for place, (name, options) in enumerate(_variants_of(entry, schedulers)):
                    try:
                        Scheduler.of(name, options)
                    except UnsupportedError:
                        if place == 0:  # the base; the command skips other combinations that are not supported
                            raise
            except SwflowError as error:
                text = str(error).removeprefix("--")
                raise SwflowError(f"studies: {study}: whatif[{number}]: {text}") from None


def _variants_of(entry: Config, schedulers: Mapping[str, Unchecked]) -> list[tuple[str, Unchecked]]:
    """Return the schedulers of a what-if with their options."""

    def texts(key: str) -> list[str]:
        return [str(value) for value in entry.get(key, ())]

    changed = with_policies(
        schedulers, order=texts("order"), backfill=texts("backfill"), limit=texts("limit"), share=texts("share")
    )
    hardware = variants(changed, processors=texts("processors"), nodes=texts("nodes"), resource=texts("resource"))
    return [(variant.scheduler, variant.options) for variant in hardware]


def _valid_contrasts(config: Config, runs: Sequence[Pair], names: Sequence[str]) -> list[str]:
    """Return the options in which alone two schedulers differ, and ``workload`` if a log has several workloads."""
    options = _options(config, names)
    together = {names for of in _by_workload(runs).values() for names in combinations(of, 2) if LOG not in names}
    single = {_differ_in(options[one], options[other]) for one, other in together}
    valid = sorted(key for key in single if key)
    by_scheduler = ([workload for workload, other in runs if other == name] for name in names)
    return valid + [WORKLOAD] * any(workload_pairs(workloads) for workloads in by_scheduler)
