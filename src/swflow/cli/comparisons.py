"""Commands about comparisons of runs: power."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.terminal import format_number, print_table, say


@app.command()
def power(
    first: Annotated[str, typer.Argument(help="A run: a file that swflow simulate wrote, or WORKLOAD/SCHEDULER.")],
    second: Annotated[str, typer.Argument(help="Another run of the same log.")],
    percent: Annotated[
        list[float] | None, typer.Option(help="A difference of the means, in percent of the first's; repeatable.")
    ] = None,
    certainty: Annotated[
        float, typer.Option("--power", help="How probable it is to be that the 95 % interval leaves out zero.")
    ] = 0.8,
    database: Annotated[Path, typer.Option(help="Where runs that are no files are looked for.")] = Path(
        "results/swflow.duckdb"
    ),
) -> None:
    """
    Say how many weeks, or replicates, it takes until a difference of some percent between two runs shows.

    Of two runs: weeks of the log, by how differently their weeks come out (paired block bootstrap). Of a workload that
    was drawn more than once, named without its number: replicates. Further ones are thought to be like those that are
    there.

    Example: `swflow power KTH-SP2+ran/easy KTH-SP2+ran/fcfs --percent 5`, `swflow power easy.parquet mine.parquet`
    """
    from swflow.power import power_of

    found = power_of(first, second, percent or (1.0, 2.0, 5.0, 10.0, 20.0), certainty, database)
    wanted = [f"for {share:g} %" for share in found[0].needed]
    rows = [
        [
            one.measure, format_number(one.first), format_number(one.second), one.difference_in_words(),
            "-" if one.smallest is None else f"{one.smallest:.3g} %",
            *("never" if count is None else f"{count:,}" for count in one.needed.values()),
        ]
        for one in found
    ]  # fmt: skip
    print_table(["mean of", "first", "second", "difference", f"shows with {found[0].blocks:,}", *wanted], rows)
    say(
        f"{found[0].blocks:,} {found[0].basis}; the difference (second minus first) with its 95 % interval; the "
        f"smallest difference, in percent of the first's mean, that these show with a probability of "
        f"{100 * certainty:g} %; how many {found[0].basis} differences take"
    )
