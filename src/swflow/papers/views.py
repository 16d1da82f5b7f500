"""SQL views that compare published values with simulated ones: agreement, other readings, and trends."""

#: Absolute tolerances for correlations; they replace 1, 5 and 10 percent. Two printed decimals are right to 0.005.
CORRELATION_TOLERANCES = {1: 0.005, 5: 0.015, 10: 0.03}

#: Figures in percent for which 0 means equality. Their differences are percentage points, of which 0.5, 1 and 2
#: replace 1, 5 and 10 percent.
POINTS = ("squashed_area_difference",)
POINT_TOLERANCES = {1: 0.5, 5: 1.0, 10: 2.0}

#: A tolerance for correlations and points is at most this share of the published value. Otherwise, the same number for
#: all rows of a column would match many of them.
LARGEST_SHARE = 0.25

#: The verdicts on a value within a tolerance, by scale, in the order of the tolerances.
WITHIN = {
    "relative": tuple(f"within {percent} %" for percent in CORRELATION_TOLERANCES),
    "correlation": tuple(f"within {tolerance:g}" for tolerance in CORRELATION_TOLERANCES.values()),
    "points": tuple(f"within {tolerance:g} points" for tolerance in POINT_TOLERANCES.values()),
}


def scale_of(figure: str) -> str:
    """Return SQL for the scale on which a figure is compared: ``correlation``, ``points`` or ``relative``."""
    return (
        f"CASE WHEN {figure} = 'correlation' OR starts_with({figure}, 'spearman_') THEN 'correlation' "
        f"WHEN {figure} IN ({', '.join(repr(name) for name in POINTS)}) THEN 'points' ELSE 'relative' END"
    )


def tolerance(row: str, percent: int) -> str:
    """
    Return SQL for the largest absolute difference within a percentage of the published value in ``row``.

    It is at least half a unit of the last printed digit, the precision of the published value.
    """
    return (
        f"greatest({row}.rounding, CASE {scale_of(f'{row}.figure')} "
        f"WHEN 'correlation' THEN least({CORRELATION_TOLERANCES[percent]}, {LARGEST_SHARE} * abs({row}.value)) "
        f"WHEN 'points' THEN least({POINT_TOLERANCES[percent]}, {LARGEST_SHARE} * abs({row}.value)) "
        f"ELSE {percent / 100} * abs({row}.value) END)"
    )


def _within(row: str) -> str:
    """Return SQL for the smallest of 1, 5 and 10 percent within which our value (m) agrees with a row; else null."""
    percents = " ".join(
        f"WHEN abs(m.value - {row}.value) <= 1e-9 + {tolerance(row, percent)} THEN {percent}"
        for percent in CORRELATION_TOLERANCES
    )
    return f"CASE {percents} END"


#: Published values with the workload to compare: another log stands in for one that is not here, if a reading of the
#: paper replaces this log (``part`` is ``log``), and ``stand_in`` names it.
PLACED = """
    CREATE VIEW placed AS
    WITH here AS (SELECT DISTINCT split_part(workload, '+', 1) AS log FROM medians)
    SELECT p.* EXCLUDE (workload), s.ours AS stand_in,
        coalesce(s.ours || substr(p.workload, len(s.published) + 1), p.workload) AS workload
    FROM published p LEFT JOIN reading_parts s ON s.paper = p.paper AND s.part = 'log'
        AND s.published = split_part(p.workload, '+', 1) AND s.published NOT IN (FROM here) AND s.ours IN (FROM here)
"""

