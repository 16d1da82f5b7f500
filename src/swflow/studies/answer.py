"""The answer to a what-if as text: fidelity of the base, changes by each variant, and next steps."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from swflow.analysis import verdicts
from swflow.analysis.intervals import FEWEST_WEEKS
from swflow.files.atomic import atomic_path
from swflow.jobs.table import Workload, write_table
from swflow.log.importers.records import GPUS, LICENCES, RESERVATIONS
from swflow.log.queues import queues_in_words, queues_of
from swflow.log.site import GUESSED, SITE, Partition, share_nodes
from swflow.scheduling.named import KNOWN
from swflow.scheduling.scheduler import LOG
from swflow.studies.whatif import BASE, SITE_QOS, Answer, Variant, partitions_named, site_priorities
from swflow.workload.clean import guess_of

#: The names of each measure: in a sentence, and above a column.
TITLES: dict[str, tuple[str, str]] = {
    "mean_wait_time": ("mean wait", "mean wait, minutes"),
    "p95_wait_time": ("95th-percentile wait", "95th-percentile wait, minutes"),
    "mean_bounded_slowdown": ("mean bounded slowdown", "mean bounded slowdown"),
    "awrt": ("area-weighted response time (AWRT)", "AWRT, minutes"),
}

#: The base reproduces the record if its mean wait and the distribution of its waits differ by at most these values.
FAITHFUL_RATIO, FAITHFUL_DISTANCE = 0.05, 0.05

#: Beyond these values, percentages cannot be trusted either.
FAIR_RATIO, FAIR_DISTANCE = 0.25, 0.2

DEFINITIONS: dict[str, str] = {
    "base": "The scheduler with which every variant is compared: the first one, on the recorded machine and jobs.",
    "mean wait": "The mean time from submission to start, over all jobs.",
    "95th-percentile wait": "95 % of the jobs wait no longer than this.",
    "mean bounded slowdown": "The mean of (wait + run time) / run time, at least 1; shorter run times count as 10 s.",
    "AWRT": "The mean time from submission to end, each job weighted by its processors times its run time.",
    "interval": "The 95 % confidence interval of the difference to the base, over the log's weeks.",
    "not distinguishable": "The interval contains 0: the log is too short to tell whether the variant is better or "
    "worse.",
    "utilization": "The share of the machine's processors that jobs use, from the first submission to the last end.",
}


@dataclass(frozen=True)
class Question:
    """
    A what-if and the context that explains its answer.

    The first of ``variants`` is the base. ``log`` is the log's name on the command line, for suggested commands, and
    ``doubts`` are warnings about it. ``guessed_resources`` are resources besides processors whose units are the peak
    use, of one of several partitions by ``PARTITION:NAME``.
    """

    workload: Workload
    variants: Sequence[Variant]
    answer: Answer
    partitions: Sequence[Partition] = ()
    log: str = "LOG"
    doubts: Sequence[str] = field(default_factory=tuple)
    guessed_resources: Mapping[str, int] = field(default_factory=dict)

    @property
    def base(self) -> Variant:
        """The variant with which the others are compared."""
        return self.variants[0]

    @property
    def schedulers(self) -> dict[str, Mapping[str, Any]]:
        """The options of each scheduler, by its name."""
        return {variant.scheduler: variant.options for variant in self.variants}

    def rows(self, variant: str) -> dict[str, dict[str, Any]]:
        """Return measure to row for one variant."""
        table = self.answer.table.filter(pl.col("variant") == variant)
        return {row["measure"]: row for row in table.iter_rows(named=True)}


def schedulers_in_words(question: Question) -> list[str]:
    """Return a line per scheduler with its options, such as ``easy: order fcfs, backfill easy``."""
    return [f"{name}: {options_in_words(options)}" for name, options in question.schedulers.items()]


def options_in_words(options: Mapping[str, Any]) -> str:
    """
    Return a scheduler's options as text; order and backfilling are always named.

    Examples
    --------
    >>> options_in_words({"order": "sjf"})
    'order sjf, backfill none'
    >>> options_in_words({"dispatch": "partition", "clusters": [{"partition": "cpu", "processors": 64}]})
    'order fcfs, backfill none, clusters cpu 64 processors'
    """
    if options.get("order") == LOG:
        return "the recorded schedule"
    shown = {"order": "fcfs", "backfill": "none"} | dict(options)
    clusters = shown.pop("clusters", None) or ()
    if clusters and shown.get("dispatch") == "partition":
        del shown["dispatch"]
    resources = _units_in_words(shown.pop("resources", None))
    parts = [f"{name.replace('_', ' ')} {value}" for name, value in shown.items() if value is not None]
    parts += [f"resources {resources}"] if resources else []
    sizes = [f"{'+'.join(partitions_named(one))} {one['processors']:,}".strip() for one in clusters]
    if sizes:
        parts.append(f"clusters {', '.join(sizes)} processors")
    for one in clusters:
        units = _units_in_words(one.get("resources"))
        parts += [f"{'+'.join(partitions_named(one)) or 'a cluster'} has {units}"] if units else []
    return ", ".join(parts)


def _units_in_words(resources: Mapping[str, Any] | None) -> str:
    """Return units of resources as text, such as ``64 gpus and 20 licences``."""
    return " and ".join(f"{units:,} {name}" for name, units in (resources or {}).items() if units is not None)


def fidelity_in_words(question: Question) -> str:
    """Return how well the base reproduces the record, and which results can therefore be trusted."""
    name, found = question.base.name, question.answer.fidelity
    if question.base.options.get("order") == LOG:
        return "The base is the recorded schedule: each difference compares a simulation with the record."
    if found is None or not found["jobs"]:
        return "The log records no waits, so it is unknown how well the base reproduces the site."
    simulated, recorded = found["simulated_mean_wait_time"] or 0.0, found["recorded_mean_wait_time"] or 0.0
    distance, alike = found["wait_distance"] or 0.0, found["started_alike"] or 0.0
    waits = f"a mean of {simulated / 60:,.1f} minutes against {recorded / 60:,.1f}"
    if recorded > 0:
        waits = f"{100 * simulated / recorded:.0f} % of the recorded wait ({waits})"
        off = abs(simulated / recorded - 1)
    else:
        off = 0.0 if simulated == 0 else float("inf")
    if off <= FAITHFUL_RATIO and distance <= FAITHFUL_DISTANCE:
        trust = "it reproduces the record, so its minutes can be trusted"
    elif off <= FAIR_RATIO and distance <= FAIR_DISTANCE:
        trust = "trust percentages more than minutes"
    else:
        trust = "trust directions, not minutes"
    return (
        f"The base {name} waits {waits}: {trust}. {100 * alike:.0f} % of its jobs start within a minute of the record; "
        f"the distributions of the waits differ by {distance:.2f} (0 to 1)."
    )


def variant_in_words(question: Question, name: str) -> str:
    """Return the change in the mean wait by a variant, and the other measures with a different verdict."""
    rows = question.rows(name)
    main = rows["mean_wait_time"]
    text = _change(name, question.base.name, main)
    for verb, decided in (("lowers", verdicts.BETTER), ("raises", verdicts.WORSE)):
        others = [
            f"the {TITLES[row['measure']][0]} by {_percent(row)}"
            for measure, row in rows.items()
            if measure != "mean_wait_time" and row["verdict"] == decided != main["verdict"]
        ]
        if others:
            text += f" It {verb} {' and '.join(others)}."
    variant = next(one for one in question.variants if one.name == name)
    if len(question.partitions) > 1 and _is_pool(variant.options) and not _is_pool(question.base.options):
        text += f" It also pools the {len(question.partitions)} partitions"
        text += f"; {SITE}-{variant.scheduler} keeps them." if _keeps_partitions(question, variant.scheduler) else "."
    return text


def _keeps_partitions(question: Question, policy: str) -> bool:
    """Return whether a policy can be simulated in the site's partitions; limits exclude conservative backfilling."""
    workload = question.workload
    stated = None if guess_of(workload) else workload.machine.processors
    is_limited = share_nodes(question.partitions, stated)
    return policy in KNOWN and not (is_limited and KNOWN[policy].get("backfill") == "conservative")


