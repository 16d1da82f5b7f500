"""The command line: one short function per command; each imports only what it runs."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.errors import SwflowError

app = typer.Typer(
    name="swflow",
    help="Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
generate_app = typer.Typer(help="Generate a synthetic log by a model.", no_args_is_help=True)
app.add_typer(generate_app, name="generate")

Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write: .parquet, .swf or .swf.gz.")]
ParquetOutput = Annotated[Path, typer.Option("--output", "-o", help="The file to write: .parquet.")]
Input = Annotated[Path, typer.Argument(help="A workload (.parquet) or a log (.swf, .swf.gz).")]
Processors = Annotated[int, typer.Option(help="Processors of the new machine.")]
CopiedShare = Annotated[
    float, typer.Option("--d", help="0 to 100: the share of the jobs, in percent, that are copied; others get wider.")
]
Copies = Annotated[int | None, typer.Option(help="For precise-size: how many copies; by default the factor, rounded.")]
NamedSchedulers = Annotated[
    list[str] | None, typer.Option("--scheduler", help="A scheduler with its options: NAME={JSON options}; repeatable.")
]
Threads = Annotated[int, typer.Option(help="How many draws are simulated at a time; the result is the same.")]
Seed = Annotated[int, typer.Option(help="The seed of every random draw.")]
Name = Annotated[str | None, typer.Option(help="The log's name; by default the file's.")]
WithoutStatus = Annotated[
    list[int] | None,
    typer.Option(help="Leave out jobs of this SWF status (0 failed, 1 completed, 5 cancelled); repeatable."),
]


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
) -> None:
    """
    Get a log of the catalogue: from the mirror, else from the Parallel Workloads Archive.

    The checksum (sha256 of the decompressed text) and the number of jobs must be the catalogue's.

    Example: `swflow fetch KTH-SP2 -o kth.swf.gz --mirror /data/archive`
    """
    from swflow.logs import default_catalogue, find_log, load_catalogue
    from swflow.logs import fetch as fetch_log

    logs = load_catalogue(list(catalogue or [default_catalogue()]))
    report = fetch_log(find_log(log, logs), output, mirror, progress=True)
    _say(f"{report.name}: {report.jobs:,} jobs from {report.source}, sha256 {report.sha256}")


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
            help="A rule to apply; repeatable. no-processors, wider-than-machine, unknown-run-time, "
            "zero-run-time (all by default), or none."
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
    from swflow.swf import parse_moment
    from swflow.workloads.clean import RULES, clean_log, log_name

    workload = clean_log(
        log,
        name=name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output),
        processors=machine_processors,
        nodes=machine_nodes,
        since=parse_moment(since, "--from") if since else None,
        until=parse_moment(until, "--until") if until else None,
        lenient=lenient,
        drop=list(RULES) if drop is None else [rule for rule in drop if rule != "none"],
        without_status=without_status or (),
        flurries=flurries or (),
    )
    _save(workload, output)


@app.command()
def select(
    workload: Input,
    output: Output,
    jobs: Annotated[int | None, typer.Option(help="Keep the first so many, after the other options.")] = None,
    status: Annotated[list[int] | None, typer.Option(help="Keep only this SWF status; repeatable.")] = None,
    without_status: WithoutStatus = None,
    where: Annotated[
        str | None,
        typer.Option(help="Keep jobs that fulfil a condition: 'processors <= 32 and run_time > 60'."),
    ] = None,
) -> None:
    """
    Select a part of a workload's jobs.

    Times in conditions are seconds; the names are the columns of the job table.

    Example: `swflow select kth.parquet -o kth+first-10000.parquet --jobs 10000 --without-status 5`
    """
    from swflow.workloads.clean import open_workload
    from swflow.workloads.select import select as select_jobs

    selected = select_jobs(
        open_workload(workload),
        jobs=jobs,
        status=status or (),
        without_status=without_status or (),
        where=where,
    )
    _save(selected, output)


@app.command()
def machine(
    workload: Input,
    output: ParquetOutput,
    processors: Annotated[int | None, typer.Option(help="Processors in all, whole nodes.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Or nodes in all.")] = None,
    processors_per_node: Annotated[int | None, typer.Option(help="Processors of each node.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="A kind of node. alvio-node: 4 processors, 6000 MB/s of memory bandwidth.")
    ] = None,
    capacities: Annotated[
        list[str] | None,
        typer.Option(
            "--capacity", "--capacities", help="What each node has of a resource: memory_bandwidth=6000; repeatable."
        ),
    ] = None,
) -> None:
    """
    Lay a machine over a workload: processors, nodes, and the capacities that the processes of a node share.

    What is not given stays; the processors are rounded up to whole nodes. Wider jobs are removed and counted.
    Capacities are in the unit of the demands: bandwidths in MB/s, memory in MB.

    Example: `swflow machine kth.parquet -o kth+smp.parquet --nodes 25 --preset alvio-node`
    """
    from swflow.workloads.clean import open_workload
    from swflow.workloads.machine import with_machine

    _require_parquet(output, "capacities")
    laid = with_machine(
        open_workload(workload),
        processors=processors,
        nodes=nodes,
        processors_per_node=processors_per_node,
        preset=preset,
        capacities=_pairs(capacities, "--capacity", "memory_bandwidth=6000"),
    )
    _save(laid, output)


@app.command()
def memory(
    workload: Input,
    output: ParquetOutput,
    high: Annotated[
        float | None, typer.Option(help="The share of jobs of high demand; 0.8 if no share is given.")
    ] = None,
    medium: Annotated[float | None, typer.Option(help="Of medium demand; 0.1 if no share is given.")] = None,
    low: Annotated[float | None, typer.Option(help="Of low demand; 0.1 if no share is given.")] = None,
    high_level: Annotated[float, typer.Option(help="High demand of a process, MB/s.")] = 2000,
    medium_level: Annotated[float, typer.Option(help="Medium demand of a process, MB/s.")] = 1000,
    low_level: Annotated[float, typer.Option(help="Low demand of a process, MB/s.")] = 500,
    demands: Annotated[
        list[str] | None,
        typer.Option(
            "--demand", "--demands", help="Instead: a demand and its share of the jobs, 4000=0.25; repeatable."
        ),
    ] = None,
    from_log: Annotated[
        str | None, typer.Option(help="Instead: the memory that the log records, used or requested, in MB.")
    ] = None,
    resource: Annotated[
        str | None, typer.Option(help="The resource, and the new column: memory_bandwidth; with --from-log memory.")
    ] = None,
    seed: Seed = 1,
) -> None:
    """
    Give every job a demand for a resource that the processes of a node share, such as memory bandwidth.

    Scenarios (high, medium, low): HIGH 0.8 0.1 0.1, MED 0.5 0.1 0.4, LOW 0.1 0.1 0.8. A job keeps its demand whatever
    other jobs there are; the capacities are those of `swflow machine`.

    Example: `swflow memory kth.parquet -o kth+memory-high.parquet --high 0.8 --medium 0.1 --low 0.1`
    """
    from swflow.randomness import step_name
    from swflow.workloads.clean import open_workload
    from swflow.workloads.memory import describe_demands
    from swflow.workloads.memory import memory as give_demands

    _require_parquet(output, "demands")
    given = give_demands(
        open_workload(workload),
        high=high,
        medium=medium,
        low=low,
        high_level=high_level,
        medium_level=medium_level,
        low_level=low_level,
        demands={
            _as_number(demand, "--demand"): share for demand, share in _pairs(demands, "--demand", "4000=0.25").items()
        },
        from_log=from_log,
        resource=resource,
        seed=seed,
        step=step_name(output, "memory"),
    )
    _save(given, output)
    _say(describe_demands(given.history[-1]))


def _require_parquet(output: Path, what: str) -> None:
    """Raise an error if a workload is to be written to a file that has no place for what a step adds."""
    if output.suffix != ".parquet":
        raise SwflowError(f"{output}: only .parquet has a place for the {what}; use that ending")


def _pairs(texts: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Read NAME=NUMBER, each name once."""
    pairs: dict[str, float] = {}
    for text in texts or ():
        name, equals, number = text.partition("=")
        if not name or not equals:
            raise SwflowError(f"{option}: {text!r} is not NAME=NUMBER, such as {example}")
        if name in pairs:
            raise SwflowError(f"{option}: {name} is given twice")
        pairs[name] = _as_number(number, f"{option}: {name}")
    return pairs


