"""Commands on what came of the runs: load, figure, report, sql."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.cli.app import app
from swflow.cli.terminal import format_number, print_table, quiet_pipe, say, tracked
from swflow.errors import SwflowError


@app.command()
def load(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of runs (with a manifest.json), manifests, single run files, sweeps, fits, or what-ifs."
        ),
    ],
    database: Annotated[Path, typer.Option(help="The DuckDB file to write.")] = Path("results/swflow.duckdb"),
    expect: Annotated[
        str | None, typer.Option(help="Refuse other runs than those of this digest of the config.")
    ] = None,
    left_out: Annotated[
        list[str] | None,
        typer.Option(help="Note what is left out for want of a log: LOG:WORKLOAD=SCHEDULER,SCHEDULER; repeatable."),
    ] = None,
    reached: Annotated[
        Path | None, typer.Option(help="The file of swflow reach, which says why the logs are missing.")
    ] = None,
    summary: Annotated[Path | None, typer.Option(help="Also write what the database holds to this JSON file.")] = None,
) -> None:
    """
    Load runs, and the workloads they were made of, into one DuckDB file.

    The file is built beside the old one and moved over it when every run is in it once and every outcome
    has its job: whoever looks sees the old database or the new one, whole.

    Example: `swflow load results/runs/KTH-SP2 my-run.parquet --database mine.duckdb`
    """
    from swflow.database import load as load_runs
    from swflow.database import read_left_out, write_summary

    lost = read_left_out(left_out or (), reached)
    counts = load_runs(runs, database, expect=expect, left_out=lost, progress=tracked("load"))
    if summary:
        write_summary(counts, database, summary)
    held = ", ".join(f"{count:,} {table}" for table, count in counts.items())
    say(f"{database}: {database.stat().st_size / 1e6:,.1f} MB; {held}")
    from swflow.query import query

    _, impossible = query(database, "SELECT workload, message FROM checks WHERE severity = 'error' ORDER BY ALL")
    for workload, message in impossible:
        say(f"{workload}: error: {message}")


@app.command()
def figure(
    kind: Annotated[
        str,
        typer.Argument(
            help="heatmap, bubbles, difference, reservation-table, moldable, marginals, repetitions, timeline, "
            "waits, distributions, load-curve, arrivals, composition, offered-load, published or sweep."
        ),
    ],
    output: Annotated[
        list[Path],
        typer.Option("--output", "-o", help="The file to write: .png, .svg, or .json (interactive); repeatable."),
    ],
    log: Annotated[str | None, typer.Option(help="Draw all runs of this log.")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Or draw this run, WORKLOAD/SCHEDULER; repeatable, one a column.")
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            help="For heatmaps: also draw subsets of the jobs; a column, or NAME=CONDITION as in select. Repeatable."
        ),
    ] = None,
    sweep: Annotated[str | None, typer.Option(help="For sweep: its name.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="For sweep: a metric; repeatable. By default awrt and awwt.")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="The value axis: log or linear; by default linear for sweeps only.")
    ] = None,
    since: Annotated[
        float | None,
        typer.Option("--from", help="A reservation table from here on, seconds from the log's start; a day if alone."),
    ] = None,
    until: Annotated[float | None, typer.Option(help="And up to here; by default the day with most penalty.")] = None,
    title: Annotated[str | None, typer.Option(help="The figure's title; by default the log's name.")] = None,
    database: Annotated[Path, typer.Option(help="A database that swflow load wrote.")] = Path("results/swflow.duckdb"),
) -> None:
    """
    Draw the jobs of some runs: performance against load.

    heatmap: jobs per load and slowdown, response time and wait time (s), with contours, bubbles and means.
    bubbles: mean slowdown per tenth of the load. difference: what one run has more of than another.
    reservation-table: jobs on their processors, of runs with places, and what sharing nodes costs them.
    moldable: what the model of moldable jobs draws, against its stated distributions.
    timeline, waits, distributions: utilization and queue, waits by kind of job, distribution functions.
    arrivals, composition, offered-load: what a workload is made of. published: ours beside the papers' values.
    marginals and repetitions: the run times and sizes of the runs' workloads, and how often run times repeat.
    sweep: metrics against the parameter that a sweep varied, with confidence intervals over its draws.

    Example: `swflow figure heatmap --log KTH-SP2 --split "wide=processors >= 32" -o kth.png`,
    `swflow figure sweep --log KTH-SP2 --sweep d-1024 --measure awrt -o kth-d.png`
    """
    from swflow.figures import draw, draw_sweep, write

    options: dict[str, Any] = {"log": log, "title": title}
    if kind == "sweep":
        options |= {"sweep": sweep or "", "measures": measure or ("awrt", "awwt"), "scale": scale or "linear"}
    else:
        options |= {"kind": kind, "runs": run or (), "split": split or (), "scale": scale or "log"}
        options["window"] = (since, until)
    picture = draw_sweep if kind == "sweep" else draw
    specs: dict[bool, Any] = {}
    for path in output:
        interactive = path.suffix == ".json"
        if interactive not in specs:
            specs[interactive] = picture(database=database, **options, interactive=interactive)
        write(specs[interactive], path)
    say(", ".join(map(str, output)))


@app.command()
def report(
    figures: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Figures to show: .json files that swflow figure wrote, each in a folder named as its study."
        ),
    ] = None,
    database: Annotated[Path, typer.Option(help="A database that swflow load wrote.")] = Path("results/swflow.duckdb"),
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write index.html to.")] = Path(
        "results/report"
    ),
    studies: Annotated[
        Path | None, typer.Option(help="The config that says which runs are which study; otherwise all are one.")
    ] = None,
    single_file: Annotated[bool, typer.Option("--single-file", help="Write all pages into index.html alone.")] = False,
    draw: Annotated[bool, typer.Option(help="Draw the figures that a study asks for if none is given.")] = True,
) -> None:
    """
    Write a report: an overview, a page per study and per log, that open from disk without a network.

    Example: `swflow report --studies config/config.yaml -o results/report/`,
    `swflow report --database kth.duckdb -o mail/ --single-file`
    """
    from swflow.report import read_figures, write_report

    if output.suffix:
        raise SwflowError(
            f"{output}: a report is a folder of files; name one without an ending, such as results/report"
        )
    shown = read_figures(figures or ())
    say(f"{write_report(database, output, shown, studies=studies, single_file=single_file, draw=draw)}")


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One SQL query.")],
    output: Annotated[Path | None, typer.Argument(help="With --csv or --parquet: the file to write.")] = None,
    database: Annotated[Path, typer.Option(help="A database that swflow load wrote.")] = Path("results/swflow.duckdb"),
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV, to the file or to standard output.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write Parquet to the file.")] = False,
    limit: Annotated[int, typer.Option(help="Print at most so many rows of a table.")] = 200,
    write: Annotated[
        bool, typer.Option("--write", help="Allow statements that change the database, or read and write files.")
    ] = False,
) -> None:
    """
    Query the database, and print a table.

    A query only reads: one statement, on the database alone, unless --write is given.

    Tables: workloads, removals, names, checks, schedulers, jobs, runs, outcomes, metrics, fairness, fidelity,
    correlations, heatmaps, bubbles, comparisons, replicates, model_fit, fits, sweeps, published, coverage, trends,
    left_out, conventions, contents; views: figures, medians, reproduction, readings, convention_values, sensitivity,
    trend_checks. Times are seconds.

    Example: `swflow sql "SELECT run, jobs, mean_wait_time FROM metrics ORDER BY run"`,
    `swflow sql "SELECT * FROM outcomes" --parquet outcomes.parquet`
    """
    from swflow.query import query as run_query

    if csv and parquet:
        raise SwflowError("sql: --csv or --parquet, not both")
    if output and not (csv or parquet):
        raise SwflowError(f"sql: say what to write to {output}: --csv or --parquet")
    if parquet and not output:
        raise SwflowError('sql: --parquet needs a file: swflow sql "SELECT …" --parquet out.parquet')
    if output:
        from swflow.files import atomic_path

        with atomic_path(output) as temporary:
            run_query(database, query, temporary, "parquet" if parquet else "csv", write=write)
        say(f"{output}: written")
    elif csv:
        with quiet_pipe():
            _print_csv(database, query, write)
    else:
        columns, rows = run_query(database, query, write=write)
        with quiet_pipe():
            print_table(columns, [tuple(format_number(value) for value in row) for row in rows[:limit]])
        if len(rows) > limit:
            say(f"{limit:,} of {len(rows):,} rows; more with --limit, all with --csv or --parquet")


def _print_csv(database: Path, query: str, write: bool) -> None:
    """Print the result of a query as CSV."""
    import shutil
    import sys
    import tempfile

    from swflow.query import query as run_query

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        run_query(database, query, file, "csv", write=write)
        with file.open(encoding="utf-8", newline="") as rows:
            shutil.copyfileobj(rows, sys.stdout)
