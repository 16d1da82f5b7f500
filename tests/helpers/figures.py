"""Checks of the specifications of figures."""

from collections.abc import Mapping
from typing import Any


def errors_of(spec: Mapping[str, Any]) -> list[str]:
    """Return where a figure breaks the schema of Vega-Lite, since figures are drawn without Altair's validation."""
    import altair
    import jsonschema

    found = jsonschema.Draft7Validator(altair.load_schema()).iter_errors({**spec, "datasets": {}})
    return [error.json_path for error in found]


def marks(spec):
    """Return all marks in a specification."""
    found = []
    if isinstance(spec, dict):
        if isinstance(spec.get("mark"), dict):
            found.append(spec["mark"]["type"])
        spec = list(spec.values())
    if isinstance(spec, list):
        for part in spec:
            found += marks(part)
    return found
