"""Commands that make logs of what sites and data sets have: import sacct, pbs, gwf, csv."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.cli.app import Application, Group, app
from swflow.cli.terminal import print_table, say
from swflow.errors import SwflowError

import_app = Application(
    cls=Group, help="Import accounting records as a log, with the names of users.", no_args_is_help=True
)
app.add_typer(import_app, name="import", rich_help_panel="Get logs")

Source = Annotated[Path, typer.Argument(help="The file, plain or gzipped.")]
LogOutput = Annotated[
    Path, typer.Option("--output", "-o", help="The log to write: .parquet (all that is known), .swf or .swf.gz.")
]
MachineProcessors = Annotated[
    int | None,
    typer.Option("--processors", help="The machine's processors; by default the most that were ever busy at once."),
]
MachineNodes = Annotated[int | None, typer.Option("--nodes", help="The machine's nodes, of equal size.")]
TimeZone = Annotated[str, typer.Option("--timezone", help="Of the clock in the records, such as Europe/Stockholm.")]
Anonymize = Annotated[bool, typer.Option(help="Instead of names, keep hashes with a key that only this site has.")]
Key = Annotated[
    Path | None,
    typer.Option(help="The key's file, made if need be; by default ~/.config/swflow/anonymize.key."),
]


@import_app.command("sacct")
def import_sacct(
    file: Source,
    output: LogOutput,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    timezone: TimeZone = "UTC",
    cluster: Annotated[str | None, typer.Option(help="Which one, if the records are of several clusters.")] = None,
    columns: Annotated[
        str | None, typer.Option("--format", help="The columns of a file without a header: JobID,User,…")
    ] = None,
    delimiter: Annotated[str, typer.Option(help="What sacct --delimiter was.")] = "|",
    partition_limit: Annotated[
        list[str] | None,
        typer.Option(help="The limit of jobs that have their partition's: main=2-00:00:00. Repeatable."),
    ] = None,
    cpus_per_processor: Annotated[
        int, typer.Option(help="2 where Slurm counts each core as two CPUs, and the log should count cores.")
    ] = 1,
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import the accounting of Slurm: what `sacct -P`, with any columns, or `sacct --json` printed.

    Times become seconds from the first submission, memory KB per processor. A job of the log is one run: tasks of
    arrays and runs of requeued jobs count each, components of a heterogeneous job together, steps not.

    Example: `TZ=UTC sacct -a -P -D -S 2024-01-01 -E 2024-07-01 --format=ALL > sacct.txt`,
    `swflow import sacct sacct.txt -o my.parquet --processors 2048`
    """
    from swflow.importers.sacct import import_sacct as read

    pairs = [text.partition("=") for text in partition_limit or ()]
    for name, equals, limit in pairs:
        if not name or not equals or not limit:
            raise SwflowError(f"--partition-limit: {name!r} is not PARTITION=LIMIT, such as main=2-00:00:00")
    site = _site(processors, nodes, timezone, anonymize, key, cluster)
    limits = {name: limit for name, _, limit in pairs}
    options: dict[str, Any] = {"columns": columns, "delimiter": delimiter, "cpus_per_processor": cpus_per_processor}
    _write(read(str(file), site, partition_limits=limits, **options), file, output)


def _site(
    processors: int | None, nodes: int | None, timezone: str, anonymize: bool, key: Path | None, cluster: Any = None
) -> Any:
    """Return what the options say of the machine."""
    from swflow.importers.records import Site, read_key

    secret = None
    if anonymize:
        secret, path, made = read_key(key)
        if made:
            say(f"{path}: a key was drawn; the same names get the same hashes with it, so keep it, and to yourself")
    elif key:
        raise SwflowError("--key: is for --anonymize; give both, or neither")
    return Site(processors, nodes, timezone, cluster, secret)


@contextlib.contextmanager
def as_log(path: Path, processors: int | None = None) -> Iterator[Path]:
    """Give the path of a log; Slurm's accounting is imported first, into a folder that lasts as long as the block."""
    from swflow.importers.sacct import import_sacct, is_accounting

    if path.suffix == ".parquet" or not is_accounting(path):
        yield path
        return
    from swflow.importers.records import Site
    from swflow.log_table import write_log
    from swflow.workloads.clean import describe

    imported = import_sacct(str(path), Site(processors))
    entry = imported.history[0]
    say(
        f"{path}: {entry['kept']:,} jobs of {entry['read']:,} records of {entry['format']}; left out: "
        f"{describe(entry['removed'])}; times are taken for UTC (else: swflow import sacct --timezone)"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.name.removesuffix('.gz').partition('.')[0]}.parquet"
        write_log(file, imported.fields, imported.header, imported.history)
        yield file


