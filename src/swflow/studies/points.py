"""The points of a sweep: settings of the step ``scale``, their names, and the notation of ranges."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swflow.errors import SwflowError


@dataclass(frozen=True)
class Point:
    """
    One setting of the step ``scale``; its name is derived from the options unless it is given.

    Examples
    --------
    >>> Point(1024, 50, "precise", 10.58).step
    'precise-1024-d50-f10.58'
    """

    processors: int
    d: float = 50.0
    variant: str = "precise"
    factor: float | None = None
    copies: int | None = None
    name: str | None = None

    @property
    def step(self) -> str:
        """The step's name; a step of the config with this name and these options draws the same jobs."""
        if self.name is not None:
            return self.name
        name = f"{self.variant}-{self.processors}-d{self.d:g}"
        name += "" if self.factor is None else f"-f{self.factor:.10g}"
        return name + ("" if self.copies is None else f"-c{self.copies}")

    @property
    def options(self) -> dict[str, Any]:
        """The options of the step."""
        return {name: value for name, value in asdict(self).items() if name != "name" and value is not None}

    def as_step(self) -> dict[str, Any]:
        """Return the definition of a step in the config that draws the same jobs."""
        options = self.options
        whole = {name: int(value) for name, value in options.items() if isinstance(value, float) and value.is_integer()}
        return {"kind": "scale", **options, **whole}


def grid(
    processors: int,
    *,
    d: Iterable[float] = (50.0,),
    variant: Iterable[str] = ("precise",),
    factor: Sequence[float] = (),
    copies: int | None = None,
) -> list[Point]:
    """Return the settings of a sweep that do not depend on a source: `points` without ``excess``."""
    tried: list[float | None] = [*factor] or [None]
    return [
        Point(processors, value, kind, one, copies if kind == "precise-size" else None)
        for kind in variant
        for value in d
        for one in tried
    ]


def values(text: str, where: str) -> list[float]:
    """
    Parse numbers: a single one, or ``FROM:TO:STEP``, which includes both ends.

    Examples
    --------
    >>> values("50", "--d"), values("0:1:0.25", "--d")
    ([50.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    try:
        parts = [float(part) for part in text.split(":")]
    except ValueError:
        parts = []
    if len(parts) == 1 and math.isfinite(parts[0]):
        return parts
    if len(parts) != 3 or not all(map(math.isfinite, parts)) or parts[2] <= 0 or parts[1] < parts[0]:
        raise SwflowError(f"{where}: {text!r}; expected a number or FROM:TO:STEP, such as 0:100:1")
    first, last, step = parts
    return [round(first + place * step, 10) for place in range(int((last - first) / step + 1e-9) + 1)]
