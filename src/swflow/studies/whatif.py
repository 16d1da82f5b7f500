"""What-if: simulate a log under other schedulers, machines, estimates, arrivals and run times; compare with a base."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, cast

import polars as pl

from swflow.analysis.fidelity import Part, Trust, fidelity, parts_of, trust_of
from swflow.analysis.intervals import difference_of
from swflow.analysis.multiple_testing import corrected, holm
from swflow.analysis.resampling import Resampled, by_weeks, statistic
from swflow.analysis.verdicts import without_saturated_winner
from swflow.errors import SwflowError, UnsupportedError
from swflow.jobs.earlier import as_recorded_until_begin, since_begin
from swflow.jobs.eligibility import require_supported
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload, sort_jobs
from swflow.scheduling.fitting_jobs import fitting
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.names import require_some
from swflow.scheduling.orders.ownership import Names
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.studies.group_waits import GROUP_COLUMNS, RECORDED, Waits, compared, groups_of, waits_of
from swflow.studies.hardware import hardware_of, resources_of
from swflow.studies.kept_runs import kept_run
from swflow.studies.runs import WHOLE, Middle, Run, run
from swflow.studies.variants import Variant
from swflow.studies.why import why
from swflow.values import WEEK
from swflow.workload.clean import with_known_predecessors
from swflow.workload.steps.intensify import changes

#: The compared statistics, by their names in table ``metrics``. For all of them, smaller is better.
MEASURES = ("mean_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt")

#: The verdict of the base compared with itself. `swflow.analysis.verdicts` defines the other verdicts.
BASE = "base"


class Row(TypedDict):
    """
    A row of `Answer.table`.

    ``resources`` are the machine's units besides processors, such as ``gpus=24``; ``trust`` is one of
    `swflow.analysis.fidelity.Trust`. ``verdict`` is that of this variant alone; ``verdict_holm`` is
    corrected for the variants of the answer, by Holm's method for each measure.
    """

    variant: str
    scheduler: str
    processors: int
    resources: str
    estimates: str
    arrivals: float
    run_times: float
    measure: str
    jobs: int
    value: float
    base: float
    difference: float
    low: float | None
    high: float | None
    weeks: int
    freedom: float | None
    p: float | None
    verdict: str
    verdict_holm: str
    utilization: float | None
    trust: str


_TYPES = {str: pl.String, int: pl.Int64, float: pl.Float64, float | None: pl.Float64}

#: The columns of `Answer.table`.
COLUMNS: dict[str, type[pl.DataType]] = {name: _TYPES[kind] for name, kind in Row.__annotations__.items()}


@dataclass(frozen=True)
class Waiting:
    """
    Which jobs wait at all, for more than a second, and in which weeks their mean wait changes by more than that.

    ``share`` and ``base_share`` are shares of the jobs, 0 to 1. ``shorter`` and ``longer`` count ``weeks`` in which the
    variant has a shorter or longer mean wait than the base.
    """

    share: float
    base_share: float
    weeks: int
    shorter: int
    longer: int


@dataclass(frozen=True)
class Answer:
    """
    The statistics of every variant.

    ``table`` has one row per variant and measure with the columns of `COLUMNS`, times in seconds. ``fidelity`` is the
    similarity of the base to the recorded schedule, if there is one. ``left_out`` is the number of jobs that need more
    processors or other resources than the smallest machine or cluster; they are excluded from all variants. ``uneven``
    are variants and measures of means whose difference lies mostly in few weeks. ``groups`` has the mean waits of parts
    of the jobs, ``waiting`` the jobs that wait at all, by variant, and ``skipped`` the variants that cannot be
    simulated, with the reason. ``reasons`` has the mean of each part of the wait by variant, if it was asked for.
    ``parts`` has the recorded and simulated mean waits of partitions and QOS under the base, and ``recorded`` the
    metrics of the recorded schedule, if it is not the base. ``earlier`` jobs were submitted before the record begins;
    they start as recorded until then, and are not measured.
    """

    table: pl.DataFrame
    fidelity: dict[str, float | None] | None
    left_out: int
    uneven: tuple[tuple[str, str], ...] = ()
    groups: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=GROUP_COLUMNS))
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    skipped: tuple[tuple[str, str], ...] = ()
    trust: Trust = Trust.UNKNOWN
    reasons: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    parts: Sequence[Part] = ()
    recorded: Mapping[str, float | None] = field(default_factory=dict)
    earlier: int = 0


def applied(workload: Workload, variant: Variant) -> Workload:
    """Return the workload with a variant's changes; job ids stay the same, so that jobs can be compared."""
    jobs = workload.jobs
    if variant.arrivals != 1:
        jobs = jobs.with_columns(**changes(jobs, variant.arrivals, "arrivals"))
    if variant.run_times != 1:
        jobs = jobs.with_columns(**changes(jobs, variant.run_times, "run-times"))
    if variant.estimates is not None:
        estimate = pl.col("run_time") * variant.estimates
        jobs = jobs.with_columns(estimate=estimate, requested_time=estimate)
    return replace(workload, jobs=sort_jobs(jobs), machine=hardware_of(variant, workload)[1])


