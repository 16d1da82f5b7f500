"""
Test random and invalid schedulers, workloads and files against the slow simulator.

Each case must give equal results or a one-line error.

    python tests/fuzz.py --minutes 20 --seed 1
    python tests/fuzz.py --seed 1 --case 1234
    python tests/fuzz.py --kinds ordinary --cases 100000 --coverage counts.json
    python tests/fuzz.py --kinds slurm --cases 50000

With ``--coverage``, it prints the number of cases that used each value of an option, alone and with each of another
option, and adds the counts to those of earlier calls in the file. `cases.py` draws ordinary cases.

Cases run in a separate process, with bounds checks in the kernels and a time limit, so that a crash or a hang counts
as a failure. The command that repeats a failed case is printed. A case depends only on the seed and its number.
"""

import argparse
import json
import math
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import polars as pl

import slurm_queues
from cases import ALL, Case, Coverage, differences, draw
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.table import SWF_FIELDS
from swflow.log.swf import parse_swf
from swflow.scheduling.options import OPTIONS
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

#: Time limits, in seconds, of a case, which may compile a kernel on a busy machine, and of the kernels of most cases.
CASE_LIMIT, START_LIMIT = 300.0, 1800.0

EQUAL, REFUSED, FAILURE = "equal", "refused", "failure"

#: The options of the cases that are then made invalid.
PLAIN = (
    "order", "backfill", "reservations", "backfill_order", "estimates", "prediction", "event_order", "allocation",
    "places", "unavailable", "shapes",
)  # fmt: skip


# --- the kinds of cases ------------------------------------------------------------------------------------


def ordinary(
    rng: random.Random, names: Iterable[str] = ALL, wanted: Mapping[str, str] | None = None
) -> tuple[str, str]:
    """Simulate a valid case, and return its options with other values than the default: an error is a failure."""
    case = draw(rng, names, wanted)
    try:
        wrong = differences(case, simulate(case.workload(), Scheduler(**case.options)))
    except Exception as error:
        raise AssertionError(f"{case}: {error}") from error
    return (FAILURE, f"{wrong} in {case}") if wrong else (EQUAL, json.dumps(case.chosen))


def slurm(rng: random.Random) -> tuple[str, str]:
    """Simulate a long queue on nodes under Slurm's schedulers."""
    case = slurm_queues.any_queue(rng)
    wrong = differences(case, simulate(case.workload(), Scheduler(**case.options)))
    return (FAILURE, f"{wrong} in {case}") if wrong else (EQUAL, "")


def plain(rng: random.Random) -> Case:
    """Draw a case of a few common options, without columns that change the schedule."""
    while True:
        case = draw(rng, PLAIN)
        if case.options["order"] != "log":
            return case


NUMBERS = (math.nan, math.inf, -math.inf, -1.0, 1e13, 1e16, 2.0**53, 1e300, -1e16)


