"""Sentences of the report on what-ifs, rankings, conventions and reproduced values."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from swflow.analysis.verdicts import (
    BETTER,
    DEPENDENT_WEEKS,
    EQUAL,
    NOT_DISTINGUISHABLE,
    SATURATED,
    TOO_FEW_WEEKS,
    WORSE,
)
from swflow.phrases import duration
from swflow.report.answers import MOST_PAIRS, Claim, Headline, Verdict, of_pair, strongest_first


class WhatIf(NamedTuple):
    """
    A variant of a what-if: the mean waits (s) of the base and of the variant, the verdict, and the 95 % interval.

    ``corrected`` is the verdict after the correction for the number of variants.
    """

    variant: str
    verdict: str
    base: float
    value: float
    low: float | None = None
    high: float | None = None
    weeks: int = 0
    freedom: float | None = None
    corrected: str | None = None


def what_if(tables: Mapping[str, Sequence[WhatIf]]) -> Headline:
    """
    Return a sentence per workload on the variant that shortens the mean wait most.

    ``tables`` maps workloads to their variants, including the base (with verdict ``base``).

    Examples
    --------
    >>> rows = [WhatIf("easy", "base", 7200, 7200), WhatIf("big", BETTER, 7200, 3600, -5400, -1800)]
    >>> what_if({"A": rows}).text
    'big shortens the mean wait on A by 50 % (95 % interval 25 to 75 %) compared with easy, from 2 h to 1 h.'
    >>> what_if({"A": rows[:1] + [WhatIf("sjf", NOT_DISTINGUISHABLE, 7200, 7100, -300, 100)]}).text
    'sjf and easy are not distinguishable on A (−1.4 %, 95 % interval −4.2 % to +1.4 %), from 2 h to 1 h 58 min.'
    """
    found = []
    for workload, rows in tables.items():
        base = next(row.variant for row in rows if row.verdict == "base")
        claims = [
            Claim(
                f"{workload}: {row.variant}", f"{workload}: {base}", row.base, row.value,
                Verdict(
                    row.value - row.base, row.low, row.high, row.verdict, row.corrected, "weeks", row.weeks, row.freedom
                ),
            )
            for row in rows
            if row.verdict != "base"
        ]  # fmt: skip
        if not claims:
            continue
        decided = [claim for claim in claims if claim.word in (BETTER, WORSE)]
        best = min(decided or claims, key=lambda claim: claim.after)
        # A variant is called after its scheduler and what it changes.
        variant = best.variant.removeprefix(f"{workload}: ").replace(", ", " with ", 1)
        text = of_pair([best], variant, base, f"on {workload}")
        found.append(([best] if decided else claims, text))
    return strongest_first(found)


class Ranked(NamedTuple):
    """A scheduler in a ranking, its mean wait (s), and the verdict against the one of rank 1; ``best`` for that one."""

    scheduler: str
    wait: float
    verdict: str


def ranking(tables: Mapping[str, Sequence[Ranked]]) -> list[str]:
    """
    Name the scheduler of rank 1 on each workload, and count the others that are not distinguishable from it.

    ``tables`` maps workloads to their schedulers by rank.

    Examples
    --------
    >>> rows = [Ranked("sjf", 3600, "best"), Ranked("easy", 7200, NOT_DISTINGUISHABLE), Ranked("fcfs", 9000, "worse")]
    >>> ranking({"A": rows})
    ['On A, sjf has the shortest mean wait of 3 schedulers, 1 h, but is not distinguishable from 1 of the other 2.']
    >>> ranking({"A": rows[:1] + [Ranked("fcfs", 9000, TOO_FEW_WEEKS)]})[0]
    'On A, sjf has the shortest mean wait of 2 schedulers, 1 h; the log has too few weeks to compare it with the other.'
    """
    sentences = []
    for workload, rows in tables.items():
        best, others = rows[0], rows[1:]
        text = f"On {workload}, {best.scheduler} has the shortest mean wait"
        if not others:
            sentences.append(f"{text}, {duration(best.wait)}.")
            continue
        same, unknown = (
            sum(row.verdict in words for row in others)
            for words in ((NOT_DISTINGUISHABLE, DEPENDENT_WEEKS, SATURATED, EQUAL), (TOO_FEW_WEEKS,))
        )
        told = f", but is not distinguishable from {_of_others(same, len(others))}" if same else ""
        if unknown:
            told += f"; the log has too few weeks to compare it with {_of_others(unknown, len(others))}"
        told = told or f", and is distinguishable from {_of_others(len(others), len(others))}"
        sentences.append(f"{text} of {len(rows)} schedulers, {duration(best.wait)}{told}.")
    first = [rows[0].scheduler for rows in tables.values()]
    if len(first) > MOST_PAIRS:
        most = max(first, key=first.count)
        sentences.insert(0, f"{most} has rank 1 on {first.count(most)} of {len(first)} workloads.")
    more = len(sentences) - MOST_PAIRS
    if more > 0:
        sentences[MOST_PAIRS:] = [f"{more} further workload{'s' * (more > 1)}: see table leaderboard."]
    return sentences


def _of_others(count: int, others: int) -> str:
    rest = "the other" if others == 1 else f"the other {others}"
    return rest if count == others else f"{count} of {rest}"


def conventions(decisive: Mapping[str, int], inside: int, count: int) -> str:
    """
    Return which open convention matters most, and how many published values the conventions explain.

    ``decisive`` maps conventions to the number of values on which they have the largest effect. Of ``count`` published
    values, ``inside`` are within the range of swflow's values under all conventions.

    Examples
    --------
    >>> conventions({"ties": 1, "flurries": 5}, 2, 9)
    'Largest effect: flurries for 5 of 9 published values, ties for 1. 2 of the 9 lie within the simulated range.'
    >>> conventions({}, 0, 9)
    'No convention has an effect on any of 9 published values. 0 of the 9 lie within the simulated range.'
    """
    order = sorted(decisive, key=lambda name: (-decisive[name], name))
    of_all = f" of {count:,} published values"
    parts = [f"{name} for {decisive[name]:,}{'' if place else of_all}" for place, name in enumerate(order)]
    found = f"Largest effect: {', '.join(parts)}."
    if not parts:
        found = f"No convention has an effect on any{of_all}."
    return f"{found} {inside:,} of the {count:,} lie within the simulated range." if count else ""


def reproduced(percents: Sequence[int]) -> str:
    """Return how many of our values are within 5 % and 10 % of the published ones, from the percents of each."""
    near, nearly = (sum(percent <= bound for percent in percents) for bound in (5, 10))
    if len(percents) == 1:
        return f"The one published value is {'reproduced within 10 %' if nearly else 'further off than 10 %'}."
    text = f"Of {len(percents):,} published values, {near:,} are reproduced within 5 % and {nearly:,} within 10 %."
    return text if percents else ""