def supported(workload: Workload, variants: Sequence[Variant]) -> tuple[list[Variant], tuple[tuple[str, str], ...]]:
    """
    Return the variants whose schedulers can simulate the workload, and the others with the reason.

    Raise `SwflowError` if an option is invalid, or if the base, or every other variant, cannot be simulated.
    """
    kept: list[Variant] = []
    skipped: list[tuple[str, str]] = []
    for variant in variants:
        try:
            scheduler = Scheduler.of(variant.scheduler, variant.options)
            if scheduler.order != LOG:
                require_supported(workload.jobs, scheduler.unsupported, workload.name)
        except UnsupportedError as error:
            if not kept:
                raise
            skipped.append((variant.name, str(error).removeprefix(f"schedulers: {variant.scheduler}: ")))
        else:
            kept.append(variant)
    if len(kept) == 1 and skipped:
        raise SwflowError(f"whatif: {skipped[0][0]}: {skipped[0][1]}")
    return kept, tuple(skipped)


def ask(
    workload: Workload,
    chosen: Sequence[Variant],
    *,
    by: Sequence[str] = (),
    reasons: bool = False,
    progress: Callable[[Sequence[Any]], Any] = lambda items: items,
) -> Answer:
    """
    Simulate every variant and compare it with the base, which is the first one.

    ``by`` names groups of `swflow.studies.group_waits.GROUPS` whose mean waits are compared, too. With ``reasons``,
    waits are divided by `swflow.analysis.reasons.wait_reasons`. ``progress`` wraps the sequence of variants to show
    progress. A variant whose scheduler does not support the workload is skipped.
    """
    chosen, skipped = supported(workload, chosen)
    workload = replace(workload, jobs=as_recorded_until_begin(workload.jobs))
    settings = [hardware_of(variant, workload) for variant in chosen]
    names = Names(workload)
    for options, _ in settings:
        require_some(names, options)
    whole, workload = workload, _fitting_all(workload, settings)
    measured = _Measured.of(workload)
    grouped = groups_of(workload, by)
    base: _Result | None = None
    record = _Record()
    rows: list[Row] = []
    uneven: list[tuple[str, str]] = []
    groups: list[pl.DataFrame] = []
    waiting: dict[str, Waiting] = {}
    divided: dict[str, Mapping[str, float | None]] = {}
    for variant, (options, machine) in progress(list(zip(chosen, settings, strict=True))):
        changed = applied(workload, variant)
        scheduler = Scheduler.of(variant.scheduler, options)
        simulated = kept_run if base is None else run
        result = simulated(changed, scheduler, measured.middle)
        if reasons:
            parts_of_waits = why(changed, scheduler, variant.name, outcomes=result.outcomes)
            divided[variant.name] = parts_of_waits.total_of(measured.jobs["job_id"])
        found = _Result.of(variant, result, measured, grouped)
        if base is None:
            base = found
            schedule = _recorded(changed, variant, measured.middle)
            record = _Record.of(whole, variant, changed, result, schedule)
            if schedule is not None:
                groups.append(compared(RECORDED, waits_of(measured.part_of(schedule.outcomes), grouped), base.groups))
        groups.append(compared(variant.name, found.groups, base.groups))
        waiting[variant.name] = _waiting(found.weekly, base.weekly)
        fixed = {
            "resources": ",".join(f"{name}={count}" for name, count in resources_of(options, machine).items()),
            "processors": machine.processors, "trust": record.trust,
        }  # fmt: skip
        for measure in MEASURES:
            row, is_uneven = _row(variant, measure, result, found, base)
            rows.append(cast(Row, row | fixed))
            uneven += [(variant.name, measure)] if is_uneven else []
    _correct(rows)
    table = pl.DataFrame(rows, COLUMNS, orient="row")
    return Answer(
        table, record.likeness, whole.jobs.height - workload.jobs.height, tuple(uneven), pl.concat(groups), waiting,
        skipped, record.trust, divided, record.parts, record.metrics, measured.earlier,
    )  # fmt: skip


