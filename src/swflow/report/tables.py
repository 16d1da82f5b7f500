"""The tables of the report: what each shows, and the query behind it, which the page lets copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from swflow.report.units import kind_of, shortened


@dataclass(frozen=True)
class Table:
    """
    A table of the report.

    Parameters
    ----------
    name, title, note : str
        What it is called, and what its columns mean.
    sql : str
        The query; ``{runs}`` stands for a condition on ``workload`` and ``scheduler``, ``{workloads}`` for one on
        ``workload``.
    """

    name: str
    title: str
    note: str
    sql: str


#: So many users of a run are listed.
FAIRNESS_USERS = 10

#: Replicates differ in the random draw alone: of these only the first is shown, so that tables stay readable.
_FIRST = "NOT regexp_matches({}, '@([2-9]|1[0-9])')"

#: Of comparisons, only what replicates say together is shown.
_TOGETHER = """(basis = 'replicates' OR regexp_replace(first || ' ' || second, '@[0-9]+', '', 'g')
    NOT IN (SELECT first || ' ' || second FROM comparisons WHERE basis = 'replicates'))"""

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "workloads",
            "Workloads",
            "A workload is a cleaned log and the steps applied to it. The span runs from the first to the last "
            "submission; the offered load is the processor-seconds of all jobs over those of the machine in that span, "
            "and empty if all jobs are submitted at once.",
            """SELECT workload, log, processors, nodes, jobs, last_submit_time - first_submit_time AS span_time,
    area / nullif(processors * (last_submit_time - first_submit_time), 0) AS offered_load, steps
FROM workloads JOIN (
    SELECT workload, sum(processors * run_time) AS area FROM jobs GROUP BY workload
) USING (workload)
WHERE {workloads} ORDER BY workload""",
        ),
        Table(
            "cleaning",
            "What was removed, and why",
            "One row per stage and reason; a job counts under the first reason that applies. What no row names was "
            "kept.",
            """SELECT workload, stage, reason, jobs FROM removals
WHERE {workloads} AND reason <> 'kept' ORDER BY workload, position, jobs DESC, reason""",
        ),
        Table(
            "schedulers",
            "Schedulers",
            "The scheduler log replays the start times that the log recorded.",
            """SELECT scheduler, "order", backfill, lookahead AS reservations, backfill_order, estimates, prediction,
    allocation, runtime, event_order, dispatch, without_status
FROM schedulers WHERE scheduler IN (SELECT scheduler FROM metrics WHERE {runs}) ORDER BY scheduler""",
        ),
        Table(
            "metrics",
            "Metrics by run",
            "awrt and awwt are the response and the wait time weighted by processors times run time. The slowdown is "
            "response over run time; bounded, run times below 10 s count as 10 s. The makespan runs from the first "
            "submission to the last end.",
            """SELECT workload, scheduler, jobs, utilization, mean_wait_time, median_wait_time, p95_wait_time,
    mean_response_time, mean_slowdown, mean_bounded_slowdown, p95_bounded_slowdown, awrt, awwt,
    squashed_area, makespan, killed, penalized_percent
FROM metrics WHERE {runs} ORDER BY workload, scheduler""",
        ),
        Table(
            "correlations",
            "Load and performance",
            "Spearman's rank correlation of the load that a job experienced, the mean utilization between its "
            "submission and its end, with its slowdown, response time and wait time.",
            """PIVOT (SELECT workload, scheduler, measure, spearman FROM correlations JOIN runs USING (run)
    WHERE {runs})
ON measure IN ('slowdown' AS slowdown, 'response_time' AS response, 'wait_time' AS wait) USING first(spearman)
GROUP BY workload, scheduler ORDER BY workload, scheduler""",
        ),
        Table(
            "comparisons",
            "Which is better at equal load",
            "Two runs of a log. distance: the earth mover's distance of their heatmaps, in decades of the value. score:"
            " how much more probable it is that, at equal load, a job of the first does better than one of the second "
            "than the other way round. mean_difference: mean of the first minus mean of the second. low and high: 95 % "
            "confidence intervals, each for itself, over the log's weeks (paired block bootstrap) or over replicates. "
            "Verdicts are corrected for how many comparisons of the log and measure there are (Holm): no difference "
            "is what may be chance. better: who wins more than half of the jobs in load deciles.",
            f"""SELECT first, second, measure, score_verdict, score, score_low, score_high, mean_verdict,
    mean_difference, mean_low, mean_high, better, basis, blocks, family_size AS comparisons, distance
