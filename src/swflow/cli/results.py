"""Commands that use the results of runs: load, figure, figures, report, sql."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from swflow.cli.app import app
from swflow.cli.options import OUTPUT, Database
from swflow.cli.terminal import as_plain, print_table, say, tracked
from swflow.errors import SwflowError


@app.command()
def load(
    runs: Annotated[list[Path] | None, Argument()] = None,
    database: Path = Path("results/swflow.duckdb"),
    plan: Path | None = None,
    earlier: Path | None = None,
    summary: Path | None = None,
    changes: Path | None = None,
    verdicts: Path | None = None,
    processes: Annotated[int, Option(min=1)] = 1,
) -> None:
    """
    Load runs and their workloads into one DuckDB file.

    The database is built as a temporary file. It replaces the old one after a check that each run is present once and
    each outcome has a job. Readers therefore see either the complete old database or the complete new one.

    Example: `swflow load results/runs/KTH-SP2 my-run.parquet --database mine.duckdb`

    Options
    -------
    runs: Folders of runs, or files of runs, sweeps, fitted models and what-ifs.
    database: Write this DuckDB file.
    plan: Load the files of this JSON file, too: `files` maps each file to the `logs` that it needs; files of logs that
        swflow reach could not fetch are recorded as left out.
    earlier: Keep the database under this name, too; if --database is missing, restore it first, and update it.
    summary: Also write the contents of the database to this JSON file.
    changes: Also write to this JSON file how values and verdicts differ from those of the earlier database.
    verdicts: Also write the comparisons that the plan names to JSON files in this folder.
    processes: Compare runs in this number of processes if 100 or more are new; the result does not depend on it.
    """
    from swflow.database.changes import changes as changes_between
    from swflow.database.changes import snapshot
    from swflow.database.inputs import read_plan
    from swflow.database.load import load as load_runs
    from swflow.database.load import write_summary, write_verdicts
    from swflow.files.atomic import write_json
    from swflow.files.store import link

    planned, left_out, compared, asked = read_plan(plan) if plan else ([], [], {}, None)
    files = [*(runs or ()), *planned]
    if earlier and earlier.is_file() and not database.exists():
        link(earlier, database)
    old = snapshot(database) if changes else None
    counts = load_runs(
        files, database, left_out=left_out, asked=asked, progress=partial(tracked, "load"), processes=processes
    )
    if earlier:
        link(database, earlier)
    if verdicts:
        write_verdicts(database, compared, verdicts)
    if summary:
        write_summary(counts, database, summary)
    if changes:
        write_json(changes, changes_between(old, snapshot(database)))
    held = ", ".join(f"{count:,} {table}" for table, count in counts.items())
    say(f"{database}: {database.stat().st_size / 1e6:,.1f} MB; {held}")
    from swflow.files.query import query

    _, impossible = query(database, "SELECT workload, message FROM checks WHERE severity = 'error' ORDER BY ALL")
    for workload, message in impossible:
        say(f"{workload}: error: {message}")


@app.command()
def figure(
    kind: str,
    output: Annotated[list[Path], OUTPUT],
    log: str | None = None,
    run: list[str] | None = None,
    split: list[str] | None = None,
    sweep: str | None = None,
    study: list[str] | None = None,
    measure: list[str] | None = None,
    bins: int | None = None,
    scale: str | None = None,
    since: Annotated[float | None, Option("--from")] = None,
    until: float | None = None,
    title: str | None = None,
    label: list[str] | None = None,
    width: str | None = None,
    font: str | None = None,
    database: Database = Path("results/swflow.duckdb"),
) -> None:
    """
    Draw a figure of runs in the database.

    heatmap: jobs per load and slowdown, response time and wait time (s), with contours, bubbles and means.
    bubbles: mean slowdown per tenth of the load. difference: heatmap of a run minus that of the first run.
    reservation-table: jobs on their processors, for runs with places, and the penalty of node sharing.
    moldable: shapes drawn by the model of moldable jobs, compared with the stated distributions.
    timeline, waits, distributions: utilization and queue length, waits by class of job, distribution functions.
    arrivals, composition, offered-load: properties of a workload. published: published values and those of swflow.
    marginals, repetitions: distributions of run times and sizes, and how often run times repeat.
    sweep: metrics against the parameter of a sweep, with confidence intervals over the draws.
    forest: the differences that studies ask for, with their intervals, and what would decide the open ones.

    Example: `swflow figure heatmap --log KTH-SP2 --split "wide=processors >= 32" -o kth.png`,
    `swflow figure sweep --log KTH-SP2 --sweep d-1024 --measure awrt -o kth-d.png`,
    `swflow figure heatmap --run KTH-SP2/easy --measure wait_time --width 84mm --title none -o column.pdf`

    Options
    -------
    kind: The kind of figure: heatmap, bubbles, difference, reservation-table, moldable, marginals, repetitions,
        timeline, waits, distributions, load-curve, arrivals, composition, offered-load, published, sweep or forest.
    output: Write the figure to this file: .pdf, .svg, .png, or .json (interactive); repeatable.
    log: Draw all runs of this log.
    run: Draw this run, WORKLOAD/SCHEDULER; repeatable, one column each.
    split: For heatmaps: also draw subsets of the jobs, by a column or NAME=CONDITION (see swflow select); repeatable.
    sweep: For sweep: the name of the sweep.
    study: For forest: a study of the config (default: all); repeatable. For difference: the study whose verdicts are
        shown (default: the first by name that compares the runs).
    measure: Draw only this metric of a sweep (default: awrt and awwt), or this row of heatmaps and differences:
        slowdown, response_time or wait_time, and of a forest also awrt, bounded_slowdown or p95_wait_time; of a load
        curve wait_time or bounded_slowdown; repeatable.
    bins: For heatmaps: the number of cells along the load, a divisor of 100 (default: 100); cells along the value get
        larger with them.
    scale: Scale of the value axis: log or linear (default: linear for sweeps, else log).
    since: Start of a reservation table, seconds from the start of the log (default: one day before --until).
    until: End of a reservation table, seconds from the start of the log (default: one day after --from, or the day with
        the largest penalty).
    title: The title of the figure (default: the name of the log); none leaves it out.
    label: Show a scheduler under another name: easy='EASY backfilling'; repeatable.
    width: Lay the figure out for this width on paper, such as 84mm or 3.3in; a PNG then has 300 dots per inch.
    font: Use this font, which must be installed.
    """
    from swflow.figures import draw_files
    from swflow.figures.print import Print, read_width

    how = Print(read_width(width) if width else None, font, titled=title != "none")
    options: dict[str, Any] = {"kind": kind, "log": log, "title": None if title == "none" else title, "how": how}
    if kind == "sweep":
        options |= {"sweep": sweep or "", "measures": measure or ("awrt", "awwt"), "scale": scale or "linear"}
    elif kind == "forest":
        del options["log"]
        options |= {"studies": study or (), "measures": measure or ()}
    else:
        options |= {"runs": run or (), "split": split or (), "scale": scale or "log", "window": (since, until)}
        options |= {"measures": measure or (), **({} if bins is None else {"bins": bins})}
        if len(study or ()) > 1:
            raise SwflowError(f"--study: {', '.join(study or ())}; expected one study for {kind}")
        options |= {"study": study[0]} if study else {}
        if bad := [one for one in label or () if "=" not in one]:
            raise SwflowError(f"--label: {bad[0]!r} is not SCHEDULER=TITLE, such as easy='EASY backfilling'")
        options["titles"] = dict(one.split("=", 1) for one in label or ())
    draw_files(options, database, output)
    say(", ".join(map(str, output)))


@app.command()
def figures(
    plan: Path,
    group: str | None = None,
    database: Database = Path("results/swflow.duckdb"),
    output: Annotated[Path, Option("--output", "-o")] = Path("results/figures"),
) -> None:
    """
    Draw the figures of studies as PNG, SVG and JSON, and those of a stated width as PDF, in one process.

    The workflow writes a plan for each of its groups of figures to results/plans.

    Example: `swflow figures figures.json --group heatmaps/KTH-SP2`

    Options
    -------
    plan: A JSON file: groups of figures, each STUDY/NAME with its kind, log and options.
    group: Draw only the figures of this group.
    output: Write the figures to this folder.
    """
    from swflow.figures import draw_files, read_plan
    from swflow.studies.figure_options import is_printed

    for name, options in read_plan(plan, group).items():
        endings = ("png", "svg", "pdf") if is_printed(options) else ("png", "svg")
        draw_files(options, database, [output / f"{name}.{ending}" for ending in endings])
        # The report has its own width and font.
        on_page = {key: value for key, value in options.items() if key != "how"}
        draw_files(on_page, database, [output / f"{name}.json"])
        say(f"{output / name}: drawn")


@app.command()
def report(
    figures: Annotated[list[Path] | None, Argument()] = None,
    database: Database = Path("results/swflow.duckdb"),
    output: Annotated[Path, OUTPUT] = Path("results/report"),
    studies: Path | None = None,
    changes: Path | None = None,
    single_file: Annotated[bool, Option("--single-file")] = False,
    draw: bool = True,
    prune: Path | None = None,
) -> None:
    """
    Write a report of HTML pages: an overview, and one page per study and per log.

    The pages open from disk, without a network.

    Example: `swflow report --studies config/config.yaml -o results/report/`,
    `swflow report --database kth.duckdb -o mail/ --single-file`

    Options
    -------
    figures: Show these figures: .json files of swflow figure, each in a folder with the name of its study.
    output: Write the pages to this folder.
    studies: Read the studies from this config (default: all runs are one study).
    changes: Also write the page changes.html of this JSON file, which swflow load --changes wrote.
    single_file: Write all pages into a single index.html.
    draw: Draw the figures of the studies if no figure is given.
    prune: Then remove the figures and tables of former configs, which this JSON file does not name: `files`.
    """
    from swflow.report import read_figures, write_report

    if output.suffix:
        raise SwflowError(f"{output}: a report is a folder; expected a name without an ending, such as results/report")
    shown = read_figures(figures or ())
    options: dict[str, Any] = {"studies": studies, "changes": changes, "single_file": single_file, "draw": draw}
    say(f"{write_report(database, output, shown, **options)}")
    if prune:
        from swflow.studies.former import SHOWN, remove_former

        for path in remove_former(prune, SHOWN):
            say(f"removed: {path}, which no study of the config names")


@app.command()
def sql(
    query: str,
    output: Annotated[Path | None, Argument()] = None,
    database: Database = Path("results/swflow.duckdb"),
    csv: Annotated[bool, Option("--csv")] = False,
    parquet: Annotated[bool, Option("--parquet")] = False,
    as_json: Annotated[bool, Option("--json")] = False,
    limit: Annotated[int, Option(min=0)] = 200,
    write: Annotated[bool, Option("--write")] = False,
) -> None:
    """
    Query the database with SQL, and print the result as a table.

    A query is one statement that reads the database, unless --write is given. Rows that are wider than the terminal are
    printed vertically. Times are in seconds.

    Tables: workloads, removals, names, checks, schedulers, jobs, runs, outcomes, metrics, further_metrics, fairness,
    fidelity, correlations, heatmaps, bubbles, bubbles_11, comparisons, whatifs, forecasts, bounds, wait_reasons,
    replicates, model_fit, fits, sweeps, published, definitions, coverage, claims, draws, trends, left_out, conventions,
    reading_parts, contents.
    Views: figures, differences, medians, cells, placed, gaps, leaderboard, reproduction, readings, convention_values,
    sensitivity, trend_checks.

    Examples: `swflow sql "SELECT run, jobs, mean_wait_time FROM metrics ORDER BY run"`, `swflow sql metrics`,
    `swflow sql "SELECT * FROM outcomes" --parquet outcomes.parquet`

    Options
    -------
    query: One SQL query, or the name of a table or view.
    output: Write the result to this file; with --csv or --parquet.
    csv: Write CSV to OUTPUT, or to standard output without it.
    parquet: Write Parquet to OUTPUT.
    as_json: Write JSON to OUTPUT, or to standard output without it: a list of rows.
    limit: Print at most this number of rows.
    write: Allow statements that change the database, or read or write files; the next load may remove tables and views
        that you add.
    """
    from swflow.files.atomic import check_output
    from swflow.files.query import query as run_query

    if output:
        check_output(output)
    if query.isidentifier() and not write:
        query = f'FROM "{query}"'
    if csv + parquet + as_json > 1:
        raise SwflowError("sql: several formats; expected one of --csv, --json and --parquet")
    if output and not (csv or parquet or as_json):
        raise SwflowError(f"sql: {output}: missing format; expected --csv, --json or --parquet")
    if parquet and not output:
        raise SwflowError('sql: --parquet: missing file; example: swflow sql "SELECT …" --parquet out.parquet')
    if as_json:
        _write_json(*run_query(database, query, write=write), output)
    elif output:
        from swflow.files.atomic import atomic_path

        with atomic_path(output) as temporary:
            run_query(database, query, temporary, "parquet" if parquet else "csv", write=write)
        say(f"{output}: written")
    elif csv:
        _print_csv(database, query, write)
    else:
        columns, rows = run_query(database, query, write=write, most=limit + 1)
        print_table(columns, rows[:limit])
        if len(rows) > limit:
            say(f"the first {limit:,} rows; for more, use --limit; for all, --csv or --parquet")


def _write_json(columns: Sequence[str], rows: Sequence[Sequence[Any]], output: Path | None) -> None:
    """Write the rows of a query as JSON to a file, or to standard output; dates become text, NaN becomes null."""
    import json

    from swflow.files.atomic import write_text
    from swflow.files.query import require_unique_columns

    require_unique_columns(columns)
    found = [as_plain(dict(zip(columns, row, strict=True))) for row in rows]
    text = json.dumps(found, indent=1, default=str, ensure_ascii=False) + "\n"
    if output is None:
        print(text, end="")
        return
    write_text(output, text)
    say(f"{output}: written")


def _print_csv(database: Path, query: str, write: bool) -> None:
    import shutil
    import sys
    import tempfile

    from swflow.files.query import query as run_query

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        run_query(database, query, file, "csv", write=write)
        with file.open(encoding="utf-8", newline="") as rows:
            shutil.copyfileobj(rows, sys.stdout)
