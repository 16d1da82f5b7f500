"""A what-if question with its answer: the variants, and the rows of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import polars as pl

from swflow.jobs.table import Workload
from swflow.scheduling.option_kinds import Unchecked
from swflow.studies.site_scheduler import SiteModel
from swflow.studies.variants import Variant
from swflow.studies.whatif import Answer, Row

#: The name of each measure in a sentence.
TITLES: dict[str, str] = {
    "mean_wait_time": "mean wait",
    "p95_wait_time": "95th-percentile wait",
    "mean_bounded_slowdown": "mean bounded slowdown",
    "awrt": "area-weighted response time (AWRT)",
}

#: The name of each measure above a column or before a row.
LABELS: dict[str, str] = TITLES | {"p95_wait_time": "p95 wait", "awrt": "AWRT"}


@dataclass(frozen=True)
class Question:
    """
    A what-if and the context that explains its answer.

    The first of ``asked`` is the base. ``log`` is the log's name on the command line, for suggested commands, and
    ``doubts`` are warnings about it. ``settings`` are the options that describe the site: suggested commands keep them.
    """

    site: SiteModel
    asked: Sequence[Variant]
    answer: Answer
    log: str = "LOG"
    doubts: Sequence[str] = field(default_factory=tuple)
    settings: str = ""

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
        """The recorded mean wait of the measured jobs, if the log has one."""
        return self.answer.recorded.get("mean_wait_time")

    def rows(self, variant: Variant) -> dict[str, Row]:
        """Return measure to row for one variant."""
        table = self.answer.table.filter(pl.col("variant") == variant.name)
        return {row["measure"]: cast(Row, row) for row in table.iter_rows(named=True)}

    def row(self, variant: Variant) -> Row:
        """Return the row of the mean wait of a variant."""
        return self.rows(variant)["mean_wait_time"]
