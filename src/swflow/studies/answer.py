"""The answer to a what-if: a sentence and a table per question, its fidelity, what it omits, and next steps."""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import polars as pl

from swflow.analysis import verdicts
from swflow.analysis.fidelity import Trust
from swflow.analysis.intervals import FEWEST_WEEKS
from swflow.errors import SwflowError
from swflow.files.atomic import write_text
from swflow.files.tables import write_table
from swflow.jobs.table import Workload
from swflow.log.importers.records import COUNTED_FEATURES, GPUS, LICENSES, NOT_ELIGIBLE, NOT_MODELLED, RESERVATIONS
from swflow.log.queues import queues_in_words, queues_of
from swflow.log.site import GUESSED, SITE, node_of
from swflow.scheduling.options import Unchecked
from swflow.scheduling.scheduler import LOG
from swflow.scheduling.slurm.nodes import processors_on
from swflow.studies.hardware import partitions_named, resources_of
from swflow.studies.site_scheduler import SITE_QOS, SiteModel, is_pool
from swflow.studies.variants import Change, Variant
from swflow.studies.whatif import BASE, RECORDED, Answer, Row, supported
from swflow.studies.why import limits_in_words, parts_of_variants
from swflow.studies.wording import DIRECTIONS, Percent, Unit, listed, share_of, unit_of, unit_of_measure
from swflow.workload.clean import guess_of

#: The name of each measure in a sentence.
TITLES: dict[str, str] = {
    "mean_wait_time": "mean wait",
    "p95_wait_time": "95th-percentile wait",
    "mean_bounded_slowdown": "mean bounded slowdown",
    "awrt": "area-weighted response time (AWRT)",
}

#: The name of each measure above a column or before a row.
LABELS: dict[str, str] = TITLES | {"awrt": "AWRT"}

#: The verdicts on a change, as one word of a table.
WORDS: dict[str, str] = {verdicts.BETTER: "better", verdicts.WORSE: "worse"}

#: Below this share of jobs that wait at all, an answer states how rare waits are.
RARE = 0.1

#: Variants with a sentence each; of more, the best ones have one.
MOST_SENTENCES = 4

#: Groups in a table on the terminal and on a page; files have all.
MOST_GROUPS = 10

DEFINITIONS: dict[str, str] = {
    "now, then": "Now is the base: the first scheduler, on the recorded machine and jobs. Then is the variant. Both "
    "are simulated.",
    "mean wait": "The mean time from the moment at which a job may start (its submission, the time of --begin, or the "
    "end of the jobs on which it depends) to its start, over all jobs.",
    "95th-percentile wait": "95 % of the jobs wait no longer than this.",
    "mean bounded slowdown": "The mean of (wait + run time) / run time, at least 1; shorter run times count as 10 s.",
    "AWRT": "Area-weighted response time: the mean time from eligibility to the end, each job weighted by its "
    "processors times its run time.",
    "95 % interval": "The confidence interval of the change, over the log's weeks.",
    "not distinguishable": "The interval contains 0: the log is too short to tell whether the change is better or "
    "worse.",
    "utilization": "The share of the machine's processors that jobs use, from the first submission to the last end.",
}


@dataclass(frozen=True)
class Question:
    """
    A what-if and the context that explains its answer.

    The first of ``asked`` is the base. ``log`` is the log's name on the command line, for suggested commands, and
    ``doubts`` are warnings about it.
    """

    site: SiteModel
    asked: Sequence[Variant]
    answer: Answer
    log: str = "LOG"
    doubts: Sequence[str] = field(default_factory=tuple)

    @property
    def workload(self) -> Workload:
        """The simulated workload."""
        return self.site.workload

    @property
    def variants(self) -> list[Variant]:
        """The base and the variants that could be simulated."""
        skipped = {name for name, _ in self.answer.skipped}
        return [variant for variant in self.asked if variant.name not in skipped]

    @property
    def base(self) -> Variant:
        """The variant with which the others are compared."""
        return self.asked[0]

    @property
    def ranked(self) -> list[Variant]:
        """The variants besides the base, by their mean wait."""
        return sorted(self.variants[1:], key=lambda one: self.row(one)["value"])

    @property
    def schedulers(self) -> dict[str, Unchecked]:
        """The options of each scheduler, by its name."""
        return {variant.scheduler: variant.options for variant in self.variants}

    @property
    def recorded(self) -> float | None:
        """The recorded mean wait, if the log has one."""
        return self.answer.fidelity["recorded_mean_wait_time"] if self.answer.fidelity else None

    def rows(self, variant: Variant) -> dict[str, Row]:
        """Return measure to row for one variant."""
        table = self.answer.table.filter(pl.col("variant") == variant.name)
        return {row["measure"]: cast(Row, row) for row in table.iter_rows(named=True)}

    def row(self, variant: Variant) -> Row:
        """Return the row of the mean wait of a variant."""
        return self.rows(variant)["mean_wait_time"]


