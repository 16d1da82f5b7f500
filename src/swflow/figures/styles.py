"""Colors and dashes of lines: a scheduler has the same color in every figure, regardless of the other lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import altair as alt

#: Colors that stay apart for color-blind readers: M. Okabe, K. Ito, "Color universal design", 2008 (without yellow,
#: whose contrast with white is too low), and wine and olive of P. Tol, "Colour schemes", 2021.
BLACK, BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, WINE, OLIVE = RUN_COLOURS = (
    "#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933",
)  # fmt: skip

#: The colors of well-known schedulers, and of schedulers with one of these names followed by a hyphen.
SCHEDULER_COLOURS = {
    "log": BLACK, "easy": BLUE, "fcfs": VERMILION, "conservative": GREEN, "sjbf": PURPLE, "wfp3": ORANGE, "sjf": SKY,
    "easy-submit": PURPLE, "easy-start": SKY, "scattered": ORANGE, "contiguous": WINE, "least-shared": GREEN,
    "alvio-first-fit": ORANGE, "alvio-first-contiguous": WINE, "easy-first-fit": SKY, "easy-first-contiguous": PURPLE,
    "easy-least-shared": GREEN, "easy-threshold": OLIVE, "f1": PURPLE, "f2": SKY, "f3": WINE, "f4": OLIVE,
    "unicef": GREEN, "saf": VERMILION, "site": OLIVE,
}  # fmt: skip

#: Lines of one color differ by their dashes: solid, dashed, dotted, both, long.
DASHES: tuple[tuple[int, ...], ...] = ((1, 0), (6, 3), (2, 2), (7, 2, 2, 2), (12, 3))


@dataclass(frozen=True)
class Style:
    """The color of a line, and the lengths of its dashes and gaps in pixels."""

    colour: str
    dash: tuple[int, ...] = DASHES[0]


def scheduler_style(name: str) -> Style:
    """
    Return the style of a scheduler by its name alone.

    A scheduler that is not in `SCHEDULER_COLOURS` gets a color by a checksum of its name, so that the style does not
    depend on the other schedulers of a figure or of a database.

    Examples
    --------
    >>> scheduler_style("fcfs")
    Style(colour='#D55E00', dash=(1, 0))
    >>> scheduler_style("fcfs-kill").colour, scheduler_style("mine").colour in RUN_COLOURS[1:]
    ('#D55E00', True)
    """
    parts = name.split("-")
    known = ("-".join(parts[:length]) for length in range(len(parts), 0, -1))
    family = next((prefix for prefix in known if prefix in SCHEDULER_COLOURS), None)
    if family is None:
        return Style(RUN_COLOURS[1 + crc32(name.encode()) % (len(RUN_COLOURS) - 1)])
    if family == name:
        return Style(SCHEDULER_COLOURS[family])
    return Style(SCHEDULER_COLOURS[family], DASHES[1 + crc32(name.encode()) % (len(DASHES) - 1)])


def run_styles(runs: Sequence[Mapping[str, str]]) -> list[Style]:
    """
    Return the style of each run of a figure.

    The color is that of the scheduler. A run whose style is taken gets other dashes, such as the same scheduler on
    another workload. If all runs have one scheduler, the colors distinguish the workloads.

    Examples
    --------
    >>> [style.dash for style in run_styles([{"workload": name, "scheduler": scheduler}
    ...                                      for name in ("A", "A+short") for scheduler in ("fcfs", "easy")])]
    [(1, 0), (1, 0), (6, 3), (6, 3)]
    >>> [style.colour for style in run_styles([{"workload": name, "scheduler": "easy"} for name in ("A", "A+like")])]
    ['#0072B2', '#D55E00']
    """
    if len({run["scheduler"] for run in runs}) == 1 and len(runs) > 1:
        colours = RUN_COLOURS[1:]
        return [Style(colours[place % len(colours)], DASHES[place // len(colours) % len(DASHES)])
                for place in range(len(runs))]  # fmt: skip
    taken: set[Style] = set()
    styles = []
    for run in runs:
        style = scheduler_style(run["scheduler"])
        options = [style, *(Style(style.colour, dash) for dash in DASHES)]
        style = next((option for option in options if option not in taken), style)
        taken.add(style)
        styles.append(style)
    return styles


def line_encodings(
    field: str, styles: Mapping[str, Style], legend: alt.Legend | None, *, dashes: bool = True
) -> dict[str, alt.Color | alt.StrokeDash]:
    """
    Return the encodings of color and dash, which share one legend (None in all panels but one).

    ``field`` is the column with the names of the lines; points have no dashes.
    """
    names = list(styles)
    colour = alt.Scale(domain=names, range=[style.colour for style in styles.values()])
    encodings: dict[str, alt.Color | alt.StrokeDash] = {"color": alt.Color(f"{field}:N", scale=colour, legend=legend)}
    if dashes and len({style.dash for style in styles.values()}) > 1:
        dash = alt.Scale(domain=names, range=[list(style.dash) for style in styles.values()])
        encodings["strokeDash"] = alt.StrokeDash(f"{field}:N", scale=dash, legend=legend)
    return encodings
