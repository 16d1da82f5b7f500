"""The tables of the report, with their queries, which readers can copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from swflow.analysis.verdicts import EQUAL
from swflow.analysis.wait_parts import REASONS
from swflow.files.query import fetched
from swflow.report.units import kind_of, shortened

#: A part of a page, such as a table or a figure, as the page's script reads it.
Block = dict[str, Any]

#: The condition on rows of table ``checks`` for a warning that holds in the same words for every log.
OF_ALL_LOGS = """("check", message) IN (
    SELECT ("check", message) FROM checks JOIN workloads USING (workload) GROUP BY "check", message
    HAVING count(DISTINCT log) = (SELECT count(DISTINCT log) FROM workloads) AND count(DISTINCT log) > 1)"""


@dataclass(frozen=True)
class Table:
    """
    A table of the report; the note states the meaning of its columns.

    In the query, ``{runs}`` is replaced by a condition on ``workload`` and ``scheduler``, ``{workloads}`` by one on
    ``workload``.
    """

    title: str
    note: str
    sql: str


#: The number of users of a run to list.
FAIRNESS_USERS = 10

#: Texts with spaces and more than this number of characters are sentences, whose columns wrap.
LONG_TEXT = 40

#: Only the first of several replicates is shown, to keep tables short.
_FIRST = "NOT regexp_matches({}, '@([2-9]|1[0-9])')"

#: Comparisons of recipes replace the comparisons of their single draws.
_TOGETHER = """(variant || ' ' || base NOT LIKE '%@%'
    OR regexp_replace(variant || ' ' || base, '@[0-9]+', '', 'g')
    NOT IN (SELECT variant || ' ' || base FROM comparisons WHERE variant || ' ' || base NOT LIKE '%@%'))"""

#: The measures of what-ifs, and the prefixes of their columns.
_WHATIF_MEASURES = (
    ("mean_wait_time", "mean_wait"), ("p95_wait_time", "p95_wait"), ("awrt", "awrt"),
    ("mean_bounded_slowdown", "mean_bounded_slowdown"),
)  # fmt: skip


def _pivoted(measure: tuple[str, str]) -> str:
    """Return the columns of a measure of a what-if: the value, its change, and the verdict."""
    name, short = measure
    change = """CASE WHEN verdict <> 'base' AND base > 0 THEN printf('%+.1f %%', 100 * difference / base)
        || coalesce(printf(' [%+.1f, %+.1f]', 100 * low / base, 100 * high / base), '') END"""
    columns = {name: "value", f"{short}_change": change, f"{short}_verdict": "verdict_holm"}
    parts = [f"\n    any_value({value}) FILTER (measure = '{name}') AS {column}" for column, value in columns.items()]
    return ",".join(parts)


#: The wait of a row of ``wait_reasons``, and the share of the waiting time of each reason.
_WAIT = 'ifnull(eligibility, 0) + ifnull("limit", 0) + room + "order" + ifnull(latency, 0)'
_REASONS = ", ".join(f'sum("{name}") / nullif(sum({_WAIT}), 0) AS {name}_share' for name in REASONS)

#: The tables, in the order in which the page of all tables has them.
TABLES: dict[str, Table] = {
    "metrics": Table(
        "Metrics by run",
        "awrt and awwt are the response and the wait time weighted by processors times run time. The slowdown is "
        "response over run time; bounded, run times below 10 s count as 10 s. The makespan runs from the first "
        "submission to the last end. saturated: 1 if the queue grows over the log, so that waits depend on its "
        "length; such a run is never called better. peak_processors: the most that were busy at once. "
        "If a log records more than the machine has, its utilization and load are not comparable with those of "
        "simulated runs.",
        """SELECT workload, scheduler, jobs, offered_load, saturated, utilization,
    (SELECT peak_processors FROM runs WHERE runs.run = metrics.run) AS peak_processors,
    mean_wait_time, median_wait_time, p95_wait_time,
    mean_response_time, mean_slowdown, mean_bounded_slowdown, p95_bounded_slowdown, awrt, awwt,
    squashed_area, makespan, killed, penalized_percent
FROM metrics WHERE {runs} ORDER BY workload, scheduler""",
    ),
    "further_metrics": Table(
        "Resources and cancellations by run",
        "Of each resource besides processors: utilization (squashed area over units times makespan), squashed area "
        "(unit-seconds) and peak, the most units in use at once; a peak above the machine's units is possible only "
        "in a recorded schedule. cancelled: jobs that were cancelled in the queue and have no other metric; "
        "started_before_cancel: those of them that the scheduler would have started before; not_submitted: jobs whose "
        "user had left (feedback: leaving).",
        """SELECT workload, scheduler, metric, value FROM further_metrics
