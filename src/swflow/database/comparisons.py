"""Comparisons of runs: the pairs that are compared, and the rows of table ``comparisons``."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from swflow.analysis.comparison import by_tenths, compare
from swflow.analysis.heatmap import HEATMAP_MEASURES, Heatmap, heatmap
from swflow.analysis.intervals import difference_of, difference_over_replicates, over_replicates, score_of
from swflow.analysis.metrics import Middle
from swflow.analysis.multiple_testing import columns_of, correct
from swflow.analysis.resampling import Distribution, Resampled, Weeks, by_weeks, distribution_of, statistic
from swflow.analysis.verdicts import without_saturated_winner
from swflow.database.inputs import Asked, Run
from swflow.database.schema import Pair, Rows
from swflow.files import tables
from swflow.files.tables import read_columns
from swflow.names import log_of, recipe_of, replicate_of

#: The compared measures, and their statistics in table ``metrics``. Those of heatmaps are also compared at equal load.
STATISTICS = {measure: f"mean_{measure}" for measure in HEATMAP_MEASURES} | {
    "bounded_slowdown": "mean_bounded_slowdown", "awrt": "awrt", "p95_wait_time": "p95_wait_time",
}  # fmt: skip

#: The columns of runs that a statistic needs besides its measure.
_COLUMNS = {"awrt": ["response_time", "processors", "run_time"], "p95_wait_time": ["wait_time"]}


class _Measured(NamedTuple):
    """A measure of a run: its statistic by weeks; of heatmaps also the heatmap, and the distribution by load."""

    statistic: Resampled
    heatmap: Heatmap | None = None
    distribution: Distribution | None = None


def compare_runs(pairs: Sequence[tuple[Run, Run]]) -> Rows:
    """
    Return the rows of pairs of runs, read together: their distance, and which one is better how certainly.

    The jobs are those of table ``metrics``, without warm-up and cool-down. The distance is that of two schedulers on
    one workload. Pairs of different workloads have none, since their jobs differ, too.

    The pairs are a list of `swflow.database.inputs.Update.pairs`. Runs with many jobs in total are read again for each
    measure, one at a time. `with_verdicts` adds the studies and the corrected verdicts to these rows of table
    ``comparisons``.
    """
    runs = {run.run: run for pair in pairs for run in pair}
    fit = sum(run.notes["rows"] for run in runs.values()) <= tables.MOST_AT_ONCE
    weeks = {name: _weeks(run, STATISTICS) for name, run in runs.items()} if fit else {}
    rows = []
    for measure in STATISTICS:
        measured = {
            name: _measured(weeks[name] if weeks else _weeks(run, [measure]), measure) for name, run in runs.items()
        }
        for variant, base in pairs:
            one, other = measured[variant.run], measured[base.run]
            difference = difference_of(one.statistic, other.statistic)
            same = variant.workload == base.workload
            row = {
                "workload": variant.workload if same else log_of(variant.workload),
                "measure": measure,
                "variant": variant.run,
                "base": base.run,
                **_at_equal_load(one, other, measure_distance=same),
                "basis": "weeks",
                "blocks": difference.blocks,
                "variant_mean": _finite(one.statistic.value),
                "base_mean": _finite(other.statistic.value),
                "mean_difference": _finite(difference.value),
                **columns_of("mean", difference),
            }  # fmt: skip
            saturated = (run.notes["metrics"].get("saturated") for run in (variant, base))
            _forbid_saturated_winner(row, *saturated)
            rows.append(row)
    return rows


def _forbid_saturated_winner(row: dict[str, Any], variant: float | None, base: float | None) -> None:
    """Change the verdicts of a row for which a saturated run is better."""
    for name in ("score", "mean"):
        if row[f"{name}_verdict"] is not None:
            verdict = without_saturated_winner(row[f"{name}_verdict"], variant, base)
            row[f"{name}_verdict"] = row[f"{name}_verdict_holm"] = verdict


def _weeks(run: Run, measures: Iterable[str]) -> Weeks:
    columns = [column for measure in measures for column in _COLUMNS.get(measure, [measure])]
    needed = dict.fromkeys(["job_id", "submit_time", "load", *columns])
    middle = Middle.parse(run.notes.get("measured", ""))
    return by_weeks(middle.of(read_columns(run.file, list(needed)).lazy()).collect())


def _measured(weeks: Weeks, measure: str) -> _Measured:
    found = statistic(weeks, STATISTICS[measure])
    if measure not in HEATMAP_MEASURES:
        return _Measured(found)
    load, values = (weeks.outcomes[name].cast(pl.Float64).to_numpy() for name in ("load", measure))
    return _Measured(found, by_tenths(heatmap(load, values)), distribution_of(weeks, measure))


#: The columns that only measures of heatmaps have.
_NO_SCORE = dict.fromkeys(
    ("distance", "score", "variant_wins", "base_wins", "better", *columns_of("score", over_replicates([])))
)


def _at_equal_load(variant: _Measured, base: _Measured, measure_distance: bool) -> dict[str, Any]:
    """Return the columns of the comparison at equal load; null for a measure without a heatmap."""
    maps, distributions = (variant.heatmap, base.heatmap), (variant.distribution, base.distribution)
    if None in maps or None in distributions:
        return dict(_NO_SCORE)
    score = score_of(*distributions)  # type: ignore[arg-type]
    found = asdict(compare(*maps, measure_distance=measure_distance))  # type: ignore[arg-type]
    return found | {"score": score.value} | columns_of("score", score)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def with_verdicts(rows: Rows, asked: Asked, saturated: Collection[str] = ()) -> Rows:
    """
    Return the rows of each study: of runs, and of recipes with several replicates, with corrected verdicts.

    The comparisons of a study are a family for each log, measure and basis, which other studies do not change.
    ``saturated`` are the saturated runs; a recipe with a saturated replicate is never better.
    """
    by_pair: dict[Pair, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_pair.setdefault((row["variant"], row["base"]), {})[row["measure"]] = row
    found: Rows = []
    for study, pairs in asked.items():
        own = []
        for pair in dict.fromkeys(pairs):
            for row in by_pair.get(pair, {}).values():
                own.append(row | {"study": study, "family": _family_of(study, row)})
        varying, constant = _compared_by_replicates(own, saturated)
        own += varying
        correct(own)
        # Identical replicates give one comparison, based on weeks, which already belongs to a family.
        found += own + [row | renamed | {"family": None, "family_size": None} for row, renamed in constant]
    measures = list(STATISTICS)
    return sorted(found, key=lambda row: (row["study"], row["variant"], row["base"], measures.index(row["measure"])))


def _family_of(study: str, row: Mapping[str, Any]) -> str:
    """
    Return the name of the family of comparisons by weeks that are corrected together.

    Examples
    --------
    >>> row = {"workload": "HPC2N+a@3", "measure": "awrt", "variant": "HPC2N+a@3/sjf", "base": "HPC2N+a@3/fcfs"}
    >>> _family_of("loads", row)
    'loads: HPC2N, awrt, weeks of replicate 3'
    """
    variant, base = (row[name].rpartition("/")[0] for name in ("variant", "base"))
    replicate = replicate_of(variant) or replicate_of(base)
    of_replicate = f" of replicate {replicate}" if replicate is not None else ""
    return f"{study}: {log_of(row['workload'])}, {row['measure']}, weeks{of_replicate}"


def _compared_by_replicates(
    rows: Sequence[dict[str, Any]], saturated: Collection[str]
) -> tuple[Rows, list[tuple[dict[str, Any], dict[str, Any]]]]:
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
        is_scored = some[0]["score"] is not None
        score = over_replicates([row["score"] for row in some])
        mean = difference_over_replicates([(row["variant_mean"], row["base_mean"]) for row in some])
        if any(found.error is None and not found.equal and found.blocks > 1 for found in (score, mean)):
            constant.append((some[0], names))
            continue
        averaged = ("distance", "score", "variant_wins", "base_wins", "variant_mean", "base_mean")
        means = {name: _mean([row[name] for row in some]) for name in averaged}
        varying.append(
            {**_NO_SCORE, **names, **means, "study": some[0]["study"], "basis": "replicates", "blocks": len(some)}
            | (columns_of("score", score) if is_scored else {})
            | {"mean_difference": _finite(mean.value), **columns_of("mean", mean)}
            | {"family": f"{some[0]['study']}: {log_of(workload)}, {measure}, replicates"}
        )
        sides = (any(row[side] in saturated for row in some) for side in ("variant", "base"))
        _forbid_saturated_winner(varying[-1], *sides)
    return varying, constant
