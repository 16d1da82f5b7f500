"""Functions that several test files share."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from swflow.compiled.kernel import Callback, interpreted
from swflow.compiled.source import Linker, plain_argument
from swflow.jobs.dependencies import Dependencies
from swflow.scheduling.machine.resources import Resources
from swflow.scheduling.orders.keys import Order, job_columns, resolved_order
from swflow.scheduling.problem import Machine, Problem
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import OUTCOME_COLUMNS, with_derived
from swflow.scheduling.solve import solve
from swflow.scheduling.state.accounts import UNLIMITED, Owners
from swflow.scheduling.state.items import Jobs, Shapes
from swflow.scheduling.state.schedule import Schedule

#: The backfills by the names of `tests/naive.py`, in which `lookahead` is EASY with several reservations.
BACKFILLS = ("none", "lookahead", "conservative", "reservation-table")


def simulate_arrays(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    users: np.ndarray | None = None,
    attributes: np.ndarray | None = None,
    centres: Sequence[Mapping[str, Any]] = (),
    shapes: Shapes | None = None,
    feedback: tuple[np.ndarray, np.ndarray] | None = None,
    resources: Resources | None = None,
    owners: Owners | None = None,
    partition: np.ndarray | None = None,
    dependencies: Dependencies | None = None,
    cancelled_after: np.ndarray | None = None,
    demands: np.ndarray | None = None,
    units: Sequence[int] = (),
    **options: Any,
) -> Schedule:
    """
    Solve the problem of plain arrays.

    Options are those of `tests/naive.py`: ``lookahead`` for reservations, ``predict`` and ``per_event`` as flags,
    ``starts``, windows in seconds, ``select`` for shapes, and limits as a table; clusters can have separate options. An
    order can also be an array of static keys or a compiled formula. The machine has ``units`` of the resources r0, r1
    and so on, of which jobs need ``demands``.
    """
    select = options.get("select", "requested")
    jobs = Jobs(submit, run, planned, processors, attributes, users, partition, demands)
    named = {f"r{number}": number for number in range(min(len(units), 4))}
    columns = job_columns(jobs, shapes if select == "submit" else None, owners, named.values())
    dependencies = dependencies if feedback is None else Dependencies(*feedback)
    changing = frozenset(["estimate"] * bool(options.get("predict")) + ["submit_time"] * (dependencies is not None))

    def resolved(order: Any, option: str = "order") -> Order:
        if isinstance(order, np.ndarray):
            return Order(order)
        if isinstance(order, Callback):
            return Order(formula=order)
        return resolved_order(order, option, columns, tuple(named), changing)

    machines, clusters = [], []
    for index, own in enumerate(centres or [{"machine": machine}]):
        one = {**options, **own}
        first, second = one.get("order", "fcfs"), one.get("backfill_order", "fcfs")
        order = resolved(first)
        same = first is second or (isinstance(first, str) and isinstance(second, str) and first == second)
        windows = tuple(one.get("unavailable", ()))
        machines.append(
            Machine(
                own["machine"],
                order,
                order if same else resolved(second, "backfill_order"),
                windows,
                _with_minutes(one.get("limits")),
                {f"r{number}": count for number, count in enumerate(one.get("units", units))},
            )
        )
        served = {} if partition is None else {"partition": str(index)}
        clusters.append({"processors": own["machine"], **_queue(own), **served})
    windows = () if centres else options.get("unavailable", ())
    policy = Scheduler(
        **_queue(options),
        backfill_starts=options.get("starts"),
        prediction="system" if options.get("predict") else "user",
        event_order="per-event" if options.get("per_event") else "batch",
        unavailable=tuple({"from": a, "until": None if b == math.inf else b, "processors": c} for a, b, c in windows),
        clusters=tuple(clusters) if centres else (),
        dispatch=options.get("dispatch", "round-robin"),
        shapes=select,
        feedback="none" if feedback is None else "sessions",
        runtime="shared" if resources is not None and resources.slows else "trace",
        **_usage(options.get("half_life", math.inf)),
    )
    return solve(
        Problem(
            jobs, policy, tuple(machines), shapes, resources, owners, dependencies, columns=columns,
            cancelled_after=cancelled_after,
        )
    )  # fmt: skip


def owners_of_columns(
    user: np.ndarray, group: np.ndarray, partition: np.ndarray, *variables: np.ndarray, array: np.ndarray | None = None
) -> Owners:
    """Return owners by their numbers from 0, -1 where unknown, and by the three variables of formulas."""
    array = np.full(user.size, -1) if array is None else array
    return Owners(np.column_stack([user, group, partition, array]), np.column_stack(variables))


def _queue(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a queue by the names of `Scheduler`."""
    found = {name: options[name] for name in ("backfill", "allocation") if name in options}
    if found.get("backfill") == "lookahead":
        found |= {"backfill": "easy", "reservations": options.get("lookahead", 1)}
    if options.get("limits") is not None:
        found["limits"] = {"user": {"jobs": 1}}  # the table itself is in the machine
    return found


def _with_minutes(limits: np.ndarray | None) -> np.ndarray | None:
    """Return limits of jobs and processors with those of processor-minutes, of which there are none."""
    return None if limits is None else np.column_stack([limits, np.full(len(limits), UNLIMITED)])


def _usage(half_life: float) -> dict[str, Any]:
    """Return the option of a half-life, and an order that uses it; the engine's orders are those of the machines."""
    return {} if half_life == math.inf else {"half_life": half_life, "order": "fair-share"}


def for_python(function: Any) -> Any:
    """Return a function that otherwise only kernels call, compiled or interpreted; it takes arrays and named tuples."""

    def call(*arguments: Any) -> Any:
        if interpreted():
            return plain()(*map(plain_argument, arguments))
        return native()(*arguments)

    @cache
    def plain() -> Any:
        return Linker({}).link(function)

    @cache
    def native() -> Any:
        from swflow.compiled.numba_compiler import NativeLinker

        return NativeLinker({}).replacement(function)

    return call


def outcomes_of(jobs: pl.DataFrame, start: pl.Series, run: pl.Series, killed: pl.Series) -> pl.DataFrame:
    """Return the outcomes table of start times, run times and killed jobs."""
    table = jobs.select("job_id", "submit_time", "processors", penalty_time=pl.lit(0.0)).with_columns(
        start_time=start, run_time=run, killed=killed
    )
    missing = {name: pl.lit(None, dtype) for name, dtype in OUTCOME_COLUMNS.items() if name not in table.columns}
    return with_derived(table.with_columns(**missing))
