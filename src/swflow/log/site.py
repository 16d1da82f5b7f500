"""The partitions of a site, from its log, and the scheduler that simulates each of them as a separate cluster."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.jobs.busy import recorded_use
from swflow.jobs.header import Header
from swflow.jobs.table import conformed

#: Name of the scheduler that represents the site.
SITE = "site"

#: Header key with a value ``NUMBER PROCESSORS`` per partition; guessed sizes end in `GUESSED`.
SIZES = "PartitionProcs"

#: The scheduler option for several machines.
CLUSTERS = "clusters"

#: The mark of a size that is not stated: the recorded peak may be smaller than the machine.
GUESSED = "guessed: peak use"

#: Tolerated relative excess of a peak: clocks of nodes differ.
_CLOCKS = 0.05

#: The columns of imported logs with the demands of jobs for resources besides processors; memory is in MB.
RESOURCES = ("gpus", "licenses", "memory")

#: Resources that belong to nodes, so that more nodes have more of them.
PER_NODE = ("gpus", "memory")


@dataclass(frozen=True)
class Partition:
    """
    A partition of a site.

    ``number`` is its ``partition_id``, and its name if it has none. ``processors`` and the units of each of the
    ``resources`` that its jobs demand are stated, or guessed as the peak use, which can be too small. ``peaks`` has the
    peak use of processors and resources. The limits are the most frequent and the longest time limit of its jobs,
    seconds.
    """

    number: int
    name: str
    jobs: int
    processors: int
    is_guessed: bool
    gpu_jobs: int = 0
    default_limit: float | None = None
    max_limit: float | None = None
    resources: Mapping[str, int] = field(default_factory=dict, hash=False)
    guessed_resources: tuple[str, ...] = ()
    peaks: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def doubts(self) -> list[str]:
        """Sentences on stated sizes that are below the recorded use, so that jobs wait that did not."""
        stated = {"processors": self.processors, **self.resources}
        return [
            f"Partition {self.name}: {stated[name]:,} {name} are stated, but up to {peak:,} were in use at once by the "
            f"recorded times, so the simulated waits are too long; correct "
            + (f"--partition {self.name}=N." if name == "processors" else f"--machine-resource {self.name}:{name}=N.")
            for name, peak in self.peaks.items()
            if peak > (1 + _CLOCKS) * stated[name]
        ]


def partitions_of(jobs: pl.DataFrame, header: Header, sizes: Mapping[str, int] | None = None) -> list[Partition]:
    """
    Return the partitions that occur in a log, sorted by number.

    ``jobs`` is a job table, or the fields of a log; unknown values are null. ``sizes`` maps partitions, by name or
    number, to processors; it overrides the sizes in the header (`SIZES`). The result is empty if the log names no
    partition, or an unknown size cannot be guessed without start times.

    Examples
    --------
    >>> jobs = pl.DataFrame({"submit_time": [0.0, 0.0, 5.0], "wait_time": [0.0, 0.0, 5.0], "run_time": [10.0] * 3,
    ...                      "processors": [4, 2, 8], "requested_time": [60.0] * 3, "partition_id": [1, 2, 1]})
    >>> header = Header({"Partition": ["1 cpu", "2 gpu"]})
    >>> [(one.name, one.processors, one.is_guessed) for one in partitions_of(jobs, header, {"gpu": 16})]
    [('cpu', 8, True), ('gpu', 16, False)]
    """
    names = header.names_of("partition_id")
    table = _known(jobs)
    present = table["partition_id"].drop_nulls().unique().sort().to_list()
    name_of = {number: names.get(number, str(number)) for number in present}
    stated = stated_sizes(header) | _numbered(sizes or {}, name_of)
    if table["wait_time"].null_count() == table.height and any(stated.get(number, (0, True))[1] for number in present):
        return []
    found = []
    for number in present:
        of_partition = table.filter(pl.col("partition_id") == number)
        peak = busiest(of_partition)
        size, is_guessed = stated.get(number) or (peak, True)
        limits = of_partition["requested_time"].drop_nulls()
        peaks = peaks_of(of_partition)
        found.append(
            Partition(
                number, name_of[number], of_partition.height, size, is_guessed,
                int((of_partition["gpus"] > 0).sum()),
                default_limit=float(limits.mode().sort()[0]) if len(limits) else None,
                max_limit=float(limits.max()) if len(limits) else None,  # type: ignore[arg-type]
                resources=peaks, guessed_resources=tuple(peaks), peaks={"processors": peak, **peaks},
            )
        )  # fmt: skip
    return found


def peaks_of(jobs: pl.DataFrame) -> dict[str, int]:
    """
    Return the peak use of each resource of `RESOURCES` that jobs demand; empty if no start is known.

    Examples
    --------
    >>> peaks_of(pl.DataFrame({"submit_time": [0.0, 5.0], "wait_time": [0.0, 0.0], "run_time": [9.0, 9.0],
    ...                        "gpus": [2, 3]}))
    {'gpus': 5}
    """
    if "wait_time" not in jobs.columns or jobs["wait_time"].null_count() == jobs.height:
        return {}
    used = [name for name in RESOURCES if name in jobs.columns and (jobs[name] > 0).any()]
    times = jobs.select("submit_time", "wait_time", "run_time", *used)
    return {name: busiest(times.rename({name: "processors"}).filter(pl.col("processors") > 0)) for name in used}


def node_of(jobs: pl.DataFrame) -> dict[str, int]:
    """
    Return the processors and the units of resources of a node: the most per node of any job.

    Jobs of several nodes count by their means. The result is empty if the nodes of no job are known.

    Examples
    --------
    >>> node_of(pl.DataFrame({"processors": [64, 100], "nodes": [1, 2], "gpus": [None, 8]}))
    {'processors': 64, 'gpus': 4}
    """
    if "nodes" not in jobs.columns:
        return {}
    known = jobs.filter((pl.col("nodes") > 0) & (pl.col("processors") > 0))
    if known.is_empty():
        return {}
    names = ["processors", *(name for name in PER_NODE if name in jobs.columns and (jobs[name] > 0).any())]
    most = known.select((pl.col(name) / pl.col("nodes")).max().ceil().cast(pl.Int64) for name in names)
    return {name: units for name, units in most.row(0, named=True).items() if units}


def with_resources(partitions: list[Partition], stated: Mapping[str, int] | None) -> list[Partition]:
    """
    Return the partitions with the resources that the user states.

    ``stated`` maps ``NAME``, or ``PARTITION:NAME`` if the jobs of several partitions demand it, to the units of a
    resource. ``PARTITION`` is a number if no partition has this name.
    """
    for text, units in (stated or {}).items():
        name, _, resource = text.rpartition(":")
        by_name = [one for one in partitions if name in ("", one.name)]
        called = by_name or [one for one in partitions if name == str(one.number)]
        users = [one for one in called if resource in one.resources]
        if len(users) != 1:
            found = ", ".join(f"{one.name}:{resource}={one.resources[resource]}" for one in users)
            problem = f"{len(users)} partitions use {resource}; state each: {found}" if users else "no job demands it"
            raise SwflowError(f"--machine-resource {text}={units}: {problem}")
        changed = replace(
            users[0],
            resources={**users[0].resources, resource: units},
            guessed_resources=tuple(one for one in users[0].guessed_resources if one != resource),
        )
        partitions = [changed if one.number == changed.number else one for one in partitions]
    return partitions


def share_nodes(partitions: Sequence[Partition], processors: int | None) -> bool:
    """Return whether partitions share a machine of a stated size, because their peaks add up to more than it."""
    return processors is not None and sum(one.processors for one in partitions) > (1 + _CLOCKS) * processors


def pool_of(jobs: pl.DataFrame, stated: Mapping[str, int] | None = None) -> tuple[dict[str, int], tuple[str, ...]]:
    """
    Return the resources of a site whose jobs share one machine, and the names of those that are guessed.

    Resources that are not ``stated`` have their peak use. A partition before the name (``PARTITION:NAME``) is refused.
    """
    peaks = peaks_of(_known(jobs))
    for name, units in (stated or {}).items():
        if name not in peaks:
            raise SwflowError(f"--machine-resource {name}={units}: no job demands it{suggest(name, peaks)}")
    return {**peaks, **(stated or {})}, tuple(name for name in peaks if name not in (stated or {}))


def _known(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the required columns of a job table; -1 (in text logs) and missing columns become null."""
    columns = ("submit_time", "wait_time", "run_time", "requested_time", "partition_id", *RESOURCES,
               "processors", "allocated_processors", "requested_processors")  # fmt: skip
    table = conformed(jobs, {name: jobs.schema.get(name, pl.Int64()) for name in columns})
    positive = [pl.when(pl.col(name) > 0).then(pl.col(name)) for name in columns if name.endswith("processors")]
    return table.with_columns(
        partition_id=pl.when(pl.col("partition_id") >= 0).then("partition_id"),
        wait_time=pl.when(pl.col("wait_time") != -1).then("wait_time"),
        requested_time=pl.when(pl.col("requested_time") > 0).then("requested_time"),
        processors=pl.coalesce(positive),
    )


