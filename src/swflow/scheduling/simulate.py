"""Simulating: a workload under a scheduler, to the outcome of every job."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
import polars as pl

from swflow.errors import SwflowError
from swflow.jobs import NEEDED_COLUMNS, Workload, check_arrays, check_columns, check_workload
from swflow.machine import MOST_PROCESSORS, free_memory
from swflow.scheduling import orders
from swflow.scheduling.feedback import feedback_of
from swflow.scheduling.options import require_moment, require_window
from swflow.scheduling.own import is_own
from swflow.scheduling.own_order import OwnOrder
from swflow.scheduling.owners import Accounts, Names, accounts_of, formula_of
from swflow.scheduling.scheduler import LOG, Scheduler

Table = TypeVar("Table", pl.DataFrame, pl.LazyFrame)

#: The columns of an outcomes table, in order. Times are seconds; ``load`` is filled by the analysis, ``places`` (the
#: processors, as ranges such as 0-3,8) and ``centre`` (from 1) by schedulers that are asked for them.
OUTCOME_COLUMNS: dict[str, pl.DataType] = {
    "job_id": pl.Int64(),
    "submit_time": pl.Float64(),
    "start_time": pl.Float64(),
    "end_time": pl.Float64(),
    "processors": pl.Int64(),
    "run_time": pl.Float64(),
    "penalty_time": pl.Float64(),
    "killed": pl.Boolean(),
    "wait_time": pl.Float64(),
    "response_time": pl.Float64(),
    "slowdown": pl.Float64(),
    "bounded_slowdown": pl.Float64(),
    "load": pl.Float64(),
    "backlog_load": pl.Float64(),
    "places": pl.String(),
    "centre": pl.Int64(),
}

#: Those of them that follow from others; see `with_derived`.
DERIVED_OUTCOMES = ("end_time", "wait_time", "response_time", "slowdown", "bounded_slowdown")

#: Run times below this count as this in the bounded slowdown, seconds.
SLOWDOWN_BOUND = 10.0


def simulate(workload: Workload, scheduler: Scheduler) -> pl.DataFrame:
    """
    Replay a workload under a scheduler.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler
        How the queue is served. ``Scheduler(order="log")`` replays the recorded starts; jobs without a
        recorded wait time then have no outcome.

    Returns
    -------
    polars.DataFrame
        One row a job with the columns of `OUTCOME_COLUMNS`, in the order of the workload; ``load`` is null.

    Raises
    ------
    SwflowError
        If the workload is not what `swflow.jobs.check_workload` demands, or does not fit into the memory.

    Examples
    --------
    >>> from swflow.machine import Machine
    >>> jobs = pl.DataFrame({
    ...     "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [10.0, 10.0, 3.0],
    ...     "processors": [3, 4, 1], "estimate": [10.0, 10.0, 5.0],
    ... })
    >>> tiny = Workload(jobs, Machine.of(4), "tiny")
    >>> simulate(tiny, Scheduler(backfill="none"))["start_time"].to_list()
    [0.0, 10.0, 20.0]
    >>> simulate(tiny, Scheduler(backfill="easy"))["start_time"].to_list()
    [0.0, 10.0, 2.0]
    """
    return with_derived(simulate_narrow(workload, scheduler))


def simulate_narrow(workload: Workload, scheduler: Scheduler) -> pl.DataFrame:
    """
    Replay a workload under a scheduler, and return of the outcomes only what does not follow from the rest.

    A hundred million jobs take 13 GB in all columns and half as much without `DERIVED_OUTCOMES`; what is as it is in
    the job table is not copied. `with_derived` adds the others.

    Parameters
    ----------
    workload, scheduler
        As of `simulate`.

    Raises
    ------
    SwflowError
        As `simulate` does.
    """
    if scheduler.order == LOG:
        return _as_recorded(workload.name, _jobs_of(workload, scheduler))
    simulation = prepare(workload, scheduler)
    jobs = _jobs_of(workload, scheduler)
    try:
        schedule = simulation()
    except MemoryError:
        raise SwflowError(
            f"{workload.name}: its schedule does not fit into the memory; give fewer jobs, a smaller machine, or "
            "allocation count"
        ) from None
    del simulation  # and the arrays that it holds
    run, killed = jobs["run_time"], pl.repeat(False, jobs.height, eager=True)
    if scheduler.estimates == "kill":
        run, killed = map(pl.Series, _run_times(jobs, scheduler))
    if schedule.run is not None:
        run = pl.Series(schedule.run)
    if schedule.killed is not None:
        killed = pl.Series(schedule.killed)
    if schedule.submit is not None:
        jobs = jobs.with_columns(submit_time=schedule.submit)
    if schedule.processors is not None:
        jobs = jobs.with_columns(processors=schedule.processors)
    table = narrow_outcomes(jobs, pl.Series(schedule.start), run, killed, schedule.penalty)
    extra = {"places": schedule.places, "centre": schedule.centre}
    return table.with_columns(**{name: values for name, values in extra.items() if values is not None})


#: The options of schedulers that look at nothing but what every workload has.
_PLAIN_OPTIONS = frozenset(
    {"order", "backfill", "lookahead", "backfill_order", "estimates", "prediction", "allocation", "places",
     "event_order", "unavailable", "without_status"}
)  # fmt: skip

#: What of a job every workload has, and formulas may mention, besides the time.
_PLAIN_VARIABLES = frozenset({"now", "wait", "submit_time", "estimate", "processors"})


def columns_needed(scheduler: Scheduler) -> tuple[str, ...] | None:
    """
    Return the columns of a job table that a scheduler looks at besides those that every workload has.

    Returns
    -------
    tuple of str or None
        None: it may be any.

    Examples
    --------
    >>> columns_needed(Scheduler(backfill="easy")), columns_needed(Scheduler(order="user_id"))
    ((), None)
    """
    special = [
        option.name
        for option in fields(Scheduler)
        if option.name not in _PLAIN_OPTIONS and getattr(scheduler, option.name) != option.default
    ]
    if special or scheduler.shares or _looks_at_attributes(scheduler):
        return None
    needed = ["wait_time"] if scheduler.order == LOG else []
    needed += ["status"] if scheduler.without_status else []
    needed += ["user_id"] if scheduler.prediction == "system" else []
    return tuple(needed)


def _looks_at_attributes(scheduler: Scheduler) -> bool:
    """Return whether an order may ask whose a job is; of functions in Python it is not known."""
    asked = [scheduler.order, scheduler.backfill_order]
    asked += [centre.get(option) for centre in scheduler.centres for option in ("order", "backfill_order")]
    return any(
        not isinstance(order, str) or is_own(order) or not orders.mentioned(order) <= _PLAIN_VARIABLES
        for order in asked
        if order is not None
    )


def _jobs_of(workload: Workload, scheduler: Scheduler) -> pl.DataFrame:
    """Return the jobs that take part, in the types of the job table."""
    needed = ("status",) if scheduler.without_status else ()
    jobs = check_columns(workload.jobs, workload.name, needed)
    if scheduler.without_status:
        jobs = jobs.filter(~pl.col("status").is_in(list(scheduler.without_status)).fill_null(False))
    return jobs


def _run_times(jobs: pl.DataFrame, scheduler: Scheduler) -> tuple[np.ndarray, np.ndarray]:
    """Return the run times as simulated, and who is killed."""
    run, estimate = jobs["run_time"].to_numpy(), jobs["estimate"].to_numpy()
    if scheduler.estimates == "raise":
        return run, np.zeros(len(run), bool)
    return np.minimum(run, estimate), run > estimate


def planned_run_times(run: np.ndarray, estimate: np.ndarray, prediction: str) -> np.ndarray:
    """
    Return what the scheduler takes for the run times; with ``system``, what its predictions must not pass.

    A length of 0 cannot be planned: nothing is planned for less than a second.

    Parameters
    ----------
    run, estimate : float64 array of shape (jobs,)
        Run times, and user estimates that are not below them, seconds.
    prediction : {'user', 'perfect', 'double', 'system'}
        As in `Scheduler`.

    Returns
    -------
    float64 array of shape (jobs,)
        Seconds, at least 1.
    """
    planned = run if prediction == "perfect" else 2 * estimate if prediction == "double" else estimate
    return np.maximum(planned, 1.0)


def outcomes(
    jobs: pl.DataFrame, start: pl.Series, run: pl.Series, killed: pl.Series, penalty: pl.Series | None = None
) -> pl.DataFrame:
    """Make the outcomes table of start times, simulated run times, who was killed, and what penalties took."""
    return with_derived(narrow_outcomes(jobs, start, run, killed, penalty))


def narrow_outcomes(
    jobs: pl.DataFrame, start: pl.Series, run: pl.Series, killed: pl.Series, penalty: pl.Series | None = None
) -> pl.DataFrame:
    """Make of an outcomes table what does not follow from the rest."""
    table = jobs.select("job_id", "submit_time", "processors").with_columns(
        start_time=start,
        run_time=run,
        killed=killed,
        penalty_time=pl.lit(0.0) if penalty is None else penalty,
        load=None,
        backlog_load=None,
        places=None,
        centre=None,
    )
    return table.select(
        pl.col(name).cast(dtype) for name, dtype in OUTCOME_COLUMNS.items() if name not in DERIVED_OUTCOMES
    )


def with_derived(table: Table) -> Table:
    """
    Add to outcomes what follows from the rest.

    Wait, response (wait + run), slowdown (response / run, null for a run time of 0) and bounded slowdown
    (``max(1, response / max(run, 10 s))``) follow from submit, start and run time.

    Parameters
    ----------
    table : polars.DataFrame or polars.LazyFrame
        What `simulate_narrow` returned.

    Returns
    -------
    polars.DataFrame or polars.LazyFrame
        The columns of `OUTCOME_COLUMNS`.
    """
    wait = pl.col("start_time") - pl.col("submit_time")
    response = wait + pl.col("run_time")
    derived = {
        "end_time": pl.col("start_time") + pl.col("run_time"),
        "wait_time": wait,
        "response_time": response,
        "slowdown": pl.when(pl.col("run_time") > 0).then(response / pl.col("run_time")),
        "bounded_slowdown": (response / pl.col("run_time").clip(lower_bound=SLOWDOWN_BOUND)).clip(lower_bound=1.0),
    }
    return table.select(derived[name].alias(name) if name in derived else pl.col(name) for name in OUTCOME_COLUMNS)


@dataclass(frozen=True)
class Simulated:
    """
    What a kernel finds.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    places : polars.Series, optional
        The processors of each job, if the scheduler is asked for them.
    centre : polars.Series, optional
        The centre of each job, from 1, if there are several.
    run, killed : arrays of shape (jobs,), optional
        Run times and who was killed, if that came out only in the simulation; seconds.
    penalty : polars.Series, optional
        What shared resources added to the run times, seconds.
    processors : int64 array of shape (jobs,), optional
        The processors of each job, if they were chosen.
    submit : float64 array of shape (jobs,), optional
        When each job was submitted, if that came out only in the simulation; seconds.
    """

    start: np.ndarray
    places: pl.Series | None = None
    centre: pl.Series | None = None
    run: np.ndarray | None = None
    killed: np.ndarray | None = None
    penalty: pl.Series | None = None
    processors: np.ndarray | None = None
    submit: np.ndarray | None = None


def warm_up(workload: Workload, scheduler: Scheduler) -> None:
    """
    Load or compile the kernels that a simulation needs, so that its time afterwards is its own.

    Not the general kernel that follows one for short queues which gives up: see `swflow.compilation.make_ready`.

    Parameters
    ----------
    workload, scheduler
        As of `simulate`.

    Raises
    ------
    SwflowError
        As `simulate` does.
    """
    simulate_narrow(replace(workload, jobs=workload.jobs.head(2)), scheduler)


def prepare(workload: Workload, scheduler: Scheduler) -> Callable[[], Simulated]:
    """
    Make everything ready that the kernel needs, and return the call that simulates.

    Parameters
    ----------
    workload : Workload
        The jobs and the machine.
    scheduler : Scheduler
        Any but the recorded schedule.

    Returns
    -------
    callable
        Gives a `Simulated`, the same at every call; what it takes is the kernel's time.

    Raises
    ------
    SwflowError
        As `simulate` does.
    """
    moldable = scheduler.shapes != "requested"
    widest = max((centre["processors"] for centre in scheduler.centres), default=workload.machine.processors)
    # Requests may be wider than the machine, as long as a shape fits.
    jobs = check_workload(_jobs_of(workload, scheduler), MOST_PROCESSORS if moldable else widest, workload.name)
    _require_memory(workload, scheduler)
    submit, processors = jobs["submit_time"].to_numpy(), jobs["processors"].to_numpy()
    run, _ = _run_times(jobs, scheduler)
    planned = planned_run_times(run, np.maximum(run, jobs["estimate"].to_numpy()), scheduler.prediction)
    if scheduler.policy is not None:
        return _prepare_policy(jobs, run, planned, workload.machine.processors, scheduler)
    predict = scheduler.prediction == "system"
    attributes = _attributes(jobs) if _looks_at_attributes(scheduler) else None
    names = Names(workload)
    accounts = accounts_of(jobs, scheduler, names)
    feedback = feedback_of(jobs, scheduler.feedback, workload.name) if scheduler.feedback != "none" else None
    options: dict[str, Any] = {
        "per_event": scheduler.event_order == "per-event",
        "predict": predict,
        "users": _users(jobs) if predict else None,
        "attributes": attributes,
    }
    # Orders see the shape that was chosen at the submission, or, as long as none is, the request.
    seen: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None] = (submit, planned, processors, attributes)
    if moldable:
        from swflow.scheduling.engine.simulation import Shapes

        table = _shapes(workload, jobs, scheduler, widest)
        shapes_run, _ = _run_times(table, scheduler)
        shapes_planned = np.maximum(shapes_run, table["estimate"].to_numpy())
        shapes_planned = planned_run_times(shapes_run, shapes_planned, scheduler.prediction)
        job = table["job"].to_numpy()
        first = np.append(0, np.cumsum(np.bincount(job, minlength=jobs.height)))
        options |= {
            "shapes": Shapes(first, shapes_run, shapes_planned, table["processors"].to_numpy()),
            "select": scheduler.shapes,
        }
        if scheduler.shapes == "submit":
            seen = (
                submit[job],
                shapes_planned,
                table["processors"].to_numpy(),
                None if attributes is None else attributes[job],
            )

    made: list[Any] = []
    whose = _owner_records(accounts, job if scheduler.shapes == "submit" else None)

    def keys(order: str | Callable[..., float], option: str) -> Any:
        weighed = formula_of(order, scheduler.priority, names)
        made.append(orders.kernel_order(weighed, option, *seen, predict, whose, feedback is not None))
        return made[-1]

    order = keys(scheduler.order, "order")
    queue = {
        "backfill": _kernel_backfill(scheduler.backfill),
        "lookahead": 1 if scheduler.backfill == "easy" else min(scheduler.lookahead, max(jobs.height, 1)),
        "order": order,
        "allocation": scheduler.allocation,
        "backfill_order": keys(scheduler.backfill_order, "backfill_order") if scheduler.backfill_order else order,
    }
    machine = workload.machine.processors
    options |= queue | {"unavailable": _windows_in_seconds(scheduler.unavailable, workload.header, machine)}
    resources = _resources(workload, jobs, scheduler)
    if scheduler.runtime == "shared":  # who is killed comes out only in the simulation
        run = jobs["run_time"].to_numpy()
    from swflow.scheduling.engine import simulation

    centres = [_centre_options(centre, queue, keys, jobs.height) for centre in scheduler.centres]
    options |= {"centres": centres, "dispatch": scheduler.dispatch}
    options |= {"allocation": centres[0]["allocation"] if centres else scheduler.allocation, "resources": resources}
    if accounts is not None:
        options |= _of_owners(accounts, scheduler, centres)
    options |= {"feedback": feedback} if feedback else {}

    def simulated() -> Simulated:
        found = simulation.simulate_arrays(submit, run, planned, processors, machine, **options)
        _require_success(made)
        shares = scheduler.runtime == "shared"
        return Simulated(
            found.start,
            places=_as_text(found) if scheduler.places else None,
            centre=pl.Series(found.centre, dtype=pl.Int64()) + 1 if centres else None,
            processors=found.processors if moldable else None,
            run=found.run if moldable or shares else None,
            killed=found.killed if shares else None,
            penalty=pl.Series(found.penalty) if shares else None,
            submit=found.submit if feedback else None,
        )

    return simulated


def _require_success(made: Iterable[Any]) -> None:
    """Raise the error that happened in a function of the user's own, if one did."""
    for order in made:
        if isinstance(order, OwnOrder):
            order.require_success()


