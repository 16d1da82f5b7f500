"""Commands that get logs and turn them into job tables: fetch, clean, generate."""

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from swflow.cli.app import app, generate_app
from swflow.cli.options import Catalogues, Mirror, Name, Output, Seed, WithoutStatus, output_option
from swflow.cli.terminal import check_ending, read_object, save, say, say_doubts, say_removed
from swflow.errors import SwflowError


@app.command()
def fetch(
    log: Annotated[str, Argument(help="The name of the log in the catalogue, such as KTH-SP2.")],
    output: Annotated[Path, output_option(help="Write the log to this gzipped file: .swf.gz.")],
    mirror: Mirror = None,
    catalogue: Catalogues = None,
    entry: Annotated[
        str | None, Option(help='Use this catalogue entry (JSON) instead of a catalogue: {"path": "my.swf"}.')
    ] = None,
) -> None:
    """
    Fetch a log of the catalogue from a mirror or from the Parallel Workloads Archive.

    The checksum (SHA-256 of the decompressed text) and the number of jobs must equal those of the catalogue.

    Example: `swflow fetch KTH-SP2 -o kth.swf.gz --mirror /data/archive`
    """
    from swflow.log.catalogue import default_catalogue, find_log, load_catalogue
    from swflow.log.catalogue import fetch as fetch_log

    check_ending(output, ".swf.gz")
    if entry is not None and catalogue:
        raise SwflowError("fetch: --entry and --catalogue; expected one of them")
    sources = [{log: read_object(entry, "--entry")}] if entry is not None else catalogue or [default_catalogue()]
    logs = load_catalogue(sources)
    report = fetch_log(find_log(log, logs), output, mirror, progress=True)
    say(f"{report.name}: {report.jobs:,} jobs from {report.source}, sha256 {report.sha256}")


@app.command()
def clean(
    log: Annotated[
        Path, Argument(help="A log: .swf or .swf.gz, with or without a header; or an imported log: .parquet.")
    ],
    output: Output,
    name: Name = None,
    machine_processors: Annotated[
        int | None, Option(help="The number of processors of the machine (default: MaxProcs of the header).")
    ] = None,
    machine_nodes: Annotated[
        int | None, Option(help="The number of nodes of the machine (default: MaxNodes of the header).")
    ] = None,
    drop: Annotated[
        list[str] | None,
        Option(
            help="Apply this rule: unknown-submit-time, no-processors, wider-than-machine, unknown-run-time, "
            "zero-run-time, or none; repeatable (default: all rules)."
        ),
    ] = None,
    without_status: WithoutStatus = None,
    flurries: Annotated[
        list[str] | None,
        Option(
            help="Remove jobs that satisfy this condition: 'user_id == 50 and 24439 <= job_id <= 64542'; repeatable."
        ),
    ] = None,
    since: Annotated[
        str | None,
        Option("--from", help="Keep jobs submitted on or after this day (site time), or this time: 1996-01-01T00:00Z."),
    ] = None,
    until: Annotated[str | None, Option(help="Keep jobs submitted before this day or time.")] = None,
    lenient: Annotated[bool, Option(help="Skip and count malformed lines instead of reporting an error.")] = False,
    keep_cancelled: Annotated[
        bool,
        Option(
            help="Keep jobs that were cancelled in the queue: they wait in simulations until the recorded time "
            "(cancelled_after, s)."
        ),
    ] = False,
    keep_instant: Annotated[
        bool, Option(help="Keep jobs that ran but ended within a second, with a run time of 1 s: they waited, too.")
    ] = False,
    dependencies: Annotated[
        bool,
        Option(help="Keep preceding jobs (fields 17 and 18) as dependencies: a job waits for their ends (depends_on)."),
    ] = False,
) -> None:
    """
    Clean a log into a job table, and count the removed jobs by reason.

    Times are in seconds, memory is in KB per processor. Unknown values (-1) become null. The column `processors` is the
    allocated number, else the requested one; `estimate` is the requested time, else the run time.

    Example: `swflow clean kth.swf.gz -o kth.parquet --machine-processors 100`
    """
    from swflow.analysis.plausibility import LOOKED_AT
    from swflow.log.swf import parse_moment
    from swflow.workload.clean import RULES, clean_log, log_name
    from swflow.workload.clean_large import clean_into

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
        "keep_cancelled": keep_cancelled,
        "keep_instant": keep_instant,
        "dependencies": dependencies,
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
    jobs: Annotated[int, Option(help="Generate this number of jobs.")] = 5000,
    processors: Annotated[int, Option(help="The number of processors of the machine.")] = 128,
    load: Annotated[
        float | None,
        Option(help="Scale the interarrival times to this offered load, 0 to 1 (default: the load of the model)."),
    ] = None,
    classes: Annotated[
        str, Option(help="Classes of jobs: batch-and-interactive, or combined (one class).")
    ] = "batch-and-interactive",
    estimates: Annotated[
        str, Option(help="User estimates: tsafrir (modal), or exact (equal to the run time).")
    ] = "tsafrir",
    users: Annotated[bool, Option(help="Also draw users; few of them submit most jobs.")] = False,
    seed: Seed = 1,
    name: Name = None,
) -> None:
    """
    Generate a log with the model of Lublin and Feitelson (2003).

    The model draws sizes, hyper-gamma run times and arrivals with a daily cycle. Estimates follow the modal model of
    Tsafrir, Etsion and Feitelson (2005). Times are in seconds. The same seed and name give the same file.

    Example: `swflow generate lublin -o jobs.swf.gz --jobs 5000 --processors 128 --load 0.7 --seed 1`
    """
    from swflow.jobs.machine import require_machine
    from swflow.jobs.randomness import generator
    from swflow.workload.clean import log_name
    from swflow.workload.generate import generate
    from swflow.workload.models.lublin import generate_lublin as generate_fields
    from swflow.workload.models.lublin import lublin_header

    check_ending(output, ".parquet", ".swf", ".swf.gz")
    name = name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output)
    model: Any = {"classes": classes, "load": load, "estimates": estimates, "users": users}
    if output.suffix == ".parquet":
        save(generate("lublin", jobs=jobs, processors=processors, name=name, seed=seed, **model), output)
        return
    from swflow.log.swf import write_swf

    require_machine(processors)
    fields = generate_fields(jobs, processors, generator(seed, name, "lublin"), **model)
    write_swf(output, fields, lublin_header(jobs, processors, seed=seed, **model))
    say(f"{name}: {fields.height:,} jobs for {processors:,} processors")