class Table(NamedTuple):
    """A table of texts with a title; the first column names the rows."""

    title: str
    columns: list[str]
    rows: list[list[str]]


# -- sentences


def sentences(question: Question) -> list[str]:
    """Return the answer in sentences: one on each variant, the best ones if there are many."""
    ranked = question.ranked
    lines = [variant_in_words(question, variant) for variant in ranked[:MOST_SENTENCES]]
    if len(ranked) > MOST_SENTENCES:
        lines[0] = f"Of {len(ranked)} variants, the {MOST_SENTENCES} with the shortest mean waits: {lines[0]}"
    if question.answer.reasons and (limits := limits_in_words(question.answer.reasons[question.base.name])):
        lines.append(limits)
    lines += [f"{name} cannot be simulated: {reason}." for name, reason in question.answer.skipped]
    if question.answer.left_out:
        total = question.workload.jobs.height
        lines.append(
            f"{question.answer.left_out:,} of {total:,} jobs do not fit into the smallest machine, cluster or limit. "
            "They are left out now and then, so that these waits are those of a lighter load."
        )
    return lines


def variant_in_words(question: Question, variant: Variant) -> str:
    """Return the change of the mean wait by a variant, other decided measures, and what the variant leaves out."""
    rows = question.rows(variant)
    main = rows["mean_wait_time"]
    subject = _subject(question, variant)
    is_doubtful = question.answer.trust is Trust.DIRECTIONS and variant == question.ranked[0]
    doubt = "in a simulation that does not reproduce this site well, " * is_doubtful
    said = [f"{subject}, {doubt}{_change_in_words(main)}"]
    for decided, word in DIRECTIONS.items():
        others = [
            f"the {TITLES[measure]} is {found.size} {word if 'slowdown' not in measure else _SIZES[decided]}"
            for measure, row in rows.items()
            if measure != "mean_wait_time"
            and row["verdict_holm"] == decided != main["verdict_holm"]
            and (found := _percent(row))
        ]
        said += [f"{_capital(listed(others))}."] if others else []
    said += [text for text in (_rare(question, variant, main), _left_alone(question, variant)) if text]
    by_base = question.site.dropped_by(question.base.options)
    dropped = [one for one in question.site.dropped_by(variant.options) if one not in by_base]
    if dropped and variant.scheduler != question.base.scheduler:
        text = f"This scheduler does not simulate {listed(dropped)} of the site"
        other = f"{SITE}-{variant.scheduler}"
        said.append(f"{text}; {other} does." if _is_supported(question.site, other) else f"{text}.")
    return " ".join(said)


#: The direction of a decided change of a slowdown.
_SIZES = {verdicts.BETTER: "smaller", verdicts.WORSE: "larger"}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _subject(question: Question, variant: Variant) -> str:
    """Return the changes of a variant as the beginning of a sentence."""
    parts = [_amount_in_words(what, change) for what, change in variant.changes.items()]
    if variant.estimates is not None:
        exact = variant.estimates == 1
        parts.append("perfect estimates" if exact else f"estimates of {variant.estimates:g} times the run times")
    parts += [f"{variant.arrivals:g} times the arrival rate"] if variant.arrivals != 1 else []
    parts += [f"{variant.run_times:g} times the run times"] if variant.run_times != 1 else []
    with_them = f"with {listed(parts)}" if parts else ""
    if variant.scheduler == question.base.scheduler:
        return _capital(with_them)
    return f"Under {variant.scheduler}" + (f" {with_them}" if with_them else "")


