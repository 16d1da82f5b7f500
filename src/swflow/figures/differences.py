"""Figures of differences: the job distributions of pairs of runs, at equal load."""

from dataclasses import replace
from itertools import combinations

import altair as alt
import numpy as np

from swflow.analysis.comparison import Comparison, coarse, compare, equal_shape
from swflow.analysis.heatmap import BINS_PER_DECADE, HEATMAP_MEASURES, LOAD_BINS, Heatmap, read_heatmaps
from swflow.errors import SwflowError
from swflow.figures.heatmaps import first_titled, panel_size, rectangles, value_at, value_axis
from swflow.figures.parts import FigureData, Spec, beside, finished_figure, rounded, tip
from swflow.figures.request import Request
from swflow.figures.runs import short_names
from swflow.names import worth_comparing

#: With more pairs of runs than this, only the differences between the first run and the others are drawn.
MOST_PAIRS = 3

_LOADS_PER_DIFFERENCE, _VALUES_PER_DIFFERENCE = 2, 2

DIFFERENCE_CAPTION = (
    "The title names the variant minus the base. Each cell is the variant's share of jobs minus the base's, in percent "
    "of all jobs: blue if the variant has more, orange if the base has more, on a cube-root scale. If the variant is "
    "better, blue is below orange. distance: earth mover's distance, in decades of the value. score: at equal load, "
    "the probability that a job of the variant has the better value, minus the probability of the opposite. wins: the "
    "share of the jobs in load deciles in which the variant, or the base, dominates."
)


def draw_difference(request: Request) -> Spec:
    """
    Draw the difference between the job distributions of two runs: one column per pair, one row per measure.

    The earlier run of a pair is the base, so that the first run is the base of all pairs with it.
    """
    named = list(zip(short_names(request.runs, request.titles), request.runs, strict=True))
    pairs = [(new, base) for base, new in combinations(named, 2) if worth_comparing(new[1], base[1])]
    if not pairs:
        raise SwflowError("figure: difference: no two of the runs share a workload or a scheduler")
    if len(pairs) > MOST_PAIRS:
        pairs = [pair for pair in pairs if pair[1] is pairs[0][1]]
    maps = read_heatmaps(request.connection, {run["run"] for run in request.runs})
    data = FigureData()
    rows = []
    for measure in request.measures or HEATMAP_MEASURES:
        of_pairs = [(maps[one["run"], measure], maps[other["run"], measure]) for (_, one), (_, other) in pairs]
        differences = [_difference(*maps_of_pair) for maps_of_pair in of_pairs]
        bins = max(part.shape[1] for part in differences)
        width, height = panel_size(bins, interactive=request.interactive)
        extreme = max(float(np.abs(part).max(initial=0.0)) for part in differences) or 1.0
        y = value_axis(measure, 10 ** (bins * _VALUES_PER_DIFFERENCE / BINS_PER_DECADE), linear=False)
        charts = []
        for number, ((variant, first), (base, second)) in enumerate(pairs):
            legend = height - 60 if number == len(pairs) - 1 else 0
            axis = first_titled(y, number)
            panel = _difference_panel(data, differences[number], axis, extreme, request.interactive, legend)
            known = _comparison(request, first["run"], second["run"], measure)
            if known is None or known.distance is None:  # the load does not compute it for runs of two workloads
                computed = compare(*of_pairs[number])
                known = replace(known or computed, distance=computed.distance)
            verdict = _verdict(variant, base, known, measure)
            charts.append(panel.properties(width=width, height=height, title=verdict))
        rows.append(beside(*charts, spacing=14, color="independent"))
    words = "Cells: jobs of the variant minus jobs of the base; blue: more in the variant, orange: more in the base"
    title = f"{request.title}: differences at equal load"
    return finished_figure(data, rows, title, DIFFERENCE_CAPTION, subtitle=words)


def _comparison(request: Request, first: str, second: str, measure: str) -> Comparison | None:
    """Return the comparison of two runs by the study, or else by the first one that has it; None if there is none."""
    row = request.connection.execute(
        """SELECT variant = $a, distance, score, variant_wins, base_wins, better FROM comparisons
        WHERE measure = $m AND (variant = $a AND base = $b OR variant = $b AND base = $a)
        ORDER BY study IS DISTINCT FROM $study, study, variant <> $a""",
        {"a": first, "b": second, "m": measure, "study": request.study},
    ).fetchone()
    if row is None:
        return None
    forward, distance, score, wins, losses, better = row
    winner = {first: "variant", second: "base"}.get(better)
    if forward:
        return Comparison(distance, score, wins, losses, winner)
    return Comparison(distance, -score, losses, wins, winner)


def _difference(first: Heatmap, second: Heatmap) -> np.ndarray:
    """Return the difference of the shares of jobs, in percent, on cells of twice the width and height."""
    a, b = (
        100 * coarse(counts, _LOADS_PER_DIFFERENCE, _VALUES_PER_DIFFERENCE) / max(1, counts.sum())
        for counts in equal_shape(first.jobs, second.jobs, _VALUES_PER_DIFFERENCE)
    )
    return a - b


def _difference_panel(
    data: FigureData, difference: np.ndarray, y: alt.Y, extreme: float, interactive: bool, legend: int
) -> alt.Chart:
    rows = []
    for place, parts in enumerate(difference):
        values = np.flatnonzero(parts)
        rows.append({"i": place, "j": values.tolist(), "d": rounded(parts[values])})
    far, near = (float(f"{extreme * share:.2g}") for share in (0.9, 0.2))  # evenly spaced on the cube-root scale
    ticks = [-far, -near, 0.0, near, far]
    key = alt.Legend(title=["percent", "of jobs"], gradientLength=legend, format=".2~r", values=ticks)
    colours = ["#B35806", "#F7F7F7", "#08519C"]
    domain = [-extreme, 0, extreme]
    scale = alt.Scale(type="pow", exponent=1 / 3, domain=domain, range=colours, interpolate="rgb")
    step = _LOADS_PER_DIFFERENCE / LOAD_BINS
    chart = (
        alt.Chart(data.add(rows))
        .transform_flatten(["j", "d"])
        .transform_calculate(
            load_low=f"datum.i * {step}",
            load_high=f"(datum.i + 1) * {step}",
            value_low=value_at(f"datum.j * {_VALUES_PER_DIFFERENCE}", 0.0),
            value_high=value_at(f"(datum.j + 1) * {_VALUES_PER_DIFFERENCE}", 0.0),
        )
    )
    count = tip("d:Q", "percent of jobs", "+.3~r") if interactive else None
    return rectangles(chart, y, alt.Color("d:Q", scale=scale, legend=key if legend else None), count)


def _verdict(variant: str, base: str, comparison: Comparison, measure: str) -> alt.TitleParams:
    better = {"variant": variant, "base": base, None: "neither"}[comparison.better]
    return alt.TitleParams(
        f"{variant} − {base}",
        subtitle=[
            f"{measure.replace('_', ' ')}: better at equal load: {better}",
            f"distance {comparison.distance:.2f}, score {comparison.score:+.2f}, "
            f"wins {comparison.variant_wins:.0%} : {comparison.base_wins:.0%}",
        ],
    )
