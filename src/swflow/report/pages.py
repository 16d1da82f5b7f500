"""The contents of the pages: an overview, one page per study, one per log, and one with all tables."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from swflow.analysis.wait_parts import PARTS, REASONS, in_words
from swflow.database.leaderboard import REFERENCE
from swflow.errors import SwflowError
from swflow.figures import draw_request
from swflow.figures.forecasts import draw_forecast_on
from swflow.figures.request import all_runs
from swflow.figures.sweeps import draw_sweep_on
from swflow.names import log_of, recipe_of
from swflow.phrases import duration, percent
from swflow.report.blocks import BEST, Page, Section, compared, counted, items, matrix, question, to_decide
from swflow.report.papers import claims_block, definitions_block, legend, overview_item, table_blocks
from swflow.report.plan import Study
from swflow.report.source import Source, figure_block
from swflow.report.tables import OF_ALL_LOGS, TABLES, Block, Scope
from swflow.studies.figure_options import FOREST, OF_REPLICATES, kind_of_figure, options_of_figure

#: The largest number of drawn runs of a ranking: the best ones, and the reference.
MOST_DRAWN = 6

#: The share of jobs with a recorded load above 1 from which the page of a log has a warning.
MOST_ABOVE_1 = 0.01

#: The largest number of runs with a sentence on the reasons of their waits.
MOST_SAID = 4

#: Figures that every study shows for each of its logs, before its own figures.
STUDY_FIGURES = ("timeline", "waits", "distributions")
LOG_FIGURES = ("offered-load", "arrivals", "composition")


def pages(source: Source) -> Iterator[Page]:
    """Yield all pages, the overview first."""
    yield _overview(source)
    for paper in source.papers:
        yield _paper_page(source, paper)
    for study in source.plan.studies:
        yield _study_page(source, study)
    for log in source.logs:
        yield _log_page(source, log)
    yield _tables_page(source)


def _overview(source: Source) -> Page:
    ((runs, jobs),) = source.rows("SELECT count(*), sum(jobs) FILTER (scheduler <> 'log') FROM metrics")
    counts = [
        counted(len(source.plan.studies), "study", "studies"),
        counted(len(source.logs), "log"),
        counted(runs, "run"),
        f"{jobs or 0:,} simulated jobs",
    ]
    of_papers = {paper: _studies_of(source, paper) for paper in source.papers}
    shown = {study.name for studies in of_papers.values() for study in studies}
    others = [study for study in source.plan.studies if study.name not in shown]
    others.sort(key=lambda study: -source.answers[study.name].strength)  # a stable sort
    undecided = [study for study in others if source.answers[study.name].is_undecided]
    decided = [study for study in others if study not in undecided]
    note = "The strongest differences come first. The page of a study has its figures."
    answers = Section("What the studies found", note, items(source, decided, "Sweeps; see its page."))
    note = "What would decide each study, with a probability of 80 %; for other sizes, see swflow power."
    open_answers = Section("Undecided", note, items(source, undecided))
    note = "Each variant against the base of its study. Pages of studies show more measures."
    differences = Section("All differences that the studies ask for", note, source.forest(source.plan.studies))
    recorded = _recorded_section(source, Scope(), "recorded")
    known = {study.name for study in source.plan.studies}
    figures = [figure_block(spec) for spec in source.figures if spec["usermeta"].get("study") not in known]
    planned = [scheduler for study in source.plan.studies for scheduler in study.schedulers]
    note = (
        "A row is a workload, a column a scheduler; the best value of a row is marked. Replicates: mean and "
        "Student's 95 % interval."
    )
    sections = [
        answers,
        open_answers,
        differences,
        recorded,
        _published(source, of_papers),
        Section("Schedulers on every workload", note, matrix(source.metrics, planned)),
        _plausible(source),
        Section("Omitted runs", blocks=source.tables(["left_out"], Scope())),
        Section("Figures", blocks=figures),
    ]
    return Page("index", "Overview", lead=", ".join(counts) + ".", sections=sections)


def _recorded_section(source: Source, scope: Scope, faithful: str = "fidelity") -> Section:
    """Return the section that compares simulated schedules with the record, and what-ifs with their base."""
    note = "The similarity of each simulation to the recorded schedule, and the effects of variants."
    names = (faithful, "whatifs", "forecasts") if scope.recipes != [] else ("whatifs", "forecasts")
    drawn = [
        figure_block(draw_forecast_on(source.connection, workload, study))
        for study, workload in source.rows("SELECT DISTINCT study, workload FROM forecasts ORDER BY ALL")
        if study == scope.study
    ]
    text = "The whole answer, with its caveats."
    answers = [
        {"page": f"../whatif/{study}/{workload}", "title": f"What if, {workload}", "text": text}
        for study, workload in source.rows("SELECT DISTINCT study, workload FROM whatifs ORDER BY ALL")
        if study == scope.study and (study, workload) in source.answer_pages
    ]
    pages: list[Block] = [{"kind": "answers", "items": answers}] if answers else []
    title = "Recorded and simulated schedules, and what-ifs"
    return Section(title, note, [*source.tables(names, scope), *pages, *drawn])


def _published(source: Source, studies: Mapping[str, Sequence[Study]]) -> Section:
    """Return the section with the verdicts and claims of each paper, and below each paper its studies."""
    note = "The verdicts on the values of each paper's tables, its claims, and its studies."
    blocks: list[Block] = []
    listed_studies: set[str] = set()
    for paper, count in source.papers.items():
        authors = source.about_papers[paper]["authors"]
        item = overview_item(paper, count, _paper_name(paper), authors)
        of_paper = [study for study in studies[paper] if study.name not in listed_studies]
        listed_studies |= {study.name for study in of_paper}
        blocks += [{"kind": "papers", "items": [item]}, *items(source, of_paper, "Sweeps; see its page.", authors)]
    return Section("Papers", note, [*blocks, {"kind": "legend", "items": legend()}] if blocks else [])


def _plausible(source: Source) -> Section:
    items = []
    for log in source.logs:
        facts = _facts_of(source, log)
        text = facts["computer"] or ""
        items.append({"page": f"logs/{log}", "title": log, "text": text, "facts": facts["line"]})
    checks = source.tables(["checks_of_some"], Scope())
    note = "The properties of each log and the load that it offers; for more, see its page."
    of_all = source.column(f'SELECT any_value(message) FROM checks WHERE {OF_ALL_LOGS} GROUP BY "check" ORDER BY 1')
    note += "".join(f" All logs: {message}." for message in of_all)
    note += " Implausible values of single logs are listed below." if checks else ""
    return Section("The logs", note, [{"kind": "logs", "items": items}, *checks])


# -- a paper


def _paper_page(source: Source, paper: str) -> Page:
    about, count = source.about_papers[paper], source.papers[paper]
    cite = f"{about['citation']}. " if about["citation"] else ""
    note = (
        f"{about['note']} Each cell has the published value above swflow's; its color and sign are the verdict, and "
        "pointing at it shows the reason. The CSV has all reasons."
    ).strip()
    tables = table_blocks(source.connection, paper, about.get("beside"))
    studies = items(source, _studies_of(source, paper))
    sections = [
        Section(
            "Claims",
            f"{cite}A claim holds if it is true for every simulated log of the paper.",
            [claims_block(source.connection, paper)],
        ),
        Section("Tables", note, [{"kind": "legend", "items": legend()}, *tables] if tables else []),
        Section(
            "Definitions",
            "What the columns of the published tables are, in the words of the paper, and what is compared with them.",
            [definitions_block(source.connection, paper)] if tables else [],
        ),
        Section("Figures", "In the order of the paper, drawn from the runs here.", _paper_figures(source, about)),
        Section("Studies", "Their pages have the figures of all runs.", studies),
    ]
    return Page(_paper_name(paper), about["authors"], "Paper", count.sentence(), sections)


def _studies_of(source: Source, paper: str) -> list[Study]:
    """Return the studies whose titles name a paper; if there is none, those that ask for its published values."""
    titled = [study for study in source.plan.studies if source.about_papers[paper]["authors"] in study.title]
    return titled or [study for study in source.plan.studies if paper in source.papers_of(study)]


def _paper_figures(source: Source, about: Mapping[str, Any]) -> list[Block]:
    """Return the figures of a paper whose first run is here."""
    known = {run["run"]: run for run in all_runs(source.connection)}
    blocks = []
    for figure in about.get("figures", ()):
        runs = [known[run] for run in figure["runs"] if run in known]
        if runs and runs[0]["run"] == figure["runs"][0]:
            title = f"{figure['figure']}, {figure['log']}"
            window = tuple(figure.get("window", (None, None)))
            request = replace(source.request(runs, title), window=window)
            blocks += source.drawn(request, [figure["kind"]])
    return blocks


# -- a study


def _study_page(source: Source, study: Study) -> Page:
    found = source.answers[study.name]
    lead = " ".join(filter(None, [found.text, found.deciding]))
    if study.missing:
        lead += f" {study.missing:,} of its runs are not in the database."
    scope = source.scope(study)
    chosen = {(recipe_of(run["workload"]), run["scheduler"]) for run in study.runs}
    metrics = {key: values for key, values in source.metrics.items() if key in chosen}
    if study.ranked:
        papers = [Section("Leaderboard", blocks=source.tables(("leaderboard", "bounds"), scope))]
    else:
        papers = _study_papers(source, study)
    asked = _asked_figures(source, study)
    has_own = bool(papers or asked)
    generic = _run_sections(source, study, "Show the figures of its runs" if has_own else "")
    names = ("metrics", "further_metrics", "comparisons", "replicates", "fairness", "schedulers")
    sections = [
        Section("What the study asks and finds", question(source, study), source.forest([study]) + to_decide(found)),
        *papers,
        _recorded_section(source, scope),
        Section("Runs", BEST, matrix(metrics, study.schedulers)),
        Section("Figures of the study", blocks=asked),
        _reasons_section(source, study, scope),
        *([] if has_own else generic),
        Section("Tables", blocks=source.tables(names, scope) if study.runs else []),
        *(generic if has_own else []),
    ]
    return Page(f"studies/{study.name}", study.title, f"Study {study.name}", lead, sections)


def _reasons_section(source: Source, study: Study, scope: Scope) -> Section:
    """Return why the jobs of a study wait: a sentence per run, of few runs, the figures, and the table."""
    parts = ", ".join(f'avg(ifnull("{name}", 0)) AS "{name}"' for name in REASONS)
    found = {
        run: dict(zip(REASONS, means, strict=True))
        for run, *means in source.rows(
            f"SELECT run, {parts} FROM wait_reasons WHERE run IN (SELECT unnest($a)) GROUP BY run",
            [run["run"] for run in study.runs],
        )
    }
    if not found:
        return Section("Why jobs wait")
    blocks, said = [], []
    for log in study.logs:
        runs = [run for run in study.first_runs(log) if run["run"] in found]
        if "reasons" not in map(kind_of_figure, study.figures) and runs:
            blocks += source.drawn(source.request(runs, log), ["reasons"])
        for run in runs:
            means = found[run["run"]]
            wait = sum(means[part] for part in PARTS)
            if wait:
                words = in_words({"wait": wait, **means})
                said.append(f"Under {run['run']}, jobs wait {duration(wait)} on average: {words}.")
    return Section("Why jobs wait", " ".join(said[:MOST_SAID]), [*blocks, *source.tables(["reasons"], scope)])


def _asked_figures(source: Source, study: Study) -> list[Block]:
    """Return the figures defined by the study: existing ones, or new ones."""
    asked = [figure_block(spec) for spec in source.figures if spec["usermeta"].get("study") == study.name]
    if asked or not source.draw:
        return asked
    for log in study.logs:
        runs = study.first_runs(log)
        request = replace(source.request(runs, log), split=study.split, window=study.window, study=study.name)
        every = source.request([run for run in study.runs if log_of(run["workload"]) == log], log).runs
        for entry in study.figures:
            kind, options = kind_of_figure(entry), options_of_figure(entry)
            if kind == FOREST:  # the page begins with it
                continue
            if kind in OF_REPLICATES:
                options["runs"] = every
            options.pop("how", None)  # a page has its own width and font
            if kind == "difference":  # the first run is the base
                options["runs"] = sorted(runs, key=lambda run: run["scheduler"] != study.baseline)
            asked += source.drawn(replace(request, **options), [kind])
    there = set(source.rows("SELECT DISTINCT source, sweep FROM sweeps"))
    for workload, sweep in study.sweeps:
        if (workload, sweep) in there:
            asked.append(figure_block(draw_sweep_on(source.connection, sweep, log=workload, interactive=True)))
    return asked


def _run_sections(source: Source, study: Study, folded: str) -> list[Section]:
    """Return the figures that every study has, one section per log."""
    sections = []
    sql = "SELECT workload || '/' || scheduler, rank FROM leaderboard"
    ranks = dict(source.rows(sql)) if study.ranked else {}
    for log in study.logs:
        runs = sorted(study.first_runs(log), key=lambda run: ranks.get(run["run"], len(ranks)))
        drawn = _few(runs) if study.ranked else runs
        title = f"Runs of {log}" if len(study.logs) > 1 else "Over time, by class of job, and as a whole"
        blocks = source.drawn(source.request(drawn, log), STUDY_FIGURES) + compared(source, runs, study.name)
        sections.append(Section(title, blocks=blocks, folded=folded))
    return sections


def _few(runs: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    best = list(runs[:MOST_DRAWN])
    reference = [run for run in runs[MOST_DRAWN:] if run["scheduler"] == REFERENCE]
    return [*best[: MOST_DRAWN - len(reference)], *reference]


def _study_papers(source: Source, study: Study) -> list[Section]:
    if not study.runs or not source.asks_for_papers(study):
        return []
    request = replace(source.request(study.runs, study.name), sweeps=bool(study.sweeps))
    blocks = []
    with suppress(SwflowError):  # no paper has a value
        blocks.append(figure_block(draw_request("published", request)))
    names = ("reproduction", "missing", "readings", "sensitivity", "trends")
    blocks += source.tables(names, source.scope(study))
    return [Section("Published and computed values", blocks=blocks)] if blocks else []


# -- a log


def _log_page(source: Source, log: str) -> Page:
    facts = _facts_of(source, log)
    own = facts["workload"]
    note = "" if own == log else f"The log itself was not simulated; the values are those of {own}."
    recipes = source.column("SELECT DISTINCT recipe FROM workloads WHERE log = $a ORDER BY ALL", log)
    words = " ".join(filter(None, [note, _load_warning(source, own)]))
    request = source.request([{"run": "", "workload": own, "scheduler": ""}], log)
    metrics = {key: values for key, values in source.metrics.items() if log_of(key[0]) == log}
    studies = [
        study
        for study in source.plan.studies
        if log in study.logs or log in {log_of(workload) for workload, _ in study.sweeps}
    ]
    sections = [
        Section("Properties", words, [{"kind": "facts", "facts": facts["rows"]}]),
        Section("Jobs removed by cleaning", blocks=source.tables(["cleaning"], Scope([recipe_of(own)]))),
        Section("Plausibility", blocks=source.tables(["checks"], Scope(recipes))),
        Section("Its jobs", note, source.drawn(request, LOG_FIGURES)),
        Section("Runs", BEST, matrix(metrics)),
        Section("Studies of this log", blocks=items(source, studies)),
        Section("Tables", blocks=source.tables(("workloads", "correlations", "logs"), Scope(recipes))),
    ]
    return Page(f"logs/{log}", log, "Log", facts["line"], sections)


def _load_warning(source: Source, workload: str) -> str:
    """Return a warning if more than `MOST_ABOVE_1` of the jobs met a recorded load above 1, else an empty text."""
    ((share,),) = source.rows(
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


def _facts_of(source: Source, log: str) -> Block:
    """Return the properties of a log, from its workload with the fewest steps."""
    ((workload, computer, installation, processors, nodes, jobs, acknowledge, span, area, users),) = source.rows(
        """WITH own AS (SELECT * FROM workloads WHERE log = $a ORDER BY len(steps), workload LIMIT 1)
        SELECT workload, computer, installation, own.processors, nodes, jobs, acknowledge,
            last_submit_time - first_submit_time AS span, area, users
        FROM own, (SELECT sum(processors * run_time) AS area, count(DISTINCT user_id) AS users
            FROM jobs WHERE workload = (SELECT workload FROM own))""",
        log,
    )
    load = area / (processors * span) if span and area else None
    line = f"{jobs:,} jobs in {duration(span or 0.0)} on {processors:,} processors"
    line += f", offered load {percent(load)}." if load is not None else "."
    rows = [
        ("Computer", computer),
        ("Installation", installation),
        ("Processors", f"{processors:,}"),
        ("Nodes", f"{nodes:,}"),
        ("Jobs", f"{jobs:,}"),
        ("Users", f"{users:,}" if users else None),
        ("From first to last submission", duration(span or 0.0)),
        ("Offered load", percent(load) if load is not None else "all jobs are submitted at once"),
        ("Acknowledge", acknowledge),
    ]
    rows = [(name, value) for name, value in rows if value]
    return {"workload": workload, "computer": computer, "line": line, "rows": rows}


# -- all tables


def _tables_page(source: Source) -> Page:
    left_out = {"checks_of_some"} if source.papers else {"checks_of_some", "coverage", "claims", "missing"}
    tables = source.tables([name for name in TABLES if name not in left_out], Scope())
    lead = "All rows of the database's small tables. Query jobs and outcomes with SQL."
    return Page("tables", "All tables", lead=lead, sections=[Section("", blocks=[table]) for table in tables])


def _paper_name(paper: str) -> str:
    return f"papers/{paper.lower().replace(' ', '-')}"