def _amount_in_words(what: str, change: Change) -> str:
    """
    Return a change of the machine as text.

    Examples
    --------
    >>> from swflow.studies.variants import read_nodes, read_processors, read_resource
    >>> _amount_in_words("nodes", read_nodes("gpu=+2"))
    '2 more nodes in partition gpu'
    >>> _amount_in_words("processors", read_processors("-25%"))
    '25 % fewer processors'
    >>> _amount_in_words("resource", read_resource("gpus=512"))
    '512 gpus'
    """
    amount, name = change.amount, change.resource or what
    where = f" in partition {change.partition}" if change.partition else ""
    if amount.kind == "number":
        return f"{amount.value:,.0f} {name}{where}"
    size = f"{abs(100 * amount.value):g} %" if amount.kind == "share" else f"{abs(amount.value):,.0f}"
    return f"{size} {'more' if amount.value >= 0 else 'fewer'} {name}{where}"


def _percent(row: Row) -> Percent | None:
    return Percent.of(row["base"], row["difference"], row["low"], row["high"])


def _change_in_words(row: Row) -> str:
    """Return the change of the mean wait as the rest of a sentence."""
    unit = unit_of(row["base"], row["value"])
    values = f"{unit.number(row['value'])} instead of {unit.of(row['base'])}"
    found = _percent(row)
    match row["verdict_holm"]:
        case verdicts.BETTER | verdicts.WORSE as decided:
            return f"the mean wait is {f'{found.size} {DIRECTIONS[decided]}: ' if found else ''}{values}."
        case verdicts.NOT_DISTINGUISHABLE:
            change = f", {found.signed}" if found else ""
            after = " after the correction for the number of variants" * (row["verdict"] != row["verdict_holm"])
            return f"the mean wait is {values}{change}: not distinguishable{after}."
        case verdicts.DEPENDENT_WEEKS:
            change = f", {found.signed}" if found else ""
            return f"the mean wait is {values}{change}: cannot tell, because the weeks depend on each other."
        case verdicts.SATURATED:
            change = f", {found.signed}" if found else ""
            return f"the mean wait is {values}{change}: cannot tell, because the queue grows over the whole log."
        case verdicts.EQUAL:
            return f"the mean wait stays the same, {unit.of(row['base'])}."
    change = f" ({found.change})" if found else ""
    weeks = f"a verdict needs {FEWEST_WEEKS} weeks, and the log has {row['weeks']}"
    return f"the mean wait is {values}{change}; {weeks}."


def _rare(question: Question, variant: Variant, row: Row) -> str:
    """Return how many jobs wait at all, and in how many weeks their mean wait changes, if that is worth knowing."""
    found = question.answer.waiting.get(variant.name)
    if found is None or row["verdict_holm"] == verdicts.EQUAL:
        return ""
    if found.base_share >= RARE and row["verdict_holm"] not in (verdicts.NOT_DISTINGUISHABLE, verdicts.DEPENDENT_WEEKS):
        return ""
    rare = "Waits are rare: " * (found.base_share < RARE)
    return (
        f"{rare}{share_of(found.base_share)} of the jobs wait at all now, {share_of(found.share)} then; the mean wait "
        f"is shorter in {found.shorter or 'none'} and longer in {found.longer or 'none'} of {found.weeks} weeks."
    )


def _left_alone(question: Question, variant: Variant) -> str:
    """Return the resources that a change of the processors does not change, and how to change them."""
    change = variant.processors
    if change is None or change.amount.kind == "share":
        return ""
    names = question.site.resources
    clusters = variant.options.get("clusters") or ()
    if change.partition and clusters:
        own = [one for one in clusters if change.partition in partitions_named(one)]
        names = [name for name in names if any(name in (one.get("resources") or {}) for one in own)]
    names = [name for name in names if name not in question.site.dropped_by(variant.options) and name != "licenses"]
    if not names:
        return ""
    example = f"{change.partition}=+2" if change.partition else "+2"
    return f"The {listed(names)} of the machine stay as they are; --nodes {example} adds whole nodes."