def _is_pool(options: Mapping[str, Any]) -> bool:
    """Return whether a scheduler simulates all partitions as one machine without limits for them."""
    limited = "partition" in (options.get("limits") or {})
    return options.get("order") != LOG and options.get("dispatch") != "partition" and not limited


def _weighs_queues(options: Mapping[str, Any]) -> bool:
    """Return whether a scheduler gives priorities to queues or QOS, or replays the record."""
    return "qos" in (options.get("priority") or {}) or options.get("order") == LOG


def _change(name: str, base: str, row: Mapping[str, Any]) -> str:
    """Return a sentence on the mean wait of a variant."""
    values = f"from {row['base'] / 60:,.1f} to {row['value'] / 60:,.1f} minutes"
    match row["verdict"]:
        case verdicts.BETTER:
            return f"{name} shortens the mean wait by {_percent(row)}, {values}."
        case verdicts.WORSE:
            return f"{name} lengthens the mean wait by {_percent(row)}, {values}."
        case verdicts.NOT_DISTINGUISHABLE:
            return f"{name} is not distinguishable from {base} in the mean wait: {_percent(row, signed=True)}."
        case verdicts.EQUAL:
            return f"{name} has the same mean wait as {base}."
    return (
        f"{name}: too few weeks to tell ({row['weeks']} of {FEWEST_WEEKS}); in this log the mean wait changes "
        f"by {_percent(row, signed=True)}, {values}."
    )


