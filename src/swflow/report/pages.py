"""What stands on which page: the overview, a page per study, one per log, and one of all tables."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from swflow.analysis.heatmap import HEATMAP_MEASURES
from swflow.analysis.verdict import EQUAL, NEITHER
from swflow.errors import SwflowError
from swflow.figures import FIGURES, draw_sweep_on
from swflow.figures.published import published_figure
from swflow.figures.request import Request
from swflow.figures.runs import short_names
from swflow.names import log_of, recipe_of
from swflow.report.answers import WhatIf, answer, conventions, reproduced, what_if
from swflow.report.plan import Plan, Study
from swflow.report.tables import Scope, read_table
from swflow.report.units import duration, number, percent, shortened

#: What a matrix can show: column of ``metrics``, title, kind, and whether the lowest or the highest is best.
MATRIX_MEASURES = (
    ("mean_wait_time", "mean wait", "seconds", "low"),
    ("p95_wait_time", "95th percentile of the wait", "seconds", "low"),
    ("mean_response_time", "mean response time", "seconds", "low"),
    ("mean_bounded_slowdown", "mean bounded slowdown", "number", "low"),
    ("awrt", "average weighted response time", "seconds", "low"),
    ("utilization", "utilization", "percent", "high"),
    ("makespan", "makespan", "seconds", "low"),
)

#: So many runs are compared in one matrix of comparisons.
MOST_COMPARED = 12

#: The figures that every study shows of each of its logs before those that it asks for.
STUDY_FIGURES = ("timeline", "waits", "distributions")
LOG_FIGURES = ("offered-load", "arrivals", "composition")


@dataclass
class Section:
    """A part of a page: a heading, words, and blocks (figures, tables, matrices, lists)."""

    title: str
    note: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Page:
    """A page: its name as a path without ending, what it is, and its sections."""

    name: str
    title: str
    kicker: str = ""
    lead: str = ""
    sections: list[Section] = field(default_factory=list)


class Book:
    """
    The pages of a report.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        To the database, read-only.
    plan : Plan
        The studies.
    figures : sequence of mapping
        Specifications that were drawn already; ``usermeta`` may name the ``study``.
    draw : bool
        Draw the figures that a study asks for if none of these is its own.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        plan: Plan,
        figures: Sequence[Mapping[str, Any]] = (),
        draw: bool = True,
    ) -> None:
        self.connection, self.plan, self.figures, self.draw = connection, plan, figures, draw
        self.metrics = self._metrics()
        self.logs = [log for (log,) in self._rows("SELECT DISTINCT log FROM workloads ORDER BY log")]
        self.idle = [
            name
            for (name,) in self._rows("SELECT scheduler FROM schedulers WHERE backfill = 'none' AND scheduler <> 'log'")
        ]
        self.answers = {study.name: self._answer(study) for study in plan.studies}

    def pages(self) -> Iterator[Page]:
        """Give all pages, the overview first."""
        yield self.overview()
        for study in self.plan.studies:
            yield self.study(study)
        for log in self.logs:
            yield self.log(log)
        yield self.tables()

    # The overview

    def overview(self) -> Page:
        """Return the page that one opens first."""
        ((runs, jobs),) = self._rows("SELECT count(*), sum(jobs) FROM metrics")
        counts = [
            _counted(len(self.plan.studies), "study", "studies"),
            _counted(len(self.logs), "log"),
            _counted(runs, "run"),
            f"{number(jobs or 0)} simulated jobs",
        ]
        page = Page("index", "Overview", lead=", ".join(counts) + ".")
        page.sections += [self._answers(), self._matrix_section(), self._published(), self._plausible()]
        left_out = self._table("left_out", Scope())
        page.sections += [Section("What was left out", blocks=[left_out])] if left_out else []
        loose = self._loose_figures()
        if loose:
            page.sections.append(Section("Figures", blocks=loose))
        page.sections = [section for section in page.sections if section.blocks]
        return page

    def _answers(self) -> Section:
        items = [
            {
                "page": f"studies/{study.name}",
                "title": study.title,
                "text": self.answers[study.name] or "Sweeps, drawn on its page.",
            }
            for study in self.plan.studies
        ]
        note = "One sentence for each study, made from its runs; its page has the figures behind it."
        return Section("What the studies found", note, [{"kind": "answers", "items": items}] if items else [])

    def _matrix_section(self) -> Section:
        matrix = self._matrix(self.metrics)
        if matrix:
            planned = [scheduler for study in self.plan.studies for scheduler in study.schedulers]
            matrix["order"] = [*dict.fromkeys([*planned, *matrix["columns"]])]
        note = "A row is a workload, a column a scheduler; the best of a row is marked. Of replicates the mean, and"
        return Section("Schedulers on every workload", f"{note} Student's 95 % interval.", [matrix] if matrix else [])

    def _published(self) -> Section:
        rows = self._coverage()
        published, compared = sum(row["published"] for row in rows), sum(row["compared"] for row in rows)
        if not published:
            return Section("Published beside ours")
        note = (
            f"The papers' tables have {published:,} values that swflow knows; {compared:,} of them are of runs here."
            + (
                f" {published - compared:,} are missing, not run here or not legible: see the page of all tables."
                if compared < published
                else ""
            )
        )
        near = [sum(row[name] for row in rows) for name in ("within_1", "within_5", "within_10")]
        tiles = [
            {"label": "published", "value": f"{published:,}"},
            {"label": "within 1 %", "value": f"{near[0]:,}", "tone": "good"},
            {"label": "within 5 %", "value": f"{near[1]:,}", "tone": "good"},
            {"label": "within 10 %", "value": f"{near[2]:,}", "tone": "fair"},
            {"label": "further off", "value": f"{compared - near[2]:,}", "tone": "far"},
            {"label": "missing", "value": f"{published - compared:,}"},
        ]
        blocks: list[dict[str, Any]] = [{"kind": "tiles", "tiles": tiles}]
        if compared:
            blocks.append({"kind": "coverage", "rows": [row for row in rows if row["compared"]]})
            table = self._table("reproduction", Scope())
            blocks += [table] if table else []
        else:
            blocks = [{"kind": "text", "text": "None of these runs is in a paper: config/archive.yaml has them."}]
        return Section("Published beside ours", note, blocks)

    def _coverage(self) -> list[dict[str, Any]]:
        """Return, per table of a paper, how many values there are, how many are compared, and how near they are."""
        names = ("paper", "table", "published", "compared", "within_1", "within_5", "within_10")
        return [
            dict(zip(names, row, strict=True))
            for row in self._rows(
                'SELECT paper, "table", published, compared, within_1, within_5, within_10 FROM coverage ORDER BY ALL'
            )
        ]

    def _plausible(self) -> Section:
        section = Section("The logs", "What each log is, and what it asks of its machine; its page says more.")
        section.blocks.append({"kind": "logs", "items": [self._log_item(log) for log in self.logs]})
        checks = self._table("checks", Scope())
        if checks:
            section.note += " What looks implausible is listed below."
            section.blocks.append(checks)
        return section

    def _log_item(self, log: str) -> dict[str, Any]:
        facts = self._facts(log)
        return {"page": f"logs/{log}", "title": log, "text": facts["computer"] or "", "facts": facts["line"]}

    # A study

    def study(self, study: Study) -> Page:
        """Return a study's page."""
        page = Page(f"studies/{study.name}", study.title, f"Study {study.name}", self.answers[study.name])
        if study.missing:
            page.lead += f" {study.missing:,} of its runs are not in the database."
        chosen = {(recipe_of(run["workload"]), run["scheduler"]) for run in study.runs}
        matrix = self._matrix({key: values for key, values in self.metrics.items() if key in chosen})
        if matrix:
            matrix["order"] = study.schedulers
            page.sections.append(Section("Its runs", "The best of a row is marked.", [matrix]))
        for log in study.logs:
            section = Section(log if len(study.logs) > 1 else "Over time, by kind of job, and as a whole")
            request = self._request(study.first_runs(log), log)
            section.blocks += self._drawn(request, STUDY_FIGURES)
            compared = self._compared(study.first_runs(log))
            section.blocks += [compared] if compared else []
            page.sections.append(section)
        asked = [_figure(spec) for spec in self.figures if spec["usermeta"].get("study") == study.name]
        if not asked and self.draw:
            asked = [
                block
                for log in study.logs
                for block in self._drawn(
                    Request(self.connection, study.first_runs(log), log, study.split, "log", study.window, True),
                    study.figures,
                )
            ]
            asked += self._sweep_figures(study)
        if asked:
            page.sections.append(Section("Figures of the study", blocks=asked))
        page.sections += self._study_papers(study)
        scope = _scope(study, self.plan.digest is not None)
        found = [self._table(name, scope) for name in ("whatifs", "whatif_slowdowns")]
        page.sections.append(Section("What if", blocks=[table for table in found if table]))
        names = ("metrics", "comparisons", "replicates", "fidelity", "fairness", "schedulers")
        tables = [self._table(name, scope) for name in names] if study.runs else []
        page.sections.append(Section("Tables", blocks=[table for table in tables if table]))
        page.sections = [section for section in page.sections if section.blocks]
        return page

    def _study_papers(self, study: Study) -> list[Section]:
        if not study.runs:
            return []
        request = self._request(study.runs, study.name)
        spec = published_figure(request, sweeps=bool(study.sweeps))
        blocks = [_figure(spec)] if spec else []
        for name in ("reproduction", "missing", "readings", "sensitivity", "trends"):
            table = self._table(name, _scope(study))
            blocks += [table] if table else []
        return [Section("Published beside ours", blocks=blocks)] if blocks else []

    def _sweep_figures(self, study: Study) -> Iterator[dict[str, Any]]:
        there = set(self._rows("SELECT DISTINCT source, sweep FROM sweeps"))
        for workload, sweep in study.sweeps:
            if (workload, sweep) in there:
                yield _figure(draw_sweep_on(self.connection, sweep, log=workload, interactive=True))

    # A log

    def log(self, log: str) -> Page:
        """Return a log's page."""
        facts = self._facts(log)
        page = Page(f"logs/{log}", log, "Log", facts["line"])
        own = facts["workload"]
        words = "" if own == log else f"The log itself was not simulated: this is of {own}."
        recipes = [
            recipe for (recipe,) in self._rows("SELECT DISTINCT recipe FROM workloads WHERE log = $a ORDER BY ALL", log)
        ]
        page.sections.append(Section("What it is", words, [{"kind": "facts", "facts": facts["rows"]}]))
        scope = Scope([recipe_of(own)])
        cleaning = self._table("cleaning", scope)
        if cleaning:
            page.sections.append(Section("What cleaning removed", blocks=[cleaning]))
        checks = self._table("checks", Scope(recipes))
        if checks:
            page.sections.append(Section("Is it plausible?", blocks=[checks]))
        request = self._request([{"run": "", "workload": own, "scheduler": ""}], log)
        page.sections.append(Section("Its jobs", words, self._drawn(request, LOG_FIGURES)))
        matrix = self._matrix({key: values for key, values in self.metrics.items() if log_of(key[0]) == log})
        if matrix:
            page.sections.append(Section("Its runs", "The best of a row is marked.", [matrix]))
        studies = [
            {"page": f"studies/{study.name}", "title": study.title, "text": self.answers[study.name]}
            for study in self.plan.studies
            if log in study.logs or log in {log_of(workload) for workload, _ in study.sweeps}
        ]
        page.sections.append(Section("Studies that use it", blocks=[{"kind": "answers", "items": studies}]))
        tables = [self._table(name, Scope(recipes)) for name in ("workloads", "correlations", "logs")]
        page.sections.append(Section("Tables", blocks=[table for table in tables if table]))
        page.sections = [section for section in page.sections if section.blocks and section.blocks[0].get("items", 1)]
        return page

    def _facts(self, log: str) -> dict[str, Any]:
        """Return what a log is, of its workload with the fewest steps."""
        row = self._rows(
            """WITH own AS (SELECT * FROM workloads WHERE log = $a ORDER BY len(steps), workload LIMIT 1)
            SELECT workload, computer, installation, own.processors, nodes, jobs, unix_start_time, acknowledge,
                last_submit_time - first_submit_time AS span, area, users
            FROM own, (SELECT sum(processors * run_time) AS area, count(DISTINCT user_id) AS users
                FROM jobs WHERE workload = (SELECT workload FROM own))""",
            log,
        )[0]
        names = ("workload", "computer", "installation", "processors", "nodes", "jobs", "unix", "acknowledge", "span",
                 "area", "users")  # fmt: skip
        facts = dict(zip(names, row, strict=True))
        load = facts["area"] / (facts["processors"] * facts["span"]) if facts["span"] and facts["area"] else None
        span = duration(facts["span"] or 0.0)
        line = f"{number(facts['jobs'])} jobs in {span} on {number(facts['processors'])} processors"
        line += f", offered load {percent(load)}." if load is not None else "."
        rows = [
            ("Computer", facts["computer"]),
            ("Installation", facts["installation"]),
            ("Processors", number(facts["processors"])),
            ("Nodes", number(facts["nodes"])),
            ("Jobs", number(facts["jobs"])),
            ("Users", number(facts["users"]) if facts["users"] else None),
            ("From first to last submission", duration(facts["span"] or 0.0)),
            ("Offered load", percent(load) if load is not None else "all jobs are submitted at once"),
            ("Acknowledge", facts["acknowledge"]),
        ]
        return facts | {"line": line, "rows": [(name, value) for name, value in rows if value]}

    def tables(self) -> Page:
        """Return the page of all tables."""
        page = Page("tables", "All tables", lead="Every row of the database's small tables; jobs and outcomes by SQL.")
        names = ("metrics", "workloads", "cleaning", "schedulers", "correlations", "comparisons", "reproduction",
                 "missing", "whatifs", "whatif_slowdowns", "left_out", "readings", "sensitivity", "trends",
                 "replicates", "fits", "fidelity", "fairness", "checks", "logs")  # fmt: skip
        for name in names:
            table = self._table(name, Scope())
            if table:
                page.sections.append(Section("", blocks=[table]))
        return page

    # Parts

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, dict(zip("abc", values, strict=False))).fetchall()

    def _table(self, name: str, scope: Scope) -> dict[str, Any] | None:
        return read_table(self.connection, name, scope)

    def _request(self, runs: Sequence[dict[str, str]], title: str) -> Request:
        return Request(self.connection, runs, title, interactive=True)

    def _drawn(self, request: Request, kinds: Iterable[str]) -> list[dict[str, Any]]:
        """Draw figures; one that cannot be drawn of these runs is left out, with a word on the terminal."""
        blocks = []
        for kind in kinds:
            try:
                blocks.append(_figure(FIGURES[kind].draw(request)))
            except SwflowError as error:
                logging.getLogger(__name__).warning("%s", error)
        return blocks

    def _loose_figures(self) -> list[dict[str, Any]]:
        known = {study.name for study in self.plan.studies}
        return [_figure(spec) for spec in self.figures if spec["usermeta"].get("study") not in known]

    def _metrics(self) -> dict[tuple[str, str], dict[str, Any]]:
        """Return (recipe, scheduler) to measure to mean, interval and number of replicates, and to their mean waits."""
        names = [name for name, *_ in MATRIX_MEASURES]
        lists = ", ".join(f"list({name} ORDER BY workload)" for name in names)
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for recipe, scheduler, *values in self._rows(
            f"""SELECT recipe, scheduler, {lists} FROM metrics JOIN workloads USING (workload)
            GROUP BY recipe, scheduler ORDER BY recipe, scheduler"""
        ):
            found[recipe, scheduler] = dict(zip(names, values, strict=True))
        return found

    def _answer(self, study: Study) -> str:
        waits: dict[str, dict[str, list[float]]] = {}
        for (recipe, scheduler), values in self.metrics.items():
            known = [value for value in values["mean_wait_time"] if value is not None]
            if known:
                waits.setdefault(recipe, {})[scheduler] = known
        asked = self._conventions_answer(study) or answer(study, waits, self.idle)
        text = " ".join(filter(None, [asked, self._whatif_answer(study)]))
        if not study.runs:
            return text
        sql = "SELECT coalesce(within_percent, 100) FROM reproduction WHERE {published} AND reason IS NULL"
        conditions = _scope(study).conditions()
        found = [percents for (percents,) in self._rows(sql.format(**conditions))]
        near = [sum(percents <= bound for percents in found) for bound in (1, 5, 10)]
        return " ".join(filter(None, [text, reproduced(len(found), near)]))

    def _conventions_answer(self, study: Study) -> str:
        """Say which convention decides, if that is the question: if it runs the choices of several conventions."""
        choices = self._rows("SELECT DISTINCT convention, ours FROM conventions WHERE part = 'scheduler'")
        if len({convention for convention, choice in choices if choice in study.schedulers}) < 2:
            return ""
        sql = "SELECT decides, inside FROM sensitivity WHERE {published}"
        rows = self._rows(sql.format(**_scope(study).conditions()))
        decisive = Counter(decides for decides, _ in rows if decides)
        return conventions(decisive, sum(inside for _, inside in rows), len(rows))

    def _whatif_answer(self, study: Study) -> str:
        rows = self._rows(
            """SELECT workload, variant, verdict, base, value FROM whatifs
            WHERE study = $a AND measure = 'mean_wait_time' ORDER BY rowid""",
            study.name,
        )
        by_workload: dict[str, list[WhatIf]] = {}
        for workload, *values in rows:
            by_workload.setdefault(workload, []).append(WhatIf(*values))
        return what_if(by_workload)

    def _matrix(self, metrics: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the matrix of some runs: a row per recipe, a column per scheduler, a value per measure."""
        rows, columns = ([*dict.fromkeys(key[place] for key in metrics)] for place in (0, 1))
        if not rows:
            return None
        rows.sort(key=lambda recipe: (log_of(recipe), recipe.count("+"), recipe))
        cells = {
            f"{rows.index(recipe)},{columns.index(scheduler)}": [
                _mean_and_interval(values[name]) for name, *_ in MATRIX_MEASURES
            ]
            for (recipe, scheduler), values in metrics.items()
        }
        return {
            "kind": "matrix",
            "title": "matrix of workloads and schedulers",
            "rows": [{"name": recipe, "log": log_of(recipe), "steps": recipe.count("+")} for recipe in rows],
            "columns": columns,
            "measures": [
                {"name": name, "title": title, "kind": kind, "best": best}
                for name, title, kind, best in MATRIX_MEASURES
            ],
            "cells": cells,
        }

    def _compared(self, runs: Sequence[dict[str, str]]) -> dict[str, Any] | None:
        """Return the matrix of comparisons of some runs of a log."""
        shown = list(runs[:MOST_COMPARED])
        names = [run["run"] for run in shown]
        rows = self._rows(
            """SELECT first, second, measure, score, first_wins, second_wins, score_verdict FROM comparisons
            WHERE list_contains($a, first) AND list_contains($a, second) ORDER BY ALL""",
            names,
        )
        if not rows:
            return None
        cells: dict[str, dict[str, Any]] = {}
        for first, second, measure, score, first_wins, second_wins, verdict in rows:
            a, b = names.index(first), names.index(second)
            part = cells.setdefault(measure, {})
            chance = verdict in (EQUAL, NEITHER)
            part[f"{a},{b}"] = [shortened(value) for value in (score, first_wins, second_wins, chance)]
            part[f"{b},{a}"] = [
                shortened(value) for value in (None if score is None else -score, second_wins, first_wins, chance)
            ]
        more = len(runs) - len(shown)
        return {
            "kind": "compare",
            "title": "Which is better at equal load",
            "note": "Blue: the run of the row does better at equal load than that of the column, orange: worse. The "
            "score is how much more probable it is that a job of the one does better than one of the other than the "
            "other way round. In brackets and without a colour: no difference, by intervals over the log's weeks, "
            "corrected for the number of comparisons (Holm)." + (f" {more} further runs are left out." if more else ""),
            "names": short_names(shown),
            "measures": {measure: cells[measure] for measure in HEATMAP_MEASURES if measure in cells},
        }


def _scope(study: Study, planned: bool = True) -> Scope:
    return Scope(study.recipes, study.schedulers, bool(study.sweeps), study.name if planned else None)


def _mean_and_interval(values: Sequence[float | None]) -> list[Any] | None:
    """Return mean, half of Student's 95 % interval (None for one value) and number of values."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean, half = sum(known) / len(known), None
    if len(known) > 1:
        from scipy.special import stdtrit

        deviation = (sum((value - mean) ** 2 for value in known) / (len(known) - 1)) ** 0.5
        half = float(stdtrit(len(known) - 1, 0.975)) * deviation / len(known) ** 0.5
    return [shortened(mean), shortened(half), len(known)]


def _figure(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, caption and specification of a figure, without the schema's address: nothing is to be fetched."""
    about = spec["usermeta"]
    kept = {name: value for name, value in spec.items() if name not in ("$schema", "usermeta", "title")}
    return {"kind": "figure", "title": about["title"], "caption": about["caption"], "spec": kept}


def _counted(count: int, word: str, words: str = "") -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"