#: Published values with those of swflow. Rows without swflow's value stay, with the reason.
CELLS = f"""
    CREATE VIEW cells AS
    WITH measured AS (SELECT DISTINCT workload, scheduler FROM medians)
    SELECT paper, "table", row, "column", p.value AS published, m.value AS ours, m.value - p.value AS difference,
        m.value / nullif(p.value, 0) AS ratio, p.workload, p.scheduler, p.figure, stand_in, rounding,
        CASE WHEN p.value IS NULL THEN 'not legible'
            WHEN m.value IS NOT NULL THEN NULL
            WHEN p.workload IS NULL THEN 'no public log'
            WHEN split_part(p.workload, '+', 1) NOT IN (SELECT split_part(workload, '+', 1) FROM measured)
                THEN 'log not here'
            WHEN EXISTS (FROM reading_parts r WHERE r.paper = p.paper AND r.part = 'model'
                    AND ends_with(p.workload, '+' || r.published)) THEN 'model not here'
            WHEN p.workload NOT IN (SELECT workload FROM measured) THEN 'workload not run'
            WHEN p.scheduler IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM measured WHERE measured.workload = p.workload AND measured.scheduler = p.scheduler)
                THEN 'scheduler not run'
            ELSE 'figure unknown' END AS reason,
        {scale_of("p.figure")} AS scale, {_within("p")} AS within_percent
    FROM placed p LEFT JOIN medians m
        ON m.workload = p.workload AND m.figure = p.figure AND m.scheduler IS NOT DISTINCT FROM p.scheduler
    ORDER BY paper, "table", row, "column", p.workload
"""

#: Published values with those of swflow under another reading of the paper: another scheduler, step, figure or log, or
#: a model that stands in for one that is not here (part ``model``).
READINGS = f"""
    CREATE VIEW readings AS
    WITH read AS (
        SELECT p.*, named.reading,
            CASE WHEN log.paper IS NOT NULL THEN log.ours || substr(p.workload, len(log.published) + 1)
                WHEN step.paper IS NULL THEN p.workload
                WHEN step.published IS NULL THEN p.workload || '+' || step.ours
                WHEN step.ours IS NULL THEN left(p.workload, len(p.workload) - len(step.published) - 1)
                ELSE left(p.workload, len(p.workload) - len(step.published)) || step.ours END AS read_workload,
            coalesce(scheduler.ours, p.scheduler) AS read_scheduler, coalesce(figure.ours, p.figure) AS read_figure,
            coalesce(log.paper, step.paper, scheduler.paper, figure.paper) IS NOT NULL AS is_read
        FROM placed p JOIN (SELECT DISTINCT paper, reading FROM reading_parts) named USING (paper)
        LEFT JOIN reading_parts step ON step.paper = p.paper AND step.reading = named.reading
            AND step.part IN ('step', 'model')
            AND coalesce(ends_with(p.workload, '+' || step.published), NOT contains(p.workload, '+'))
        LEFT JOIN reading_parts log ON log.paper = p.paper AND log.reading = named.reading AND log.part = 'log'
            AND split_part(p.workload, '+', 1) = log.published
        LEFT JOIN reading_parts scheduler ON scheduler.paper = p.paper AND scheduler.reading = named.reading
            AND scheduler.part = 'scheduler' AND scheduler.published = p.scheduler
        LEFT JOIN reading_parts figure ON figure.paper = p.paper AND figure.reading = named.reading
            AND figure.part = 'figure' AND figure.published = p.figure)
    SELECT paper, "table", row, "column", reading, read.value AS published, m.value AS ours,
        m.value - read.value AS difference, m.value / nullif(read.value, 0) AS ratio, read_workload AS workload,
        read_scheduler AS scheduler, read_figure AS figure, {_within("read")} AS within_percent
    FROM read JOIN medians m
        ON m.workload = read_workload AND m.figure = read_figure AND m.scheduler IS NOT DISTINCT FROM read_scheduler
    WHERE is_read AND read.value IS NOT NULL
    ORDER BY paper, "table", row, "column", reading
"""

