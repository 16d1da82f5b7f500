"""The forest plot: all differences that studies ask for, with their intervals, and what would decide the open ones."""

import math
import os
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import duckdb

from swflow.analysis.verdicts import BETTER, WORSE
from swflow.errors import SwflowError, suggest
from swflow.figures.parts import FigureData, Spec, finished_figure, layered, tip
from swflow.figures.provenance import command, recorded_figure
from swflow.figures.styles import BLUE, VERMILION
from swflow.files.query import connect
from swflow.names import recipe_of
from swflow.studies.deciding import blocks_to_decide, what_decides
from swflow.studies.figure_options import FOREST, FOREST_MEASURES

#: The measures of table ``whatifs`` by those of table ``comparisons``.
_OF_WHATIFS = {
    "mean_wait_time": "wait_time", "p95_wait_time": "p95_wait_time", "awrt": "awrt",
    "mean_bounded_slowdown": "bounded_slowdown",
}  # fmt: skip

_CAPTION = (
    "Each row is a measure of a variant in percent of its base, with the 95 % interval over the log's weeks or over "
    "replicates: left of the line, the variant is better. Colors follow the verdict, which is corrected for the number "
    "of comparisons of a study (Holm), so that a gray interval may exclude 0. Hollow: the queue of a run grows over "
    "the log (saturated). Below a pair: the weeks or replicates that would decide it with a probability of 80 %. "
    "Intervals that go beyond the axis end there."
)

#: The pairs that one figure shows at most, and with all measures.
MOST_PAIRS, MOST_WITH_ALL = 60, 16

#: Pixels of a row and of a letter, letters of a line, which fit on a phone, and the ends of the axis.
_ROW, _LETTER, _LINE, _ENDS = 13, 6, 44, (1 / 64, 64.0)

#: The verdicts in the legend, and their colors.
_COLOURS = {BETTER: BLUE, WORSE: VERMILION, "undecided": "#777777"}

#: Ticks of a wide axis, and of one of less than a factor of four.
_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_FINE_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
_LABEL = (
    "datum.value == 1 ? '0' : datum.value < 1 ? '−' + format(100 * (1 - datum.value), '.3~r') + ' %' : "
    "datum.value <= 2 ? '+' + format(100 * (datum.value - 1), '.3~r') + ' %' : '× ' + format(datum.value, '.3~r')"
)

_ROWS = """WITH saturation AS (
    SELECT name, max(saturated) = 1 AS saturated FROM (
        SELECT run AS name, saturated FROM metrics
        UNION ALL SELECT recipe || '/' || scheduler, saturated FROM metrics JOIN workloads USING (workload))
    GROUP BY name
)
SELECT study, variant, base, measure, base_mean, mean_difference, mean_low, mean_high, mean_verdict_holm, basis,
    blocks, mean_freedom, coalesce(one.saturated, false) OR coalesce(other.saturated, false) AS saturated
FROM comparisons
LEFT JOIN saturation one ON one.name = variant LEFT JOIN saturation other ON other.name = base
WHERE list_contains($studies, study) AND list_contains($measures, measure)
ORDER BY study, variant, base"""

_WHATIFS = """WITH named AS (
    SELECT study, workload, any_value(variant) AS name FROM whatifs WHERE verdict = 'base' GROUP BY ALL
)
SELECT w.study, w.workload || '/' || w.variant, w.workload || '/' || named.name, w.measure, w.base, w.difference,
    w.low, w.high, w.verdict_holm, 'weeks', w.weeks, w.freedom, false
FROM whatifs w JOIN named ON named.study = w.study AND named.workload = w.workload
WHERE list_contains($studies, w.study) AND w.verdict <> 'base' ORDER BY w.rowid"""


@dataclass(frozen=True)
class Row:
    """A measure of a pair: the value of the variant over that of the base, its interval, and the verdict."""

    measure: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    decides: str
    saturated: bool

    @property
    def strength(self) -> float:
        """The distance of the interval from no change; 0 if the verdict is not decided."""
        if self.verdict not in (BETTER, WORSE) or self.low is None or self.high is None:
            return 0.0
        return min(abs(math.log(max(end, 1e-9))) for end in (self.low, self.high))


