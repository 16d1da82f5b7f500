"""Headlines: sentences that answer a study's title, and the comparison behind each statement."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

from swflow.analysis.intervals import FEWEST_WEEKS
from swflow.analysis.verdicts import (
    BETTER,
    CANNOT_TELL,
    DIRECTIONS,
    EQUAL,
    NOT_DISTINGUISHABLE,
    TOO_FEW_WEEKS,
    WITHOUT_DIFFERENCE,
    WORSE,
)
from swflow.names import log_of, recipe_of
from swflow.phrases import between, duration, percent, signed
from swflow.phrases import listed as joined
from swflow.report.plan import Study
from swflow.scheduling.option_kinds import Unchecked
from swflow.studies.asked import WORKLOAD, scheduler_pairs
from swflow.studies.deciding import MOST_BLOCKS, blocks_to_decide

#: Recipe to scheduler to the mean waits of its replicates, seconds.
Waits = Mapping[str, Mapping[str, Sequence[float]]]

#: The verdict on a pair of runs that is not in table ``comparisons``.
NOT_TESTED = "not tested"

MOST_PAIRS = 3  # pairs with a separate sentence


class Verdict(NamedTuple):
    """
    A row of view ``differences`` for the mean wait (s) of two runs, variant minus base, with the 95 % interval.

    ``word`` is the verdict by the interval of this pair alone, ``corrected`` the one that is corrected for the number
    of comparisons, if it is. ``blocks`` is the number of weeks or replicates (``basis``), and
    ``freedom`` the degrees of freedom of the interval, if there is one.
    """

    difference: float
    low: float | None
    high: float | None
    word: str
    corrected: str | None
    basis: str
    blocks: int
    freedom: float | None


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
    def change(self) -> float | None:
        """The change as a share of the base; None if the base does not wait."""
        return self.after / self.before - 1 if self.before > 0 else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the change; None if there is none, or the base does not wait."""
        if self.verdict is None or self.verdict.low is None or self.verdict.high is None or not self.before > 0:
            return None
        return self.verdict.low / self.before, self.verdict.high / self.before

    @property
    def strength(self) -> float:
        """The distance from 0 of the interval of the logarithm of the ratio; 0 without a decided verdict."""
        if self.word not in (BETTER, WORSE) or self.interval is None:
            return 0.0
        return min(abs(math.log1p(max(end, -1 + 1e-9))) for end in self.interval)

    @property
    def blocks_needed(self) -> int | None:
        """The weeks or replicates that decide a change as large as the observed one; None if unknown or too many."""
        found = self.verdict
        if self.word != NOT_DISTINGUISHABLE or found is None:
            return None
        return blocks_to_decide(self.before, found.difference, found.low, found.high, found.blocks, found.freedom)


#: The columns of the list of headlines.
COLUMNS = (
    "study", "title", "headline", "variant", "base", "variant_wait_time", "base_wait_time", "difference", "low", "high",
    "verdict", "verdict_holm", "basis", "blocks",
)  # fmt: skip


class Headline(NamedTuple):
    """The answer of a study: its sentences, the strongest first, the claims behind them, and the record compared."""

    sentences: Sequence[str]
    claims: Sequence[Claim] = ()
    record: str = ""

    @property
    def text(self) -> str:
        """The whole answer."""
        return " ".join(filter(None, [self.record, *self.sentences]))

    @property
    def strength(self) -> float:
        """The strength of the strongest claim; 0 if no claim is decided."""
        return max((claim.strength for claim in self.claims), default=0.0)

    @property
    def is_undecided(self) -> bool:
        """Whether there are claims, none of which shows a difference, and not all of them show equal waits."""
        words = {claim.word for claim in self.claims}
        return bool(words & {NOT_DISTINGUISHABLE, *CANNOT_TELL}) and not words & {BETTER, WORSE}

    @property
    def deciding(self) -> str:
        """What would decide the claim that needs the fewest weeks or replicates; empty if every claim is decided."""
        undecided = [claim for claim in self.claims if claim.word in (NOT_DISTINGUISHABLE, *CANNOT_TELL)]
        needed = [(claim.blocks_needed, claim) for claim in undecided if claim.blocks_needed is not None]
        if not needed:
            too_few = any(claim.word == TOO_FEW_WEEKS for claim in undecided)
            return f"An interval needs at least {FEWEST_WEEKS} weeks." if too_few else ""
        blocks, claim = min(needed, key=lambda found: found[0])
        there, basis = (claim.verdict.blocks, claim.verdict.basis) if claim.verdict else (0, "weeks")
        if blocks > MOST_BLOCKS:
            return f"More than {MOST_BLOCKS:,} {basis} would be needed to show so small a difference."
        blocks = max(blocks, there + 1)
        return f"Showing a change of {signed(claim.change or 0.0)} takes about {blocks:,} {basis}; there are {there:,}."


