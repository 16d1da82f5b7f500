"""Commands that create a project: init."""

import shlex
from pathlib import Path

from swflow.cli.app import app
from swflow.cli.imports import MachineResources, PartitionSizes
from swflow.cli.option_values import read_units
from swflow.cli.terminal import say


@app.command()
def init(
    folder: Path,
    log: Path | None = None,
    site: Path | None = None,
    name: str | None = None,
    processors: int | None = None,
    partition: PartitionSizes = None,
    machine_resource: MachineResources = None,
) -> None:
    """
    Create a project: a folder with a config and a Snakefile that use the workflow of swflow.

    If the log has several partitions, the config simulates each as a cluster (schedulers `site`, `site-fcfs` …).

    Example: `swflow init demo && cd demo && snakemake --cores all`,
    `swflow init my-study --log accounting.swf.gz --processors 512`,
    `swflow init cluster --log sacct.txt --site site.yaml`

    Options
    -------
    folder: The folder to create; existing files are not overwritten.
    log: Your log (.swf, .swf.gz, an imported .parquet, the output of sacct -P); default: a synthetic log.
    site: Take the machine and the scheduler from this config (swflow import site); the study asks what more nodes and
        another order would change.
    name: The log's name (default: the file's name).
    processors: Processors of the log's machine (default: the size in the file's header).
    """
    from swflow.log.site import GUESSED, SITE
    from swflow.studies.project import init as create_project

    stated, resources = read_units(partition, "--partition"), read_units(machine_resource, "--machine-resource")
    project = create_project(
        folder, log=log, name=name, processors=processors, partitions=stated, resources=resources, site_config=site
    )
    for path in project.files:
        say(f"{path}: written")
    if site is not None:
        say(f"scheduler {SITE}: {project.processors:,} processors, from {site}")
        if project.left_out:
            say(f"{project.left_out:,} jobs are left out: they need more than {site} has or its limits allow")
    elif len(project.partitions) > 1:
        sizes = ", ".join(
            f"{one.name} {one.processors:,}" + f" ({GUESSED})" * one.is_guessed for one in project.partitions
        )
        say(f"scheduler {SITE}: one cluster per partition, in processors: {sizes}; edit config/config.yaml")
    elif project.guess:
        say(f"warning: the size of the machine is not stated ({project.guess}); expected --processors")
    if project.resources:
        units = ", ".join(
            f"{name} {count:,}" + f" ({GUESSED})" * (name in project.guessed_resources)
            for name, count in project.resources.items()
        )
        say(f"scheduler {SITE}: also schedules {units}; state the units with --machine-resource")
    say(f"next: cd {shlex.quote(str(folder))} && snakemake --cores all")