#: Every published value of a simulation under each convention that papers leave open, one convention at a time. The
#: choice ``ours`` is swflow's value without a change.
CONVENTION_VALUES = """
    CREATE VIEW convention_values AS
    WITH read AS (
        SELECT p.paper, p."table", p.row, p."column", p.value AS published, p.figure, c.convention, c.choice,
            CASE c.part WHEN 'log' THEN c.ours || substr(p.workload, len(c.published) + 1)
                WHEN 'step' THEN CASE WHEN c.ours IS NULL THEN left(p.workload, len(p.workload) - len(c.published) - 1)
                    ELSE p.workload || '+' || c.ours END
                ELSE p.workload END AS workload,
            CASE c.part WHEN 'scheduler' THEN c.ours ELSE p.scheduler END AS scheduler
        FROM published p JOIN conventions c ON CASE c.part
            WHEN 'scheduler' THEN p.scheduler = c.published
            WHEN 'log' THEN split_part(p.workload, '+', 1) = c.published
            WHEN 'step' THEN coalesce(ends_with(p.workload, '+' || c.published), NOT contains(p.workload, '+')) END
        WHERE p.scheduler IS NOT NULL
        UNION ALL
        SELECT paper, "table", row, "column", value, figure, 'ours', 'ours', workload, scheduler
        FROM published WHERE scheduler IS NOT NULL)
    SELECT paper, "table", row, "column", convention, choice, published, m.value AS ours, workload, scheduler, figure
    FROM read JOIN medians m USING (workload, scheduler, figure)
    WHERE published IS NOT NULL
    ORDER BY ALL
"""

#: Range over which the conventions move each figure, and whether it contains the published value. Published values
#: are rounded: half a unit of their last digit is tolerated.
SENSITIVITY = """
    CREATE VIEW sensitivity AS
    WITH own AS (SELECT * FROM convention_values WHERE convention = 'ours'),
    ranges AS (
        SELECT paper, "table", row, "column", min(ours) AS lowest, max(ours) AS highest,
            arg_min(choice, (ours, choice <> 'ours', choice)) AS lowest_choice,
            arg_max(choice, (ours, choice = 'ours', choice)) AS highest_choice,
            arg_min(convention, (ours, choice <> 'ours', choice)) AS lowest_convention,
            arg_max(convention, (ours, choice = 'ours', choice)) AS highest_convention, count(*) - 1 AS choices
        FROM convention_values GROUP BY ALL HAVING count(*) > 1),
    digits AS (
        SELECT *, CASE WHEN figure = 'correlation' OR starts_with(figure, 'spearman_')
            OR starts_with(figure, 'utilization') THEN 0.005 ELSE 0.5 END AS half
        FROM own JOIN ranges USING (paper, "table", row, "column"))
    SELECT paper, "table", row, "column", published, ours, lowest, highest,
        published BETWEEN lowest - half AND highest + half AS inside,
        CASE WHEN published BETWEEN lowest AND highest THEN 0
            ELSE least(abs(published - lowest), abs(published - highest)) END AS outside_by,
        CASE WHEN highest = lowest THEN NULL WHEN abs(highest - ours) >= abs(ours - lowest) THEN highest_convention
            ELSE lowest_convention END AS decides,
        lowest_choice, highest_choice, choices, workload, scheduler, figure
    FROM digits ORDER BY paper, "table", row, "column", workload
"""

#: Comparisons of random draws by the 95 % intervals of their means: true, false, or null if the intervals overlap.
#: ``is_nearer`` compares distances from a value. ``all_hold`` is false if one answer is, else null if one is.
DRAW_MACROS = """
    CREATE OR REPLACE MACRO is_below(low, high, other_low, other_high) AS
        CASE WHEN high < other_low THEN true WHEN low > other_high THEN false END;
    CREATE OR REPLACE MACRO nearest(low, high, value) AS
        CASE WHEN value BETWEEN low AND high THEN 0 ELSE least(abs(low - value), abs(high - value)) END;
    CREATE OR REPLACE MACRO furthest(low, high, value) AS greatest(abs(low - value), abs(high - value));
    CREATE OR REPLACE MACRO is_nearer(low, high, other_low, other_high, value) AS is_below(
        nearest(low, high, value), furthest(low, high, value),
        nearest(other_low, other_high, value), furthest(other_low, other_high, value));
    CREATE OR REPLACE MACRO all_hold(answer) AS
        CASE WHEN bool_or(NOT answer) THEN false WHEN count(*) = count(answer) THEN true END;
"""

