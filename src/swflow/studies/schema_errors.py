"""Messages of the errors that the JSON schema of the config finds."""

import difflib
from collections.abc import Iterable
from typing import Any

from swflow.errors import shown, suggest

#: The kinds of values in the schema of the config, for errors.
_KINDS = {
    "array": "a list, such as [first, second]",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping, such as {key: value}",
    "string": "a text",
}


def most_useful(errors: Iterable[Any]) -> Any:
    """Return the violation to report, None without any: a misspelt key rather than one that is missing."""
    import jsonschema  # type: ignore[import-untyped]

    found = list(errors)
    best = jsonschema.exceptions.best_match(found)
    if best is None or best.validator != "required":
        return best
    missing = [key for key in best.validator_value if key not in best.instance]
    for error in found:
        if error.validator == "additionalProperties" and error.path == best.path:
            unknown = [str(key) for key in best.instance if key not in error.schema.get("properties", {})]
            if any(difflib.get_close_matches(key, missing, 1) for key in unknown):
                return error
    return best


def explain(error: Any) -> str:
    """Return a one-line description of a JSON schema violation: ``key: path: problem``."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f": {part}" for part in error.absolute_path)
    where = f"{path.removeprefix(': ')}: " if path else ""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = error.schema.get("properties", {})
        unknown = [key for key in error.instance if key not in known]
        if unknown:
            return f"{where}unknown key {unknown[0]!r}{suggest(unknown[0], known)}"
    if error.validator == "enum":
        return f"{where}unknown value {error.instance!r}{suggest(error.instance, map(str, error.validator_value))}"
    if error.validator == "type":
        kinds = [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
        return f"{where}{shown(error.instance)}; expected {' or '.join(_KINDS[kind] for kind in kinds)}"
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = next(key for key in error.validator_value if key not in error.instance)
        given = ", ".join(map(str, error.instance)) or "no key"
        return f"{where}{missing!r} is missing; given: {given}"
    if error.validator == "pattern" and "expected" in error.schema:
        return f"{where}{shown(error.instance)}; expected {error.schema['expected']}"
    return f"{where}{error.message}"
