"""Views that measure runs against lower bounds and rank the schedulers of a workload."""

from swflow.analysis.bounds import BOUNDED
from swflow.analysis.verdicts import BETTER, WORSE

#: The scheduler that others are compared with, by its name.
REFERENCE = "easy"

#: The metrics of runs for which the bounds of their workload hold: runs of all of its jobs, with their run times,
#: widths and submit times, on at most the machine, where no job starts before its submission, as some recorded jobs do.
#: Jobs that depend on others are submitted when they become eligible.
#: If no workload has dependencies, ``jobs`` lacks the column ``depends_on``, and the one of the outer query is null.
RIGID = """
    SELECT metrics.* FROM metrics
    JOIN runs USING (run)
    JOIN workloads ON workloads.workload = metrics.workload
    JOIN schedulers ON schedulers.scheduler = metrics.scheduler
    WHERE metrics.jobs = workloads.jobs AND metrics.killed = 0 AND schedulers.runtime = 'trace'
        AND schedulers.shapes = 'requested' AND json_extract_string(schedulers.options, '$.feedback') = 'none'
        AND coalesce(greatest(runs.processors, runs.peak_processors) <= workloads.processors, false)
        AND metrics.workload NOT IN (
            SELECT dependent FROM (SELECT NULL::BIGINT[] AS depends_on) AS without_column,
                LATERAL (SELECT workload AS dependent FROM jobs WHERE len(depends_on) > 0))
        AND (schedulers."order" <> 'log' OR metrics.workload NOT IN (SELECT workload FROM jobs WHERE wait_time < 0))
"""

#: The distance of runs from the bounds of their workload.
GAPS = f"""
    CREATE VIEW gaps AS
    WITH rigid AS ({RIGID})
    SELECT run, measure, measured.value, bounds.value AS bound, CASE
        WHEN bounds.value <= 0 THEN NULL
        WHEN measure = 'utilization' THEN 1 - measured.value / bounds.value
        ELSE measured.value / bounds.value - 1 END AS gap
    FROM (
        UNPIVOT (SELECT run, workload, {", ".join(BOUNDED)} FROM rigid)
        ON COLUMNS(* EXCLUDE (run, workload)) INTO NAME measure VALUE value
    ) AS measured JOIN bounds USING (workload, measure)
"""

_EXCHANGED = f"CASE {{0}} WHEN '{BETTER}' THEN '{WORSE}' WHEN '{WORSE}' THEN '{BETTER}' ELSE {{0}} END"

#: The differences of the means of all compared pairs, in both directions. The interval is that of a ratio, so that of
#: the exchanged pair follows from the inverse of the ratio's ends. A pair without a ratio has a mean of 0.
DIFFERENCES = f"""
    CREATE VIEW differences AS
    SELECT study, measure, variant, base, variant_mean, base_mean, mean_difference AS difference, mean_low AS low,
        mean_high AS high, mean_verdict AS verdict, mean_verdict_holm AS verdict_holm, basis, blocks,
        mean_freedom AS freedom, family_size
    FROM comparisons
    UNION ALL
    SELECT study, measure, base, variant, base_mean, variant_mean, 0 - mean_difference,
        CASE WHEN base_mean > 0 AND variant_mean > 0 THEN 0 - variant_mean * mean_high / (base_mean + mean_high)
            ELSE greatest(0 - mean_high, 0 - variant_mean) END,
        CASE WHEN base_mean > 0 AND variant_mean > 0 THEN 0 - variant_mean * mean_low / (base_mean + mean_low)
            ELSE 0 - mean_low END,
        {_EXCHANGED.format("mean_verdict")}, {_EXCHANGED.format("mean_verdict_holm")}, basis, blocks, mean_freedom,
        family_size
    FROM comparisons
"""

#: The verdict on a scheduler compared with another one, in the words of a ranking.
_WORD = f"CASE verdict_holm WHEN '{BETTER}' THEN 'better' WHEN '{WORSE}' THEN 'worse' ELSE verdict_holm END"

#: The schedulers of each workload that has bounds, by the mean wait time: only runs in `GAPS`, because others do
#: not run the same jobs. The verdicts are those of the study that compares most pairs. A difference is that of the
#: mean wait times, the scheduler minus the reference.
LEADERBOARD = f"""
    CREATE VIEW leaderboard AS
    WITH ranked AS (
        SELECT workloads.log, metrics.*, gap, seconds,
            rank() OVER (PARTITION BY workload ORDER BY mean_wait_time) AS rank,
            first_value(run) OVER (PARTITION BY workload ORDER BY mean_wait_time, run) AS best
        FROM metrics JOIN workloads USING (workload) JOIN runs USING (run, workload, scheduler)
        JOIN gaps USING (run)
        WHERE measure = 'awrt' AND scheduler <> 'log'
    ), compared AS (
        SELECT variant AS run, base AS other, difference, low, high, {_WORD} AS verdict
        FROM differences WHERE measure = 'wait_time'
        QUALIFY row_number() OVER (PARTITION BY variant, base ORDER BY family_size DESC NULLS LAST, study) = 1
    )
    SELECT log, workload, rank, scheduler, mean_wait_time, mean_bounded_slowdown, awrt, gap AS awrt_gap,
        pair.difference, pair.low, pair.high,
        CASE scheduler WHEN '{REFERENCE}' THEN 'reference' ELSE pair.verdict END AS verdict,
        CASE ranked.run WHEN best THEN 'best' ELSE pair_with_best.verdict END AS against_best,
        jain_wait_time, 1e6 * seconds / nullif(jobs, 0) AS microseconds_per_job
    FROM ranked
    LEFT JOIN compared AS pair ON pair.run = ranked.run AND pair.other = workload || '/{REFERENCE}'
    LEFT JOIN compared AS pair_with_best ON pair_with_best.run = ranked.run AND pair_with_best.other = best
    ORDER BY workload, rank, scheduler
"""
