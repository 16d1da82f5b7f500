"""The parts of pages: sections, and blocks that several pages share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swflow.analysis.heatmap import HEATMAP_MEASURES
from swflow.analysis.intervals import over_replicates
from swflow.analysis.long_run import student
from swflow.analysis.verdicts import CANNOT_TELL, EQUAL, NOT_DISTINGUISHABLE
from swflow.figures.runs import short_names
from swflow.names import log_of
from swflow.phrases import listed
from swflow.report.answers import Headline
from swflow.report.plan import Study
from swflow.report.source import MATRIX_MEASURES, Source
from swflow.report.tables import Block
from swflow.report.units import shortened
from swflow.studies.asked import WORKLOAD
from swflow.studies.deciding import what_decides

#: The note of a matrix of runs.
BEST = "The best value of a row is marked."

#: The largest number of names in a sentence.
MOST_NAMED = 6

#: The largest number of runs in one matrix of comparisons.
MOST_COMPARED = 12


#: The styles of compared cells without a decided verdict.
_MARKS = dict.fromkeys(CANNOT_TELL, "untested") | {EQUAL: "chance", NOT_DISTINGUISHABLE: "chance"}


@dataclass
class Section:
    """A part of a page: a heading, a note, and blocks (figures, tables, matrices, lists), hidden if ``folded``."""

    title: str
    note: str = ""
    blocks: list[Block] = field(default_factory=list)
    folded: str = ""


@dataclass
class Page:
    """A page: its name as a path without extension, its kind, and its sections, those without blocks left out."""

    name: str
    title: str
    kicker: str = ""
    lead: str = ""
    sections: list[Section] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sections = [section for section in self.sections if section.blocks]


def items(source: Source, studies: Iterable[Study], otherwise: str = "", authors: str = "") -> list[Block]:
    """Return a block with the titles and the answers of studies, at most two sentences each; none without studies."""
    items = []
    for study in studies:
        found = source.answers[study.name]
        few = [*found.sentences[:1], found.deciding] if found.is_undecided else found.sentences[:2]
        title = study.title.removeprefix(authors).lstrip(", ") or study.title
        text = " ".join(filter(None, few)) or found.record or otherwise
        items.append({"page": f"studies/{study.name}", "title": title[:1].upper() + title[1:], "text": text})
    return [{"kind": "answers", "items": items}] if items else []


def question(source: Source, study: Study) -> str:
    """Return what a study compares: its variants with their base, on which logs."""
    claims = source.answers[study.name].claims
    # The claims of a what-if name variants of one run.
    pairs = list(dict.fromkeys((claim.variant, claim.base) for claim in claims if ": " not in claim.variant))
    if not pairs:
        return ""
    parts = [tuple(run.rpartition("/") for run in pair) for pair in pairs]
    by_workload = study.contrast == WORKLOAD
    place = 0 if by_workload else 2
    variants, bases = ([*dict.fromkeys(pair[side][place] for pair in parts)] for side in (0, 1))
    where = [*dict.fromkeys(variant[2 - place] for variant, _ in parts)]
    base = bases[0] if len(bases) == 1 else f"{len(bases)} bases"
    text = f"Compared: {_few(variants)} with {base} (the base), {'under' if by_workload else 'on'} {_few(where)}."
    if study.contrast and not by_workload:
        text += f" The pairs differ in {study.contrast} only."
    return text + " Differences are variant minus base; a smaller value is better."


def _few(names: Sequence[str]) -> str:
    """Return names as a list, or their number if there are many."""
    return listed([*names]) if len(names) <= MOST_NAMED else f"{listed([*names[:3], f'{len(names) - 3} others'])}"


def to_decide(found: Headline) -> list[Block]:
    """Return a list of what would decide each undecided claim of an answer."""
    items = []
    for claim in found.claims:
        verdict = claim.verdict
        words = verdict and what_decides(claim.word, claim.blocks_needed, verdict.blocks, verdict.basis)
        if words:
            items.append(
                (
                    f"{claim.variant}, base {claim.base}",
                    f"mean wait: {claim.word.partition(':')[0]}; to decide: {words}",
                )
            )
    return [{"kind": "facts", "facts": items}] if items else []


def matrix(metrics: Mapping[tuple[str, str], Mapping[str, Any]], order: Sequence[str] = ()) -> list[Block]:
    """Return the matrix of runs, if any: a row per recipe, a column per scheduler, one value per measure."""
    rows, columns = ([*dict.fromkeys(key[place] for key in metrics)] for place in (0, 1))
    if not rows:
        return []
    rows.sort(key=lambda recipe: (log_of(recipe), recipe.count("+"), recipe))
    cells = {
        f"{rows.index(recipe)},{columns.index(scheduler)}": [
            _mean_and_interval(values[name]) for name, *_ in MATRIX_MEASURES
        ]
        for (recipe, scheduler), values in metrics.items()
    }
    matrix = {
        "kind": "matrix",
        "title": "matrix of workloads and schedulers",
        "rows": [{"name": recipe, "log": log_of(recipe), "steps": recipe.count("+")} for recipe in rows],
        "columns": columns,
        "measures": [dict(zip(("name", "title", "kind", "best"), row, strict=True)) for row in MATRIX_MEASURES],
        "cells": cells,
    }
    return [matrix | {"order": [*dict.fromkeys([*order, *columns])]} if order else matrix]


def compared(source: Source, runs: Sequence[dict[str, str]], study: str) -> list[Block]:
    """Return the matrix of comparisons of runs of a log, if any, with the verdicts of a study where it has them."""
    shown = list(runs[:MOST_COMPARED])
    names = [run["run"] for run in shown]
    rows = source.rows(
        """SELECT variant, base, measure, score, variant_wins, base_wins, score_verdict_holm FROM comparisons
        WHERE score IS NOT NULL AND list_contains($a, variant) AND list_contains($a, base)
        ORDER BY study <> $b, study, variant, base, measure""",
        names,
        study,
    )
    if not rows:
        return []
    cells: dict[str, Block] = {}
    for variant, base, measure, score, wins, losses, verdict in rows:
        a, b = names.index(variant), names.index(base)
        reason = [_MARKS[verdict], verdict] if verdict in _MARKS else []
        opposite = None if score is None else -score
        part = cells.setdefault(measure, {})
        if f"{a},{b}" in part:  # another study compares the pair, too
            continue
        part[f"{a},{b}"] = [*map(shortened, (score, wins, losses)), *reason]
        part[f"{b},{a}"] = [*map(shortened, (opposite, losses, wins)), *reason]
    more = len(runs) - len(shown)
    return [{
        "kind": "compare",
        "title": "Which is better at equal load",
        "note": "Blue: the run of the row is better at equal load than the run of the column; orange: worse. "
        "The score is the probability that a job of the one has the better value than a job of the other, minus "
        "the probability of the opposite. In brackets and without a color: equal, or not distinguishable "
        "by intervals over the log's weeks, corrected for the number of comparisons (Holm). In italics with a "
        "question mark: cannot tell, for example because there are too few weeks."
        + (f" {more} further runs are left out." if more else ""),
        "names": short_names(shown),
        "measures": {measure: cells[measure] for measure in HEATMAP_MEASURES if measure in cells},
    }]  # fmt: skip


def _mean_and_interval(values: Sequence[float | None]) -> list[Any] | None:
    """Return mean, half-width of the 95 % interval (None for a single value or equal values), and number of values."""
    found = over_replicates(values)
    half = None if found.error is None else student(found.freedom) * found.error
    return [shortened(found.value), shortened(half), found.blocks] if found.blocks else None


def counted(count: int, word: str, words: str = "") -> str:
    """Return a number with its noun, in the plural except after 1."""
    return f"{count:,} {word if count == 1 else words or word + 's'}"
