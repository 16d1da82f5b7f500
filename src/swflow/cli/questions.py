"""Commands that answer an operator's questions: check, whatif, fidelity, power."""

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from swflow.cli.app import app
from swflow.cli.imports import MachineResources, PartitionSizes, as_log
from swflow.cli.option_values import read_units
from swflow.cli.options import OUTPUT, AnyLog, MachineSize, Outputs
from swflow.cli.terminal import (
    check_ending,
    finish_progress,
    print_lines,
    print_table,
    say,
    say_doubts,
    say_removed,
    tracked,
)
from swflow.errors import SwflowError
from swflow.scheduling.option_kinds import Unchecked

if TYPE_CHECKING:
    from swflow.studies.site_scheduler import SiteModel


@app.command()
def check(
    log: AnyLog,
    processors: int | None = None,
    strict: bool = False,
) -> None:
    """
    Check whether a log is plausible: compare it with its machine, and check its internal consistency.

    The checks look for recorded use beyond the machine, jobs wider than the machine, negative waits, clock jumps,
    missing estimates, gaps, bursts of single users, and job steps recorded as jobs. An error is an impossible value; a
    warning makes results doubtful.

    Example: `swflow check my.parquet --processors 2048`

    Options
    -------
    processors: The machine's processors (default: the size that the file states).
    strict: Exit with status 1 if there is an error or a warning.
    """
    from swflow.analysis.plausibility import check_log

    with as_log(log, processors) as source:
        findings, machine, jobs = check_log(source, processors)
    columns = ["severity", "check", "jobs", "first job", "message"]
    if findings:
        print_table(columns, [(one.severity, one.check, one.jobs, one.first_job_id, one.message) for one in findings])
    counts = {word: sum(item.severity == word for item in findings) for word in ("error", "warning", "note")}
    summary = ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())
    is_guessed = any(item.check == "unknown-machine" for item in findings)
    size = machine.describe() + " (guessed)" * is_guessed
    say(f"{log}: {jobs:,} jobs; machine: {size}; {summary}")
    if strict and (counts["error"] or counts["warning"]):
        raise typer.Exit(1)