def _percent(row: Mapping[str, Any], *, signed: bool = False) -> str:
    """
    Return a difference in percent of the base with its interval; unsigned if the verb states the direction.

    Examples
    --------
    >>> _percent({"base": 200.0, "difference": -20.0, "low": -30.0, "high": -10.0, "measure": "awrt"})
    '10 % (95 % interval 5 to 15 %)'
    >>> _percent({"base": 20.0, "difference": -7.0, "low": -20.0, "high": 10.4, "measure": "awrt"}, signed=True)
    '−35 % (95 % interval −100 to +52 %)'
    """
    if not row["base"]:
        unit = 1.0 if row["measure"] == "mean_bounded_slowdown" else 60.0
        return f"{row['difference'] / unit:+,.1f}" + (" minutes" if unit > 1 else "")
    known = (row[name] for name in ("difference", "low", "high") if row[name] is not None)
    values = [100 * value / row["base"] for value in known]
    mark = "+" if signed else ""
    if not signed:
        values = [abs(values[0]), *sorted(map(abs, values[1:]))]
    digits = 1 if max(map(abs, values)) < 9.95 else 0
    text = f"{values[0]:{mark},.{digits}f} %"
    if len(values) == 3:
        text += f" (95 % interval {values[1]:{mark},.{digits}f} to {values[2]:{mark},.{digits}f} %)"
    return text.replace("-", "−")


