"""Functions that several commands share: write files, print tables and notes."""

import contextlib
import itertools
import math
import os
import shutil
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from swflow.errors import SwflowError, visible

if TYPE_CHECKING:
    pass


def require_parquet(output: Path, what: str) -> None:
    """Raise an error unless the output is .parquet, the only format that can hold what a step adds."""
    if output.suffix != ".parquet":
        raise SwflowError(f"{output}: only .parquet can hold the {what}; use that ending")


def save(workload: Any, output: Path) -> None:
    """Write a workload, and print what its last step removed."""
    write(workload, output)
    say_removed(workload)


def write(workload: Any, output: Path) -> None:
    """Write a workload as Parquet or as SWF."""
    check_ending(output, ".parquet", ".swf", ".swf.gz")
    if output.suffix == ".parquet":
        from swflow.files.tables import write_workload

        write_workload(workload, output)
    else:
        from swflow.log.swf import write_swf
        from swflow.workload.export import written_header

        write_swf(output, workload.jobs, written_header(workload))


def say_removed(workload: Any) -> None:
    """Print how many jobs the last step of a workload kept, and why it removed the others."""
    from swflow.workload.clean import GUESSED
    from swflow.workload.removals import describe

    if not workload.history:
        return
    entry = workload.history[-1]
    source = entry.get("machine_from", "given")
    # A model or a copying step makes more jobs than it reads.
    kept, read = entry["kept"], entry["read"]
    counts = f"{kept:,} of {read:,} jobs kept" if kept <= read else f"{kept:,} jobs made from {read:,}"
    say(
        f"{workload.name}: {counts}; "
        f"removed: {describe(entry['removed'])}; "
        f"machine: {workload.machine.describe()}"
        + (f" ({GUESSED[source]})" if source in GUESSED else f", from the {source}" if source != "given" else "")
    )
    for warning in entry.get("warnings", ()):
        say(f"{workload.name}: warning: {warning}")


def say_doubts(workload: Any) -> list[str]:
    """Print the errors and warnings of a workload's plausibility checks, and return the lines."""
    from swflow.analysis.plausibility import check_workload

    # `say_removed` has printed that the machine's size is a guess.
    is_said = bool(workload.history) and "guessed_processors" in workload.history[-1]
    doubts = [
        f"{workload.name}: {finding.severity}: {finding.check}: {finding.message}"
        for finding in check_workload(workload)
        if finding.severity != "note" and not (finding.check == "unknown-machine" and is_said)
    ]
    for doubt in doubts:
        say(doubt)
    return doubts


def as_plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row for JSON, in which NaN and infinity become null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }


def format_number(value: Any) -> str:
    """Format a value: two decimals, or four significant digits below 1; thousands separators on a terminal only."""
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


