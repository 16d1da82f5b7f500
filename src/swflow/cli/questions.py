"""Commands that answer an operator's questions: check, whatif, fidelity."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.cli.app import app
from swflow.cli.imports import as_log
from swflow.cli.options import Seed
from swflow.cli.terminal import format_number, print_table, say, say_doubts, say_removed, tracked
from swflow.errors import SwflowError

_LOG = "A log (.swf, .swf.gz, an imported .parquet, what sacct -P printed) or a workload (.parquet)."


@app.command()
def check(
    log: Annotated[Path, typer.Argument(help=_LOG)],
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

    with as_log(log, processors) as source:
        findings, machine, jobs = check_log(source, processors)
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


@app.command()
def whatif(
    log: Annotated[Path, typer.Argument(help=_LOG)],
    scheduler: Annotated[
        list[str],
        typer.Option(
            help="easy, fcfs, sjf …, or 'name: {order: sjf, backfill: easy}'; the first is the base. Repeatable."
        ),
    ],
    processors: Annotated[
        list[str] | None, typer.Option(help="Also with another machine: +20%, -10% or a number; repeatable.")
    ] = None,
    estimates: Annotated[
        list[str] | None,
        typer.Option(help="Also with other estimates: perfect (the run times) or a factor of them; repeatable."),
    ] = None,
    arrivals: Annotated[
        list[float] | None, typer.Option(help="Also with jobs that come so many times as fast; repeatable.")
    ] = None,
    run_times: Annotated[
        list[float] | None, typer.Option(help="Also with run times so many times as long; repeatable.")
    ] = None,
    machine: Annotated[
        int | None, typer.Option("--machine-processors", help="The processors of the machine as it is.")
    ] = None,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", help="Also write .html, .csv or .parquet; repeatable.")
    ] = None,
    study: Annotated[str | None, typer.Option(help="The study that the answer belongs to, for the database.")] = None,
    seed: Seed = 1,
) -> None:
    """
    Simulate a log under other schedulers, machines, estimates, arrivals or run times, and compare.

    Every combination is simulated, and compared with the base: the first scheduler, the rest as recorded. A difference
    comes with its 95 % confidence interval over the log's weeks; ~ marks those that may be chance. An answer that was
    written as .parquet can be loaded into a database beside runs (table whatifs).

    Example: `swflow whatif my.parquet --scheduler easy --scheduler conservative --processors +20% -o whatif.html`
    """
    from swflow.scheduling.named import read_scheduler
    from swflow.whatif import ask, likeness_in_words, summary, variants, write_answer
    from swflow.workloads.clean import open_workload

    schedulers: dict[str, Any] = {}
    for text in scheduler:
        name, options = read_scheduler(text)
        if name in schedulers:
            raise SwflowError(f"--scheduler: {name} is given twice; rename one")
        schedulers[name] = options
    for path in output or ():
        if path.suffix not in (".html", ".csv", ".parquet"):
            raise SwflowError(f"{path}: unknown ending; use .html, .csv or .parquet")
    chosen = variants(schedulers, processors or (), estimates or (), arrivals or (), run_times or ())
    with as_log(log, machine) as source:
        workload = open_workload(source, machine)
    say_removed(workload)
    doubts = say_doubts(workload)
    answer = ask(workload, chosen, seed=seed, progress=tracked("whatif"))
    columns, rows = summary(answer)
    print_table(columns, rows)
    notes = [
        f"{workload.name}: {answer.table['jobs'][0]:,} jobs. The base is {chosen[0].name}; after each value its "
        "difference to the base, with the 95 % confidence interval over the log's weeks (paired block bootstrap); "
        "~: the interval holds 0, so that the difference may be chance.",
        likeness_in_words(answer.fidelity, chosen[0].name),
    ]
    if answer.left_out:
        notes.append(f"{answer.left_out:,} jobs are wider than the smallest of the machines, and in no variant.")
    for note in notes:
        say(note)
    for path in output or ():
        write_answer(answer, path, f"What if: {workload.name}", [*doubts, *notes], workload=workload.name, study=study)
        say(f"{path}: written")


@app.command("fidelity")
def compare_with_record(
    log: Annotated[Path, typer.Argument(help=_LOG)],
    scheduler: Annotated[
        list[str] | None,
        typer.Option(help="easy, fcfs, conservative, sjf …, or 'name: {order: sjf, backfill: easy}'; repeatable."),
    ] = None,
    machine: Annotated[int | None, typer.Option("--machine-processors", help="The processors of the machine.")] = None,
) -> None:
    """
    Compare the recorded schedule of a log with simulated ones, to see which policy resembles what the site has.

    Mean wait times (s); wait_distance: of the distributions of the waits (0 to 1); wait_difference: of waits of equal
    rank (s); started_alike: jobs that start within a minute of the record; start_order: neighbours in the queue that
    start in the recorded order; utilization_difference: by hours; heatmap_distance: in decades of the wait.

    Example: `swflow fidelity my.parquet --scheduler fcfs --scheduler easy --scheduler conservative`
    """
    from swflow.analysis.fidelity import MEASURES, fidelity
    from swflow.runs import run
    from swflow.scheduling.named import read_scheduler
    from swflow.scheduling.scheduler import LOG, Scheduler
    from swflow.workloads.clean import open_workload

    chosen = dict(read_scheduler(text) for text in scheduler or ("fcfs", "easy", "conservative"))
    with as_log(log, machine) as source:
        workload = open_workload(source, machine)
    say_removed(workload)
    say_doubts(workload)
    recorded = run(workload, Scheduler.of(LOG, {"order": LOG})).outcomes
    if recorded.is_empty():
        raise SwflowError(f"{log}: no wait times are recorded, so that there is no schedule to compare with")
    rows = []
    for name, options in tracked("fidelity")(list(chosen.items())):
        simulated = run(workload, Scheduler.of(name, options)).outcomes
        found = fidelity(recorded, simulated, workload.machine.processors)
        rows.append((found["wait_distance"] or 0.0, [name, *(format_number(found[measure]) for measure in MEASURES)]))
    print_table(["scheduler", *MEASURES], [row for _, row in sorted(rows)])
    say(f"{workload.name}: {recorded.height:,} jobs with a recorded wait; the most similar distribution of waits first")