@app.command()
def whatif(
    log: AnyLog,
    scheduler: list[str] | None = None,
    config: Path | None = None,
    processors: list[str] | None = None,
    nodes: list[str] | None = None,
    resource: list[str] | None = None,
    order: list[str] | None = None,
    backfill: list[str] | None = None,
    limit: list[str] | None = None,
    share: list[str] | None = None,
    estimates: list[str] | None = None,
    arrivals: list[float] | None = None,
    run_times: list[float] | None = None,
    by: list[str] | None = None,
    why: bool = False,
    machine: MachineSize = None,
    partition: PartitionSizes = None,
    machine_resource: MachineResources = None,
    output: Outputs = None,
    as_json: Annotated[bool, Option("--json")] = False,
    study: str | None = None,
) -> None:
    """
    Simulate a log under other schedulers, machines, estimates, arrivals or run times, and compare.

    Every combination is simulated and compared with the base: the first scheduler on the recorded machine and jobs.
    Without --scheduler, the base is the site with the partitions of the log. The answer describes what each variant
    changes, with 95 % confidence intervals over the log's weeks, how well the base reproduces the recorded
    schedule, and what is not simulated. An answer written as .parquet can be loaded into a database with runs (table
    whatifs).

    Examples: `swflow whatif sacct.txt`, `swflow whatif sacct.txt --nodes gpu=+2 -o whatif.html`,
    `swflow whatif sacct.txt --limit user:processors=512 --order fair-share`

    Options
    -------
    scheduler: site (EASY in each partition of the log, or that of --config), site-sjf (the site with another policy),
        site-qos (QOS served in the order of their recorded waits), 'site-mine: {limits: …}' (the site with other
        options), easy, fcfs …, or 'name: {order: sjf, backfill: easy}'; the first is the base (default: site).
        Repeatable.
    config: Take the machine and the scheduler of the site from this config (swflow import site, calibrate).
    processors: Also simulate another size: +20% (also of GPUs and memory), +64 or a number; cpu=+20% for a partition;
        repeatable.
    nodes: Also simulate more or fewer nodes with their processors, GPUs and memory: +2, -10%, or gpu=+2 for a
        partition; repeatable.
    resource: Also simulate other units of a resource besides processors: gpus=+20% or gpus=512; gpu:gpus=+20% for a
        partition; repeatable.
    order: Also simulate the base with another order of the queue: sjf, fair-share …; repeatable.
    backfill: Also simulate the base with another backfilling: none …; repeatable.
    limit: Also simulate the base with limits of running jobs, processors, GPUs or memory (MB): user:processors=512,
        group:physics:jobs=10 or qos:long:user_gpus=none (no limit); several with commas; repeatable.
    share: Also simulate the base with fair share and these shares: group:physics=3,user:ada=2; repeatable.
    estimates: Also simulate other estimates: perfect (run times) or a factor of run times; repeatable.
    arrivals: Also multiply the arrival rate by this factor; repeatable.
    run_times: Also multiply all run times by this factor; repeatable.
    by: Also compare mean waits by user, group, qos or class (narrow or wide, short or long); partitions are compared if
        there are several; repeatable.
    why: Also divide the mean waits by their reasons: limits, no room, order (see: swflow why).
    as_json: Print the answer as JSON.
    study: The study that the answer belongs to in the database.
    """
    from swflow.files.reading import file_digest
    from swflow.log.site import SITE
    from swflow.studies.answer import Question
    from swflow.studies.answer_files import as_json as json_of
    from swflow.studies.answer_files import write_answer
    from swflow.studies.changed_policies import with_policies
    from swflow.studies.variants import variants
    from swflow.studies.whatif import ask

    for path in output or ():
        check_ending(path, ".html", ".json", ".csv", ".parquet")
    site = _site_model(log, machine, partition, machine_resource, config)
    schedulers: dict[str, Unchecked] = {}
    for text in scheduler or (SITE,):
        name, options = site.scheduler(text)
        if name in schedulers:
            raise SwflowError(f"--scheduler: {name}: duplicate name; rename one")
        schedulers[name] = options
    site.require_names(limit or (), share or ())
    schedulers = with_policies(
        schedulers, order=order or (), backfill=backfill or (), limit=limit or (), share=share or ()
    )
    chosen = variants(
        schedulers, processors=processors or (), nodes=nodes or (), resource=resource or (), estimates=estimates or (),
        arrivals=arrivals or (), run_times=run_times or (),
    )  # fmt: skip
    say_removed(site.workload)
    doubts = say_doubts(site.workload)
    groups = [*(["partition"] if len(site.partitions) > 1 else []), *(by or ())]
    answer = ask(site.workload, chosen, by=groups, reasons=why, progress=partial(tracked, "whatif"))
    settings = _settings(config, machine, partition, machine_resource)
    question = Question(site, chosen, answer, str(log), doubts, settings)
    if as_json:
        finish_progress()
        typer.echo(json_of(question))
    else:
        _print_answer(question)
    for path in output or ():
        command = shlex.join(["swflow", *sys.argv[1:]])
        digest = file_digest(log) if path.suffix == ".html" else ""
        write_answer(question, path, study=study, command=command, digest=digest)
        say(f"{path}: written")


def _settings(config: Path | None, machine: int | None, partition: list[str] | None, resource: list[str] | None) -> str:
    """Return the options of a command that describe the site."""
    words = [] if config is None else ["--config", str(config)]
    words += [] if machine is None else ["--machine-processors", str(machine)]
    words += [word for text in partition or () for word in ("--partition", text)]
    words += [word for text in resource or () for word in ("--machine-resource", text)]
    return shlex.join(words)


def _site_model(
    log: Path,
    machine: int | None,
    partition: list[str] | None,
    resource: list[str] | None,
    config: Path | None = None,
) -> "SiteModel":
    """Return the site of a log with the sizes of the command line, or with those of a config."""
    from swflow.studies.site_config import SiteConfig
    from swflow.studies.site_scheduler import SiteModel
    from swflow.workload.clean import open_workload

    sizes, resources = read_units(partition, "--partition"), read_units(resource, "--machine-resource")
    described = None if config is None else SiteConfig.read(config)
    with as_log(log, machine, sizes, described is not None and described.joins_preempted) as source:
        return SiteModel.of(open_workload(source, machine), sizes, resources, described)


def _print_answer(question: Any) -> None:
    """Print the sentences, tables, caveats and next steps of a what-if."""
    from swflow.studies.answer_tables import tables
    from swflow.studies.caveats import caveats, next_steps
    from swflow.studies.sentences import fidelity_in_words, schedulers_in_words, sentences

    print_lines(sentences(question))
    for number, table in enumerate(tables(question)):
        if number or len(question.variants) > 1:
            typer.echo()
        typer.echo(table.title)
        print_table(table.columns, table.rows)
    typer.echo()
    print_lines([fidelity_in_words(question)])
    print_lines(caveats(question))
    print_lines(schedulers_in_words(question), "Schedulers: ")
    print_lines(next_steps(question), "Next: ")


