"""Commands that compare runs: power."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.terminal import format_number, print_table, say


@app.command()
def power(
    first: Annotated[
        str, typer.Argument(help="A run: a .parquet file of swflow simulate, or WORKLOAD/SCHEDULER of the database.")
    ],
    second: Annotated[str, typer.Argument(help="Another run of the same log.")],
    percent: Annotated[
        list[float] | None,
        typer.Option(
            help="Detect this difference of the means, in percent of the first mean; repeatable "
            "(default: 1, 2, 5, 10, 20)."
        ),
    ] = None,
    certainty: Annotated[
        float,
        typer.Option(
            "--power", help="The statistical power, 0 to 1: the probability that the 95 % interval excludes zero."
        ),
    ] = 0.8,
    database: Annotated[Path, typer.Option(help="Read WORKLOAD/SCHEDULER from this database.")] = Path(
        "results/swflow.duckdb"
    ),
) -> None:
    """
    Estimate how many weeks or replicates are needed to detect a difference between two runs.

    For two runs of a log, the unit is a week of the log, and the variance is that of the weekly differences (paired
    block bootstrap). For a workload with replicates, named without their number, the unit is a replicate. The estimate
    assumes that further weeks or replicates vary like the existing ones.

    Example: `swflow power KTH-SP2+ran/easy KTH-SP2+ran/fcfs --percent 5`, `swflow power easy.parquet mine.parquet`
    """
    from swflow.studies.power import power_of

    found = power_of(first, second, percent or (1.0, 2.0, 5.0, 10.0, 20.0), certainty, database)
    basis, blocks = found[0].basis, found[0].blocks
    wanted = [f"{basis} for {share:g} %" for share in found[0].needed]
    rows = [
        [
            one.measure, format_number(one.first), format_number(one.second), one.difference_in_words(),
            "-" if one.smallest is None else f"{one.smallest:.3g} %",
            *("never" if count is None else f"{count:,}" for count in one.needed.values()),
        ]
        for one in found
    ]  # fmt: skip
    print_table(["mean of", "first", "second", "difference", f"detectable in {blocks:,} {basis}", *wanted], rows)
    say(
        f"The runs have {blocks:,} {basis}. The difference is second minus first, with its 95 % interval. Differences "
        f"are in percent of the first mean; each is detected with a probability of {100 * certainty:g} %."
    )
