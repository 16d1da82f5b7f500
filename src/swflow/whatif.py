"""What if: a log under other schedulers, machines, estimates, arrivals and run times, with differences to the base."""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

import polars as pl

from swflow.analysis.fidelity import fidelity
from swflow.analysis.uncertainty import Difference, difference_of_means, difference_of_quantiles
from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.jobs import Workload, sort_jobs, write_table
from swflow.machine import Machine
from swflow.runs import Run, run
from swflow.scheduling.scheduler import LOG, Scheduler

#: What is compared: the column of the outcomes, the quantile or None for the mean, and whether jobs weigh as much as
#: their processor-seconds.
MEASURES: dict[str, tuple[str, float | None, bool]] = {
    "mean_wait_time": ("wait_time", None, False),
    "p95_wait_time": ("wait_time", 0.95, False),
    "mean_bounded_slowdown": ("bounded_slowdown", None, False),
    "awrt": ("response_time", None, True),
}

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
    One combination.

    Parameters
    ----------
    scheduler : str
        Its name.
    options : mapping
        Its options.
    processors : str
        ``+20%``, ``-10%``, a number, or ``""`` for the machine as it is.
    estimates : str
        ``perfect`` (the run times), a factor of the run times, or ``""`` for the users'.
    arrivals, run_times : float
        Jobs come so many times as fast; run times and estimates are so many times as long.
    """

    scheduler: str
    options: Mapping[str, Any]
    processors: str = ""
    estimates: str = ""
    arrivals: float = 1.0
    run_times: float = 1.0

    @property
    def name(self) -> str:
        """What is different, in words."""
        parts = [self.scheduler]
        parts += [f"processors {self.processors}"] if self.processors else []
        parts += [f"estimates {self.estimates}"] if self.estimates else []
        parts += [f"arrivals × {self.arrivals:g}"] if self.arrivals != 1 else []
        parts += [f"run times × {self.run_times:g}"] if self.run_times != 1 else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Answer:
    """
    What came of it.

    Parameters
    ----------
    table : polars.DataFrame
        One row a variant and measure: the columns of `COLUMNS`; times in seconds.
    fidelity : dict or None
        How much the base is like the recorded schedule (`swflow.analysis.fidelity.fidelity`), if there is one.
    left_out : int
        Jobs that are wider than the smallest machine; they are in no variant.
    """

    table: pl.DataFrame
    fidelity: dict[str, float | None] | None
    left_out: int


def variants(
    schedulers: Mapping[str, Mapping[str, Any]],
    processors: Sequence[str] = (),
    estimates: Sequence[str] = (),
    arrivals: Sequence[float] = (),
    run_times: Sequence[float] = (),
) -> list[Variant]:
    """
    Return every combination; the first is the base: the first scheduler, and the rest as recorded.

    Examples
    --------
    >>> [variant.name for variant in variants({"easy": {}, "sjf": {}}, processors=["+20%"])]
    ['easy', 'easy, processors +20%', 'sjf', 'sjf, processors +20%']
    """
    for text in estimates:
        _estimate_factor(text)
    for option, factors in (("--arrivals", arrivals), ("--run-times", run_times)):
        for factor in factors:
            if not 0.01 <= factor <= 100:
                raise SwflowError(f"{option}: must be a factor from 0.01 to 100, not {factor:g}")
    if not schedulers:
        raise SwflowError("whatif: no scheduler; give --scheduler easy")

    def choices(values: Sequence[Any], unchanged: Any) -> list[Any]:
        return list(dict.fromkeys([unchanged, *values]))

    return [
        Variant(name, schedulers[name], *rest)
        for name, *rest in itertools.product(
            schedulers, choices(processors, ""), choices(estimates, ""), choices(arrivals, 1.0), choices(run_times, 1.0)
        )
    ]


def machine_of(machine: Machine, text: str) -> Machine:
    """
    Return a machine of another size: a share more or less, in whole nodes, or a number of processors.

    Examples
    --------
    >>> machine_of(Machine(100, 25), "+20%").processors, machine_of(Machine(100, 25), "-50%").nodes
    (120, 12)
    """
    if not text:
        return machine
    share = re.fullmatch(r"([+-]\d+(?:\.\d+)?)\s*%", text.strip())
    if share:
        nodes = round(machine.nodes * (1 + float(share[1]) / 100))
        if nodes < 1:
            raise SwflowError(f"--processors {text}: nothing is left of {machine.describe()}")
        return Machine(nodes * machine.processors_per_node, nodes, machine.capacities)
    if not re.fullmatch(r"\d{1,9}", text.strip()) or int(text) < 1:
        raise SwflowError(f"--processors: {text!r} is neither a number nor a share such as +20%")
    return machine.with_processors(int(text))


def _estimate_factor(text: str) -> float | None:
    """Return of how many run times an estimate is; None for the users'."""
    if not text:
        return None
    if text == "perfect":
        return 1.0
    try:
        factor = float(text)
    except ValueError:
        factor = float("nan")
    if not 1 <= factor <= 1000:
        raise SwflowError(f"--estimates: {text!r} is neither perfect nor a factor of the run times from 1 to 1000")
    return factor