def _as_number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise SwflowError(f"{where}: {text!r} is not a number") from None


@app.command()
def moldable(
    workload: Input,
    output: Output,
    pb: Annotated[
        float | None,
        typer.Option(help="The probability of powers of two, 0 to 1; by default their share among the jobs' sizes."),
    ] = None,
    keep_recorded: Annotated[bool, typer.Option(help="Whether the recorded size is always one of a job's.")] = True,
    seed: Seed = 1,
) -> None:
    """
    Give every job the shapes (processors and run time) that it could run in, by the model of Cirne and Berman (2001).

    Sizes are of the survey among users in the paper, run times follow Downey's speedup; seconds. The column
    shapes holds them, for `swflow simulate --shapes`. The same seed, names and input give the same bytes.

    Example: `swflow moldable kth.parquet -o kth+moldable.parquet --pb 0.734 --seed 1`
    """
    from swflow.randomness import step_generator
    from swflow.workloads.clean import open_workload
    from swflow.workloads.moldable import moldable as make_moldable

    source = open_workload(workload)
    molded = make_moldable(
        source, step_generator(seed, source.name, output, "moldable"), pb=pb, keep_recorded=keep_recorded
    )
    _save_parquet(molded, output, "shapes")
    entry = molded.history[-1]
    _say(
        f"{entry['shapes']:,} shapes; {entry['rigid']:,} jobs have one; "
        f"powers of two with probability {entry['pb']:.3f}; "
        f"recorded sizes below the minimum: {entry['below_minimum']:,}, above the maximum: {entry['above_maximum']:,}"
    )


