"""Commands that simulate: simulate, adjust, sweep."""

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swflow.cli.app import app
from swflow.cli.options import (
    CopiedShare,
    Copies,
    Input,
    Inputs,
    NamedSchedulers,
    Processors,
    Seed,
    Threads,
    WithoutStatus,
)
from swflow.cli.terminal import (
    Sequence,
    check_ending,
    format_number,
    named_schedulers,
    print_table,
    progress_bar,
    read_mapping,
    read_object,
    read_schedulers,
    say,
    say_removed,
)
from swflow.errors import SwflowError
from swflow.names import expand
from swflow.scheduling.options import help_of

if TYPE_CHECKING:
    from swflow.jobs import Workload
    from swflow.scheduling.scheduler import Scheduler


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
    first_crossing: Annotated[
        bool,
        typer.Option(
            help="Instead: where single draws, one a factor, first reach the source's AWRT; one search a seed."
        ),
    ] = False,
    step: Annotated[float, typer.Option(help="With --first-crossing: the distance between two factors.")] = 0.01,
    seed: Seed = 1,
    threads: Threads = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write every draw: .parquet (for load) or .csv.")
    ] = None,
) -> None:
    """
    Search the factor at which a scaled workload waits and responds like its source.

    The precise factor makes a lighter workload, since narrow copies pack better. Prints a row per factor tried: the
    mean over the seeds of AWRT and AWWT (s), the standard error, and the deviation from the source's AWRT. With
    --first-crossing, a row per scheduler: the factors at which 5, 50 and 95 percent of the searches had ended.

    Example: `swflow adjust kth.parquet --processors 1024 --d 50 --order fcfs --backfill easy -o curve.parquet`
    """
    from polars import concat

    from swflow.scaling import adjust as search_factor
    from swflow.scaling import curve, write_sweep
    from swflow.workloads.clean import open_workload

    chosen = read_schedulers(scheduler, {f"{order}-{backfill}": {"order": order, "backfill": backfill}})
    opened = open_workload(workload)
    if first_crossing:
        shared = {"d": d, "step": step, "replicates": seeds, "seed": seed, "threads": threads}
        _first_crossings(opened, processors, chosen, shared, output)
        return
    options: dict[str, Any] = {
        "d": d, "tolerance": tolerance, "replicates": seeds, "seed": seed, "threads": threads
    }  # fmt: skip
    tables = []
    for name, one in chosen.items():
        with progress_bar(f"adjust, {name}", 40) as advance:
            search, rows = search_factor(opened, processors, one, name=name, **options, progress=advance)
        mean, error = search.deviation(search.factor)
        verdict = "factor" if search.fits else "no factor fits; the nearest is"
        say(f"{opened.name}, {name}: {verdict} {search.factor:g}: AWRT {mean:+.2%} (standard error {error:.2%})")
        tables.append(rows)
    table = concat(tables)
    if output:
        write_sweep(table, output, opened.name, chosen)
    columns, lines = curve(table)
    print_table(columns, [tuple(format_number(value) for value in line) for line in lines])


def _first_crossings(
    workload: "Workload",
    processors: int,
    schedulers: "dict[str, Scheduler]",
    options: dict[str, Any],
    output: Path | None,
) -> None:
    """Search with single draws under every scheduler, and print where the searches ended."""
    from polars import concat

    from swflow.scaling import crossing_quantiles, write_sweep
    from swflow.scaling import first_crossing as search

    tables, lines = [], []
    for name, one in schedulers.items():
        with progress_bar(f"adjust, {name}", 40) as advance:
            factors, rows = search(workload, processors, one, name=name, **options, progress=advance)
        tables.append(rows)
        lines.append((name, len(factors), *crossing_quantiles(factors), factors.count(None)))
    if output:
        write_sweep(concat(tables), output, workload.name, schedulers)
    columns = ["scheduler", "searches", "factor_5", "factor_50", "factor_95", "without_end"]
    print_table(columns, [tuple(format_number(value) for value in line) for line in lines])


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
    from swflow.points import values
    from swflow.scaling import points, write_sweep
    from swflow.scaling import sweep as run_sweep
    from swflow.workloads.clean import open_workload

    opened = open_workload(workload)
    chosen = read_schedulers(scheduler, {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}})
    settings = points(
        opened,
        processors,
        d=[value for text in d or ["50"] for value in values(text, "--d")],
        variant=variant or ["precise"],
        factor=[value for text in factor or () for value in values(text, "--factor")],
        excess=[value for text in excess or () for value in values(text, "--excess")],
        copies=copies,
    )
    with progress_bar("sweep", len(settings) * seeds) as advance:
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
    say(f"{output}: {len(settings):,} settings, {seeds:,} draws each, under {', '.join(chosen)}")


