"""What the pages of a report read of a database: figures, tables, metrics, and the answers of its studies."""

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import duckdb

from swflow.database.leaderboard import REFERENCE
from swflow.errors import SwflowError
from swflow.figures import draw_request
from swflow.figures.forest import draw_forest_on
from swflow.figures.parts import Spec
from swflow.figures.request import Request
from swflow.papers import read_papers
from swflow.report.answers import Claim, Fidelity, Headline, Verdict, answer, listed
from swflow.report.papers import count_papers
from swflow.report.plan import Plan, Study
from swflow.report.summaries import Ranked, WhatIf, conventions, ranking, reproduced, what_if
from swflow.report.tables import Block, Scope, quoted, read_table
from swflow.studies.figure_options import kind_of_figure

#: Measures of a matrix: column of ``metrics``, title, kind, and whether the lowest or the highest value is best.
MATRIX_MEASURES = (
    ("mean_wait_time", "mean wait", "seconds", "low"),
    ("p95_wait_time", "95th percentile of the wait", "seconds", "low"),
    ("mean_response_time", "mean response time", "seconds", "low"),
    ("mean_bounded_slowdown", "mean bounded slowdown", "number", "low"),
    ("awrt", "average weighted response time", "seconds", "low"),
    ("utilization", "utilization", "percent", "high"),
    ("makespan", "makespan", "seconds", "low"),
)


