"""Pictures of figures (SVG, PNG, PDF) from a Vega-Lite specification, in a font that does not depend on the machine."""

import json
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from swflow.figures.parts import Spec

#: Dots per inch of a PNG: two dots per pixel of the figure.
RESOLUTION = 144


def to_svg(spec: Spec) -> str:
    """Draw a figure, a Vega-Lite specification, as SVG."""
    return _svg(json.dumps(spec))


def to_png(spec: Spec, resolution: float = RESOLUTION) -> bytes:
    """Draw a figure as PNG; with 72 dots per inch, one dot is one pixel of the figure."""
    content: bytes = _vl_convert().svg_to_png(to_svg(spec), ppi=resolution)
    return content


def to_pdf(spec: Spec) -> bytes:
    """Draw a figure as PDF, with 96 pixels per inch."""

    def in_points(found: re.Match[str]) -> str:  # the pixels of an SVG become points of a PDF
        return f'{found[1]}{float(found[2]) * 72 / 96:g}"'

    size = re.compile(r'((?:width|height)=")([0-9.]+)"')
    root, end, content = to_svg(spec).partition(">")
    document: bytes = _vl_convert().svg_to_pdf(size.sub(in_points, root) + end + content)
    return document


def pixels_wide(spec: Spec) -> float:
    """Return the width of a figure in pixels, with its labels and margins."""
    found = re.search(r'width="([0-9.]+)"', to_svg(spec))
    assert found is not None
    return float(found[1])


@lru_cache(maxsize=1)
def _svg(spec: str) -> str:
    """Render a specification as SVG; cache the last one, because a figure is often written as SVG and as PNG."""
    version = ".".join(json.loads(spec)["$schema"].rpartition("/v")[2].split(".")[:2])
    return _with_own_ids(_vl_convert().vegalite_to_svg(spec, vl_version=version))


def _with_own_ids(svg: str) -> str:
    """
    Return an SVG with its identifiers numbered from 1.

    Vega counts the clips and gradients of all figures that a process draws, so the same figure would have other bytes
    after other figures.

    Examples
    --------
    >>> _with_own_ids('<clipPath id="clip38"/><g clip-path="url(#clip38)"/><linearGradient id="gradient_5"/>')
    '<clipPath id="clip1"/><g clip-path="url(#clip1)"/><linearGradient id="gradient_2"/>'
    """
    found = dict.fromkeys(re.findall(r'\bid="([a-z_]+[0-9]+)"', svg))
    numbered = {name: f"{name.rstrip('0123456789')}{number}" for number, name in enumerate(found, 1)}
    pattern = r'(\bid="|url\(#|href="#)([a-z_]+[0-9]+)(?=["\)])'
    return re.sub(pattern, lambda match: match[1] + numbered.get(match[2], match[2]), svg)


@cache
def _vl_convert() -> Any:
    """Import vl-convert and register the font of the figures."""
    import vl_convert

    vl_convert.register_font_directory(str(Path(__file__).with_name("fonts")))
    return vl_convert