@app.command()
def simulate(
    workload: Inputs,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write the outcomes: .parquet, .csv, .swf, .swf.gz; with --scheduler a folder, or of several "
            "workloads the .json file that is to list their runs, which go to folders beside it.",
        ),
    ] = None,
    order: Annotated[str, typer.Option(help=help_of("order"))] = "fcfs",
    backfill: Annotated[str, typer.Option(help=help_of("backfill"))] = "none",
    lookahead: Annotated[int, typer.Option(help=help_of("lookahead"))] = 1,
    backfill_order: Annotated[str | None, typer.Option(help=help_of("backfill_order"))] = None,
    estimates: Annotated[str, typer.Option(help=help_of("estimates"))] = "raise",
    prediction: Annotated[str, typer.Option(help=help_of("prediction"))] = "user",
    allocation: Annotated[str, typer.Option(help=help_of("allocation"))] = "count",
    places: Annotated[bool, typer.Option(help=help_of("places"))] = False,
    runtime: Annotated[str, typer.Option(help=help_of("runtime"))] = "trace",
    penalty: Annotated[
        str,
        typer.Option(help=help_of("penalty")),
    ] = "linear",
    sharing_limit: Annotated[float, typer.Option(help=help_of("sharing_limit"))] = 0.0,
    event_order: Annotated[str, typer.Option(help=help_of("event_order"))] = "batch",
    unavailable: Annotated[
        list[str] | None,
        typer.Option(
            help="A window without processors: FROM/UNTIL/PROCESSORS, seconds from the log's start, or "
            "days; UNTIL never is for ever."
        ),
    ] = None,
    centre: Annotated[
        list[str] | None,
        typer.Option(help="Processors of one of several machines, or PARTITION=PROCESSORS; repeatable."),
    ] = None,
    dispatch: Annotated[str, typer.Option(help=help_of("dispatch"))] = "round-robin",
    half_life: Annotated[float | None, typer.Option(help=help_of("half_life"))] = None,
    user_shares: Annotated[str | None, typer.Option(help=help_of("user_shares"))] = None,
    group_shares: Annotated[str | None, typer.Option(help=help_of("group_shares"))] = None,
    priority: Annotated[str | None, typer.Option(help=help_of("priority"))] = None,
    limits: Annotated[str | None, typer.Option(help=help_of("limits"))] = None,
    without_status: WithoutStatus = None,
    shapes: Annotated[
        str,
        typer.Option(help=help_of("shapes")),
    ] = "requested",
    shape_choice: Annotated[str, typer.Option(help=help_of("shape_choice"))] = "fastest",
    efficiency: Annotated[float, typer.Option(help=help_of("efficiency"))] = 0.5,
    feedback: Annotated[str, typer.Option(help=help_of("feedback"))] = "none",
    policy: Annotated[str | None, typer.Option(help=help_of("policy"))] = None,
    policy_options: Annotated[str | None, typer.Option(help=help_of("policy_options"))] = None,
    processors: Annotated[
        int | None, typer.Option(help="Processors of the machine; by default the workload's own.")
    ] = None,
    scheduler: Annotated[
        list[str] | None,
        typer.Option(
            help="A named scheduler instead: easy, fcfs, sjf …, 'name: {order: sjf, backfill: easy}' or "
            "NAME={JSON options}; repeatable. All run in one process."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Of several workloads: WORKLOAD=SCHEDULER,SCHEDULER if not all; @1-3 are replicates."),
    ] = None,
    known_schedule: Annotated[
        Path | None,
        typer.Option(help="Also write the schedule as SWF with a header that states every convention."),
    ] = None,
    code: Annotated[str, typer.Option(help="With --scheduler: remake runs that were not made under this mark.")] = "",
) -> None:
    """
    Simulate a workload under a scheduler, and print the metrics.

    With several --scheduler the metrics of each stand side by side. Times are seconds; awrt and awwt are response and
    wait time weighted by processors times run time; the squashed area is processor-seconds; the bounded slowdown
    counts run times below 10 s as 10 s.

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
        "centres": tuple(_centre(text) for text in centre or ()),
        "dispatch": dispatch,
        "half_life": half_life,
        "user_shares": read_mapping(user_shares, "--user-shares"),
        "group_shares": read_mapping(group_shares, "--group-shares"),
        "priority": read_mapping(priority, "--priority"),
        "limits": read_mapping(limits, "--limits"),
        "without_status": tuple(without_status or ()),
        "shapes": shapes,
        "shape_choice": shape_choice,
        "efficiency": efficiency,
        "feedback": feedback,
        "policy": policy,
        "policy_options": read_object(policy_options, "--policy-options") if policy_options else None,
    }
    workloads = [Path(name) for path in workload for name in expand(str(path))]
    if scheduler and output is None:
        if known_schedule:
            raise SwflowError("simulate: --known-schedule is for one scheduler, given by its options")
        if len(workloads) > 1:
            raise SwflowError("simulate: several workloads need a .json file for the list of their runs: -o runs.json")
        _print_each(workloads[0], scheduler, processors)
    elif scheduler and output is not None:
        _simulate_all(workloads, scheduler, output, code, only or ())
    elif len(workloads) > 1:
        raise SwflowError("simulate: several workloads need named schedulers: --scheduler NAME={JSON options}")
    else:
        _simulate_one(workloads[0], options, processors, output, known_schedule)


def _window(text: str) -> dict[str, Any]:
    """Read FROM/UNTIL/PROCESSORS."""
    try:
        since, until, processors = text.split("/")
        ends = [_moment(end) for end in (since, until)]
        return {"from": ends[0], "until": None if until == "never" else ends[1], "processors": int(processors)}
    except ValueError:
        raise SwflowError(
            f"--unavailable: {text!r} is not FROM/UNTIL/PROCESSORS, such as 0/3600/16, 0/never/16 or "
            "1996-12-24/1996-12-27/100"
        ) from None


def _centre(text: str) -> dict[str, Any]:
    """Read PROCESSORS, or PARTITION=PROCESSORS."""
    partition, equals, processors = text.rpartition("=")
    if not processors.isdecimal() or (equals and not partition):
        raise SwflowError(f"--centre {text!r}: write a number of processors, or PARTITION=PROCESSORS")
    return {"processors": int(processors)} | ({"partition": partition} if equals else {})


def _moment(text: str) -> float | str:
    """Read seconds, or leave a day as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def _simulate_all(
    workloads: Sequence[Path], schedulers: Sequence[str], output: Path, code: str, only: Sequence[str]
) -> None:
    """Simulate named schedulers, keeping the runs that are as they would be."""
    from swflow.runs import simulate_all, simulate_replicates

    if output.suffix in (".parquet", ".csv", ".swf", ".gz"):
        raise SwflowError("simulate: --scheduler needs a folder for the runs: -o results/runs/WORKLOAD")
    several = output.suffix == ".json"
    if len(workloads) > 1 and not several:
        raise SwflowError(f"simulate: several workloads need a .json file for the list of their runs, not {output}")
    options = named_schedulers(schedulers)
    chosen = _only(only, {path.stem for path in workloads}, options)
    total = sum(len(chosen.get(path.stem, options)) for path in workloads)
    with progress_bar("simulate", total) as advance:

        def report(run: str, kept: bool) -> None:
            advance()
            say(f"{run}: {'kept' if kept else 'simulated'}")

        if several:
            simulate_replicates(workloads, options, output, only=chosen, code=code, report=report)
        else:
            simulate_all(workloads[0], options, output, code=code, report=report)
    if not several and not code:  # a person asks, not the workflow
        from swflow.jobs import read_metadata

        found = {name: read_metadata(output / f"{name}.parquet")["metrics"] for name in options}
        _print_metrics(found)


