"""The report: one HTML page of tables made from the database, that opens from disk without a network."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swflow import __version__
from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.query import query

#: What the page shows: id, title, what the figures mean, and the query behind the table.
SECTIONS: tuple[tuple[str, str, str, str], ...] = (
    (
        "workloads",
        "Workloads",
        "A workload is a cleaned log and the steps applied to it. The span runs from the first to the last "
        "submission; the offered load is the processor-seconds of all jobs over those of the machine in that span.",
        """SELECT workload, computer, processors, nodes, jobs,
            round((last_submit_time - first_submit_time) / 86400, 1) AS span_days,
            round(area / (processors * (last_submit_time - first_submit_time)), 3) AS offered_load
        FROM workloads JOIN (
            SELECT workload, sum(processors * run_time) AS area FROM jobs GROUP BY workload
        ) USING (workload) ORDER BY workload""",
    ),
    (
        "cleaning",
        "What was removed, and why",
        "One row per stage and reason; a job counts under the first reason that applies. What no row names was kept.",
        """SELECT workload, stage, reason, jobs FROM removals WHERE reason <> 'kept'
        ORDER BY workload, position, jobs DESC""",
    ),
    (
        "schedulers",
        "Schedulers",
        "The scheduler log replays the start times that the log recorded.",
        """SELECT scheduler, "order", backfill, lookahead AS reservations, backfill_order, estimates, prediction,
            allocation, runtime, event_order, dispatch, without_status FROM schedulers ORDER BY scheduler""",
    ),
    (
        "metrics",
        "Metrics by run",
        "Times in seconds. awrt and awwt are the response and the wait time weighted by processors times run "
        "time. The slowdown is response over run time; bounded, run times below 10 s count as 10 s. "
        "The makespan runs from the first submission to the last end. "
        "Simulated in: seconds, without compiling.",
        """SELECT workload, scheduler, metrics.jobs, utilization, mean_wait_time, median_wait_time, p95_wait_time,
            mean_response_time, mean_slowdown, mean_bounded_slowdown, p95_bounded_slowdown, awrt, awwt,
            squashed_area, makespan, killed, seconds AS simulated_in
        FROM metrics JOIN runs USING (run, workload, scheduler) ORDER BY workload, scheduler""",
    ),
    (
        "correlations",
        "Load and performance",
        "Spearman's rank correlation of the load that a job experienced, the mean utilization between its "
        "submission and its end, with its slowdown, response time and wait time.",
        """PIVOT (SELECT workload, scheduler, measure, spearman FROM correlations JOIN runs USING (run))
        ON measure IN ('slowdown', 'response_time', 'wait_time') USING first(spearman)
        GROUP BY workload, scheduler ORDER BY workload, scheduler""",
    ),
    (
        "comparisons",
        "Which is better at equal load",
        "Two runs of a log. distance: the earth mover's distance of their heatmaps, in decades of the value. score: "
        "how much more probable it is that, at equal load, a job of the first does better than one of the second than "
        "the other way round. wins: the share of the jobs in load deciles where one dominates. better: who wins more "
        "than half of them. docs/heatmaps.md says when this misleads.",
        """SELECT first, second, measure, better, score, first_wins, second_wins, distance FROM comparisons
        WHERE distance > 0 ORDER BY ALL""",
    ),
    (
        "reproduction",
        "Published values beside ours",
        "Rows of the papers' tables whose runs are in the database; of replicates, the median. A published value may "
        "rest on another version of the log. Guim 2007: the simulator behind Table II forgot part of the shadows, "
        "which is about half of the factor between its penalties and ours; see docs/explanation/resource-sharing.md.",
        """SELECT paper, "table", row, "column", published, ours, difference, ratio, workload, scheduler
        FROM reproduction WHERE reason IS NULL""",
    ),
    (
        "coverage",
        "How much of the papers' tables is met",
        "Cells published, compared, within 1, 5 and 10 percent (5 includes 1), further off, and missing: not legible "
        "in our copy, of a log that is not here, or not run. Of correlations differences of 0.015, 0.03 and 0.05 count "
        "instead of percents. The view reproduction has the reason of every missing cell.",
        "FROM coverage WHERE compared > 0 ORDER BY ALL",
    ),
    (
        "trends",
        "What a paper found to be lower than what, here",
        "One row per trend and workload: the two figures, and whether the first is the lower one; of replicates, the "
        "medians. Between replicates such a figure varies: see the table of replicates.",
        """SELECT paper, trend, workload, lower_value, higher_value,
            CASE WHEN holds THEN 'holds' ELSE 'does not hold' END AS result FROM trend_checks""",
    ),
    (
        "replicates",
        "Replicates of random steps",
        "Of workloads that differ in the random draw alone: mean and Student's 95 % confidence interval of the mean.",
        """SELECT recipe, scheduler, replicates, measure, mean, low, high FROM replicates
        WHERE replicates > 1 AND measure IN ('mean_wait_time', 'mean_response_time', 'mean_bounded_slowdown', 'awrt',
            'awwt', 'utilization', 'squashed_area', 'killed', 'penalized_percent', 'p95_wait_time_unkilled',
            'p95_bounded_slowdown_60_unkilled')
        ORDER BY ALL""",
    ),
    (
        "logs",
        "Whom to thank",
        "The logs, and whom their headers ask to acknowledge.",
        """SELECT DISTINCT log, computer, installation, acknowledge FROM workloads ORDER BY log""",
    ),
)


def read_figures(files: Iterable[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """
    Read figures for the report.

    Parameters
    ----------
    files : iterable of path-like
        Vega-Lite specifications that ``swflow figure`` wrote.

    Returns
    -------
    list of dict
        The specifications.

    Raises
    ------
    SwflowError
        If a file is missing or is no such specification.
    """
    figures = []
    for file in map(Path, files):
        try:
            figure = json.loads(file.read_text())
            _ = figure["usermeta"]["caption"], figure["$schema"]
        except (OSError, ValueError, KeyError, TypeError):
            raise SwflowError(
                f"{file}: not a figure; make one with: swflow figure heatmap --log LOG -o {file}"
            ) from None
        figures.append(figure)
    return figures


def draw_figures(database: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Draw the heatmaps of every log of a database."""
    from swflow.figures import draw

    _, logs = query(database, "SELECT DISTINCT log FROM workloads JOIN runs USING (workload) ORDER BY log")
    return [draw("heatmap", database, log=log, interactive=True) for (log,) in logs]


