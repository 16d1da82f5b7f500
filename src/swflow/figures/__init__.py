"""Figures: the registry of all kinds, drawn from the database to files (PNG, SVG, PDF, or interactive Vega-Lite)."""

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from swflow.analysis.heatmap import LOAD_BINS
from swflow.errors import SwflowError, suggest
from swflow.figures.differences import draw_difference
from swflow.figures.forest import draw_forest
from swflow.figures.heatmaps import draw_bubbles, draw_heatmap
from swflow.figures.load_curve import draw_load_curve
from swflow.figures.parts import Spec
from swflow.figures.pictures import to_pdf, to_png, to_svg
from swflow.figures.print import PIXELS, Print, printed, read_width
from swflow.figures.provenance import figure_command, recorded_figure
from swflow.figures.published import draw_published
from swflow.figures.reasons import draw_reasons
from swflow.figures.request import Request, chosen_runs
from swflow.figures.reservations import draw_reservation_tables
from swflow.figures.runs import draw_distributions, draw_timeline, draw_waits
from swflow.figures.sweeps import draw_sweep
from swflow.figures.workloads import (
    draw_arrivals,
    draw_composition,
    draw_marginals,
    draw_moldable,
    draw_offered_load,
    draw_repetitions,
)
from swflow.files.atomic import atomic_path, check_output
from swflow.files.query import connect
from swflow.files.reading import read_json
from swflow.names import log_of
from swflow.studies.figure_options import check_figure


@dataclass(frozen=True)
class Figure:
    """A kind of figure."""

    # Function that returns the chart of a `swflow.figures.request.Request`, from queries of the database.
    draw: Callable[[Request], Spec]
    about: str  # a one-line description
    most: int | None = None  # the largest number of runs; further runs are left out and counted in the caption


#: The largest number of lines with distinct colors, and of columns.
MOST_LINES, MOST_COLUMNS = 8, 12


#: The figure of jobs on their processors, for runs that record numbered processors.
RESERVATION_TABLE = "reservation-table"

#: The figure of the reasons of waits, for runs with rows in table ``wait_reasons``, and its largest number of runs.
REASONS, MOST_ROWS = "reasons", 4

#: Every kind of figure; the command, the config and the report use this registry.
FIGURES: dict[str, Figure] = {
    "heatmap": Figure(
        draw_heatmap,
        "jobs per load and slowdown, response time and wait time, with contours, bubbles and means",
        MOST_COLUMNS,
    ),
    "bubbles": Figure(draw_bubbles, "mean and median slowdown per tenth of the load", MOST_COLUMNS),
    "difference": Figure(draw_difference, "difference of the job distributions of two runs, at equal load"),
    RESERVATION_TABLE: Figure(
        draw_reservation_tables,
        "jobs on their processors, for runs with places, and the penalty of node sharing",
    ),
    "moldable": Figure(draw_moldable, "shapes of moldable jobs, compared with the stated distributions"),
    "marginals": Figure(draw_marginals, "the distribution functions of the run times and sizes of workloads"),
    "repetitions": Figure(draw_repetitions, "how often run times repeat"),
    "timeline": Figure(draw_timeline, "utilization and queue length over time, one line per run", most=MOST_LINES),
    "waits": Figure(draw_waits, "mean waits by processors, by run time and by user", most=MOST_LINES),
    REASONS: Figure(
        draw_reasons, "mean waits divided by their reasons, by processors, hour of the week and user", most=MOST_ROWS
    ),
    "distributions": Figure(
        draw_distributions, "distribution functions of waits and bounded slowdowns", most=MOST_LINES
    ),
    "load-curve": Figure(draw_load_curve, "mean wait and slowdown of workloads with different offered loads"),
    "arrivals": Figure(draw_arrivals, "jobs per hour of the day and day of the week"),
    "composition": Figure(draw_composition, "shares of jobs and processor-seconds by size, run time and user"),
    "offered-load": Figure(draw_offered_load, "the offered load of the submitted jobs over time"),
    "published": Figure(draw_published, "ratios of our values to the published values of the papers' tables"),
}

#: The kinds of figures.
KINDS = tuple(FIGURES)

#: Kinds that show other parts of a database than runs of a log, with functions of their own.
OF_DATABASE: dict[str, Callable[..., Spec]] = {"sweep": draw_sweep, "forest": draw_forest}

_ENDINGS = (".png", ".svg", ".pdf", ".json")