FROM comparisons
WHERE distance > 0 AND {{pairs}} AND {_TOGETHER}
ORDER BY first, second, measure""",
        ),
        Table(
            "reproduction",
            "Published values beside ours",
            "Rows of the papers' tables; of replicates, the median. A published value may rest on another version of "
            "the log. within percent: the least of 1, 5 and 10 that ours is within; of correlations, differences of "
            "0.015, 0.03 and 0.05 stand for these. Empty: further off.",
            """SELECT paper, "table", row, "column", published, ours, difference, ratio, within_percent,
    workload, scheduler
FROM reproduction WHERE {published} AND reason IS NULL
ORDER BY paper, "table", row, "column", workload, scheduler""",
        ),
        Table(
            "missing",
            "Published values without ours, and why",
            "Cells of the papers' tables that nothing here is compared with.",
            """SELECT paper, "table", row, "column", published, workload, scheduler, reason
FROM reproduction WHERE {published} AND reason IS NOT NULL
ORDER BY paper, "table", row, "column", workload, scheduler""",
        ),
        Table(
            "readings",
            "The same values under other readings of the papers",
            "Where a paper leaves open what exactly was done, ours under another scheduler, step or figure.",
            """SELECT paper, "table", row, "column", reading, published, ours, ratio, within_percent,
    workload, scheduler
FROM readings WHERE {published} ORDER BY paper, "table", row, "column", reading, workload""",
        ),
        Table(
            "sensitivity",
            "What conventions decide",
            "Published values beside ours, and the range of ours under each convention that papers leave open, one at "
            "a time: the order of events, ties, estimates below run times, cancelled jobs, run times of zero, the "
            "version of the log. decides: the convention that moves ours furthest. inside: whether the published "
            "value lies in the range.",
            """SELECT paper, "table", row, "column", published, ours, lowest, highest, inside, decides,
    lowest_choice, highest_choice, choices, workload, scheduler
FROM sensitivity WHERE {published} ORDER BY paper, "table", row, "column", workload""",
        ),
        Table(
            "trends",
            "What a paper found to be lower than what, here",
            "One row per trend and workload: the two figures, and whether the first is the lower one; of replicates, "
            "the medians.",
            """SELECT paper, trend, workload, lower_value, higher_value,
    CASE WHEN holds THEN 'holds' ELSE 'does not hold' END AS result
FROM trend_checks WHERE {trends} ORDER BY ALL""",
        ),
        Table(
            "replicates",
            "Replicates of random steps",
            "Of workloads that differ in the random draw alone: mean and Student's 95 % confidence interval of the "
            "mean.",
            """SELECT recipe, scheduler, replicates, measure, mean, low, high FROM replicates
WHERE {recipes} AND replicates > 1 AND measure IN ('mean_wait_time', 'mean_response_time', 'mean_bounded_slowdown',
    'awrt', 'awwt', 'utilization', 'squashed_area', 'killed', 'penalized_percent', 'p95_wait_time_unkilled',
    'p95_bounded_slowdown_60_unkilled')
ORDER BY recipe, scheduler, measure""",
        ),
        Table(
            "fidelity",
            "How much a simulation is like the record",
            "Where the log recorded a schedule: the distance of the distributions of the waits, the mean difference of "
            "waits of equal rank, jobs that start within a minute of the record, neighbours in the queue that start in "
            "the recorded order, the mean difference of the utilization by hours, and the distance of the heatmaps in "
            "decades of the wait.",
            """SELECT workload, scheduler, jobs, wait_distance, wait_difference AS wait_difference_time, started_alike,
    start_order, utilization_difference, heatmap_distance
FROM fidelity WHERE {runs} ORDER BY workload, wait_distance, scheduler""",
        ),
        Table(
            "fairness",
            "What users got",
            f"The {FAIRNESS_USERS} users and groups with most processor-seconds of a run, of replicates the first; "
            "all are in the database's table fairness.",
            f"""SELECT workload, scheduler, kind, coalesce(name, id::VARCHAR) AS who, jobs, use_share, mean_wait_time,
    p95_wait_time, mean_bounded_slowdown, p95_bounded_slowdown
FROM fairness WHERE {{runs}} AND {_FIRST.format("workload")}
QUALIFY row_number() OVER (PARTITION BY run, kind ORDER BY use_share DESC, id) <= {FAIRNESS_USERS}
ORDER BY workload, kind, use_share DESC, who, scheduler""",
        ),
        Table(
            "whatifs",
            "What if",
            "Each variant beside the base, the first scheduler with the rest as recorded: 95 % confidence intervals of "
            "the differences over the log's weeks (paired block bootstrap); noise is what may be chance.",
            """SELECT study, workload, variant, measure, value AS value_time, difference AS difference_time,
    low AS low_time, high AS high_time, verdict, processors, utilization, jobs, weeks