def hostile_table(rng: random.Random) -> tuple[str, str]:
    """Change a value or a column of a job table so that it is invalid."""
    drawn = plain(rng)
    table = drawn.workload().jobs
    row = rng.randrange(table.height)
    column = rng.choice(["submit_time", "run_time", "estimate", "processors", "job_id"])
    kind = rng.choice(["value", "null", "type", "missing", "unsorted", "swapped"])

    def with_value(value: Any, dtype: pl.DataType) -> pl.DataFrame:
        values = table[column].to_list()
        values[row] = value
        return table.with_columns(pl.Series(column, values, dtype=dtype, strict=False))

    if kind == "value" and column == "processors":
        value = rng.choice([0, -4, 2**31 + 1, 2**62, -(2**63)])
        if "shapes" in table.columns and value > 0:  # a moldable job can request any width
            value = 2**33
        table = with_value(value, pl.Int64())
    elif kind == "value" and column != "job_id":
        value = rng.choice(NUMBERS)
        if column == "submit_time" and value == -1.0:
            value = math.nan
        table = with_value(value, pl.Float64())
    elif kind == "null":
        table = with_value(None, table.schema[column])
    elif kind == "type":
        wrong = rng.choice([pl.lit("7"), pl.lit(None), pl.lit([1]), pl.lit(True), pl.lit(b"x")])
        table = table.with_columns(wrong.alias(column))
    elif kind == "unsorted" and table["submit_time"].n_unique() > 1:
        table = table.reverse()
    elif kind == "swapped" and table["job_id"][0] is not None and table.height > 1:
        table = table.with_columns(submit_time=pl.lit(0.0), job_id=pl.int_range(pl.len(), 0, -1))
    else:
        table = table.drop(column)
    workload = replace(drawn.workload(), jobs=table)
    if rng.random() < 0.5 and "shapes" not in table.columns:  # as read from a file
        with tempfile.TemporaryDirectory() as folder:
            write_workload(workload, Path(folder) / "drawn.parquet")
            workload = read_workload(Path(folder) / "drawn.parquet")
    simulate(workload, Scheduler(**drawn.options))
    return FAILURE, f"{kind} of {column} in row {row} was accepted: {table.to_dict(as_series=False)} {drawn.options}"


HOSTILE: dict[str, tuple[Any, ...]] = {
    "reservations": (0, -1, 2.5, "3", None, True, math.nan, 2**31, 2**62, 10**30, [1]),
    "order": (5, "", "nope", "1/0", "(" * 300, "__import__('os')", None, "user_id + 'a'", ["fcfs"], "9" * 500),
    "backfill": (5, "", "eazy", None, ["easy"]),
    "sharing_limit": (math.nan, -1.0, "x", None),
    "efficiency": (0, 2, math.nan, "x", None),
    "estimates": (0, "maybe", None),
    "prediction": (0, "oracle", None, {}),
    "allocation": (0, "anywhere", None, ()),
    "clusters": (5, ({},), ({"processors": 0},), ({"processors": 4, "order": "nope"},), ({"processors": "4"},), (5,)),
    "without_status": (5, ("x",), (None,), "5"),
    "penalty": (5, "", "nope", "usage +", None),
}
WINDOW_ENDS = (math.nan, math.inf, -math.inf, 1e13, 1e18, "1996-13-45", "soon", None, [], 0.0, 50.0, True)
WINDOW_SIZES = (0, -5, 5000, 10**30, 2.5, "3", None, math.nan, 1)


def hostile_options(rng: random.Random) -> tuple[str, str]:
    """Change an option to an invalid value, or to an unusual valid one."""
    drawn = plain(rng)
    given = dict(drawn.options)
    option = rng.choice([*HOSTILE, "unavailable", "unavailable", "unavailable"])
    if option == "unavailable":
        begin, end = rng.choice(WINDOW_ENDS), rng.choice(WINDOW_ENDS)
        window = {"from": begin, "until": end, "processors": rng.choice(WINDOW_SIZES)}
        given["unavailable"] = (window,)
        given.pop("clusters", None)
    else:
        given[option] = rng.choice(HOSTILE[option])
    outcomes = simulate(drawn.workload(), Scheduler.of("hostile", given))
    for column in ("start_time", "end_time"):
        if not outcomes[column].is_finite().all() or outcomes[column].null_count():
            return FAILURE, f"{option}: {given[option]!r} gives {column} {outcomes[column].to_list()} of {drawn}"
    if option == "unavailable":
        if not plain_window(given["unavailable"][0], drawn.machine.processors):
            return FAILURE, f"{option}: {given[option]!r} was accepted of {drawn}"
        until = given["unavailable"][0]["until"]
        given["unavailable"] = ({**given["unavailable"][0], "until": 1e13 if until is None else until},)
    if option != "unavailable" and (given[option] is not None and option != "reservations"):
        return EQUAL, ""  # a valid value, such as a constant order
    defaults = {name: option.default for name, option in OPTIONS.items()}
    drawn.options = defaults | {key: value for key, value in given.items() if value is not None}
    if option in ("penalty", "allocation", "sharing_limit", "efficiency", "clusters", "without_status"):
        return EQUAL, ""  # null: the option's default
    wrong = differences(drawn, outcomes)
    return (FAILURE, f"{option}: {given[option]!r}: {wrong} in {drawn}") if wrong else (EQUAL, "")


