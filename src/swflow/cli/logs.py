"""Commands that get logs and make job tables of them: fetch, clean, generate."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.cli.app import app, generate_app
from swflow.cli.options import Name, Output, Seed, WithoutStatus
from swflow.cli.terminal import check_ending, read_object, save, say, say_doubts, say_removed
from swflow.errors import SwflowError


@app.command()
def fetch(
    log: Annotated[str, typer.Argument(help="The log's name in the catalogue, such as KTH-SP2.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The gzipped file to write.")],
    mirror: Annotated[
        str | None, typer.Option(help="A folder or base URL with the archive's files, tried first.")
    ] = None,
    catalogue: Annotated[
        list[Path] | None, typer.Option(help="A catalogue of logs (YAML); repeatable, later entries win.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option(help='Instead of a catalogue, the log\'s entry as JSON: {"path": "my.swf"}.')
    ] = None,
) -> None:
    """
    Get a log of the catalogue: from the mirror, else from the Parallel Workloads Archive.

    The checksum (sha256 of the decompressed text) and the number of jobs must be the catalogue's.

    Example: `swflow fetch KTH-SP2 -o kth.swf.gz --mirror /data/archive`
    """
    from swflow.logs import default_catalogue, find_log, load_catalogue
    from swflow.logs import fetch as fetch_log

    check_ending(output, ".swf.gz")
    if entry is not None and catalogue:
        raise SwflowError("fetch: --entry or --catalogue, not both")
    sources = [{log: read_object(entry, "--entry")}] if entry is not None else catalogue or [default_catalogue()]
    logs = load_catalogue(sources)
    report = fetch_log(find_log(log, logs), output, mirror, progress=True)
    say(f"{report.name}: {report.jobs:,} jobs from {report.source}, sha256 {report.sha256}")


@app.command()
def clean(
    log: Annotated[Path, typer.Argument(help="A log: .swf or .swf.gz, with or without a header.")],
    output: Output,
    name: Name = None,
    machine_processors: Annotated[
        int | None, typer.Option(help="The machine's processors; by default the header's MaxProcs.")
    ] = None,
    machine_nodes: Annotated[
        int | None, typer.Option(help="The machine's nodes; by default the header's MaxNodes.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="A rule to apply; repeatable. unknown-submit-time, no-processors, wider-than-machine, "
            "unknown-run-time, zero-run-time (all by default), or none."
        ),
    ] = None,
    without_status: WithoutStatus = None,
    flurries: Annotated[
        list[str] | None,
        typer.Option(help="Remove jobs that fulfil a condition: 'user_id == 50 and 24439 <= job_id <= 64542'."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--from", help="Only jobs submitted from this day on, by the site's clock; or a time: 1996-01-01T00:00Z."
        ),
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only jobs submitted before this day or time.")] = None,
    lenient: Annotated[bool, typer.Option(help="Count and skip malformed lines.")] = False,
) -> None:
    """
    Clean a log to a job table; every removed job is counted under its reason.

    Times are seconds, memory is KB per processor. Unknown (-1) becomes null; processors are the allocated,
    else the requested; the estimate is the requested time, else the run time.

    Example: `swflow clean kth.swf.gz -o kth.parquet --machine-processors 100`
    """
    from swflow.analysis.plausibility import LOOKED_AT
    from swflow.swf import parse_moment
    from swflow.workloads.clean import RULES, clean_log, log_name
    from swflow.workloads.clean_parts import clean_into

    options: dict[str, Any] = {
        "name": name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output),
        "processors": machine_processors,
        "nodes": machine_nodes,
        "since": parse_moment(since, "--from") if since else None,
        "until": parse_moment(until, "--until") if until else None,
        "lenient": lenient,
        "drop": list(RULES) if drop is None else [rule for rule in drop if rule != "none"],
        "without_status": without_status or (),
        "flurries": flurries or (),
    }
    if output.suffix == ".parquet":
        workload = clean_into(log, output, columns=LOOKED_AT, **options)
        say_removed(workload)
    else:
        workload = clean_log(log, **options)
        save(workload, output)
    say_doubts(workload)


@generate_app.command("lublin")
def generate_lublin(
    output: Output,
    jobs: Annotated[int, typer.Option(help="How many jobs.")] = 5000,
    processors: Annotated[int, typer.Option(help="Processors of the machine.")] = 128,
    load: Annotated[
        float | None,
        typer.Option(help="Offered load, 0 to 1: arrivals are stretched to meet it. By default the model's own."),
    ] = None,
    classes: Annotated[
        str, typer.Option(help="batch-and-interactive, or combined (the model without the distinction).")
    ] = "batch-and-interactive",
    estimates: Annotated[
        str, typer.Option(help="User estimates: tsafrir (modal), or exact (the run time).")
    ] = "tsafrir",
    users: Annotated[bool, typer.Option(help="Also draw users, a few of whom submit most jobs.")] = False,
    seed: Seed = 1,
    name: Name = None,
) -> None:
    """
    Generate a log by the model of Lublin and Feitelson (2003).

    Sizes, hyper-gamma run times and arrivals with a daily cycle; estimates by the modal model of Tsafrir,
    Etsion and Feitelson (2005). Times are seconds. The same seed and name give the same bytes.

    Example: `swflow generate lublin -o jobs.swf.gz --jobs 5000 --processors 128 --load 0.7 --seed 1`
    """
    from swflow.machine import require_machine
    from swflow.randomness import generator
    from swflow.workloads.clean import clean as clean_fields
    from swflow.workloads.clean import log_name
    from swflow.workloads.lublin import generate_lublin as generate
    from swflow.workloads.lublin import lublin_header

    check_ending(output, ".parquet", ".swf", ".swf.gz")
    name = name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output)
    require_machine(processors)
    model: Any = {"classes": classes, "load": load, "estimates": estimates, "users": users}
    fields = generate(jobs, processors, generator(seed, name, "lublin"), **model)
    header = lublin_header(jobs, processors, seed=seed, **model)
    if output.suffix == ".parquet":
        from swflow.machine import Machine

        save(clean_fields(fields, Machine.of(processors), name=name, header=header), output)
    else:
        from swflow.swf import write_swf

        write_swf(output, fields, header)
        say(f"{name}: {fields.height:,} jobs for {processors:,} processors")