def stated_sizes(header: Mapping[str, list[str]]) -> dict[int, tuple[int, bool]]:
    """Return the sizes of partitions, by number, in a header, and whether they are guessed."""
    lines = (re.match(r"\s*([0-9]+)\s+([0-9]+)(.*)", line) for line in header.get(SIZES, ()))
    return {int(found[1]): (int(found[2]), GUESSED in found[3]) for found in lines if found}


def _numbered(sizes: Mapping[str, int], names: Mapping[int, str]) -> dict[int, tuple[int, bool]]:
    """Return the sizes that the user states, by partition number."""
    numbers = {str(number): number for number in names} | {name: number for number, name in names.items()}
    for name, processors in sizes.items():
        if name not in numbers:
            raise SwflowError(f"--partition: the log has no partition {name!r}{suggest(name, names.values())}")
        if processors < 1:
            raise SwflowError(f"--partition {name}={processors}: expected at least 1 processor")
    return {numbers[name]: (processors, False) for name, processors in sizes.items()}


def with_sizes(header: Mapping[str, list[str]], partitions: Iterable[Partition]) -> dict[str, list[str]]:
    """Return a header with the sizes of partitions, so that parts of the log keep the sizes of the whole."""
    lines = [f"{one.number} {one.processors}" + f" ({GUESSED})" * one.is_guessed for one in partitions]
    return dict(header) | ({SIZES: lines} if lines else {})


