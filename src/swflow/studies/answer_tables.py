"""The tables of an answer."""

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from swflow.analysis import verdicts
from swflow.phrases import Percent, Unit, share_of, unit_of, unit_of_measure
from swflow.studies.answer import LABELS, Question
from swflow.studies.group_waits import RECORDED
from swflow.studies.sentences import MOST_SENTENCES, percent
from swflow.studies.variants import Variant
from swflow.studies.whatif import BASE, Row
from swflow.studies.why import parts_of_variants

#: The verdicts on a change, as one word of a table.
WORDS: dict[str, str] = {verdicts.BETTER: "better", verdicts.WORSE: "worse"}

#: Groups in a table on the terminal and on a page; files have all.
MOST_GROUPS = 10


class Table(NamedTuple):
    """A table of texts with a title; the first column names the rows."""

    title: str
    columns: list[str]
    rows: list[list[str]]


# -- tables


def tables(question: Question) -> list[Table]:
    """Return the tables of an answer: the base and the record, a variant now and then, or a ranking of variants."""
    if len(question.variants) == 1:
        found = [_of_base(question)]
    elif len(question.variants) == 2:
        found = [now_and_then(question, question.variants[1])]
    else:
        found = [_ranking(question), _other_measures(question)]
    if question.answer.reasons:
        order = [question.base, *question.ranked]
        found.append(Table(*parts_of_variants({one.name: question.answer.reasons[one.name] for one in order})))
    return [*found, *_groups(question)]


def now_and_then(question: Question, variant: Variant) -> Table:
    """Return the measures of the record, if there is one, of the base and of a variant, with the changes."""
    base, then, recorded = question.rows(question.base), question.rows(variant), question.answer.recorded

    def row_of(name: str, known: str | None, *values: str) -> list[str]:
        return [name, *([known or ""] if recorded else []), *values]

    rows = []
    for measure, row in then.items():
        known = recorded.get(measure)
        unit = unit_of_measure(measure, known, row["base"], row["value"])
        cells = (unit.number(row["base"]), unit.number(row["value"]), *_change(row, unit))
        rows.append(row_of(_label(measure, unit), None if known is None else unit.number(known), *cells))
    main, was = then["mean_wait_time"], base["mean_wait_time"]
    used = recorded.get("utilization")
    shares = (share_of(was["utilization"]), share_of(main["utilization"]), "", "", "")
    rows.append(row_of("utilization", None if used is None else share_of(used), *shares))
    before, after = ({"processors": row["processors"], **units_in(row)} for row in (was, main))
    for name in before | after:
        first, second = before.get(name, 0), after.get(name, 0)
        if name == "processors" or first != second:
            change = f"{100 * (second / first - 1):+.0f} %".replace("-", "−") if first and first != second else ""
            rows.append(row_of(name, None, f"{first:,}", f"{second:,}", change, "", ""))
    columns = row_of("", RECORDED, "now", "then", "change", "95 % interval", "verdict")
    return Table(variant.name, columns, rows)


def units_in(row: Row) -> dict[str, int]:
    """Return the units of the resources that a row states."""
    parts = (text.partition("=") for text in row["resources"].split(",") if text)
    return {name: int(units) for name, _, units in parts}


def _label(measure: str, unit: Unit) -> str:
    return f"{LABELS[measure]}, {unit.name}" if unit.name else LABELS[measure]


def _change(row: Row, unit: Unit) -> list[str]:
    """Return the change of a value, its interval and the verdict."""
    if row["verdict_holm"] == BASE:
        return ["", "", "now"]
    found, word = percent(row), WORDS.get(row["verdict_holm"], row["verdict_holm"])
    return [found.change, found.interval, word] if found else [unit.number(row["difference"]), "", word]


def _ranking(question: Question) -> Table:
    rows = [(variant, question.row(variant)) for variant in [question.base, *question.ranked]]
    recorded = question.answer.recorded
    unit = unit_of(*(row["value"] for _, row in rows), recorded.get("mean_wait_time"))
    found = _of_record(recorded, unit)
    found += [
        [
            variant.name, unit.number(row["value"]), *_change(row, unit), f"{row['processors']:,}",
            share_of(row["utilization"]),
        ]
        for variant, row in rows
    ]  # fmt: skip
    columns = ["", f"mean wait, {unit.name}", "change", "95 % interval", "verdict", "processors", "utilization"]
    return Table("Mean wait, the shortest first", columns, found)


def _of_record(recorded: Mapping[str, float | None], unit: Unit) -> list[list[str]]:
    """Return the row of a ranking with the recorded schedule, if there is one."""
    wait, used = recorded.get("mean_wait_time"), recorded.get("utilization")
    if wait is None:
        return []
    return [[RECORDED, unit.number(wait), "", "", "", "", "" if used is None else share_of(used)]]


def _other_measures(question: Question) -> Table:
    every = [question.rows(variant) for variant in [question.base, *question.ranked]]
    recorded = question.answer.recorded
    units = {
        measure: unit_of_measure(measure, *(rows[measure]["value"] for rows in every), recorded.get(measure))
        for measure in LABELS
        if measure != "mean_wait_time"
    }
    known = {measure: value for measure in units if (value := recorded.get(measure)) is not None}
    found = [[RECORDED, *(unit.number(known[one]) if one in known else "" for one, unit in units.items())]]
    found = found if known else []
    for rows in every:
        cells = []
        for measure, unit in units.items():
            row, change = rows[measure], percent(rows[measure])
            is_base = row["verdict_holm"] == BASE
            cells.append(unit.number(row["value"]) + ("" if is_base or not change else f" ({change.change})"))
        found.append([rows["awrt"]["variant"], *cells])
    columns = ["", *(_label(measure, unit) for measure, unit in units.items())]
    return Table("Other measures", columns, found)