def _print_each(workload: Path, schedulers: Sequence[str], processors: int | None) -> None:
    """Simulate named schedulers, and print their metrics side by side."""
    from swflow.runs import columns_of_run, run
    from swflow.scheduling.scheduler import Scheduler
    from swflow.workloads.clean import open_workload

    chosen = {name: Scheduler.of(name, options) for name, options in named_schedulers(schedulers).items()}
    opened = open_workload(workload, processors, columns=columns_of_run(chosen.values()))
    say_removed(opened)
    found = {}
    with progress_bar("simulate", len(chosen)) as advance:
        for name, one in chosen.items():
            found[name] = run(opened, one).metrics
            advance()
    _print_metrics(found)


def _print_metrics(found: dict[str, dict[str, Any]]) -> None:
    """Print metrics, a column for each scheduler."""
    metrics = dict.fromkeys(name for one in found.values() for name in one)
    rows = [(metric, *(format_number(one.get(metric)) for one in found.values())) for metric in metrics]
    print_table(["metric", *found], rows)


def _only(texts: Sequence[str], workloads: Container[str], schedulers: Container[str]) -> dict[str, list[str]]:
    """Read WORKLOAD=SCHEDULER,SCHEDULER."""
    chosen: dict[str, list[str]] = {}
    for text in texts:
        names, equals, listed = text.partition("=")
        for workload in expand(names):
            unknown = [name for name in listed.split(",") if name not in schedulers]
            if not equals or workload not in workloads or unknown:
                raise SwflowError(f"--only: {text!r} is not WORKLOAD=SCHEDULER,SCHEDULER of those that are given")
            chosen[workload] = listed.split(",")
    return chosen


