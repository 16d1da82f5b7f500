"""Commands that the workflow calls for many files in one process: prune, reach, replicate."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swflow.cli.app import app, application
from swflow.cli.options import OUTPUT, Catalogues, Mirror
from swflow.cli.panels import COMMANDS
from swflow.cli.terminal import check_ending, say, tracked
from swflow.errors import SwflowError

if TYPE_CHECKING:
    from swflow.files.store import Store

#: The commands that implement steps.
STEPS = COMMANDS["Make workloads"]


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replicate(
    context: typer.Context,
    kind: str,
    output: Annotated[list[Path], OUTPUT],
    store: Path | None = None,
) -> None:
    """
    Build many replicates of a step in one process.

    The input of a replicate is the workload whose name lacks the last suffix. All other options are passed to the step,
    with {parent} replaced by the name of that workload, for example in the file of a fitted model.

    Example: `swflow replicate memory -o kth+memory@1-20.parquet --high 0.8 --low 0.2`

    Options
    -------
    kind: The command of the step, such as memory or model.
    output: Write these workloads; a range of replicates is kth+memory@1-20.parquet; repeatable.
    store: Keep the replicates in this folder, too, and build only those that it does not have with the same inputs,
        options and names.
    """
    from swflow.files.store import Store
    from swflow.names import PARENT, expand, parent_of

    if kind not in STEPS:
        raise SwflowError(f"replicate: {kind!r} is not a step; expected {', '.join(STEPS)}")
    steps: Any = typer.main.get_command(application(kind))
    workloads = [Path(path) for given in output for path in expand(str(given))]
    for workload in workloads:
        check_ending(workload, ".parquet")
    for workload in tracked(kind, workloads):
        parent = parent_of(workload.stem)
        source = workload.with_name(f"{parent}.parquet")
        if not parent or not source.is_file():
            raise SwflowError(
                f"replicate: {source}: no such file; {workload.name} is created from it; name it as LOG+STEP.parquet "
                "in the folder of LOG.parquet"
            )
        words = [str(source), "-o", str(workload), *(option.replace(PARENT, parent) for option in context.args)]
        _replicate(steps.commands[kind], kind, words, workload, Store(store) if store else None)


def _replicate(step: Any, kind: str, words: list[str], workload: Path, store: "Store | None") -> None:
    """Build a replicate by the command of a step, unless the store has it."""
    from swflow.files.reading import file_digest
    from swflow.files.store import key_of

    if store is None:
        step.main(args=words, prog_name=f"swflow {kind}", standalone_mode=False)
        return
    inputs = {word: file_digest(word) for word in words if word != str(workload) and Path(word).is_file()}
    key = key_of({"kind": kind, "words": words, "inputs": inputs})
    if store.restore(key, workload) is None:
        step.main(args=words, prog_name=f"swflow {kind}", standalone_mode=False)
        store.keep(key, workload, file_digest(workload))


@app.command()
def prune(plan: Path) -> None:
    """
    Remove the runs, workloads and logs of former configs from results.

    Example: `swflow prune plan.json`

    Options
    -------
    plan: A JSON file whose `files` are the results to keep; the workflow writes it.
    """
    from swflow.files.store import STORE
    from swflow.studies.former import REUSED, SHOWN, remove_former

    removed = remove_former(plan, (*SHOWN, *REUSED))
    stored = {path for path in removed if STORE in Path(path).parts}
    for path in removed:
        if path not in stored:
            say(f"removed: {path}, which no study of the config names")
    if results := sum(not path.endswith(".json") for path in stored):
        say(f"removed: {results:,} stored results, which no study of the config names")


@app.command()
def reach(
    logs: list[str],
    output: Annotated[Path, OUTPUT],
    mirror: Mirror = None,
    catalogue: Catalogues = None,
) -> None:
    """
    Fetch logs, and record which ones cannot be fetched and why.

    The workflow leaves out the runs of missing logs, unless the config contains `strict: true`.

    Example: `swflow reach KTH-SP2 CTC-SP2 -o results/logs/reached.json`

    Options
    -------
    logs: The names of the logs in the catalogue.
    output: Write the missing logs and the reasons to this JSON file; the other logs go to its folder.
    """
    from swflow.files.atomic import write_json
    from swflow.log.catalogue import default_catalogue, find_log, load_catalogue
    from swflow.log.fetch import reach as try_logs

    check_ending(output, ".json")
    known = load_catalogue(list(catalogue or [default_catalogue()]))
    missing = try_logs([find_log(name, known) for name in logs], output.parent, mirror)
    write_json(output, {"reached": sorted(set(logs) - missing.keys()), "missing": missing})
    for reason in missing.values():
        say(reason)
    say(f"{output}: {len(logs) - len(missing)} of {len(logs)} logs reached")