FROM whatifs WHERE {whatifs} AND measure <> 'mean_bounded_slowdown' ORDER BY rowid""",
        ),
        Table(
            "whatif_slowdowns",
            "What if: slowdowns",
            "The same of the mean bounded slowdown.",
            """SELECT study, workload, variant, value, difference, low, high, verdict, processors, jobs, weeks
FROM whatifs WHERE {whatifs} AND measure = 'mean_bounded_slowdown' ORDER BY rowid""",
        ),
        Table(
            "left_out",
            "What was left out",
            "Runs that the config asks for, of logs that could not be fetched.",
            "SELECT log, reason, count(*) AS runs FROM left_out WHERE {left_out} GROUP BY ALL ORDER BY ALL",
        ),
        Table(
            "fits",
            "Models as they were fitted",
            "What each model gives for a workload, beside the workload's own.",
            """SELECT workload, fit, model, arrivals, measure, value, source_value FROM fits WHERE {workloads}
ORDER BY ALL""",
        ),
        Table(
            "checks",
            "Plausibility",
            "What looks implausible in a log, and how much it matters.",
            "SELECT * FROM checks WHERE {workloads} ORDER BY ALL",
        ),
        Table(
            "logs",
            "Whom to thank",
            "The logs, and whom their headers ask to acknowledge.",
            "SELECT DISTINCT log, computer, installation, acknowledge FROM workloads WHERE {workloads} ORDER BY log",
        ),
    )
}


@dataclass(frozen=True)
class Scope:
    """
    Which rows a page shows: all, or those of some recipes and schedulers.

    Parameters
    ----------
    recipes : sequence of str, optional
        Workloads without the number of the replicate.
    schedulers : sequence of str, optional
        Names.
    sweeps : bool
        Whether published values of scaled workloads, whose sources are among the recipes, belong to it.
    study : str, optional
        Whose what-ifs; by default all.
    """

    recipes: Sequence[str] | None = None
    schedulers: Sequence[str] | None = None
    sweeps: bool = False
    study: str | None = None

    def conditions(self) -> dict[str, str]:
        """Return what is put into the queries."""
        whatifs = "true" if self.study is None else f"study = {_listed([self.study])}"
        if self.recipes is None:
            names = ("runs", "workloads", "pairs", "published", "trends", "recipes", "left_out", "whatifs")
            return dict.fromkeys(names, "true")
        recipes = _listed(self.recipes)
        mine = f"workload IN (SELECT workload FROM workloads WHERE recipe IN ({recipes}))"
        schedulers = f" AND scheduler IN ({_listed(self.schedulers)})" if self.schedulers is not None else ""
        runs = f"SELECT run FROM runs WHERE {mine}{schedulers}"
        together = "SELECT recipe || '/' || scheduler FROM runs JOIN workloads USING (workload)"
        compared = f"{runs} UNION {together} WHERE recipe IN ({recipes}){schedulers}"
        swept = f"workload IN (SELECT recipe FROM sweeps WHERE source IN ({recipes}))"
        ours = f"workload IN ({recipes}) AND (scheduler IS NULL{schedulers.replace(' AND', ' OR', 1)})"
        published = f"({ours} OR {swept})" if self.sweeps else f"({ours})"
        if self.schedulers is None:
            published = f"workload IN ({recipes})"
        return {
            "runs": mine + schedulers,
            "workloads": mine,
            "pairs": f"first IN ({compared}) AND second IN ({compared})",
            "published": published,
            "trends": f"list_has_any([{recipes}], [workload || '+' || split_part(lower, '/', 1)])",
            "recipes": f"recipe IN ({recipes}){schedulers}",
            "left_out": "false",
            "whatifs": whatifs,
        }


def _listed(names: Sequence[str]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in names)


def read_table(connection: duckdb.DuckDBPyConnection, name: str, scope: Scope) -> dict[str, Any] | None:
    """
    Ask for a table.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        To the database.
    name : str
        One of `TABLES`.
    scope : Scope
        Which rows.

    Returns
    -------
    dict or None
        ``title``, ``note``, ``sql``, ``columns`` (``name``, ``kind``) and ``rows``; None without rows.
    """
    table = TABLES[name]
    sql = table.sql.format(**scope.conditions())
    result = connection.execute(sql)
    names = [column[0] for column in result.description or ()]
    rows = result.fetchall()
    if not rows:
        return None
    columns = [
        {"name": column, "kind": kind_of(column, [row[place] for row in rows])} for place, column in enumerate(names)
    ]
    return {
        "kind": "table",
        "name": name,
        "title": table.title,
        "note": table.note,
        "sql": sql,
        "columns": columns,
        "rows": [[shortened(value) for value in row] for row in rows],
    }