WHERE {runs} ORDER BY workload, scheduler, metric""",
    ),
    "workloads": Table(
        "Workloads",
        "A workload is a cleaned log and the steps applied to it. The span runs from the first to the last "
        "submission; the offered load is the processor-seconds of all jobs over those of the machine in that span, "
        "and empty if all jobs are submitted at once.",
        """SELECT workload, log, processors, nodes, jobs, last_submit_time - first_submit_time AS span_time,
    offered_load, steps
FROM workloads WHERE {workloads} ORDER BY workload""",
    ),
    "cleaning": Table(
        "Removed jobs by reason",
        "One row per stage and reason; a job counts under the first reason that applies. Jobs that are in no "
        "row were kept.",
        """SELECT workload, stage, reason, jobs FROM removals
WHERE {workloads} AND reason <> 'kept' ORDER BY workload, position, jobs DESC, reason""",
    ),
    "schedulers": Table(
        "Schedulers",
        "The scheduler log replays the start times that the log recorded.",
        """SELECT scheduler, "order", backfill, reservations, backfill_order, estimates, prediction,
    allocation, runtime, event_order, dispatch, without_status
FROM schedulers WHERE scheduler IN (SELECT scheduler FROM metrics WHERE {runs}) ORDER BY scheduler""",
    ),
    "correlations": Table(
        "Load and performance",
        "Spearman's rank correlation of the load that a job experienced, the mean utilization between its "
        "submission and its end, with its slowdown, response time and wait time. above_1: jobs whose load is above "
        "1, because the log records more busy processors than the machine has; do not compare these correlations "
        "with those of simulated runs.",
        """PIVOT (SELECT workload, scheduler, measure, spearman, jobs, above_1
    FROM correlations JOIN runs USING (run) WHERE {runs})
ON measure IN ('slowdown' AS slowdown, 'response_time' AS response, 'wait_time' AS wait) USING first(spearman)
GROUP BY workload, scheduler, jobs, above_1 ORDER BY workload, scheduler""",
    ),
    "comparisons": Table(
        "Which is better at equal load",
        "The runs that a study compares. distance: the earth mover's distance of their heatmaps, in decades of the "
        "value, if they share a workload. "
        "score: at equal load, the probability that a job of the variant has a smaller value than a job of the "
        "base, minus the probability of the opposite. mean_difference: mean, AWRT or percentile of the variant "
        "minus that of the base. low and high: 95 % confidence interval, over the log's weeks or over replicates. "
        "verdict: by the interval of this pair alone; verdict_holm: the same corrected for the number of "
        "comparisons of the study, log and measure (Holm). not distinguishable does not show that there is no "
        "difference. better: the run that wins more than half of the jobs in load deciles.",
        f"""SELECT study, variant, base, measure, score_verdict, score_verdict_holm, score, score_low, score_high,
    mean_verdict, mean_verdict_holm, mean_difference, mean_low, mean_high, better, basis, blocks,
    family_size AS comparisons, distance
FROM comparisons
WHERE (distance > 0 OR score_verdict <> '{EQUAL}' OR mean_verdict <> '{EQUAL}') AND {{pairs}} AND {_TOGETHER}
ORDER BY study, variant, base, measure""",
    ),
    "leaderboard": Table(
        "Schedulers by mean wait time",
        "wait_difference: mean wait time minus that of easy, with its 95 % confidence interval over the log's "
        "weeks, of this pair alone (low, high). against_best, against_easy: verdicts of the comparisons with "
        "the scheduler of rank 1 and with easy, corrected for the number of comparisons (Holm). not "
        "distinguishable does not show that there is no difference. awrt_gap: how far the average weighted "
        "response time is above the lower bound of any schedule. jain_index: of the users' mean wait times; 1 "
        "means equal waits. Only runs of all jobs, with their run times and sizes unchanged, are ranked.",
        """SELECT scheduler, rank, mean_wait_time, workload, against_best, verdict AS against_easy,
    difference AS wait_difference_time, low AS low_time, high AS high_time, mean_bounded_slowdown, awrt, awrt_gap,
    jain_wait_time AS jain_index