#: For each trend that a paper reports, whether the expected figure is the lower one, if both exist.
TREND_CHECKS = """
    CREATE VIEW trend_checks AS
    SELECT paper, trend, left(l.recipe, len(l.recipe) - len(lower_step) - 1) AS workload, trends.figure,
        lower_step || '/' || lower_scheduler AS lower, higher_step || '/' || higher_scheduler AS higher,
        l.median AS lower_value, h.median AS higher_value, is_below(l.low, l.high, h.low, h.high) AS holds
    FROM trends
    JOIN replicates l ON l.measure = trends.figure AND l.scheduler = lower_scheduler
        AND ends_with(l.recipe, '+' || lower_step)
    JOIN replicates h ON h.measure = trends.figure AND h.scheduler = higher_scheduler
        AND h.recipe = left(l.recipe, len(l.recipe) - len(lower_step)) || higher_step
    ORDER BY ALL
"""

#: Relative difference of two numbers of jobs above which a paper used another version of a log.
OTHER_VERSION = 0.05

#: Share by which a value may miss more than the same figure of the log itself, whose version excuses it.
BEYOND_LOG = 0.01

#: The kinds of verdicts, the first that applies to a cell is its verdict. `WITHIN` names the first three for
#: correlations and points.
VERDICTS = (
    *WITHIN["relative"], "inside the draws", "another version of the log", "another reading", "open", "not compared",
)  # fmt: skip


def _shown(value: str) -> str:
    """Return SQL for a number as text: whole from 1,000, else with up to 3 decimals."""
    return (
        f"CASE WHEN abs({value}) >= 1000 THEN format('{{:,}}', round({value})::BIGINT) ELSE printf('%.4g', {value}) END"
    )


#: SQL for the difference of swflow's value from the published one, as text, on the scale of the figure.
_OFF = (
    "CASE WHEN judged.scale = 'relative' AND judged.published <> 0 "
    "THEN printf('%+.2f %%', 100 * judged.difference / abs(judged.published)) "
    "WHEN judged.scale = 'points' THEN printf('%+.2f points', judged.difference) "
    "ELSE printf('%+.4g', judged.difference) END"
)


