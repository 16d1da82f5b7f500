"""Commands that make workloads of workloads: select, machine, memory, moldable, model, scale, intensify."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.options import CopiedShare, Copies, Input, Output, ParquetOutput, Processors, Seed, WithoutStatus
from swflow.cli.terminal import check_ending, read_number, read_pairs, require_parquet, save, save_parquet, say, write
from swflow.errors import SwflowError


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

    Times in conditions are seconds; the names are the columns of the job table. A condition has + - * / // % **,
    == != < <= > >=, and, or, not, `status in (0, 5)`, `user_id is null`; what is unknown does not fulfil it.

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
    save(selected, output)


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

    require_parquet(output, "capacities")
    laid = with_machine(
        open_workload(workload),
        processors=processors,
        nodes=nodes,
        processors_per_node=processors_per_node,
        preset=preset,
        capacities=read_pairs(capacities, "--capacity", "memory_bandwidth=6000"),
    )
    save(laid, output)


@app.command()
def memory(
    workload: Input,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The file to write: .parquet.")] = None,
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
    file: Annotated[
        Path | None, typer.Option(help="Instead: a text file with a line per job, its id and the demand of a process.")
    ] = None,
    column: Annotated[int, typer.Option(help="With --file: which column is the demand; the id is column 1.")] = 2,
    like: Annotated[
        Path | None,
        typer.Option(help="Draw with size and run time, by a model fitted to the --from-log memory of this workload."),
    ] = None,
    fitted: Annotated[Path | None, typer.Option(help="The same by a fitted model (.json).")] = None,
    save_fit: Annotated[
        Path | None, typer.Option(help="Instead of all this, fit the model to WORKLOAD, and write it here (.json).")
    ] = None,
    resource: Annotated[
        str | None, typer.Option(help="The resource, and the new column: memory_bandwidth; if in MB, memory.")
    ] = None,
    seed: Seed = 1,
) -> None:
    """
    Give every job a demand for a resource that the processes of a node share, such as memory bandwidth.

    Scenarios (high, medium, low): HIGH 0.8 0.1 0.1, MED 0.5 0.1 0.4, LOW 0.1 0.1 0.8. A job keeps its demand whatever
    other jobs there are; the capacities are those of `swflow machine`.

    With --like or --fitted large and long jobs demand as in a log that records memory; with shares or demands, those
    jobs have the high levels whose memory by the model is highest.

    Examples: `swflow memory kth.parquet -o kth+memory-high.parquet --high 0.8 --medium 0.1 --low 0.1`,
    `swflow memory kth.parquet -o kth+memory-joint.parquet --like cm5.parquet --high 0.8 --medium 0.1 --low 0.1`
    """
    from swflow.randomness import step_name
    from swflow.workloads.clean import open_workload
    from swflow.workloads.memory import describe_demands
    from swflow.workloads.memory import memory as give_demands
    from swflow.workloads.memory_model import describe_goodness, fit_memory, read_memory_model, write_memory_model

    if (output is None) == (save_fit is None):
        raise SwflowError("memory: name a workload to write with -o, or with --save-fit a model to fit, not both")
    if like and fitted:
        raise SwflowError("memory: --like fits a model, --fitted names one; leave out one of them")
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
    given = give_demands(
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
    say(describe_demands(given.history[-1]))


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
    save_parquet(molded, output, "shapes")
    entry = molded.history[-1]
    say(
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
        int | None,
        typer.Option(help="Of minh-wolters and mbc-ls: the larger, the more alike are neighbours; by default 1, off."),
    ] = None,
    repeats: Annotated[
        str | None,
        typer.Option(
            help="Of minh-wolters: how run times repeat: fitted (as in the log; the default), at-least-two, printed."
        ),
    ] = None,
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
    from swflow.workloads.model import (
        describe_fit,
        drawn_with,
        fit,
        generate,
        read_model,
        with_goodness,
        with_measures,
        write_model,
    )

    if output is None and save_fit is None:
        raise SwflowError("model: nothing to write; name a workload with -o, or a fitted model with --save-fit")
    if output:
        check_ending(output, ".parquet", ".swf", ".swf.gz")
    if save_fit:
        check_ending(save_fit, ".json")
    source = open_workload(workload) if workload else None
    if fitted:
        fitted_model = read_model(fitted)
    elif source:
        fitted_model = fit(source, model=model, arrivals=arrivals, components=components)
    else:
        raise SwflowError("model: name a workload to fit to, or a fitted model with --fitted")
    fitted_model = drawn_with(fitted_model, window=window, repeats=repeats)
    if save_fit:
        fitted_model = with_goodness(fitted_model, source) if source else fitted_model
        write_model(fitted_model, save_fit)
        say(f"{save_fit}: {fitted_model.model}, fitted to {fitted_model.jobs:,} jobs of {fitted_model.source}")
    if output:
        rng = step_generator(seed, source.name if source else fitted_model.source, output, "model")
        synthetic = generate(fitted_model, rng, jobs=jobs)
        synthetic = with_measures(synthetic, source) if source else synthetic
        write(synthetic, output)
        say(f"{output}: {describe_fit(synthetic)}")


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
    factor: Annotated[float, typer.Option(help="By how much the load is multiplied.")],
    by: Annotated[str, typer.Option(help="What is changed: arrivals or run-times.")] = "arrivals",
) -> None:
    """
    Multiply the load that a workload offers, by denser arrivals or longer run times: the conventional way.

    Seconds are not rounded. What else this changes is said in docs/explanation/heatmaps.md.

    Example: `swflow intensify kth.parquet -o kth+load-1.2.parquet --factor 1.2 --by arrivals`
    """
    from swflow.workloads.clean import open_workload
    from swflow.workloads.intensify import intensify as multiply

    save(multiply(open_workload(workload), factor, by=by), output)
