"""The command line: one short function per command; each imports only what it runs."""

import gc
import os
import sys
from collections.abc import Sequence

from swflow.cli.app import application
from swflow.cli.terminal import finish_progress, stage
from swflow.errors import SwflowError, describe, one_line

__all__ = ["application", "main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """
    Run the command line.

    A user's mistake is reported as one line on standard error, with exit status 1 or 2. ``arguments`` are the words
    after ``swflow``; by default those of the process.
    """
    # Collecting the libraries' own objects takes a fifth of the start-up time.
    gc.set_threshold(200_000, 20, 20)
    words = sys.argv[1:] if arguments is None else list(arguments)
    _open_streams()
    stage(" ".join(_short(word) for word in words[:2] if not word.startswith("-")) or "swflow")
    try:
        status = application(*words[:1])(args=arguments, prog_name="swflow", standalone_mode=False)
        sys.stdout.flush()
    except SwflowError as error:
        _fail(str(error), 1)
    except BrokenPipeError:
        # The reader of the output, such as head, has stopped reading; the flush at exit must not write either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        described = describe(error)
        if described is not None:
            _fail(described, 1)
        # The classes of typer's exceptions moved between its versions, so that they are recognized by their names.
        if type(error).__name__ == "Abort":  # typer's exception for an interrupt
            _fail("interrupted", 130)
        if type(error).__name__ == "NoArgsIsHelpError":  # typer has already printed the help
            raise SystemExit(0) from None
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "swflow"
        _fail(f"{error.format_message()} (see: {command} --help)", 2)
    else:
        raise SystemExit(status if isinstance(status, int) else 0)
    finally:
        finish_progress()
        if arguments is None:
            gc.freeze()  # the process ends, and collecting the libraries' objects once more takes .1 s


def _open_streams() -> None:
    """Let closed standard streams lead nowhere; otherwise the first files that are opened would take their place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest descriptor
            setattr(sys, name, open(descriptor, "r" if descriptor == 0 else "w", encoding="utf-8"))  # noqa: PTH123, SIM115


def _short(word: str) -> str:
    """Return a word of the command line for the progress line: the file of a path, the beginning of a query."""
    name = " ".join(word.rpartition("/")[2].split())
    return name if len(name) <= 40 else f"{name[:39]}…"


def _fail(message: str, status: int) -> None:
    finish_progress()
    print(f"swflow: {one_line(message)}", file=sys.stderr)
    raise SystemExit(status)