def line_width(stream: TextIO) -> int | None:
    """Return how many characters a line of a stream has: ``COLUMNS``, else those of the terminal; None for a pipe."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    if not stream.isatty():
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """
    Print a table on standard output, with its values as of `format_number`.

    In a pipe each row is one line, unless ``COLUMNS`` is set. Otherwise no line is wider than the terminal: long texts
    are wrapped inside their column, and rows that are still too wide are printed vertically.
    """
    finish_progress()
    texts = [[_printable(format_number(value)) for value in row] for row in rows]
    print("\n".join(table_lines([_printable(name) for name in columns], texts, line_width(sys.stdout))))


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """
    Return the lines of a table, at most ``width`` characters wide; None for lines of any length.

    There is one line per row where that fits; else rows with wrapped texts; else one line per column, with as many
    rows side by side as fit. Every value is shown.

    Examples
    --------
    >>> for line in table_lines(["run", "message"], [["a", "a text that is wrapped"]], 28):
    ...     print(line)
     run   message
     ──────────────────────────
     a     a text that is
           wrapped
    >>> for line in table_lines(["run", "jobs", "mean_wait_time"], [["a", "1", "20"], ["b", "3", "4"]], 26):
    ...     print(line)
     run               a   b
     ───────────────────────
     jobs              1   3
     mean_wait_time   20   4
    """
    natural = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    if width is None or _table_width(natural) <= width:
        return _horizontal(columns, rows, natural)
    wrapped = _wrapped_widths(columns, rows, natural, width)
    return _vertical(columns, rows, width) if wrapped is None else _horizontal(columns, rows, wrapped)


def _wrapped_widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], natural: Sequence[int], width: int
) -> list[int] | None:
    """Return the widths of the columns if wrapping texts between words makes the table fit; else None."""
    least = []
    for name, *texts in zip(columns, *rows, strict=True):
        longest_word = max(len(word) for text in (name, *texts) for word in text.split() or [""])
        least.append(max(longest_word, min(max(map(len, texts), default=0), _NARROWEST_TEXT)))
    for cap in range(max(natural), 0, -1):
        widths = [max(low, min(widest, cap)) for low, widest in zip(least, natural, strict=True)]
        if _table_width(widths) <= width:
            return widths
    return None


def _horizontal(columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of a table with its rows below each other: numbers to the right, texts to the left."""
    numeric = [all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    first, *others = (
        _row_lines([_wrap(value, width) for value, width in zip(row, widths, strict=True)], widths, numeric)
        for row in (columns, *rows)
    )
    return [*first, _rule(widths), *itertools.chain(*others)]


def _row_lines(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    """Return the lines of a row of wrapped cells, each aligned to the right or to the left."""
    return [
        f" {(' ' * _BETWEEN).join(part.rjust(w) if end else part.ljust(w) for part, w, end in parts)}".rstrip()
        for parts in (zip(texts, widths, right, strict=True) for texts in itertools.zip_longest(*cells, fillvalue=""))
    ]


def _vertical(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of a table printed vertically: a column per row, in blocks no wider than a line."""
    names = max(map(len, columns))
    most = max(width - names - _BETWEEN - _MARGINS, _NARROWEST_VALUE)
    wide = [min(max(map(len, row)), most) for row in rows]
    lines: list[str] = []
    begin = 0
    while begin < len(rows) or not lines:
        end = begin + 1
        while end < len(rows) and _table_width([names, *wide[begin : end + 1]]) <= width:
            end += 1
        widths, block = [names, *wide[begin:end]], rows[begin:end]
        begin = end
        lines += [""] if lines else []
        for place, name in enumerate(columns):
            cells = [[name], *(_wrap(row[place], room) for row, room in zip(block, widths[1:], strict=True))]
            lines += _row_lines(cells, widths, [False, *(len(cell) == 1 for cell in cells[1:])])
            if place == 0:
                lines.append(_rule(widths))
    return lines


#: Characters between two columns of a table, and before the first and after the last one.
_BETWEEN, _MARGINS = 3, 2

#: The narrowest column, in characters, in which words of a text are wrapped, and that of a vertical value.
_NARROWEST_TEXT, _NARROWEST_VALUE = 20, 8

#: Characters of a line where a terminal does not say how wide it is.
_USUAL_WIDTH = 80


def _table_width(widths: Sequence[int]) -> int:
    return sum(widths) + _BETWEEN * (len(widths) - 1) + _MARGINS


def _rule(widths: Sequence[int]) -> str:
    return " " + "─" * (_table_width(widths) - _MARGINS)


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text; one that fits stays as it is."""
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _printable(text: str) -> str:
    """Return a text that stays on its line and moves no cursor."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "") or "0")
    except ValueError:
        return False
    return True


class Watch:
    """
    Shows which stage of a command is running.

    On a terminal, a line with the elapsed time appears after 1 s and disappears before anything else is printed.
    Elsewhere the name of a stage that takes longer than 2 s is printed once.
    """

    #: Seconds until a stage is shown on a terminal (True) or elsewhere (False).
    PATIENCE: ClassVar[dict[bool, float]] = {True: 1.0, False: 2.0}

    def __init__(self) -> None:
        self._what: str | None = None  # the stage that is to be shown
        self._timer: threading.Timer | None = None
        self._live: Any = None
        self._lock = threading.RLock()

    def begin(self, what: str) -> None:
        """Start a stage, and end the previous one."""
        self.end()
        self._what = what
        self._wait()

    def _wait(self) -> None:
        terminal = sys.stderr.isatty()
        self._timer = threading.Timer(self.PATIENCE[terminal], self._show, [self._what, terminal])
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """End the stage, and remove its line."""
        self._hide()
        self._what = None

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Remove the line while something else is printed."""
        self._hide()
        yield
        if self._what is not None:
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
                self._what = None
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

#: Name the stage of a command that starts now.
stage = _WATCH.begin

#: Remove the progress line, because a result follows.
finish_progress = _WATCH.end


@contextlib.contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function that advances a progress bar on a terminal; elsewhere, name a long stage once."""
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


def tracked(what: str, items: Sequence[Any]) -> Iterator[Any]:
    """Iterate over a sequence and show a progress bar."""
    with progress_bar(what, len(items)) as advance:
        for item in items:
            yield item
            advance()


def print_lines(lines: list[str], heading: str = "") -> None:
    """Print lines as wrapped text; the first line follows a heading, the others are below it."""
    finish_progress()
    width = min(shutil.get_terminal_size((100, 24)).columns, 120)
    for number, line in enumerate(lines):
        indent = " " * len(heading)
        wrapped = textwrap.fill(
            line, width, initial_indent=indent if number else heading, subsequent_indent=indent,
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip
        print(wrapped)


def say(text: str) -> None:
    """Print a note on standard error, wrapped between words on a terminal; results go to standard output."""
    text = visible(text)
    width = line_width(sys.stderr)
    if width is not None and len(text) > width:
        lines = textwrap.wrap(text, max(width, _NARROWEST_TEXT), subsequent_indent="  ",
                              break_long_words=False, break_on_hyphens=False)  # fmt: skip
        text = "\n".join(lines)
    with _WATCH.aside():
        print(text, file=sys.stderr)


def say_log() -> None:
    """Print what the package logs, such as how far a slow policy is, as notes."""
    import logging

    logger = logging.getLogger("swflow")
    if not logger.handlers:
        notes = logging.Handler(logging.INFO)
        notes.emit = lambda record: say(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(notes)
        logger.setLevel(logging.INFO)


def check_ending(output: Path, *endings: str) -> None:
    """Raise an error, before any work is done, unless the output has one of the endings and can be written."""
    from swflow.files.atomic import check_output

    if not output.name.endswith(endings):
        known = f"{', '.join(endings[:-1])} or {endings[-1]}" if len(endings) > 1 else endings[0]
        raise SwflowError(f"{output}: unknown ending; use {known}")
    check_output(output)
