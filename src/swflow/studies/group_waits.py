"""Which groups of jobs, such as partitions or users, wait longer or shorter under a variant."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from swflow.analysis.intervals import difference_of
from swflow.analysis.multiple_testing import corrected, holm
from swflow.analysis.resampling import Resampled, mean_of
from swflow.errors import SwflowError, suggest
from swflow.jobs.table import Workload

#: The columns of `swflow.studies.whatif.Answer.groups`: the mean wait of the jobs of one partition, user, …, under the
#: variant and the base, and the 95 % interval of the difference, seconds. The verdict is corrected for the number of
#: groups of a kind.
GROUP_COLUMNS: dict[str, type[pl.DataType]] = {
    "variant": pl.String, "by": pl.String, "name": pl.String, "jobs": pl.Int64, "value": pl.Float64,
    "base": pl.Float64, "low": pl.Float64, "high": pl.Float64, "verdict": pl.String,
}  # fmt: skip

#: What jobs can be grouped by, and the column of the job table; a class is the size and the length of a job.
GROUPS: dict[str, str] = {
    "partition": "partition_id", "user": "user_id", "group": "group_id", "qos": "queue_id", "class": "",
}  # fmt: skip

#: A job is narrow up to this number of processors and short up to this run time, seconds (Srinivasan, Kettimuthu,
#: Subramani & Sadayappan, "Characterization of backfilling strategies for parallel job scheduling", ICPP 2002).
NARROW, SHORT = 8, 3600.0

#: The name of the recorded schedule in a table of groups.
RECORDED = "recorded"


class Waits(NamedTuple):
    """The number of jobs of a group, and their mean wait, also without each week."""

    jobs: int
    mean: Resampled


def groups_of(workload: Workload, by: Sequence[str]) -> pl.DataFrame:
    """
    Return the groups of each job: ``job_id``, ``by`` and ``name``, by the size of the groups.

    Raises
    ------
    SwflowError
        If a kind is not one of `GROUPS`.
    """
    jobs = workload.jobs
    parts = [pl.DataFrame(schema={"job_id": pl.Int64, "by": pl.String, "name": pl.String})]
    for kind in dict.fromkeys(by):
        if kind not in GROUPS:
            raise SwflowError(f"--by: unknown group {kind!r}{suggest(kind, GROUPS)}")
        if kind == "class":
            width = pl.when(pl.col("processors") <= NARROW).then(pl.lit("narrow")).otherwise(pl.lit("wide"))
            length = pl.when(pl.col("run_time") <= SHORT).then(pl.lit("short")).otherwise(pl.lit("long"))
            name = pl.concat_str(width, length, separator=", ")
        elif GROUPS[kind] in jobs.columns:
            names = workload.header.names_of(GROUPS[kind])
            name = pl.col(GROUPS[kind]).replace_strict(
                names, default=pl.col(GROUPS[kind]).cast(pl.String), return_dtype=pl.String
            )
        else:
            continue
        found = jobs.select("job_id", by=pl.lit(kind), name=name).filter(pl.col("name").is_not_null())
        parts.append(found.sort([pl.len().over("name"), "name"], descending=[True, False], maintain_order=True))
    return pl.concat(parts)


def waits_of(outcomes: pl.DataFrame, grouped: pl.DataFrame) -> dict[tuple[str, str], Waits]:
    """Return the waits of each group by its kind and name, in the order of the groups."""
    chosen = outcomes.select("job_id", "submit_time", "wait_time").sort("submit_time", maintain_order=True)
    places = grouped.select("by", "name").unique(maintain_order=True).with_row_index("group")
    both = chosen.join(grouped, on="job_id", how="inner", maintain_order="left").join(places, on=["by", "name"])
    parts = both.sort("group", maintain_order=True).partition_by("by", "name", maintain_order=True, as_dict=True)
    return {(by, name): Waits(part.height, mean_of(part, "wait_time")) for (by, name), part in parts.items()}


def compared(
    variant: str, found: Mapping[tuple[str, str], Waits], base: Mapping[tuple[str, str], Waits]
) -> pl.DataFrame:
    """Return the groups of a variant with the values of the base, in the columns of `GROUP_COLUMNS`."""
    rows: list[list[Any]] = []
    families: dict[str, list[int]] = {}
    for (by, name), own in found.items():
        if (by, name) not in base:  # the base leaves its jobs out
            continue
        difference = difference_of(own.mean, base[by, name].mean)
        families.setdefault(by, []).append(len(rows))
        ends, word = difference.interval, difference.verdict()
        rows.append([variant, by, name, own.jobs, own.mean.value, base[by, name].mean.value, *ends, word, difference.p])
    for places in families.values():
        for place, p in zip(places, holm([rows[place][-1] for place in places]), strict=True):
            rows[place][-2] = corrected(rows[place][-2], p)
    return pl.DataFrame([row[:-1] for row in rows], GROUP_COLUMNS, orient="row")