def listed(study: Study, headline: Headline) -> list[tuple[Any, ...]]:
    """Return the rows of the list of headlines (`COLUMNS`) for a study: one for each claim, or one without a claim."""
    rows: list[tuple[Any, ...]] = []
    for claim in headline.claims:
        found = claim.verdict or Verdict(claim.after - claim.before, None, None, NOT_TESTED, NOT_TESTED, "", 0, None)
        rows.append(
            (study.name, study.title, headline.text, claim.variant, claim.base, claim.after, claim.before, *found[:-1])
        )
    return rows or [(study.name, study.title, headline.text, *[None] * (len(COLUMNS) - 3))]


def answer(
    study: Study,
    waits: Waits,
    options: Mapping[str, Unchecked] | None = None,
    lookup: Lookup = lambda variant, base: None,
    recorded: Mapping[str, Fidelity] | None = None,
    titles: Mapping[str, str] | None = None,
) -> Headline:
    """
    Answer the title of a study from the mean waits of its runs and the verdicts on them.

    The claims are about the pairs that the study asks for, as in `swflow.studies.asked`: schedulers with the study's
    base, or with ``contrast: workload``, workloads under one scheduler. A wait is called shorter or longer only if the
    corrected verdict supports it. ``options`` are those of the schedulers, ``titles`` their names in sentences.

    Examples
    --------
    >>> study = Study("mine", "?", [{"run": "A/fcfs", "workload": "A", "scheduler": "fcfs"},
    ...                             {"run": "A/easy", "workload": "A", "scheduler": "easy"}])
    >>> waits = {"A": {"fcfs": [7200.0], "easy": [3600.0]}}
    >>> answer(study, waits).text
    'easy and fcfs are not tested on A (−50 %), from 2 h to 1 h.'
    >>> sure = Verdict(-3600.0, -5400.0, -1800.0, BETTER, BETTER, "weeks", 50, 30.0)
    >>> answer(study, waits, lookup=lambda variant, base: sure, titles={"easy": "EASY"}).text
    'EASY shortens the mean wait on A by 50 % (95 % interval 25 to 75 %) compared with fcfs, from 2 h to 1 h.'
    """
    chosen = {(recipe_of(run["workload"]), run["scheduler"]) for run in study.runs}
    means: dict[str, dict[str, float]] = {}
    for recipe, scheduler in product(study.recipes, study.schedulers):
        known = waits.get(recipe, {}).get(scheduler)
        if known and (recipe, scheduler) in chosen:
            means.setdefault(recipe, {})[scheduler] = sum(known) / len(known)
    names = {name: (titles or {}).get(name, name) for name in study.schedulers} | {"log": "the recorded schedule"}
    found: list[tuple[list[Claim], str]] = []
    by_workload = study.contrast == WORKLOAD
    pairs: dict[tuple[str, str], None] = {}
    for row in means.values() if not by_workload else ():
        on_workload = [name for name in study.schedulers if name in row]
        pairs |= dict.fromkeys(scheduler_pairs(on_workload, options or {}, study.baseline, study.contrast))
    for name, base in pairs:
        claims = []
        for recipe, row in means.items():
            if name in row and base in row:
                runs = f"{recipe}/{name}", f"{recipe}/{base}"
                claims.append(Claim(*runs, row[base], row[name], lookup(*runs)))
        if claims:
            where = f"on {claims[0].variant.rpartition('/')[0]}" if len(claims) == 1 else "on {} workloads"
            found.append((claims, of_pair(claims, names[name], names[base], where)))
    if by_workload:
        found = _of_workloads(study, means, lookup, names)
    headline = strongest_first(found) if found else _range_of(means, names)
    return headline._replace(record=_record(means, recorded or {}, names))


