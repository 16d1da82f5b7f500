"""Commands that get logs and turn them into job tables: fetch, clean, generate."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from swflow.cli.app import app, generate_app
from swflow.cli.option_values import read_formulas_of, read_object
from swflow.cli.options import OUTPUT, Catalogues, Mirror, Name, Output, Seed, WithoutStatus
from swflow.cli.terminal import check_ending, save, say, say_doubts, say_removed
from swflow.errors import SwflowError


@app.command()
def fetch(
    log: str,
    output: Annotated[Path, OUTPUT],
    mirror: Mirror = None,
    catalogue: Catalogues = None,
    entry: str | None = None,
) -> None:
    """
    Fetch a log of the catalogue from a mirror or from the Parallel Workloads Archive.

    The checksum (SHA-256 of the decompressed text) and the number of jobs must equal those of the catalogue.

    Example: `swflow fetch KTH-SP2 -o kth.swf.gz --mirror /data/archive`

    Options
    -------
    log: The name of the log in the catalogue, such as KTH-SP2.
    output: Write the log to this gzipped file: .swf.gz.
    entry: Use this catalogue entry (JSON) instead of a catalogue: {"path": "my.swf"}.
    """
    from swflow.log.catalogue import default_catalogue, find_log, load_catalogue
    from swflow.log.fetch import fetch as fetch_log

    check_ending(output, ".swf.gz")
    if entry is not None and catalogue:
        raise SwflowError("fetch: --entry and --catalogue; expected one of them")
    sources = [{log: read_object(entry, "--entry")}] if entry is not None else catalogue or [default_catalogue()]
    logs = load_catalogue(sources)
    report = fetch_log(find_log(log, logs), output, mirror, progress=True)
    say(f"{log}: {report.jobs:,} jobs from {report.source}, sha256 {report.sha256}")


@app.command()
def clean(
    log: Path,
    output: Output,
    name: Name = None,
    machine_processors: int | None = None,
    machine_nodes: int | None = None,
    drop: list[str] | None = None,
    without_status: WithoutStatus = None,
    flurries: list[str] | None = None,
    since: Annotated[str | None, Option("--from")] = None,
    until: str | None = None,
    lenient: bool = False,
    keep_cancelled: bool = False,
    keep_instant: bool = False,
    dependencies: bool = False,
    resource: list[str] | None = None,
) -> None:
    """
    Clean a log into a job table, and count the removed jobs by reason.

    Times are in seconds, memory is in KB per processor. Unknown values (-1) become null. The column `processors` is the
    allocated number, else the requested one; `estimate` is the requested time, else the run time.

    Example: `swflow clean kth.swf.gz -o kth.parquet --machine-processors 100`

    Options
    -------
    log: A log: .swf or .swf.gz, with or without a header; or an imported log: .parquet.
    machine_processors: The number of processors of the machine (default: MaxProcs of the header).
    machine_nodes: The number of nodes of the machine (default: MaxNodes of the header).
    drop: Apply this rule: unknown-submit-time, no-processors, wider-than-machine, unknown-run-time, zero-run-time, or
        none; repeatable (default: all rules).
    flurries: Remove jobs that satisfy this condition: 'user_id == 50 and 24439 <= job_id <= 64542'; repeatable.
    since: Keep jobs submitted on or after this day (site time), or this time: 1996-01-01T00:00Z.
    until: Keep jobs submitted before this day or time.
    lenient: Skip and count malformed lines instead of reporting an error.
    keep_cancelled: Keep jobs that were cancelled in the queue: they wait in simulations until the recorded time
        (cancelled_after, s).
    keep_instant: Keep jobs that ran but ended within a second, with a run time of 1 s: they waited, too.
    dependencies: Keep preceding jobs (fields 17 and 18) as dependencies: a job waits for their ends (depends_on).
    resource: Compute the units of a resource that each job occupies from columns of the log, or from fields after the
        18th: watts=field_19*processors; repeatable.
    """
    from swflow.analysis.plausibility import LOOKED_AT
    from swflow.files.atomic import require_other_file
    from swflow.values import day_or_moment
    from swflow.workload.clean import RULES, clean_log, log_name
    from swflow.workload.clean_large import clean_into

    require_other_file(output, log)
    options: dict[str, Any] = {
        "name": name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output),
        "processors": machine_processors,
        "nodes": machine_nodes,
        "since": day_or_moment(since, "--from") if since else None,
        "until": day_or_moment(until, "--until") if until else None,
        "lenient": lenient,
        "drop": list(RULES) if drop is None else [rule for rule in drop if rule != "none"],
        "without_status": without_status or (),
        "flurries": flurries or (),
        "keep_cancelled": keep_cancelled,
        "keep_instant": keep_instant,
        "dependencies": dependencies,
        "resources": read_formulas_of(resource, output),
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
    jobs: int = 5000,
    processors: int = 128,
    load: float | None = None,
    classes: str = "batch-and-interactive",
    estimates: str = "tsafrir",
    users: bool = False,
    seed: Seed = 1,
    name: Name = None,
) -> None:
    """
    Generate a log with the model of Lublin and Feitelson (2003).

    The model draws sizes, hyper-gamma run times and arrivals with a daily cycle. Estimates follow the modal model of
    Tsafrir, Etsion and Feitelson (2005). Times are in seconds. The same seed and name give the same file.

    Example: `swflow generate lublin -o jobs.swf.gz --jobs 5000 --processors 128 --load 0.7 --seed 1`

    Options
    -------
    jobs: Generate this number of jobs.
    processors: The number of processors of the machine.
    load: Scale the interarrival times to this offered load, 0 to 1 (default: the load of the model).
    classes: Classes of jobs: batch-and-interactive, or combined (one class).
    estimates: User estimates: tsafrir (modal), or exact (equal to the run time).
    users: Also draw users; few of them submit most jobs.
    """
    from swflow.jobs.machine import require_machine
    from swflow.jobs.randomness import generator
    from swflow.workload.clean import log_name
    from swflow.workload.generate import generate
    from swflow.workload.models import lublin

    check_ending(output, ".parquet", ".swf", ".swf.gz")
    name = name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output)
    model: Any = {"classes": classes, "load": load, "estimates": estimates, "users": users}
    if output.suffix == ".parquet":
        save(generate("lublin", jobs=jobs, processors=processors, name=name, seed=seed, **model), output)
        return
    from swflow.log.swf import write_swf

    require_machine(processors)
    fields = lublin.generate_lublin(jobs, processors, generator(seed, name, "lublin"), **model)
    write_swf(output, fields, lublin.lublin_header(jobs, processors, seed=seed, **model))
    say(f"{name}: {fields.height:,} jobs for {processors:,} processors")