@app.command()
def model(
    workload: Annotated[
        Path | None, typer.Argument(help="The workload (.parquet) or log (.swf, .swf.gz) to fit to, or compare with.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The synthetic workload: .parquet, .swf or .swf.gz.")
    ] = None,
    model: Annotated[str, typer.Option(help="minh-wolters, mbc-ls, lublin, song or resample.")] = "minh-wolters",
    jobs: Annotated[int | None, typer.Option(help="How many jobs; by default as many as the workload has.")] = None,
    arrivals: Annotated[str, typer.Option(help="log (its submit times), or daily-cycle (a fitted process).")] = "log",
    components: Annotated[
        int, typer.Option(help="The most Gaussians that minh-wolters and mbc-ls try for the run times.")
    ] = 20,
    window: Annotated[
        int, typer.Option(help="Of minh-wolters and mbc-ls: the larger, the more alike are neighbours; 1 is off.")
    ] = 1,
    repeats: Annotated[
        str, typer.Option(help="Of minh-wolters: repeat run times as often as the log (fitted), or as printed.")
    ] = "fitted",
    fitted: Annotated[Path | None, typer.Option(help="Take this fitted model (.json) instead of fitting one.")] = None,
    save_fit: Annotated[Path | None, typer.Option(help="Write the fitted model to this file (.json).")] = None,
    seed: Seed = 1,
) -> None:
    """
    Fit a workload model to a workload, and generate a synthetic workload by it.

    The fitted model is a readable file, by which others can generate workloads without the log. With
    --arrivals daily-cycle it has no submit times; resample's has the log's jobs, but neither order nor users.
    Run times are whole seconds. The same seed, source and name of the output give the same bytes.

    Examples: `swflow model kth.parquet -o kth+like.parquet --model minh-wolters`,
    `swflow model kth.parquet --save-fit kth.json --arrivals daily-cycle`,
    `swflow model --fitted kth.json -o like-kth.parquet --jobs 100000 --seed 7`
    """
    from swflow.randomness import step_generator
    from swflow.workloads.clean import open_workload
    from swflow.workloads.model import describe_fit, fit, generate, read_model, with_measures, write_model

    if output is None and save_fit is None:
        raise SwflowError("model: nothing to write; name a workload with -o, or a fitted model with --save-fit")
    source = open_workload(workload) if workload else None
    if fitted:
        fitted_model = read_model(fitted)
    elif source:
        fitted_model = fit(
            source, model=model, arrivals=arrivals, components=components, window=window, repeats=repeats
        )
    else:
        raise SwflowError("model: name a workload to fit to, or a fitted model with --fitted")
    if save_fit:
        write_model(fitted_model, save_fit)
        _say(f"{save_fit}: {fitted_model.model}, fitted to {fitted_model.jobs:,} jobs of {fitted_model.source}")
    if output:
        rng = step_generator(seed, source.name if source else fitted_model.source, output, "model")
        synthetic = generate(fitted_model, rng, jobs=jobs)
        synthetic = with_measures(synthetic, source) if source else synthetic
        _write(synthetic, output)
        _say(f"{output}: {describe_fit(synthetic)}")