def _record(
    means: Mapping[str, Mapping[str, float]], recorded: Mapping[str, Fidelity], names: Mapping[str, str]
) -> str:
    """Compare the recorded mean wait of the first workload with the first simulated scheduler."""
    for recipe, row in means.items():
        simulated = next((name for name in row if name != "log"), None)
        if "log" in row and simulated:
            found = recorded.get(f"{recipe}/{simulated}", Fidelity(row["log"], row[simulated]))
            notes = [f"{percent(found.simulated / found.recorded)} of the record"] if found.recorded > 0 else []
            notes += [f"over the {found.jobs:,} jobs in both"] if found.jobs is not None else []
            return (
                f"The recorded mean wait on {recipe} is {duration(found.recorded)}; "
                f"simulated under {names[simulated]} it is {duration(found.simulated)}"
                + (f" ({', '.join(notes)})." if notes else ".")
            )
    return ""


def _of_workloads(
    study: Study, means: Mapping[str, Mapping[str, float]], lookup: Lookup, names: Mapping[str, str]
) -> list[tuple[list[Claim], str]]:
    """Return claims and sentences on workloads under the same scheduler: each with the one of the fewest steps."""
    found: list[tuple[list[Claim], str]] = []
    for scheduler in study.schedulers:
        known = {recipe: row[scheduler] for recipe, row in means.items() if scheduler in row}
        pairs: list[tuple[str, str, Claim]] = []
        for log in study.logs:
            recipes = [recipe for recipe in known if log_of(recipe) == log]
            source = min(recipes, key=lambda recipe: (recipe.count("+"), recipes.index(recipe)), default="")
            for recipe in recipes:
                if recipe != source:
                    runs = f"{recipe}/{scheduler}", f"{source}/{scheduler}"
                    pairs.append((recipe, source, Claim(*runs, known[source], known[recipe], lookup(*runs))))
        under = f"Under {names[scheduler]}"
        if len(pairs) > MOST_PAIRS:
            derived = all(recipe.startswith(f"{source}+") for recipe, source, _ in pairs)
            first = "workloads with steps", "their source"
            if not derived:
                first = "the other workloads of a log", "the one with fewest steps"
            claims = [claim for *_, claim in pairs]
            found.append((claims, _of_workload(under, *first, claims, "in {} cases")))
        else:
            found += [([claim], _of_workload(under, recipe, source, [claim], "")) for recipe, source, claim in pairs]
    return found


def _range_of(means: Mapping[str, Mapping[str, float]], names: Mapping[str, str]) -> Headline:
    """Return the shortest and the longest mean wait of a study that compares nothing."""
    every = [(mean, recipe, scheduler) for recipe, row in means.items() for scheduler, mean in row.items()]
    if not every:
        return Headline([])
    (low, first_one, by), (high, last, other) = min(every), max(every)
    if len(every) == 1:
        return Headline([f"Under {names[by]}, the mean wait on {first_one} is {duration(low)}."])
    return Headline([
        f"The mean wait lies between {duration(low)} on {first_one} ({names[by]}) and {duration(high)} on {last} "
        f"({names[other]})."
    ])  # fmt: skip


def of_pair(claims: Sequence[Claim], variant: str, base: str, where: str) -> str:
    """Return the sentence on a pair of schedulers."""
    verbs = {BETTER: f"{variant} shortens the mean wait", WORSE: f"{variant} lengthens the mean wait"}
    again = {BETTER: "shortens it", WORSE: "lengthens it"}
    return _sentence(claims, verbs, again, f"{variant} and {base}", where, f" compared with {base}")


