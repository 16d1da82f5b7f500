"""Headlines: sentences that answer a study's title, and the comparison behind each statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from swflow.analysis.verdicts import BETTER, EQUAL, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, WORSE
from swflow.names import log_of, recipe_of
from swflow.report.plan import Study
from swflow.report.units import duration, percent

#: Recipe to scheduler to the mean waits of its replicates, seconds.
Waits = Mapping[str, Mapping[str, Sequence[float]]]

#: The value of `Study.contrast` for comparing workloads under one scheduler.
WORKLOAD = "workload"

#: The verdict on a pair of runs that is not in table ``comparisons``.
NOT_TESTED = "not tested"

#: The beginning of the sentence that compares simulations with the record.
RECORDED = "The recorded mean wait"

_MOST_PAIRS = 3  # with a separate sentence


class Verdict(NamedTuple):
    """
    A row of view ``differences`` for the mean wait (s) of two runs, variant minus base, with the 95 % interval.

    ``word`` is the verdict by the interval of this pair alone, ``corrected`` the one that is corrected for the number
    of comparisons, if it is. ``blocks`` is the number of weeks or replicates (``basis``).
    """

    difference: float
    low: float | None
    high: float | None
    word: str
    corrected: str | None
    basis: str
    blocks: int


class Fidelity(NamedTuple):
    """The mean waits (s) of jobs in the record and in a run; ``jobs`` is their number if they are not all jobs."""

    recorded: float
    simulated: float
    jobs: int | None = None


#: Looks up the verdict of a pair of runs or recipes, ``workload/scheduler``; None if it was not tested.
Lookup = Callable[[str, str], Verdict | None]


@dataclass(frozen=True)
class Claim:
    """
    A statement about the mean waits (s) of two runs, or of two recipes with replicates: a variant and its base.

    ``before`` is the mean wait of the base, ``after`` that of the variant. Without a verdict, it was not tested.
    """

    variant: str
    base: str
    before: float
    after: float
    verdict: Verdict | None

    @property
    def word(self) -> str:
        """The verdict that the statement must follow: the corrected one, if there is one."""
        return self.verdict.corrected or self.verdict.word if self.verdict else NOT_TESTED

    @property
    def change(self) -> str:
        """The change in percent of the base with its interval, or the two waits if the base does not wait."""
        if not self.before > 0:
            return f"{duration(self.before)} to {duration(self.after)}"
        text = _signed(self.after / self.before - 1)
        if self.verdict is None or self.verdict.low is None or self.verdict.high is None:
            return text
        low, high = (bound / self.before for bound in (self.verdict.low, self.verdict.high))
        text += f", 95 % interval {_signed(low)} to {_signed(high)}"
        if self.word == NOT_DISTINGUISHABLE and self.verdict.word != NOT_DISTINGUISHABLE:
            text += " before the correction for the number of comparisons"
        return text


#: The columns of the list of headlines.
COLUMNS = (
    "study", "title", "headline", "variant", "base", "variant_wait_time", "base_wait_time", "difference", "low", "high",
    "verdict", "verdict_holm", "basis", "blocks",
)  # fmt: skip


def listed(study: Study, text: str, claims: Sequence[Claim]) -> list[tuple[Any, ...]]:
    """Return the rows of the list of headlines (`COLUMNS`) for a study: one for each claim, or one without a claim."""
    rows = []
    for claim in claims:
        found = claim.verdict or Verdict(claim.after - claim.before, None, None, NOT_TESTED, NOT_TESTED, "", 0)
        rows.append((study.name, study.title, text, claim.variant, claim.base, claim.after, claim.before, *found))
    return rows or [(study.name, study.title, text, *[None] * (len(COLUMNS) - 3))]


class Headline(NamedTuple):
    """The answer of a study: its text, and the claims behind it."""

    text: str
    claims: Sequence[Claim]


def answer(
    study: Study,
    waits: Waits,
    idle: Sequence[str],
    options: Mapping[str, Mapping[str, Any]] | None = None,
    lookup: Lookup = lambda variant, base: None,
    recorded: Mapping[str, Fidelity] | None = None,
) -> Headline:
    """
    Answer the title of a study from the mean waits of its runs and the verdicts on them.

    Schedulers that differ in one option are compared first: in the option named as the study's ``contrast``, else in
    backfilling, else in the option that distinguishes most of them. A study with one scheduler compares workloads. A
    wait is called shorter or longer only if the corrected verdict supports it. ``idle`` are schedulers that never
    backfill, which serve as bases; ``options`` are those of the schedulers.

    Examples
    --------
    >>> study = Study("mine", "?", [{"run": "A/fcfs", "workload": "A", "scheduler": "fcfs"},
    ...                             {"run": "A/easy", "workload": "A", "scheduler": "easy"}])
    >>> waits = {"A": {"fcfs": [7200.0], "easy": [3600.0]}}
    >>> answer(study, waits, ["fcfs"]).text
    'On A, the mean wait is 1 h under easy and 2 h under fcfs (−50 %); not tested.'
    >>> sure = Verdict(-3600.0, -5400.0, -1800.0, BETTER, BETTER, "weeks", 50)
    >>> answer(study, waits, ["fcfs"], lookup=lambda variant, base: sure).text
    'easy shortens the mean wait of fcfs on A from 2 h to 1 h (−50 %, 95 % interval −75 % to −25 %).'
    """
    chosen = {(recipe_of(run["workload"]), run["scheduler"]) for run in study.runs}
    means: dict[str, dict[str, float]] = {}
    for recipe, scheduler in product(study.recipes, study.schedulers):
        found = waits.get(recipe, {}).get(scheduler)
        if found and (recipe, scheduler) in chosen:
            means.setdefault(recipe, {})[scheduler] = sum(found) / len(found)
    headline = Headline("", [])
    if study.contrast != WORKLOAD:
        headline = _of_schedulers(study, means, idle, options or {}, lookup)
    if not headline.text:
        headline = _of_workloads(study, means, lookup)
    return Headline(" ".join(filter(None, [_record(means, recorded or {}), headline.text])), headline.claims)


def _record(means: Mapping[str, Mapping[str, float]], recorded: Mapping[str, Fidelity]) -> str:
    """Compare the recorded mean wait of the first workload with the first simulated scheduler."""
    for recipe, row in means.items():
        simulated = next((name for name in row if name != "log"), None)
        if "log" in row and simulated:
            found = recorded.get(f"{recipe}/{simulated}", Fidelity(row["log"], row[simulated]))
            notes = [f"{percent(found.simulated / found.recorded)} of the record"] if found.recorded > 0 else []
            notes += [f"over the {found.jobs:,} jobs in both"] if found.jobs is not None else []
            return (
                f"{RECORDED} on {recipe} is {duration(found.recorded)}; "
                f"simulated under {simulated} it is {duration(found.simulated)}"
                + (f" ({', '.join(notes)})." if notes else ".")
            )
    return ""


def contrasts(study: Study, idle: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """
    Return the compared schedulers of a study: pairs of a scheduler and its base.

    Examples
    --------
    >>> names = ["fcfs", "easy", "sjbf", "wfp3"]
    >>> study = Study("mine", "?", [{"run": f"A/{name}", "workload": "A", "scheduler": name} for name in names])
    >>> options = {"fcfs": {}, "easy": {"backfill": "easy"}, "sjbf": {"backfill": "easy", "backfill_order": "sjf"},
    ...            "wfp3": {"backfill": "easy", "order": "wfp3"}}
    >>> contrasts(study, ["fcfs"], options)
    [('easy', 'fcfs')]
    """
    names = [name for name in study.schedulers if name != "log"]
    names.sort(key=lambda name: name not in idle)  # stable sort: schedulers without backfilling become bases

    pairs: dict[str, list[tuple[str, str]]] = {}
    for place, name in enumerate(names):
        singles: dict[str, str] = {}
        for base in names[:place]:
            first, second = options.get(name, {}), options.get(base, {})
            keys = [key for key in {**first, **second} if first.get(key) != second.get(key)]
            if len(keys) == 1:
                singles.setdefault(keys[0], base)
        for key, base in singles.items():
            pairs.setdefault(key, []).append((name, base))
    if study.contrast in pairs:
        return pairs[study.contrast]
    backfilling = [pair for pair in pairs.get("backfill", ()) if pair[1] in idle]
    if backfilling:
        return backfilling
    if pairs:
        return max(pairs.values(), key=len)
    return [(name, names[0]) for name in names[1:]]


def _of_schedulers(
    study: Study,
    means: Mapping[str, Mapping[str, float]],
    idle: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    lookup: Lookup,
) -> Headline:
    """Compare schedulers on equal workloads."""
    sentences: list[str] = []
    claims: list[Claim] = []
    for name, base in contrasts(study, idle, options):
        rows = {recipe: row for recipe, row in means.items() if name in row and base in row}
        found = []
        for recipe, row in rows.items():
            runs = f"{recipe}/{name}", f"{recipe}/{base}"
            found.append(Claim(*runs, row[base], row[name], lookup(*runs)))
        claims += found
        if len(found) == 1:
            sentences.append(_of_pair(found[0], name, base, *rows))
        elif found:
            sentences.append(f"{name} against {base}: {_counted(found)}.")
    return Headline(_first_few(sentences, "further pair of schedulers", "further pairs of schedulers"), claims)


def _of_workloads(study: Study, means: Mapping[str, Mapping[str, float]], lookup: Lookup) -> Headline:
    """Compare workloads under the same scheduler: each workload with steps is compared with its log."""
    sentences: list[str] = []
    claims: list[Claim] = []
    for scheduler in study.schedulers:
        known = {recipe: row[scheduler] for recipe, row in means.items() if scheduler in row}
        found: list[tuple[str, str, Claim]] = []
        for log in study.logs:
            recipes = [recipe for recipe in known if log_of(recipe) == log]
            source = min(recipes, key=lambda recipe: (recipe.count("+"), recipes.index(recipe)), default="")
            for recipe in recipes:
                if recipe != source:
                    names = f"{recipe}/{scheduler}", f"{source}/{scheduler}"
                    found.append((recipe, source, Claim(*names, known[source], known[recipe], lookup(*names))))
        claims += [claim for *_, claim in found]
        if len(found) > _MOST_PAIRS:
            whole = _counted([claim for *_, claim in found])
            derived = all(recipe.startswith(f"{source}+") for recipe, source, _ in found)
            pairs = "with steps against their source" if derived else "against the one of their log with fewest steps"
            sentences.append(f"Under {scheduler}, workloads {pairs}: {whole}.")
        else:
            sentences += [_of_workload(claim, recipe, source, scheduler) for recipe, source, claim in found]
    if sentences:
        return Headline(_first_few(sentences, "further comparison", "further comparisons"), claims)
    every = [(mean, recipe, scheduler) for recipe, row in means.items() for scheduler, mean in row.items()]
    if not every:
        return Headline("", [])
    (low, first, under), (high, last, other) = min(every), max(every)
    if len(every) == 1:
        return Headline(f"Under {under}, the mean wait on {first} is {duration(low)}.", [])
    text = f"The mean wait lies between {duration(low)} on {first} ({under}) and {duration(high)} on {last} ({other})."
    return Headline(text, [])


def _of_pair(claim: Claim, name: str, base: str, where: str) -> str:
    """Return a sentence about two schedulers on a workload."""
    before, after = duration(claim.before), duration(claim.after)
    if claim.word in (BETTER, WORSE):
        verb = "shortens" if claim.word == BETTER else "lengthens"
        return f"{name} {verb} the mean wait of {base} on {where} from {before} to {after} ({claim.change})."
    if claim.word == EQUAL:
        return f"{name} and {base} have the same mean wait on {where}, {before}."
    text = f"On {where}, the mean wait is {after} under {name} and {before} under {base} ({claim.change}); "
    return text + _UNDECIDED[claim.word] + "."


def _of_workload(claim: Claim, recipe: str, source: str, scheduler: str) -> str:
    """Return a sentence about two workloads under a scheduler."""
    before, after = duration(claim.before), duration(claim.after)
    text = f"Under {scheduler}, the mean wait is {after} on {recipe} and {before} on {source} ({claim.change})"
    words = {BETTER: "it is shorter", WORSE: "it is longer", EQUAL: "they are equal", **_UNDECIDED}
    return f"{text}; {words[claim.word]}."


_UNDECIDED = {
    NOT_DISTINGUISHABLE: "the two are not distinguishable",
    TOO_FEW_WEEKS: "the log has too few weeks to distinguish them",
    NOT_TESTED: "not tested",
}


def _counted(claims: Sequence[Claim]) -> str:
    """Return on how many workloads a wait is shorter, longer or neither, with the range of the changes."""
    words = {
        BETTER: "a shorter mean wait on {}", WORSE: "a longer mean wait on {}",
        NOT_DISTINGUISHABLE: "not distinguishable on {}",
        EQUAL: "equal on {}", TOO_FEW_WEEKS: "too few weeks to tell on {}", NOT_TESTED: "not tested on {}",
    }  # fmt: skip
    parts: list[str] = []
    for word, text in words.items():
        some = [claim for claim in claims if claim.word == word]
        if some:
            number = f"all {len(claims)}" if len(some) == len(claims) else f"{len(some)} of {len(claims)}"
            number += "" if parts else " workloads"
            changes = sorted(claim.after / claim.before - 1 for claim in some if claim.before > 0)
            ends = dict.fromkeys(_signed(change) for change in (changes[:1] + changes[-1:]))
            spread = f" ({' to '.join(ends)})" if ends and word in (BETTER, WORSE) else ""
            parts.append(text.format(number) + spread)
    return _and(parts)


def _first_few(sentences: Sequence[str], one: str, many: str, table: str = "comparisons") -> str:
    more = len(sentences) - _MOST_PAIRS
    rest = [f"{more} {one if more == 1 else many}: see table {table}."] if more > 0 else []
    return " ".join([*sentences[:_MOST_PAIRS], *rest])


class WhatIf(NamedTuple):
    """A variant of a what-if: the mean waits (s) of the base and of the variant, the verdict, and the 95 % interval."""

    variant: str
    verdict: str
    base: float
    value: float
    low: float | None = None
    high: float | None = None
    weeks: int = 0


def what_if(tables: Mapping[str, Sequence[WhatIf]]) -> Headline:
    """
    Return a sentence per workload on the variant that shortens the mean wait most.

    ``tables`` maps workloads to their variants, including the base (with verdict ``base``).

    Examples
    --------
    >>> rows = [WhatIf("easy", "base", 7200, 7200), WhatIf("big", BETTER, 7200, 3600, -5400, -1800)]
    >>> what_if({"A": rows}).text
    'What if: big shortens the mean wait of easy on A from 2 h to 1 h (−50 %, 95 % interval −75 % to −25 %).'
    >>> what_if({"A": rows[:1] + [WhatIf("sjf", NOT_DISTINGUISHABLE, 7200, 7100, -300, 100)]}).text
    'What if: no variant has a mean wait on A that is distinguishable from that of easy.'
    >>> what_if({"A": rows[:1] + [WhatIf("sjf", TOO_FEW_WEEKS, 7200, 3600)]}).text
    'What if: A has too few weeks to tell its variants from easy.'
    """
    sentences = []
    claims = []
    for workload, rows in tables.items():
        base = next(row.variant for row in rows if row.verdict == "base")
        found = {
            row.variant: Claim(
                f"{workload}: {row.variant}", f"{workload}: {base}", row.base, row.value,
                Verdict(row.value - row.base, row.low, row.high, row.verdict, None, "weeks", row.weeks),
            )
            for row in rows
            if row.verdict != "base"
        }  # fmt: skip
        words = {claim.word for claim in found.values()}
        decided = [row for row in rows if row.verdict in (BETTER, WORSE)]
        if decided:
            best = min(decided, key=lambda row: row.value)
            sentences.append(_of_pair(found[best.variant], best.variant, base, workload).removesuffix("."))
            claims.append(found[best.variant])
            continue
        claims += found.values()
        if TOO_FEW_WEEKS in words:
            sentences.append(f"{workload} has too few weeks to tell its variants from {base}")
        elif NOT_DISTINGUISHABLE in words:
            sentences.append(f"no variant has a mean wait on {workload} that is distinguishable from that of {base}")
        elif words:
            sentences.append(f"all variants have the mean wait of {base} on {workload}")
    more = len(sentences) - 2
    sentences[2:] = [f"{more} more {'table follows' if more == 1 else 'tables follow'} below"] if more > 0 else []
    return Headline(f"What if: {'; '.join(sentences)}." if sentences else "", claims)


class Ranked(NamedTuple):
    """A scheduler in a ranking, its mean wait (s), and the verdict against the one of rank 1; ``best`` for that one."""

    scheduler: str
    wait: float
    verdict: str


def ranking(tables: Mapping[str, Sequence[Ranked]]) -> str:
    """
    Name the scheduler of rank 1 on each workload, and count the others that are not distinguishable from it.

    ``tables`` maps workloads to their schedulers by rank.

    Examples
    --------
    >>> rows = [Ranked("sjf", 3600, "best"), Ranked("easy", 7200, NOT_DISTINGUISHABLE), Ranked("fcfs", 9000, "worse")]
    >>> ranking({"A": rows})
    'On A, sjf has the shortest mean wait of 3 schedulers, 1 h, but is not distinguishable from 1 of the other 2.'
    >>> ranking({"A": rows[:1] + [Ranked("fcfs", 9000, TOO_FEW_WEEKS)]})
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
            sum(row.verdict in words for row in others) for words in ((NOT_DISTINGUISHABLE, EQUAL), (TOO_FEW_WEEKS,))
        )
        told = f", but is not distinguishable from {_of_others(same, len(others))}" if same else ""
        if unknown:
            told += f"; the log has too few weeks to compare it with {_of_others(unknown, len(others))}"
        told = told or f", and differs significantly from {_of_others(len(others), len(others))}"
        sentences.append(f"{text} of {len(rows)} schedulers, {duration(best.wait)}{told}.")
    first = [rows[0].scheduler for rows in tables.values()]
    if len(first) > _MOST_PAIRS:
        most = max(first, key=first.count)
        sentences.insert(0, f"{most} has rank 1 on {first.count(most)} of {len(first)} workloads.")
    return _first_few(sentences, "further workload", "further workloads", "leaderboard")


