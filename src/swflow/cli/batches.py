"""Commands that the workflow calls for many files in one process: reach, replicate."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.terminal import check_ending, progress_bar, say
from swflow.errors import SwflowError

#: The commands that are steps.
STEPS = ("select", "machine", "memory", "moldable", "model", "scale", "intensify")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replicate(
    context: typer.Context,
    kind: Annotated[str, typer.Argument(help="The command of the step, such as memory or model.")],
    output: Annotated[
        list[Path],
        typer.Option(
            "--output", "-o", help="The workloads to make, a range in one: kth+memory@1-20.parquet; repeatable."
        ),
    ],
    manifest: Annotated[Path, typer.Option(help="The JSON file that is to list them; they go beside it.")],
    code: Annotated[str, typer.Option(help="Remake workloads that were not made under this mark.")] = "",
) -> None:
    """
    Make many replicates of a step in one process; those whose options and input are unchanged are kept.

    The step is applied to the workload that the name says, without its last suffix. All other options are those of
    the step; in a range in one of them, such as a fitted model's file, each replicate has its own.

    Example: `swflow replicate memory -o kth+memory@1-20.parquet --manifest kth+memory.json --high 0.8 --low 0.2`
    """
    from swflow.replicates import make_replicates

    command = typer.main.get_command(app)
    steps = getattr(command, "commands", {})
    if kind not in STEPS:
        raise SwflowError(f"replicate: {kind!r} is no step; use {', '.join(STEPS)}")
    for workload in output:
        check_ending(workload, ".parquet")

    def make(arguments: list[str]) -> None:
        steps[kind].main(args=arguments, prog_name=f"swflow {kind}", standalone_mode=False)

    def report(workload: str, kept: bool) -> None:
        advance()
        if kept:
            say(f"{workload}: kept")

    with progress_bar(kind, len(output)) as advance:
        made = make_replicates(kind, output, context.args, manifest, make, code=code, report=report)
    say(f"{manifest}: {made:,} workloads")


@app.command()
def reach(
    logs: Annotated[list[str], typer.Argument(help="Names of logs in the catalogue.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A JSON file for those that are missing; the others go beside it.")
    ],
    mirror: Annotated[
        str | None, typer.Option(help="A folder or base URL with the archive's files, tried first.")
    ] = None,
    catalogue: Annotated[
        list[Path] | None, typer.Option(help="A catalogue of logs (YAML); repeatable, later entries win.")
    ] = None,
) -> None:
    """
    Try to fetch logs, and note which cannot be fetched and why, instead of failing.

    The workflow leaves out the runs of those that are missing, unless the config says `strict: true`.

    Example: `swflow reach KTH-SP2 CTC-SP2 -o results/logs/reached.json`
    """
    from swflow.logs import default_catalogue, find_log, load_catalogue
    from swflow.logs import reach as try_logs
    from swflow.made import write_json

    check_ending(output, ".json")
    known = load_catalogue(list(catalogue or [default_catalogue()]))
    missing = try_logs([find_log(name, known) for name in logs], output.parent, mirror)
    write_json(output, {"reached": sorted(set(logs) - missing.keys()), "missing": missing})
    for reason in missing.values():
        say(reason)
    say(f"{output}: {len(logs) - len(missing)} of {len(logs)} logs reached")
