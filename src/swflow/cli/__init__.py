"""The command line: one short function per command; each imports only what it runs."""

import sys
from collections.abc import Sequence

from swflow.cli import imports, logs, questions, results, simulation, steps
from swflow.cli.app import app
from swflow.errors import SwflowError, describe

__all__ = ["app", "imports", "logs", "main", "questions", "results", "simulation", "steps"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; what a user did wrong is one line on standard error and exit status 1 or 2."""
    try:
        status = app(args=arguments, prog_name="swflow", standalone_mode=False)
    except SwflowError as error:
        _fail(str(error), 1)
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except Exception as error:
        described = describe(error)
        if described is not None:
            _fail(described, 1)
        if type(error).__name__ == "Abort":  # what typer makes of an interrupt
            _fail("interrupted", 130)
        # typer's errors about the arguments: their classes moved between its versions
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "swflow"
        _fail(f"{error.format_message()} (see: {command} --help)".replace("\n", " "), 2)
    else:
        raise SystemExit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> None:
    print(f"swflow: {message}", file=sys.stderr)
    raise SystemExit(status)
