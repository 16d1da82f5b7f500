"""Commands that transform workloads: select, machine, memory, moldable, model, scale, intensify."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from swflow.cli.app import app
from swflow.cli.option_values import read_number, read_pairs, read_units
from swflow.cli.options import OUTPUT, CopiedShare, Copies, Input, Output, Processors, Seed, WithoutStatus
from swflow.cli.terminal import check_ending, require_parquet, save, say, write
from swflow.errors import SwflowError


@app.command()
def select(
    workload: Input,
    output: Output,
    jobs: int | None = None,
    status: list[int] | None = None,
    without_status: WithoutStatus = None,
    where: str | None = None,
) -> None:
    """
    Select jobs of a workload.

    A condition uses the columns of the job table, numbers, + - * / // % **, == != < <= > >=, and, or, not,
    `status in (0, 5)` and `user_id is null`. Times are in seconds. Unknown values do not satisfy a condition.

    Example: `swflow select kth.parquet -o kth+first-10000.parquet --jobs 10000 --without-status 5`

    Options
    -------
    jobs: Keep this number of jobs, the first ones after the other options.
    status: Keep jobs of this SWF status: 0 failed, 1 completed, 5 cancelled; repeatable.
    where: Keep jobs that satisfy this condition: 'processors <= 32 and run_time > 60'.
    """
    from swflow.workload.clean import open_workload
    from swflow.workload.steps.select import select as select_jobs

    selected = select_jobs(
        open_workload(workload), jobs=jobs, status=status or (), without_status=without_status or (), where=where
    )
    save(selected, output)


@app.command()
def machine(
    workload: Input,
    output: Annotated[Path, OUTPUT],
    processors: int | None = None,
    nodes: int | None = None,
    processors_per_node: int | None = None,
    preset: str | None = None,
    capacities: Annotated[list[str] | None, Option("--capacity", "--capacities")] = None,
    resources: Annotated[list[str] | None, Option("--resource", "--resources")] = None,
) -> None:
    """
    Set the machine of a workload: processors, nodes, capacities that processes on a node share, other resources.

    Properties that are not given are unchanged. Jobs that demand more than the machine has are removed and counted.
    Capacities have the unit of the demands: bandwidths in MB/s, memory in MB.

    Example: `swflow machine kth.parquet -o kth+smp.parquet --nodes 25 --preset alvio-node`

    Options
    -------
    output: Write the workload to this file: .parquet.
    processors: The number of processors of the machine, rounded up to whole nodes.
    nodes: The number of nodes of the machine.
    processors_per_node: The number of processors per node.
    preset: Use this type of node: alvio-node (4 processors, 6000 MB/s of memory bandwidth).
    capacities: The capacity of each node: memory_bandwidth=6000 (MB/s); repeatable.
    resources: The machine's units of a resource besides processors, by the name of a job column: gpus=512; repeatable.
    """
    from swflow.workload.clean import open_workload
    from swflow.workload.steps.set_machine import with_machine

    require_parquet(output, "capacities")
    laid = with_machine(
        open_workload(workload),
        processors=processors,
        nodes=nodes,
        processors_per_node=processors_per_node,
        preset=preset,
        capacities=read_pairs(capacities, "--capacity", "memory_bandwidth=6000"),
        resources=read_units(resources, "--resource"),
    )
    save(laid, output)


@app.command()
def memory(
    workload: Input,
    output: Annotated[Path | None, OUTPUT] = None,
    high: float | None = None,
    medium: float | None = None,
    low: float | None = None,
    high_level: float = 2000,
    medium_level: float = 1000,
    low_level: float = 500,
    demands: Annotated[list[str] | None, Option("--demand", "--demands")] = None,
    from_log: str | None = None,
    file: Path | None = None,
    column: int = 2,
    like: Path | None = None,
    fitted: Path | None = None,
    save_fit: Path | None = None,
    resource: str | None = None,
    seed: Seed = 1,
) -> None:
    """
    Give each job a demand for a resource that processes on a node share, such as memory bandwidth.

    Published scenarios (high, medium, low): HIGH 0.8 0.1 0.1, MED 0.5 0.1 0.4, LOW 0.1 0.1 0.8. The demand of a job
    does not depend on the other jobs. `swflow machine` sets the capacities.

    With --like or --fitted, demands depend on size and run time as in a log that records memory. If shares or demands
    are given, too, the jobs with the most memory in the model get the high levels.

    Examples: `swflow memory kth.parquet -o kth+memory-high.parquet --high 0.8 --medium 0.1 --low 0.1`,
    `swflow memory kth.parquet -o kth+memory-joint.parquet --like cm5.parquet --high 0.8 --medium 0.1 --low 0.1`

    Options
    -------
    output: The file to write: .parquet.
    high: The share of jobs with high demand, 0 to 1 (default: 0.8 if no share is given).
    medium: The share of jobs with medium demand, 0 to 1 (default: 0.1 if no share is given).
    low: The share of jobs with low demand, 0 to 1 (default: 0.1 if no share is given).
    high_level: The high demand of a process, MB/s.
    medium_level: The medium demand of a process, MB/s.
    low_level: The low demand of a process, MB/s.
    demands: Give this share of the jobs this demand: 4000=0.25 (MB/s); repeatable.
    from_log: Use the memory that the log records (MB): used or requested.
    file: Read the demands from this text file: one line per job with its id and the demand of a process.
    column: With --file: the column of the demand; column 1 is the id.
    like: Draw demands that depend on size and run time, with a model fitted to the memory of this workload.
    fitted: Draw demands that depend on size and run time, with this fitted model (.json).
    save_fit: Fit the model to WORKLOAD, and write it to this file (.json) instead of a workload.
    resource: The resource and the name of the new column (default: memory_bandwidth; for demands in MB: memory).
    """
    from swflow.jobs.randomness import step_name
    from swflow.workload.clean import open_workload
    from swflow.workload.models.memory_model import describe_goodness, fit_memory, read_memory_model, write_memory_model
    from swflow.workload.steps import memory as step

    if (output is None) == (save_fit is None):
        raise SwflowError("memory: expected either a workload to write (-o) or a model to fit (--save-fit)")
    if like and fitted:
        raise SwflowError("memory: --like and --fitted; expected one of them")
    if save_fit:
        check_ending(save_fit, ".json")
        made = fit_memory(open_workload(workload), from_log or "used")
        write_memory_model(made, save_fit)
        say(f"{save_fit}: {describe_goodness(made)}")
        return
    assert output is not None
    require_parquet(output, "demands")
    source = open_workload(like) if like else None
    joint = fit_memory(source, from_log or "used") if source else read_memory_model(fitted) if fitted else None
    given = step.memory(
        open_workload(workload),
        high=high,
        medium=medium,
        low=low,
        high_level=high_level,
        medium_level=medium_level,
        low_level=low_level,
        demands={
            read_number(demand, "--demand"): share
            for demand, share in read_pairs(demands, "--demand", "4000=0.25").items()
        },
        from_log=None if like else from_log,
        file=file,
        column=column,
        fitted=joint,
        resource=resource,
        seed=seed,
        step=step_name(output, "memory"),
    )
    save(given, output)
    say(step.describe_demands(given.history[-1]))


@app.command()
def moldable(
    workload: Input,
    output: Output,
    pb: float | None = None,
    keep_recorded: bool = True,
    sigma: str = "clipped",
    seed: Seed = 1,
) -> None:
    """
    Give each job a list of shapes (processors and run time) with the model of Cirne and Berman (2001).

    The sizes follow the survey among users in the paper, the run times (s) follow Downey's speedup. The column `shapes`
    holds them for `swflow simulate --shapes`. The same seed, names and input give the same file.

    Example: `swflow moldable kth.parquet -o kth+moldable.parquet --pb 0.734 --seed 1`

    Options
    -------
    pb: The probability of powers of two, 0 to 1 (default: their share among the sizes of the jobs).
    keep_recorded: Always include the recorded size in the shapes of a job.
    sigma: Set negative values of Downey's sigma to 0 (`clipped`), or draw it from a `truncated` distribution.
    """
    from swflow.jobs.randomness import step_generator
    from swflow.workload.clean import open_workload
    from swflow.workload.steps.moldable import moldable as make_moldable

    require_parquet(output, "shapes")
    source = open_workload(workload)
    molded = make_moldable(
        source, step_generator(seed, source.name, output, "moldable"), pb=pb, keep_recorded=keep_recorded, sigma=sigma
    )
    save(molded, output)
    entry = molded.history[-1]
    say(
        f"{entry['shapes']:,} shapes; {entry['rigid']:,} jobs have one; "
        f"powers of two with probability {entry['pb']:.3f}; "
        f"recorded sizes below the minimum: {entry['below_minimum']:,}, above the maximum: {entry['above_maximum']:,}"
    )


@app.command()
def model(
    workload: Annotated[Path | None, Argument()] = None,
    output: Annotated[Path | None, OUTPUT] = None,
    model: str = "minh-wolters",
    jobs: int | None = None,
    arrivals: str = "log",
    components: int = 20,
    window: int | None = None,
    repeats: str | None = None,
    fitted: Path | None = None,
    save_fit: Path | None = None,
    seed: Seed = 1,
) -> None:
    """
    Fit a model to a workload, and generate a synthetic workload.

    The fitted model is a readable file, with which others can generate workloads without the log. With
    --arrivals daily-cycle it contains no submit times. The files of resample and repetition contain the jobs of the
    log, without their order and users. Run times are whole seconds. The same seed, source and output name give the
    same file.

    Examples: `swflow model kth.parquet -o kth+like.parquet --model minh-wolters`,
    `swflow model kth.parquet --save-fit kth.json --arrivals daily-cycle`,
    `swflow model --fitted kth.json -o like-kth.parquet --jobs 100000 --seed 7`

    Options
    -------
    workload: Fit to this workload (.parquet) or log (.swf, .swf.gz), or compare with it.
    output: Write the synthetic workload to this file: .parquet, .swf or .swf.gz.
    model: The model: minh-wolters, mbc-ls, lublin, song, resample or repetition.
    jobs: Generate this number of jobs (default: that of the workload).
    arrivals: The submit times: log (those of the workload), or daily-cycle (a fitted process).
    components: For minh-wolters and mbc-ls: the largest number of Gaussians of the run times.
    window: For minh-wolters and mbc-ls: the window of jobs within which run times are made similar (default: 1, off).
    repeats: For minh-wolters: the repetition of run times: fitted (as in the log), at-least-two, or printed (default:
        fitted).
    fitted: Use this fitted model (.json) instead of fitting one.
    save_fit: Write the fitted model to this file (.json).
    """
    from swflow.jobs.randomness import step_generator
    from swflow.workload.clean import open_workload
    from swflow.workload.steps import model as models

    if output is None and save_fit is None:
        raise SwflowError("model: no output; expected a workload (-o) or a fitted model (--save-fit)")
    if output:
        check_ending(output, ".parquet", ".swf", ".swf.gz")
    if save_fit:
        check_ending(save_fit, ".json")
    source = open_workload(workload) if workload else None
    if fitted:
        fitted_model = models.read_model(fitted)
    elif source:
        fitted_model = models.fit(source, model=model, arrivals=arrivals, components=components)
    else:
        raise SwflowError("model: no input; expected a workload to fit to, or a fitted model (--fitted)")
    fitted_model = models.drawn_with(fitted_model, window=window, repeats=repeats)
    if save_fit:
        fitted_model = models.with_goodness(fitted_model, source) if source else fitted_model
        models.write_model(fitted_model, save_fit)
        say(f"{save_fit}: {fitted_model.model}, fitted to {fitted_model.jobs:,} jobs of {fitted_model.source}")
    if output:
        rng = step_generator(seed, source.name if source else fitted_model.source, output, "model")
        synthetic = models.generate(fitted_model, rng, jobs=jobs)
        synthetic = models.with_measures(synthetic, source) if source else synthetic
        write(synthetic, output)
        say(f"{output}: {models.describe_fit(synthetic)}")


@app.command()
def scale(
    workload: Input,
    output: Output,
    processors: Processors,
    d: CopiedShare = 50.0,
    variant: str = "precise",
    factor: float | None = None,
    copies: Copies = None,
    seed: Seed = 1,
) -> None:
    """
    Scale a workload to a machine of another size (Ernemann, Song and Yahyapour 2003).

    A share d of the jobs is copied, the others are widened, by the factor. Run times and submit times are unchanged.
    The column `source_job_id` contains the job from which a copy was made. The same seed and names give the same file.

    Example: `swflow scale kth.parquet -o kth+scaled.parquet --processors 1024 --d 50 --variant precise`

    Options
    -------
    variant: How the factor determines widths and copies: integer, precise-size or precise.
    factor: The scaling factor (default: new processors divided by old ones; rounded for integer).
    """
    from swflow.jobs.randomness import step_generator
    from swflow.workload.clean import open_workload
    from swflow.workload.steps.scale import scale as scale_jobs

    opened = open_workload(workload)
    generator = step_generator(seed, opened.name, output, "scale")
    scaled = scale_jobs(opened, processors, d=d, variant=variant, factor=factor, copies=copies, generator=generator)
    save(scaled, output)
    made = scaled.history[-1]
    say(
        f"{scaled.name}: factor {made['factor']:.6g}; {made['widened']:,} jobs widened, {made['copied']:,} copied, "
        f"{made['cut']:,} cut to the machine: {made['jobs']:,} jobs"
    )


@app.command()
def intensify(
    workload: Input,
    output: Output,
    factor: float | None = None,
    by: str = "arrivals",
    load: float | None = None,
) -> None:
    """
    Change the offered load of a workload by denser arrivals, longer run times or more large jobs.

    Times are not rounded. docs/how-to/design-an-evaluation.md describes the side effects.

    Example: `swflow intensify kth.parquet -o kth+load-0.9.parquet --load 0.9`

    Options
    -------
    factor: Multiply the offered load by this factor.
    by: The quantity to change: arrivals, run-times, or sizes (the share of jobs above the median size).
    load: Reach this offered load instead of multiplying by a factor.
    """
    from swflow.workload.clean import open_workload
    from swflow.workload.steps.intensify import intensify as multiply

    save(multiply(open_workload(workload), factor, by=by, load=load), output)