def _of_base(question: Question) -> Table:
    """Return the measures of the recorded schedule and of the base."""
    rows, recorded = question.rows(question.base), question.answer.recorded
    lines = []
    for measure, row in rows.items():
        known = recorded.get(measure)
        unit = unit_of_measure(measure, row["value"], known)
        lines.append([_label(measure, unit), "" if known is None else unit.number(known), unit.number(row["value"])])
    was, main = recorded.get("utilization"), rows["awrt"]
    lines.append(["utilization", "" if was is None else share_of(was), share_of(main["utilization"])])
    lines.append(["processors", "", f"{main['processors']:,}"])
    return Table(question.base.name, ["", "recorded", "simulated"], lines)


def _groups(question: Question) -> list[Table]:
    """Return the mean waits of the largest groups, such as partitions, in the record, now, and under each variant."""
    found = []
    groups = question.answer.groups
    for by in groups["by"].unique(maintain_order=True):
        names = groups.filter((pl.col("by") == by) & (pl.col("variant") == question.base.name))
        most = _most_affected(question, by, names)
        if most.height < 2 and by == "partition":
            continue
        shown = groups.filter((pl.col("by") == by) & pl.col("name").is_in(most["name"].implode()))
        unit = unit_of(*shown["value"].to_list())
        rows_of = {(row["variant"], row["name"]): row for row in shown.iter_rows(named=True)}
        variants = {question.base.name: "now" if len(question.variants) > 1 else "simulated"}
        ranked = question.ranked[:MOST_SENTENCES]
        variants |= {one.name: "then" if len(question.variants) == 2 else one.name for one in ranked}
        if (RECORDED, most["name"][0]) in rows_of:
            variants = {RECORDED: "recorded", **variants}
        changes = _changes_of_groups(question, by) if len(question.variants) == 2 else {}
        rows = []
        for name, jobs in most.select("name", "jobs").iter_rows():
            rows.append([name, f"{jobs:,}"])
            for variant in variants:
                row = rows_of.get((variant, name))
                words = [unit.number(row["value"])] if row else []
                if row and len(question.variants) > 2 and variant not in (RECORDED, question.base.name):
                    words.append(_WORDS_OF_GROUPS.get(row["verdict"], "open"))
                rows[-1].append(" ".join(words))
            if len(question.variants) == 2:
                rows[-1] += changes[name]
        more_columns = ["change", "95 % interval", "verdict"] if len(question.variants) == 2 else []
        columns = [by, "jobs", *variants.values(), *more_columns]
        more = _more(question, by, names)
        found.append(Table(f"Mean wait by {by}, {unit.name}{more}", columns, rows))
    return found


def _of_only_variant(question: Question, by: str) -> pl.DataFrame:
    """Return the groups of the only variant."""
    return question.answer.groups.filter((pl.col("by") == by) & (pl.col("variant") == question.variants[1].name))


def _changes_of_groups(question: Question, by: str) -> dict[str, list[str]]:
    """Return the change of each group's mean wait by its name, with its interval and verdict."""
    found = {}
    for row in _of_only_variant(question, by).iter_rows(named=True):
        change = Percent.of(row["base"], row["value"] - row["base"], row["low"], row["high"])
        word = _WORDS_OF_GROUPS.get(row["verdict"], row["verdict"])
        found[row["name"]] = [change.change, change.interval, word] if change else ["", "", word]
    return found


#: The verdicts on the wait of a group, as few words.
_WORDS_OF_GROUPS: dict[str, str] = {
    verdicts.BETTER: "shorter", verdicts.WORSE: "longer", verdicts.EQUAL: "equal",
    verdicts.NOT_DISTINGUISHABLE: "open", verdicts.DEPENDENT_WEEKS: "open", verdicts.TOO_FEW_WEEKS: "too few weeks",
}  # fmt: skip


def _most_affected(question: Question, by: str, names: pl.DataFrame) -> pl.DataFrame:
    """
    Return the groups of a table: those with most jobs, or with one variant those whose total wait changes most.

    The latter begin with the greatest gain and end with the greatest loss.
    """
    if len(question.variants) != 2:
        return names.sort("jobs", descending=True, maintain_order=True).head(MOST_GROUPS)
    change = pl.col("value") - pl.col("base")
    effects = _of_only_variant(question, by).with_columns(effect=change * pl.col("jobs")).fill_nan(0.0)
    chosen = effects.sort(pl.col("effect").abs(), descending=True, maintain_order=True).head(MOST_GROUPS)
    return chosen.sort("effect", maintain_order=True).select("name", "jobs")


def _more(question: Question, by: str, names: pl.DataFrame) -> str:
    """Return how many groups there are, and with one variant how many of them gain and lose, for a title."""
    if len(question.variants) != 2:
        return f", the {MOST_GROUPS} with most jobs of {names.height:,}" * (names.height > MOST_GROUPS)
    found = _of_only_variant(question, by)["verdict"]
    shorter, longer, equal = (int((found == one).sum()) for one in (verdicts.BETTER, verdicts.WORSE, verdicts.EQUAL))
    of = f"; the {MOST_GROUPS} with the greatest effect of {names.height:,}" * (names.height > MOST_GROUPS)
    counts = f"{shorter:,} shorter, {longer:,} longer, {f'{equal:,} equal, ' * bool(equal)}"
    return f": {counts}{names.height - shorter - longer - equal:,} open (corrected for the number){of}"
