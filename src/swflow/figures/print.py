"""Figures for print: laid out to a width in millimeters, in another font, without a title."""

import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt

from swflow.errors import SwflowError
from swflow.figures.parts import FONT, Spec
from swflow.figures.pictures import pixels_wide, to_png

#: Pixels of a figure per millimeter on paper: 96 per inch, so that the labels of 10 pixels have 7.5 points.
PIXELS = 96 / 25.4

#: Widths on paper that are accepted, in millimeters.
_NARROWEST, _WIDEST = 30.0, 1000.0

#: Pixels around a figure.
_MARGIN = 5

#: A panel is at least this wide and this high (pixels); labels of its axes would overlap otherwise.
_NARROWEST_PANEL, _LOWEST = 60.0, 50

#: The lines of a title: the key of its font's size, the size in a panel, and the mean width of a letter in this size.
_LINES = {"text": ("fontSize", 12.0, 0.6), "subtitle": ("subtitleFontSize", 10.0, 0.53)}

_WIDTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(mm|cm|in|pt)\s*")
_MILLIMETERS = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}


@dataclass(frozen=True)
class Print:
    """How a figure is printed: its width in millimeters, its font, and whether it has a title above it."""

    width: float | None = None
    font: str | None = None
    titled: bool = True


def read_width(text: str) -> float:
    """
    Return a width, such as ``84mm``, in millimeters.

    Raises
    ------
    SwflowError
        If the text is no width, or below 30 mm or above 1 m.

    Examples
    --------
    >>> read_width("84mm"), read_width("3.5 in")
    (84.0, 88.9)
    """
    found = _WIDTH.fullmatch(text)
    width = round(float(found[1]) * _MILLIMETERS[found[2]], 3) if found else 0.0
    if not _NARROWEST <= width <= _WIDEST:
        raise SwflowError(
            f"--width: {text!r}; expected a width from 30mm to 1000mm, such as 84mm, 8.4cm, 3.3in or 240pt"
        )
    return width


def printed(spec: Spec, how: Print) -> Spec:
    """
    Return a figure as it is printed.

    Panels get narrower or wider until the figure has the width; labels keep their size. Heights follow the panels.

    Raises
    ------
    SwflowError
        If the font is not installed, or the panels would be too narrow to read.
    """
    if not how.titled:
        spec = {name: value for name, value in spec.items() if name != "title"}
    if how.font is not None:
        if not is_installed(how.font):
            raise SwflowError(
                f"--font: {how.font!r} is not installed on this machine; fc-list : family lists its fonts"
            )
        spec = spec | {"config": spec["config"] | {"font": f"{how.font}, {FONT}"}}
    return spec if how.width is None else _laid_out(spec, how.width)


@cache
def is_installed(font: str) -> bool:
    """Return whether a text in this font has other pixels than one in a font that does not exist."""

    def drawn(family: str) -> bytes:
        mark = {"type": "text", "font": family, "fontSize": 40, "text": "Rag&1il"}
        return to_png({"$schema": alt.SCHEMA_URL, "data": {"values": [{}]}, "mark": mark, "width": 200, "height": 60})

    return font.casefold() in ("serif", "sans-serif", "monospace") or drawn(font) != drawn("no such font at all")


def _laid_out(spec: Spec, width: float) -> Spec:
    """Return a figure whose panels make it ``width`` millimeters wide: bisect the factor of their widths."""
    goal = width * PIXELS
    title, spec = spec.get("title"), {name: value for name, value in spec.items() if name != "title"}
    widest = max(_widths(spec), default=goal)
    low, high = _NARROWEST_PANEL / widest, max(2.0, 2 * goal / widest)
    least = pixels_wide(_scaled(spec, low))
    if least > goal + _MARGIN:
        raise SwflowError(
            f"--width: the panels of this figure do not fit into {width:g} mm; draw fewer runs (--run) or measures "
            f"(--measure), or give {math.ceil(least / PIXELS)}mm or more"
        )
    for _ in range(12):
        factor = (low + high) / 2
        off = pixels_wide(_scaled(spec, factor)) - goal
        if abs(off) < 1:
            break
        low, high = (low, factor) if off > 0 else (factor, high)
    titled = {"title": _wrapped(title, goal - 2 * _MARGIN)} if title else {}
    return _scaled(spec, factor) | titled


def _wrapped(title: Any, width: float) -> Spec:
    """Return a title whose lines are not wider than some pixels."""
    content: Spec = {"text": title} if isinstance(title, str) else dict(title)
    for part, (key, size, letter) in _LINES.items():
        if part in content:
            lines = [content[part]] if isinstance(content[part], str) else content[part]
            most = max(1, int(width / (letter * content.get(key, size))))
            content[part] = [line for text in lines for line in textwrap.wrap(text, most) or [""]]
    return content | {"limit": width}


def _scaled(part: Any, factor: float, lost: float = 0.0) -> Any:
    """
    Return a figure, or a part of one, with its panels scaled, and their titles broken to fit them.

    Disks and color bars follow the panels; ``lost`` is by how many pixels the panel of a part is lower. The legend
    below the panels keeps its size.
    """
    if isinstance(part, list):
        return [_scaled(item, factor, lost) for item in part]
    if not isinstance(part, dict) or part.get("name") == "key":
        return part
    content = dict(part)
    if isinstance(content.get("width"), int | float):
        content["width"] = max(1, round(content["width"] * factor))
        if isinstance(content.get("height"), int | float):
            content["height"] = max(_LOWEST, round(content["height"] * max(factor, 0.5)))
            lost = part["height"] - content["height"]
        if title := content.get("title"):
            content["title"] = _wrapped(title, content["width"])
    if "encoding" in content:
        content["encoding"] = _marks(content["encoding"], factor, lost)
    return {name: _scaled(value, factor, lost) if name in _PARTS else value for name, value in content.items()}


def _marks(encoding: Spec, factor: float, lost: float) -> Spec:
    """Return the channels of a panel with areas of disks, color bars and columns of legends that follow it."""
    content = dict(encoding)
    size, color = content.get("size", {}), content.get("color", {})
    if isinstance(size.get("scale"), dict) and "range" in size["scale"]:
        areas = [area * factor for area in size["scale"]["range"]]
        content["size"] = size | {"scale": size["scale"] | {"range": areas}}
    if isinstance(color.get("legend"), dict) and color["legend"].get("gradientLength"):
        length = max(_LOWEST, color["legend"]["gradientLength"] - lost)
        content["color"] = color | {"legend": color["legend"] | {"gradientLength": length}}
    elif isinstance(color.get("legend"), dict) and color["legend"].get("columns"):
        columns = max(1, round(color["legend"]["columns"] * min(factor, 1.0)))
        content["color"] = color | {"legend": color["legend"] | {"columns": columns}}
    return content


#: The parts of a specification that hold panels.
_PARTS = ("vconcat", "hconcat", "layer", "concat", "spec")


def _widths(part: Any) -> Iterator[float]:
    """Yield the widths of all panels."""
    if isinstance(part, list):
        for item in part:
            yield from _widths(item)
    elif isinstance(part, dict) and part.get("name") != "key":
        if isinstance(part.get("width"), int | float):
            yield float(part["width"])
        for name in _PARTS:
            yield from _widths(part.get(name))
