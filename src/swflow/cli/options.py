"""Options and arguments that several commands share."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

#: The option ``--output``, whose help is in the docstring of the command.
OUTPUT = Option("--output", "-o")

Output = Annotated[Path, Option("--output", "-o", help="Write the workload to this file: .parquet, .swf or .swf.gz.")]
Input = Annotated[Path, Argument(help="A workload (.parquet) or a log (.swf, .swf.gz).")]
AnyLog = Annotated[
    Path,
    Argument(help="A log (.swf, .swf.gz, an imported .parquet, the output of sacct -P) or a workload (.parquet)."),
]
Mirror = Annotated[
    str | None, Option(help="Try this folder or base URL with the archive's files first (default: the archive only).")
]
Catalogues = Annotated[
    list[Path] | None,
    Option(help="Read logs from this catalogue (YAML); repeatable, later entries win (default: config/logs.yaml)."),
]
Database = Annotated[Path, Option(help="Read this database of swflow load.")]
Processors = Annotated[int, Option(help="The number of processors of the new machine.")]
CopiedShare = Annotated[
    float, Option("--d", help="Copy this share of the jobs, in percent (0 to 100), and widen the others.")
]
Copies = Annotated[
    int | None, Option(help="Make this number of copies; for variant precise-size (default: the factor, rounded).")
]
NamedSchedulers = Annotated[
    list[str] | None,
    Option(
        "--scheduler",
        help="Simulate this scheduler: fcfs, easy, conservative, sjbf, an order (sjf, wfp3, f1 …) with EASY "
        "backfilling, ORDER-conservative, 'name: {order: sjf, backfill: easy}' or NAME={JSON options}; repeatable.",
    ),
]
MachineSize = Annotated[
    int | None, Option("--machine-processors", help="Processors of the machine (default: the log's).")
]
Outputs = Annotated[
    list[Path] | None, Option("--output", "-o", help="Also write .html, .json, .csv or .parquet; repeatable.")
]
Threads = Annotated[int, Option(help="Simulate this number of draws in parallel; the result does not depend on it.")]
Seed = Annotated[int, Option(help="The seed of all random draws.")]
Name = Annotated[str | None, Option(help="The name of the log (default: that of the file).")]
WithoutStatus = Annotated[
    list[int] | None, Option(help="Leave out jobs of this SWF status: 0 failed, 1 completed, 5 cancelled; repeatable.")
]