#: The rows of each pair of runs, ``workload/scheduler``, of a study.
Pairs = dict[tuple[str, str], list[Row]]


def draw_forest(database: str | os.PathLike[str], studies: Sequence[str] = (), **options: Any) -> Spec:
    """Draw the differences of a database that `swflow.database.load` wrote, with the options of `draw_forest_on`."""
    with connect(database) as connection:
        known = [name for (name,) in connection.execute(
            "SELECT study FROM (SELECT study FROM comparisons UNION SELECT study FROM whatifs) "
            "WHERE study IS NOT NULL ORDER BY ALL").fetchall()]  # fmt: skip
        for name in studies:
            if name not in known:
                raise SwflowError(
                    f"figure: no study {name!r} with comparisons in the database; expected one of "
                    f"{', '.join(known) or 'none'}{suggest(name, known)}"
                )
        return draw_forest_on(connection, {name: name for name in studies or known}, **options)


def draw_forest_on(
    connection: duckdb.DuckDBPyConnection,
    studies: Mapping[str, str],
    *,
    measures: Sequence[str] = (),
    references: Mapping[str, str] | None = None,
    title: str | None = None,
    interactive: bool = False,
) -> Spec:
    """
    Draw the differences that studies ask for, one row per measure of a pair, from an open database.

    Parameters
    ----------
    connection, interactive, title
        As for `swflow.figures.request.Request`.
    studies : mapping
        The studies and their titles, in the order of the panels.
    measures : sequence of str
        The measures of table ``comparisons`` to show; default: the mean wait of many pairs, all measures of few.
    references : mapping, optional
        Studies that compare all schedulers with each other, to the scheduler that each is shown against.

    Raises
    ------
    SwflowError
        If a measure is unknown, or the studies compare nothing.
    """
    for name in measures:
        if name not in FOREST_MEASURES:
            raise SwflowError(
                f"--measure: {name!r}; expected one of {', '.join(FOREST_MEASURES)}{suggest(name, FOREST_MEASURES)}"
            )

    def draw(recorded: Any) -> Spec:
        found = _read(recorded, list(studies), measures, references or {})
        if not found:
            raise SwflowError("figure: forest: the studies compare nothing; expected at least two runs to compare")
        if not measures and sum(map(len, found.values())) > MOST_WITH_ALL:
            found = _first_measure(found)
        shown = _strongest(found)
        left = sum(map(len, found.values())) - sum(map(len, shown.values()))
        more = f"{left:,} further pairs with smaller differences are not drawn." if left else ""
        return _chart(shown, {name: studies[name] for name in shown}, title or "Differences from the base", more)

    options = [("--study", study) for study in studies] + [("--measure", measure) for measure in measures]
    options += [("--title", title)] if title else []
    return recorded_figure(connection, draw, FOREST, command=command(FOREST, options))


def _read(
    connection: Any, studies: list[str], measures: Sequence[str], references: Mapping[str, str]
) -> dict[str, Pairs]:
    """Return the pairs of each study with their rows, in the order of the studies."""
    values = {"studies": studies, "measures": list(measures or FOREST_MEASURES)}
    rows = connection.execute(_ROWS, values).fetchall()
    rows += [
        (*row[:3], _OF_WHATIFS[row[3]], *row[4:])
        for row in connection.execute(_WHATIFS, {"studies": studies}).fetchall()
        if _OF_WHATIFS.get(row[3]) in values["measures"]
    ]
    found: dict[str, Pairs] = {study: {} for study in studies}
    for study, variant, base, *row in sorted(rows, key=lambda row: (_natural(row[1]), _natural(row[2]))):
        reference = references.get(study)
        if reference is None or base.endswith(f"/{reference}"):
            found[study].setdefault((variant, base), []).append(_row(row))
    wanted = list(FOREST_MEASURES)
    for pairs in found.values():
        for pair in _single_draws(pairs):
            del pairs[pair]
        for pair, some in pairs.items():
            pairs[pair] = sorted(some, key=lambda row: wanted.index(row.measure))
    return {study: pairs for study, pairs in found.items() if pairs}


