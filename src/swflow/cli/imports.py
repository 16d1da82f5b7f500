"""Commands that convert between logs and other formats: import sacct, pbs, lsf, sge and others; export."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from swflow.cli.app import Application, Group, app
from swflow.cli.option_values import read_formulas_of, read_units
from swflow.cli.options import OUTPUT
from swflow.cli.terminal import check_ending, print_table, say
from swflow.errors import SwflowError, shell_word

import_app = Application(
    cls=Group, help="Import accounting records as a log, including names of users.", no_args_is_help=True
)
app.add_typer(import_app, name="import", rich_help_panel="Get logs")

Source = Annotated[Path, Argument(help="The file, plain or gzipped.")]
LogOutput = Annotated[Path, Option("--output", "-o", help="The log to write: .parquet (all columns), .swf or .swf.gz.")]
MachineProcessors = Annotated[
    int | None,
    Option("--processors", help="The machine's processors (default: the largest number of busy processors)."),
]
PartitionSizes = Annotated[
    list[str] | None,
    Option(
        "--partition",
        help="The processors of a partition: cpu=3840 (default: its largest number of busy processors); repeatable.",
    ),
]
MachineResources = Annotated[
    list[str] | None,
    Option(
        "--machine-resource",
        help="The machine's units of a resource that jobs demand: gpus=512, memory=4000000 (MB); gpu:gpus=512 if "
        "several partitions use it (default: the peak use); repeatable.",
    ),
]
MachineNodes = Annotated[int | None, Option("--nodes", help="The machine's nodes, of equal size.")]
TimeZone = Annotated[str, Option("--timezone", help="The time zone of the records, such as Europe/Stockholm.")]
Anonymize = Annotated[bool, Option(help="Replace names by hashes with a secret key.")]
Key = Annotated[
    Path | None, Option(help="The key's file, generated if missing (default: ~/.config/swflow/anonymize.key).")
]


@import_app.command("sacct")
def import_sacct(
    file: Source,
    output: LogOutput,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    timezone: TimeZone = "UTC",
    partition: PartitionSizes = None,
    cluster: str | None = None,
    columns: Annotated[str | None, Option("--format")] = None,
    delimiter: str = "|",
    partition_limit: list[str] | None = None,
    cpus_per_processor: int = 1,
    join_preempted: bool = False,
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import Slurm accounting: the output of `sacct -P`, with any columns, or of `sacct --json`.

    Times become seconds from the first submission, memory becomes KB per processor. Each run of a job is one job of the
    log: array tasks and reruns count separately, components of a heterogeneous job count as one, steps do not count.

    Example: `TZ=UTC sacct -a -P -D -S 2024-01-01 -E 2024-07-01 --format=ALL > sacct.txt`,
    `swflow import sacct sacct.txt -o my.parquet --processors 2048`

    Options
    -------
    cluster: The cluster to import, if the records are from several.
    columns: The columns of a file without a header: JobID,User,…
    delimiter: The separator of the columns, as in sacct --delimiter.
    partition_limit: The time limit of a partition, for jobs without one: main=2-00:00:00; repeatable.
    cpus_per_processor: Slurm CPUs per processor of the log: 2 to count cores with two hardware threads each.
    join_preempted: Leave out preempted runs of jobs that ran again, to simulate preemption.
    """
    from swflow.log.importers.sacct import import_sacct as read
    from swflow.log.recognise import SACCT

    _require(file, *SACCT, "sacct-aligned", *(("csv", "swf") if columns else ()))
    limits = {}
    for text in partition_limit or ():
        name, _, limit = text.partition("=")
        if not name or not limit:
            raise SwflowError(f"--partition-limit: {name!r}; expected PARTITION=LIMIT, such as main=2-00:00:00")
        limits[name] = limit
    site = _site(processors, nodes, timezone, anonymize, key, cluster, partition)
    options: dict[str, Any] = {"columns": columns, "delimiter": delimiter, "cpus_per_processor": cpus_per_processor}
    options["join_preempted"] = join_preempted
    _write(read(str(file), site, partition_limits=limits, **options), file, output)


