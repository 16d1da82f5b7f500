"""Figures: the one registry of what can be drawn, from the database to files (PNG, SVG, or interactive Vega-Lite)."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.figures.performance import draw_bubbles, draw_difference, draw_heatmap
from swflow.figures.published import draw_published
from swflow.figures.request import Request, chosen_runs
from swflow.figures.reservations import draw_reservation_tables
from swflow.figures.runs import draw_distributions, draw_load_curve, draw_timeline, draw_waits
from swflow.figures.sweeps import draw_sweep, draw_sweep_on
from swflow.figures.workloads import (
    draw_arrivals,
    draw_composition,
    draw_marginals,
    draw_moldable,
    draw_offered_load,
    draw_repetitions,
)
from swflow.files import atomic_path
from swflow.names import log_of
from swflow.query import connect

__all__ = ["FIGURES", "KINDS", "RESERVATION_TABLE", "Figure", "draw", "draw_sweep", "draw_sweep_on", "write"]


@dataclass(frozen=True)
class Figure:
    """
    A kind of figure.

    Parameters
    ----------
    draw : callable
        Asks the database, and returns the chart of a `swflow.figures.request.Request`.
    about : str
        What it shows, in a line.
    options : tuple of str
        Which of ``split``, ``scale`` and ``window`` it heeds.
    """

    draw: Callable[[Request], dict[str, Any]]
    about: str
    options: tuple[str, ...] = ()


#: The figure of jobs on their processors, for runs that record these.
RESERVATION_TABLE = "reservation-table"

#: Every kind of figure: what the command, the config and the report know.
FIGURES: dict[str, Figure] = {
    "heatmap": Figure(
        draw_heatmap,
        "jobs per load and slowdown, response time and wait time, with contours, bubbles and means",
        ("split", "scale"),
    ),
    "bubbles": Figure(draw_bubbles, "mean and median slowdown per tenth of the load", ("scale",)),
    "difference": Figure(draw_difference, "what one run has more of than another, at equal load"),
    RESERVATION_TABLE: Figure(
        draw_reservation_tables,
        "jobs on their processors, of runs with places, and what sharing nodes costs them",
        ("window",),
    ),
    "moldable": Figure(draw_moldable, "what the model of moldable jobs draws, against its stated distributions"),
    "marginals": Figure(draw_marginals, "the distribution functions of the run times and sizes of workloads"),
    "repetitions": Figure(draw_repetitions, "how often run times repeat"),
    "timeline": Figure(draw_timeline, "utilization and queue length over time, a line per run"),
    "waits": Figure(draw_waits, "mean waits by processors, by run time and by user"),
    "distributions": Figure(draw_distributions, "distribution functions of waits and bounded slowdowns"),
    "load-curve": Figure(draw_load_curve, "mean wait and slowdown against the load of workloads that differ in it"),
    "arrivals": Figure(draw_arrivals, "jobs per hour of the day and day of the week"),
    "composition": Figure(draw_composition, "shares of jobs and processor-seconds by size, run time and user"),
    "offered-load": Figure(draw_offered_load, "the load that the submitted jobs offer, over time"),
    "published": Figure(draw_published, "ours over the published values of the papers' tables"),
}

#: The kinds of figures.
KINDS = tuple(FIGURES)

_ENDINGS = (".png", ".svg", ".json")


def draw(
    kind: str,
    database: str | os.PathLike[str],
    *,
    log: str | None = None,
    runs: Sequence[str] = (),
    split: Sequence[str] = (),
    scale: str = "log",
    window: tuple[float | None, float | None] = (None, None),
    title: str | None = None,
    interactive: bool = False,
) -> dict[str, Any]:
    """
    Draw a figure of some runs of one log.

    Parameters
    ----------
    kind : str
        What to draw, one of `FIGURES`.
    database : path-like
        A database that `swflow.database.load` wrote.
    log : str, optional
        Draw all runs of this log, the recorded schedule first.
    runs : sequence of str
        Or these runs, ``workload/scheduler``, one a column, in this order.
    split : sequence of str
        For heatmaps: subsets of the jobs, each in panels of its own below those of all jobs. Either a column of the
        tables ``outcomes`` or ``jobs``, such as ``queue_id``, or ``NAME=CONDITION`` on them (`swflow.expressions`).
        Where both have a column, such as ``wait_time``, that of ``outcomes`` is meant.
    scale : {'log', 'linear'}
        The value axis of heatmaps.
    window : (float or None, float or None)
        The part of a reservation table to draw, seconds from the log's start; a day from or to the one that is given.
        By default the day of the first run with most penalty, or its first day with jobs if there is none.
    title : str, optional
        By default the log's name.
    interactive : bool
        With tooltips and a brush, for the report.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.

    Raises
    ------
    SwflowError
        If there is no such run, a predicate or the window is wrong, or no run has the places of its jobs.
    """
    if kind not in FIGURES:
        raise SwflowError(f"figure: unknown kind {kind!r}; use {', '.join(KINDS)}, sweep")
    with connect(database) as connection:
        chosen = chosen_runs(connection, log, runs)
        title = title or ", ".join(sorted({log_of(run["workload"]) for run in chosen}))
        return FIGURES[kind].draw(Request(connection, chosen, title, split, scale, window, interactive))


def write(spec: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """
    Write a figure by the ending of its file: .png (two dots per pixel), .svg, or .json (Vega-Lite).

    Parameters
    ----------
    spec : dict
        As `draw` returns it.
    path : path-like
        Where.

    Raises
    ------
    SwflowError
        If the ending is unknown.
    """
    path = Path(path)
    if path.suffix not in _ENDINGS:
        raise SwflowError(f"{path}: unknown ending; use {', '.join(_ENDINGS)}")
    content: str | bytes
    if path.suffix == ".json":
        content = json.dumps(spec, separators=(",", ":"), sort_keys=True)
    else:
        content = _picture(json.dumps(spec))
        if path.suffix == ".png":
            import vl_convert

            content = vl_convert.svg_to_png(content, ppi=144)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@lru_cache(maxsize=1)
def _picture(spec: str) -> str:
    """Draw a figure as SVG: once, if it is written as PNG, too."""
    import vl_convert

    version = ".".join(json.loads(spec)["$schema"].rpartition("/v")[2].split(".")[:2])
    return vl_convert.vegalite_to_svg(spec, vl_version=version)
