"""The kinds of table columns, and their values in pages."""

import math
from collections.abc import Sequence
from typing import Any

#: Columns in seconds.
_SECONDS = ("_time", "awrt", "awwt", "makespan")
_PERCENT = ("utilization", "variant_wins", "base_wins", "offered_load", "started_alike", "start_order",
            "simulated_of_recorded", "awrt_gap", "smallest_gap")  # fmt: skip


def kind_of(name: str, values: Sequence[Any]) -> str:
    """
    Return the format of a column: ``text``, ``seconds``, ``percent``, ``integer`` or ``number``.

    Examples
    --------
    >>> kind_of("mean_wait_time", [3.5]), kind_of("jobs", [3]), kind_of("log", ["A"]), kind_of("ratio", [None])
    ('seconds', 'integer', 'text', 'text')
    """
    known = [value for value in values if value is not None]
    if not known or not all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return "text"
    if name.endswith(_SECONDS):
        return "seconds"
    if name in _PERCENT or name.endswith("_share"):
        return "percent"
    return "integer" if all(float(value).is_integer() for value in known if math.isfinite(value)) else "number"


def shortened(value: Any) -> Any:
    """Return a value as stored in a page: nine significant digits, only values that JSON supports."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if value is None or isinstance(value, int | str) else str(value)