def left_out_in_words(question: Question) -> list[str]:
    """Return the features of the site that the simulation omits, with numbers of jobs."""
    workload, jobs = question.workload, question.workload.jobs
    notes: dict[str, int] = {}
    counted = jobs.height  # the jobs of the log whose notes these are
    for entry in workload.history:
        if entry.get("stage") == "model":  # its jobs are not those of the log
            notes, counted = {}, jobs.height
        counted = entry["kept"] if entry.get("stage") == "import" else counted
        notes |= entry.get("notes") or {}
    schedulers = question.schedulers
    pooled = [name for name, options in schedulers.items() if _is_pool(options)]
    found = []
    if len(question.partitions) > 1 and pooled:
        found.append(f"{len(question.partitions)} partitions are simulated as one pool under {', '.join(pooled)}")
    is_shared = any("partition" in (options.get("limits") or {}) for options in schedulers.values())
    if len(question.partitions) > 1 and is_shared:
        found.append(
            f"{len(question.partitions)} partitions share nodes (their peaks add up to more than the machine): they "
            "are simulated as one machine with a limit for each partition"
        )
    by_partition = ", ".join(f"{one.name} {one.gpu_jobs:,}" for one in question.partitions if one.gpu_jobs)
    for name, title, note in (("gpus", "GPUs", GPUS), ("licences", "licences", LICENCES)):
        count = int((jobs[name] > 0).sum()) if name in jobs.columns else notes.get(note, 0)
        without = [
            scheduler
            for scheduler, options in schedulers.items()
            if options.get("order") != LOG and name not in _resources_of(options, workload)
        ]
        if count and without:
            where = f" (partition {by_partition})" * (name == "gpus" and bool(by_partition))
            under = "" if len(without) == len(schedulers) else f" under {', '.join(without)}"
            found.append(f"{count:,} jobs requested {title}{where}, which are not scheduled{under}")
    if notes.get(RESERVATIONS):
        part = " of the whole log" * (counted > jobs.height)
        found.append(f"{notes[RESERVATIONS]:,} jobs{part} ran in advance reservations, which are not simulated")
    queues = queues_of(jobs, workload.header)
    unweighed = [name for name, options in schedulers.items() if not _weighs_queues(options)]
    if len(queues) > 1 and unweighed:
        found.append(
            f"{len(queues)} queues or QOS ({queues_in_words(queues)}) have no priorities and no limits on running jobs "
            f"under {', '.join(unweighed)}"
        )
    if question.answer.left_out:
        found.append(
            f"{question.answer.left_out:,} jobs do not fit into the smallest machine or cluster and are excluded from "
            "all variants"
        )
    return found


def _resources_of(options: Mapping[str, Any], workload: Workload) -> set[str]:
    """Return the names of the resources that a scheduler considers."""
    stated = [one.get("resources") or {} for one in options.get("clusters") or ()]
    if not stated:
        stated = [{**workload.machine.resources, **(options.get("resources") or {})}]
    return {name for one in stated for name, units in one.items() if units is not None}


def guesses_in_words(question: Question) -> list[str]:
    """Return the guessed sizes, and the options that state them."""
    simulated = {
        (name, cluster["processors"])
        for options in question.schedulers.values()
        for cluster in options.get("clusters") or ()
        for name in partitions_named(cluster)
    }
    guessed = [one for one in question.partitions if one.is_guessed and (one.name, one.processors) in simulated]
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
    if question.guessed_resources:
        considered = set().union(*(_resources_of(one, question.workload) for one in question.schedulers.values()))
        units = {name: count for name, count in question.guessed_resources.items() if name.split(":")[-1] in considered}
        shown = ", ".join(f"{name.replace(':', ' ')} {count:,}" for name, count in units.items())
        if units:
            found.append(
                f"Resources ({GUESSED}, which may be too few): {shown}. State them with --machine-resource "
                f"{next(iter(units))}=N."
            )
    return found


def uneven_in_words(question: Question) -> list[str]:
    """Return the measures whose intervals are unreliable, because few weeks contain most of the difference."""
    found: dict[str, list[str]] = {}
    for variant, measure in question.answer.uneven:
        found.setdefault(variant, []).append(TITLES[measure][0])
    return [
        f"Few weeks contain most of the difference of {variant} ({', '.join(measures)}): their intervals are too "
        "narrow; in a test on KTH-SP2, 84 to 90 % of them contained the true value instead of 95 %."
        for variant, measures in found.items()
    ]