def applied(workload: Workload, variant: Variant) -> Workload:
    """Return the workload as a variant changes it; ids stay, so that jobs can be compared."""
    jobs = workload.jobs
    first = pl.col("submit_time").min()
    columns: dict[str, pl.Expr] = {}
    if variant.arrivals != 1:
        columns["submit_time"] = first + (pl.col("submit_time") - first) / variant.arrivals
    if variant.run_times != 1:
        columns["run_time"] = pl.col("run_time") * variant.run_times
        columns["estimate"] = pl.col("estimate") * variant.run_times
    jobs = jobs.with_columns(**columns)
    factor = _estimate_factor(variant.estimates)
    if factor is not None:
        jobs = jobs.with_columns(estimate=pl.col("run_time") * factor, requested_time=pl.col("run_time") * factor)
    return replace(workload, jobs=sort_jobs(jobs), machine=machine_of(workload.machine, variant.processors))


def ask(
    workload: Workload,
    chosen: Sequence[Variant],
    *,
    seed: int = 1,
    progress: Callable[[Sequence[Any]], Any] = lambda items: items,
) -> Answer:
    """
    Simulate every variant, and compare it with the first.

    Parameters
    ----------
    workload : Workload
        The log, cleaned.
    chosen : sequence of Variant
        As `variants` returns them.
    seed : int
        Of the bootstrap.
    progress : callable
        Wraps the variants, to show how far it is.

    Returns
    -------
    Answer

    Raises
    ------
    SwflowError
        If a variant cannot be simulated.
    """
    smallest = min(machine_of(workload.machine, variant.processors).processors for variant in chosen)
    fitting = workload.jobs.filter(pl.col("processors") <= smallest)
    left_out = workload.jobs.height - fitting.height
    if fitting.is_empty():
        raise SwflowError(f"whatif: {workload.name}: every job is wider than {smallest:,} processors")
    workload = replace(workload, jobs=fitting)
    schedulers = {variant.scheduler: Scheduler.of(variant.scheduler, variant.options) for variant in chosen}
    fixed = next((one.scheduler for one in chosen if one.processors and schedulers[one.scheduler].centres), None)
    if fixed is not None:
        raise SwflowError(
            f"--processors: {fixed} has centres whose sizes it says itself; name another scheduler with larger ones"
        )
    base: Run | None = None
    rows: list[dict[str, Any]] = []
    likeness = None
    for variant in progress(list(chosen)):
        changed = applied(workload, variant)
        result = run(changed, schedulers[variant.scheduler])
        if base is None:
            base = result
            likeness = _likeness(workload, result, variant)
        rows += _rows(variant, changed.machine, result, base, seed)
    return Answer(pl.DataFrame(rows, COLUMNS, orient="row"), likeness, left_out)


def _likeness(workload: Workload, base: Run, variant: Variant) -> dict[str, float | None] | None:
    """Return how much the base is like the recorded schedule, if there is one."""
    waits = workload.jobs["wait_time"] if "wait_time" in workload.jobs.columns else None
    if waits is None or waits.null_count() == len(waits) or variant.options.get("order") == LOG:
        return None
    recorded = run(workload, Scheduler.of(LOG, {"order": LOG}))
    return fidelity(recorded.outcomes, base.outcomes, workload.machine.processors)


def _rows(variant: Variant, machine: Machine, result: Run, base: Run, seed: int) -> Iterator[dict[str, Any]]:
    """Give the measures of a variant beside those of the base."""
    columns = ["job_id", "wait_time", "bounded_slowdown", "response_time"]
    both = base.outcomes.select("submit_time", "processors", "run_time", *columns).join(
        result.outcomes.select(columns), on="job_id", how="inner", suffix="_other", maintain_order="left"
    )
    if both.is_empty():
        raise SwflowError(f"whatif: {variant.name}: no job in common with the base; is no wait time recorded?")
    submit = both["submit_time"].to_numpy()
    for measure, (column, quantile, weighted) in MEASURES.items():
        values = both[column].to_numpy(), both[f"{column}_other"].to_numpy()
        found: Difference
        if quantile is not None:
            found = difference_of_quantiles(*values, submit, quantile, seed=seed)
        else:
            weights = (both["processors"] * both["run_time"]).to_numpy() if weighted else None
            found = difference_of_means(*values, submit, weights, seed=seed)
        verdict = {None: "too few weeks", True: "noise", False: "lower" if found.difference < 0 else "higher"}
        yield {
            "variant": variant.name, "scheduler": variant.scheduler, "processors": machine.processors,
            "estimates": variant.estimates or "users'", "arrivals": variant.arrivals, "run_times": variant.run_times,
            "measure": measure, "jobs": both.height, "value": found.value, "base": found.base,
            "difference": found.difference, "low": found.low, "high": found.high, "weeks": found.weeks,
            "verdict": "base" if result is base else verdict[found.is_noise],
            "utilization": result.metrics["utilization"],
        }  # fmt: skip