def _of_workload(under: str, recipe: str, source: str, claims: Sequence[Claim], where: str) -> str:
    verbs = {
        word: f"{under}, the mean wait on {recipe} is {adjective} than on {source}"
        for word, adjective in DIRECTIONS.items()
    }
    again = {word: f"is {adjective}" for word, adjective in DIRECTIONS.items()}
    return _sentence(claims, verbs, again, f"{under}, the mean waits on {recipe} and {source}", where)


def strongest_first(found: Sequence[tuple[Sequence[Claim], str]]) -> Headline:
    """Return the sentences in decreasing order of the strength of their claims."""
    order = sorted(found, key=lambda pair: -max(claim.strength for claim in pair[0]))  # a stable sort
    return Headline([text for _, text in order], [claim for claims, _ in found for claim in claims])


#: The same for pairs that were not tested.
_WITHOUT_DIFFERENCE = WITHOUT_DIFFERENCE | {NOT_TESTED: "are not tested"}


def _sentence(
    claims: Sequence[Claim], verbs: Mapping[str, str], again: Mapping[str, str], both: str, where: str, than: str = ""
) -> str:
    """
    Return a sentence on the claims of one pair, with the sizes of the changes.

    ``verbs`` begins the sentence of a shorter and of a longer wait, and ``again`` states the second of them. ``both``
    names the two sides, ``than`` the base. ``where`` is the place, with ``{}`` for the number of workloads if there are
    several claims.
    """
    groups = [(word, [claim for claim in claims if claim.word == word]) for word in (*verbs, *_WITHOUT_DIFFERENCE)]
    groups = sorted(((word, some) for word, some in groups if some), key=lambda group: -len(group[1]))
    groups.sort(key=lambda group: group[0] not in verbs)  # stable: decided claims first
    parts: list[str] = []
    for word, some in groups:
        every = "both" if len(claims) == 2 else f"all {len(claims)}"
        count = every if len(some) == len(claims) else f"{len(some)} of {len(claims)}"
        place = f" {where.format(count)}" if where and not parts else f" {where[:2]} {len(some)}" if parts else ""
        if word in verbs:
            effect = _effect(some)
            verb = again[word] if parts else verbs[word]
            parts.append(f"{verb}{place}{effect}{'' if parts else than}")
        elif parts:
            parts.append(f"{_WITHOUT_DIFFERENCE[word].replace('are ', 'is ', 1)}{place}")
        else:
            parts.append(f"{both} {_WITHOUT_DIFFERENCE[word]}{place}{_changes(some) if word != EQUAL else ''}")
    text = joined(parts)
    if len(claims) == 1:
        (claim,) = claims
        same = f", {duration(claim.before)}" if claim.word == EQUAL else ""
        text += same or f", from {duration(claim.before)} to {duration(claim.after)}"
    return text + "."


def _effect(claims: Sequence[Claim]) -> str:
    """Return the sizes of changes in one direction, with the interval that contains all their intervals."""
    sizes = [abs(claim.change) for claim in claims if claim.change is not None]
    if not sizes:
        return ""
    text = f" by {between(sizes)}"
    ends = [abs(end) for claim in claims for end in claim.interval or ()]
    if ends:
        text += f" (95 % interval{'s within' if len(claims) > 1 else ''} {between(ends, is_interval=True)})"
    return text


def _changes(claims: Sequence[Claim]) -> str:
    """Return the changes of claims without a verdict, with the interval of a single one."""
    changes = sorted(claim.change for claim in claims if claim.change is not None)
    if not changes:
        return ""
    text = " to ".join(dict.fromkeys(signed(change) for change in (changes[0], changes[-1])))
    interval = claims[0].interval if len(claims) == 1 else None
    if interval is not None:
        text += f", 95 % interval {signed(interval[0])} to {signed(interval[1])}"
        if claims[0].verdict is not None and claims[0].verdict.word != claims[0].word:
            text += " before the correction for the number of comparisons"
    return f" ({text})"