def next_steps(question: Question) -> list[str]:
    """Return at most three suggested next steps, the most useful first."""
    steps = []
    log, found, base = shlex.quote(question.log), question.answer.fidelity, question.base
    partitioned = len(question.partitions) > 1
    is_pool = partitioned and _is_pool(base.options)
    off = 0.0
    if found is not None and found["jobs"] and found["recorded_mean_wait_time"]:
        off = abs((found["simulated_mean_wait_time"] or 0.0) / found["recorded_mean_wait_time"] - 1)
        off = max(off, 0.0 if (found["wait_distance"] or 0.0) <= FAIR_DISTANCE else 1.0)
    if is_pool:
        steps.append(f"Simulate each partition as a cluster: swflow whatif {log} --scheduler {SITE}")
    elif off > FAITHFUL_RATIO and not _weighs_queues(base.options) and site_priorities(question.workload):
        steps.append(
            f"Test whether priorities of queues or QOS explain it: swflow whatif {log} --scheduler {base.scheduler} "
            f"--scheduler {SITE_QOS}, or swflow fidelity {log}"
        )
    elif off > FAITHFUL_RATIO:
        steps.append(f"Find a scheduler that is closer to the record: swflow fidelity {log}")
    if len(question.variants) == 1:
        change = f"{question.partitions[0].name}=+20%" if partitioned and not is_pool else "+20%"
        other = "conservative" if _keeps_partitions(question, "conservative") else "sjf-easy"
        other = f"{SITE}-{other}" if base.scheduler == SITE and partitioned else "conservative"
        steps.append(
            f"Ask a question: swflow whatif {log} --scheduler {base.scheduler} --scheduler {other} "
            f"--processors {change}"
        )
    results = set(question.answer.table["verdict"])
    if verdicts.TOO_FEW_WEEKS in results:
        steps.append(f"Take a log of more weeks: intervals need at least {FEWEST_WEEKS}.")
    elif verdicts.NOT_DISTINGUISHABLE in results:
        weeks = int(question.answer.table["weeks"].max() or 0)  # type: ignore[arg-type]
        steps.append(f"Take a longer log: {weeks} weeks do not decide every comparison.")
    if not steps:
        steps.append(f"Keep the answer as a page: add -o {Path(question.log).name.partition('.')[0]}-whatif.html")
    return steps[:3]