def _prepare_policy(
    jobs: pl.DataFrame, run: np.ndarray, planned: np.ndarray, machine: int, scheduler: Scheduler
) -> Callable[[], Simulated]:
    """Return the call that asks a policy of the user's own; it is made anew at every call."""
    from swflow.scheduling.own import error_inside, load_own
    from swflow.scheduling.policy import plain_jobs, simulate_policy

    name = str(scheduler.policy)
    kind, options = load_own(name, "policy"), dict(scheduler.policy_options or {})

    def decided() -> Simulated:
        try:
            policy = kind(**options)
        except Exception as error:  # whatever the user's code raises
            raise SwflowError(f"policy: {name}: {error_inside(error)}") from error
        return Simulated(simulate_policy(plain_jobs(jobs, planned), run.tolist(), machine, policy, name).start)

    return decided


def _resources(workload: Workload, jobs: pl.DataFrame, scheduler: Scheduler) -> Any:
    """Return what the kernel is to know of shared resources: those of the machine that the jobs ask for."""
    if not scheduler.shares:
        return None
    from swflow.scheduling.machine.shared import Resources

    machine = workload.machine
    names = [name for name in machine.capacities if name in jobs.columns]
    if not names:
        raise SwflowError(
            f"{workload.name}: nothing is shared: its machine has capacities for {_names_of(machine.capacities)}; give "
            "it some with a step of kind machine, and the jobs a demand for them with a step of kind memory"
        )
    for name in names:
        if not jobs.schema[name].is_numeric():
            raise SwflowError(f"{workload.name}: column {name} holds {jobs.schema[name]}, not numbers; make it anew")
        wrong = jobs.filter(~(pl.col(name).is_finite() & (pl.col(name) >= 0)))  # null is none
        if wrong.height:
            raise SwflowError(
                f"{workload.name}: job {wrong['job_id'][0]}: the demand for {name} is {wrong[name][0]}; it must be "
                "finite and not negative"
            )
    allowed = None
    if scheduler.estimates == "kill":
        allowed = jobs["estimate"].to_numpy()
    return Resources(
        machine.processors_per_node,
        jobs.select(pl.col(names).cast(pl.Float64).fill_null(0.0)).to_numpy(),
        np.array([machine.capacities[name] for name in names]),
        orders.compile_penalty(scheduler.penalty),
        slows=scheduler.runtime == "shared",
        allowed=allowed,
        limit=scheduler.sharing_limit,
    )