def _fitting_all(workload: Workload, settings: Sequence[tuple[Unchecked, Machine]]) -> Workload:
    """Return the workload with the jobs that fit the options and the machine of every variant."""
    fits = [tuple(fitting(workload, *setting)) for setting in settings]
    jobs = workload.jobs.filter(pl.all_horizontal(*itertools.chain(*fits)))
    if jobs.is_empty():
        smallest = min(machine.processors for _, machine in settings)
        resources = " or needs more of another resource" * any(len(rules) > 1 for rules in fits)
        raise SwflowError(f"whatif: {workload.name}: every job is wider than {smallest:,} processors{resources}")
    return replace(workload, jobs=with_known_predecessors(jobs)[0])


def _row(variant: Variant, measure: str, result: Run, found: "_Result", base: "_Result") -> tuple[dict[str, Any], bool]:
    """Return a row of a variant without what its machine is, and whether few weeks have most of the difference."""
    difference = difference_of(found.statistics[measure], base.statistics[measure])
    low, high = difference.interval
    row = {
        "variant": variant.name, "scheduler": variant.scheduler, "estimates": variant.estimates_in_words,
        "arrivals": variant.arrivals, "run_times": variant.run_times, "measure": measure,
        "jobs": found.weekly.height, "value": found.statistics[measure].value,
        "base": base.statistics[measure].value, "difference": difference.value, "low": low, "high": high,
        "weeks": difference.blocks, "freedom": None if low is None else difference.freedom,
        "p": None if found is base else difference.p,
        "verdict": BASE if found is base else without_saturated_winner(
            difference.verdict(), result.metrics.get("saturated"), base.saturated
        ), "verdict_holm": BASE, "utilization": result.metrics["utilization"],
    }  # fmt: skip
    # Draws of percentiles jump between values, so that their skewness shows nothing.
    return row, difference.is_uneven and not measure.startswith("p95_")


def _correct(rows: Sequence[Row]) -> None:
    """Fill in the verdicts that are corrected for the number of variants, measure by measure."""
    for measure in MEASURES:
        family = [row for row in rows if row["measure"] == measure and row["verdict"] != BASE]
        for row, p in zip(family, holm([row["p"] for row in family]), strict=True):
            row["verdict_holm"] = corrected(row["verdict"], p)


@dataclass(frozen=True)
class _Measured:
    """The jobs that statistics describe, with their submissions: all but the ``earlier`` ones."""

    jobs: pl.DataFrame
    earlier: int

    @classmethod
    def of(cls, workload: Workload) -> "_Measured":
        """Return the jobs that were submitted since the record of a log begins, with which the first week begins."""
        jobs = since_begin(workload.jobs)
        earlier = workload.jobs.height - jobs.height
        submitted = pl.col("submit_time") - (pl.col("submit_time").min() if earlier else 0.0)
        return cls(jobs.select("job_id", submitted), earlier)

    @property
    def middle(self) -> Middle:
        """The same for metrics."""
        return Middle(f"{self.earlier} jobs") if self.earlier else WHOLE

    def part_of(self, outcomes: pl.DataFrame) -> pl.DataFrame:
        """Return the outcomes of these jobs."""
        return outcomes.filter(pl.col("job_id").is_in(self.jobs["job_id"].implode())) if self.earlier else outcomes