FROM leaderboard WHERE {runs} ORDER BY workload, rank, scheduler""",
    ),
    "bounds": Table(
        "Lower bounds",
        "What no schedule of the same rigid jobs on the same machine can beat (an upper bound of the utilization), "
        "the argument behind it, and the run that is closest to it, of several the first by name.",
        """SELECT workload, measure, bounds.value AS bound, theorem,
    arg_min(scheduler, row(gap, scheduler)) FILTER (gap IS NOT NULL) AS closest,
    arg_min(gaps.value, row(gap, scheduler)) FILTER (gap IS NOT NULL) AS closest_value, min(gap) AS smallest_gap
FROM (SELECT runs.workload, runs.scheduler, gaps.* FROM gaps JOIN runs USING (run)) AS gaps
RIGHT JOIN bounds USING (workload, measure)
WHERE {workloads} GROUP BY workload, measure, bounds.value, theorem ORDER BY workload, min(bounds.rowid)""",
    ),
    "reasons": Table(
        "Why jobs wait",
        "The mean wait, from submission to start, and the share of the waiting time that has each reason. room: the "
        "machine had no room; fragmentation and drain are parts of it. order: there was room. An empty cell is "
        "unknown, and its time is in other columns, mostly in order.",
        f"""SELECT workload, scheduler, count(*) AS jobs, sum({_WAIT}) / count(*) AS mean_wait_time,
    {_REASONS}
FROM wait_reasons JOIN runs USING (run) WHERE {{runs}} GROUP BY workload, scheduler ORDER BY workload, scheduler""",
    ),
    "coverage": Table(
        "Published values by verdict",
        "One row per published table. Each of the limits within_1, within_5 and within_10 includes the tighter ones. "
        "further_off is the sum of inside_draws, other_version, other_reading and open.",
        'SELECT * FROM coverage ORDER BY paper, "table"',
    ),
    "claims": Table(
        "Claims of the papers",
        "holds: on every log of the paper that is here. other_logs: logs that the paper did not use.",
        """SELECT paper, section, claim, holds, logs, logs_held, other_logs, other_logs_held, evidence
FROM claims ORDER BY rowid""",
    ),
    "reproduction": Table(
        "Published and computed values",
        "Rows of the papers' tables; for replicates, the median. A published value may be based on another version "
        "of the log. within percent: the smallest of 1, 5 and 10 within which swflow's value lies. Differences are "
        "relative; for differences in percent, they are percentage points; for correlations, the limits are 0.015, "
        "0.03 and 0.05, at most half the published value. No limit is below the printed precision. Empty: beyond 10. "
        "verdict: the first explanation of the difference that applies.",
        """SELECT paper, "table", row, "column", published, ours, verdict, explanation, difference, ratio, scale,
    within_percent, draws, low, high, workload, scheduler
FROM reproduction WHERE {published} AND reason IS NULL
ORDER BY paper, "table", row, "column", workload, scheduler""",
    ),
    "missing": Table(
        "Published values without ours, by reason",
        "Cells of the papers' tables that are not compared with a value here.",
        """SELECT paper, "table", row, "column", published, workload, scheduler, reason
FROM reproduction WHERE {published} AND reason IS NOT NULL
ORDER BY paper, "table", row, "column", workload, scheduler""",
    ),
    "whatifs": Table(
        "What if",
        "Each variant and the base: the first scheduler, with everything else as recorded. change: in percent "
        "of the base, with its 95 % confidence interval over the log's weeks. verdict: not "
        "distinguishable: the interval contains 0.",
        f"""SELECT study, workload, variant, {", ".join(map(_pivoted, _WHATIF_MEASURES))},
    any_value(processors) AS processors, any_value(utilization) AS utilization, any_value(jobs) AS jobs,
    max(weeks) AS weeks
FROM whatifs WHERE {{whatifs}} GROUP BY study, workload, variant ORDER BY min(rowid)""",
    ),
    "forecasts": Table(
        "Forecasts of waits",
        "Forecasts of the last weeks of each log, made with the data before each moment. coverage: the share of jobs "
        "that started within their 90 % interval, with its 95 % confidence interval over the weeks. width (median), "
        "score (interval score) and squared error (of the median) are in decades of the wait; lower is better. "
        "past: from past waits. simulation: from simulated futures. best: the better one in the weeks before. "
        "classes: the baseline, binomial bounds by class of job.",
        """SELECT study, workload, method, dimension, "group", jobs, coverage, coverage_low, coverage_high, width,
    score, squared_error