def _natural(name: str) -> list[Any]:
    """
    Return a key that sorts numbers in names by their size.

    Examples
    --------
    >>> sorted(["A-128", "A-64"], key=_natural)
    ['A-64', 'A-128']
    """
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _single_draws(pairs: Pairs) -> list[tuple[str, str]]:
    """Return the pairs of single replicates of which the comparison over all replicates is here, too."""

    def together(run: str) -> str:
        workload, _, scheduler = run.rpartition("/")
        return f"{recipe_of(workload)}/{scheduler}"

    of_recipes = {pair: (together(pair[0]), together(pair[1])) for pair in pairs}
    return [pair for pair, recipes in of_recipes.items() if recipes != pair and recipes in pairs]


def _row(found: Sequence[Any]) -> Row:
    """Return a row from the columns of the queries after the base."""
    measure, base, difference, low, high, verdict, basis, blocks, freedom, saturated = found
    needed = blocks_to_decide(base or 0.0, difference or 0.0, low, high, blocks, freedom)
    decides = what_decides(verdict, needed, blocks, basis)
    if not base or difference is None:
        return Row(measure, None, None, None, verdict, decides, saturated)
    left, right = (None if end is None else max(1 + end / base, 0.0) for end in (low, high))
    return Row(measure, 1 + difference / base, left, right, verdict, decides, saturated)


def _first_measure(found: dict[str, Pairs]) -> dict[str, Pairs]:
    return {study: {pair: rows[:1] for pair, rows in pairs.items()} for study, pairs in found.items()}


def _strongest(found: dict[str, Pairs]) -> dict[str, Pairs]:
    """Return the `MOST_PAIRS` pairs with the strongest differences, in their order; the first of each study stays."""
    every = [(study, pair, max(row.strength for row in rows)) for study, pairs in found.items()
             for pair, rows in pairs.items()]  # fmt: skip
    if len(every) <= MOST_PAIRS:
        return found
    first = {(study, next(iter(pairs))) for study, pairs in found.items()}
    every.sort(key=lambda one: (one[:2] not in first, -one[2]))
    kept = {one[:2] for one in every[:MOST_PAIRS]}
    shown = {study: {pair: rows for pair, rows in pairs.items() if (study, pair) in kept}
             for study, pairs in found.items()}  # fmt: skip
    return {study: pairs for study, pairs in shown.items() if pairs}


def _chart(found: Mapping[str, Pairs], titles: Mapping[str, str], title: str, more: str) -> Spec:
    ends = [end for pairs in found.values() for rows in pairs.values() for row in rows
            for end in (row.low, row.high, row.ratio) if end is not None]  # fmt: skip
    low, high = (max(_ENDS[0], min([0.9, *ends])), min(_ENDS[1], max([1.1, *ends])))
    domain = [float(f"{low / (high / low) ** 0.03:.4g}"), float(f"{high * (high / low) ** 0.03:.4g}")]
    data = FigureData()
    measures = {row.measure for pairs in found.values() for rows in pairs.values() for row in rows}
    only = FOREST_MEASURES[measures.pop()] if len(measures) == 1 else ""
    panels = [_panel(data, pairs, titles[study], domain, only, place == 0)
              for place, (study, pairs) in enumerate(found.items())]  # fmt: skip
    words = "gray: undecided; hollow: saturated"
    return finished_figure(data, panels, title, _CAPTION, more, subtitle=words)


