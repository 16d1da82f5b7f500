"""Commands that the workflow calls for many files in one process: reach, replicate."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from swflow.cli.app import app
from swflow.cli.options import Catalogues, Mirror, output_option
from swflow.cli.terminal import check_ending, progress_bar, say
from swflow.errors import SwflowError

#: The commands that implement steps.
STEPS = ("select", "machine", "memory", "moldable", "model", "scale", "intensify")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replicate(
    context: typer.Context,
    kind: Annotated[str, Argument(help="The command of the step, such as memory or model.")],
    output: Annotated[
        list[Path],
        output_option(help="Write these workloads; a range of replicates is kth+memory@1-20.parquet; repeatable."),
    ],
    manifest: Annotated[Path, Option(help="List the workloads in this JSON file; they are written to its folder.")],
    code: Annotated[
        str, Option(help="Rebuild workloads that were built with a different code fingerprint (default: keep them).")
    ] = "",
) -> None:
    """
    Build many replicates of a step in one process.

    Replicates whose options and input are unchanged are kept. The input of a replicate is the workload whose name lacks
    the last suffix. All other options are passed to the step, with {parent} replaced by the name of that workload, for
    example in the file of a fitted model.

    Example: `swflow replicate memory -o kth+memory@1-20.parquet --manifest kth+memory.json --high 0.8 --low 0.2`
    """
    from swflow.workload.replicates import make_replicates

    steps: Any = typer.main.get_command(app)
    if kind not in STEPS:
        raise SwflowError(f"replicate: {kind!r} is not a step; expected {', '.join(STEPS)}")
    for workload in output:
        check_ending(workload, ".parquet")

    def make(arguments: list[str]) -> None:
        steps.commands[kind].main(args=arguments, prog_name=f"swflow {kind}", standalone_mode=False)

    def report(workload: str, kept: bool) -> None:
        advance()
        if kept:
            say(f"{workload}: kept")

    with progress_bar(kind, len(output)) as advance:
        made = make_replicates(kind, output, context.args, manifest, make, code=code, report=report)
    say(f"{manifest}: {made:,} workloads")


@app.command()
def reach(
    logs: Annotated[list[str], Argument(help="The names of the logs in the catalogue.")],
    output: Annotated[
        Path,
        output_option(
            help="Write the missing logs and the reasons to this JSON file; the other logs go to its folder."
        ),
    ],
    mirror: Mirror = None,
    catalogue: Catalogues = None,
) -> None:
    """
    Fetch logs, and record which ones cannot be fetched and why.

    The workflow leaves out the runs of missing logs, unless the config contains `strict: true`.

    Example: `swflow reach KTH-SP2 CTC-SP2 -o results/logs/reached.json`
    """
    from swflow.files.manifest import write_json
    from swflow.log.catalogue import default_catalogue, find_log, load_catalogue
    from swflow.log.catalogue import reach as try_logs

    check_ending(output, ".json")
    known = load_catalogue(list(catalogue or [default_catalogue()]))
    missing = try_logs([find_log(name, known) for name in logs], output.parent, mirror)
    write_json(output, {"reached": sorted(set(logs) - missing.keys()), "missing": missing})
    for reason in missing.values():
        say(reason)
    say(f"{output}: {len(logs) - len(missing)} of {len(logs)} logs reached")
