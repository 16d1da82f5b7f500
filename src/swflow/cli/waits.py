"""The command `why`: the reasons of waits."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from swflow.cli.app import app
from swflow.cli.imports import MachineResources, PartitionSizes, as_log
from swflow.cli.option_values import read_units
from swflow.cli.options import AnyLog, MachineSize
from swflow.cli.terminal import check_ending, print_lines, print_table, say, say_removed, tracked
from swflow.errors import SwflowError, UnsupportedError, shell_word

if TYPE_CHECKING:
    from swflow.jobs.table import Workload
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.site_scheduler import SiteModel
    from swflow.studies.why import Why


@app.command()
def why(
    log: AnyLog,
    scheduler: list[str] | None = None,
    run: list[Path] | None = None,
    by: list[str] | None = None,
    limit: list[str] | None = None,
    machine: MachineSize = None,
    partition: PartitionSizes = None,
    machine_resource: MachineResources = None,
    output: Annotated[Path | None, Option("--output", "-o")] = None,
) -> None:
    """
    Divide every wait by its reasons.

    A job waits because it is not eligible yet, because of a limit, because the machine has no room for it (also because
    of maintenance or fragmentation), or because of the order: others are served first, or the room is reserved.
    Columns: jobs, mean wait, and the share of the waiting time that has each reason; ?: unknown. Fragmentation and
    drain are parts of room. An output as .parquet can be loaded into a database with runs (table wait_reasons).

    Examples: `swflow why sacct.txt --by user`, `swflow why KTH-SP2.parquet --scheduler log --scheduler easy --by size`

    Options
    -------
    scheduler: log (the recorded schedule), site, easy, fcfs, sjf …, or 'name: {order: sjf, backfill: easy}' (default:
        log). Repeatable.
    run: Instead of simulations, a run of these jobs (.parquet, from swflow simulate), or a folder of runs; repeatable.
    by: Also by user, account, partition, qos or size (processors); repeatable.
    limit: The site had this limit of running jobs or processors in the recorded schedule: user:processors=512;
        repeatable.
    output: Write the reasons of every job to this file: .parquet or .csv.
    """
    from swflow.analysis.wait_parts import REASONS
    from swflow.studies.site_scheduler import SiteModel
    from swflow.studies.why import GROUPS, MOST_GROUPS, rows_of
    from swflow.workload.clean import open_workload

    if output is not None:
        check_ending(output, ".parquet", ".csv")
    for kind in by or ():
        if kind not in GROUPS:
            raise SwflowError(f"--by {kind}: expected {', '.join(GROUPS)}")
    if run and scheduler:
        raise SwflowError("--run: its scheduler is in the file; leave --scheduler out")
    if limit and (run or (scheduler and "log" not in scheduler)):
        raise SwflowError("--limit: of the recorded schedule only; expected --scheduler log, or no --scheduler")
    sizes, resources = read_units(partition, "--partition"), read_units(machine_resource, "--machine-resource")
    with as_log(log, machine, sizes) as source:
        site = SiteModel.of(open_workload(source, machine), sizes, resources)
    say_removed(site.workload)
    found = _of_runs(site.workload, log, run) if run else _of_schedulers(site, scheduler or ["log"], limit or [])
    for one in found:
        print_lines(one.sentences())
    columns = ["jobs", "mean wait", *REASONS]
    print_table(["scheduler", *columns], [one.row for one in found])
    for kind in by or ():
        for one in found:
            groups = one.by(kind)
            shown = groups if kind == "size" else groups.head(MOST_GROUPS)
            typer.echo(f"\n{one.scheduler}, by {kind}")
            print_table([kind, *columns], rows_of(shown, one.unknown))
            if shown.height < groups.height:
                say(f"{one.scheduler}, by {kind}: the {shown.height} of {groups.height:,} with most waiting time")
    if output is not None:
        _write(found, log, output)


def _of_schedulers(site: "SiteModel", texts: list[str], limits: list[str]) -> "list[Why]":
    """Return why jobs wait under schedulers of the command line, each of which is simulated."""
    from swflow.scheduling.scheduler import LOG, Scheduler
    from swflow.studies.why import why as divided

    conditions = _conditions(site, limits) if LOG in texts else None
    found = []
    for text in tracked("why", texts):
        name, options = (LOG, {"order": LOG}) if text == LOG else site.scheduler(text)
        one = divided(site.workload, Scheduler.of(name, options), name, conditions=conditions)
        if not one.table.height:
            raise SwflowError(f"{site.workload.name}: no job has a wait time; simulate it, such as --scheduler easy")
        found.append(one)
    return found


def _conditions(site: "SiteModel", limits: list[str]) -> "Scheduler | None":
    """Return the conditions of the recorded schedule: the site's partitions and resources, and the given limits."""
    from swflow.scheduling.prepare import prepare
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.changed_policies import read_limits

    if len(site.partitions) < 2 and not site.resources and not limits:
        return None
    options = dict(site.options)
    if limits:
        options["limits"] = {**(options.get("limits") or {}), **read_limits(",".join(limits))}
    try:
        conditions = Scheduler.of("site", options)
        prepare(site.workload, conditions)
    except SwflowError as error:
        if limits:
            raise
        say(f"{site.workload.name}: the recorded schedule is divided without partitions and resources: {error}")
        return None
    return conditions


def _of_runs(workload: "Workload", log: Path, paths: list[Path]) -> "list[Why]":
    """Return why jobs wait in runs of a workload."""
    import polars as pl

    from swflow.files.reading import file_digest
    from swflow.files.tables import read_metadata
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.runs import runs_in
    from swflow.studies.why import why as divided

    digest, found = file_digest(log), []
    for file in tracked("why", [file for path in paths for file in runs_in(path)]):
        notes = read_metadata(file)
        if notes.get("kind") != "run":
            raise SwflowError(
                f"--run {file}: not a run of swflow; make one with: swflow simulate {shell_word(log)} -o RUN.parquet"
            )
        if notes["input"] != digest:
            raise SwflowError(f"--run {file}: simulated on another version of {log}; simulate it again")
        scheduler = Scheduler.of(notes["scheduler"], notes["options"])
        outcomes = pl.read_parquet(file, glob=False)
        try:
            found.append(divided(workload, scheduler, notes["scheduler"], outcomes=outcomes))
        except UnsupportedError as error:
            say(f"{file}: left out: {error}")
    if not found:
        raise SwflowError("--run: no run whose waits can be divided; give others")
    return found


def _write(found: "list[Why]", log: Path, output: Path) -> None:
    """Write the reasons of every job."""
    from swflow.files.atomic import write_text
    from swflow.files.reading import file_digest
    from swflow.files.tables import write_table
    from swflow.studies.why import as_table

    if output.suffix == ".csv":
        write_text(output, as_table(found).write_csv())
        return
    unknown = {one.run: dict(one.unknown) for one in found}
    workload = found[0].workload.name
    about = {"kind": "wait_reasons", "workload": workload, "input": file_digest(log), "unknown": unknown}
    write_table(as_table(found), output, about)
