"""Commands that simulate: simulate, adjust, sweep."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from swflow.cli.app import app
from swflow.cli.option_values import named_schedulers, read_schedulers, require_own_machine
from swflow.cli.options import OUTPUT, CopiedShare, Copies, Input, NamedSchedulers, Processors, Seed, Threads
from swflow.cli.scheduler_options import given_options, scheduler_options, with_scheduler_options
from swflow.cli.terminal import check_ending, print_table, progress_bar, say, say_log, say_removed, tracked
from swflow.errors import SwflowError, shell_word
from swflow.names import expand
from swflow.scheduling.options import help_of

if TYPE_CHECKING:
    from swflow.analysis.metrics import Middle
    from swflow.jobs.table import Workload
    from swflow.scheduling.option_kinds import Unchecked
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.runs import Run


@app.command()
def adjust(
    workload: Input,
    processors: Processors,
    d: CopiedShare = 50.0,
    order: str = "fcfs",
    backfill: Annotated[str, Option(help=help_of("backfill"))] = "none",
    scheduler: NamedSchedulers = None,
    seeds: int = 5,
    tolerance: float = 0.02,
    first_crossing: bool = False,
    step: float = 0.01,
    seed: Seed = 1,
    threads: Threads = 1,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """
    Search the scaling factor at which a scaled workload has the AWRT of its source.

    The precise factor yields a lighter workload, because narrow copies pack better. The command prints one row per
    factor: the means over the seeds of AWRT and AWWT (s), the standard error, and the deviation from the AWRT of the
    source. With --first-crossing, it prints one row per scheduler: the factors at which 5, 50 and 95 % of the searches
    have ended.

    Example: `swflow adjust kth.parquet --processors 1024 --d 50 --order fcfs --backfill easy -o curve.parquet`

    Options
    -------
    order: The order of the queue: fcfs, sjf …, or a formula (see swflow simulate).
    seeds: Make at least this number of draws per factor.
    tolerance: Accept this relative difference of the AWRT from that of the source.
    first_crossing: Search the first factor at which a single draw reaches the AWRT of the source; one search per seed.
    step: With --first-crossing: the difference between consecutive factors.
    output: Also write all draws to this file: .parquet (for load) or .csv.
    """
    from polars import concat

    from swflow.files.atomic import check_output
    from swflow.studies import sweeps
    from swflow.workload.clean import open_workload

    if output:
        check_output(output)
    chosen = read_schedulers(scheduler, {f"{order}-{backfill}": {"order": order, "backfill": backfill}})
    opened = open_workload(workload)
    options: dict[str, Any] = {"d": d, "replicates": seeds, "seed": seed, "threads": threads}
    lines: list[tuple[Any, ...]]
    if first_crossing:
        with progress_bar("adjust", 40) as advance:
            found, table = sweeps.first_crossing(opened, processors, chosen, step=step, **options, progress=advance)
        columns = ["scheduler", "searches", "factor_5", "factor_50", "factor_95", "without_end"]
        lines = [
            (name, len(factors), *sweeps.crossing_quantiles(factors), factors.count(None))
            for name, factors in found.items()
        ]
    else:
        tables = []
        for name, one in chosen.items():
            with progress_bar(f"adjust, {name}", 40) as advance:
                search, rows = sweeps.adjust(
                    opened, processors, one, name=name, tolerance=tolerance, **options, progress=advance
                )
            mean, error = search.deviation(search.factor)
            verdict = "factor" if search.fits else "no factor fits; the nearest is"
            say(f"{opened.name}, {name}: {verdict} {search.factor:g}: AWRT {mean:+.2%} (standard error {error:.2%})")
            tables.append(rows)
        table = concat(tables)
        columns, lines = sweeps.curve(table)
    if output:
        sweeps.write_sweep(table, output, opened.name, chosen)
    print_table(columns, lines)


@app.command()
def sweep(
    workload: Input,
    output: Annotated[Path, OUTPUT],
    processors: Processors,
    d: list[str] | None = None,
    variant: list[str] | None = None,
    factor: list[str] | None = None,
    excess: list[str] | None = None,
    copies: Copies = None,
    scheduler: NamedSchedulers = None,
    seeds: int = 5,
    seed: Seed = 1,
    threads: Threads = 1,
) -> None:
    """
    Scale a workload with many settings, simulate each, and write the metrics.

    The file has one row per setting, draw and scheduler (default: easy and fcfs), and the rows of the source. Each row
    names the workload that `swflow scale` writes with the same options and name.

    Example: `swflow sweep kth.parquet -o kth+d.parquet --processors 1024 --d 0:50:1 --variant precise --seeds 5`

    Options
    -------
    output: Write the metrics to this file: .parquet (for load) or .csv.
    d: Copy this share of the jobs, in percent: a number or FROM:TO:STEP; repeatable (default: 50).
    variant: Scale by this variant: integer, precise-size or precise; repeatable (default: precise).
    factor: Scale by this factor: a number or FROM:TO:STEP; repeatable (default: the factor of the variant).
    excess: Scale by the precise factor plus this percentage: a number or FROM:TO:STEP; repeatable.
    seeds: Make this number of draws per setting.
    """
    from swflow.files.atomic import check_output
    from swflow.studies import sweeps
    from swflow.studies.points import values
    from swflow.workload.clean import open_workload

    check_output(output)
    opened = open_workload(workload)
    chosen = read_schedulers(scheduler, {"easy": {"backfill": "easy"}, "fcfs": {"backfill": "none"}})
    settings = sweeps.points(
        opened,
        processors,
        d=[value for text in d or ["50"] for value in values(text, "--d")],
        variant=variant or ["precise"],
        factor=[value for text in factor or () for value in values(text, "--factor")],
        excess=[value for text in excess or () for value in values(text, "--excess")],
        copies=copies,
    )
    with progress_bar("sweep", len(settings) * seeds) as advance:
        rows = sweeps.sweep(opened, settings, chosen, replicates=seeds, seed=seed, threads=threads, progress=advance)
    sweeps.write_sweep(rows, output, opened.name, chosen)
    say(f"{output}: {len(settings):,} settings, {seeds:,} draws each, under {', '.join(chosen)}")


@app.command()
@with_scheduler_options
def simulate(
    workload: list[Path],
    output: Annotated[Path | None, OUTPUT] = None,
    processors: int | None = None,
    scheduler: list[str] | None = None,
    plan: Path | None = None,
    store: Path | None = None,
    known_schedule: Path | None = None,
    warm_up: str = "",
    cool_down: str = "",
    **values: Any,
) -> None:
    """
    Simulate a workload under a scheduler, and print the metrics.

    With several --scheduler the metrics are printed side by side. Times are in seconds. awrt and awwt are the response
    and wait times weighted by processors times run time. The squashed area is in processor-seconds. The bounded
    slowdown counts run times below 10 s as 10 s.

    Examples: `swflow simulate kth.swf.gz --order fcfs --backfill easy -o run.parquet`,
    `swflow simulate kth.swf.gz --order "-(wait / estimate) ** 3 * processors" --backfill easy`,
    `swflow simulate kth.swf.gz --scheduler easy --scheduler 'mine: {order: sjf, backfill: easy}'`

    Options
    -------
    workload: A workload (.parquet) or a log (.swf, .swf.gz); with --scheduler also several: NAME@1-20.parquet.
    output: Write the outcomes to this file: .parquet, .csv, .swf or .swf.gz; with --scheduler to this folder; with
        --plan, or for several workloads, to a folder per workload in this folder.
    processors: The number of processors of the machine (default: that of the workload).
    scheduler: Simulate this scheduler instead of the options: fcfs, easy, conservative, sjbf, an order (sjf, wfp3, f1
        …) with EASY backfilling, ORDER-conservative, 'name: {order: sjf, backfill: easy}' or NAME={JSON options};
        repeatable.
    plan: Simulate the runs of this JSON file instead: `schedulers` maps names to options, `runs` maps workloads to
        names (default: all schedulers).
    store: Keep the runs of --plan in this folder, too, and simulate only those that it does not have with the same
        workload, options and names.
    known_schedule: Also write the schedule as SWF with a header that states all conventions.
    warm_up: Exclude the jobs submitted first from the metrics: '30 days' or '1000 jobs' (default: none).
    cool_down: Exclude the jobs submitted last from the metrics: '30 days' or '1000 jobs' (default: none).
    """
    from swflow.analysis.metrics import Middle

    say_log()
    options = scheduler_options(values)
    middle = Middle(warm_up, cool_down)
    workloads = [Path(name) for path in workload for name in expand(str(path))]
    if store is not None and plan is None:
        raise SwflowError("simulate: --store; expected a plan of runs: --plan FILE")
    if plan or scheduler:
        _check_named(scheduler, plan, given_options(values), known_schedule)
    if plan or (scheduler and output is not None):
        if output is None:
            raise SwflowError("simulate: --plan; expected a folder for the runs: -o results/runs")
        require_own_machine(processors, "the runs of a folder have")
        _simulate_all(workloads, scheduler or (), plan, output, middle, store)
    elif scheduler:
        if len(workloads) > 1:
            raise SwflowError("simulate: several workloads; expected a folder for the runs: -o results/runs")
        chosen = [*read_schedulers(scheduler, {}).items()]
        opened = _opened(workloads[0], processors, [one for _, one in chosen])
        _print_metrics({name: _run(opened, one, middle).metrics for name, one in tracked("simulate", chosen)})
    elif len(workloads) > 1:
        raise SwflowError("simulate: several workloads; expected named schedulers: --scheduler NAME={JSON options}")
    else:
        _simulate_one(workloads[0], options, processors, output, known_schedule, middle)


def _check_named(
    scheduler: Sequence[str] | None, plan: Path | None, given: Sequence[str], known_schedule: Path | None
) -> None:
    """Raise an error for options of a single scheduler beside named ones, which would be without effect."""
    where = "--plan" if plan else "--scheduler"
    if scheduler and plan:
        raise SwflowError("simulate: --scheduler: the schedulers are those of --plan; leave one of them out")
    if given:
        hint = "as a key of the scheduler, such as --scheduler 'mine: {order: sjf, backfill: easy}'"
        raise SwflowError(f"simulate: {given[0]}: without effect beside {where}; expected it {hint}")
    if known_schedule:
        raise SwflowError(
            f"simulate: --known-schedule: without effect beside {where}; expected options, such as --order"
        )


def _simulate_all(
    workloads: Sequence[Path],
    schedulers: Sequence[str],
    plan: Path | None,
    output: Path,
    middle: "Middle",
    store: Path | None = None,
) -> None:
    """Simulate named schedulers, or those of a plan, and write the runs to a folder, or to one per workload."""
    from swflow.files.store import Store
    from swflow.files.tables import read_metadata
    from swflow.studies.runs import read_simulations, simulate_all

    if output.suffix in (".parquet", ".csv", ".swf", ".gz"):
        raise SwflowError("simulate: --scheduler; expected a folder for the runs: -o results/runs/WORKLOAD")
    names = [path.stem for path in workloads]
    chosen = read_simulations(plan, names) if plan else dict.fromkeys(names, named_schedulers(schedulers))
    is_one = plan is None and len(workloads) == 1
    kept, simulated = Store(store) if store else None, 0
    with progress_bar("simulate", sum(map(len, chosen.values()))) as advance:
        for path in workloads:
            folder = output if is_one else output / path.stem
            made = simulate_all(
                path, chosen[path.stem], folder, middle=middle, report=lambda run: advance(), store=kept,
                keep_others=plan is None,
            )  # fmt: skip
            simulated += len(made)
    if is_one:
        _print_metrics({name: read_metadata(output / f"{name}.parquet")["metrics"] for name in chosen[names[0]]})
    else:
        runs = sum(map(len, chosen.values()))
        say(f"{output}: {runs:,} runs of {len(workloads):,} workloads; {simulated:,} simulated")


def _print_metrics(found: dict[str, dict[str, float | None]]) -> None:
    from swflow.analysis.metrics import METRICS

    further = dict.fromkeys(metric for one in found.values() for metric in one if metric not in METRICS)
    rows = [(metric, *(one.get(metric) for one in found.values())) for metric in (*METRICS, *further)]
    print_table(["metric", *found], rows)


def _opened(
    file: Path, processors: int | None, schedulers: Sequence["Scheduler"], all_columns: bool = False
) -> "Workload":
    """Open a workload; note what the log tells about the site and no scheduler considers: its partitions, and GPUs."""
    from swflow.log.importers.records import GPUS
    from swflow.studies.runs import columns_of_run
    from swflow.studies.site_scheduler import is_pool
    from swflow.workload.clean import open_workload

    workload = open_workload(file, processors, columns=None if all_columns else columns_of_run(schedulers))
    say_removed(workload)
    notes = {name: count for entry in workload.history for name, count in (entry.get("notes") or {}).items()}
    resources = [workload.machine.resources, *(one.resources or {} for one in schedulers)]
    resources += [cluster.get("resources") or {} for one in schedulers for cluster in one.clusters]
    partitions = len(workload.header.get("Partition", ()))
    ignored = []
    if partitions > 1 and all(is_pool(one.to_dict()) for one in schedulers):
        ignored.append(f"its {partitions} partitions are simulated as one machine")
    if notes.get(GPUS) and not any("gpus" in one for one in resources):
        ignored.append(f"the GPUs of {notes[GPUS]:,} jobs are not scheduled")
    if ignored and any(one.order != "log" for one in schedulers):
        say(
            f"{workload.name}: note: {' and '.join(ignored)}; "
            f"swflow whatif {shell_word(file)} --scheduler site simulates them"
        )
    return workload


def _run(workload: "Workload", scheduler: "Scheduler", middle: "Middle") -> "Run":
    """Simulate a workload; warn about a recorded schedule that uses more processors than the machine has."""
    from swflow.studies.runs import run

    result, machine = run(workload, scheduler, middle), workload.machine.processors
    if scheduler.order == "log" and result.peak_processors > machine:
        say(
            f"{workload.name}: warning: the recorded schedule uses up to {result.peak_processors:,} processors of "
            f"{machine:,}; its utilization and load are not comparable with those of a simulated one; see: swflow check"
        )
    return result


def _simulate_one(
    workload: Path,
    options: "Unchecked",
    processors: int | None,
    output: Path | None,
    known_schedule: Path | None,
    middle: "Middle",
) -> None:
    """Simulate one scheduler, print its metrics, and write its outcomes to the output, if any."""
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.runs import add_to_list, describe_run, write_run

    if output:
        check_ending(output, ".parquet", ".csv", ".swf", ".swf.gz")
    if known_schedule:
        check_ending(known_schedule, ".swf", ".swf.gz")
    chosen = Scheduler(**options)
    is_log = known_schedule is not None or (output is not None and output.suffix not in (".parquet", ".csv"))
    opened = _opened(workload, processors, [chosen], all_columns=is_log)
    result = _run(opened, chosen, middle)
    missing = opened.jobs.height - result.table.height
    if missing:
        why = "by status, without a wait time, or cancelled in the queue"
        say(f"{opened.name}: {missing:,} of {opened.jobs.height:,} jobs left out ({why})")
    name = output.name.partition(".")[0] if output else f"{options['order']}-{options['backfill']}"
    if output and output.suffix == ".parquet":
        write_run(result, output, describe_run(workload, opened, name, chosen, middle=middle))
        add_to_list(output, result.seconds)
    elif output and output.suffix == ".csv":
        from swflow.files.atomic import write_text

        write_text(output, result.outcomes.write_csv())
    elif output:
        from swflow.log.swf import run_as_swf, write_swf
        from swflow.workload.export import left_out_in_words, without_field, written_header

        write_swf(output, run_as_swf(opened.jobs, result.outcomes), written_header(opened))
        left_out = without_field(opened, output.suffix, is_run=True)
        if left_out:
            say(f"{output}: {left_out_in_words(left_out, output.suffix)}")
    if known_schedule:
        from swflow.scheduling.reference_schedule import write_known_schedule

        write_known_schedule(known_schedule, opened, result.outcomes, chosen)
        say(f"{known_schedule}: {result.table.height:,} jobs with the conventions of their schedule")
    _print_metrics({opened.name: result.metrics})