#: The cells with their verdicts. Evidence of another version of a log is the number of jobs of the log itself, before
#: any step, in the same paper. It excuses the figures of the log itself, and those of workloads that were made from it
#: as far as the same figure of the log itself misses in the same direction. ``level`` is the position of the verdict
#: in `VERDICTS`, from 1.
REPRODUCTION = f"""
    CREATE VIEW reproduction AS
    WITH drawn AS (
        SELECT c.paper, c."table", c.row, c."column", len(d.sorted) AS draws, d.low, d.high,
            100 * (len(list_filter(d.sorted, lambda x: x < c.published))
                + len(list_filter(d.sorted, lambda x: x = c.published)) / 2) / len(d.sorted) AS percentile
        FROM cells c JOIN draws d ON d.workload = c.workload AND d.figure = c.figure
            AND d.scheduler IS NOT DISTINCT FROM c.scheduler
        WHERE c.reason IS NULL),
    counted AS (
        SELECT paper, workload AS log, arg_max(published, abs(ratio - 1)) AS published,
            arg_max(ours, abs(ratio - 1)) AS ours, max(abs(ratio - 1)) AS off
        FROM cells WHERE figure IN ('jobs', 'log_jobs') AND reason IS NULL AND NOT contains(workload, '+')
        GROUP BY ALL),
    own AS (
        SELECT paper, workload AS log, scheduler, figure, arg_max(ratio, abs(ratio - 1)) AS ratio
        FROM cells WHERE reason IS NULL AND NOT contains(workload, '+') GROUP BY ALL),
    nearest AS (
        SELECT paper, "table", row, "column", min(within_percent) AS within_percent,
            arg_min(reading, (coalesce(within_percent, 100), abs(difference), reading)) AS reading,
            arg_min(ours, (coalesce(within_percent, 100), abs(difference), reading)) AS ours
        FROM readings GROUP BY ALL),
    judged AS (
        SELECT c.*, draws, low, high, percentile, counted.log, counted.published AS published_jobs,
            counted.ours AS our_jobs, own.ratio AS own_ratio, nearest.reading, nearest.ours AS read_ours,
            CASE WHEN c.reason IS NOT NULL THEN 8
                WHEN c.within_percent IS NOT NULL THEN CASE c.within_percent WHEN 1 THEN 1 WHEN 5 THEN 2 ELSE 3 END
                WHEN c.published BETWEEN low - c.rounding AND high + c.rounding THEN 4
                WHEN counted.off > {OTHER_VERSION} AND (NOT contains(c.workload, '+')
                    OR abs(c.ratio - 1) <= abs(own.ratio - 1) + {BEYOND_LOG}
                        AND sign(c.ratio - 1) = sign(own.ratio - 1)) THEN 5
                WHEN nearest.within_percent <= 5 THEN 6
                ELSE 7 END AS level
        FROM cells c
        LEFT JOIN drawn USING (paper, "table", row, "column")
        LEFT JOIN counted ON counted.paper = c.paper AND counted.log = split_part(c.workload, '+', 1)
        LEFT JOIN own ON own.paper = c.paper AND own.log = split_part(c.workload, '+', 1) AND own.figure = c.figure
            AND own.scheduler IS NOT DISTINCT FROM c.scheduler
        LEFT JOIN nearest USING (paper, "table", row, "column"))
    SELECT paper, "table", row, "column", published, ours, difference, ratio, workload, scheduler, figure, reason,
        scale, within_percent, level,
        CASE WHEN level <= 3 AND scale = 'correlation' THEN {list(WITHIN["correlation"])}[level]
            WHEN level <= 3 AND scale = 'points' THEN {list(WITHIN["points"])}[level]
            ELSE {list(VERDICTS)}[level] END AS verdict,
        draws, low, high, stand_in,
        CASE level WHEN 8 THEN reason
            ELSE 'swflow has ' || {_shown("ours")} || ', published is ' || {_shown("published")}
                || ' (' || {_OFF} || ')' || coalesce('; from ' || stand_in || ', because the log is not here', '') ||
                CASE level
                WHEN 4 THEN '; the published value is at percentile ' || round(percentile)::INTEGER
                WHEN 5 THEN '; the paper counts ' || {_shown("published_jobs")}
                    || ' jobs in ' || log || ', swflow''s has ' || {_shown("our_jobs")}
                    || CASE WHEN contains(workload, '+')
                        THEN ', and the log itself misses by ' || printf('%+.2f %%', 100 * (own_ratio - 1)) ELSE '' END
                WHEN 6 THEN '; with the reading "' || reading || '", swflow has ' || {_shown("read_ours")}
                WHEN 7 THEN coalesce(CASE WHEN read_ours <> ours THEN '; the nearest reading, "' || reading
                    || '", gives ' || {_shown("read_ours")} END, '')
                ELSE '' END
                || coalesce('; one more draw after ' || draws || ' is from ' || {_shown("low")}
                    || ' to ' || {_shown("high")} || ' with 95 %', '') || '.' END AS explanation
    FROM judged
    ORDER BY paper, "table", row, "column", workload
"""

#: For every table of a paper: how many cells were published, are compared, and match; ``within_5`` includes
#: ``within_1``. Missing cells are not legible, or were not run. A cell that is compared with more than one log, named
#: in its row as "(here LOG)", counts once, with the first verdict of all.
COVERAGE = r"""
    INSERT INTO coverage
    SELECT paper, "table", count(*), count(*) FILTER (best <= 7), count(*) FILTER (best = 1),
        count(*) FILTER (best <= 2), count(*) FILTER (best <= 3), count(*) FILTER (best BETWEEN 4 AND 7),
        count(*) FILTER (best = 8), count(*) FILTER (best = 4), count(*) FILTER (best = 5), count(*) FILTER (best = 6),
        count(*) FILTER (best = 7)
    FROM (
        SELECT paper, "table", min(level) AS best
        FROM reproduction GROUP BY paper, "table", regexp_replace(row, ' \(here [^)]*\)$', ''), "column")
    GROUP BY ALL ORDER BY ALL
"""
