"""Calls of commands, and a small log."""

import pytest

LINES = [
    "1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1",
    "2 1 -1 10 8 -1 -1 8 20 -1 1 7 1 1 1 1 -1 -1",
    "3 2 0 3 2 -1 -1 2 5 -1 5 8 1 1 1 1 -1 -1",
]
HEADER = "; MaxProcs: 8\n; MaxNodes: 4\n; UnixStartTime: 0\n"


def call(*arguments) -> int:
    """Run a command in this process and return its exit status."""
    from swflow.cli import main

    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code or 0
