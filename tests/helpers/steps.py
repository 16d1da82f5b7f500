"""How much work a function does, counted and not timed: a limit on time would fail on a busy machine."""

import sys
from collections.abc import Callable


def executed_lines(function: Callable[[], object]) -> int:
    """How many lines of Python a call executes, in all functions that it calls; what is written in C counts once."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