def busiest(jobs: pl.DataFrame) -> int:
    """
    Return the peak number of busy processors by the recorded times (s); at least the widest job.

    Jobs with an unknown value count by their width only.
    """
    widest = int(jobs["processors"].max() or 1)  # type: ignore[arg-type]
    used = recorded_use(jobs, machine=widest)
    return max(used.peak, widest) if used else widest


def site_options(
    partitions: Sequence[Partition], processors: int | None = None, pool: Mapping[str, int] | None = None
) -> dict[str, object]:
    """
    Return the options of the scheduler that represents a site: EASY backfilling in each partition.

    Each partition is a cluster. If the sum of their peaks exceeds the stated ``processors`` of the machine by more than
    `_CLOCKS`, they share nodes. The machine is then one pool in which each partition is limited to its peak; ``pool``
    has its units of each resource, as `pool_of` returns them.

    Examples
    --------
    >>> two = [Partition(1, "cpu", 9, 64, False), Partition(2, "gpu", 9, 16, False)]
    >>> site_options(two)[CLUSTERS]
    [{'partition': 'cpu', 'processors': 64}, {'partition': 'gpu', 'processors': 16}]
    >>> site_options(two, 64)["limits"]
    {'partition': {'cpu': {'processors': 64}, 'gpu': {'processors': 16}}}
    >>> site_options(two[:1])
    {'order': 'fcfs', 'backfill': 'easy'}
    >>> site_options(two[:1], pool={"gpus": 8})["resources"]
    {'gpus': 8}
    """
    options: dict[str, object] = {"order": "fcfs", "backfill": "easy"}
    shared = {"resources": dict(pool)} if pool else {}
    if len(partitions) < 2:
        return options | shared
    if processors is not None and share_nodes(partitions, processors):
        limits = {one.name: {"processors": min(one.processors, processors)} for one in partitions}
        return options | {"limits": {"partition": limits}} | shared
    clusters = [
        {"partition": one.name, "processors": one.processors}
        | ({"resources": dict(one.resources)} if one.resources else {})
        for one in partitions
    ]
    return options | {"dispatch": "partition", CLUSTERS: clusters}