def _write(imported: Any, source: Path, output: Path) -> None:
    """Write an imported log, and print what was counted."""
    if output.suffix == ".parquet":
        from swflow.log_table import write_log

        write_log(output, imported.fields, imported.header, imported.history)
    elif output.name.endswith((".swf", ".swf.gz")):
        from swflow.swf import write_swf

        write_swf(output, imported.fields, imported.header)
    else:
        raise SwflowError(f"{output}: unknown ending; use .parquet, .swf or .swf.gz")
    (entry,) = imported.history
    rows = [("jobs", "", f"{entry['kept']}", "")]
    for what, counts in (("left out", imported.tally.removed), ("noted", imported.tally.notes)):
        rows += [(what, reason, str(count), str(line)) for reason, (count, line) in counts.items()]
    print_table(["", "reason", "records", "first line"], rows)
    machine = imported.header["MaxProcs"][0]
    known = "" if "Note" not in imported.header else ", the most that were busy at once (say more with --processors)"
    say(f"{output}: {entry['kept']:,} jobs of {source}; machine: {int(machine):,} processors{known}")


@import_app.command("pbs")
def import_pbs(
    file: Source,
    output: LogOutput,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    timezone: TimeZone = "UTC",
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import the accounting of PBS Professional, OpenPBS or Torque: the E records of its files.

    Times become seconds from the first submission, memory KB per processor.

    Example: `cat server_priv/accounting/2024* > pbs.txt`, `swflow import pbs pbs.txt -o my.parquet --processors 512`
    """
    from swflow.importers.pbs import import_pbs as read

    _write(read(str(file), _site(processors, nodes, timezone, anonymize, key)), file, output)


@import_app.command("gwf")
def import_gwf(
    file: Source,
    output: LogOutput,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    site: Annotated[str | None, typer.Option(help="Only jobs that this site of the grid ran (LastRunSiteID).")] = None,
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import a log in the format of the Grid Workloads Archive.

    Times become seconds from the first submission.

    Example: `swflow import gwf das2.gwf -o das2.parquet --site fs1 --processors 144`
    """
    from swflow.importers.gwf import import_gwf as read

    _write(read(str(file), _site(processors, nodes, "UTC", anonymize, key), of_site=site), file, output)


@import_app.command("csv")
def import_csv(
    file: Annotated[Path, typer.Argument(help="A table of jobs: CSV, plain or gzipped, or Parquet.")],
    output: LogOutput,
    columns: Annotated[str, typer.Option(help="What the columns are: a YAML file, or a name that swflow knows.")],
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    timezone: TimeZone = "UTC",
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import a table of jobs whose columns a mapping explains, such as an open data set.

    Times become seconds from the first submission, memory KB per processor.

    Example: `swflow import csv jobs.csv -o my.parquet --columns mapping.yaml --processors 512`
    """
    from swflow.importers.table import import_table

    _write(import_table(str(file), _site(processors, nodes, timezone, anonymize, key), columns), file, output)


@app.command()
def export(
    source: Annotated[Path, typer.Argument(help="A workload (.parquet), a log (.swf, .swf.gz) or a run (.parquet).")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file to write: .swf, .swf.gz, .csv, .parquet, .json (Batsim)."),
    ],
    workload: Annotated[
        Path | None, typer.Option(help="Of a run: its workload, if that is no longer where it was.")
    ] = None,
    estimates: Annotated[
        str, typer.Option(help="For Batsim, which kills at the wall time: raise it to the run time, or kill.")
    ] = "raise",
) -> None:
    """
    Write a workload or a schedule for other programs: SWF, CSV, Parquet, or JSON for Batsim.

    Times are seconds, memory is KB per processor.

    Example: `swflow export results/runs/KTH-SP2/easy.parquet -o easy.csv`,
    `swflow export kth.parquet -o kth.json`
    """
    from swflow.export import export as write_export

    say(f"{output}: {write_export(source, output, workload=workload, estimates=estimates):,} jobs of {source}")
