"""Commands that judge schedules and simulators: bound, conformance."""

from pathlib import Path
from typing import Annotated, Any

import typer

from swflow.cli.app import app
from swflow.cli.option_values import require_own_machine
from swflow.cli.options import OUTPUT, Input
from swflow.cli.terminal import check_ending, print_table, say, tracked
from swflow.errors import SwflowError


@app.command()
def bound(
    workload: Input,
    run: list[Path] | None = None,
    processors: int | None = None,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """
    Print lower bounds on the metrics of any schedule of a workload's rigid jobs.

    No scheduler, with or without knowledge of the run times, can do better on the same jobs and machine. The bound on
    utilization is an upper bound.

    Example: `swflow bound KTH-SP2.parquet --run results/runs/KTH-SP2/easy.parquet`

    Options
    -------
    run: A run of these jobs (.parquet, from swflow simulate): print its gap; repeatable.
    processors: The machine's processors (default: the file's).
    output: Write the bounds to this file: .parquet or .csv.
    """
    import polars as pl

    from swflow.analysis.bounds import bounds, gaps
    from swflow.analysis.metrics import metrics
    from swflow.files.atomic import write_text
    from swflow.files.reading import file_digest
    from swflow.files.tables import write_table
    from swflow.workload.clean import open_workload

    if output is not None:
        check_ending(output, ".parquet", ".csv")
        if output.suffix == ".parquet":
            require_own_machine(processors, "the bounds of a database are those of")
    source = open_workload(workload, processors)
    found = bounds(source.jobs, source.machine.processors)
    paths = run or []
    are_named = len({path.stem for path in paths}) == len(paths)
    runs = {
        path.stem if are_named else str(path): metrics(_outcomes(path, source), source.machine.processors)
        for path in paths
    }
    away = {name: gaps(found, figures) for name, figures in runs.items()}
    columns = ["measure", "bound", "theorem", *(title for name in runs for title in (name, "gap"))]
    rows = []
    for one in found:
        cells = [one.measure, one.value, one.theorem]
        for name, figures in runs.items():
            gap = away[name][one.measure]
            cells += [figures[one.measure], "-" if gap is None else f"{gap:+.1%}"]
        rows.append(cells)
    print_table(columns, rows)
    say(f"{workload}: {source.jobs.height:,} jobs on {source.machine.describe()}; times in seconds")
    if output is not None:
        table = pl.DataFrame([{"measure": one.measure, "value": one.value, "theorem": one.theorem} for one in found])
        if output.suffix == ".csv":
            write_text(output, table.write_csv())
        else:
            about = {"kind": "bounds", "workload": source.name, "input": file_digest(workload)}
            write_table(table, output, about)


def _outcomes(path: Path, source: Any) -> Any:
    """Read the outcomes of a run of exactly the jobs of a workload, on its machine."""
    import polars as pl

    from swflow.files.tables import read_metadata, read_parquet
    from swflow.jobs.table import check_columns

    notes = read_metadata(path) if path.is_file() else {}
    if notes.get("kind") != "run":
        raise SwflowError(f"--run {path}: not a run of swflow; make one with: swflow simulate WORKLOAD -o RUN.parquet")
    names = ["job_id", "submit_time", "run_time", "processors"]
    outcomes = check_columns(read_parquet(path), f"--run {path}", names)
    if not outcomes.select(names).sort("job_id").equals(source.jobs.select(names).sort("job_id")):
        raise SwflowError(f"--run {path}: has other jobs, submit times, run times or processors than the workload")
    early = outcomes.filter(pl.col("start_time") < pl.col("submit_time"))
    if early.height:
        raise SwflowError(
            f"--run {path}: bounds do not hold for jobs that start before their submission, of which it has "
            f"{early.height:,}, the first is job {early['job_id'][0]}"
        )
    peak, machine = notes.get("peak_processors") or 0, source.machine.processors
    if peak > machine:
        raise SwflowError(f"--run {path}: uses up to {peak:,} of {machine:,} processors; give a larger --processors")
    return outcomes


@app.command()
def conformance(
    command: str | None = None,
    policy: list[str] | None = None,
    log: list[Path] | None = None,
    timeout: float = 60.0,
    cases: Path | None = None,
    output: Annotated[Path | None, OUTPUT] = None,
) -> None:
    """
    Judge a simulator: run it over small cases that each name one scheduling rule.

    For each rule, prints whether all its cases pass, follow a named convention, or fail, with the first job that
    differs and why the rule demands another start. Exits with status 1 if a rule fails.

    Example: `swflow conformance --command "python mysim.py {log} {processors} {policy}" --policy easy`

    Options
    -------
    command: The simulator's command line; {log} (SWF), {out}, {processors} and {policy} are replaced. Without {out} the
        simulator prints its schedule.
    policy: Only cases of this policy (default: fcfs and easy); repeatable.
    log: Also compare the whole schedule of this log (.swf, .swf.gz, .parquet); repeatable.
    timeout: Stop the simulator after this many seconds (default: 60).
    cases: Write the cases as SWF files into this folder and stop.
    output: Write all results to this file: .json.
    """
    from swflow.conformance.judge import as_json, by_rule, judge_case, judge_log
    from swflow.conformance.suite import DEFAULT_POLICIES, cases_of
    from swflow.files.atomic import write_text
    from swflow.workload.clean import open_workload

    chosen = policy or list(DEFAULT_POLICIES)
    suite = cases_of(chosen)
    if cases is not None:
        cases.mkdir(parents=True, exist_ok=True)
        for case in suite:
            write_text(cases / f"{case.id}.swf", case.as_swf())
        say(f"{cases}: {len(suite)} cases")
        return
    if command is None:
        raise SwflowError("--command: missing; expected the simulator's command line, such as 'mysim {log} {out}'")
    if output is not None:
        check_ending(output, ".json")
    found = [judge_case(command, case, timeout) for case in tracked("conformance", suite)]
    rows = []
    for (name, rule), judged in by_rule(found).items():
        wrong = next((one for one in judged if one.is_wrong), None)
        conventions = sorted({one.detail for one in judged if one.verdict == "convention"})
        verdict = wrong.verdict if wrong else "convention: " + ", ".join(conventions) if conventions else "pass"
        rows.append([name, rule, f"{sum(not one.is_wrong for one in judged)} of {len(judged)}", verdict])
    print_table(["policy", "rule", "cases", "verdict"], rows)
    for path in log or ():
        workload = open_workload(path)
        for name in chosen:
            scheduler = next(case.scheduler for case in suite if case.policy == name)
            found.append(judge_log(command, workload, name, scheduler, timeout))
            last = found[-1]
            said = "all start times equal" if last.verdict == "pass" else last.detail
            if last.different:
                said = f"{last.different:,} of {last.jobs:,} start times differ"
            say(f"{path}, {name}: {last.verdict}: {said}")
    for one in found:
        if one.is_wrong:
            where = (
                f"job {one.first_job} starts at {one.found:.15g}, not {one.expected:.15g}: " if one.first_job else ""
            )
            say(f"{one.id}: {one.verdict}: {where}{one.detail}")
    if output is not None:
        write_text(output, as_json(command, found))
    if any(one.is_wrong for one in found):
        raise typer.Exit(1)