FROM forecasts WHERE {whatifs} AND dimension IN ('all', 'partition', 'size', 'waited')
ORDER BY study, workload, dimension, "group", method DESC""",
    ),
    "left_out": Table(
        "Runs left out",
        "Planned runs of logs that could not be downloaded.",
        "SELECT log, reason, count(*) AS runs FROM left_out WHERE {left_out} GROUP BY ALL ORDER BY ALL",
    ),
    "readings": Table(
        "The same values under other readings of the papers",
        "Where a paper is ambiguous: swflow's value under another scheduler, step or metric.",
        """SELECT paper, "table", row, "column", reading, published, ours, ratio, within_percent,
    workload, scheduler
FROM readings WHERE {published} ORDER BY paper, "table", row, "column", reading, workload""",
    ),
    "sensitivity": Table(
        "Effects of conventions",
        "Published values, those of swflow, and their range under each convention that papers leave open, one at "
        "a time: the order of events, ties, estimates below run times, cancelled jobs, run times of zero, the "
        "version of the log. decides: the convention with the largest effect. inside: whether the published "
        "value lies in the range.",
        """SELECT paper, "table", row, "column", published, ours, lowest, highest, inside, decides,
    lowest_choice, highest_choice, choices, workload, scheduler
FROM sensitivity WHERE {published} ORDER BY paper, "table", row, "column", workload""",
    ),
    "trends": Table(
        "Published trends",
        "One row per trend and workload: the medians of the draws, and whether the first is the lower one by the "
        "95 % intervals of the means.",
        """SELECT paper, trend, workload, lower_value, higher_value,
    CASE WHEN holds THEN 'holds' WHEN NOT holds THEN 'does not hold' ELSE 'not distinguishable' END AS result
FROM trend_checks WHERE {trends} ORDER BY ALL""",
    ),
    "replicates": Table(
        "Replicates of random steps",
        "For workloads that differ only in the random draw: mean and Student's 95 % confidence interval of the mean.",
        """SELECT recipe, scheduler, replicates, measure, mean, low, high FROM replicates
WHERE {recipes} AND replicates > 1 AND measure IN ('mean_wait_time', 'mean_response_time', 'mean_bounded_slowdown',
    'awrt', 'awwt', 'utilization', 'squashed_area', 'killed', 'penalized_percent', 'p95_wait_time_unkilled',
    'p95_bounded_slowdown_60_unkilled')
ORDER BY recipe, scheduler, measure""",
    ),
    "fits": Table(
        "Fitted models",
        "Statistics of workloads generated by each model, compared with those of the source.",
        """SELECT workload, fit, model, arrivals, measure, value, source_value FROM fits WHERE {workloads}
ORDER BY ALL""",
    ),
    "recorded": Table(
        "Recorded and simulated waits",
        "For each log with a recorded schedule, over the jobs that have a recorded wait and are in the run: the mean "
        "wait in the record and in the simulation, the simulated wait in percent of the recorded one, the share of "
        "the jobs that start within 60 s of the record, and the distance between the distributions of the waits. If "
        "the first scheduler is far from the record, trust the directions of differences between schedulers, not "
        "their minutes.",
        """SELECT workload, scheduler, recorded_mean_wait_time AS recorded_wait_time,
    simulated_mean_wait_time AS simulated_wait_time,
    simulated_mean_wait_time / nullif(recorded_mean_wait_time, 0) AS simulated_of_recorded, started_alike, wait_distance
FROM fidelity JOIN workloads USING (workload)
WHERE {workloads} AND scheduler <> 'log' AND len(steps) = 0
ORDER BY workload, wait_distance, scheduler""",
    ),
    "fidelity": Table(
        "Similarity of simulations to the record",
        "For logs with a recorded schedule: the distance of the distributions of the waits, the mean difference of "
        "waits of equal rank, jobs that start within 60 s of the record, queue neighbors that start in "
        "the recorded order, the mean difference of the utilization by hours, and the distance of the heatmaps in "
        "decades of the wait.",
        """SELECT workload, scheduler, jobs, wait_distance, wait_difference AS wait_difference_time, started_alike,
    start_order, utilization_difference, heatmap_distance
FROM fidelity WHERE {runs} ORDER BY workload, wait_distance, scheduler""",
    ),
    "fairness": Table(
        "Users and groups",
        f"The {FAIRNESS_USERS} users and groups with most processor-seconds of a run, for the first replicate; "
        "all are in the database's table fairness.",
        f"""SELECT workload, scheduler, kind, coalesce(name, id::VARCHAR) AS who, jobs, use_share, mean_wait_time,
    p95_wait_time, mean_bounded_slowdown, p95_bounded_slowdown
