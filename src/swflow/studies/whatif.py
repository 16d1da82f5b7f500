"""What-if: simulate a log under other schedulers, machines, estimates, arrivals and run times; compare with a base."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from swflow.analysis.fidelity import fidelity
from swflow.analysis.intervals import difference_of
from swflow.analysis.resampling import Resampled, by_weeks, statistic
from swflow.errors import SwflowError, suggest
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, sort_jobs
from swflow.log.queues import priorities_of, queues_of
from swflow.log.site import (
    RESOURCES,
    SITE,
    SIZES,
    Partition,
    partitions_of,
    pool_of,
    share_nodes,
    site_options,
    with_resources,
)
from swflow.scheduling.named import KNOWN, read_scheduler
from swflow.scheduling.orders.fair_share import Names
from swflow.scheduling.orders.vocabulary import MULTIFACTOR
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.studies.runs import Run, run
from swflow.workload.clean import guess_of, is_as_recorded, with_known_predecessors
from swflow.workload.steps.intensify import changes

#: The compared statistics, by their names in table ``metrics``. For all of them, smaller is better.
MEASURES = ("mean_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt")

#: The verdict of the base compared with itself. `swflow.analysis.verdicts` defines the other verdicts.
BASE = "base"

#: The columns of `Answer.table`.
COLUMNS: dict[str, Any] = {
    "variant": pl.String, "scheduler": pl.String, "processors": pl.Int64, "estimates": pl.String,
    "arrivals": pl.Float64, "run_times": pl.Float64, "measure": pl.String, "jobs": pl.Int64, "value": pl.Float64,
    "base": pl.Float64, "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "weeks": pl.Int64,
    "verdict": pl.String, "utilization": pl.Float64,
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """
    One combination of scheduler, machine size, estimates, arrival rate and run times.

    ``processors`` is ``+20%``, ``-10%``, a number, one of these for one partition (``cpu=+20%``), or empty for the
    recorded size. ``estimates`` is ``perfect`` (the run times), a factor of the run times, or empty for the users'
    estimates. ``resources`` changes a resource besides processors: ``gpus=+20%``, ``gpus=512``, for one partition
    ``gpu:gpus=+20%``. ``arrivals`` and ``run_times`` are factors; the latter also multiplies estimates.
    """

    scheduler: str
    options: Mapping[str, Any]
    processors: str = ""
    estimates: str = ""
    arrivals: float = 1.0
    run_times: float = 1.0
    resources: str = ""

    @property
    def name(self) -> str:
        """The scheduler and the changes relative to the record, as text."""
        changes = {"processors": self.processors, "resource": self.resources, "estimates": self.estimates}
        parts = [self.scheduler, *(f"{what} {text}" for what, text in changes.items() if text)]
        parts += [f"arrivals × {self.arrivals:g}"] if self.arrivals != 1 else []
        parts += [f"run times × {self.run_times:g}"] if self.run_times != 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Answer:
    """
    The statistics of every variant.

    ``table`` has one row per variant and measure with the columns of `COLUMNS`, times in seconds. ``fidelity`` is the
    similarity of the base to the recorded schedule, if there is one. ``left_out`` is the number of jobs that need more
    processors or other resources than the smallest machine or cluster; they are excluded from all variants. ``uneven``
    are variants and measures of means whose difference lies mostly in few weeks.
    """

    table: pl.DataFrame
    fidelity: dict[str, float | None] | None
    left_out: int
    uneven: tuple[tuple[str, str], ...] = ()


def site_of(
    workload: Workload, sizes: Mapping[str, int] | None = None, resources: Mapping[str, int] | None = None
) -> tuple[list[Partition], dict[str, Any], dict[str, int]]:
    """
    Return the partitions of a workload's site, the options of the scheduler that represents it, and guessed resources.

    ``sizes`` maps a partition to its processors; default: the size that the log states, or else the peak use.
    ``resources`` are the units of resources besides processors, as in `swflow.log.site.with_resources`; default: those
    of the workload's machine if partitions share it, or else the peak use. The guessed ones are the peak use, of one of
    several partitions by ``PARTITION:NAME``.
    """
    header, jobs = dict(workload.header), workload.jobs
    if not is_as_recorded(workload):  # the sizes and the waits do not belong to these jobs
        header.pop(SIZES, None)
        jobs = jobs.drop("wait_time", strict=False)
    stated = None if guess_of(workload) else workload.machine.processors
    partitions = partitions_of(jobs, header, sizes)
    if len(partitions) < 2 or share_nodes(partitions, stated):
        own = {name: units for name, units in workload.machine.resources.items() if name in RESOURCES}
        pool, names = pool_of(jobs, own | dict(resources or {}))
        return partitions, site_options(partitions, stated, pool), {name: pool[name] for name in names}
    partitions = with_resources(partitions, resources)
    guessed = {f"{one.name}:{name}": one.resources[name] for one in partitions for name in one.guessed_resources}
    return partitions, site_options(partitions, stated), guessed


#: Name of the scheduler that serves queues or QOS in the order of their recorded waits.
SITE_QOS = f"{SITE}-qos"


def site_priorities(workload: Workload) -> dict[str, Any] | None:
    """Return the priorities of queues or QOS that the recorded waits suggest, or None."""
    return priorities_of(queues_of(workload.jobs, workload.header)) if is_as_recorded(workload) else None


def named_scheduler(
    text: str, site: Mapping[str, Any], priorities: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """
    Return the name and the options of a scheduler; ``site-sjf``, for example, is ``sjf`` in the site's partitions.

    ``site-qos`` is the site's scheduler with ``priorities`` of queues or QOS; within a queue it is FCFS. Other texts
    are as for `swflow.scheduling.named.read_scheduler`.

    Examples
    --------
    >>> named_scheduler("site-conservative", {"order": "fcfs", "backfill": "easy", "dispatch": "partition"})
    ('site-conservative', {'dispatch': 'partition', 'backfill': 'conservative'})
    """
    if text == SITE:
        return SITE, dict(site)
    if text == SITE_QOS:
        if priorities is None:
            raise SwflowError(
                f"--scheduler {SITE_QOS}: the recorded waits show no priorities of queues or QOS; expected a log with "
                "several; state them: 'name: {order: slurm-multifactor, backfill: easy, priority: {qos: 1, …}}'"
            )
        return SITE_QOS, {**site, "order": MULTIFACTOR, "priority": dict(priorities)}
    policy = text.removeprefix(f"{SITE}-")
    if policy != text and policy in KNOWN:
        partitions = {option: value for option, value in site.items() if option not in ("order", "backfill")}
        return text, partitions | KNOWN[policy]
    return read_scheduler(text)


def variants(
    schedulers: Mapping[str, Mapping[str, Any]],
    processors: Sequence[str] = (),
    estimates: Sequence[str] = (),
    arrivals: Sequence[float] = (),
    run_times: Sequence[float] = (),
    resources: Sequence[str] = (),
) -> list[Variant]:
    """
    Return every combination; the first is the base: the first scheduler with everything else as recorded.

    Examples
    --------
    >>> [variant.name for variant in variants({"easy": {}, "sjf": {}}, processors=["+20%"])]
    ['easy', 'easy, processors +20%', 'sjf', 'sjf, processors +20%']
    """
    for text in estimates:
        _estimate_factor(text)
    for text in resources:
        if not re.fullmatch(r"(?:[^=]+:)?\w+=(?:\d{1,15}|[+-]\d+(?:\.\d+)?\s*%)", text.strip()):
            raise SwflowError(f"--resource: {text!r}; expected NAME=UNITS, or a share such as gpus=+20%")
    for option, factors in (("--arrivals", arrivals), ("--run-times", run_times)):
        for factor in factors:
            if not 0.01 <= factor <= 100:
                raise SwflowError(f"{option}: {factor:g}; expected a factor from 0.01 to 100")
    if not schedulers:
        raise SwflowError("whatif: no scheduler; give --scheduler easy")

    def choices(values: Sequence[Any], unchanged: Any) -> list[Any]:
        return list(dict.fromkeys([unchanged, *values]))

    return [
        Variant(name, schedulers[name], *rest)
        for name, *rest in itertools.product(
            schedulers,
            choices(processors, ""),
            choices(estimates, ""),
            choices(arrivals, 1.0),
            choices(run_times, 1.0),
            choices(resources, ""),
        )
    ]


def machine_of(machine: Machine, text: str) -> Machine:
    """
    Return a machine of another size: changed by a share, in whole nodes, or set to a number of processors.

    Examples
    --------
    >>> machine_of(Machine(100, 25), "+20%").processors, machine_of(Machine(100, 25), "-50%").nodes
    (120, 12)
    """
    if not text:
        return machine
    if not text.strip().endswith("%"):
        return machine.with_processors(_resized(machine.processors, text))
    nodes = _resized(machine.nodes, text)
    return Machine(nodes * machine.processors_per_node, nodes, machine.capacities, machine.resources)


#: A relative change of a size.
_SHARE = re.compile(r"([+-]\d+(?:\.\d+)?)\s*%")


def _resized(size: int, text: str) -> int:
    """Return a size changed by a share such as ``+20%``, or replaced by a number."""
    share = _SHARE.fullmatch(text.strip())
    if share:
        changed = round(size * (1 + float(share[1]) / 100))
        if changed < 1:
            raise SwflowError(f"--processors {text}: no processors left of {size:,}")
        return changed
    if not re.fullmatch(r"\d{1,9}", text.strip()) or int(text) < 1:
        raise SwflowError(f"--processors: {text!r}; expected a number, or a share such as +20% or cpu=+20%")
    return int(text)


def sized(variant: Variant, machine: Machine) -> tuple[dict[str, Any], Machine]:
    """
    Return the options of a variant's scheduler and its machine, with the sizes of the variant.

    ``cpu=+20%`` changes the cluster of one partition, ``+20%`` every cluster; the machine is the sum of its clusters.
    If partitions share one machine, ``cpu=+20%`` changes the limit of the partition and the machine by equal amounts.

    Examples
    --------
    >>> clusters = [{"partition": "cpu", "processors": 10}, {"partition": "gpu", "processors": 5}]
    >>> sized(Variant("site", {"clusters": clusters}, "cpu=+20%"), Machine.of(15))[1].processors
    17
    """
    options = _with_resource(variant, machine)
    name, _, text = variant.processors.strip().rpartition("=")
    is_share = text.endswith("%")
    if options.get("clusters"):
        clusters = [dict(cluster) for cluster in options["clusters"]]
        chosen = [cluster for cluster in clusters if not name or name in partitions_named(cluster)]
        if not chosen:
            raise _no_partition(variant, name, [one for cluster in clusters for one in partitions_named(cluster)])
        if text and not is_share and len(chosen) > 1:
            raise SwflowError(
                f"--processors {text}: {variant.scheduler} has {len(chosen)} clusters; expected PARTITION={text}, "
                "or a share such as +20%"
            )
        for cluster in chosen if text else ():
            cluster["processors"] = _resized(cluster["processors"], text)
        total = sum(cluster["processors"] for cluster in clusters)
        return options | {"clusters": clusters}, machine if total == machine.processors else Machine.of(total)
    limits = dict((options.get("limits") or {}).get("partition") or {})
    own = [one for one, limit in limits.items() if isinstance(limit, Mapping) and "processors" in limit]
    if name and name not in own:
        raise _no_partition(variant, name, own)
    grown = 0
    for one in [name] if name else own if is_share else ():
        before = limits[one]["processors"]
        limits[one] = {**limits[one], "processors": _resized(before, text)}
        grown += limits[one]["processors"] - before
    if limits:
        options["limits"] = {**options["limits"], "partition": limits}
    return options, machine.with_processors(machine.processors + grown) if name else machine_of(machine, text)


def _with_resource(variant: Variant, machine: Machine) -> dict[str, Any]:
    """Return the options of a variant's scheduler with the changed resource of the machine or of its clusters."""
    options = dict(variant.options)
    if not variant.resources:
        return options
    named, _, text = variant.resources.strip().partition("=")
    partition, _, name = named.rpartition(":")
    share = _SHARE.fullmatch(text.strip())

    def resized(units: int) -> int:
        return max(0, round(units * (1 + float(share[1]) / 100))) if share else int(text)

    clusters = [dict(cluster) for cluster in options.get("clusters") or ()]
    if clusters:
        chosen = [
            cluster
            for cluster in clusters
            if name in (cluster.get("resources") or {}) and (not partition or partition in partitions_named(cluster))
        ]
        if len(chosen) > 1 and not share:
            raise SwflowError(
                f"--resource {variant.resources}: {len(chosen)} clusters of {variant.scheduler} have {name}; expected "
                f"PARTITION:{name}={text}, or a share such as {name}=+20%"
            )
        for cluster in chosen:
            cluster["resources"] = {**cluster["resources"], name: resized(cluster["resources"][name])}
        if chosen:
            return options | {"clusters": clusters}
    else:
        known = {**machine.resources, **(options.get("resources") or {})}
        if not partition and (not share or known.get(name) is not None):
            return options | {"resources": {**known, name: resized(known.get(name) or 0)}}
    raise SwflowError(
        f"--resource {variant.resources}: {variant.scheduler} does not schedule {named}; use --scheduler {SITE}, or "
        f"state the units: --resource {name}=N"
    )


