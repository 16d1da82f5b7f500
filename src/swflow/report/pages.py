"""The contents of the pages: an overview, one page per study, one per log, and one with all tables."""

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb

from swflow.analysis.heatmap import HEATMAP_MEASURES
from swflow.analysis.intervals import over_replicates, student
from swflow.analysis.verdicts import EQUAL, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS
from swflow.database.leaderboard import REFERENCE
from swflow.errors import SwflowError
from swflow.figures import draw_request, draw_sweep_on
from swflow.figures.published import published_figure
from swflow.figures.request import Request, all_runs
from swflow.figures.runs import short_names
from swflow.names import log_of, recipe_of
from swflow.papers import read_papers
from swflow.report.answers import (
    Claim,
    Fidelity,
    Headline,
    Ranked,
    Verdict,
    WhatIf,
    answer,
    conventions,
    listed,
    ranking,
    reproduced,
    what_if,
)
from swflow.report.papers import claims_block, count_papers, legend, overview_item, table_blocks
from swflow.report.plan import Plan, Study
from swflow.report.tables import OF_ALL_LOGS, Block, Scope, read_table
from swflow.report.units import duration, number, percent, shortened

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

_BEST = "The best value of a row is marked."

#: The largest number of runs in one matrix of comparisons.
MOST_COMPARED = 12

#: The largest number of drawn runs of a ranking: the best ones, and the reference.
MOST_DRAWN = 6

#: The share of jobs with a recorded load above 1 from which the page of a log has a warning.
MOST_ABOVE_1 = 0.01

#: Figures that every study shows for each of its logs, before its own figures.
STUDY_FIGURES = ("timeline", "waits", "distributions")
LOG_FIGURES = ("offered-load", "arrivals", "composition")


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


