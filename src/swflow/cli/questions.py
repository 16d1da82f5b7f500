"""Commands that ask before and after a simulation: check."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.terminal import format_number, print_table, say


@app.command()
def check(
    log: Annotated[Path, typer.Argument(help="A log (.swf, .swf.gz, an imported .parquet) or a workload (.parquet).")],
    processors: Annotated[
        int | None, typer.Option(help="The machine's processors, instead of what the file says.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Exit with status 1 if there is an error or a warning.")] = False,
) -> None:
    """
    Check whether a log is plausible: against its machine, and against itself.

    Looks for recorded use beyond the machine, jobs wider than it, negative waits, clocks that jump, missing
    estimates, gaps, bursts of single users, and steps that were taken for jobs. An error is what cannot have been; a
    warning makes results doubtful.

    Example: `swflow check my.parquet --processors 2048`
    """
    from swflow.analysis.plausibility import check_log

    findings, machine, jobs = check_log(log, processors)
    columns = ["severity", "check", "jobs", "first job", "message"]
    shown = [
        (item.severity, item.check, format_number(item.jobs), format_number(item.first_job_id), item.message)
        for item in findings
    ]
    if shown:
        print_table(columns, shown)
    counts = {word: sum(item.severity == word for item in findings) for word in ("error", "warning", "note")}
    summary = ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())
    say(f"{log}: {jobs:,} jobs; machine: {machine.describe()}; {summary}")
    if strict and (counts["error"] or counts["warning"]):
        raise typer.Exit(1)
