"""Messages of the errors that the JSON schema of the config finds."""

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
    return f"{where}{error.message}"
