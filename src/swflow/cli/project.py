"""Commands that begin a project: init."""

from pathlib import Path
from typing import Annotated

import typer

from swflow.cli.app import app
from swflow.cli.terminal import say


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The folder to make; nothing in it is overwritten.")],
    log: Annotated[
        Path | None,
        typer.Option(
            help="A log of your own to begin with (.swf, .swf.gz, an imported .parquet, what sacct -P printed); else a "
            "synthetic one."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="The log's name; by default the file's.")] = None,
    processors: Annotated[
        int | None, typer.Option(help="Processors of the log's machine; by default the file's header says it.")
    ] = None,
) -> None:
    """
    Begin a project: a folder with a config and a Snakefile that use the workflow of swflow.

    Example: `swflow init demo && cd demo && snakemake --cores all`,
    `swflow init my-study --log accounting.swf.gz --processors 512`
    """
    from swflow.project import init as make_project

    for path in make_project(folder, log=log, name=name, processors=processors):
        say(f"{path}: written")
    say(f"next: cd {folder} && snakemake --cores all")