class Source:
    """
    A database with what all pages read of it, and the answers of the studies.

    ``figures`` are existing specifications; ``usermeta`` may name the ``study``. With ``draw``, the figures of each
    study that has no existing figure are drawn. ``answer_pages`` are study and workload of what-ifs with a page beside
    the report.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        plan: Plan,
        figures: Sequence[Spec] = (),
        draw: bool = True,
        answer_pages: Collection[tuple[str, str]] = (),
    ) -> None:
        self.connection, self.plan, self.figures, self.draw = connection, plan, figures, draw
        self.answer_pages = answer_pages
        self.metrics = self._metrics()
        self.logs = self.column("SELECT DISTINCT log FROM workloads ORDER BY log")
        self.idle = self.column("SELECT scheduler FROM schedulers WHERE backfill = 'none' AND scheduler <> 'log'")
        options = self.rows("SELECT scheduler, options FROM schedulers ORDER BY scheduler")
        self.options = {name: json.loads(text) for name, text in options}
        #: The run of each recipe and scheduler that has a single one, by ``recipe/scheduler``.
        self.only = dict(
            self.rows(
                """SELECT recipe || '/' || scheduler, any_value(run) FROM runs JOIN workloads USING (workload)
                GROUP BY recipe, scheduler HAVING count(*) = 1 ORDER BY ALL"""
            )
        )
        self.recorded = self._fidelity()
        known, counts = read_papers(), count_papers(connection)
        self.about_papers = {
            paper: {"authors": paper, "citation": "", "note": "", **known.get(paper, {})} for paper in counts
        }
        asked = {paper for study in plan.studies for paper in self.papers_of(study)}
        self.papers = {paper: count for paper, count in counts.items() if paper in asked}
        if plan.digest is None:  # without a config, a scheduler that does not backfill is the base
            idle = set(self.idle)
            bases = [next((name for name in study.schedulers if name in idle), None) for study in plan.studies]
            studies = [replace(study, baseline=base) for study, base in zip(plan.studies, bases, strict=True)]
            self.plan = replace(plan, studies=studies)
        self.answers = {study.name: headline_of(self, study) for study in self.plan.studies}

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; its parameters are ``$a``, ``$b`` and ``$c``."""
        return self.connection.execute(sql, dict(zip("abc", values, strict=False))).fetchall()

    def column(self, sql: str, *values: Any) -> list[Any]:
        """Return the rows of a query with one column."""
        return [value for (value,) in self.rows(sql, *values)]

    def tables(self, names: Iterable[str], scope: Scope) -> list[Block]:
        """Return the tables that have rows."""
        return [table for name in names if (table := read_table(self.connection, name, scope))]

    def scope(self, study: Study) -> Scope:
        """Return which rows belong to a study; without a config, the what-ifs of all studies do."""
        return Scope(study.recipes, study.schedulers, bool(study.sweeps), study.name if self.plan.digest else None)

    def request(self, runs: Sequence[dict[str, str]], title: str) -> Request:
        """Return a request to draw runs."""
        return Request(self.connection, runs, title, interactive=True, titles=self.plan.titles)

    def drawn(self, request: Request, kinds: Iterable[str]) -> list[Block]:
        """Draw figures; skip a figure that cannot be drawn for these runs, with a message on the terminal."""
        blocks = []
        for kind in kinds:
            try:
                blocks.append(figure_block(draw_request(kind, request)))
            except SwflowError as error:
                logging.getLogger(__name__).warning("%s", error)
        return blocks

    def papers_of(self, study: Study) -> list[str]:
        """Return the papers with which a study is compared: those of its title, or all that have a value."""
        titled = [paper for paper, about in self.about_papers.items() if about["authors"] in study.title]
        if titled or not self.asks_for_papers(study):
            return titled
        sql = "SELECT DISTINCT paper FROM reproduction WHERE reason IS NULL AND {published} ORDER BY ALL"
        return self.column(sql.format(**self.scope(study).conditions()))

    def asks_for_papers(self, study: Study) -> bool:
        """Return whether a study asks for published values, by its title (which may name a paper) or its figures."""
        names = ["published values", *(about["authors"] for about in self.about_papers.values())]
        return "published" in map(kind_of_figure, study.figures) or any(
            name.lower() in study.title.lower() for name in names
        )

    def forest(self, studies: Iterable[Study]) -> list[Block]:
        """Return the figure of all differences that studies ask for, if they compare anything."""
        studies = list(studies)
        titles = {study.name: study.title for study in studies}
        references = {study.name: REFERENCE for study in studies if study.ranked}
        try:
            spec = draw_forest_on(self.connection, titles, references=references, interactive=True)
        except SwflowError:
            return []
        return [figure_block(spec)]

    def _metrics(self) -> dict[tuple[str, str], Block]:
        """Return (recipe, scheduler) to measure to mean, interval and number of replicates, and to the mean waits."""
        names = [name for name, *_ in MATRIX_MEASURES]
        lists = ", ".join(f"list({name} ORDER BY workload)" for name in names)
        rows = self.rows(
            f"""SELECT recipe, scheduler, {lists} FROM metrics JOIN workloads USING (workload)
            GROUP BY recipe, scheduler ORDER BY recipe, scheduler"""
        )
        return {(recipe, scheduler): dict(zip(names, values, strict=True)) for recipe, scheduler, *values in rows}

    def _fidelity(self) -> dict[str, Fidelity]:
        """Return the waits of the jobs that each ``recipe/scheduler`` and the record have in common."""
        rows = self.rows(
            """SELECT recipe || '/' || fidelity.scheduler, avg(recorded_mean_wait_time), avg(simulated_mean_wait_time),
                CASE WHEN bool_and(fidelity.jobs = run.jobs AND fidelity.jobs = log.jobs) THEN NULL
                    ELSE sum(fidelity.jobs)::BIGINT END
            FROM fidelity JOIN workloads USING (workload) JOIN metrics run USING (run)
            JOIN metrics log ON log.workload = fidelity.workload AND log.scheduler = 'log'
            WHERE fidelity.jobs > 0 GROUP BY recipe, fidelity.scheduler"""
        )
        return {name: Fidelity(*values) for name, *values in rows}

    def verdict(self, study: str, variant: str, base: str) -> Verdict | None:
        """
        Return the verdict of a study on the mean waits of two runs or recipes.

        The only draw of a recipe represents it. A database that was loaded without the study has other verdicts.
        """
        for names in ((variant, base), (self.only.get(variant, variant), self.only.get(base, base))):
            rows = self.rows(
                """SELECT difference, low, high, verdict, verdict_holm, basis, blocks, freedom FROM differences
                WHERE measure = 'wait_time' AND variant = $a AND base = $b ORDER BY study <> $c, study""",
                *names,
                study,
            )
            for values in rows:
                return Verdict(*values)
        return None

    def headlines(self) -> list[tuple[Any, ...]]:
        """Return the list of headlines: the columns of `swflow.report.answers.COLUMNS`."""
        return [row for study in self.plan.studies for row in listed(study, self.answers[study.name])]