def partitions_named(cluster: Mapping[str, Any]) -> list[str]:
    """Return the names of the partitions that a cluster of a scheduler serves."""
    names = cluster.get("partition")
    return [str(one) for one in (names if isinstance(names, list | tuple) else [names]) if one is not None]


def _no_partition(variant: Variant, name: str, known: Sequence[str]) -> SwflowError:
    problem = f"no partition {name!r}{suggest(name, known)}"
    if not known:
        problem = f"no partitions; use --scheduler {SITE}, or a share such as +20%"
    return SwflowError(f"--processors {variant.processors}: {variant.scheduler} has {problem}")


def _finds_resources(workload: Workload, options: Mapping[str, Any], machine: Machine) -> Iterator[pl.Expr]:
    """Yield for each resource which jobs demand no more of it than the machine, or their cluster, has."""
    clusters = options.get("clusters") or ()
    stated = [cluster.get("resources") or {} for cluster in clusters]
    if not clusters:
        stated = [{**machine.resources, **(options.get("resources") or {})}]
    for name in dict.fromkeys(name for one in stated for name in one):
        counts = [one.get(name, 0) for one in stated]
        if name not in workload.jobs.columns or counts == [None]:
            continue
        most: Any = max(counts)
        if clusters and options.get("dispatch") == "partition" and "partition_id" in workload.jobs.columns:
            served = zip(clusters, counts, strict=True)
            units = {partition: count for cluster, count in served for partition in partitions_named(cluster)}
            most = _of_partition(workload, units, 0)
        yield pl.col(name).fill_null(0) <= most


