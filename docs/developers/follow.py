"""Solve a problem of five jobs, and print the lines that one function executes at 2 s.

`SWFLOW_INTERPRET=1 python follow.py FUNCTION` prints each line with the values that it assigns; without a function,
the program prints the start times. "How a schedule is made" explains the output.
"""

import ast
import linecache
import sys
from numbers import Real

import polars as pl

from swflow import Machine, Scheduler, Workload
from swflow.scheduling.prepare import prepare
from swflow.scheduling.solve import solve

jobs = pl.DataFrame(
    {
        "job_id": [0, 1, 2, 3, 4],
        "submit_time": [0.0, 2.0, 2.0, 2.0, 2.0],
        "run_time": [10.0, 8.0, 20.0, 30.0, 5.0],
        "estimate": [10.0, 8.0, 20.0, 30.0, 5.0],
        "processors": [4, 5, 2, 1, 1],
    }
)
FUNCTION = sys.argv[1] if len(sys.argv) > 1 else None


def assigned(line, frame):
    """Return the numbers that a line assigned, such as item=3."""
    try:
        (statement,) = ast.parse(line).body
    except SyntaxError:  # the head of a block
        return ""
    target = getattr(statement, "target", None) or (getattr(statement, "targets", None) or [ast.Tuple([])])[0]
    names = [ast.unparse(node) for node in getattr(target, "elts", [target])]
    values = {name: eval(name, frame.f_globals, dict(frame.f_locals)) for name in names}
    return "  ".join(f"{name}={value:g}" for name, value in values.items() if isinstance(value, Real))


def follow(frame, event, argument):
    """Trace the function at 2 s; Python calls this at the start of every function."""
    if frame.f_code.co_name != FUNCTION or frame.f_locals["now"] != 2:
        return None
    number = 0

    def step(frame, event, argument):
        nonlocal number
        if number:
            line = linecache.getline(frame.f_code.co_filename, number)
            print(f"{line.rstrip():<68.68}  {assigned(line.strip(), frame)}".rstrip())
        number = frame.f_lineno
        return step

    return step


problem = prepare(Workload(jobs, Machine.of(6), "five"), Scheduler(order="submit_time", backfill="easy"))
sys.settrace(follow)
schedule = solve(problem)
sys.settrace(None)
if FUNCTION is None:
    print(schedule.start)