def _panel(data: FigureData, pairs: Pairs, title: str, domain: list[float], only: str, first: bool) -> Spec:
    """
    Return the panel of a study: under the name of each pair, a row per measure and what would decide it.

    ``only`` is the measure if there is a single one; the axis then names it instead of the rows.
    """
    common = _common_base(pairs)
    lines: list[Spec] = []
    for pair, rows in pairs.items():
        lines += _lines_of(pair, rows, common)
    keys = [f"{place}|{line['l']}" for place, line in enumerate(lines)]
    lines = [{"k": key, **line} for key, line in zip(keys, lines, strict=True)]
    y = alt.Y(
        "k:N",
        sort=None,
        scale=alt.Scale(domain=keys, padding=0.5),
        axis=alt.Axis(title=None, labels=not only, labelExpr="split(datum.value, '|')[1]", ticks=False, domain=False),
    )
    ticks = _TICKS if domain[1] / domain[0] > 4 else _FINE_TICKS
    bounds = [tick for tick in ticks if domain[0] <= tick <= domain[1]]
    axis = alt.Axis(
        title=f"{only or 'change'} against the base", values=bounds, labelExpr=_LABEL, labelOverlap="greedy"
    )
    x = alt.X("r:Q", scale=alt.Scale(type="log", domain=domain, clamp=True, nice=False), axis=axis)
    subtitle = textwrap.wrap(f"base: {common}", _LINE) if common else []
    return layered(
        *_marks(data, lines, x, y, only, first),
        width=640,
        height={"step": _ROW},
        title={"text": textwrap.wrap(title, _LINE - 12), "subtitle": subtitle, "anchor": "start", "frame": "group"},
    )


def _marks(data: FigureData, lines: Sequence[Spec], x: alt.X, y: alt.Y, only: str, first: bool) -> Iterator[alt.Chart]:
    """Yield the layers of a panel; a layer without rows is left out."""
    legend = alt.Legend(title=None, orient="top", symbolType="circle", symbolOpacity=1, columns=3) if first else None
    scale = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    colour = alt.Color("c:N", scale=scale, legend=legend)
    tips = [tip("p:N", "pair"), tip("l:N", "measure"), tip("f:N", "change"), tip("v:N", "verdict")]
    yield alt.Chart(data.add([{"r": 1.0}])).mark_rule(strokeWidth=1, color="#888888").encode(x=x)
    values = [line for line in lines if "r" in line]
    named = alt.Chart(data.add(values))
    if any("a" in line for line in values):
        ends = {"x": alt.X("a:Q", scale=x["scale"], axis=x["axis"]), "x2": alt.X2("b:Q")}
        intervals = named.transform_filter("isValid(datum.a)").mark_rule(strokeWidth=1.6)
        yield intervals.encode(**ends, y=y, color=colour, tooltip=tips)
    for hollow in {line["h"]: None for line in values}:
        filling: Spec = {"filled": False, "fill": "white"} if hollow else {"filled": True}
        points = named.transform_filter(f"datum.h == {hollow}").mark_point(
            size=40, opacity=1, strokeWidth=1.6, **filling
        )
        yield points.encode(x=x, y=y, color=colour, tooltip=tips)
    # Texts begin where the names of the measures do, so that long ones fit on a phone.
    left = 3 if only else -_LETTER * max(len(line["l"]) for line in lines)
    for kind, look in (("t", {"fontWeight": 600, "color": "#333333"}), ("d", {"color": "#777777"})):
        if texts := [{"k": line["k"], "s": line[kind]} for line in lines if kind in line]:
            chart = alt.Chart(data.add(texts)).mark_text(align="left", baseline="middle", fontSize=10, **look)
            yield chart.encode(x=alt.value(left), y=y, text="s:N")


