"""Statistical power: the numbers of weeks or replicates at which the interval of a difference excludes 0."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from swflow.analysis.intervals import FEWEST_WEEKS, Estimate, difference_of, difference_over_replicates
from swflow.analysis.metrics import MEASURES
from swflow.analysis.resampling import mean_of
from swflow.analysis.sample_size import blocks_needed, smallest_difference
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.files.tables import read_metadata, read_parquet
from swflow.names import log_of


@dataclass(frozen=True)
class Power:
    """
    The statistical power of comparing the mean of a measure between two runs.

    ``difference`` is variant minus base; its blocks are weeks or replicates (``basis``). ``smallest`` is the smallest
    increase that can be detected with their number, in percent of the base's mean (None if that is 0). ``needed`` maps
    an increase in percent to the number of blocks needed to detect it; None if no number suffices. A decrease by the
    same percentage changes the ratio of the means more, so that fewer blocks suffice.
    """

    measure: str
    variant: float
    base: float
    difference: Estimate
    basis: str
    smallest: float | None
    needed: dict[float, int | None]

    def difference_in_words(self) -> str:
        """Return the difference with its interval as text."""
        low, high = self.difference.interval
        return f"{self.difference.value:+.4g} [{low:.4g}, {high:.4g}]"


def power_of(
    variant: str, base: str, percents: Sequence[float], power: float, database: str | os.PathLike[str]
) -> list[Power]:
    """
    Return the statistical power of comparing two runs of a log, for every measure.

    Runs are files, or WORKLOAD/SCHEDULER of the database; a workload with several replicates is named without their
    number. ``percents`` are increases in percent of the base's mean, ``power`` is the probability that the 95 %
    interval excludes 0.
    """
    if not 0 < power < 1:
        raise SwflowError(f"--power: {power:g}; expected a probability between 0 and 1, such as 0.8")
    for percent in percents:
        if not 0 < percent < math.inf:
            raise SwflowError(f"--percent: {percent:g}; expected a difference above 0, such as 5")
    are_files = any(text.endswith(".parquet") for text in (variant, base))
    replicates = [] if are_files else [_replicates(text, database) for text in (variant, base)]
    if any(len(one) > 1 for one in replicates):
        basis, compared = "replicates", _by_replicates(variant, base, replicates)
    else:
        basis, compared = "weeks", _by_weeks(variant, base, database)
    found = []
    for measure, one, other, difference in compared:
        smallest = smallest_difference(difference, difference.blocks, power)
        needed = {percent: blocks_needed(difference, _effect(difference, percent), power) for percent in percents}
        found.append(Power(measure, one, other, difference, basis, _in_percent(difference, smallest), needed))
    return found


def _effect(found: Estimate, percent: float) -> float:
    """Return an increase of the base's mean in the unit of the error."""
    return math.log1p(percent / 100) if found.is_ratio else abs(found.base or 0.0) * percent / 100


def _in_percent(found: Estimate, effect: float) -> float | None:
    """Return a difference in the unit of the error as an increase of the base's mean in percent."""
    if found.is_ratio:
        return 100 * math.expm1(effect) if effect < math.log(sys.float_info.max) else math.inf
    return 100 * effect / found.base if found.base else None


#: A measure, its means in both runs, and their difference.
_Compared = tuple[str, float, float, Estimate]


def _by_weeks(variant: str, base: str, database: str | os.PathLike[str]) -> Iterator[_Compared]:
    tables = [_of_file(text) if text.endswith(".parquet") else _of_database(text, database) for text in (variant, base)]
    logs = {log for log, _ in tables}
    if len(logs) > 1:
        raise SwflowError(f"power: {variant} and {base} are of different logs, {' and '.join(sorted(logs))}")
    for measure in MEASURES:
        one, other = (mean_of(table, measure) for _, table in tables)
        difference = difference_of(one, other)
        if difference.equal:
            raise SwflowError(f"power: {variant} and {base} are equal, job by job; expected two different runs")
        if difference.error is None:
            raise SwflowError(
                f"power: {variant} and {base} last {difference.blocks} weeks; expected at least {FEWEST_WEEKS}"
            )
        yield measure, one.value, other.value, difference


def _of_file(text: str) -> tuple[str, pl.DataFrame]:
    notes = read_metadata(Path(text))
    if notes.get("kind") != "run":
        raise SwflowError(f"{text}: not a run; create one with: swflow simulate WORKLOAD -o RUN.parquet")
    return log_of(notes["workload"]), read_parquet(text, ["submit_time", "load", *MEASURES])


def _of_database(run: str, database: str | os.PathLike[str]) -> tuple[str, pl.DataFrame]:
    columns = ["submit_time", "load", *MEASURES]
    sql = f"SELECT {', '.join(columns)} FROM outcomes WHERE run = $run"
    _, rows = query(database, sql, parameters={"run": run})
    if not rows:
        raise SwflowError(f'power: {run}: no such file, and no such run in {database}; see: swflow sql "FROM runs"')
    return log_of(run.partition("/")[0]), pl.DataFrame(rows, dict.fromkeys(columns, pl.Float64), orient="row")


def _replicates(run: str, database: str | os.PathLike[str]) -> dict[int | None, list[float]]:
    """Return the means of the measures by the number of the replicate; for a run without replicates, its own means."""
    recipe, _, scheduler = run.rpartition("/")
    means = ", ".join(f"mean_{measure}" for measure in MEASURES)
    sql = f"""SELECT replicate, {means} FROM metrics JOIN workloads USING (workload)
        WHERE recipe = $recipe AND scheduler = $scheduler ORDER BY replicate"""
    _, rows = query(database, sql, parameters={"recipe": recipe, "scheduler": scheduler})
    return {number: list(values) for number, *values in rows}


def _by_replicates(variant: str, base: str, replicates: Sequence[dict[int | None, list[float]]]) -> Iterator[_Compared]:
    """Yield the differences over replicates; a run without replicates is compared with each of the other run."""
    one, other = replicates
    numbers = sorted(number for number in {**one, **other} if number is not None)
    pairs = [(one.get(number, one.get(None)), other.get(number, other.get(None))) for number in numbers]
    known = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    if len(known) < 2:
        raise SwflowError(
            f"power: {variant} and {base} have {len(known)} replicates in common; expected at least 2; simulate more"
        )
    if log_of(variant) != log_of(base):
        raise SwflowError(f"power: {variant} and {base} are of different logs, {log_of(variant)} and {log_of(base)}")
    for place, measure in enumerate(MEASURES):
        values = [(mine[place], theirs[place]) for mine, theirs in known]
        difference = difference_over_replicates(values)
        if difference.equal:
            raise SwflowError(f"power: {variant} and {base} are equal; expected two different runs")
        if difference.error is None:
            raise SwflowError(
                f"power: {variant} and {base}: the {difference.blocks} replicates do not vary; name one, such as "
                f"{variant.rpartition('/')[0]}@{numbers[0]}/{variant.rpartition('/')[2]}, to count weeks"
            )
        mean, other_mean = (sum(pair[side] for pair in values) / len(values) for side in (0, 1))
        yield measure, mean, other_mean, difference