def fidelity_in_words(question: Question) -> str:
    """Return how well the base reproduces the record, and which results can therefore be trusted."""
    name, found = question.base.name, question.answer.fidelity
    if question.answer.trust is Trust.RECORD:
        return "The base is the recorded schedule: each change compares a simulation with the record."
    if found is None or question.answer.trust is Trust.UNKNOWN:
        return f"The log records no waits, so it is unknown how well {name} reproduces the site."
    simulated, recorded = found["simulated_mean_wait_time"] or 0.0, found["recorded_mean_wait_time"] or 0.0
    unit = unit_of(simulated, recorded)
    return (
        f"Under {name}, the simulated mean wait is {unit.of(simulated)}; the recorded one is {unit.of(recorded)}. "
        f"{_TRUST[question.answer.trust]} {100 * (found['started_alike'] or 0.0):.0f} % of the jobs start within a "
        "minute of the recorded start, and the Kolmogorov-Smirnov distance between simulated and recorded waits is "
        f"{found['wait_distance'] or 0.0:.2f} (0: identical)."
    )


_TRUST = {
    Trust.MINUTES: "The simulation reproduces this site, so its minutes can be trusted.",
    Trust.PERCENTAGES: "The simulation reproduces this site roughly, so trust percentages more than minutes.",
    Trust.DIRECTIONS: "The simulation does not reproduce this site well, so trust only whether a change is better or "
    "worse.",
}


# -- tables


def tables(question: Question) -> list[Table]:
    """Return the tables of an answer: the base and the record, a variant now and then, or a ranking of variants."""
    if len(question.variants) == 1:
        found = [_of_base(question)]
    elif len(question.variants) == 2:
        found = [_now_and_then(question, question.variants[1])]
    else:
        found = [_ranking(question), _other_measures(question)]
    if question.answer.reasons:
        order = [question.base, *question.ranked]
        found.append(Table(*parts_of_variants({one.name: question.answer.reasons[one.name] for one in order})))
    return [*found, *_groups(question)]


def _now_and_then(question: Question, variant: Variant) -> Table:
    rows = []
    base, then = question.rows(question.base), question.rows(variant)
    for measure, row in then.items():
        unit = unit_of_measure(measure, row["base"], row["value"])
        rows.append([_label(measure, unit), unit.number(row["base"]), unit.number(row["value"]), *_change(row, unit)])
    main, was = then["mean_wait_time"], base["mean_wait_time"]
    rows.append(["utilization", share_of(was["utilization"]), share_of(main["utilization"]), "", "", ""])
    before, after = ({"processors": row["processors"], **_units(row)} for row in (was, main))
    for name in before | after:
        first, second = before.get(name, 0), after.get(name, 0)
        if name == "processors" or first != second:
            change = f"{100 * (second / first - 1):+.0f} %".replace("-", "−") if first and first != second else ""
            rows.append([name, f"{first:,}", f"{second:,}", change, "", ""])
    return Table(variant.name, ["", "now", "then", "change", "95 % interval", "verdict"], rows)


def _units(row: Row) -> dict[str, int]:
    parts = (text.partition("=") for text in row["resources"].split(",") if text)
    return {name: int(units) for name, _, units in parts}


def _label(measure: str, unit: Unit) -> str:
    return f"{LABELS[measure]}, {unit.name}" if unit.name else LABELS[measure]


def _change(row: Row, unit: Unit) -> list[str]:
    """Return the change of a value, its interval and the verdict."""
    if row["verdict_holm"] == BASE:
        return ["", "", "now"]
    found, word = _percent(row), WORDS.get(row["verdict_holm"], row["verdict_holm"])
    return [found.change, found.interval, word] if found else [unit.number(row["difference"]), "", word]


def _ranking(question: Question) -> Table:
    rows = [(variant, question.row(variant)) for variant in [question.base, *question.ranked]]
    unit = unit_of(*(row["value"] for _, row in rows))
    found = [
        [
            variant.name, unit.number(row["value"]), *_change(row, unit), f"{row['processors']:,}",
            share_of(row["utilization"]),
        ]
        for variant, row in rows
    ]  # fmt: skip
    columns = ["", f"mean wait, {unit.name}", "change", "95 % interval", "verdict", "processors", "utilization"]
    return Table("Mean wait, the shortest first", columns, found)