def _of_partition(workload: Workload, sizes: Mapping[str, int], default: int) -> pl.Expr:
    """Return for each job the size that belongs to its partition, or the default."""
    names = Names(workload)
    numbers = {names.number_of("partition", name, "--scheduler"): size for name, size in sizes.items()}
    return pl.col("partition_id").replace_strict(numbers, default=default, return_dtype=pl.Int64)


def _fits_in(workload: Workload, options: Mapping[str, Any], machine: Machine) -> pl.Expr:
    """Return which jobs are no wider than the machine, or the cluster of their partition, or its limit."""
    room: dict[str, int] = {}
    for cluster in options.get("clusters") or ():
        room |= dict.fromkeys(partitions_named(cluster), cluster["processors"])
    for name, limit in ((options.get("limits") or {}).get("partition") or {}).items():
        if isinstance(limit, Mapping) and "processors" in limit:
            room[str(name)] = limit["processors"]
    if not room or "partition_id" not in workload.jobs.columns:
        return pl.col("processors") <= machine.processors
    return pl.col("processors") <= _of_partition(workload, room, machine.processors)


def _estimate_factor(text: str) -> float | None:
    """Return an estimate as a factor of the run time; None for the users' estimates."""
    if not text:
        return None
    if text == "perfect":
        return 1.0
    try:
        factor = float(text)
    except ValueError:
        factor = float("nan")
    if not 1 <= factor <= 1000:
        raise SwflowError(f"--estimates: {text!r}; expected perfect, or a factor of the run times from 1 to 1000")
    return factor