@app.command()
def scale(
    workload: Input,
    output: Output,
    processors: Processors,
    d: CopiedShare = 50.0,
    variant: Annotated[
        str, typer.Option(help="integer, precise-size or precise: how widths and copies follow from the factor.")
    ] = "precise",
    factor: Annotated[
        float | None, typer.Option(help="The factor; by default new processors over old, for integer rounded.")
    ] = None,
    copies: Copies = None,
    seed: Seed = 1,
) -> None:
    """
    Scale a workload to a machine of another size (Ernemann, Song and Yahyapour 2003).

    A share d of the jobs is copied, the others are made wider, by the factor. Run times (s) and submit times stay;
    `source_job_id` says which job a copy is of. The same seed and names give the same bytes.

    Example: `swflow scale kth.parquet -o kth+scaled.parquet --processors 1024 --d 50 --variant precise`
    """
    from swflow.randomness import step_generator
    from swflow.workloads.clean import open_workload
    from swflow.workloads.scale import scale as scale_jobs

    opened = open_workload(workload)
    generator = step_generator(seed, opened.name, output, "scale")
    scaled = scale_jobs(opened, processors, d=d, variant=variant, factor=factor, copies=copies, generator=generator)
    _save(scaled, output)
    made = scaled.history[-1]
    _say(
        f"{scaled.name}: factor {made['factor']:.6g}; {made['widened']:,} jobs widened, {made['copied']:,} copied, "
        f"{made['cut']:,} cut to the machine: {made['jobs']:,} jobs"
    )


@app.command()
def adjust(
    workload: Input,
    processors: Processors,
    d: CopiedShare = 50.0,
    order: Annotated[str, typer.Option(help="The order of the queue, as in simulate.")] = "fcfs",
    backfill: Annotated[str, typer.Option(help="none, easy, lookahead, conservative.")] = "none",
    scheduler: NamedSchedulers = None,
    seeds: Annotated[int, typer.Option(help="How many draws each factor gets at least.")] = 5,
    tolerance: Annotated[float, typer.Option(help="By what share the AWRT may differ from the source's.")] = 0.02,
    seed: Seed = 1,
    threads: Threads = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write every draw: .parquet (for load) or .csv.")
    ] = None,
) -> None:
    """
    Search the factor at which a scaled workload waits and responds like its source.

    The precise factor makes a lighter workload, since narrow copies pack better. Prints a row per factor tried: the
    mean over the seeds of AWRT and AWWT (s), the standard error, and the deviation from the source's AWRT.

    Example: `swflow adjust kth.parquet --processors 1024 --d 50 --order fcfs --backfill easy -o curve.parquet`
    """
    from polars import concat

    from swflow.scaling import adjust as search_factor
    from swflow.scaling import curve, write_sweep
    from swflow.workloads.clean import open_workload

    chosen = _schedulers(scheduler, {f"{order}-{backfill}": {"order": order, "backfill": backfill}})
    opened = open_workload(workload)
    options: dict[str, Any] = {
        "d": d, "tolerance": tolerance, "replicates": seeds, "seed": seed, "threads": threads
    }  # fmt: skip
    tables = []
    for name, one in chosen.items():
        with _progress(f"adjust, {name}", 40) as advance:
            search, rows = search_factor(opened, processors, one, name=name, **options, progress=advance)
        mean, error = search.deviation(search.factor)
        verdict = "factor" if search.fits else "no factor fits; the nearest is"
        _say(f"{opened.name}, {name}: {verdict} {search.factor:g}: AWRT {mean:+.2%} (standard error {error:.2%})")
        tables.append(rows)
    table = concat(tables)
    if output:
        write_sweep(table, output, opened.name, chosen)
    columns, lines = curve(table)
    _print_table(columns, [tuple(_number(value) for value in line) for line in lines])


