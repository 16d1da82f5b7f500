"""What the commands share: reading what an option says, writing files, and speaking on the terminal."""

import contextlib
import json
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

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


def read_mapping(text: str | None, option: str) -> dict[str, Any] | None:
    """Read a mapping as the config may have it, or JSON; None without a text."""
    import yaml

    if text is None:
        return None
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise SwflowError(f"{option} {text[:200]!r}: {getattr(error, 'problem', 'too deeply nested')}") from None
    if not isinstance(content, dict):
        raise SwflowError(f"{option} {text[:200]!r}: write names with their values, such as {{alice: 3}}")
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


def say_doubts(workload: Any) -> list[str]:
    """Say what makes a workload doubtful, the errors and warnings of its checks; return the lines."""
    from swflow.analysis.plausibility import check_workload

    doubts = [
        f"{workload.name}: {finding.severity}: {finding.check}: {finding.message}"
        for finding in check_workload(workload)
        if finding.severity != "note"
    ]
    for doubt in doubts:
        say(doubt)
    return doubts


def named_options(text: str) -> tuple[str, dict[str, Any]]:
    """Read NAME={JSON options}, or a scheduler as `swflow whatif` takes it: ``easy``, or ``name: {options}``."""
    from swflow.scheduling.named import is_with_json, read_scheduler

    if not is_with_json(text):
        return read_scheduler(text)
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
    """
    Print a table, a row a line: as wide as it needs to be in a pipe, as wide as the terminal on one.

    Where a terminal is too narrow, a single row is printed downwards; of several rows the last columns are left
    out, and a note says which.
    """
    finish_progress()
    shown: Sequence[Sequence[str]] = [[_printable(value) for value in row] for row in rows]
    notes: list[str] = []
    if sys.stdout.isatty():
        columns, shown, notes = fitted(columns, shown, shutil.get_terminal_size().columns)
    print("\n".join(_lines(columns, shown)))
    for note in notes:
        say(note)


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table: numbers to the right, everything else to the left, no white space at the end."""
    numeric = [all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    widths = _widths(columns, rows)
    for line in (columns, None, *rows):
        if line is None:
            yield " " + "─" * (sum(widths) + _BETWEEN * (len(widths) - 1))
            continue
        cells = [
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(line, widths, numeric, strict=True)
        ]
        yield f" {(' ' * _BETWEEN).join(cells)}".rstrip()


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(columns, *rows, strict=True)]


def _printable(text: str) -> str:
    """Return a text that stays on its line and moves no cursor."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def fitted(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> tuple[Sequence[str], Sequence[Sequence[str]], list[str]]:
    """
    Return a table that is no wider than a terminal, and notes on what is not shown of it.

    Parameters
    ----------
    columns : sequence of str
        The names.
    rows : sequence of sequence of str
        The values.
    width : int
        Characters of a line.

    Returns
    -------
    columns, rows
        What fits; of a single row that does not, names and values as two columns.
    notes : list of str
        What is left out, or cut; empty if everything is there.

    Examples
    --------
    >>> columns, rows, notes = fitted(["run", "jobs", "mean_wait_time"], [["a", "1", "2"], ["b", "3", "4"]], 24)
    >>> columns, rows
    (['run', 'jobs'], [['a', '1'], ['b', '3']])
    """
    widths = _widths(columns, rows)
    if _table_width(widths) <= width:
        return columns, rows, []
    if len(rows) == 1 and len(columns) > 1:
        names = max(map(len, columns))
        values = [_cut(value, width - names - _BETWEEN - _MARGINS) for value in rows[0]]
        cut = [column for column, value, short in zip(columns, rows[0], values, strict=True) if value != short]
        notes = [f"cut, for the terminal is too narrow: {', '.join(cut)}; --csv has all"] if cut else []
        return ["column", "value"], [list(pair) for pair in zip(columns, values, strict=True)], notes
    fit = max((count for count in range(1, len(widths)) if _table_width(widths[:count]) <= width), default=1)
    left_out = list(columns[fit:])
    notes = []
    if left_out:
        number = "1 column is" if len(left_out) == 1 else f"{len(left_out)} columns are"
        pronoun = "it does" if len(left_out) == 1 else "they do"
        notes.append(
            f"{number} left out, for {pronoun} not fit: {', '.join(left_out)}; "
            "use a wider terminal, name the columns, or --csv"
        )
    kept = [[_cut(value, width - _MARGINS) for value in row[:fit]] for row in rows]
    if kept != [list(row[:fit]) for row in rows]:
        notes.append(f"cut, for the terminal is too narrow: {columns[0]}; --csv has all")
    return list(columns[:fit]), kept, notes