@dataclass(frozen=True)
class _Result:
    """The statistics of a variant's run, and of the waits of each group of jobs."""

    weekly: pl.DataFrame
    statistics: dict[str, Resampled]
    groups: Mapping[tuple[str, str], Waits]
    saturated: float | None

    @classmethod
    def of(cls, variant: Variant, result: Run, measured: _Measured, grouped: pl.DataFrame) -> "_Result":
        """Compute the statistics; each job belongs to the week of its submission in the log."""
        if result.outcomes.is_empty():
            raise SwflowError(f"whatif: {variant.name}: the run has no job; expected a log that records wait times")
        outcomes = measured.part_of(result.outcomes).drop("submit_time")
        weekly = outcomes.join(measured.jobs, on="job_id", how="left", maintain_order="left")
        weeks = by_weeks(weekly)
        statistics = {measure: statistic(weeks, measure) for measure in MEASURES}
        return cls(weekly, statistics, waits_of(weekly, grouped), result.metrics.get("saturated"))


@dataclass(frozen=True)
class _Record:
    """The recorded schedule, if there is one, and how alike the base is; see `Answer`."""

    likeness: dict[str, float | None] | None = None
    parts: Sequence[Part] = ()
    trust: Trust = Trust.UNKNOWN
    metrics: Mapping[str, float | None] = field(default_factory=dict)

    @classmethod
    def of(cls, whole: Workload, base: Variant, changed: Workload, result: Run, schedule: Run | None) -> "_Record":
        likeness, parts = _likeness(whole, base, changed, result.outcomes, schedule)
        trust = Trust.RECORD if base.options.get("order") == LOG else trust_of(likeness, parts)
        return cls(likeness, parts, trust, {} if schedule is None else schedule.metrics)


def _recorded(workload: Workload, base: Variant, middle: Middle) -> Run | None:
    """Return the recorded schedule of a log, or None if there is none, or if it is the base."""
    waits = workload.jobs["wait_time"] if "wait_time" in workload.jobs.columns else None
    if waits is None or waits.null_count() == len(waits) or base.options.get("order") == LOG:
        return None
    return run(workload, Scheduler.of(LOG, {"order": LOG}), middle)


def _likeness(
    whole: Workload, base: Variant, changed: Workload, simulated: pl.DataFrame, schedule: Run | None
) -> tuple[dict[str, float | None] | None, list[Part]]:
    """
    Return the similarity of the base to the recorded schedule, and the mean waits of partitions and QOS in both.

    It is that of all jobs, if the base can run them: without the jobs that do not fit into a variant, the machine would
    have a lighter load than the recorded one.
    """
    if schedule is None:
        return None, []
    recorded = schedule.outcomes
    if changed.jobs.height < whole.jobs.height:
        options, machine = hardware_of(base, whole)
        jobs = whole.jobs.filter(pl.all_horizontal(*fitting(whole, options, machine)))
        changed = applied(replace(whole, jobs=with_known_predecessors(jobs)[0]), base)
        simulated = kept_run(changed, Scheduler.of(base.scheduler, options)).outcomes
        recorded = run(changed, Scheduler.of(LOG, {"order": LOG})).outcomes
    measured = _Measured.of(changed)
    recorded, simulated = measured.part_of(recorded), measured.part_of(simulated)
    parts = parts_of(changed.jobs, changed.header.names, recorded, simulated)
    return fidelity(recorded, simulated, changed.machine.processors), parts


def _waiting(found: pl.DataFrame, base: pl.DataFrame) -> Waiting:
    """Return which jobs wait at all under a variant and the base, and the weeks in which the mean wait differs."""
    week = (pl.col("submit_time") // WEEK).alias("week")
    weekly = (
        found.group_by(week)
        .agg(now=pl.col("wait_time").mean())
        .join(base.group_by(week).agg(before=pl.col("wait_time").mean()), on="week", how="inner")
    )
    change = weekly["now"] - weekly["before"]
    share, base_share = (float((table["wait_time"] > 1).mean()) for table in (found, base))  # type: ignore[arg-type]
    return Waiting(share, base_share, weekly.height, int((change < -1).sum()), int((change > 1).sum()))