class Book:
    """
    The pages of a report on a database.

    ``figures`` are existing specifications; ``usermeta`` may name the ``study``. With ``draw``, the figures of each
    study that has no existing figure are drawn.
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
        self.logs = self._column("SELECT DISTINCT log FROM workloads ORDER BY log")
        self.idle = self._column("SELECT scheduler FROM schedulers WHERE backfill = 'none' AND scheduler <> 'log'")
        options = self._rows("SELECT scheduler, options FROM schedulers ORDER BY scheduler")
        self.options = {name: json.loads(text) for name, text in options}
        self.only, self.recorded = self._only_runs(), self._fidelity()
        self.papers = count_papers(connection)
        self.about_papers = read_papers()
        self.answers = {study.name: self._answer(study) for study in plan.studies}

    def pages(self) -> Iterator[Page]:
        """Yield all pages, the overview first."""
        yield self.overview()
        for paper in self.papers:
            yield self.paper(paper)
        for study in self.plan.studies:
            yield self.study(study)
        for log in self.logs:
            yield self.log(log)
        yield self.tables()

    def headlines(self) -> list[tuple[Any, ...]]:
        """Return the list of headlines: the columns of `swflow.report.answers.COLUMNS`."""
        return [row for study in self.plan.studies for row in listed(study, self.answers[study.name])]

    # The overview

    def overview(self) -> Page:
        """Return the first page."""
        ((runs, jobs),) = self._rows("SELECT count(*), sum(jobs) FROM metrics")
        counts = [
            _counted(len(self.plan.studies), "study", "studies"),
            _counted(len(self.logs), "log"),
            _counted(runs, "run"),
            f"{number(jobs or 0)} simulated jobs",
        ]
        recorded = self._recorded(Scope(), "recorded")
        of_papers = {paper: self._studies_of(paper, self._about(paper)["authors"]) for paper in self.papers}
        shown = {study.name for studies in of_papers.values() for study in studies}
        others = [study for study in self.plan.studies if study.name not in shown]
        others.sort(key=lambda study: -self.answers[study.name].strength)  # a stable sort
        undecided = [study for study in others if self.answers[study.name].is_undecided]
        decided = [study for study in others if study not in undecided]
        note = "The strongest differences come first. The page of a study has its figures."
        answers = Section("What the studies found", note, self._items(decided, "Sweeps; see its page."))
        note = "What would decide each study, with a probability of 80 %; for other sizes, see `swflow power`."
        open_answers = Section("Undecided", note, self._items(undecided))
        # The record and the what-ifs come first for operators; studies of papers have no what-if.
        published = self._published(of_papers)
        recorded_first = bool(self._tables(["whatifs"], Scope())) or not published.blocks
        known = {study.name for study in self.plan.studies}
        figures = [_figure(spec) for spec in self.figures if spec["usermeta"].get("study") not in known]
        sections = [
            *([recorded] if recorded_first else []),
            published,
            answers,
            open_answers,
            *([] if recorded_first else [recorded]),
            self._matrix_section(),
            self._plausible(),
            Section("Omitted runs", blocks=self._tables(["left_out"], Scope())),
            Section("Figures", blocks=figures),
        ]
        return Page("index", "Overview", lead=", ".join(counts) + ".", sections=sections)

    def _items(self, studies: Iterable[Study], otherwise: str = "", authors: str = "") -> list[Block]:
        """Return a block with the titles and answers of studies, at most two sentences each; none without studies."""
        items = []
        for study in studies:
            found = self.answers[study.name]
            few = [*found.sentences[:1], found.deciding] if found.is_undecided else found.sentences[:2]
            title = study.title.removeprefix(authors).lstrip(", ") or study.title
            text = " ".join(filter(None, few)) or found.record or otherwise
            items.append({"page": f"studies/{study.name}", "title": title[:1].upper() + title[1:], "text": text})
        return [{"kind": "answers", "items": items}] if items else []

    def _recorded(self, scope: Scope, faithful: str = "fidelity") -> Section:
        """Return the section that compares simulated schedules with the record, and what-ifs with their base."""
        note = "The similarity of each simulation to the recorded schedule, and the effects of variants."
        names = (faithful, "whatifs", "forecasts") if scope.recipes != [] else ("whatifs", "forecasts")
        return Section("Recorded and simulated schedules, and what-ifs", note, self._tables(names, scope))

    def _matrix_section(self) -> Section:
        planned = [scheduler for study in self.plan.studies for scheduler in study.schedulers]
        note = "A row is a workload, a column a scheduler; the best value of a row is marked. Replicates: mean and"
        note += " Student's 95 % interval."
        return Section("Schedulers on every workload", note, self._matrix(self.metrics, planned))

    def _published(self, studies: Mapping[str, Sequence[Study]]) -> Section:
        """Return the section with the verdicts and claims of each paper, and below each paper its studies."""
        note = "The verdicts on the values of each paper's tables, its claims, and its studies."
        blocks: list[Block] = []
        listed_studies: set[str] = set()
        for paper, count in self.papers.items():
            authors = self._about(paper)["authors"]
            item = overview_item(paper, count, _paper_page(paper), authors)
            of_paper = [study for study in studies[paper] if study.name not in listed_studies]
            listed_studies |= {study.name for study in of_paper}
            blocks += [{"kind": "papers", "items": [item]}, *self._items(of_paper, "Sweeps; see its page.", authors)]
        return Section("Papers", note, [*blocks, {"kind": "legend", "items": legend()}] if blocks else [])

    # A paper

    def paper(self, paper: str) -> Page:
        """Return the page of a paper: its claims, its tables as printed, and its figures in its order."""
        about, count = self._about(paper), self.papers[paper]
        cite = f"{about['citation']}. " if about["citation"] else ""
        note = (
            f"{about['note']} Each cell has the published value above ours; its color and sign are the verdict, and "
            "pointing at it shows the reason. The CSV has all reasons."
        ).strip()
        tables = table_blocks(self.connection, paper, about.get("beside"))
        studies = self._items(self._studies_of(paper, about["authors"]))
        sections = [
            Section(
                "Claims",
                f"{cite}A claim holds if it is true for every simulated log of the paper.",
                [claims_block(self.connection, paper)],
            ),
            Section("Tables", note, [{"kind": "legend", "items": legend()}, *tables] if tables else []),
            Section("Figures", "In the order of the paper, drawn from the runs here.", self._paper_figures(about)),
            Section("Studies", "Their pages have the figures of all runs.", studies),
        ]
        return Page(_paper_page(paper), about["authors"], "Paper", count.sentence(), sections)

    def _about(self, paper: str) -> Block:
        return {"authors": paper, "citation": "", "note": "", **self.about_papers.get(paper, {})}

    def _studies_of(self, paper: str, authors: str) -> list[Study]:
        """Return the studies whose titles name a paper; if there is none, those with a compared value of it."""
        titled = [study for study in self.plan.studies if authors in study.title]
        sql = "SELECT count(*) FROM reproduction WHERE paper = $a AND reason IS NULL AND {published}"
        return titled or [
            study
            for study in self.plan.studies
            if study.runs and self._rows(sql.format(**self._scope(study).conditions()), paper) != [(0,)]
        ]

    def _paper_figures(self, about: Mapping[str, Any]) -> list[Block]:
        """Return the figures of a paper whose first run is here."""
        known = {run["run"]: run for run in all_runs(self.connection)}
        blocks = []
        for figure in about.get("figures", ()):
            runs = [known[run] for run in figure["runs"] if run in known]
            if runs and runs[0]["run"] == figure["runs"][0]:
                title = f"{figure['figure']}, {figure['log']}"
                window = tuple(figure.get("window", (None, None)))
                request = replace(self._request(runs, title), window=window)
                blocks += self._drawn(request, [figure["kind"]])
        return blocks

    def _plausible(self) -> Section:
        items = []
        for log in self.logs:
            facts = self._facts(log)
            text = facts["computer"] or ""
            items.append({"page": f"logs/{log}", "title": log, "text": text, "facts": facts["line"]})
        checks = self._tables(["checks_of_some"], Scope())
        note = "The properties of each log and the load that it offers; for more, see its page."
        of_all = self._column(f'SELECT any_value(message) FROM checks WHERE {OF_ALL_LOGS} GROUP BY "check" ORDER BY 1')
        note += "".join(f" All logs: {message}." for message in of_all)
        note += " Implausible values of single logs are listed below." if checks else ""
        return Section("The logs", note, [{"kind": "logs", "items": items}, *checks])

    # A study

    def study(self, study: Study) -> Page:
        """Return the page of a study."""
        found = self.answers[study.name]
        lead = " ".join(filter(None, [found.text, found.deciding]))
        if study.missing:
            lead += f" {study.missing:,} of its runs are not in the database."
        scope = self._scope(study)
        chosen = {(recipe_of(run["workload"]), run["scheduler"]) for run in study.runs}
        metrics = {key: values for key, values in self.metrics.items() if key in chosen}
        if study.ranked:
            papers = [Section("Leaderboard", blocks=self._tables(("leaderboard", "bounds"), scope))]
        else:
            papers = self._study_papers(study)
        asked = self._asked_figures(study)
        generic = self._run_sections(study, "Show the figures of its runs" if papers or asked else "")
        names = ("metrics", "further_metrics", "comparisons", "replicates", "fairness", "schedulers")
        sections = [
            *papers,
            self._recorded(scope),
            Section("Runs", _BEST, self._matrix(metrics, study.schedulers)),
            Section("Figures of the study", blocks=asked),
            *([] if papers or asked else generic),
            Section("Tables", blocks=self._tables(names, scope) if study.runs else []),
            *(generic if papers or asked else []),
        ]
        return Page(f"studies/{study.name}", study.title, f"Study {study.name}", lead, sections)

    def _asked_figures(self, study: Study) -> list[Block]:
        """Return the figures defined by the study: existing ones, or new ones."""
        asked = [_figure(spec) for spec in self.figures if spec["usermeta"].get("study") == study.name]
        if asked or not self.draw:
            return asked
        for log in study.logs:
            runs = study.first_runs(log)
            request = Request(self.connection, runs, log, study.split, "log", study.window, True, self.plan.titles)
            asked += self._drawn(request, study.figures)
        there = set(self._rows("SELECT DISTINCT source, sweep FROM sweeps"))
        for workload, sweep in study.sweeps:
            if (workload, sweep) in there:
                asked.append(_figure(draw_sweep_on(self.connection, sweep, log=workload, interactive=True)))
        return asked

    def _run_sections(self, study: Study, folded: str) -> list[Section]:
        """Return the figures that every study has, one section per log."""
        sections = []
        for log in study.logs:
            runs = self._by_rank(study, log)
            drawn = self._few(runs) if study.ranked else runs
            title = f"Runs of {log}" if len(study.logs) > 1 else "Over time, by class of job, and as a whole"
            blocks = self._drawn(self._request(drawn, log), STUDY_FIGURES) + self._compared(runs)
            sections.append(Section(title, blocks=blocks, folded=folded))
        return sections

    def _by_rank(self, study: Study, log: str) -> list[dict[str, str]]:
        """Return the first runs of a study's log, those of a ranking in its order."""
        runs = study.first_runs(log)
        if not study.ranked:
            return runs
        ranks = dict(self._rows("SELECT workload || '/' || scheduler, rank FROM leaderboard"))
        return sorted(runs, key=lambda run: ranks.get(run["run"], len(ranks)))

    def _few(self, runs: Sequence[dict[str, str]]) -> list[dict[str, str]]:
        """Return the runs of a ranking that are drawn: the best ones, and the reference."""
        best = list(runs[:MOST_DRAWN])
        reference = [run for run in runs[MOST_DRAWN:] if run["scheduler"] == REFERENCE]
        return [*best[: MOST_DRAWN - len(reference)], *reference]

    def _ranking_answer(self, study: Study) -> Headline:
        if not study.ranked:
            return Headline([])
        tables: dict[str, list[Ranked]] = {}
        condition = self._scope(study).conditions()["runs"]
        for workload, *values in self._rows(
            f"""SELECT workload, scheduler, mean_wait_time, against_best FROM leaderboard WHERE {condition}
            ORDER BY workload, rank, against_best <> 'best', scheduler"""
        ):
            tables.setdefault(workload, []).append(Ranked(*values))
        claims = []
        for workload, rows in tables.items():
            reference = next((row for row in rows[1:] if row.scheduler == REFERENCE), None)
            if reference is not None:
                names = f"{workload}/{rows[0].scheduler}", f"{workload}/{REFERENCE}"
                claims.append(Claim(*names, reference.wait, rows[0].wait, self._verdict(*names)))
        return Headline(ranking(tables), claims)

    def _study_papers(self, study: Study) -> list[Section]:
        if not study.runs:
            return []
        request = self._request(study.runs, study.name)
        spec = published_figure(request, sweeps=bool(study.sweeps))
        names = ("reproduction", "missing", "readings", "sensitivity", "trends")
        blocks = ([_figure(spec)] if spec else []) + self._tables(names, self._scope(study))
        return [Section("Published values and ours", blocks=blocks)] if blocks else []

    # A log

    def log(self, log: str) -> Page:
        """Return the page of a log."""
        facts = self._facts(log)
        own = facts["workload"]
        note = "" if own == log else f"The log itself was not simulated; the values are those of {own}."
        recipes = self._column("SELECT DISTINCT recipe FROM workloads WHERE log = $a ORDER BY ALL", log)
        words = " ".join(filter(None, [note, self._load_warning(own)]))
        request = self._request([{"run": "", "workload": own, "scheduler": ""}], log)
        metrics = {key: values for key, values in self.metrics.items() if log_of(key[0]) == log}
        studies = [
            study
            for study in self.plan.studies
            if log in study.logs or log in {log_of(workload) for workload, _ in study.sweeps}
        ]
        sections = [
            Section("Properties", words, [{"kind": "facts", "facts": facts["rows"]}]),
            Section("Jobs removed by cleaning", blocks=self._tables(["cleaning"], Scope([recipe_of(own)]))),
            Section("Plausibility", blocks=self._tables(["checks"], Scope(recipes))),
            Section("Its jobs", note, self._drawn(request, LOG_FIGURES)),
            Section("Runs", _BEST, self._matrix(metrics)),
            Section("Studies of this log", blocks=self._items(studies)),
            Section("Tables", blocks=self._tables(("workloads", "correlations", "logs"), Scope(recipes))),
        ]
        return Page(f"logs/{log}", log, "Log", facts["line"], sections)

    def _load_warning(self, workload: str) -> str:
        """Return a warning if more than `MOST_ABOVE_1` of the jobs met a recorded load above 1, else an empty text."""
        ((share,),) = self._rows(
            """SELECT max(above_1 / nullif(c.jobs, 0)) FROM correlations c JOIN runs USING (run)
            WHERE workload = $a AND scheduler = 'log'""",
            workload,
        )
        if share is None or share <= MOST_ABOVE_1:
            return ""
        return (
            f"{percent(share)} of the jobs meet a recorded load above 1, which is impossible: the log records more "
            "busy processors than the machine has. Its recorded loads, heatmap and correlations are meaningless."
        )

    def _facts(self, log: str) -> Block:
        """Return the properties of a log, from its workload with the fewest steps."""
        ((workload, computer, installation, processors, nodes, jobs, acknowledge, span, area, users),) = self._rows(
            """WITH own AS (SELECT * FROM workloads WHERE log = $a ORDER BY len(steps), workload LIMIT 1)
            SELECT workload, computer, installation, own.processors, nodes, jobs, acknowledge,
                last_submit_time - first_submit_time AS span, area, users
            FROM own, (SELECT sum(processors * run_time) AS area, count(DISTINCT user_id) AS users
                FROM jobs WHERE workload = (SELECT workload FROM own))""",
            log,
        )
        load = area / (processors * span) if span and area else None
        line = f"{number(jobs)} jobs in {duration(span or 0.0)} on {number(processors)} processors"
        line += f", offered load {percent(load)}." if load is not None else "."
        rows = [
            ("Computer", computer),
            ("Installation", installation),
            ("Processors", number(processors)),
            ("Nodes", number(nodes)),
            ("Jobs", number(jobs)),
            ("Users", number(users) if users else None),
            ("From first to last submission", duration(span or 0.0)),
            ("Offered load", percent(load) if load is not None else "all jobs are submitted at once"),
            ("Acknowledge", acknowledge),
        ]
        rows = [(name, value) for name, value in rows if value]
        return {"workload": workload, "computer": computer, "line": line, "rows": rows}

    def tables(self) -> Page:
        """Return the page of all tables."""
        names = ("metrics", "further_metrics", "workloads", "cleaning", "schedulers", "correlations", "comparisons",
                 "leaderboard", "bounds", "coverage", "claims", "reproduction", "missing", "whatifs", "forecasts",
                 "left_out",
                 "readings", "sensitivity", "trends", "replicates", "fits", "recorded", "fidelity", "fairness",
                 "checks", "logs")  # fmt: skip
        of_papers = () if self.papers else ("coverage", "claims", "missing")
        tables = self._tables([name for name in names if name not in of_papers], Scope())
        lead = "All rows of the database's small tables. Query jobs and outcomes with SQL."
        return Page("tables", "All tables", lead=lead, sections=[Section("", blocks=[table]) for table in tables])

    # Parts

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, dict(zip("abc", values, strict=False))).fetchall()

    def _column(self, sql: str, *values: Any) -> list[Any]:
        return [value for (value,) in self._rows(sql, *values)]

    def _tables(self, names: Iterable[str], scope: Scope) -> list[Block]:
        """Return the tables that have rows."""
        return [table for name in names if (table := read_table(self.connection, name, scope))]

    def _scope(self, study: Study) -> Scope:
        """Return which rows belong to a study; without a config, the what-ifs of all studies do."""
        return Scope(study.recipes, study.schedulers, bool(study.sweeps), study.name if self.plan.digest else None)

    def _request(self, runs: Sequence[dict[str, str]], title: str) -> Request:
        return Request(self.connection, runs, title, interactive=True, titles=self.plan.titles)

    def _drawn(self, request: Request, kinds: Iterable[str]) -> list[Block]:
        """Draw figures; skip a figure that cannot be drawn for these runs, with a message on the terminal."""
        blocks = []
        for kind in kinds:
            try:
                blocks.append(_figure(draw_request(kind, request)))
            except SwflowError as error:
                logging.getLogger(__name__).warning("%s", error)
        return blocks

    def _metrics(self) -> dict[tuple[str, str], Block]:
        """Return (recipe, scheduler) to measure to mean, interval and number of replicates, and to the mean waits."""
        names = [name for name, *_ in MATRIX_MEASURES]
        lists = ", ".join(f"list({name} ORDER BY workload)" for name in names)
        rows = self._rows(
            f"""SELECT recipe, scheduler, {lists} FROM metrics JOIN workloads USING (workload)
            GROUP BY recipe, scheduler ORDER BY recipe, scheduler"""
        )
        return {(recipe, scheduler): dict(zip(names, values, strict=True)) for recipe, scheduler, *values in rows}

    def _only_runs(self) -> dict[str, str]:
        """Return the run of each recipe and scheduler that has a single one, by ``recipe/scheduler``."""
        return dict(
            self._rows(
                """SELECT recipe || '/' || scheduler, any_value(run) FROM runs JOIN workloads USING (workload)
                GROUP BY recipe, scheduler HAVING count(*) = 1 ORDER BY ALL"""
            )
        )

    def _fidelity(self) -> dict[str, Fidelity]:
        """Return the waits of the jobs that each ``recipe/scheduler`` and the record have in common."""
        rows = self._rows(
            """SELECT recipe || '/' || fidelity.scheduler, avg(recorded_mean_wait_time), avg(simulated_mean_wait_time),
                CASE WHEN bool_and(fidelity.jobs = run.jobs AND fidelity.jobs = log.jobs) THEN NULL
                    ELSE sum(fidelity.jobs)::BIGINT END
            FROM fidelity JOIN workloads USING (workload) JOIN metrics run USING (run)
            JOIN metrics log ON log.workload = fidelity.workload AND log.scheduler = 'log'
            WHERE fidelity.jobs > 0 GROUP BY recipe, fidelity.scheduler"""
        )
        return {name: Fidelity(*values) for name, *values in rows}

    def _answer(self, study: Study) -> Headline:
        waits: dict[str, dict[str, list[float]]] = {}
        for (recipe, scheduler), values in self.metrics.items():
            known = [value for value in values["mean_wait_time"] if value is not None]
            if known:
                waits.setdefault(recipe, {})[scheduler] = known
        ranked, convention = self._ranking_answer(study), self._conventions_answer(study)
        special = ranked if ranked.sentences else Headline([convention] if convention else [])
        found = special
        if not special.sentences:
            found = answer(study, waits, self.idle, self.options, self._verdict, self.recorded, self.plan.titles)
        whatif = self._whatif_answer(study)
        parts = [*whatif.sentences, found.record, *found.sentences]
        if study.runs and not study.ranked:
            sql = "SELECT coalesce(within_percent, 100) FROM reproduction WHERE {published} AND reason IS NULL"
            compared = reproduced(self._column(sql.format(**self._scope(study).conditions())))
            if compared and not special.sentences and study.contrast is None:  # the title is that of a paper's tables
                parts = [compared, *(parts if found.claims or found.record else whatif.sentences)]
            else:
                parts.append(compared)
        return Headline([part for part in parts if part], [*found.claims, *whatif.claims])

    def _conventions_answer(self, study: Study) -> str:
        """Return which convention matters most, if the study runs several choices of conventions."""
        choices = self._rows("SELECT DISTINCT convention, ours FROM conventions WHERE part = 'scheduler'")
        if len({convention for convention, choice in choices if choice in study.schedulers}) < 2:
            return ""
        sql = "SELECT decides, inside FROM sensitivity WHERE {published}"
        rows = self._rows(sql.format(**self._scope(study).conditions()))
        decisive = Counter(decides for decides, _ in rows if decides)
        return conventions(decisive, sum(inside for _, inside in rows), len(rows))

    def _whatif_answer(self, study: Study) -> Headline:
        rows = self._rows(
            """SELECT workload, variant, verdict, base, value, low, high, weeks FROM whatifs
            WHERE study = $a AND measure = 'mean_wait_time' ORDER BY rowid""",
            study.name,
        )
        by_workload: dict[str, list[WhatIf]] = {}
        for workload, *values in rows:
            by_workload.setdefault(workload, []).append(WhatIf(*values))
        return what_if(by_workload)

    def _verdict(self, variant: str, base: str) -> Verdict | None:
        """Return the verdict on the mean waits of two runs or recipes; the only draw of a recipe represents it."""
        for one, other in ((variant, base), (self.only.get(variant, variant), self.only.get(base, base))):
            rows = self._rows(
                """SELECT difference, low, high, verdict, verdict_holm, basis, blocks FROM differences
                WHERE measure = 'wait_time' AND variant = $a AND base = $b""",
                one,
                other,
            )
            for values in rows:
                return Verdict(*values)
        return None

    def _matrix(self, metrics: Mapping[tuple[str, str], Mapping[str, Any]], order: Sequence[str] = ()) -> list[Block]:
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

    def _compared(self, runs: Sequence[dict[str, str]]) -> list[Block]:
        """Return the matrix of comparisons of runs of a log, if any."""
        shown = list(runs[:MOST_COMPARED])
        names = [run["run"] for run in shown]
        rows = self._rows(
            """SELECT variant, base, measure, score, variant_wins, base_wins, score_verdict_holm FROM comparisons
            WHERE list_contains($a, variant) AND list_contains($a, base) ORDER BY ALL""",
            names,
        )
        if not rows:
            return []
        cells: dict[str, Block] = {}
        for variant, base, measure, score, wins, losses, verdict in rows:
            a, b = names.index(variant), names.index(base)
            marks = {
                TOO_FEW_WEEKS: "untested",
                EQUAL: "chance",
                NOT_DISTINGUISHABLE: "chance",
            }  # styles of cells without a verdict
            reason = [marks[verdict], verdict] if verdict in marks else []
            opposite = None if score is None else -score
            part = cells.setdefault(measure, {})
            part[f"{a},{b}"] = [*map(shortened, (score, wins, losses)), *reason]
            part[f"{b},{a}"] = [*map(shortened, (opposite, losses, wins)), *reason]
        more = len(runs) - len(shown)
        matrix = {
            "kind": "compare",
            "title": "Which is better at equal load",
            "note": "Blue: the run of the row is better at equal load than the run of the column; orange: worse. "
            "The score is the probability that a job of the one has the better value than a job of the other, minus "
            "the probability of the opposite. In brackets and without a color: equal, or not distinguishable "
            "by intervals over the log's weeks, corrected for the number of comparisons (Holm). In italics with a "
            "question mark: not tested, because there are too few weeks."
            + (f" {more} further runs are left out." if more else ""),
            "names": short_names(shown),
            "measures": {measure: cells[measure] for measure in HEATMAP_MEASURES if measure in cells},
        }
        return [matrix]


def _mean_and_interval(values: Sequence[float | None]) -> list[Any] | None:
    """Return mean, half-width of the 95 % interval (None for a single value or equal values), and number of values."""
    found = over_replicates(values)
    half = None if found.error is None else student(found.freedom) * found.error
    return [shortened(found.value), shortened(half), found.blocks] if found.blocks else None


def _figure(spec: Mapping[str, Any]) -> Block:
    """Return title, caption and specification of a figure, without the address of the schema, which is not fetched."""
    about = spec["usermeta"]
    kept = {name: value for name, value in spec.items() if name not in ("$schema", "usermeta", "title")}
    return {
        "kind": "figure",
        "name": f"{about.get('study', '')} {about['title']}".strip(),
        **{key: about.get(key, "") for key in ("title", "caption", "sql", "command")},
        "spec": kept,
    }


def _paper_page(paper: str) -> str:
    return f"papers/{paper.lower().replace(' ', '-')}"


def _counted(count: int, word: str, words: str = "") -> str:
    return f"{count:,} {word if count == 1 else words or word + 's'}"