#: Characters between two columns of a table.
_BETWEEN = 3

#: Characters before the first and behind the last one.
_MARGINS = 2


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1) + _MARGINS


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 1)] + "…"


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or "0")
    except ValueError:
        return False
    return True


class Watch:
    """
    Tell a person that a command is at work, and on what.

    On a terminal, a line with the time that has passed is shown after a second, and taken away before anything else
    is printed. Elsewhere every stage that takes longer than two seconds is named once.
    """

    #: Seconds until a stage is shown on a terminal, or named elsewhere.
    PATIENCE: ClassVar[dict[bool, float]] = {True: 1.0, False: 2.0}

    def __init__(self) -> None:
        self._what: str | None = None
        self._named = False
        self._timer: threading.Timer | None = None
        self._live: Any = None
        self._lock = threading.RLock()

    def begin(self, what: str) -> None:
        """Begin a stage; the one before, if any, has ended."""
        self.end()
        self._what, self._named = what, False
        self._wait()

    def _wait(self) -> None:
        assert self._what is not None
        terminal = sys.stderr.isatty()
        self._timer = threading.Timer(self.PATIENCE[terminal], self._show, [self._what, terminal])
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """End the stage, and take away what is shown of it."""
        self._hide()
        self._what = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Make place for something that is printed while the stage goes on."""
        self._hide()
        yield
        if self._what is not None and not self._named:
            self._wait()

    def _hide(self) -> None:
        with self._lock:
            if self._timer:
                self._timer.cancel()
            self._timer = None
            if self._live:
                self._live.stop()
            self._live = None

    def _show(self, what: str, terminal: bool) -> None:
        with self._lock:
            if self._timer is None:
                return  # ended in between
            if not terminal:
                self._named = True
                print(f"{what} …", file=sys.stderr, flush=True)
                return
            from rich.console import Console
            from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

            progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            progress.add_task(what, total=None)
            progress.start()
            self._live = progress


_WATCH = Watch()


def stage(what: str) -> None:
    """Say what a command does from now on, if that takes long."""
    _WATCH.begin(what)


def finish_progress() -> None:
    """Take the line of progress away: what follows is a result."""
    _WATCH.end()


def progress_bar(what: str, total: int) -> Any:
    """Return a context whose value advances a progress bar on a terminal; elsewhere a long stage is named once."""

    @contextlib.contextmanager
    def bar() -> Any:
        if not sys.stderr.isatty():
            stage(f"{what}: {total:,} to do")
            yield lambda: None
            finish_progress()
            return
        finish_progress()
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
    with _WATCH.aside():
        print(text, file=sys.stderr)


def check_ending(output: Path, *endings: str) -> None:
    """Raise an error, before any work, if a command does not write files of this ending."""
    if not output.name.endswith(endings):
        known = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise SwflowError(f"{output}: unknown ending; use {known}")


@contextlib.contextmanager
def quiet_pipe() -> Iterator[None]:
    """End at once and quietly if who reads our standard output stops reading, as head does."""
    if not hasattr(signal, "SIGPIPE") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
        sys.stdout.flush()
    finally:
        signal.signal(signal.SIGPIPE, before)
