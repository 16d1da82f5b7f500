"""Exact optima for instances of a few dozen jobs, found by a constraint solver; they show how tight the bounds are."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from swflow.errors import SwflowError

#: Objectives that can be minimized.
OBJECTIVES = ("awrt", "mean_response_time", "makespan")


@dataclass(frozen=True)
class Optimum:
    """The objective of the best schedule found, and the largest lower bound that the solver proved, seconds."""

    value: float
    proven: float
    optimal: bool


def optimum(jobs: pl.DataFrame, machine: int, objective: str, seconds: float = 20.0, seed: int = 1) -> Optimum:
    """
    Return the best schedule that the solver finds for about 20 to 60 rigid jobs with known run times.

    The solver is CP-SAT of OR-Tools, with one optional interval per job under one cumulative constraint. ``objective``
    is one of `OBJECTIVES`; times are whole seconds; ``seconds`` limits the solver's deterministic time.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise SwflowError(
            "bound: exact optima need a solver that is not installed; install it with: pip install 'swflow[exact]'"
        ) from None
    if objective not in OBJECTIVES:
        raise SwflowError(f"bound: objective {objective!r}; expected {', '.join(OBJECTIVES)}")
    times = {name: jobs[name].cast(pl.Float64).to_numpy() for name in ("submit_time", "run_time")}
    for name, values in times.items():
        if not (values == np.round(values)).all():
            raise SwflowError(f"bound: {name}: {values[values != np.round(values)][0]}; expected whole seconds")
    submit, run = (values.astype(np.int64).tolist() for values in times.values())
    width = jobs["processors"].cast(pl.Int64).to_list()
    first = min(submit)
    horizon = max(submit) + sum(run)
    model = cp_model.CpModel()
    starts = [model.new_int_var(release, horizon, "") for release in submit]
    intervals = [
        model.new_fixed_size_interval_var(start, length, "") for start, length in zip(starts, run, strict=True)
    ]
    model.add_cumulative(intervals, width, machine)
    if objective == "makespan":
        last = model.new_int_var(first, horizon, "")
        model.add_max_equality(last, [start + length for start, length in zip(starts, run, strict=True)])
        model.minimize(last - first)
        scale, shift = 1.0, 0.0
    else:
        weights = [w * r for w, r in zip(width, run, strict=True)] if objective == "awrt" else [1] * len(run)
        model.minimize(sum(w * (s - r) for w, s, r in zip(weights, starts, submit, strict=True)))
        scale = float(sum(weights))
        shift = sum(w * length for w, length in zip(weights, run, strict=True)) / scale
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = seconds
    solver.parameters.max_time_in_seconds = seconds  # the deterministic time of a large model passes more slowly
    solver.parameters.random_seed = seed
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise SwflowError(f"bound: the solver found no schedule of {len(run)} jobs in {seconds:g} s; allow more time")
    value, proven = solver.objective_value / scale + shift, solver.best_objective_bound / scale + shift
    return Optimum(value, proven, status == cp_model.OPTIMAL)
