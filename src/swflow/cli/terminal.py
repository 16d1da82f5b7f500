"""What the commands share: reading what an option says, writing files, and speaking on the terminal."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError


def require_parquet(output: Path, what: str) -> None:
    """Raise an error if a workload is to be written to a file that has no place for what a step adds."""
    if output.suffix != ".parquet":
        raise SwflowError(f"{output}: only .parquet has a place for the {what}; use that ending")


def read_pairs(texts: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Read NAME=NUMBER, each name once."""
    pairs: dict[str, float] = {}
    for text in texts or ():
        name, equals, number = text.partition("=")
        if not name or not equals:
            raise SwflowError(f"{option}: {text!r} is not NAME=NUMBER, such as {example}")
        if name in pairs:
            raise SwflowError(f"{option}: {name} is given twice")
        pairs[name] = read_number(number, f"{option}: {name}")
    return pairs


def read_number(text: str, where: str) -> float:
    """Read a number, or raise an error that names the option."""
    try:
        return float(text)
    except ValueError:
        raise SwflowError(f"{where}: {text!r} is not a number") from None


def read_object(text: str, option: str) -> dict[str, Any]:
    """Read a JSON object, or raise an error that names the option."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise SwflowError(f"{option} {text!r}: {error.msg} at position {error.pos}") from None
    if not isinstance(content, dict):
        raise SwflowError(f'{option} {text!r}: write an object such as {{"path": "my.swf"}}')
    return content


def read_schedulers(texts: Sequence[str] | None, default: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the schedulers that options name, or the default ones."""
    from swflow.scheduling.scheduler import Scheduler

    named = named_schedulers(texts or ()) or default
    return {name: Scheduler.of(name, options) for name, options in named.items()}


def save(workload: Any, output: Path) -> None:
    """Write a workload, and say what its last stage removed."""
    write(workload, output)
    say_removed(workload)


def write(workload: Any, output: Path) -> None:
    """Write a workload as Parquet or as SWF."""
    if output.suffix == ".parquet":
        from swflow.jobs import write_workload

        write_workload(workload, output)
    elif output.name.endswith((".swf", ".swf.gz")):
        from swflow.swf import write_swf

        write_swf(output, workload.jobs, workload.header)
    else:
        raise SwflowError(f"{output}: unknown ending; use .parquet, .swf or .swf.gz")


def save_parquet(workload: Any, output: Path, column: str) -> None:
    """Write a workload that has a column which SWF has no field for."""
    if output.suffix != ".parquet":
        raise SwflowError(f"{output}: SWF has no field for {column}; write .parquet")
    save(workload, output)


def say_removed(workload: Any) -> None:
    """Say how many jobs the last stage of a workload kept and why it removed the others."""
    from swflow.workloads.clean import describe

    if not workload.history:
        return
    entry = workload.history[-1]
    say(
        f"{workload.name}: {entry['kept']:,} of {entry['read']:,} jobs kept; removed: {describe(entry['removed'])}; "
        f"machine: {workload.machine.describe()}"
        + (f", by {entry['machine_from']}" if entry.get("machine_from", "given") != "given" else "")
    )
    for warning in entry.get("warnings", ()):
        say(f"{workload.name}: warning: {warning}")


def say_doubts(workload: Any) -> None:
    """Say what makes a workload doubtful: the errors and warnings of its checks."""
    from swflow.analysis.plausibility import check_workload

    for finding in check_workload(workload):
        if finding.severity != "note":
            say(f"{workload.name}: {finding.severity}: {finding.check}: {finding.message}")


def named_options(text: str) -> tuple[str, dict[str, Any]]:
    """Read NAME={JSON options}."""
    name, equals, options = text.partition("=")
    try:
        content = json.loads(options)
    except json.JSONDecodeError as error:
        raise SwflowError(f"--scheduler {text!r}: {error.msg} at position {error.pos}") from None
    except (RecursionError, ValueError):
        raise SwflowError(f"--scheduler {text[:200]!r}: too deeply nested, or a number too long") from None
    if not name or not equals or not isinstance(content, dict):
        raise SwflowError(f'--scheduler {text!r}: write NAME={{"order": "fcfs", "backfill": "easy"}}')
    return name, content


def named_schedulers(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read the options --scheduler: each name once, and such as the config may have."""
    from swflow.names import check_name

    schedulers: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, options = named_options(text)
        check_name(name, "--scheduler")
        if name in schedulers:
            raise SwflowError(f"--scheduler: {name} is given twice")
        schedulers[name] = options
    return schedulers


def format_number(value: Any) -> str:
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


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
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


def progress_bar(what: str, total: int) -> Any:
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


def tracked(what: str) -> Any:
    """Return a function that shows how far the iteration over a sequence is."""

    def track(items: Sequence[Any]) -> Iterable[Any]:
        with progress_bar(what, len(items)) as advance:
            for item in items:
                yield item
                advance()

    return track


def say(text: str) -> None:
    """Print a note for people, apart from what a command prints as its result."""
    print(text, file=sys.stderr)