def plain_window(window: dict[str, Any], machine: int) -> bool:
    """Return whether a window is valid: times in order, existing processors; null is indefinite."""
    begin, end, away = window["from"], window["until"], window["processors"]
    numbers = [begin] if end is None else [begin, end]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one) for one in numbers):
        return False
    whole = isinstance(away, int) and not isinstance(away, bool)
    return whole and 1 <= away <= machine and max(map(abs, numbers)) <= 1e12 and (end is None or begin < end)


WORDS = (
    "1e16",
    "-1",
    "0",
    "nan",
    "4e18",
    "1.5",
    "",
    "-",
    "1e5",
    "9" * 25,
    "0.1",
    "; x",
    "1 2",
    "x",
    "1_0",
    "+3",
    "1e400",
)


def hostile_log(rng: random.Random) -> tuple[str, str]:
    """Change words and bytes of a log; a plain parser gives the expected lines."""
    lines = []
    for number in range(rng.randint(1, 6)):
        words = [str(rng.randint(-1, 100)) for _ in SWF_FIELDS]
        words[0] = str(number)
        for _ in range(rng.choice([0, 0, 0, 1, 3])):
            words[rng.randrange(18)] = rng.choice(WORDS)
        lines.append(rng.choice([" ", "\t", "  "]).join(words))
    text = "\n".join(["; MaxProcs: 8", *lines, ""])
    if rng.random() < 0.3:
        place = rng.randrange(len(text))
        text = text[:place] + rng.choice("0123456789.-+eE; \t\nnaifx_") + text[place + rng.choice([0, 1]) :]
    expected = [plain_line(line) for line in of_standard_width(text)]
    try:
        found = parse_swf(text.encode(), "log.swf").fields.rows()
    except SwflowError:
        if expected and None not in expected:
            return FAILURE, f"a log was refused: {text!r}"
        raise
    same = [[float(value) for value in row] for row in found] == expected
    return (EQUAL, "") if same else (FAILURE, f"{text!r} was read as {found}")


def of_standard_width(text: str) -> list[str]:
    """Return the lines of jobs, with 18 words if all lack the last one or have as many further ones."""
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith(";")]
    if len({len(line.split()) for line in lines}) == 1:
        lines = [" ".join([*line.split(), "-1"][:18]) if len(line.split()) != 18 else line for line in lines]
    return lines


def plain_line(line: str) -> list[float] | None:
    """Return the numbers of a job line, or None if it is malformed."""
    words = line.split()
    try:
        values = [float(word) for word in words]
        # decimals: the fraction of 1e-999999999 would take too long
        whole = [Decimal(word) for word, dtype in zip(words, SWF_FIELDS.values(), strict=True) if dtype.is_integer()]
    except (ValueError, InvalidOperation):
        return None
    fits = all(
        not one or (one.adjusted() < 20 and one == one.to_integral_value() and -(2**63) <= one < 2**63) for one in whole
    )
    return values if fits and "_" not in line and all(map(math.isfinite, values)) else None


KINDS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "ordinary": ordinary,
    "slurm": slurm,
    "table": hostile_table,
    "options": hostile_options,
    "log": hostile_log,
}