def _other_measures(question: Question) -> Table:
    every = [question.rows(variant) for variant in [question.base, *question.ranked]]
    units = {
        measure: unit_of_measure(measure, *(rows[measure]["value"] for rows in every))
        for measure in LABELS
        if measure != "mean_wait_time"
    }
    found = []
    for rows in every:
        cells = []
        for measure, unit in units.items():
            row, change = rows[measure], _percent(rows[measure])
            is_base = row["verdict_holm"] == BASE
            cells.append(unit.number(row["value"]) + ("" if is_base or not change else f" ({change.change})"))
        found.append([rows["awrt"]["variant"], *cells])
    columns = ["", *(_label(measure, unit) for measure, unit in units.items())]
    return Table("Other measures", columns, found)


def _of_base(question: Question) -> Table:
    rows, recorded = question.rows(question.base), question.recorded
    lines = []
    for measure, row in rows.items():
        unit = unit_of_measure(measure, row["value"], recorded if measure == "mean_wait_time" else None)
        known = unit.number(recorded) if measure == "mean_wait_time" and recorded is not None else ""
        lines.append([_label(measure, unit), known, unit.number(row["value"])])
    lines.append(["utilization", "", share_of(rows["awrt"]["utilization"])])
    lines.append(["processors", "", f"{rows['awrt']['processors']:,}"])
    return Table(question.base.name, ["", "recorded", "simulated"], lines)


def _groups(question: Question) -> list[Table]:
    """Return the mean waits of the largest groups, such as partitions, in the record, now, and under each variant."""
    found = []
    groups = question.answer.groups
    for by in groups["by"].unique(maintain_order=True):
        names = groups.filter((pl.col("by") == by) & (pl.col("variant") == question.base.name))
        most = names.sort("jobs", descending=True, maintain_order=True).head(MOST_GROUPS)
        if most.height < 2 and by == "partition":
            continue
        shown = groups.filter((pl.col("by") == by) & pl.col("name").is_in(most["name"].implode()))
        unit = unit_of(*shown["value"].to_list())
        values = {(row["variant"], row["name"]): row["value"] for row in shown.iter_rows(named=True)}
        variants = {question.base.name: "now" if len(question.variants) > 1 else "simulated"}
        ranked = question.ranked[:MOST_SENTENCES]
        variants |= {one.name: "then" if len(question.variants) == 2 else one.name for one in ranked}
        if (RECORDED, most["name"][0]) in values:
            variants = {RECORDED: "recorded", **variants}
        rows = []
        for name, jobs in most.select("name", "jobs").iter_rows():
            row = [values.get((variant, name)) for variant in variants]
            rows.append([name, f"{jobs:,}", *("" if value is None else unit.number(value) for value in row)])
            if len(question.variants) == 2:
                now, then = values.get((question.base.name, name)), values.get((ranked[0].name, name))
                rows[-1].append(Percent(100 * (then / now - 1)).change if now and then is not None else "")
        columns = [by, "jobs", *variants.values(), *(["change"] if len(question.variants) == 2 else [])]
        more = f", the {MOST_GROUPS} with most jobs of {names.height:,}" * (names.height > MOST_GROUPS)
        found.append(Table(f"Mean wait by {by}, {unit.name}{more}", columns, rows))
    return found


# -- what the answer does not include


def caveats(question: Question) -> list[str]:
    """Return doubts about sizes, guesses, unreliable intervals, and what the simulation does not include."""
    left_out = left_out_in_words(question)
    return [
        *question.site.doubts,
        *guesses_in_words(question),
        *uneven_in_words(question),
        *([f"Not simulated: {'; '.join(left_out)}."] if left_out else []),
    ]


