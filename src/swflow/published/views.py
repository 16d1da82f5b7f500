"""SQL that compares: the published values beside ours, how many of them are met, other readings, and trends."""

#: Of a correlation, whose scale ends at 1, the absolute difference counts: these stand for 1, 5 and 10 percent.
CORRELATION_TOLERANCES = {1: 0.015, 5: 0.03, 10: 0.05}


def _within(row: str) -> str:
    """Return SQL for the least of 1, 5 and 10 percent that ours (m) is within of a row; null if it is further off."""
    percents = " ".join(
        f"WHEN abs(m.value - {row}.value) <= 1e-9 + CASE WHEN {row}.figure = 'correlation' "
        f"OR starts_with({row}.figure, 'spearman_') THEN {tolerance} ELSE {percent / 100} * abs({row}.value) END "
        f"THEN {percent}"
        for percent, tolerance in CORRELATION_TOLERANCES.items()
    )
    return f"CASE {percents} END"


#: The published figures beside ours. Rows without ours stay, with the reason.
REPRODUCTION = f"""
    CREATE VIEW reproduction AS
    WITH measured AS (SELECT DISTINCT workload, scheduler FROM medians)
    SELECT paper, "table", row, "column", p.value AS published, m.value AS ours, m.value - p.value AS difference,
        m.value / nullif(p.value, 0) AS ratio, p.workload, p.scheduler, p.figure,
        CASE WHEN p.value IS NULL THEN 'not legible'
            WHEN m.value IS NOT NULL THEN NULL
            WHEN p.workload IS NULL THEN 'no public log'
            WHEN split_part(p.workload, '+', 1) NOT IN (SELECT split_part(workload, '+', 1) FROM measured)
                THEN 'log not here'
            WHEN p.workload NOT IN (SELECT workload FROM measured) THEN 'workload not run'
            WHEN p.scheduler IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM measured WHERE measured.workload = p.workload AND measured.scheduler = p.scheduler)
                THEN 'scheduler not run'
            ELSE 'figure unknown' END AS reason,
        {_within("p")} AS within_percent
    FROM published p LEFT JOIN medians m
        ON m.workload = p.workload AND m.figure = p.figure AND m.scheduler IS NOT DISTINCT FROM p.scheduler
    ORDER BY paper, "table", row, "column", p.workload
"""

#: Of every table of a paper, how many cells were published, are compared, and are met; ``within_5`` includes
#: ``within_1``. What is missing is not legible, or was not run. A cell that is compared with more than one log, named
#: in its row as "(here LOG)", counts once, by the log that is nearest.
COVERAGE = """
    INSERT INTO coverage
    SELECT paper, "table", count(*), count(*) FILTER (compared), count(*) FILTER (nearest <= 1),
        count(*) FILTER (nearest <= 5), count(*) FILTER (nearest <= 10),
        count(*) FILTER (compared AND nearest IS NULL), count(*) FILTER (NOT compared)
    FROM (
        SELECT paper, "table", bool_or(reason IS NULL) AS compared,
            min(within_percent) FILTER (reason IS NULL) AS nearest
        FROM reproduction GROUP BY paper, "table", regexp_replace(row, ' \\(here [^)]*\\)$', ''), "column")
    GROUP BY ALL ORDER BY ALL
"""

#: The published figures beside ours under another reading of the paper: another scheduler, step or figure.
READINGS = f"""
    CREATE VIEW readings AS
    WITH read AS (
        SELECT p.*, named.reading,
            coalesce(left(p.workload, len(p.workload) - len(step.published)) || step.ours, p.workload) AS read_workload,
            coalesce(scheduler.ours, p.scheduler) AS read_scheduler, coalesce(figure.ours, p.figure) AS read_figure,
            coalesce(step.ours, scheduler.ours, figure.ours) IS NOT NULL AS is_read
        FROM published p JOIN (SELECT DISTINCT paper, reading FROM reading_parts) named USING (paper)
        LEFT JOIN reading_parts step ON step.paper = p.paper AND step.reading = named.reading AND step.part = 'step'
            AND ends_with(p.workload, '+' || step.published)
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

#: Every published figure of a simulation under each convention that papers leave open, one at a time; ours as it is
#: is the choice ``ours``.
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

#: Over which range the conventions move each figure, and whether what is published lies inside. Published values are
#: rounded: half a unit of their last digit is allowed for.
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
        SELECT *, CASE WHEN figure = 'correlation' OR starts_with(figure, 'spearman_') OR figure = 'utilization'
            THEN 0.005 ELSE 0.5 END AS half
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

#: Which of two figures should be the lower one by what a paper found, and whether it is, wherever there are both.
TREND_CHECKS = """
    CREATE VIEW trend_checks AS
    SELECT paper, trend, left(l.workload, len(l.workload) - len(lower_step) - 1) AS workload, trends.figure,
        lower_step || '/' || lower_scheduler AS lower, higher_step || '/' || higher_scheduler AS higher,
        l.value AS lower_value, h.value AS higher_value, l.value < h.value AS holds
    FROM trends
    JOIN medians l ON l.figure = trends.figure AND l.scheduler = lower_scheduler
        AND ends_with(l.workload, '+' || lower_step)
    JOIN medians h ON h.figure = trends.figure AND h.scheduler = higher_scheduler
        AND h.workload = left(l.workload, len(l.workload) - len(lower_step)) || higher_step
    ORDER BY ALL
"""
