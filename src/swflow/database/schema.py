"""The schema of the database: its tables, and the views of all figures of workloads and runs."""

from typing import Any

from swflow.analysis.fidelity import MEASURES as FIDELITY
from swflow.analysis.metrics import COUNTS, METRICS

#: Rows of a table: column to value.
Rows = list[dict[str, Any]]

#: Two compared runs, a variant and its base.
Pair = tuple[str, str]

_METRICS = ", ".join(f"{name} {'BIGINT' if name in COUNTS else 'DOUBLE'}" for name in METRICS)
_BUBBLES = """run VARCHAR, measure VARCHAR, filtered BOOLEAN, decile BIGINT, mean_load DOUBLE, mean_value DOUBLE,
    median_load DOUBLE, median_value DOUBLE, jobs BIGINT"""

#: The tables, in the order in which they are filled. ``jobs`` can have more columns, which steps add.
TABLES: dict[str, str] = {
    "workloads": """workload VARCHAR PRIMARY KEY, log VARCHAR, recipe VARCHAR, replicate BIGINT, steps VARCHAR[],
        jobs BIGINT, offered_load DOUBLE, processors BIGINT,
        nodes BIGINT, processors_per_node BIGINT, capacities JSON, first_submit_time DOUBLE, last_submit_time DOUBLE,
        unix_start_time BIGINT, time_zone VARCHAR, computer VARCHAR, installation VARCHAR, acknowledge VARCHAR""",
    "removals": "workload VARCHAR, position INTEGER, stage VARCHAR, reason VARCHAR, jobs BIGINT",
    "names": 'workload VARCHAR, "column" VARCHAR, id BIGINT, name VARCHAR',
    "checks": """workload VARCHAR, "check" VARCHAR, severity VARCHAR, message VARCHAR, jobs BIGINT,
        first_job_id BIGINT, moment TIMESTAMP""",
    "schedulers": """scheduler VARCHAR PRIMARY KEY, "order" VARCHAR, backfill VARCHAR, reservations BIGINT,
        backfill_order VARCHAR, estimates VARCHAR, prediction VARCHAR, allocation VARCHAR, runtime VARCHAR,
        event_order VARCHAR, dispatch VARCHAR, without_status BIGINT[], shapes VARCHAR, options JSON""",
    "runs": """run VARCHAR PRIMARY KEY, workload VARCHAR, scheduler VARCHAR, seconds DOUBLE, processors BIGINT,
        peak_processors BIGINT""",
    "metrics": f"run VARCHAR PRIMARY KEY, workload VARCHAR, scheduler VARCHAR, {_METRICS}",
    "further_metrics": "run VARCHAR, workload VARCHAR, scheduler VARCHAR, metric VARCHAR, value DOUBLE",
    "trends": """paper VARCHAR, trend VARCHAR, figure VARCHAR, lower_step VARCHAR, lower_scheduler VARCHAR,
        higher_step VARCHAR, higher_scheduler VARCHAR""",
    "correlations": "run VARCHAR, measure VARCHAR, spearman DOUBLE, jobs BIGINT, above_1 BIGINT",
    "heatmaps": """run VARCHAR, measure VARCHAR, load_low DOUBLE, load_high DOUBLE, value_low DOUBLE,
        value_high DOUBLE, jobs BIGINT""",
    "bubbles": _BUBBLES,
    "bubbles_11": _BUBBLES,
    "comparisons": """study VARCHAR, workload VARCHAR, measure VARCHAR, variant VARCHAR, base VARCHAR,
        distance DOUBLE, score DOUBLE, variant_wins DOUBLE, base_wins DOUBLE, better VARCHAR, basis VARCHAR,
        blocks BIGINT, score_low DOUBLE,
        score_high DOUBLE, score_freedom DOUBLE, score_verdict VARCHAR, score_p DOUBLE, score_p_holm DOUBLE,
        score_verdict_holm VARCHAR, variant_mean DOUBLE, base_mean DOUBLE, mean_difference DOUBLE, mean_low DOUBLE,
        mean_high DOUBLE, mean_freedom DOUBLE, mean_verdict VARCHAR, mean_p DOUBLE, mean_p_holm DOUBLE,
        mean_verdict_holm VARCHAR, family VARCHAR, family_size BIGINT""",
    "replicates": """recipe VARCHAR, log VARCHAR, scheduler VARCHAR, measure VARCHAR, replicates BIGINT, mean DOUBLE,
        median DOUBLE, deviation DOUBLE, low DOUBLE, high DOUBLE""",
    "fairness": """run VARCHAR, workload VARCHAR, scheduler VARCHAR, kind VARCHAR, id BIGINT, name VARCHAR, jobs BIGINT,
        mean_wait_time DOUBLE, p95_wait_time DOUBLE, mean_bounded_slowdown DOUBLE, p95_bounded_slowdown DOUBLE,
        use_share DOUBLE""",
    "fidelity": "run VARCHAR, workload VARCHAR, scheduler VARCHAR, jobs BIGINT, "
    + ", ".join(f"{measure} DOUBLE" for measure in FIDELITY),
    "model_fit": """workload VARCHAR, source VARCHAR, model VARCHAR, measure VARCHAR, value DOUBLE,
        source_value DOUBLE""",
    "published": """paper VARCHAR, "table" VARCHAR, row VARCHAR, "column" VARCHAR, value DOUBLE, workload VARCHAR,
        scheduler VARCHAR, figure VARCHAR, rounding DOUBLE""",
    "coverage": """paper VARCHAR, "table" VARCHAR, published BIGINT, compared BIGINT, within_1 BIGINT, within_5 BIGINT,
        within_10 BIGINT, further_off BIGINT, missing BIGINT, inside_draws BIGINT, other_version BIGINT,
        other_reading BIGINT, open BIGINT""",
    "draws": "workload VARCHAR, scheduler VARCHAR, figure VARCHAR, sorted DOUBLE[], low DOUBLE, high DOUBLE",
    "definitions": """paper VARCHAR, "table" VARCHAR, "column" VARCHAR, figure VARCHAR, words VARCHAR,
        expression VARCHAR, difference VARCHAR""",
    "claims": """paper VARCHAR, section VARCHAR, claim VARCHAR, holds VARCHAR, logs BIGINT, logs_held BIGINT,
        other_logs BIGINT, other_logs_held BIGINT, judged_by VARCHAR, evidence VARCHAR, sql VARCHAR""",
    "conventions": "convention VARCHAR, choice VARCHAR, part VARCHAR, published VARCHAR, ours VARCHAR",
    "reading_parts": "paper VARCHAR, reading VARCHAR, part VARCHAR, published VARCHAR, ours VARCHAR",
    "contents": "kind VARCHAR, name VARCHAR, digest VARCHAR",
    "fits": """workload VARCHAR, fit VARCHAR, model VARCHAR, arrivals VARCHAR, jobs BIGINT, measure VARCHAR,
        value DOUBLE, source_value DOUBLE""",
    "left_out": "run VARCHAR, workload VARCHAR, scheduler VARCHAR, log VARCHAR, reason VARCHAR",
    "sweeps": f"""sweep VARCHAR, workload VARCHAR, recipe VARCHAR, replicate BIGINT, source VARCHAR, processors BIGINT,
        d DOUBLE, variant VARCHAR, factor DOUBLE, scheduler VARCHAR, {_METRICS}""",
    "whatifs": """study VARCHAR, workload VARCHAR, variant VARCHAR, scheduler VARCHAR, processors BIGINT,
        resources VARCHAR, estimates VARCHAR, arrivals DOUBLE, run_times DOUBLE, measure VARCHAR, jobs BIGINT,
        value DOUBLE, base DOUBLE, difference DOUBLE, low DOUBLE, high DOUBLE, weeks BIGINT, freedom DOUBLE,
        p DOUBLE, verdict VARCHAR, verdict_holm VARCHAR, utilization DOUBLE, trust VARCHAR""",
    "forecasts": """study VARCHAR, workload VARCHAR, method VARCHAR, dimension VARCHAR, "group" VARCHAR, jobs BIGINT,
        unknown BIGINT, coverage DOUBLE, coverage_low DOUBLE, coverage_high DOUBLE, width DOUBLE, pinball DOUBLE,
        score DOUBLE, squared_error DOUBLE, median_error DOUBLE, before_low DOUBLE, before_median DOUBLE,
        before_high DOUBLE""",
    "wait_reasons": """run VARCHAR, job_id BIGINT, eligibility DOUBLE, "limit" DOUBLE, room DOUBLE,
        fragmentation DOUBLE, drain DOUBLE, "order" DOUBLE, latency DOUBLE""",
    "bounds": "workload VARCHAR, measure VARCHAR, value DOUBLE, theorem VARCHAR",
}