def left_out_in_words(question: Question) -> list[str]:
    """Return the features of the site that the simulation omits, with numbers of jobs."""
    workload, jobs = question.workload, question.workload.jobs
    notes, counted = _notes(workload)
    partitions, schedulers = question.site.partitions, question.schedulers
    pooled = [name for name, options in schedulers.items() if is_pool(options)]
    found = []
    if len(partitions) > 1 and pooled:
        found.append(f"{len(partitions)} partitions are simulated as one pool under {', '.join(pooled)}")
    is_shared = any("partition" in (options.get("limits") or {}) for options in schedulers.values())
    if len(partitions) > 1 and is_shared:
        found.append(
            f"{len(partitions)} partitions share nodes (their peaks add up to more than the machine): they are "
            "simulated as one machine with a limit for each partition"
        )
    planned = {name: options for name, options in schedulers.items() if options.get("order") != LOG}

    def under(without: Sequence[str]) -> str:
        return "" if len(without) == len(schedulers) else f" under {', '.join(without)}"

    by_partition = ", ".join(f"{one.name} {one.gpu_jobs:,}" for one in partitions if one.gpu_jobs)
    for name, title, note in (("gpus", "GPUs", GPUS), ("licenses", "licenses", LICENSES), ("memory", "memory", "")):
        count = int((jobs[name] > 0).sum()) if name in jobs.columns else notes.get(note, 0)
        without = [one for one, options in planned.items() if name not in resources_of(options, workload.machine)]
        if count and without:
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
        found.append(
            f"{len(queues)} queues or QOS ({queues_in_words(queues)}) have no priorities and no limits on running jobs "
            f"under {', '.join(unweighed)}"
        )
    return found


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
        if variant.nodes is not None and not variant.options.get("nodes"):  # which state their size
            jobs, name = question.workload.jobs, variant.nodes.partition
            numbers = [one.number for one in question.site.partitions if name in ("", one.name)]
            node = node_of(jobs.filter(pl.col("partition_id").is_in(numbers)) if name else jobs)
            units = listed([f"{units:,} {what}{' (MB)' * (what == 'memory')}" for what, units in node.items()])
            if node:
                found[name] = f"A node{f' of {name}' * bool(name)} has {units}: the most per node of any job."
    return list(found.values())


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
    log, base, site = shlex.quote(question.log), question.base, question.site
    partitioned = len(site.partitions) > 1
    is_pooled = partitioned and is_pool(base.options)
    doubtful = question.answer.trust in (Trust.PERCENTAGES, Trust.DIRECTIONS)
    dropped = listed(site.dropped_by(base.options))
    if is_pooled or (doubtful and dropped):
        steps.append(f"Simulate the site with {dropped or 'its partitions'}: swflow whatif {log} --scheduler {SITE}")
    elif doubtful and not _weighs_queues(base.options) and site.priorities:
        steps.append(
            f"Test whether priorities of queues or QOS explain the difference to the record: swflow whatif {log} "
            f"--scheduler {base.scheduler} --scheduler {SITE_QOS}, or swflow fidelity {log}"
        )
    elif doubtful:
        steps.append(f"Find a scheduler that is closer to the record: swflow fidelity {log}")
    if len(question.variants) == 1:
        change = f"{site.partitions[0].name}=+20%" if partitioned and not is_pooled else "+20%"
        inherits = base.scheduler == SITE and bool(partitioned or site.resources)
        policies = [f"{SITE}-{one}" if inherits else one for one in ("conservative", "sjf-easy")]
        other = next((one for one in policies if _is_supported(site, one)), "")
        steps.append(
            f"Ask a question: swflow whatif {log} --scheduler {base.scheduler}{f' --scheduler {other}' * bool(other)} "
            f"--processors {change}"
        )
    waits = question.answer.table.filter(pl.col("measure") == "mean_wait_time")
    found = set(waits["verdict_holm"])
    if verdicts.TOO_FEW_WEEKS in found:
        steps.append(f"Take a log of more weeks: intervals need at least {FEWEST_WEEKS}.")
    elif found & {verdicts.NOT_DISTINGUISHABLE, verdicts.DEPENDENT_WEEKS}:
        weeks = int(waits["weeks"].max() or 0)  # type: ignore[arg-type]
        steps.append(f"Take a longer log, or ask for a larger change: {weeks} weeks do not decide every comparison.")
    if not steps:
        steps.append(f"Keep the answer as a page: add -o {Path(question.log).name.partition('.')[0]}-whatif.html")
    return steps[:3]


def _is_supported(site: SiteModel, text: str) -> bool:
    """Return whether a scheduler of the command line exists and can simulate the workload."""
    try:
        supported(site.workload, [Variant(*site.scheduler(text))])
    except SwflowError:
        return False
    return True