@app.command()
def calibrate(
    log: AnyLog,
    config: Annotated[Path, Option()],
    scheduler: str = "site",
    weeks: Annotated[int, Option(min=1)] = 4,
    test_weeks: Annotated[int, Option(min=1)] = 2,
    output: Annotated[Path | None, OUTPUT] = None,
    machine: MachineSize = None,
) -> None:
    """
    Fit what no file of a site states to some weeks of its log, and measure the scheduler on the following weeks.

    The fit varies limits of users, the usable share of the machine, and the delay of ends. A value is only taken if it
    brings the weekly mean waits closer to the recorded ones in every quarter of the weeks. Columns: mean waits (s) as
    recorded, before and after the fit; weekly: mean absolute error of the weekly mean waits (s), before and fitted;
    distance: Kolmogorov-Smirnov, of the waits (0: identical), before and fitted; order: Kendall's tau of the starts
    (1: identical), before and fitted.

    Example: `swflow calibrate sacct.txt --config site.yaml --weeks 6 -o calibrated.yaml`

    Options
    -------
    config: A config with the site's scheduler, such as `swflow import site` writes.
    scheduler: The scheduler of the config (default: site).
    weeks: Fit to this number of weeks (default: 4).
    test_weeks: Measure this number of weeks after them (default: 2).
    output: Write the config with the fitted scheduler.
    """
    import yaml

    from swflow.analysis import calibration
    from swflow.files.atomic import write_text
    from swflow.files.yaml import with_comments
    from swflow.studies.site_config import SiteConfig, site_content
    from swflow.workload.clean import open_workload

    if output is not None:
        check_ending(output, ".yaml", ".yml")
    content = site_content(config, scheduler)
    site = SiteConfig.read(config, scheduler)
    with as_log(log, machine, None, site.joins_preempted) as source:
        workload = site.on_machine(open_workload(source, machine))
    options, remarks = site.options_for(workload)
    for text in [*site.contradictions(workload), *remarks]:
        say(text)
    found = calibration.calibrate(workload, options, weeks, test_weeks)
    say_removed(workload)
    rows = [(name, f"{value:g}", calibration.PARAMETERS[name].meaning) for name, value in found.values.items()]
    print_table(["parameter", "value", "meaning"], rows)
    columns = ["jobs", "recorded", "before", "after", "weekly", "fitted", "distance", "fitted", "order", "fitted"]
    parts = [("all", "", found.before, found.after), *found.parts]
    print_table(
        ["of", "name", *columns],
        [
            (
                kind, name, one.jobs, f"{one.recorded_mean_wait:.0f}", f"{one.simulated_mean_wait:.0f}",
                f"{two.simulated_mean_wait:.0f}", f"{one.weekly_error:.0f}", f"{two.weekly_error:.0f}",
                f"{one.wait_distance:.3f}", f"{two.wait_distance:.3f}",
                f"{one.start_order:.3f}", f"{two.start_order:.3f}",
            )
            for kind, name, one, two in parts
        ],
    )  # fmt: skip
    print_lines([str(found)])
    say(f"{log}: {found.tried} simulations of {weeks} weeks; measured on the {test_weeks} weeks after them")
    if found.left_out:
        say(f"{log}: {found.left_out:,} jobs are left out: they never start on this machine or under its limits")
    if output is not None:
        fitted = {key: value for key, value in found.options.items() if options.get(key) != value}
        options = json.loads(json.dumps({**site.options, **fitted}, default=str))  # lists and texts, no tuples and days
        content = {**content, "schedulers": {**content["schedulers"], scheduler: options}}
        text = yaml.safe_dump(content, sort_keys=False, width=120, allow_unicode=True)
        write_text(output, with_comments(text, config.read_text(encoding="utf-8")))