#: Dots per inch of a PNG of a stated width.
_PRINTED_RESOLUTION = 300


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
    titles: Mapping[str, str] | None = None,
    measures: Sequence[str] = (),
    bins: int = LOAD_BINS,
    study: str | None = None,
    how: Print | None = None,
    interactive: bool = False,
) -> Spec:
    """
    Draw a figure of some runs of one log.

    Parameters
    ----------
    kind : str
        The kind of figure, one of `FIGURES`.
    database : path-like
        A database that `swflow.database.load` wrote.
    log : str, optional
        Draw all runs of this log, the recorded schedule first.
    runs : sequence of str
        Draw these runs, ``workload/scheduler``, one column each, in this order.
    split : sequence of str
        For heatmaps: subsets of the jobs, each in separate panels below the panels of all jobs. A subset is either a
        column of the tables ``outcomes`` or ``jobs``, such as ``queue_id``, or ``NAME=CONDITION`` on their columns
        (`swflow.jobs.conditions`). If both tables have a column, such as ``wait_time``, that of ``outcomes`` is used.
    scale : {'log', 'linear'}
        The value axis of heatmaps.
    window : (float or None, float or None)
        The part of a reservation table to draw, seconds from the log's start. If one end is None, the window is one day
        long. Default: the day of the first run with the largest penalty, or else its first day with jobs.
    title : str, optional
        The title; default: the log's name.
    titles : mapping, optional
        Names of schedulers in the figure; default: those of the runs.
    measures : sequence of str
        For heatmaps and differences: only the rows of these measures: slowdown, response_time, wait_time. For load
        curves: wait_time or bounded_slowdown.
    bins : int
        For heatmaps: the number of cells along the load, a divisor of 100; cells along the value get larger with them.
    study : str, optional
        For differences: the study whose verdicts are shown; default: the first by name that compares the runs.
    how : Print, optional
        The width on paper, the font, and whether there is a title.
    interactive : bool
        Add tooltips and a brush, for the report.

    Returns
    -------
    dict
        The Vega-Lite specification, with ``title`` and ``caption`` under ``usermeta``.

    Raises
    ------
    SwflowError
        If there is no such run, a condition or the window is invalid, or no run has numbered processors.
    """
    if kind not in FIGURES:
        raise SwflowError(f"figure: unknown kind {kind!r}; use {', '.join([*KINDS, *OF_DATABASE])}")
    given = {"measure": list(measures), "bins": bins != LOAD_BINS, "study": study is not None}
    check_figure(kind, {option: value for option, value in given.items() if value}, "--")
    with connect(database) as connection:
        chosen = chosen_runs(connection, log, runs)
        title = title or ", ".join(sorted({log_of(run["workload"]) for run in chosen}))
        wide = how.width * PIXELS if how and how.width else None
        request = Request(
            connection, chosen, title, split, scale, window, interactive, titles or {}, measures=measures, pixels=wide,
            bins=bins, study=study,
        )  # fmt: skip
        spec = draw_request(kind, request)
        return printed(spec, how) if how else spec


def draw_request(kind: str, request: Request) -> Spec:
    """
    Draw a figure of a kind of `FIGURES` from an open database.

    The result is the Vega-Lite specification, with ``title``, ``caption``, ``kind``, ``sql`` (the queries of the
    figure) and ``command`` (which draws it again) under ``usermeta``.
    """
    figure = FIGURES[kind]
    runs = request.runs[: figure.most]
    spec = recorded_figure(
        request.connection,
        lambda connection: figure.draw(replace(request, connection=connection, runs=runs)),
        kind,
        command=figure_command(kind, request),
    )
    if more := len(request.runs) - len(runs):
        words = f"{more} further runs are not drawn." if more > 1 else "One further run is not drawn."
        spec["usermeta"]["caption"] += f" {words}"
    return spec


def read_plan(path: str | os.PathLike[str], group: str | None = None) -> dict[str, dict[str, Any]]:
    """
    Read a plan of figures: a JSON file that maps groups to figures, such as ``STUDY/KTH-SP2-waits``, and their options.

    Options are ``kind``, ``log`` and those of `draw`, or of the functions of `OF_DATABASE`. With ``group``, return
    only the figures of this group. Raise `SwflowError` if the file is not a plan, or has no such group.
    """
    what = "a plan of figures; expected JSON: groups of names with kind and log"
    plan: dict[str, dict[str, dict[str, Any]]] = read_json(path, what)
    try:
        every = {name: options for figures in plan.values() for name, options in figures.items()}
        if not all("kind" in options and {"log", "studies"} & options.keys() for options in every.values()):
            raise KeyError("kind")
    except (KeyError, TypeError, AttributeError):
        raise SwflowError(f"{path}: not {what}") from None
    if group is not None and group not in plan:
        raise SwflowError(f"{path}: no group {group!r}{suggest(group, plan)}")
    return every if group is None else plan[group]


def draw_files(
    options: Mapping[str, Any], database: str | os.PathLike[str], paths: Iterable[str | os.PathLike[str]]
) -> None:
    """
    Draw a figure and write it to files: interactive as .json, else as a picture.

    ``options`` has ``kind``, and the arguments of `draw`, or of the functions of `OF_DATABASE`. A plan of
    figures has a mapping as ``how``.
    """
    arguments = {name: value for name, value in options.items() if name not in ("kind", "how")}
    how = _print_of(options.get("how") or {})
    other = OF_DATABASE.get(options["kind"])
    draws: Callable[..., Spec] = other or partial(draw, options["kind"], how=how)
    for path in paths:
        check_output(path)

    @cache
    def drawn(interactive: bool) -> Spec:
        spec = draws(database, interactive=interactive, **arguments)
        return printed(spec, how) if other else spec

    for path in map(Path, paths):
        write(drawn(path.suffix == ".json"), path, resolution=_PRINTED_RESOLUTION if how.width else None)


def _print_of(how: Print | Mapping[str, Any]) -> Print:
    """Return how a figure is printed, from a plan with the width as it is written in a config."""
    if isinstance(how, Print):
        return how
    width = how.get("width")
    return Print(read_width(width) if width else None, how.get("font"), how.get("titled", True))


def write(spec: Spec, path: str | os.PathLike[str], resolution: float | None = None) -> None:
    """
    Write a figure in the format of the file's extension: .png, .svg, .pdf, or .json (Vega-Lite).

    A PNG has two dots per pixel, or ``resolution`` dots per inch at 96 pixels per inch.
    """
    path = Path(path)
    if path.suffix not in _ENDINGS:
        raise SwflowError(f"{path}: unknown ending; expected {', '.join(_ENDINGS)}")
    if path.suffix == ".json":
        content = json.dumps(spec, separators=(",", ":"), sort_keys=True).encode()
    else:
        content = _picture(spec, path.suffix, resolution)
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def _picture(spec: Spec, ending: str, resolution: float | None) -> bytes:
    match ending:
        case ".png":
            return to_png(spec, resolution * 72 / 96) if resolution else to_png(spec)
        case ".pdf":
            return to_pdf(spec)
        case _:
            return to_svg(spec).encode()