def _names_of(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _shapes(workload: Workload, jobs: pl.DataFrame, scheduler: Scheduler, widest: int) -> pl.DataFrame:
    """
    Return the shapes that may be chosen: job (its row), processors, run_time and estimate; by job, then processors.

    A job without shapes has the requested one. Shapes that are wider than the machine cannot be chosen.
    """
    if "shapes" not in jobs.columns:
        raise SwflowError(
            f"shapes: {scheduler.shapes}: {workload.name} has no column shapes; "
            f"make one with: swflow moldable {workload.name}.parquet -o {workload.name}+moldable.parquet"
        )
    requested = pl.concat_list(pl.struct("processors", "run_time"))
    shape = pl.when(pl.col("shapes").list.len() > 0).then("shapes").otherwise(requested)
    longer = pl.when(pl.col("of_request") > 0).then(pl.col("run_time") / pl.col("of_request")).otherwise(1.0)
    table = (
        jobs.select(shape.alias("shape"), "estimate", job=pl.int_range(pl.len()), of_request="run_time")
        .explode("shape")
        .unnest("shape")
        .with_columns(
            pl.col("processors").cast(pl.Int64),
            pl.col("run_time").cast(pl.Float64),
            estimate=pl.col("estimate") * longer,
        )
    )
    _require_shapes(workload.name, jobs, table)
    table = table.filter(pl.col("processors") <= widest)
    if scheduler.shape_choice == "efficient":
        area = pl.col("processors") * pl.col("run_time")
        table = table.filter(area.min().over("job") >= scheduler.efficiency * area)
    missing = jobs.height - table["job"].n_unique()
    if missing:
        raise SwflowError(
            f"{workload.name}: {missing:,} jobs have no shape of at most {widest:,} processors; "
            "give a larger machine (--processors) or make their shapes anew with: swflow moldable"
        )
    return table.sort("job", "processors", maintain_order=True)


def _kernel_backfill(backfill: str) -> str:
    return "lookahead" if backfill in ("easy", "selective") else backfill


def _centre_options(
    centre: Mapping[str, Any], shared: Mapping[str, Any], keys: Callable[..., Any], jobs: int
) -> dict[str, Any]:
    """Return the options of one centre: its own, else those that all share."""
    options = dict(shared) | {"machine": centre["processors"]}
    if "allocation" in centre:
        options["allocation"] = centre["allocation"]
    if "backfill" in centre:
        options["backfill"] = _kernel_backfill(centre["backfill"])
        lookahead = 1 if centre["backfill"] == "easy" else centre.get("lookahead", shared["lookahead"])
        options["lookahead"] = min(lookahead, max(jobs, 1))
    if "order" in centre:
        options["order"] = options["backfill_order"] = keys(centre["order"], "centres: order")
    if "backfill_order" in centre:
        options["backfill_order"] = keys(centre["backfill_order"], "centres: backfill_order")
    return options


def _owner_records(accounts: Accounts | None, job: np.ndarray | None) -> np.ndarray | None:
    """Return whose each item is, as formulas that do not change with time see it."""
    if accounts is None:
        return None
    from swflow.scheduling.engine.usage import new_usage

    return new_usage(accounts.owners, None, job, 0.0).owners


def _of_owners(accounts: Accounts, scheduler: Scheduler, centres: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the options of the engine that depend on whose the jobs are; limits of centres go into their options."""
    options: dict[str, Any] = {"owners": accounts.owners, "half_life": scheduler.half_life or math.inf}
    everywhere = np.ones(accounts.jobs.height, bool)
    if not centres:
        options["limits"] = accounts.limits(scheduler.limits)
        accounts.require_room(options["limits"], everywhere)
        return options
    partition = None
    if scheduler.dispatch == "partition":
        options["partition"] = partition = accounts.centres(scheduler.centres)
    for index, (centre, given) in enumerate(zip(centres, scheduler.centres, strict=True)):
        centre["limits"] = accounts.limits(given.get("limits", scheduler.limits))
        if partition is not None:
            accounts.require_room(centre["limits"], partition == index)
    return options


def _users(jobs: pl.DataFrame) -> np.ndarray:
    """Return the users; one who is not known is nobody else."""
    if "user_id" not in jobs.columns:
        return -1 - np.arange(jobs.height)
    return jobs.select(pl.coalesce("user_id", -1 - pl.int_range(pl.len()))).to_series().to_numpy()


def _attributes(jobs: pl.DataFrame) -> np.ndarray:
    """Return user, group, queue, executable and job id as formulas see them: NaN where unknown."""
    names = ("user_id", "group_id", "queue_id", "executable_id", "job_id")
    columns = [
        jobs[name].cast(pl.Float64()).fill_null(float("nan")).to_numpy()
        if name in jobs.columns
        else np.full(jobs.height, np.nan)
        for name in names
    ]
    return np.column_stack(columns)


def _windows_in_seconds(
    unavailable: Iterable[Mapping[str, Any]], header: Mapping[str, list[str]], machine: int
) -> list[tuple[float, float, int]]:
    """Return the windows in seconds from the log's start; one without an end lasts for ever."""
    from swflow.swf import parse_moment, seconds_since_start

    def seconds(value: Any, key: str) -> float:
        if isinstance(value, int | float):
            return float(value)
        where = f"unavailable: {key}"
        return require_moment(seconds_since_start(header, parse_moment(value, where)), where)

    windows = []
    for window in unavailable:
        begin = seconds(window["from"], "from")
        until = math.inf if window["until"] is None else seconds(window["until"], "until")
        require_window(begin, until, window)
        if window["processors"] > machine:
            raise SwflowError(f"unavailable: {window['processors']:,} processors are not 1 to {machine:,}")
        windows.append((begin, until, int(window["processors"])))
    return windows


def _as_text(result: Any) -> pl.Series:
    """Write the processors of each job as ranges, such as ``0-3,8``."""
    first, last = result.ranges[:, 0], result.ranges[:, 1]
    job = np.repeat(np.arange(result.start.size), np.diff(result.offsets))
    ranges = pl.DataFrame({"job": job, "first": first, "last": last}).with_columns(
        text=pl.when(pl.col("first") == pl.col("last"))
        .then(pl.col("first").cast(pl.String()))
        .otherwise(pl.format("{}-{}", "first", "last"))
    )
    return ranges.group_by("job", maintain_order=True).agg(pl.col("text").str.join(","))["text"]


def _as_recorded(name: str, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the outcomes of the recorded schedule; who was wider than the machine says is so in the log."""
    jobs = check_columns(jobs, name, ("wait_time",)).filter(pl.col("wait_time").is_not_null())
    known = [column for column in NEEDED_COLUMNS if column != "estimate"]
    jobs = check_workload(jobs, MOST_PROCESSORS, name, needed=known)
    start = jobs["submit_time"] + jobs["wait_time"]
    check_arrays({"wait_time": np.abs(jobs["wait_time"].to_numpy())}, jobs["processors"].to_numpy(), MOST_PROCESSORS,
                 name=name, ids=jobs["job_id"].to_numpy())  # fmt: skip
    none = pl.repeat(False, jobs.height, eager=True)
    return narrow_outcomes(jobs, start, jobs["run_time"], none)


def _require_shapes(name: str, jobs: pl.DataFrame, table: pl.DataFrame) -> None:
    """Require that shapes can be simulated; those wider than the machine are left out later."""
    unknown = table.filter(pl.any_horizontal(pl.col("processors", "run_time").is_null()))
    if unknown.height:
        job = jobs["job_id"][unknown["job"][0]]
        raise SwflowError(
            f"{name}: job {job} has a shape without processors or run time; make it with: swflow moldable"
        )
    ids = jobs["job_id"].to_numpy()[table["job"].to_numpy()]
    lengths = {"run_time": table["run_time"].to_numpy(), "estimate": table["estimate"].to_numpy()}
    check_arrays(lengths, table["processors"].to_numpy(), MOST_PROCESSORS, name=f"{name}: shapes", ids=ids)


#: Bytes that a numbered processor takes at least: its place in lists of ranges and in sets; since when it is idle;
#: and whom it shares its node with.
_BYTES, _BYTES_IDLE, _BYTES_SHARED = 12, 24, 48


def _require_memory(workload: Workload, scheduler: Scheduler) -> None:
    """Say beforehand if a machine has more numbered processors than the memory holds."""
    if "count" in scheduler.allocations:
        return
    idle = _BYTES_IDLE if "longest-idle" in scheduler.allocations else 0
    machine = sum(centre["processors"] for centre in scheduler.centres) or workload.machine.processors
    needed = machine * (_BYTES + idle + (_BYTES_SHARED if scheduler.shares else 0))
    free = free_memory()
    if free is not None and needed > free:
        raise SwflowError(
            f"{workload.name}: allocation {scheduler.allocation}: {machine:,} numbered processors "
            f"take at least {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; use allocation count, or a "
            "smaller machine"
        )
