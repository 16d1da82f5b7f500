"""Functions of the public interface that adapt others to Python users; `swflow` offers them by their short names."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload

if TYPE_CHECKING:
    from swflow.analysis.reasons import Reasons
    from swflow.log.importers.records import Site
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.whatif import Answer


def metrics(outcomes: pl.DataFrame, machine: Machine | int) -> dict[str, float | None]:
    """
    Compute the metrics of a simulated schedule.

    Parameters
    ----------
    outcomes : polars.DataFrame
        The table that `simulate` returns: one row per job.
    machine : Machine or int
        The machine, or its number of processors.

    Returns
    -------
    dict
        Metric to value: ``makespan``, ``awrt`` and ``awwt`` in seconds, ``utilization`` from 0 to 1, the mean, median
        and 95th percentile of waits, response times and slowdowns, and others; see `swflow.analysis.metrics.metrics`.

    Examples
    --------
    >>> import swflow
    >>> workload = swflow.generate(jobs=200, processors=64)
    >>> found = swflow.metrics(swflow.simulate(workload, swflow.Scheduler(backfill="easy")), workload.machine)
    >>> found["jobs"], found["killed"]
    (200, 0)
    """
    from swflow.analysis.metrics import metrics as compute

    return compute(outcomes, machine if isinstance(machine, int) else machine.processors)


def read_log(path: str | os.PathLike[str], *, columns: str | None = None, site: "Site | None" = None) -> pl.DataFrame:
    r"""
    Read the jobs of a log, or of accounting data of any kind that swflow recognizes.

    Parameters
    ----------
    path : path-like
        A log (.swf, .swf.gz, imported .parquet), or accounting data of Slurm, PBS, LSF, Grid Engine, HTCondor, Batsim
        or another kind that ``swflow check`` names.
    columns : str, optional
        For a table with a header: the mapping of its columns, a YAML file or an included name.
    site : Site, optional
        The machine and the time zone of accounting data (default: UTC, and the peak use).

    Returns
    -------
    polars.DataFrame
        One row per job: the columns of the Standard Workload Format, and further ones that the data have.

    Raises
    ------
    SwflowError
        If the file is of no such kind, or has no valid job.

    Examples
    --------
    >>> import swflow
    >>> from pathlib import Path
    >>> _ = Path("/tmp/read-log.csv").write_text("id,sent,ran,cores\n1,1700000000,60,4\n")
    >>> _ = Path("/tmp/read-log.yaml").write_text("columns: {submit_time: sent, run_time: ran, processors: cores}")
    >>> swflow.read_log("/tmp/read-log.csv", columns="/tmp/read-log.yaml")["run_time"].to_list()
    [60.0]
    """
    from swflow.log.importers.any import read_jobs

    return read_jobs(path, site, columns)


def query(
    sql: str, database: str | os.PathLike[str] = "results/swflow.duckdb", parameters: Mapping[str, object] | None = None
) -> pl.DataFrame:
    """
    Run one SQL query that reads a database.

    Parameters
    ----------
    sql : str
        The query. Tables and columns are listed in the reference of the database.
    database : path-like
        A database that `load` wrote.
    parameters : mapping, optional
        Values of the query's parameters: ``$run`` is ``parameters["run"]``.

    Returns
    -------
    polars.DataFrame

    Raises
    ------
    SwflowError
        If there is no such database, or the query is wrong or does not only read.

    Examples
    --------
    >>> import swflow
    >>> swflow.query("SELECT run, mean_wait_time FROM metrics WHERE scheduler = $name",
    ...              "site.duckdb", {"name": "easy"})  # doctest: +SKIP
    """
    from swflow.files.query import query as run_query
    from swflow.files.query import require_unique_columns

    columns, rows = run_query(database, sql, parameters=parameters)
    require_unique_columns(columns)
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def draw(
    kind: str,
    database: str | os.PathLike[str] = "results/swflow.duckdb",
    *,
    output: str | os.PathLike[str] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """
    Draw a figure of runs in a database.

    Parameters
    ----------
    kind : str
        One of the kinds that ``swflow figure --help`` lists, such as ``heatmap``.
    database : path-like
        A database that `load` wrote.
    output : path-like, optional
        A file to write: .png, .svg, or .json (Vega-Lite).
    **options
        As of `swflow.figures.draw`: ``log`` or ``runs``, ``split``, ``scale``, ``window``, ``title``, ``interactive``;
        of kind ``sweep`` as of `swflow.figures.draw_sweep`.

    Returns
    -------
    dict
        The Vega-Lite specification.

    Raises
    ------
    SwflowError
        If there is no such run, kind or option, or the ending of the output is unknown.

    Examples
    --------
    >>> import swflow
    >>> spec = swflow.draw("heatmap", "site.duckdb", log="site", output="site.png")  # doctest: +SKIP
    """
    from swflow.figures import draw as draw_runs
    from swflow.figures import draw_sweep, write

    spec = draw_sweep(database, **options) if kind == "sweep" else draw_runs(kind, database, **options)
    if output is not None:
        write(spec, output)
    return spec


def whatif(
    workload: Workload,
    schedulers: Sequence[str] | Mapping[str, Mapping[str, object]],
    *,
    processors: Sequence[str] = (),
    nodes: Sequence[str] = (),
    estimates: Sequence[str] = (),
    arrivals: Sequence[float] = (),
    run_times: Sequence[float] = (),
) -> "Answer":
    """
    Simulate a workload under other schedulers, machines, estimates, arrivals or run times, and compare.

    Parameters
    ----------
    workload : Workload
        The recorded log, cleaned.
    schedulers : sequence of str, or mapping
        Schedulers as on the command line (``site``, ``site-sjf``, ``easy``, ``mine: {order: sjf, backfill: easy}``),
        or names with options. The first is the base.
    processors : sequence of str
        Also with other machines: ``+20%``, ``+64``, a number of processors, or ``cpu=+20%`` for a partition.
    nodes : sequence of str
        Also with more or fewer nodes: ``+2``, or ``gpu=+2`` for a partition.
    estimates : sequence of str
        Also with other estimates: ``perfect``, or a factor of the run times.
    arrivals : sequence of float
        Also with the arrival rate multiplied by these factors.
    run_times : sequence of float
        Also with the run times multiplied by these factors.

    Returns
    -------
    Answer
        ``table`` has one row per variant and measure, with the difference to the base and its 95 % interval.

    Raises
    ------
    SwflowError
        If a variant cannot be simulated.

    Examples
    --------
    >>> import swflow
    >>> answer = swflow.whatif(swflow.generate(jobs=300, processors=64), ["easy", "fcfs"])
    >>> answer.table["variant"].unique(maintain_order=True).to_list()
    ['easy', 'fcfs']
    """
    from swflow.studies.site_scheduler import SiteModel
    from swflow.studies.variants import variants
    from swflow.studies.whatif import ask

    if isinstance(schedulers, Mapping):
        named = dict(schedulers)
    else:
        site = SiteModel.of(workload)
        named = dict(site.scheduler(text) for text in schedulers)
    chosen = variants(
        named, processors=processors, nodes=nodes, estimates=estimates, arrivals=arrivals, run_times=run_times
    )
    return ask(workload, chosen)


def why(workload: Workload, scheduler: "Scheduler | None" = None, outcomes: pl.DataFrame | None = None) -> "Reasons":
    """
    Divide the wait of each job by its reasons.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler, optional
        Simulate this scheduler; default: the recorded schedule.
    outcomes : polars.DataFrame, optional
        Instead of a simulation, what `simulate` returned for this scheduler.

    Returns
    -------
    Reasons
        ``table`` has one row per job: ``job_id``, and the seconds of ``eligibility``, ``limit``, ``room``,
        ``fragmentation`` and ``drain`` (parts of room), ``order`` and ``latency``. ``unknown`` names the reasons that
        cannot be computed, with the cause; they are null.

    Raises
    ------
    SwflowError
        If the workload cannot be simulated, or no wait is recorded.

    Examples
    --------
    >>> import swflow
    >>> found = swflow.why(swflow.generate(jobs=300, processors=64), swflow.Scheduler(backfill="easy"))
    >>> found.table.height, found.unknown
    (300, {})
    """
    from swflow.scheduling.scheduler import LOG, Scheduler
    from swflow.studies.why import why as divided

    found = divided(workload, scheduler or Scheduler(order=LOG), "", outcomes=outcomes)
    return found.reasons