FROM fairness WHERE {{runs}} AND {_FIRST.format("workload")}
QUALIFY row_number() OVER (PARTITION BY run, kind ORDER BY use_share DESC, id) <= {FAIRNESS_USERS}
ORDER BY workload, kind, use_share DESC, who, scheduler""",
    ),
    "checks": Table(
        "Plausibility",
        "Implausible values of a log, with their severity.",
        """SELECT workload, severity, message, jobs, first_job_id, "check" FROM checks WHERE {workloads}
ORDER BY workload, severity, "check", message""",
    ),
    "logs": Table(
        "Acknowledgements",
        "The logs, and the acknowledgements that their headers request.",
        "SELECT DISTINCT log, computer, installation, acknowledge FROM workloads WHERE {workloads} ORDER BY log",
    ),
    "checks_of_some": Table(
        "Plausibility",
        "Implausible values of single logs, with their severity.",
        f"""SELECT workload, severity, message, jobs, first_job_id, "check" FROM checks
WHERE {{workloads}} AND NOT ({OF_ALL_LOGS}) ORDER BY workload, severity, "check", message""",
    ),
}


@dataclass(frozen=True)
class Scope:
    """
    Which rows a page shows: all rows, or those with some recipes and schedulers.

    With ``sweeps``, published values of scaled workloads with a source among the recipes are included. Without a
    ``study``, the what-ifs of all studies are.
    """

    recipes: Sequence[str] | None = None
    schedulers: Sequence[str] | None = None
    sweeps: bool = False
    study: str | None = None

    def conditions(self) -> dict[str, str]:
        """Return the conditions to insert into the queries."""
        recipes = quoted(*(self.recipes or ()))
        mine = f"workload IN (SELECT workload FROM workloads WHERE recipe IN ({recipes}))"
        schedulers = f" AND scheduler IN ({quoted(*self.schedulers)})" if self.schedulers is not None else ""
        runs = f"SELECT run FROM runs WHERE {mine}{schedulers}"
        together = "SELECT recipe || '/' || scheduler FROM runs JOIN workloads USING (workload)"
        compared = f"{runs} UNION {together} WHERE recipe IN ({recipes}){schedulers}"
        swept = f"workload IN (SELECT recipe FROM sweeps WHERE source IN ({recipes}))"
        ours = f"workload IN ({recipes}) AND (scheduler IS NULL{schedulers.replace(' AND', ' OR', 1)})"
        pairs = f"variant IN ({compared}) AND base IN ({compared})"
        if self.study is not None:  # a database that was loaded without the study has other comparisons
            mine_only = f"study = {quoted(self.study)}"
            pairs += f" AND ({mine_only} OR NOT EXISTS (FROM comparisons WHERE {mine_only}))"
        conditions = {
            "runs": mine + schedulers,
            "workloads": mine,
            "pairs": pairs,
            "published": f"({ours} OR {swept})" if self.sweeps else f"({ours})",
            "trends": f"list_has_any([{recipes}], [workload || '+' || split_part(lower, '/', 1)])",
            "recipes": f"recipe IN ({recipes}){schedulers}",
            "left_out": "false",
            "whatifs": "true" if self.study is None else f"study = {quoted(self.study)}",
        }
        return conditions if self.recipes is not None else dict.fromkeys(conditions, "true")


def quoted(*texts: str) -> str:
    """Return texts as a list of SQL literals."""
    return ", ".join("'" + text.replace("'", "''") + "'" for text in texts)


def read_table(connection: duckdb.DuckDBPyConnection, name: str, scope: Scope) -> Block | None:
    """
    Return the contents of one of `TABLES` for a scope; None if there are no rows, or only columns of names.

    Columns without any value are left out.
    """
    table = TABLES[name]
    sql = table.sql.format(**scope.conditions())
    names, rows = fetched(connection.execute(sql))
    if not rows:
        return None
    values = dict(zip(names, zip(*rows, strict=True), strict=True))
    kept = {name: column for name, column in values.items() if any(value is not None for value in column)}
    if len(kept) < 2:
        return None
    return {
        "kind": "table",
        "name": name,
        "title": table.title,
        "note": table.note,
        "sql": sql,
        "columns": [_column(name, column) for name, column in kept.items()],
        "rows": [[shortened(value) for value in row] for row in zip(*kept.values(), strict=True)],
    }


def _column(name: str, values: Sequence[Any]) -> Block:
    """Return name and kind of a column; columns of sentences are ``long`` and wrap."""
    column: dict[str, Any] = {"name": name, "kind": kind_of(name, values)}
    if any(isinstance(value, str) and len(value) > LONG_TEXT and " " in value for value in values):
        column["long"] = True
    return column
