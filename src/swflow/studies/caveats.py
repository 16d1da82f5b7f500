"""What an answer omits or guesses, and what to do next."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from swflow.analysis import verdicts
from swflow.analysis.fidelity import Trust
from swflow.analysis.intervals import FEWEST_WEEKS
from swflow.errors import SwflowError
from swflow.jobs.table import Workload
from swflow.log.importers.records import COUNTED_FEATURES, GPUS, LICENSES, NOT_ELIGIBLE, NOT_MODELLED, RESERVATIONS
from swflow.log.queues import queues_in_words, queues_of
from swflow.log.site import GUESSED, SITE, node_of
from swflow.phrases import listed
from swflow.scheduling.fitting_jobs import partitions_named
from swflow.scheduling.nodes import processors_on
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.scheduler import LOG
from swflow.studies.answer import TITLES, Question
from swflow.studies.changed_limits import replacements_in_words
from swflow.studies.hardware import resources_of
from swflow.studies.site_scheduler import SITE_QOS, SiteModel, is_pool
from swflow.studies.variants import Variant
from swflow.studies.whatif import supported
from swflow.workload.clean import guess_of

# -- what the answer does not include


def caveats(question: Question) -> list[str]:
    """Return doubts about sizes, guesses, unreliable intervals, and what the simulation does not include."""
    left_out = left_out_in_words(question)
    return [
        *question.site.doubts,
        *guesses_in_words(question),
        *earlier_in_words(question),
        *changed_limits_in_words(question),
        *uneven_in_words(question),
        *([f"Not simulated: {'; '.join(left_out)}."] if left_out else []),
    ]


def changed_limits_in_words(question: Question) -> list[str]:
    """Return where the limits that variants change do not hold, and which ones they replace."""
    found = [(one.name, replacements_in_words(question.base.options, one.options)) for one in question.variants]
    return [f"Under {name}, as in Slurm: {'; '.join(sentences)}." for name, sentences in found if sentences]


def left_out_in_words(question: Question) -> list[str]:
    """Return the features of the site that the simulation omits, with numbers of jobs."""
    workload, jobs = question.workload, question.workload.jobs
    notes, counted = _notes(workload)
    partitions, schedulers = question.site.partitions, question.schedulers
    found = _partitions_in_words(question)
    planned = {name: options for name, options in schedulers.items() if options.get("order") != LOG}

    def under(without: Sequence[str]) -> str:
        return "" if len(without) == len(schedulers) else f" under {', '.join(without)}"

    by_partition = ", ".join(f"{one.name} {one.gpu_jobs:,}" for one in partitions if one.gpu_jobs)
    for name, title, note in (("gpus", "GPUs", GPUS), ("licenses", "licenses", LICENSES), ("memory", "memory", "")):
        count = int((jobs[name] > 0).sum()) if name in jobs.columns else notes.get(note, 0)
        without = [one for one, options in planned.items() if name not in resources_of(options, workload.machine)]
        is_free = name == "memory" and question.site.config is not None  # Slurm does not allocate it
        if count and without and not is_free:
            where = f" (partition {by_partition})" * (name == "gpus" and bool(by_partition))
            found.append(f"{count:,} jobs requested {title}{where}, which are not scheduled{under(without)}")
    counting = [one for one, options in planned.items() if not options.get("nodes")]
    if "constraint_id" in jobs.columns and counting:
        constrained = jobs["constraint_id"].count()
        found.append(f"{constrained:,} jobs have constraints on their nodes, which are not simulated{under(counting)}")
    part = " of the whole log" * (counted > jobs.height)
    said = {
        RESERVATIONS: "ran in advance reservations, which are not simulated",
        COUNTED_FEATURES: "have constraints with brackets or counts, which are not simulated",
    }
    if "eligible_after" not in jobs.columns:
        said[NOT_MODELLED] = "have dependencies that are not simulated"
    found += [f"{notes[note]:,} jobs{part} {text}" for note, text in said.items() if notes.get(note)]
    if notes.get(NOT_ELIGIBLE):
        found.append(
            "the log has no column Eligible, so the waits of jobs with --begin, of held jobs, and of jobs with "
            "dependencies count from their submission (add Eligible to sacct --format)"
        )
    queues = queues_of(jobs, workload.header)
    unweighed = [name for name, options in schedulers.items() if not _weighs_queues(options)]
    if len(queues) > 1 and unweighed:
        is_limited = any(schedulers[name].get("limits") for name in unweighed)
        limits = "" if is_limited else " and no limits on running jobs"
        found.append(
            f"{len(queues)} queues or QOS ({queues_in_words(queues)}) have no priorities{limits} under "
            f"{', '.join(unweighed)}"
        )
    return found


def _partitions_in_words(question: Question) -> list[str]:
    """Return how the simulation differs from the partitions of the site."""
    partitions, schedulers = question.site.partitions, question.schedulers
    pooled = [name for name, options in schedulers.items() if is_pool(options)]
    found = []
    if len(partitions) > 1 and pooled:
        found.append(f"{len(partitions)} partitions are simulated as one pool under {', '.join(pooled)}")
    apart = dict[str, list[str]]()
    for name, options in schedulers.items():
        if text := limits_apart(options):
            apart.setdefault(text, []).append(name)
    found += [
        f"{text} under {', '.join(names)}, so that jobs in several partitions can exceed them together"
        for text, names in apart.items()
    ]
    is_shared = any(
        "partition" in (options.get("limits") or {}) and not options.get("nodes") for options in schedulers.values()
    )
    if len(partitions) > 1 and is_shared:
        found.append(
            f"{len(partitions)} partitions share nodes (their peaks add up to more than the machine): they are "
            "simulated as one machine with a limit for each partition"
        )
    return found


def limits_apart(options: Unchecked) -> str:
    """
    Return which limits hold in each of several partitions alone, because these are clusters; empty if none do.

    Examples
    --------
    >>> limits_apart({"clusters": [{"partition": "cpu"}, {"partition": "gpu"}], "limits": {"user": {"processors": 64}}})
    'the limits of users hold in each of the partitions cpu and gpu alone'
    """
    clusters, limits = options.get("clusters") or (), options.get("limits") or {}
    kinds = [text for kind, text in _LIMITED.items() if kind in limits]
    if len(clusters) < 2 or not kinds:
        return ""
    named = [name for one in clusters for name in partitions_named(one)]
    where = f"the partitions {listed(named)}" if 1 < len(named) <= _MOST_NAMED else f"{len(clusters)} clusters"
    return f"the limits of {listed(kinds)} hold in each of {where} alone"


#: The kinds of limits that can hold in several partitions together, and the most partitions that a sentence names.
_LIMITED = {"user": "users", "group": "groups", "qos": "QOS"}
_MOST_NAMED = 6


def _notes(workload: Workload) -> tuple[dict[str, int], int]:
    """Return the notes of an import on its jobs, and the number of these jobs."""
    notes: dict[str, int] = {}
    counted = workload.jobs.height
    for entry in workload.history:
        if entry.get("stage") == "model":  # its jobs are not those of the log
            notes, counted = {}, workload.jobs.height
        counted = entry["kept"] if entry.get("stage") == "import" else counted
        notes |= entry.get("notes") or {}
    return notes, counted


def _weighs_queues(options: Unchecked) -> bool:
    """Return whether a scheduler gives priorities to queues or QOS, or replays the record."""
    return "qos" in (options.get("priority") or {}) or options.get("order") == LOG


def guesses_in_words(question: Question) -> list[str]:
    """Return the guessed sizes, and the options that state them."""
    simulated = {
        (name, cluster["processors"])
        for options in question.schedulers.values()
        for cluster in options.get("clusters") or ()
        for name in partitions_named(cluster)
    }
    guessed = [one for one in question.site.partitions if one.is_guessed and (one.name, one.processors) in simulated]
    guess = guess_of(question.workload)
    found = []
    if guessed:
        sizes = ", ".join(f"{one.name} {one.processors:,}" for one in guessed)
        found.append(
            f"Partition sizes ({GUESSED}, which may be too few): {sizes} processors. State them with "
            f"--partition {guessed[0].name}=N."
        )
    elif guess:
        found.append(
            f"Machine size ({guess}, which may be too few): {question.workload.machine.processors:,} processors. State "
            "it with --machine-processors N."
        )
    base = question.base.options
    clusters = sum(one["processors"] for one in base.get("clusters") or ()) or processors_on(base.get("nodes") or ())
    machine = question.workload.machine.processors
    if clusters and clusters != machine:
        found.append(
            f"The partitions have {clusters:,} processors together, and the machine of the log has {machine:,}: the "
            "peak use of each partition was at another time, or the log counts other partitions. The simulation uses "
            f"{clusters:,}."
        )
    considered = {
        name
        for options in question.schedulers.values()
        if not options.get("nodes")  # which state their units
        for name in resources_of(options, question.workload.machine)
    }
    units = {
        name: count for name, count in question.site.guessed_resources.items() if name.split(":")[-1] in considered
    }
    if units:
        shown = ", ".join(f"{name.replace(':', ' ')} {count:,}" for name, count in units.items())
        found.append(
            f"Resources ({GUESSED}, which may be too few): {shown}. State them with --machine-resource "
            f"{next(iter(units))}=N."
        )
    return found + _nodes_in_words(question)


def _nodes_in_words(question: Question) -> list[str]:
    """Return the processors and resources of the nodes that variants add or remove."""
    found = {}
    for variant in question.variants:
        for change in () if variant.options.get("nodes") else variant.nodes:  # nodes of options state their size
            jobs, name = question.workload.jobs, change.partition
            numbers = [one.number for one in question.site.partitions if name in ("", one.name)]
            node = node_of(jobs.filter(pl.col("partition_id").is_in(numbers)) if name else jobs)
            units = listed([f"{units:,} {what}{' (MB)' * (what == 'memory')}" for what, units in node.items()])
            if node:
                found[name] = f"A node{f' of {name}' * bool(name)} has {units}: the most per node of any job."
    return list(found.values())


def earlier_in_words(question: Question) -> list[str]:
    """Return how many jobs are not measured because they were submitted before the record begins."""
    earlier = question.answer.earlier
    if not earlier:
        return []
    return [
        f"{earlier:,} jobs were submitted before any recorded job ended: they waited or ran when the record began, and "
        "start as recorded until then. Waits, weeks and utilization are those of the other jobs."
    ]


def uneven_in_words(question: Question) -> list[str]:
    """Return the measures whose intervals are unreliable, because few weeks contain most of the difference."""
    found: dict[str, list[str]] = {}
    for variant, measure in question.answer.uneven:
        found.setdefault(variant, []).append(TITLES[measure])
    if not found:
        return []
    named = [f"{variant} ({', '.join(measures)})" for variant, measures in found.items()]
    return [
        f"Few weeks contain most of the difference of {'; '.join(named)}. The direction of such a "
        "difference is more reliable than its size."
    ]


# -- next steps


def next_steps(question: Question) -> list[str]:
    """Return at most three suggested next steps, the most useful first."""
    steps = []
    base, site = question.base, question.site
    log = " ".join(filter(None, (shlex.quote(question.log), question.settings)))
    partitioned = len(site.partitions) > 1
    is_pooled = partitioned and is_pool(base.options)
    doubtful = question.answer.trust in (Trust.PERCENTAGES, Trust.DIRECTIONS)
    dropped = listed(site.dropped_by(base.options))
    if is_pooled or (doubtful and dropped):
        steps.append(f"Simulate the site with {dropped or 'its partitions'}: swflow whatif {log} --scheduler {SITE}")
    elif doubtful and site.config is not None:
        command = shlex.join(["swflow", "calibrate", question.log, "--config", str(site.config), "-o", "fitted.yaml"])
        steps.append(f"Fit what no file of the site states: {command}")
    elif doubtful and not _weighs_queues(base.options) and site.priorities:
        steps.append(
            f"Test whether priorities of queues or QOS explain the difference to the record: swflow whatif {log} "
            f"--scheduler {_as_option(question)} --scheduler {SITE_QOS}, or swflow fidelity {log}"
        )
    elif doubtful:
        steps.append(f"Find a scheduler that is closer to the record: swflow fidelity {log}")
    if len(question.variants) == 1:
        change = f"{site.partitions[0].name}=+20%" if partitioned and not is_pooled else "+20%"
        inherits = base.scheduler == SITE and bool(partitioned or site.resources or site.config)
        policies = [f"{SITE}-{one}" if inherits else one for one in ("conservative", "sjf")]
        other = next((one for one in policies if is_supported(site, one)), "")
        steps.append(
            f"Ask a question: swflow whatif {log} --scheduler {_as_option(question)}"
            f"{f' --scheduler {other}' * bool(other)} --processors {change}"
        )
    waits = question.answer.table.filter(pl.col("measure") == "mean_wait_time")
    found = set(waits["verdict_holm"])
    if verdicts.TOO_FEW_WEEKS in found:
        steps.append(f"Take a log of more weeks: intervals need at least {FEWEST_WEEKS}.")
    elif found & {verdicts.NOT_DISTINGUISHABLE, verdicts.DEPENDENT_WEEKS}:
        weeks = int(waits["weeks"].max() or 0)  # type: ignore[arg-type]
        steps.append(f"Take a longer log, or ask for a larger change: {weeks} weeks do not decide every comparison.")
    if not steps:
        page = shlex.quote(f"{Path(question.log).name.partition('.')[0]}-whatif.html")
        steps.append(f"Keep the answer as a page: add -o {page}")
    return steps[:3]


def _as_option(question: Question) -> str:
    """Return the base as the value of ``--scheduler``: its name, or its definition if the command line has it."""
    base = question.base
    if is_supported(question.site, base.scheduler):
        return base.scheduler
    return shlex.quote(f"{base.scheduler}={json.dumps(base.options, ensure_ascii=False)}")


def is_supported(site: SiteModel, text: str) -> bool:
    """Return whether a scheduler of the command line exists and can simulate the workload."""
    try:
        supported(site.workload, [Variant(*site.scheduler(text))])
    except SwflowError:
        return False
    return True