def applied(workload: Workload, variant: Variant) -> Workload:
    """Return the workload with a variant's changes; job ids stay the same, so that jobs can be compared."""
    jobs = workload.jobs
    if variant.arrivals != 1:
        jobs = jobs.with_columns(**changes(jobs, variant.arrivals, "arrivals"))
    if variant.run_times != 1:
        jobs = jobs.with_columns(**changes(jobs, variant.run_times, "run-times"))
    factor = _estimate_factor(variant.estimates)
    if factor is not None:
        jobs = jobs.with_columns(estimate=pl.col("run_time") * factor, requested_time=pl.col("run_time") * factor)
    return replace(workload, jobs=sort_jobs(jobs), machine=sized(variant, workload.machine)[1])


def ask(
    workload: Workload, chosen: Sequence[Variant], *, progress: Callable[[Sequence[Any]], Any] = lambda items: items
) -> Answer:
    """
    Simulate every variant and compare it with the base, which is the first one.

    ``progress`` wraps the sequence of variants to show progress.
    """
    settings = [sized(variant, workload.machine) for variant in chosen]
    schedulers = [
        Scheduler.of(variant.scheduler, options) for variant, (options, _) in zip(chosen, settings, strict=True)
    ]
    fits = [(_fits_in(workload, *setting), *_finds_resources(workload, *setting)) for setting in settings]
    fitting = workload.jobs.filter(pl.all_horizontal(*itertools.chain(*fits)))
    left_out = workload.jobs.height - fitting.height
    if fitting.is_empty():
        smallest = min(machine.processors for _, machine in settings)
        resources = " or needs more of another resource" * any(len(rules) > 1 for rules in fits)
        raise SwflowError(f"whatif: {workload.name}: every job is wider than {smallest:,} processors{resources}")
    workload = replace(workload, jobs=with_known_predecessors(fitting)[0])
    base: dict[str, Resampled] = {}
    rows: list[dict[str, Any]] = []
    uneven: list[tuple[str, str]] = []
    likeness = None
    for variant, scheduler in progress(list(zip(chosen, schedulers, strict=True))):
        changed = applied(workload, variant)
        result = run(changed, scheduler)
        found = _statistics(workload, variant, result)
        if not base:
            base = found
            likeness = _likeness(changed, result, variant)
        for measure in MEASURES:
            difference = difference_of(found[measure], base[measure])
            low, high = difference.interval
            # Draws of percentiles jump between values, so that their skewness shows nothing.
            if difference.is_uneven and not measure.startswith("p95_"):
                uneven.append((variant.name, measure))
            rows.append({
                "variant": variant.name, "scheduler": variant.scheduler, "processors": changed.machine.processors,
                "estimates": variant.estimates or "users'", "arrivals": variant.arrivals,
                "run_times": variant.run_times, "measure": measure, "jobs": result.outcomes.height,
                "value": found[measure].value, "base": base[measure].value, "difference": difference.value,
                "low": low, "high": high, "weeks": difference.blocks,
                "verdict": BASE if found is base else difference.verdict(),
                "utilization": result.metrics["utilization"],
            })  # fmt: skip
    return Answer(pl.DataFrame(rows, COLUMNS, orient="row"), likeness, left_out, tuple(uneven))


def _likeness(workload: Workload, base: Run, variant: Variant) -> dict[str, float | None] | None:
    """Return the similarity of the base to the recorded schedule, or None if there is no recorded schedule."""
    waits = workload.jobs["wait_time"] if "wait_time" in workload.jobs.columns else None
    if waits is None or waits.null_count() == len(waits) or variant.options.get("order") == LOG:
        return None
    recorded = run(workload, Scheduler.of(LOG, {"order": LOG}))
    return fidelity(recorded.outcomes, base.outcomes, workload.machine.processors)


def _statistics(workload: Workload, variant: Variant, result: Run) -> dict[str, Resampled]:
    """Return the statistics of a variant; each job belongs to the week of its submission in the log."""
    outcomes = result.outcomes
    if outcomes.is_empty():
        raise SwflowError(f"whatif: {variant.name}: the run has no job; expected a log that records wait times")
    recorded = workload.jobs.select("job_id", "submit_time")
    outcomes = outcomes.drop("submit_time").join(recorded, on="job_id", how="left", maintain_order="left")
    weeks = by_weeks(outcomes)
    return {measure: statistic(weeks, measure) for measure in MEASURES}