# -- schedulers as text


def schedulers_in_words(question: Question) -> list[str]:
    """Return a line per scheduler with its options, such as ``easy: order fcfs, backfill easy``."""
    return [f"{name}: {options_in_words(options)}" for name, options in question.schedulers.items()]


def options_in_words(options: Unchecked) -> str:
    """
    Return a scheduler's options as text; order and backfilling are always named.

    Examples
    --------
    >>> options_in_words({"order": "sjf"})
    'order sjf, backfill none'
    >>> options_in_words({"dispatch": "partition", "clusters": [{"partition": "cpu", "processors": 64}]})
    'order fcfs, backfill none, clusters cpu 64 processors'
    >>> nodes = [{"count": 2, "processors": 4, "partition": ["a", "b"], "resources": {"gpus": 2}, "features": ["ib"]}]
    >>> options_in_words({"backfill": "slurm", "nodes": nodes})
    'order fcfs, backfill slurm, 2 nodes of 4 processors and 2 gpus with ib for a+b'
    >>> options_in_words({"limits": {"partition": {"cpu": {"processors": 64}}, "user": {"jobs": 2}}})
    'order fcfs, backfill none, at most 64 processors in partition cpu, at most 2 jobs of each user'
    """
    if options.get("order") == LOG:
        return "the recorded schedule"
    shown = {"order": "fcfs", "backfill": "none"} | dict(options)
    clusters, nodes = shown.pop("clusters", None) or (), shown.pop("nodes", None) or ()
    if clusters and shown.get("dispatch") == "partition":
        del shown["dispatch"]
    resources = _units_in_words(shown.pop("resources", None))
    limits = _limits_in_words(shown.pop("limits", None))
    parts = [f"{name.replace('_', ' ')} {_value_in_words(value)}" for name, value in shown.items() if value is not None]
    parts += [f"resources {resources}"] if resources else []
    parts += limits
    sizes = [f"{'+'.join(partitions_named(one))} {one['processors']:,}".strip() for one in clusters]
    if sizes:
        parts.append(f"clusters {', '.join(sizes)} processors")
    parts += [
        f"{one['count']:,} nodes of {one['processors']:,} processors"
        f"{' and ' * bool(one.get('resources'))}{_units_in_words(one.get('resources'))}"
        f"{' with ' * bool(one.get('features'))}{'+'.join(one.get('features', ()))}"
        f"{' for ' * bool(partitions_named(one))}{'+'.join(partitions_named(one))}"
        for one in nodes
    ]
    for one in clusters:
        units = _units_in_words(one.get("resources"))
        parts += [f"{'+'.join(partitions_named(one)) or 'a cluster'} has {units}"] if units else []
    return ", ".join(parts)


def _value_in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " and ".join(f"{name} {_value_in_words(part)}" for name, part in value.items())
    return str(value)


def _limits_in_words(limits: Mapping[str, Unchecked] | None) -> list[str]:
    found = []
    for kind, of_kind in (limits or {}).items():
        for name, limit in of_kind.items():
            if isinstance(limit, Mapping):
                found += [f"at most {most:,} {what.replace('_', ' ')} in {kind} {name}" for what, most in limit.items()]
            else:
                found.append(f"at most {limit:,} {name.replace('_', ' ')} of each {kind}")
    return found


def _units_in_words(resources: Mapping[str, int | None] | None) -> str:
    """Return units of resources as text, such as ``64 gpus and 20 nodes``."""
    return " and ".join(f"{units:,} {name}" for name, units in (resources or {}).items() if units is not None)


# -- files


def write_answer(
    question: Question, path: str | os.PathLike[str], *, study: str | None = None, command: str = "", digest: str = ""
) -> None:
    """
    Write an answer: ``.parquet`` or ``.csv`` (a row per variant and measure), ``.json`` (everything), ``.html``.

    A ``.parquet`` can be loaded into a database; the names of the workload and of the study go with it. ``command`` and
    ``digest``, the digest of the log, are for the page.
    """
    table, title = question.answer.table, f"What if: {question.workload.name}"
    match Path(path).suffix:
        case ".parquet":
            about = {"kind": "whatif", "title": title, "workload": question.workload.name, "study": study}
            write_table(table, path, about)
        case ".csv":
            write_text(path, table.write_csv())
        case ".json":
            write_text(path, as_json(question) + "\n")
        case _:
            write_text(path, page(question, title, command, digest))