def headline_of(source: "Source", study: Study) -> Headline:
    """Return the answer of a study to its title."""
    waits: dict[str, dict[str, list[float]]] = {}
    for (recipe, scheduler), values in source.metrics.items():
        known = [value for value in values["mean_wait_time"] if value is not None]
        if known:
            waits.setdefault(recipe, {})[scheduler] = known
    ranked, convention = _ranking_answer(source, study), _conventions_answer(source, study)
    special = ranked if ranked.sentences else Headline([convention] if convention else [])
    found = special
    if not special.sentences:
        lookup = partial(source.verdict, study.name)
        found = answer(study, waits, source.options, lookup, source.recorded, source.plan.titles)
    whatif = _whatif_answer(source, study)
    parts = [*whatif.sentences, found.record, *found.sentences]
    if study.runs and not study.ranked and source.asks_for_papers(study):
        sql = (
            "SELECT coalesce(within_percent, 100) FROM reproduction "
            f"WHERE {{published}} AND reason IS NULL AND paper IN ({quoted(*source.papers_of(study))})"
        )
        compared = reproduced(source.column(sql.format(**source.scope(study).conditions())))
        if compared and not special.sentences and study.contrast is None:  # the title is that of a paper's tables
            parts = [compared, *(parts if found.claims or found.record else whatif.sentences)]
        else:
            parts.append(compared)
    return Headline([part for part in parts if part], [*found.claims, *whatif.claims])


def _ranking_answer(source: "Source", study: Study) -> Headline:
    if not study.ranked:
        return Headline([])
    tables: dict[str, list[Ranked]] = {}
    condition = source.scope(study).conditions()["runs"]
    for workload, *values in source.rows(
        f"""SELECT workload, scheduler, mean_wait_time, against_best FROM leaderboard WHERE {condition}
        ORDER BY workload, rank, against_best <> 'best', scheduler"""
    ):
        tables.setdefault(workload, []).append(Ranked(*values))
    claims = []
    for workload, rows in tables.items():
        reference = next((row for row in rows[1:] if row.scheduler == REFERENCE), None)
        if reference is not None:
            names = f"{workload}/{rows[0].scheduler}", f"{workload}/{REFERENCE}"
            claims.append(Claim(*names, reference.wait, rows[0].wait, source.verdict(study.name, *names)))
    return Headline(ranking(tables), claims)


def _conventions_answer(source: "Source", study: Study) -> str:
    choices = source.rows("SELECT DISTINCT convention, ours FROM conventions WHERE part = 'scheduler'")
    if len({convention for convention, choice in choices if choice in study.schedulers}) < 2:
        return ""
    sql = "SELECT decides, inside FROM sensitivity WHERE {published}"
    rows = source.rows(sql.format(**source.scope(study).conditions()))
    decisive = Counter(decides for decides, _ in rows if decides)
    return conventions(decisive, sum(inside for _, inside in rows), len(rows))


def _whatif_answer(source: "Source", study: Study) -> Headline:
    rows = source.rows(
        """SELECT workload, variant, verdict, base, value, low, high, weeks, freedom, verdict_holm FROM whatifs
        WHERE study = $a AND measure = 'mean_wait_time' ORDER BY rowid""",
        study.name,
    )
    by_workload: dict[str, list[WhatIf]] = {}
    for workload, *values in rows:
        by_workload.setdefault(workload, []).append(WhatIf(*values))
    return what_if(by_workload)


def figure_block(spec: Spec) -> Block:
    """Return title, caption and specification of a figure, without the address of the schema, which is not fetched."""
    about = spec["usermeta"]
    kept = {name: value for name, value in spec.items() if name not in ("$schema", "usermeta", "title")}
    return {
        "kind": "figure",
        "name": f"{about.get('study', '')} {about['title']}".strip(),
        **{key: about.get(key, "") for key in ("title", "caption", "sql", "command")},
        "spec": kept,
    }