def summary(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row per variant: each measure with its difference to the base and the interval."""
    columns = ["variant", "processors", "utilization", *(title for _, title in TITLES.values())]
    table = []
    for part in answer.table.partition_by("variant", maintain_order=True):
        rows = {row["measure"]: row for row in part.iter_rows(named=True)}
        first = rows["mean_wait_time"]
        cells = [_cell(rows[measure]) for measure in TITLES]
        table.append([first["variant"], f"{first['processors']:,}", f"{first['utilization']:.3f}", *cells])
    return columns, table


def _cell(row: Mapping[str, Any]) -> str:
    """Return a value with its difference and interval: ``12.3  −4.5 [−6.0, −3.0]``."""
    value, difference, interval = _figures(row)
    return f"{value}  {difference} {interval}".rstrip() if row["verdict"] != BASE else value


def _figures(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return a value, its difference to the base and the interval as text, times in minutes."""
    unit = 1.0 if row["measure"] == "mean_bounded_slowdown" else 60.0
    low, high = row["low"], row["high"]
    interval = "" if low is None else f"[{low / unit:+,.1f}, {high / unit:+,.1f}]"
    difference = f"{row['difference'] / unit:+,.1f}"
    return f"{row['value'] / unit:,.1f}", difference.replace("-", "−"), interval.replace("-", "−")


def sentences(question: Question) -> list[str]:
    """Return the answer in sentences: the fidelity of the base, then one paragraph per variant."""
    others = [variant.name for variant in question.variants[1:]]
    return [fidelity_in_words(question), *(variant_in_words(question, name) for name in others)]


def caveats(question: Question) -> list[str]:
    """Return the guessed sizes and what the simulation simplifies."""
    left_out = left_out_in_words(question)
    return [
        *guesses_in_words(question),
        *uneven_in_words(question),
        *([f"The simulation simplifies: {'; '.join(left_out)}."] if left_out else []),
    ]


def write_answer(
    question: Question, path: str | os.PathLike[str], *, study: str | None = None, command: str = "", digest: str = ""
) -> None:
    """
    Write an answer: ``.parquet`` or ``.csv`` (all figures), or ``.html`` (a page).

    A ``.parquet`` can be loaded into a database; the names of the workload and of the study go with it. ``command`` and
    ``digest``, the digest of the log, are for the page.
    """
    path, table = Path(path), question.answer.table
    title = f"What if: {question.workload.name}"
    if path.suffix == ".parquet":
        about = {"kind": "whatif", "title": title, "workload": question.workload.name, "study": study}
        write_table(table, path, about)
    elif path.suffix == ".csv":
        with atomic_path(path) as temporary:
            table.write_csv(temporary)
    else:
        with atomic_path(path) as temporary:
            temporary.write_text(page(question, title, command, digest), encoding="utf-8")


def page(question: Question, title: str, command: str = "", digest: str = "") -> str:
    """Return a self-contained HTML page without scripts: answer, figure, tables, definitions."""
    import jinja2

    from swflow import __version__

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    return template.render(
        title=title,
        jobs=question.answer.table["jobs"][0],
        sentences=sentences(question),
        caveats=[*caveats(question), *question.doubts],
        steps=next_steps(question),
        schedulers=[line.partition(": ")[::2] for line in schedulers_in_words(question)],
        bars=list(_bars(question)),
        tables=list(_tables(question)),
        definitions=DEFINITIONS,
        command=command,
        version=__version__,
        digest=digest,
    )


def _bars(question: Question) -> Iterator[dict[str, Any]]:
    """Yield the bars of the figure: mean waits in percent of the longest, with their intervals."""
    rows = [question.rows(variant.name)["mean_wait_time"] for variant in question.variants]
    found = question.answer.fidelity
    bars = [
        {"name": row["variant"], "value": row["value"]}
        | {end: None if row[end] is None else row["base"] + row[end] for end in ("low", "high")}
        for row in rows
    ]
    if found is not None and found["jobs"]:
        recorded = found["recorded_mean_wait_time"]
        bars.insert(0, {"name": "recorded", "value": recorded, "low": None, "high": None})
    most = max((value for bar in bars for value in (bar["value"], bar["high"]) if value is not None), default=0.0)
    for number, bar in enumerate(bars):
        low, high = bar["low"], bar["high"]
        yield {
            "name": bar["name"],
            "text": f"{bar['value'] / 60:,.1f}",
            "width": f"{100 * bar['value'] / most if most > 0 else 0:.2f}",
            "low": None if low is None or most <= 0 else f"{100 * max(low, 0) / most:.2f}",
            "span": None if low is None or most <= 0 else f"{100 * (high - max(low, 0)) / most:.2f}",
            "kind": "recorded" if bar["name"] == "recorded" and number == 0 else "simulated",
        }


def _tables(question: Question) -> Iterator[dict[str, Any]]:
    """Yield a table per measure: variant, value, change in percent with its interval, verdict."""
    for measure, (_, title) in TITLES.items():
        rows = []
        for variant in question.variants:
            row = question.rows(variant.name)[measure]
            value, _, _ = _figures(row)
            change = "" if row["verdict"] == BASE else _percent(row, signed=True)
            percent, _, interval = change.partition(" (95 % interval ")
            rows.append(
                {"name": row["variant"], "value": value, "change": percent, "interval": interval.removesuffix(")"),
                 "verdict": _WORDS.get(row["verdict"], row["verdict"]), "processors": f"{row['processors']:,}",
                 "utilization": f"{100 * row['utilization']:.1f} %"}
            )  # fmt: skip
        yield {"title": title, "rows": rows}


#: The verdicts as text for readers; `swflow.analysis.verdicts` words them for a pair of runs.
_WORDS = {verdicts.BETTER: "better", verdicts.WORSE: "worse"}