def write_report(
    database: str | os.PathLike[str], folder: str | os.PathLike[str], figures: Sequence[Mapping[str, Any]] = ()
) -> Path:
    """
    Write ``index.html`` to a folder.

    Parameters
    ----------
    database : path-like
        A database that `swflow.database.load` wrote.
    folder : path-like
        Where to write; made if need be.
    figures : sequence of mapping
        Vega-Lite specifications as `swflow.figures.draw` returns them, interactive.

    Returns
    -------
    pathlib.Path
        The page.

    Raises
    ------
    SwflowError
        If there is no such database.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_number
    page = Path(folder) / "index.html"
    sections = [_section(database, *section) for section in SECTIONS]
    html = environment.get_template("report.html").render(
        sections=[section for section in sections if section["rows"]],
        figures=[_embedded(figure) for figure in figures],
        bundle=_bundle() if figures else "",
        version=__version__,
    )
    with atomic_path(page) as temporary:
        temporary.write_text(html, encoding="utf-8")
    return page


def _embedded(figure: Mapping[str, Any]) -> dict[str, Any]:
    """Return title, caption and specification of a figure, without the schema's address: nothing is to be fetched."""
    from markupsafe import Markup

    about = figure["usermeta"]
    spec = {name: value for name, value in figure.items() if name not in ("$schema", "usermeta", "title")}
    text = json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")
    return {"title": about["title"], "caption": about["caption"], "spec": Markup(text)}


def _bundle() -> Any:
    """Return the code that draws figures, to be written once into the page."""
    import vl_convert
    from markupsafe import Markup

    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub misses the default
    # The only thing that would end the script; a bare "</" also occurs as a regular expression, and must stay.
    return Markup(re.sub("</(?=script)", r"<\\/", code, flags=re.IGNORECASE))


def _section(database: str | os.PathLike[str], name: str, title: str, note: str, sql: str) -> dict[str, Any]:
    columns, rows = query(database, sql)
    numeric = [_is_numeric([row[place] for row in rows]) for place in range(len(columns))]
    return {"id": name, "title": title, "note": note, "columns": columns, "rows": rows, "numeric": numeric}


def _is_numeric(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, int | float) for value in known)


def format_number(value: Any) -> str:
    """
    Write a value for a reader.

    Examples
    --------
    >>> [format_number(value) for value in (None, 2016591520.0, 25124.84, 0.53871, [5])]
    ['', '2,016,591,520', '25,125', '0.539', '5']
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if not isinstance(value, int | float):
        return str(value)
    if value == round(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