def _simulate_one(
    workload: Path, options: dict[str, Any], processors: int | None, output: Path | None, known_schedule: Path | None
) -> None:
    """Simulate one scheduler, print its metrics, and write its outcomes if asked to."""
    from swflow.runs import columns_of_run, describe_run, run, write_run
    from swflow.scheduling.scheduler import Scheduler
    from swflow.workloads.clean import open_workload

    if output:
        check_ending(output, ".parquet", ".csv", ".swf", ".swf.gz")
    if known_schedule:
        check_ending(known_schedule, ".swf", ".swf.gz")
    chosen = Scheduler(**options)
    is_log = known_schedule is not None or (output is not None and output.suffix not in (".parquet", ".csv"))
    opened = open_workload(workload, processors, columns=None if is_log else columns_of_run([chosen]))
    say_removed(opened)
    result = run(opened, chosen)
    missing = opened.jobs.height - result.table.height
    if missing:
        say(f"{opened.name}: {missing:,} of {opened.jobs.height:,} jobs left out (by status, or without a wait time)")
    name = output.name.partition(".")[0] if output else f"{options['order']}-{options['backfill']}"
    if output and output.suffix == ".parquet":
        write_run(result, output, describe_run(workload, opened, name, chosen))
    elif output and output.suffix == ".csv":
        from swflow.files import atomic_path

        with atomic_path(output) as temporary:
            result.outcomes.write_csv(temporary)
    elif output:
        from swflow.swf import run_as_swf, write_swf

        write_swf(output, run_as_swf(opened.jobs, result.outcomes), opened.header)
    if known_schedule:
        from swflow.scheduling.known import write_known_schedule

        write_known_schedule(known_schedule, opened, result.outcomes, chosen)
        say(f"{known_schedule}: {result.table.height:,} jobs with the conventions of their schedule")
    print_table(["metric", opened.name], [(metric, format_number(value)) for metric, value in result.metrics.items()])
