"""Comparisons of runs: the pairs that are compared, and the rows of table ``comparisons``."""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.analysis.comparison import by_tenths, compare
from swflow.analysis.heatmap import HEATMAP_MEASURES, Heatmap, heatmap
from swflow.analysis.intervals import difference_of, difference_over_replicates, over_replicates, score_of
from swflow.analysis.multiple_testing import columns_of, correct, family_of
from swflow.analysis.resampling import Distribution, Resampled, Weeks, by_weeks, distribution_of, mean_of
from swflow.database.inputs import Run
from swflow.database.schema import Rows
from swflow.files import tables
from swflow.files.tables import read_columns
from swflow.names import log_of, recipe_of, replicate_of, worth_comparing


def pairs_to_compare(runs: Iterable[Run], changed: Collection[str]) -> list[list[tuple[Run, Run]]]:
    """Return the pairs of runs to compare, of which one has changed: a list for each log and replicate."""
    by_log: dict[str, list[Run]] = {}
    for run in runs:
        by_log.setdefault(log_of(run.workload), []).append(run)
    groups: dict[tuple[str, int | None], list[tuple[Run, Run]]] = {}
    for log, of_log in by_log.items():
        for variant, base in combinations(of_log, 2):
            is_new = variant.run in changed or base.run in changed
            if is_new and worth_comparing(variant.names, base.names):
                groups.setdefault((log, _replicate(variant, base)), []).append((variant, base))
    return list(groups.values())


def _replicate(variant: Run, base: Run) -> int | None:
    return replicate_of(variant.workload) or replicate_of(base.workload)


class _Measured(NamedTuple):
    """A measure of a run: its heatmap, and by weeks its mean, and its distribution by tenths of the load."""

    heatmap: Heatmap
    mean: Resampled
    distribution: Distribution


def compare_runs(pairs: Sequence[tuple[Run, Run]]) -> Rows:
    """
    Return the rows of pairs of runs, resampled together: their distance, and which one is better how certainly.

    The distance is that of two schedulers on one workload. Pairs of different workloads have none, since their jobs
    differ, too; they are the majority, and their distances would take most of the load's time.

    The pairs are a list of `pairs_to_compare`. Runs with many jobs in total are read again for each measure, one at a
    time. `with_verdicts` adds the corrected verdicts to these rows of table ``comparisons``.
    """
    runs = {run.run: run for pair in pairs for run in pair}
    fit = sum(run.notes["rows"] for run in runs.values()) <= tables.MOST_AT_ONCE
    weeks = {name: _weeks(run.file, HEATMAP_MEASURES) for name, run in runs.items()} if fit else {}
    rows = []
    for measure in HEATMAP_MEASURES:
        measured = {
            name: _measured(weeks[name] if weeks else _weeks(run.file, [measure]), measure)
            for name, run in runs.items()
        }
        for variant, base in pairs:
            one, other = measured[variant.run], measured[base.run]
            log = log_of(variant.workload)
            score = score_of(one.distribution, other.distribution)
            mean = difference_of(one.mean, other.mean)
            rows.append({
                "workload": variant.workload if variant.workload == base.workload else log,
                "measure": measure,
                "variant": variant.run,
                "base": base.run,
                **asdict(
                    compare(one.heatmap, other.heatmap, measure_distance=variant.workload == base.workload)
                ),
                "score": score.value,
                "basis": "weeks",
                "blocks": mean.blocks,
                **columns_of("score", score),
                "variant_mean": _finite(one.mean.value),
                "base_mean": _finite(other.mean.value),
                "mean_difference": _finite(mean.value),
                **columns_of("mean", mean),
                "family": family_of(log, measure, _replicate(variant, base), False),
            })  # fmt: skip
    return rows


def _weeks(file: Path, measures: Iterable[str]) -> Weeks:
    return by_weeks(read_columns(file, ["submit_time", "load", *measures]))


def _measured(weeks: Weeks, measure: str) -> _Measured:
    load, values = (weeks.outcomes[name].cast(pl.Float64).to_numpy() for name in ("load", measure))
    return _Measured(by_tenths(heatmap(load, values)), mean_of(weeks, measure), distribution_of(weeks, measure))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def with_verdicts(rows: Rows) -> Rows:
    """Return the rows of runs, and further rows of recipes with several replicates, with corrected verdicts."""
    varying, constant = _compared_by_replicates(rows)
    rows = rows + varying
    correct(rows)
    # Identical replicates give one comparison, based on weeks, which already belongs to a family.
    rows += [row | renamed | {"family": None, "family_size": None} for row, renamed in constant]
    return sorted(rows, key=lambda row: (row["variant"], row["base"], HEATMAP_MEASURES.index(row["measure"])))


def _compared_by_replicates(rows: Sequence[dict[str, Any]]) -> tuple[Rows, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """
    Return a row for each pair of recipes with several replicates, based on these.

    Of a pair with identical replicates, return the row of the first replicate, and the columns that name the recipes.
    """
    groups: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        runs_of = [row[name].rpartition("/") for name in ("variant", "base")]
        if any(replicate_of(workload) is not None for workload, _, _ in runs_of):
            recipes = [f"{recipe_of(workload)}/{scheduler}" for workload, _, scheduler in runs_of]
            groups.setdefault((recipe_of(row["workload"]), row["measure"], *recipes), []).append(row)
    varying, constant = [], []
    for (workload, measure, variant, base), some in groups.items():
        if len(some) < 2:
            continue
        # a fixed order of summation gives the same last digits
        some = sorted(some, key=lambda row: (row["variant"], row["base"]))
        names = {"workload": workload, "measure": measure, "variant": variant, "base": base, "better": None}
        score = over_replicates([row["score"] for row in some])
        mean = difference_over_replicates([(row["variant_mean"], row["base_mean"]) for row in some])
        if any(found.error is None and not found.equal and found.blocks > 1 for found in (score, mean)):
            constant.append((some[0], names))
            continue
        averaged = ("distance", "score", "variant_wins", "base_wins", "variant_mean", "base_mean")
        means = {name: _mean([row[name] for row in some]) for name in averaged}
        varying.append(
            {**names, **means, "basis": "replicates", "blocks": len(some), **columns_of("score", score)}
            | {"mean_difference": _finite(mean.value), **columns_of("mean", mean)}
            | {"family": family_of(log_of(workload), measure, None, True)}
        )
    return varying, constant