def _site(
    processors: int | None,
    nodes: int | None,
    timezone: str,
    anonymize: bool,
    key: Path | None,
    cluster: str | None = None,
    partition: list[str] | None = None,
) -> Any:
    """Return the machine that the options describe."""
    from swflow.log.importers.records import Site, read_key

    secret = None
    if anonymize:
        secret, path, made = read_key(key)
        if made:
            say(f"{path}: new key; it maps equal names to equal hashes; keep it, and keep it secret")
    elif key:
        raise SwflowError("--key: no effect without --anonymize; give both or neither")
    return Site(processors, nodes, timezone, cluster, secret, read_units(partition, "--partition"))


@contextlib.contextmanager
def as_log(
    path: Path,
    processors: int | None = None,
    sizes: Mapping[str, int] | None = None,
    join_preempted: bool = False,
) -> Iterator[Path]:
    """Yield the path of a log; accounting data that needs no options is first imported into a temporary folder."""
    from swflow.log.recognise import IMPORTED, recognize

    found = recognize(path)
    if path.suffix == ".parquet" or found.key in ("swf", "unknown", "empty", "binary"):
        yield path
        return
    if found.key not in IMPORTED and not found.columns:
        raise SwflowError(found.describe(path))
    from swflow.log.importers.any import import_any
    from swflow.log.importers.records import Site
    from swflow.workload.removals import describe

    site = Site(processors, partitions=dict(sizes or {}))
    imported = import_any(str(path), site, join_preempted=join_preempted)
    entry = imported.history[0]
    say(
        f"{path}: {entry['kept']:,} jobs of {entry['read']:,} records of {entry['format']}; left out: "
        f"{describe(entry['removed'])}; times are read as UTC (other zones: swflow import … --timezone)"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{path.name.removesuffix('.gz').partition('.')[0]}.parquet"
        imported.write(file)
        yield file


def _require(path: Path, *kinds: str) -> None:
    """Raise an error that names the right command if a file is known to be of another kind."""
    from swflow.log.recognise import recognize

    found = recognize(path)
    if found.key not in (*kinds, "json", "unknown", "empty", "binary"):
        verb = "read it with" if found.is_read else "no command reads it"
        raise SwflowError(f"{path}: {found.name} ({found.reason}); {verb}: {found.command(path)}")


def _write(imported: Any, source: Path, output: Path) -> None:
    """Write an imported log, and print its counts."""
    from swflow.files.atomic import require_other_file
    from swflow.log.queues import queues_of
    from swflow.phrases import hours

    check_ending(output, ".parquet", ".swf", ".swf.gz")
    require_other_file(output, source)
    imported.write(output)
    (entry,) = imported.history
    rows = [("jobs", "", f"{entry['kept']}", "")]
    for what, counts in (("left out", imported.tally.removed), ("noted", imported.tally.notes)):
        rows += [(what, reason, str(count), str(line)) for reason, (count, line) in counts.items()]
    print_table(["", "reason", "records", "first line"], rows)
    if len(imported.partitions) > 1:
        from swflow.log.site import SITE

        columns = ["partition", "jobs", "processors", "GPU jobs", "default limit", "longest limit"]
        rows = []
        for one in imported.partitions:
            limits = ["" if limit is None else f"{limit / 3600:,.4g} h" for limit in (one.default_limit, one.max_limit)]
            size = f"{one.processors:,}" + " (guessed: peak use)" * one.is_guessed
            rows.append((one.name, f"{one.jobs:,}", size, f"{one.gpu_jobs:,}", *limits))
        print_table(columns, rows)
        say(f"Simulate each partition as a cluster: swflow whatif {shell_word(output)} --scheduler {SITE}")
    queues = queues_of(imported.fields, imported.header)
    if len(queues) > 1:
        print_table(
            ["queue or QOS", "jobs", "share", "longest limit", "mean wait"],
            [
                (one.name, f"{one.jobs:,}", f"{100 * one.share:.2g} %", hours(one.max_limit), hours(one.mean_wait))
                for one in queues
            ],
        )
    machine = imported.header["MaxProcs"][0]
    known = " (guessed: peak use; state it with --processors)" if "Note" in imported.header else ""
    say(f"{output}: {entry['kept']:,} jobs of {source}; machine: {int(machine):,} processors{known}")


#: The formats that need no options of their own, with the kinds of files that they accept, and their help.
_PLAIN = {
    "pbs": (
        ("pbs", "cobalt"),
        """
        Import accounting files of PBS Professional, OpenPBS or Torque (E records).

        Times become seconds from the first submission, memory becomes KB per processor.

        Example: `cat server_priv/accounting/2024* > pbs.txt`,
        `swflow import pbs pbs.txt -o my.parquet --processors 512`
        """,
    ),
    "lsf": (
        ("lsf",),
        """
        Import accounting files of LSF: lsb.acct (JOB_FINISH records).

        Times become seconds from the first submission. Processors are the slots in the list of execution hosts.

        Example: `cat lsb.acct.3 lsb.acct.2 lsb.acct > lsf.txt`,
        `swflow import lsf lsf.txt -o my.parquet --processors 512`
        """,
    ),
    "sge": (
        ("sge",),
        """
        Import accounting files of Grid Engine: SGE, Open Grid Scheduler, Univa Grid Engine.

        Times become seconds from the first submission, memory becomes KB per slot. Processors are slots.

        Example: `swflow import sge accounting -o my.parquet --processors 512`
        """,
    ),
    "condor": (
        ("condor",),
        """
        Import the history of HTCondor: ClassAds or JSON.

        Times become seconds from the first submission. Each job is one job of the log, with its last run.

        Example: `condor_history -json > history.json`, `swflow import condor history.json -o my.parquet`
        """,
    ),
    "batsim": (
        ("batsim",),
        """
        Import a workload of Batsim (JSON), as `swflow export` writes it.

        The machine has `nb_res` processors. Jobs whose profile is not a delay are left out.

        Example: `swflow import batsim jobs.json -o my.parquet`
        """,
    ),
    "philly": (
        ("philly",),
        """
        Import the jobs of the Philly traces (cluster_job_log): GPUs become processors.

        Times become seconds from the first submission. Jobs run from their first attempt to the end of their last.

        Example: `swflow import philly cluster_job_log -o philly.parquet`
        """,
    ),
}


def _add_plain(kind: str, accepted: tuple[str, ...], about: str) -> None:
    """Add the command that imports a format without options of its own."""

    def read(
        file: Source,
        output: LogOutput,
        processors: MachineProcessors = None,
        nodes: MachineNodes = None,
        timezone: TimeZone = "UTC",
        anonymize: Anonymize = False,
        key: Key = None,
    ) -> None:
        from swflow.log.importers.any import importer_of

        _require(file, *accepted)
        _write(importer_of(kind)(str(file), _site(processors, nodes, timezone, anonymize, key)), file, output)

    read.__doc__ = about
    import_app.command(kind)(read)


for _kind, (_accepted, _about) in _PLAIN.items():
    _add_plain(_kind, _accepted, _about)


@import_app.command("gwf")
def import_gwf(
    file: Source,
    output: LogOutput,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    site: str | None = None,
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import a log in the format of the Grid Workloads Archive.

    Times become seconds from the first submission.

    Example: `swflow import gwf das2.gwf -o das2.parquet --site fs1 --processors 144`

    Options
    -------
    site: Only jobs that this site of the grid ran (LastRunSiteID).
    """
    from swflow.log.importers.gwf import import_gwf as read

    _require(file, "gwf", "swf")
    _write(read(str(file), _site(processors, nodes, "UTC", anonymize, key), of_site=site), file, output)


@import_app.command("csv")
def import_csv(
    file: Path,
    output: LogOutput,
    columns: Annotated[str, Option()],
    resource: list[str] | None = None,
    processors: MachineProcessors = None,
    nodes: MachineNodes = None,
    timezone: TimeZone = "UTC",
    anonymize: Anonymize = False,
    key: Key = None,
) -> None:
    """
    Import a table of jobs with a mapping of its columns, such as an open data set.

    Times become seconds from the first submission, memory becomes KB per processor.

    Example: `swflow import csv jobs.csv -o my.parquet --columns mapping.yaml --processors 512`

    Options
    -------
    file: A table of jobs: CSV, plain or gzipped, or Parquet.
    columns: The mapping of columns: a YAML file or a shipped name.
    resource: Compute the units of a resource that each job occupies from columns of the table: watts=node_power*nodes;
        repeatable.
    """
    from swflow.log.importers.table import import_table

    _require(file, "csv", "parquet", "wta", "sacct", "sacct-aligned", "squeue", "swf", "log", "workload", "run")
    formulas = read_formulas_of(resource, output)
    site = _site(processors, nodes, timezone, anonymize, key)
    log = import_table(str(file), site, columns, resources=formulas)
    _write(log, file, output)


@import_app.command("site")
def import_site(
    conf: Path,
    output: Annotated[Path, OUTPUT],
    qos: Path | None = None,
    associations: Path | None = None,
    reservations: Path | None = None,
    usage: Path | None = None,
    nodes: Path | None = None,
    events: Path | None = None,
    timezone: str | None = None,
    slurm_version: str | None = None,
) -> None:
    """
    Read the configuration of a Slurm site as a scheduler, which you can edit.

    Partitions become groups of nodes, reservations become windows, and the multifactor priority becomes the order. The
    file lists every option that was read, how it is simulated, and what the simulation leaves out.

    Example: `swflow import site slurm.conf --qos qos.txt -o site.yaml`,
    `swflow whatif sacct.txt --config site.yaml --nodes +20%`

    Options
    -------
    conf: slurm.conf; the files that it includes lie in its folder.
    output: The config to write, with the scheduler site: .yaml.
    qos: The output of `sacctmgr show qos -P`.
    associations: The output of `sacctmgr show assoc -P
        format=Account,ParentName,User,Partition,Share,MaxJobs,GrpJobs,GrpTRES,GrpTRESRunMins`.
    reservations: The output of `scontrol show res`, or with past ones that of `sacctmgr show reservation -P`.
    usage: The output of `sshare -a -l -P` when the log begins: the usage with which fair share begins (default: 0).
    nodes: The output of `scontrol show node`: sizes that slurm.conf does not state, and dynamic nodes.
    events: The output of `sacctmgr show event -P`: times at which nodes were down or drained.
    timezone: The time zone of reservations and events, such as Europe/Stockholm (default: that of the log).
    slurm_version: The version of Slurm, such as 22.05, for the defaults of slurm.conf (default: the newest).
    """
    from swflow.files.atomic import write_text
    from swflow.sites.slurm_site import read_site, site_yaml

    check_ending(output, ".yaml", ".yml")
    _require(conf, "slurm.conf", "csv", "swf")
    tables = {"qos": qos, "associations": associations, "reservations": reservations, "usage": usage, "nodes": nodes}
    tables |= {"events": events}
    site = read_site(conf, **tables, time_zone=timezone, version=slurm_version)
    write_text(output, site_yaml(site, [path for path in (conf, *tables.values()) if path]))
    left_out = [note for note in site.notes if note.treatment and note.treatment.simulated != "yes"]
    print_table(
        ["option", "value", "simulated", "what that means"],
        [
            (note.name, note.text, note.treatment.simulated, note.treatment.meaning)
            for note in left_out
            if note.treatment
        ],
    )
    for text in site.ignored:
        say(f"{conf}: {text}")
    say(
        f"{output}: {site.processors:,} processors in {site.nodes:,} nodes; {len(site.notes)} options read, "
        f"{len(left_out)} of them simulated partly or not"
    )


@app.command()
def export(
    source: Path,
    output: Annotated[Path, OUTPUT],
    workload: Path | None = None,
    estimates: str = "raise",
) -> None:
    """
    Export a workload or a schedule for other programs: SWF, CSV, Parquet, or JSON for Batsim.

    Times are seconds, memory is KB per processor.

    Example: `swflow export results/runs/KTH-SP2/easy.parquet -o easy.csv`,
    `swflow export kth.parquet -o kth.json`

    Options
    -------
    source: A workload (.parquet), a log (.swf, .swf.gz) or a run (.parquet).
    output: The file to write: .swf, .swf.gz, .csv, .parquet, .json (Batsim).
    workload: The workload of a run, if its file has been moved.
    estimates: For Batsim, which kills jobs at the wall time: raise (to the run time), or kill.
    """
    from swflow.workload.export import export as write_export
    from swflow.workload.export import left_out_in_words

    written = write_export(source, output, workload=workload, estimates=estimates)
    say(f"{output}: {written.jobs:,} jobs of {source}")
    if written.left_out:
        say(f"{output}: {left_out_in_words(written.left_out, output.suffix)}")