#: The columns of a row that depend on the measure.
_OF_MEASURE = ("value", "base", "difference", "low", "high", "weeks", "verdict", "verdict_holm")


def as_json(question: Question) -> str:
    """Return an answer as JSON: the sentences, and the values of every variant, times in seconds."""
    answer = question.answer
    variants = []
    for variant in question.variants:
        rows = question.rows(variant)
        main = rows["mean_wait_time"]
        waiting = answer.waiting.get(variant.name)
        groups = answer.groups.filter(pl.col("variant") == variant.name).select("by", "name", "jobs", "value", "base")
        variants.append({
            "variant": variant.name,
            "sentence": None if main["verdict_holm"] == BASE else variant_in_words(question, variant),
            "scheduler": {"name": variant.scheduler, "options": dict(variant.options)},
            "processors": main["processors"], "resources": _units(main), "utilization": main["utilization"],
            "measures": {
                measure: {key: value for key, value in row.items() if key in _OF_MEASURE}
                for measure, row in rows.items()
            },
            "waiting": asdict(waiting) if waiting else None, "reasons": answer.reasons.get(variant.name),
            "groups": groups.to_dicts(),
        })  # fmt: skip
    content = {
        "workload": question.workload.name, "jobs": int(answer.table["jobs"][0]), "base": question.base.name,
        "trust": answer.trust, "fidelity": answer.fidelity, "fidelity_in_words": fidelity_in_words(question),
        "variants": variants, "skipped": [{"variant": name, "reason": reason} for name, reason in answer.skipped],
        "caveats": [*caveats(question), *question.doubts], "next": next_steps(question),
    }  # fmt: skip
    return json.dumps(content, indent=1, default=str)


def page(question: Question, title: str, command: str = "", digest: str = "") -> str:
    """Return a self-contained HTML page without scripts: answer, tables, figure, definitions."""
    import jinja2

    from swflow import __version__

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    found = tables(question)
    unit, bars = _bars(question)
    if len(question.variants) > 2:
        found += [_now_and_then(question, variant) for variant in question.ranked]
    return template.render(
        title=title,
        jobs=question.answer.table["jobs"][0],
        sentences=sentences(question),
        fidelity=fidelity_in_words(question),
        caveats=[*caveats(question), *question.doubts],
        steps=next_steps(question),
        schedulers=[(name, options_in_words(options)) for name, options in question.schedulers.items()],
        bars=bars,
        unit=unit.name,
        tables=found,
        wide=("jobs", "processors", "utilization"),
        definitions=DEFINITIONS,
        command=command,
        version=__version__,
        digest=digest,
    )


class Bar(NamedTuple):
    """A bar of the figure; ``width``, ``low`` and ``span`` of the interval are in percent of the longest."""

    name: str
    kind: str
    text: str
    width: str
    low: str | None
    span: str | None


def _bars(question: Question) -> tuple[Unit, list[Bar]]:
    values: list[tuple[str, str, float, float | None, float | None]] = []
    if question.recorded is not None:
        values.append(("recorded", "recorded", question.recorded, None, None))
    for variant in (question.base, *question.ranked):
        row = question.row(variant)
        low, high = (None if end is None else row["base"] + end for end in (row["low"], row["high"]))
        values.append((row["variant"], "simulated", row["value"], low, high))
    most = max(one for *_, value, _, high in values for one in (value, high) if one is not None)
    unit, bars = unit_of(*(value for _, _, value, _, _ in values)), []
    for name, kind, value, low, high in values:
        width = f"{100 * value / most if most > 0 else 0:.2f}"
        interval: tuple[str | None, str | None] = None, None
        if low is not None and high is not None and most > 0:
            interval = f"{100 * max(low, 0) / most:.2f}", f"{100 * (high - max(low, 0)) / most:.2f}"
        bars.append(Bar(name, kind, unit.number(value), width, *interval))
    return unit, bars
