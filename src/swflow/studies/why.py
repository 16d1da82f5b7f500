"""Why jobs wait: the reasons of a schedule by groups of jobs, in tables and sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from swflow.analysis.classes import with_size_class
from swflow.analysis.reasons import Reasons, wait_reasons
from swflow.analysis.wait_parts import PARTS, REASONS, in_words
from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload
from swflow.phrases import Unit, listed, share_of, unit_of
from swflow.scheduling.scheduler import LOG, Scheduler
from swflow.scheduling.simulate import simulate

#: The groups by which waits can be compared, and their columns; sizes are classes of processors.
GROUPS: dict[str, str] = {
    "user": "user_id", "account": "group_id", "partition": "partition_id", "qos": "queue_id", "size": "",
}  # fmt: skip

#: Groups with a row each; of users and accounts, those with most waiting time.
MOST_GROUPS = 10

#: A class of sizes has a sentence if it has this share of the jobs.
MANY = 0.01


@dataclass(frozen=True)
class Why:
    """
    Why the jobs of a workload wait under a scheduler.

    ``processors`` are those of each job of the ``reasons``.
    """

    workload: Workload
    scheduler: str
    reasons: Reasons
    processors: pl.Series
    recorded: bool = False

    @property
    def table(self) -> pl.DataFrame:
        """The reasons of each job, with its processors."""
        return self.reasons.table.with_columns(processors=self.processors)

    @property
    def unknown(self) -> Mapping[str, str]:
        """The reasons that cannot be computed, each with the cause."""
        return self.reasons.unknown

    @property
    def run(self) -> str:
        """The name of the run in a database."""
        return f"{self.workload.name}/{self.scheduler}"

    @property
    def row(self) -> list[object]:
        """The row of the scheduler in a printed table, over all jobs."""
        return rows_of(_means(self.table).with_columns(name=pl.lit(self.scheduler)), self.unknown)[0]

    @property
    def total(self) -> dict[str, float]:
        """The mean wait and the mean of each reason over all jobs, seconds."""
        return _means(self.table).row(0, named=True) if self.table.height else {}

    def total_of(self, jobs: pl.Series) -> dict[str, float]:
        """Return the mean wait and the mean of each reason over some jobs, given by their ids, seconds."""
        return _means(self.table.filter(pl.col("job_id").is_in(jobs.implode()))).row(0, named=True)

    def by(self, kind: str) -> pl.DataFrame:
        """
        Return the mean wait and the mean of each reason (s) of the groups of a kind of `GROUPS`.

        Columns: ``name``, ``jobs``, ``wait`` and `swflow.analysis.wait_parts.REASONS`. Sizes are in their order, other
        groups by their total wait, the largest first. Jobs of unknown groups are left out.
        """
        if kind not in GROUPS:
            raise SwflowError(f"--by: unknown group {kind!r}{suggest(kind, GROUPS)}")
        if kind == "size":
            table = with_size_class(self.table).rename({"class": "name"})
            return _means(table, "name", "rank").sort("rank").drop("rank")
        column, jobs = GROUPS[kind], self.workload.jobs
        if column not in jobs.columns or jobs[column].null_count() == jobs.height:
            raise SwflowError(f"--by {kind}: {self.workload.name} does not record the {kind} of jobs; leave it out")
        names = self.workload.header.names_of(column)
        name = pl.col(column).replace_strict(names, default=pl.col(column).cast(pl.String), return_dtype=pl.String)
        table = self.table.join(jobs.select("job_id", name=name), on="job_id", how="inner", maintain_order="left")
        found = _means(table.drop_nulls("name"), "name")
        return found.sort(pl.col("wait") * pl.col("jobs"), "name", descending=[True, False])

    def sentences(self) -> list[str]:
        """Return what the reasons say: of all jobs, of the sizes that wait longest, and what is unknown."""
        where = "in the recorded schedule" if self.recorded else f"under {self.scheduler}"
        total = self.total
        if not total or not total["wait"]:
            return [f"On {self.workload.name}, no job waits {where}."]
        unit = unit_of(total["wait"])
        said = [f"On {self.workload.name}, jobs wait {unit.of(total['wait'])} on average {where}: {in_words(total)}."]
        sizes = self.by("size").filter(pl.col("jobs") >= MANY * self.table.height)
        if sizes.height > 1:
            longest = sizes.sort("wait", descending=True, maintain_order=True).row(0, named=True)
            unit = unit_of(longest["wait"])
            said.append(
                f"Jobs of {_processors(longest['name'])} wait longest, {unit.of(longest['wait'])}: {in_words(longest)}."
            )
        if total["limit"]:
            said.append("More processors would not have started jobs that were at a limit.")
        if self.unknown:
            causes = [f"{name} ({cause})" for name, cause in self.unknown.items()]
            said.append(f"Unknown, and therefore in other parts, mostly in order: {listed(causes)}.")
        return said


def _processors(name: str) -> str:
    return f"{name} processor{'s' * (name != '1')}"


def _means(table: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Return the number of jobs, the mean wait and the mean reasons, of groups or of all jobs."""
    wait = pl.sum_horizontal(pl.col(part).fill_null(0.0) for part in PARTS)
    means = [pl.len().alias("jobs"), wait.mean().alias("wait"), *(pl.col(name).mean() for name in REASONS)]
    return table.group_by(*keys).agg(means) if keys else table.select(means)


