"""
Ask swflow what changes at sites whose answers are known, and compare.

    python benchmarks/truths.py [--sites A B C D] [--jobs 8000] [--weeks 10] [--seed 1] [--first 3] [--keep FOLDER]

`other_simulator.py` simulates four sites (`truth_sites.py`), and again with each change: that is the truth. Then the
public commands of swflow read the files of a site and answer the questions. The table shows the change of the mean
wait in truth and as answered with its 95 % interval; whether the truth is inside; whether the sign is right, and
whether the answer calls it certain; and the errors of the simulated mean waits beside the trust that swflow states.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from other_simulator import check, simulate, waits
from truth_sites import CASES, Case, write_files

#: A base as close as this to the recorded mean wait must not be called unlike it.
CLOSE = 0.1


class Outcome(NamedTuple):
    """A question, the true change of the mean wait, and the answer; changes are relative to the base."""

    site: str
    words: str
    truth: float
    found: float
    low: float
    high: float
    verdict: str
    trust: str
    base_error: float
    error: float

    @property
    def is_inside(self) -> bool:
        """Whether the truth is in the interval."""
        return self.low <= self.truth <= self.high

    @property
    def is_certain(self) -> bool:
        """Whether the answer states a direction."""
        return self.verdict in ("variant is better", "base is better")

    @property
    def is_wrong(self) -> bool:
        """Whether the answer states the wrong direction."""
        return self.is_certain and self.found * self.truth < 0

    @property
    def is_unjust(self) -> bool:
        """Whether the answer doubts a base whose mean wait is close to the recorded one."""
        return self.trust == "directions" and abs(self.base_error) <= CLOSE

    def cells(self) -> list[str]:
        """Return the row of the table."""
        sign = "right" if self.found * self.truth > 0 else "wrong"
        return [
            self.site, self.words, f"{100 * self.truth:+.1f} %", f"{100 * self.found:+.1f} %",
            f"{100 * self.low:+.1f} to {100 * self.high:+.1f} %", "inside" if self.is_inside else "OUTSIDE",
            sign + (", certain" if self.is_certain else ", open"), self.trust,
            f"{100 * self.base_error:+.1f} %", f"{100 * self.error:+.1f} %",
        ]  # fmt: skip


COLUMNS = ("site", "question", "truth", "swflow", "95 % interval", "truth is", "sign", "trust", "base error", "error")


def call(folder: Path, *words: str) -> str:
    """Run swflow in a folder; return what it prints."""
    done = subprocess.run(["swflow", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"swflow {' '.join(words)}: {done.stderr}{done.stdout}")
    return done.stdout


def mean_wait(case: Case, change: object = None) -> tuple[float, Sequence[object]]:
    """Return the mean wait of the site, or of a changed one, and the records."""
    site, jobs = change(case.site, case.jobs) if callable(change) else (case.site, case.jobs)
    records = simulate(site, jobs)
    found = waits(records)
    return sum(found.values()) / len(found), records


def answers(case: Case, folder: Path, first: int | None = None) -> Iterator[Outcome]:
    """Yield the outcomes of the questions of a site, or of the first ones."""
    base, records = mean_wait(case)
    write_files(case, records, folder)  # type: ignore[arg-type]
    settings = list(case.settings)
    if case.conf:
        tables = ("--qos", "qos.txt", "--associations", "assoc.txt", "--nodes", "nodes.txt")
        call(folder, "import", "site", "conf/slurm.conf", *tables, "-o", "site.yaml")
        settings = ["--config", "site.yaml"]
    call(folder, "import", "sacct", "sacct.txt", "-o", "my.parquet", *case.settings)
    for question in case.questions[:first]:
        truth, _ = mean_wait(case, question.change)
        answer = json.loads(call(folder, "whatif", "my.parquet", *settings, *question.options, "--json"))
        row = answer["variants"][1]["measures"]["mean_wait_time"]
        ends = [float("nan") if row[name] is None else row[name] / row["base"] for name in ("low", "high")]
        yield Outcome(
            case.name, question.words, truth / base - 1, row["difference"] / row["base"], ends[0], ends[1],
            row["verdict_holm"], answer["trust"], row["base"] / base - 1, row["value"] / truth - 1,
        )  # fmt: skip


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def main() -> None:
    """Print the table and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sites", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--jobs", type=int, default=8000, help="Jobs of a site (default: 8,000).")
    parser.add_argument("--weeks", type=float, default=10, help="Weeks of a site (default: 10).")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Write the files of the sites to this folder, and keep them.")
    parser.add_argument("--first", type=int, help="Ask only the first questions of each site (default: all).")
    options = parser.parse_args()
    check()
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.sites:
            folder = (options.keep or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            case = CASES[name](options.jobs, options.weeks, options.seed)
            for one in answers(case, folder, options.first):
                found.append(one)
                print(" ".join(one.cells()), file=sys.stderr, flush=True)
    print(table([COLUMNS, *(one.cells() for one in found)]))
    inside, wrong = sum(one.is_inside for one in found), sum(one.is_wrong for one in found)
    unjust = sum(one.is_unjust for one in found)
    print(f"\n{inside} of {len(found)} truths inside; {wrong} wrong signs called certain; {unjust} unjust doubts")
    print(f"{time.process_time():.0f} s CPU of the other simulator", file=sys.stderr)


if __name__ == "__main__":
    main()
