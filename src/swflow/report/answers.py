"""Answers in a sentence or two, made of the metrics: what a study's runs say about its question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swflow.names import log_of, recipe_of
from swflow.report.plan import Study
from swflow.report.units import duration, percent

#: Recipe to scheduler to the mean waits of its replicates, seconds.
Waits = Mapping[str, Mapping[str, Sequence[float]]]


def answer(study: Study, waits: Waits, idle: Sequence[str]) -> str:
    """
    Say in a sentence or two what a study found.

    Parameters
    ----------
    study : Study
        The study.
    waits : mapping
        Recipe to scheduler to the mean wait (s) of each replicate.
    idle : sequence of str
        Schedulers that never backfill: these are what others are measured against.

    Returns
    -------
    str
        Plain text; empty if it has no runs.

    Examples
    --------
    >>> study = Study("mine", "?", [{"run": "A/fcfs", "workload": "A", "scheduler": "fcfs"},
    ...                             {"run": "A/easy", "workload": "A", "scheduler": "easy"}])
    >>> answer(study, {"A": {"fcfs": [7200.0], "easy": [3600.0]}}, ["fcfs"])
    'easy shortens the mean wait of fcfs on A from 2 h to 1 h (−50 %).'
    """
    means = {
        recipe: {
            scheduler: sum(waits[recipe][scheduler]) / len(waits[recipe][scheduler])
            for scheduler in study.schedulers
            if waits.get(recipe, {}).get(scheduler)
            and any(recipe_of(run["workload"]) == recipe and run["scheduler"] == scheduler for run in study.runs)
        }
        for recipe in study.recipes
    }
    several = {recipe: row for recipe, row in means.items() if len(row) > 1}
    if several:
        return _of_schedulers(study, several, idle)
    known = {recipe: row for recipe, row in means.items() if row}
    if len(known) > 1:
        return _of_workloads(study, known, waits)
    for recipe, row in known.items():
        scheduler, mean = next(iter(row.items()))
        return f"Under {scheduler}, the mean wait on {recipe} is {duration(mean)}."
    return ""


def _of_schedulers(study: Study, means: Mapping[str, Mapping[str, float]], idle: Sequence[str]) -> str:
    """Compare schedulers on equal workloads."""
    order = [scheduler for scheduler in study.schedulers if any(scheduler in row for row in means.values())]
    base = next((name for name in order if name in idle), next((name for name in order if name != "log"), order[0]))
    rows = {recipe: row for recipe, row in means.items() if base in row}
    if not rows:
        base, rows = order[0], {recipe: row for recipe, row in means.items() if order[0] in row}
    most = max(len(row) for row in rows.values())  # where all are compared, not where there are but two of them
    rows = {recipe: row for recipe, row in rows.items() if len(row) == most}
    best = {recipe: min(row, key=lambda name, row=row: (row[name], order.index(name))) for recipe, row in rows.items()}  # type: ignore[misc]
    wins = Counter(name for name in best.values() if name != base)
    if not wins:
        others = (
            "no other scheduler waits" if len(order) > 2 else f"{next(n for n in order if n != base)} does not wait"
        )
        return f"On {_all(len(rows))} {others} less than {base}."
    winner = min(wins, key=lambda name: (-wins[name], order.index(name)))
    recipe = next(recipe for recipe, name in best.items() if name == winner)
    before, after = rows[recipe][base], rows[recipe][winner]
    text = (
        f"{winner} shortens the mean wait of {base} on {recipe} from {duration(before)} to {duration(after)}"
        + (f" ({percent(after / before - 1)})" if before > 0 else "")
        + "."
    )
    if len(rows) > 1:
        both = [row for row in rows.values() if winner in row and row[base] > 0]
        changes = sorted(row[winner] / row[base] - 1 for row in both)
        count = wins[winner]
        where = f"all {len(rows)} workloads" if count == len(rows) else f"{count} of {len(rows)} workloads"
        text += f" It has the shortest mean wait on {where}"
        if len(changes) > 1:
            text += f"; the changes lie between {_signed(changes[0])} and {_signed(changes[-1])}"
        text += "."
    return text


def _of_workloads(study: Study, means: Mapping[str, Mapping[str, float]], waits: Waits) -> str:
    """Compare workloads under the same scheduler: those with steps with their log."""
    sentences = []
    for log in study.logs:
        recipes = [recipe for recipe in means if log_of(recipe) == log]
        if len(recipes) < 2:
            continue
        source = min(recipes, key=lambda recipe: (recipe.count("+"), recipes.index(recipe)))
        scheduler, mean = next(iter(means[source].items()))
        parts = []
        for recipe in recipes:
            if recipe != source and scheduler in means[recipe]:
                draws = waits[recipe][scheduler]
                change = f" ({_signed(means[recipe][scheduler] / mean - 1)})" if mean > 0 else ""
                many = f" over {len(draws)} draws" if len(draws) > 1 else ""
                parts.append(f"{duration(means[recipe][scheduler])}{change} on {recipe[len(log) :]}{many}")
        if parts:
            sentences.append(f"Under {scheduler}, the mean wait on {source} is {duration(mean)}; {_and(parts[:4])}.")
    more = len(sentences) - 2
    if more > 0:
        sentences[2:] = [f"{more} more {'log follows' if more == 1 else 'logs follow'} below."]
    if sentences:
        return " ".join(sentences)
    order = sorted(means, key=lambda recipe: next(iter(means[recipe].values())))
    (first, low), (last, high) = ((recipe, next(iter(means[recipe].values()))) for recipe in (order[0], order[-1]))
    return f"The mean wait lies between {duration(low)} on {first} and {duration(high)} on {last}."


class WhatIf(NamedTuple):
    """A variant of a what-if: its name, the verdict, and the mean waits (s) of the base and its own."""

    variant: str
    verdict: str
    base: float
    value: float


def what_if(tables: Mapping[str, Sequence[WhatIf]]) -> str:
    """
    Say which variant shortens the mean wait most, and where.

    Parameters
    ----------
    tables : mapping
        Workload to its variants, the base (whose verdict is ``base``) among them.

    Examples
    --------
    >>> rows = [WhatIf("easy", "base", 7200, 7200), WhatIf("easy, processors +20%", "lower", 7200, 3600)]
    >>> what_if({"A": rows})
    'What if: easy, processors +20% shortens the mean wait of easy on A from 2 h to 1 h (−50 %).'
    >>> what_if({"A": rows[:1] + [WhatIf("sjf", "noise", 7200, 7100)]})
    'What if: nothing shortens the mean wait of easy on A by more than chance may.'
    """
    sentences = []
    for workload, rows in tables.items():
        base = next(row.variant for row in rows if row.verdict == "base")
        best = min(rows, key=lambda row: row.value)
        lower = [row for row in rows if row.verdict == "lower"]
        few = best.verdict == "too few weeks" and best.value < best.base
        if lower or few:
            best = min(lower, key=lambda row: row.value) if lower else best
            sentences.append(
                f"{best.variant} shortens the mean wait of {base} on {workload} from {duration(best.base)} to "
                f"{duration(best.value)} ({percent(best.value / best.base - 1)})"
                + (", of too few weeks to be sure" if few else "")
            )
        else:
            sentences.append(f"nothing shortens the mean wait of {base} on {workload} by more than chance may")
    more = len(sentences) - 2
    sentences[2:] = [f"{more} more {'table follows' if more == 1 else 'tables follow'} below"] if more > 0 else []
    return f"What if: {'; '.join(sentences)}." if sentences else ""


def conventions(decisive: Mapping[str, int], inside: int, count: int) -> str:
    """
    Say which of the conventions that papers leave open decides, and how far they explain what is published.

    Parameters
    ----------
    decisive : mapping
        Convention to the number of figures that it moves furthest.
    inside : int
        How many published values lie in the range of ours under all conventions.
    count : int
        How many published values there are.

    Examples
    --------
    >>> conventions({"ties": 1, "flurries": 5}, 2, 9)
    'Ours is moved furthest by flurries for 5 of 9 published values and by ties for 1. 2 of them lie in its range.'
    >>> conventions({}, 0, 9)
    'No convention moves ours for any of 9 published values. None of them lie in its range.'
    """
    order = sorted(decisive, key=lambda name: (-decisive[name], name))
    of_all = f" of {count:,} published values"
    parts = [f"by {name} for {decisive[name]:,}{'' if place else of_all}" for place, name in enumerate(order)]
    found = f"Ours is moved furthest {_and(parts)}." if parts else f"No convention moves ours for any{of_all}."
    return f"{found} {f'{inside:,}' if inside else 'None'} of them lie in its range." if count else ""


def reproduced(compared: int, near: Sequence[int]) -> str:
    """Say how many of the compared values are within 1, 5 and 10 % of the published ones, each with the former."""
    if not compared:
        return ""
    values = "The one published value" if compared == 1 else f"Of {compared:,} published values"
    if compared == 1:
        return f"{values} is {'reproduced within 10 %' if near[2] else 'further off than 10 %'}."
    return f"{values}, {near[1]:,} are reproduced within 5 % and {near[2]:,} within 10 %."


def _signed(change: float) -> str:
    return percent(change) if change < 0 else f"+{percent(change)}"


def _all(count: int) -> str:
    return "the one workload" if count == 1 else f"all {count} workloads"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