def why(
    workload: Workload,
    scheduler: Scheduler,
    name: str,
    *,
    outcomes: pl.DataFrame | None = None,
    conditions: Scheduler | None = None,
) -> Why:
    """
    Divide the waits of a workload under a scheduler, or in outcomes of a run of it.

    ``conditions`` are those of a recorded schedule, if they are known: a scheduler with the clusters, resources,
    limits and windows of the site.
    """
    recorded = scheduler.order == LOG
    if outcomes is None:
        numbered = not recorded and scheduler.is_numbered
        outcomes = simulate(workload, replace(scheduler, places=True) if numbered else scheduler)
    obeyed = conditions if recorded and conditions is not None else scheduler
    found = wait_reasons(workload, outcomes, obeyed, simulated=not recorded)
    return Why(workload, name, found, outcomes["processors"], recorded)


def as_table(found: Sequence[Why]) -> pl.DataFrame:
    """Return the rows of table ``wait_reasons`` of a database."""
    return pl.concat([one.table.select(pl.lit(one.run).alias("run"), "job_id", *REASONS) for one in found])


def rows_of(means: pl.DataFrame, unknown: Mapping[str, str]) -> list[list[object]]:
    """Return the rows of a printed table: the name, jobs, the mean wait in its unit, and the share of each reason."""
    rows = []
    for row in means.iter_rows(named=True):
        wait = row["wait"]
        shares = ["?" if name in unknown else share_of(row[name] / wait) if wait else "" for name in REASONS]
        rows.append([row["name"], row["jobs"], unit_of(wait).of(wait), *shares])
    return rows


def parts_of_variants(
    means: Mapping[str, Mapping[str, float | None]],
) -> tuple[str, list[str], list[list[str]]]:
    """
    Return the title, the columns and the rows of a table of the mean wait and its parts, one row per variant.

    Parts that are 0 under all variants are left out; a value that is unknown is shown as a question mark.
    """
    unit = unit_of(*(of["wait"] for of in means.values()))
    names = [name for name in REASONS if any(of[name] is None or of[name] for of in means.values())]
    rows = [
        [variant, unit.number(of["wait"] or 0.0), *(_number(unit, of[name]) for name in names)]
        for variant, of in means.items()
    ]
    return f"Mean wait by reason, {unit.name}", ["", "wait", *names], rows


def _number(unit: Unit, value: float | None) -> str:
    return "?" if value is None else unit.number(value)


def limits_in_words(means: Mapping[str, float | None]) -> str:
    """
    Return how much of the mean wait limits make, and what that means for more nodes; empty if it is 0 or unknown.

    Examples
    --------
    >>> limits_in_words({"wait": 600.0, "limit": 240.0})
    'Limits make 40 % of the mean wait now: more processors or nodes cannot shorten this part.'
    """
    limit, wait = means["limit"], means["wait"]
    if not limit or not wait:
        return ""
    return (
        f"Limits make {share_of(limit / wait)} of the mean wait now: more processors or nodes cannot shorten this part."
    )