def _lines_of(pair: tuple[str, str], rows: Sequence[Row], common: str) -> Iterator[Spec]:
    """Yield the lines of a pair: its name, its measures, and what would decide them."""
    name = _name_of(pair, common)
    for part in _broken(name):
        yield {"l": "", "t": part}
    for row in rows:
        line: Spec = {"l": FOREST_MEASURES[row.measure], "p": f"{pair[0]}, base {pair[1]}", "v": row.verdict}
        if row.ratio is not None:
            decided = row.verdict if row.verdict in _COLOURS else "undecided"
            line |= {"r": _cut(row.ratio), "c": decided, "h": int(row.saturated), "f": _percent(row)}
        if row.low is not None and row.high is not None:
            line |= {"a": _cut(row.low), "b": _cut(row.high)}
        yield line
    for text in _deciding(rows):
        yield {"l": "", "d": text}


def _broken(name: str) -> list[str]:
    """
    Return the lines of a name, which are broken at blanks and before the steps of workloads.

    Examples
    --------
    >>> _broken("first-contiguous on SDSC-SP2+completed+alvio-28+first-10000")
    ['first-contiguous on SDSC-SP2+completed', '+alvio-28+first-10000']
    """
    lines = textwrap.wrap(name.replace("+", " \0+"), _LINE, break_on_hyphens=False)
    return [line.replace(" \0", "").replace("\0", "") for line in lines]


def _deciding(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines on what would decide the undecided measures of a pair, those with the same words together."""
    groups: dict[str, list[str]] = {}
    for row in rows:
        if row.decides:
            groups.setdefault(row.decides, []).append(FOREST_MEASURES[row.measure])
    for words, names in groups.items():
        yield from textwrap.wrap(f"to decide {', '.join(names)}: {words}", _LINE + 6)


def _cut(ratio: float) -> float:
    """Return a ratio with four digits; 0 is the left end of the logarithmic axis."""
    return float(f"{max(ratio, _ENDS[0] / 10):.4g}")


def _percent(row: Row) -> str:
    """
    Return the change in percent with its interval; if a value grows more than tenfold, as factors.

    Examples
    --------
    >>> _percent(Row("awrt", 0.5, 0.25, 1.1, "not distinguishable", "", False))
    '−50 % (−75 to +10 %)'
    >>> _percent(Row("awrt", 10.0, 9.0, 11.0, "base is better", "", False))
    '× 10 (× 9 to × 11)'
    """
    ends = [end for end in (row.ratio, row.low, row.high) if end is not None]
    if max(ends) > 9:
        texts = [f"× {end:,.3g}" for end in ends]
        return texts[0] + (f" ({texts[1]} to {texts[2]})" if len(ends) == 3 else "")
    texts = [f"{100 * (end - 1):+.3g}".replace("-", "−") for end in ends]
    return f"{texts[0]} %" + (f" ({texts[1]} to {texts[2]} %)" if len(ends) == 3 else "")


def _common_base(pairs: Collection[tuple[str, str]]) -> str:
    """Return the scheduler or the workload that is the base of all pairs; empty if there are several."""
    parts = [base.rpartition("/") for _, base in pairs]
    if all(variant.rpartition("/")[0] == workload for (variant, _), (workload, _, _) in zip(pairs, parts, strict=True)):
        schedulers = {scheduler for _, _, scheduler in parts}
        return schedulers.pop() if len(schedulers) == 1 else ""
    workloads = {workload for workload, _, _ in parts}
    return workloads.pop() if len(workloads) == 1 else ""


def _name_of(pair: tuple[str, str], common: str) -> str:
    """
    Return a pair as text; a base that is ``common`` to all pairs of a panel is not named again.

    Examples
    --------
    >>> _name_of(("A/sjbf", "A/easy"), ""), _name_of(("A/sjbf", "A/easy"), "easy")
    ('sjbf − easy on A', 'sjbf on A')
    >>> _name_of(("A+like/easy", "A/easy"), "")
    'A+like − A under easy'
    """
    (workload, _, variant), (other, _, base) = (run.rpartition("/") for run in pair)
    if workload == other:
        return f"{variant} on {workload}" if common else f"{variant} − {base} on {workload}"
    if variant == base:
        return f"{workload} under {variant}" if common else f"{workload} − {other} under {variant}"
    return f"{pair[0]} − {pair[1]}"