@app.command()
def sweep(
    workload: Input,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .parquet (for load) or .csv.")],
    processors: Processors,
    d: Annotated[list[str] | None, typer.Option(help="A number, or FROM:TO:STEP; repeatable. By default 50.")] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="integer, precise-size or precise; repeatable. By default precise.")
    ] = None,
    factor: Annotated[
        list[str] | None, typer.Option(help="A factor, or FROM:TO:STEP; repeatable. By default that of the variant.")
    ] = None,
    excess: Annotated[
        list[str] | None, typer.Option(help="The same in percent above the precise factor; repeatable.")
    ] = None,
    copies: Copies = None,
    scheduler: NamedSchedulers = None,
    seeds: Annotated[int, typer.Option(help="How many draws of each setting.")] = 5,
    seed: Seed = 1,
    threads: Threads = 1,
) -> None:
    """
    Scale a workload in many ways, simulate each, and keep the metrics: hundreds of settings in one process.

    One row per setting, draw and scheduler (by default easy and fcfs), and the source's own rows. A row names the
    workload that `swflow scale` would make with the same options and name.

    Example: `swflow sweep kth.parquet -o kth+d.parquet --processors 1024 --d 0:100:1 --variant precise --seeds 5`
    """
    from swflow.scaling import points, values, write_sweep
    from swflow.scaling import sweep as run_sweep
    from swflow.workloads.clean import open_workload

    opened = open_workload(workload)
    chosen = _schedulers(scheduler, {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}})
    settings = points(
        opened,
        processors,
        d=[value for text in d or ["50"] for value in values(text, "--d")],
        variant=variant or ["precise"],
        factor=[value for text in factor or () for value in values(text, "--factor")],
        excess=[value for text in excess or () for value in values(text, "--excess")],
        copies=copies,
    )
    with _progress("sweep", len(settings) * seeds) as advance:
        rows = run_sweep(
            opened,
            settings,
            chosen,
            replicates=seeds,
            seed=seed,
            threads=threads,
            progress=advance,
        )
    write_sweep(rows, output, opened.name, chosen)
    _say(f"{output}: {len(settings):,} settings, {seeds:,} draws each, under {', '.join(chosen)}")


