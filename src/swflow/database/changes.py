"""What a load changed: the values and verdicts of an earlier database against those of the new one, by study."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from swflow.errors import SwflowError
from swflow.files.query import connect
from swflow.phrases import counted, four_digits

#: The metrics of runs that are compared.
MEASURES = ("mean_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt", "utilization")

#: The name of the runs that no study compares.
OTHERS = "other runs"

#: ``studies`` maps studies to what changed, ``lines`` are for the terminal; empty without an earlier database.
Changes = dict[str, Any]


class Snapshot(NamedTuple):
    """The metrics of each run, the runs of each study, and the verdicts by study, variant, base and measure."""

    metrics: Mapping[str, Sequence[float | None]]
    studies: Mapping[str, Sequence[str]]
    verdicts: Mapping[tuple[str, str, str, str], str]


def snapshot(database: str | os.PathLike[str]) -> Snapshot | None:
    """Return what is compared of a database; None if there is none, or another version of swflow wrote it."""
    if not Path(database).is_file():
        return None
    try:
        with connect(database, threads=1) as connection:
            found = connection.execute(f"SELECT run, {', '.join(MEASURES)} FROM metrics ORDER BY run").fetchall()
            named = connection.execute(
                """SELECT DISTINCT study, run FROM (
                    SELECT study, variant AS run FROM comparisons UNION SELECT study, base FROM comparisons)
                WHERE run IN (SELECT run FROM metrics) ORDER BY ALL"""
            ).fetchall()
            verdicts = connection.execute(
                """SELECT study, variant, base, measure, mean_verdict_holm FROM comparisons
                WHERE mean_verdict_holm IS NOT NULL ORDER BY ALL"""
            ).fetchall()
    except SwflowError:
        return None
    studies: dict[str, list[str]] = {}
    for study, run in named:
        studies.setdefault(study, []).append(run)
    in_studies = {run for _, run in named}
    if others := [run for run, *_ in found if run not in in_studies]:
        studies[OTHERS] = others
    return Snapshot({run: values for run, *values in found}, studies, {tuple(key): word for *key, word in verdicts})


def changes(old: Snapshot | None, new: Snapshot | None) -> Changes:
    """
    Return what differs between two databases, by study; studies without a difference are left out.

    Of each study: ``values`` has run, measure, and the values before and after; ``added`` and ``removed`` have runs,
    ``verdicts`` variant, base, measure, and the verdicts before and after; ``runs`` is their number now.
    """
    if old is None or new is None:
        return {}
    found: dict[str, Any] = {}
    for study in dict.fromkeys([*new.studies, *old.studies]):
        now, before = new.studies.get(study, ()), set(old.studies.get(study, ()))
        values = [
            [run, measure, *pair]
            for run in now
            if run in old.metrics
            for measure, *pair in zip(MEASURES, old.metrics[run], new.metrics[run], strict=True)
            if pair[0] != pair[1]
        ]
        verdicts = [
            [*key[1:], old.verdicts[key], word]
            for key, word in new.verdicts.items()
            if key[0] == study and old.verdicts.get(key, word) != word
        ]
        parts = {
            "values": values,
            "added": [run for run in now if run not in before],
            "removed": sorted(before - set(now)),
            "verdicts": verdicts,
        }
        if any(parts.values()):
            found[study] = {"runs": len(now), **parts}
    return {"studies": found, "lines": in_lines({"studies": found})}


def in_lines(found: Changes) -> list[str]:
    """
    Return a line per changed study for the terminal; none without an earlier database.

    Examples
    --------
    >>> values = [["A/easy", "mean_wait_time", 100.0, 80.0], ["A/easy", "awrt", 100.0, 99.0]]
    >>> parts = {"runs": 2, "values": values, "added": ["A/sjf"], "removed": [], "verdicts": []}
    >>> in_lines({"studies": {"order": parts}})
    ['changed: order: 1 of 2 runs, most A/easy mean wait time 100 -> 80 (-20.0 %); 1 new run']
    >>> in_lines({}), in_lines({"studies": {}})
    ([], ['changed: no value of a run and no verdict'])
    """
    if not found:
        return []
    lines = [f"changed: {study}: {_in_words(parts)}" for study, parts in found["studies"].items()]
    return lines or ["changed: no value of a run and no verdict"]


def _in_words(parts: Mapping[str, Any]) -> str:
    words = []
    if changed := parts["values"]:
        run, measure, before, after = max(changed, key=_size)
        runs = len({one for one, *_ in changed})
        share = f" ({100 * (after / before - 1):+.1f} %)" if before and after is not None else ""
        values = " -> ".join(map(four_digits, (before, after)))
        words.append(f"{runs} of {parts['runs']} runs, most {run} {measure.replace('_', ' ')} {values}{share}")
    for key, word in (("added", "new"), ("removed", "removed")):
        if count := len(parts[key]):
            words.append(counted(count, f"{word} run"))
    if count := len(parts["verdicts"]):
        variant, base, measure, before, after = parts["verdicts"][0]
        of = f", such as {variant} against {base} ({measure.replace('_', ' ')}): {before} -> {after}"
        words.append(f"{counted(count, 'verdict')}{of}")
    return "; ".join(words)


def _size(row: Sequence[Any]) -> float:
    """Return the relative size of a change."""
    *_, before, after = row
    if before is None or after is None:
        return 0.0
    return abs(after / before - 1) if before else math.inf
