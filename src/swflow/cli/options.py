"""Options and arguments that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write: .parquet, .swf or .swf.gz.")]
ParquetOutput = Annotated[Path, typer.Option("--output", "-o", help="The file to write: .parquet.")]
Input = Annotated[Path, typer.Argument(help="A workload (.parquet) or a log (.swf, .swf.gz).")]
Inputs = Annotated[
    list[Path],
    typer.Argument(help="A workload (.parquet) or a log (.swf, .swf.gz); with --scheduler several, NAME@1-20.parquet."),
]
Processors = Annotated[int, typer.Option(help="Processors of the new machine.")]
CopiedShare = Annotated[
    float, typer.Option("--d", help="0 to 100: the share of the jobs, in percent, that are copied; others get wider.")
]
Copies = Annotated[int | None, typer.Option(help="For precise-size: how many copies; by default the factor, rounded.")]
NamedSchedulers = Annotated[
    list[str] | None, typer.Option("--scheduler", help="A scheduler with its options: NAME={JSON options}; repeatable.")
]
Threads = Annotated[int, typer.Option(help="How many draws are simulated at a time; the result is the same.")]
Seed = Annotated[int, typer.Option(help="The seed of every random draw.")]
Name = Annotated[str | None, typer.Option(help="The log's name; by default the file's.")]
WithoutStatus = Annotated[
    list[int] | None,
    typer.Option(help="Leave out jobs of this SWF status (0 failed, 1 completed, 5 cancelled); repeatable."),
]