def run_case(seed: int, number: int, kinds: list[str]) -> tuple[str, str, str]:
    """Return the kind of a case, its verdict, and a message."""
    rng = random.Random(f"{seed} {number}")
    kind = rng.choice(kinds)
    try:
        return kind, *KINDS[kind](rng)
    except SwflowError as error:
        text = str(error)
        if kind in ("ordinary", "slurm"):
            return kind, FAILURE, f"refused: {text}"
        if "\n" in text or len(text) > 2000:
            return kind, FAILURE, f"not one line: {text!r}"
        return kind, REFUSED, text
    except Exception:
        return kind, FAILURE, traceback.format_exc()


# --- the two processes -------------------------------------------------------------------------------------


def work(seed: int, kinds: list[str]) -> None:
    """Run the cases numbered on standard input, and print the verdicts; compile the kernels first."""
    warnings.simplefilter("ignore")
    for number in range(60):
        run_case(-1, number, kinds)
    print(json.dumps(["", "ready", ""]), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_case(seed, int(line), kinds)), flush=True)


class Worker:
    """The process that runs the cases; it can crash or hang."""

    def __init__(self, seed: int, kinds: list[str]) -> None:
        home = Path(os.environ.get("SWFLOW_CACHE") or Path.home() / ".cache" / "swflow")
        environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "SWFLOW_CACHE": str(home / "boundscheck")}
        command = [sys.executable, __file__, "--worker", "--seed", str(seed), "--kinds", *kinds]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.answers: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        if self._answer(START_LIMIT)[1] != "ready":
            raise SystemExit("the kernels cannot be compiled and tried; see above")

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put("")

    def _answer(self, limit: float) -> tuple[str, str, str]:
        try:
            line = self.answers.get(timeout=limit)
        except queue.Empty:
            self.process.kill()
            return "", FAILURE, f"no end within {limit:g} s"
        if not line:
            return "", FAILURE, f"the process died with status {self.process.wait()}"
        kind, verdict, text = json.loads(line)
        return kind, verdict, text

    def run(self, number: int) -> tuple[str, str, str]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return self._answer(CASE_LIMIT)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


def main() -> int:
    """Run cases until the time is over, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--cases", type=int, help="the most cases")
    parser.add_argument("--coverage", type=Path, help="a file of counts of the options that ordinary cases used")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="only these kinds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.seed, arguments.kinds)
        return 0
    worker = Worker(arguments.seed, arguments.kinds)
    counts: Counter[tuple[str, str]] = Counter()
    until = time.monotonic() + 60 * arguments.minutes
    number = first = arguments.first if arguments.case is None else arguments.case
    coverage = Coverage()
    while time.monotonic() < until and (arguments.cases is None or number < first + arguments.cases):
        kind, verdict, text = worker.run(number)
        counts[kind or "lost", verdict] += 1
        if kind == "ordinary" and verdict == EQUAL:
            coverage.add(tuple(choice) for choice in json.loads(text))
        if verdict == FAILURE:
            kinds = "" if arguments.kinds == list(KINDS) else f" --kinds {' '.join(arguments.kinds)}"
            print(f"case {number}: {text.strip()}", flush=True)
            print(f"    python tests/fuzz.py --seed {arguments.seed} --case {number}{kinds}", flush=True)
        elif arguments.case is not None:
            print(f"case {number}: {kind}: {verdict} {text}")
        if arguments.case is not None:
            break
        if not worker.alive:
            worker = Worker(arguments.seed, arguments.kinds)
        number += 1
    worker.process.kill()
    total = Counter[str]()
    for (kind, verdict), count in sorted(counts.items()):
        total[verdict] += count
        print(f"{kind:10} {verdict:10} {count:8,}")
    print(f"{total.total():,} cases: {total[REFUSED]:,} refused, {total[EQUAL]:,} equal, {total[FAILURE]:,} failures")
    if arguments.coverage is not None:
        if arguments.coverage.exists():
            coverage.read(arguments.coverage)
        coverage.write(arguments.coverage)
        print(f"\n{coverage.report()}")
    return 1 if total[FAILURE] else 0


if __name__ == "__main__":
    sys.exit(main())