def _of_others(count: int, others: int) -> str:
    rest = "the other" if others == 1 else f"the other {others}"
    return rest if count == others else f"{count} of {rest}"


def conventions(decisive: Mapping[str, int], inside: int, count: int) -> str:
    """
    Return which open convention matters most, and how many published values the conventions explain.

    ``decisive`` maps conventions to the number of values on which they have the largest effect. Of ``count`` published
    values, ``inside`` are within the range of ours under all conventions.

    Examples
    --------
    >>> conventions({"ties": 1, "flurries": 5}, 2, 9)
    'Largest effect on ours: flurries for 5 of 9 published values, ties for 1. 2 of the 9 lie within the range of ours.'
    >>> conventions({}, 0, 9)
    'No convention changes ours for any of 9 published values. 0 of the 9 lie within the range of ours.'
    """
    order = sorted(decisive, key=lambda name: (-decisive[name], name))
    of_all = f" of {count:,} published values"
    parts = [f"{name} for {decisive[name]:,}{'' if place else of_all}" for place, name in enumerate(order)]
    found = f"Largest effect on ours: {', '.join(parts)}."
    if not parts:
        found = f"No convention changes ours for any{of_all}."
    return f"{found} {inside:,} of the {count:,} lie within the range of ours." if count else ""


def reproduced(percents: Sequence[int]) -> str:
    """Return how many of our values are within 5 % and 10 % of the published ones, from the percents of each."""
    near, nearly = (sum(percent <= bound for percent in percents) for bound in (5, 10))
    if len(percents) == 1:
        return f"The one published value is {'reproduced within 10 %' if nearly else 'further off than 10 %'}."
    text = f"Of {len(percents):,} published values, {near:,} are reproduced within 5 % and {nearly:,} within 10 %."
    return text if percents else ""


def _signed(change: float) -> str:
    """
    Return a change with its sign in percent; a value that grows more than tenfold as a multiple.

    Examples
    --------
    >>> _signed(-0.5), _signed(0.072), _signed(42506.93)
    ('−50 %', '+7.2 %', '42,508 times')
    """
    if change > 9:
        return f"{change + 1:,.0f} times"
    return percent(change) if change < 0 else f"+{percent(change)}"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