def _schedulers(texts: Sequence[str] | None, default: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schedulers that options name, or the default ones."""
    from swflow.scheduling.scheduler import Scheduler

    named = dict(_named_options(text) for text in texts or ()) or default
    return {name: Scheduler.of(name, options) for name, options in named.items()}


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
    from swflow.randomness import generator
    from swflow.workloads.clean import clean as clean_fields
    from swflow.workloads.clean import log_name
    from swflow.workloads.lublin import generate_lublin as generate
    from swflow.workloads.lublin import lublin_header

    name = name or log_name(output.with_suffix("") if output.suffix == ".parquet" else output)
    model: Any = {"classes": classes, "load": load, "estimates": estimates, "users": users}
    fields = generate(jobs, processors, generator(seed, name, "lublin"), **model)
    header = lublin_header(jobs, processors, seed=seed, **model)
    if output.suffix == ".parquet":
        from swflow.machine import Machine

        _save(clean_fields(fields, Machine.of(processors), name=name, header=header), output)
    else:
        from swflow.swf import write_swf

        write_swf(output, fields, header)
        _say(f"{name}: {fields.height:,} jobs for {processors:,} processors")


@app.command()
def simulate(
    workload: Input,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the outcomes: .parquet, .swf, .swf.gz; with --scheduler a folder.",
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            help="fcfs, lcfs, sjf, ljf, smallest-first, largest-first, saf, wfp3, unicef, expansion-factor; log (the "
            "recorded start times); or a formula, smallest value first: '-(wait / estimate) ** 3 * processors'."
        ),
    ] = "fcfs",
    backfill: Annotated[
        str,
        typer.Option(
            help="none, easy, lookahead (or selective), conservative, reservation-table (with an allocation)."
        ),
    ] = "none",
    lookahead: Annotated[int, typer.Option(help="How many jobs have a reservation under lookahead.")] = 1,
    backfill_order: Annotated[
        str | None, typer.Option(help="The order of backfilling, as in --order; by default that of the queue.")
    ] = None,
    estimates: Annotated[
        str, typer.Option(help="Jobs that outrun their estimate: raise the estimate, or kill the job.")
    ] = "raise",
    prediction: Annotated[
        str, typer.Option(help="What is planned with: user (estimates), perfect, double, system (last two run times).")
    ] = "user",
    allocation: Annotated[
        str,
        typer.Option(
            help="count, first-fit, longest-idle, first-contiguous, best-contiguous, next-fit, least-shared, threshold."
        ),
    ] = "count",
    places: Annotated[bool, typer.Option(help="Record the processors of each job; not with count.")] = False,
    runtime: Annotated[
        str, typer.Option(help="trace (as the log says), or shared (jobs on an overloaded node hold each other up).")
    ] = "trace",
    penalty: Annotated[
        str,
        typer.Option(help="What an overload costs: linear, printed, or a formula: 'max(usage / capacity, 1) - 1'."),
    ] = "linear",
    sharing_limit: Annotated[
        float, typer.Option(help="With allocation threshold: the penalty beyond which a job rather waits.")
    ] = 0.0,
    event_order: Annotated[
        str, typer.Option(help="batch (a pass per instant), or per-event (arrivals first, a pass after each event).")
    ] = "batch",
    unavailable: Annotated[
        list[str] | None,
        typer.Option(help="A window without processors: FROM/UNTIL/PROCESSORS, seconds from the log's start or days."),
    ] = None,
    centre: Annotated[list[int] | None, typer.Option(help="Processors of one of several machines; repeatable.")] = None,
    dispatch: Annotated[
        str, typer.Option(help="With --centre: round-robin, least-loaded or earliest-start.")
    ] = "round-robin",
    without_status: WithoutStatus = None,
    shapes: Annotated[
        str,
        typer.Option(help="Processors of moldable jobs (swflow moldable): requested, or chosen at submit or start."),
    ] = "requested",
    shape_choice: Annotated[str, typer.Option(help="Among which shapes: fastest (all), or efficient.")] = "fastest",
    efficiency: Annotated[
        float, typer.Option(help="With efficient: the least processor-seconds of a job's shapes over a shape's.")
    ] = 0.5,
    processors: Annotated[
        int | None, typer.Option(help="Processors of the machine; by default the workload's own.")
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(help="A named scheduler, NAME={JSON options}; repeatable. All run in one process."),
    ] = None,
    known_schedule: Annotated[
        Path | None,
        typer.Option(help="Also write the schedule as SWF with a header that states every convention."),
    ] = None,
    code: Annotated[str, typer.Option(help="With --scheduler: remake runs that were not made under this mark.")] = "",
) -> None:
    """
    Simulate a workload under a scheduler, and print the metrics.

    Times are seconds; awrt and awwt are response and wait time weighted by processors times run time;
    the squashed area is processor-seconds; the bounded slowdown counts run times below 10 s as 10 s.

    Examples: `swflow simulate kth.swf.gz --order fcfs --backfill easy -o run.parquet`,
    `swflow simulate kth.swf.gz --order "-(wait / estimate) ** 3 * processors" --backfill easy`
    """
    options = {
        "order": order,
        "backfill": backfill,
        "lookahead": lookahead,
        "backfill_order": backfill_order,
        "estimates": estimates,
        "prediction": prediction,
        "allocation": allocation,
        "places": places,
        "runtime": runtime,
        "penalty": penalty,
        "sharing_limit": sharing_limit,
        "event_order": event_order,
        "unavailable": tuple(_window(text) for text in unavailable or ()),
        "centres": tuple({"processors": size} for size in centre or ()),
        "dispatch": dispatch,
        "without_status": tuple(without_status or ()),
        "shapes": shapes,
        "shape_choice": shape_choice,
        "efficiency": efficiency,
    }
    if scheduler:
        _simulate_all(workload, scheduler, output, code)
    else:
        _simulate_one(workload, options, processors, output, known_schedule)


def _window(text: str) -> dict[str, Any]:
    """Read FROM/UNTIL/PROCESSORS."""
    try:
        since, until, processors = text.split("/")
        ends = [float(end) if end.replace(".", "", 1).isdigit() else end for end in (since, until)]
        return {"from": ends[0], "until": ends[1], "processors": int(processors)}
    except ValueError:
        raise SwflowError(
            f"--unavailable: {text!r} is not FROM/UNTIL/PROCESSORS, such as 0/3600/16 or 1996-12-24/1996-12-27/100"
        ) from None


def _simulate_all(workload: Path, schedulers: Sequence[str], folder: Path | None, code: str) -> None:
    """Simulate named schedulers into a folder, keeping the runs that are as they would be."""
    from swflow.runs import simulate_all

    if folder is None:
        raise SwflowError("simulate: --scheduler needs a folder for the runs: -o results/runs/WORKLOAD")
    options = dict(_named_options(text) for text in schedulers)
    with _progress("simulate", len(options)) as advance:

        def report(name: str, kept: bool) -> None:
            advance()
            _say(f"{workload.stem}/{name}: {'kept' if kept else 'simulated'}")

        simulate_all(workload, options, folder, code=code, report=report)


def _simulate_one(
    workload: Path, options: dict[str, Any], processors: int | None, output: Path | None, known_schedule: Path | None
) -> None:
    """Simulate one scheduler, print its metrics, and write its outcomes if asked to."""
    from swflow.runs import describe_run, run, write_run
    from swflow.scheduling.scheduler import Scheduler
    from swflow.workloads.clean import open_workload

    chosen = Scheduler(**options)
    opened = open_workload(workload, processors)
    _say_removed(opened)
    result = run(opened, chosen)
    missing = opened.jobs.height - result.outcomes.height
    if missing:
        _say(f"{opened.name}: {missing:,} of {opened.jobs.height:,} jobs left out (by status, or without a wait time)")
    name = output.name.partition(".")[0] if output else f"{options['order']}-{options['backfill']}"
    if output and output.suffix == ".parquet":
        write_run(result, output, describe_run(workload, opened, name, chosen))
    elif output:
        from swflow.swf import run_as_swf, write_swf

        write_swf(output, run_as_swf(opened.jobs, result.outcomes), opened.header)
    if known_schedule:
        from swflow.scheduling.known import write_known_schedule

        write_known_schedule(known_schedule, opened, result.outcomes, chosen)
        _say(f"{known_schedule}: {result.outcomes.height:,} jobs with the conventions of their schedule")
    _print_table(["metric", opened.name], [(metric, _number(value)) for metric, value in result.metrics.items()])


@app.command()
def load(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of runs (with a manifest.json), single run files, or sweeps.")
    ],
    database: Annotated[Path, typer.Option(help="The DuckDB file to write.")] = Path("results/swflow.duckdb"),
    expect: Annotated[
        str | None, typer.Option(help="Refuse other runs than those of this digest of the config.")
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
    from swflow.database import write_summary

    counts = load_runs(runs, database, expect=expect, progress=_tracked("load"))
    if summary:
        write_summary(counts, database, summary)
    _say(f"{database}: " + ", ".join(f"{count:,} {table}" for table, count in counts.items()))


@app.command()
def figure(
    kind: Annotated[
        str,
        typer.Argument(
            help="heatmap, bubbles, difference, reservation-table, moldable, marginals, repetitions or sweep."
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
        typer.Option(help="For heatmaps: also draw subsets of the jobs; a column, or NAME=SQL PREDICATE. Repeatable."),
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
    _say(", ".join(map(str, output)))


@app.command()
def report(
    figures: Annotated[
        list[Path] | None, typer.Argument(help="Figures to show: .json files that swflow figure wrote.")
    ] = None,
    database: Annotated[Path, typer.Option(help="A database that swflow load wrote.")] = Path("results/swflow.duckdb"),
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write index.html to.")] = Path(
        "results/report"
    ),
    draw: Annotated[bool, typer.Option(help="If no figures are given, draw the heatmaps of every log.")] = True,
) -> None:
    """
    Write a report: one HTML page that opens from disk, without a network.

    Example: `swflow report --database results/swflow.duckdb -o results/report/`
    """
    from swflow.report import draw_figures, read_figures, write_report

    shown = read_figures(figures or ()) if figures or not draw else draw_figures(database)
    _say(f"{write_report(database, output, shown)}")


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="One SQL query.")],
    output: Annotated[Path | None, typer.Argument(help="With --csv or --parquet: the file to write.")] = None,
    database: Annotated[Path, typer.Option(help="A database that swflow load wrote.")] = Path("results/swflow.duckdb"),
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV, to the file or to standard output.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write Parquet to the file.")] = False,
    limit: Annotated[int, typer.Option(help="Print at most so many rows of a table.")] = 200,
) -> None:
    """
    Query the database, and print a table.

    Tables: workloads, removals, schedulers, jobs, runs, outcomes, metrics, correlations, heatmaps, bubbles,
    comparisons, replicates, model_fit, sweeps, published, trends; views: figures, medians, reproduction,
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
            run_query(database, query, temporary, "parquet" if parquet else "csv")
        _say(f"{output}: written")
    elif csv:
        run_query(database, query, "/dev/stdout", "csv")
    else:
        columns, rows = run_query(database, query)
        _print_table(columns, [tuple(_number(value) for value in row) for row in rows[:limit]])
        if len(rows) > limit:
            _say(f"{limit:,} of {len(rows):,} rows; more with --limit, all with --csv or --parquet")


def _save(workload: Any, output: Path) -> None:
    """Write a workload, and say what its last stage removed."""
    _write(workload, output)
    _say_removed(workload)


def _write(workload: Any, output: Path) -> None:
    """Write a workload as Parquet or as SWF."""
    if output.suffix == ".parquet":
        from swflow.jobs import write_workload

        write_workload(workload, output)
    elif output.name.endswith((".swf", ".swf.gz")):
        from swflow.swf import write_swf

        write_swf(output, workload.jobs, workload.header)
    else:
        raise SwflowError(f"{output}: unknown ending; use .parquet, .swf or .swf.gz")


def _save_parquet(workload: Any, output: Path, column: str) -> None:
    """Write a workload that has a column which SWF has no field for."""
    if output.suffix != ".parquet":
        raise SwflowError(f"{output}: SWF has no field for {column}; write .parquet")
    _save(workload, output)


def _say_removed(workload: Any) -> None:
    """Say how many jobs the last stage of a workload kept and why it removed the others."""
    from swflow.workloads.clean import describe

    if not workload.history:
        return
    entry = workload.history[-1]
    _say(
        f"{workload.name}: {entry['kept']:,} of {entry['read']:,} jobs kept; removed: {describe(entry['removed'])}; "
        f"machine: {workload.machine.describe()}"
        + (f", by {entry['machine_from']}" if entry.get("machine_from", "given") != "given" else "")
    )


def _named_options(text: str) -> tuple[str, dict[str, Any]]:
    name, equals, options = text.partition("=")
    try:
        content = json.loads(options)
    except json.JSONDecodeError as error:
        raise SwflowError(f"--scheduler {text!r}: {error.msg} at position {error.pos}") from None
    if not name or not equals or not isinstance(content, dict):
        raise SwflowError(f'--scheduler {text!r}: write NAME={{"order": "fcfs", "backfill": "easy"}}')
    return name, content


def _number(value: Any) -> str:
    """Write a value: fractions to two places, or four figures below 1; thousands are marked on a terminal only."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    whole = isinstance(value, int) or value.is_integer()
    mark = "," if sys.stdout.isatty() else ""
    places = f"{mark}.0f" if whole else f"{mark}.2f" if abs(value) >= 1 else ".4g"
    return format(value, f"{mark}d" if isinstance(value, int) else places)


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: as wide as it needs to be in a pipe, as wide as the terminal on one."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    numeric = [all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column, right in zip(columns, numeric, strict=True):
        table.add_column(Text(column), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(value) for value in row))
    console = Console(width=None if sys.stdout.isatty() else 10_000)
    console.print(table) if sys.stdout.isatty() else print(_plain(console, table))


def _plain(console: Any, table: Any) -> str:
    """Return a table as text without trailing white space."""
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().strip("\n").splitlines())


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or "0")
    except ValueError:
        return False
    return True


def _progress(what: str, total: int) -> Any:
    """Return a context whose value advances a progress bar on a terminal, and does nothing in a pipe."""
    from contextlib import contextmanager

    @contextmanager
    def bar() -> Any:
        if not sys.stderr.isatty():
            yield lambda: None
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=total)
            yield lambda: progress.advance(task)

    return bar()


def _tracked(what: str) -> Any:
    """Return a function that shows how far the iteration over a sequence is."""

    def track(items: Sequence[Any]) -> Iterable[Any]:
        with _progress(what, len(items)) as advance:
            for item in items:
                yield item
                advance()

    return track


def _say(text: str) -> None:
    """Print a note for people, apart from what a command prints as its result."""
    print(text, file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a user did wrong is one line on standard error and exit status 1 or 2."""
    try:
        status = app(args=arguments, prog_name="swflow", standalone_mode=False)
    except SwflowError as error:
        _fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except Exception as error:
        # typer's errors about the arguments: their classes moved between its versions
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "swflow"
        _fail(f"{error.format_message()} (see: {command} --help)".replace("\n", " "), 2)
    else:
        raise SystemExit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> None:
    print(f"swflow: {message}", file=sys.stderr)
    raise SystemExit(status)