@app.command("fidelity")
def compare_with_record(
    log: AnyLog,
    scheduler: list[str] | None = None,
    config: Path | None = None,
    machine: MachineSize = None,
    partition: PartitionSizes = None,
    machine_resource: MachineResources = None,
) -> None:
    """
    Compare the recorded schedule of a log with simulated ones, to find the policy that is closest to the site's.

    Columns: mean wait times (s), from the moment at which a job may start; wait_distance: Kolmogorov-Smirnov distance
    of the waits (0: identical); wait_difference: mean difference of waits of equal rank (s); started_alike: share of
    jobs that start within 60 s of the recorded start; start_order: of the pairs of jobs that waited together and
    started consecutively in the log, the share that start in the same order; utilization_difference: mean difference of
    the hourly utilization; heatmap_distance: in decades of the wait.

    Example: `swflow fidelity my.parquet --scheduler fcfs --scheduler easy --scheduler conservative`

    Options
    -------
    scheduler: site, site-conservative …, easy, fcfs, sjf …, or 'name: {order: sjf, backfill: easy}' (default: fcfs,
        easy, conservative, also in the partitions of the log). Repeatable.
    config: Take the machine and the scheduler of the site from this config (swflow import site, calibrate).
    """
    from dataclasses import replace

    import polars as pl

    from swflow.analysis.fidelity import MEASURES, fidelity
    from swflow.jobs.earlier import as_recorded_until_begin, since_begin
    from swflow.log.site import SITE
    from swflow.scheduling.scheduler import LOG, Scheduler
    from swflow.studies.runs import run
    from swflow.studies.site_scheduler import SITE_QOS
    from swflow.studies.variants import variants
    from swflow.studies.whatif import applied, supported

    site = _site_model(log, machine, partition, machine_resource, config)
    workload = site.workload
    names = ["fcfs", "easy", "conservative"]
    if config is not None:
        names = [SITE]
    elif len(site.partitions) > 1 or site.resources:
        names += [SITE, f"{SITE}-fcfs", f"{SITE}-conservative"]
    names += [SITE_QOS] * (site.priorities is not None)
    asked = variants(dict(site.scheduler(text) for text in scheduler or names))
    chosen, skipped = supported(workload, asked)
    say_removed(workload)
    say_doubts(workload)
    workload = replace(workload, jobs=as_recorded_until_begin(workload.jobs))
    measured = pl.col("job_id").is_in(since_begin(workload.jobs)["job_id"].implode())
    recorded = run(workload, Scheduler.of(LOG, {"order": LOG})).outcomes.filter(measured)
    if recorded.is_empty():
        raise SwflowError(f"{log}: no recorded wait times; expected a log with a recorded schedule")
    rows = []
    for variant in tracked("fidelity", chosen):
        changed = applied(workload, variant)
        simulated = run(changed, Scheduler.of(variant.scheduler, variant.options)).outcomes.filter(measured)
        found = fidelity(recorded, simulated, changed.machine.processors)
        rows.append([variant.name, *(found[measure] for measure in MEASURES)])
    for name, reason in skipped:
        say(f"{name} cannot be simulated: {reason}")
    nearest = 1 + MEASURES.index("wait_distance")
    print_table(["scheduler", *MEASURES], sorted(rows, key=lambda row: (row[nearest] or 0.0, row[0])))
    say(f"{workload.name}: {recorded.height:,} jobs with a recorded wait; most similar waits first")


@app.command()
def power(
    variant: str,
    base: str,
    percent: list[float] | None = None,
    certainty: Annotated[float, Option("--power")] = 0.8,
    database: Path = Path("results/swflow.duckdb"),
) -> None:
    """
    Estimate how many weeks or replicates are needed to detect a difference between two runs, a variant and its base.

    For two runs of a log, the unit is a week of the log, and the variance is that of the ratio of the means (paired
    block bootstrap). For a workload with replicates, named without their number, the unit is a replicate. The estimate
    assumes that further weeks or replicates vary like the existing ones.

    Example: `swflow power KTH-SP2+ran/fcfs KTH-SP2+ran/easy --percent 5`, `swflow power mine.parquet easy.parquet`

    Options
    -------
    variant: A run: a .parquet file of swflow simulate, or WORKLOAD/SCHEDULER of the database.
    base: The run of the same log that it is compared with.
    percent: Detect this increase of the mean, in percent of the base's mean; repeatable (default: 1, 2, 5, 10, 20).
    certainty: The statistical power, 0 to 1: the probability that the 95 % interval excludes zero.
    database: Read WORKLOAD/SCHEDULER from this database.
    """
    from swflow.studies.power import power_of

    found = power_of(variant, base, percent or (1.0, 2.0, 5.0, 10.0, 20.0), certainty, database)
    basis, blocks = found[0].basis, found[0].difference.blocks
    wanted = [f"{basis} for {share:g} %" for share in found[0].needed]
    rows = [
        [
            one.measure, one.variant, one.base, one.difference_in_words(),
            "-" if one.smallest is None else f"{one.smallest:.3g} %",
            *("never" if count is None else f"{count:,}" for count in one.needed.values()),
        ]
        for one in found
    ]  # fmt: skip
    print_table(["mean of", "variant", "base", "difference", f"detectable in {blocks:,} {basis}", *wanted], rows)
    say(
        f"The runs have {blocks:,} {basis}. The difference is variant minus base, with its 95 % interval. Increases "
        f"are in percent of the base's mean; each is detected with a probability of {100 * certainty:g} %."
    )