#: Tables that an incremental load changes only for changed workloads and runs, with the columns that identify these.
KEPT: dict[str, dict[str, tuple[str, ...]]] = {
    "workload": dict.fromkeys(("workloads", "removals", "model_fit", "names", "checks", "jobs"), ("workload",)),
    "run": dict.fromkeys(("heatmaps", "bubbles", "bubbles_11", "fairness", "fidelity", "outcomes"), ("run",))
    | {"comparisons": ("variant", "base")},
}

#: All figures of workloads and runs, one per row. A draw that is both a run and a point of a sweep counts once. Draws
#: of a search are excluded because draws with different factors share a name. Figures without a scheduler belong to
#: the workload: the share of powers of two among the sizes, the whole factor by which the widest job fills 1,024
#: processors, the goodness of fit of a synthetic workload, and the corresponding values of its source.
FIGURES = """
    CREATE VIEW figures AS
    WITH measured AS (
        SELECT * EXCLUDE (run) FROM metrics
        UNION ALL BY NAME
        SELECT DISTINCT * EXCLUDE (sweep, recipe, replicate, source, processors, d, variant, factor) FROM sweeps
        WHERE (replicate IS NULL OR starts_with(recipe, source || '+' || variant)) AND NOT EXISTS (
            FROM metrics WHERE metrics.workload = sweeps.workload AND metrics.scheduler = sweeps.scheduler)
    )
    SELECT workload, scheduler, name AS figure, value FROM (
        UNPIVOT (SELECT * REPLACE (
            jobs::DOUBLE AS jobs, killed::DOUBLE AS killed, saturated::DOUBLE AS saturated) FROM measured)
        ON COLUMNS(* EXCLUDE (workload, scheduler)))
    UNION ALL
    SELECT workload, scheduler, 'spearman_' || measure, spearman FROM correlations JOIN runs USING (run)
    UNION ALL
    SELECT workload, NULL, 'log_jobs', sum(jobs) FROM removals
    WHERE position = 0 AND reason NOT IN ('before-period', 'after-period') GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'processors', processors FROM workloads
    UNION ALL
    SELECT workload, NULL, 'kept_jobs', jobs FROM workloads
    UNION ALL
    SELECT workload, NULL, 'widest_job', max(processors) FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'static_factor_1024', round(1024 / max(processors)) FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, 'power_of_two_percent', 100 * avg(((processors & (processors - 1)) = 0)::INTEGER)
    FROM jobs GROUP BY workload
    UNION ALL
    SELECT workload, NULL, measure, value FROM model_fit
    UNION ALL
    SELECT DISTINCT source, NULL, measure, source_value FROM model_fit
    WHERE source NOT IN (SELECT workload FROM model_fit)
"""

#: The figures of every workload; for replicates, the median.
MEDIANS = """
    CREATE VIEW medians AS
    SELECT workload, scheduler, figure, value FROM figures
    UNION ALL
    SELECT recipe, scheduler, measure, median FROM replicates
"""