def summary(answer: Answer) -> tuple[list[str], list[list[str]]]:
    """Return the table for people: one row a variant, each measure with its difference to the base."""
    titles = {
        "mean_wait_time": "mean wait (min)", "p95_wait_time": "95 % wait below (min)",
        "mean_bounded_slowdown": "mean bounded slowdown", "awrt": "AWRT (min)",
    }  # fmt: skip
    columns = ["variant", "processors", "utilization", *titles.values()]
    table = []
    for part in answer.table.partition_by("variant", maintain_order=True):
        first = part.row(0, named=True)
        row = [first["variant"], f"{first['processors']:,}", f"{first['utilization']:.3f}"]
        for measure in titles:
            found = part.filter(pl.col("measure") == measure).row(0, named=True)
            row.append(_cell(found, 1.0 if measure == "mean_bounded_slowdown" else 60.0))
        table.append(row)
    return columns, table


def _cell(found: Mapping[str, Any], unit: float) -> str:
    """Write a value with its difference: ``12.3  -4.5 [-6, -3]``; ``~`` marks what may be chance."""
    text = f"{found['value'] / unit:,.1f}"
    if found["verdict"] == "base":
        return text
    text += f"  {found['difference'] / unit:+,.1f}"
    if found["low"] is None:
        return text
    mark = " ~" if found["verdict"] == "noise" else ""
    return f"{text} [{found['low'] / unit:+,.1f}, {found['high'] / unit:+,.1f}]{mark}"


def likeness_in_words(found: Mapping[str, float | None] | None, base: str) -> str:
    """Say how much the base is like the recorded schedule."""
    if found is None or not found["jobs"]:
        return "The log records no waits: whether the base is like the real schedule is not known."
    order = found["start_order"]
    return (
        f"{base} against the recorded schedule: mean wait {found['simulated_mean_wait_time']:,.0f} s against "
        f"{found['recorded_mean_wait_time']:,.0f} s, {100 * (found['started_alike'] or 0):.0f} % of the jobs start "
        f"within a minute of the record, distance of the waits' distributions {found['wait_distance']:.2f} (0 to 1)"
        + (f", {100 * order:.0f} % of neighbours in the queue start in the recorded order" if order is not None else "")
        + ". The less alike they are, the less an absolute value says; differences between policies say more."
    )


def write_answer(
    answer: Answer,
    path: str | os.PathLike[str],
    title: str,
    notes: Sequence[str],
    *,
    workload: str = "",
    study: str | None = None,
) -> None:
    """
    Write an answer: ``.parquet`` or ``.csv`` (all figures), or ``.html`` (a page for people).

    A ``.parquet`` can be loaded into a database; the names of the workload and of the study go with it.

    Raises
    ------
    SwflowError
        If the ending is another one.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        write_table(answer.table, path, {"kind": "whatif", "title": title, "workload": workload, "study": study})
    elif path.suffix == ".csv":
        with atomic_path(path) as temporary:
            answer.table.write_csv(temporary)
    elif path.suffix == ".html":
        with atomic_path(path) as temporary:
            temporary.write_text(_page(answer, title, notes))
    else:
        raise SwflowError(f"{path}: unknown ending; use .html, .csv or .parquet")


def _page(answer: Answer, title: str, notes: Sequence[str]) -> str:
    """Return a page that needs no network."""
    columns, rows = summary(answer)
    head = "".join(f"<th scope=col>{escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>"
        + f"<th scope=row>{escape(row[0])}</th>"
        + "".join(f"<td{' class=noise' if cell.endswith('~') else ''}>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>\n"
        for row in rows
    )
    text = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(title)}</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem }}
.wide {{ overflow-x: auto }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums }}
th, td {{ border-bottom: 1px solid #8888; padding: .3rem .8rem; text-align: right; white-space: nowrap }}
th:first-child {{ text-align: left }}
.noise {{ opacity: .6 }}
</style></head><body>
<h1>{escape(title)}</h1>
<div class="wide" tabindex="0"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{body}</tbody></table></div>
{text}</body></html>
"""
