"""
The scheduler part of the config's JSON schema, generated from the table of options.

    python -m swflow.scheduling.schema workflow/schemas/config.schema.yaml

writes it into the schema, where it is the block below ``schedulers``.
"""

import re
import sys
from pathlib import Path
from typing import Any

from swflow.scheduling.option_checks import RANGE
from swflow.scheduling.option_kinds import LARGEST, LATEST, Option
from swflow.scheduling.options import OPTIONS

#: The lines before and after the block.
_BLOCK = re.compile(r"(?<=\n        # options: generated\n).*?(?=        # end of options\n)", re.DOTALL)


def properties() -> dict[str, object]:
    """Return the JSON schema of each option; a part of several options is one object."""
    known: dict[int, dict[str, Any]] = {}
    return {name: schema_of(option, known) for name, option in OPTIONS.items()}


def schema_of(option: Option, known: dict[int, dict[str, Any]] | None = None) -> dict[str, Any]:
    """
    Return the JSON schema of an option, which accepts what its check accepts. ``known`` has those of other options.

    The check also parses texts, such as formulas, and compares the parts of a nested value.

    Examples
    --------
    >>> schema_of(Option("number", "The weight of age.", least=0, optional=True))
    {'description': 'The weight of age.', 'type': ['number', 'null'], 'minimum': 0}
    """
    known = {} if known is None else known
    if id(option) in known:
        return known[id(option)]
    found = _schema(option, known)
    if option.optional and "type" in found:
        found["type"] = [*([found["type"]] if isinstance(found["type"], str) else found["type"]), "null"]
    elif option.optional and "enum" in found:
        found["enum"] = [*found["enum"], None]
    known[id(option)] = ({"description": option.meaning} if option.meaning else {}) | found
    return known[id(option)]


def _schema(option: Option, known: dict[int, dict[str, Any]]) -> dict[str, Any]:
    match option.kind:
        case "flag":
            return {"type": "boolean"}
        case "integer" | "number":
            return {"type": option.kind} | _bounds(option)
        case "choice":
            return {"enum": list(option.choices)}
        case "order" | "text" | "plugin":
            return {"type": "string"}
        case "name":
            return dict(_NAME)
        case "names":
            return {"type": ["string", "integer", "array"], "pattern": _NAME["pattern"], "items": dict(_NAME)}
        case "moment":
            # A day of YAML is of no type that JSON knows.
            unlike = ["boolean", "array", "object", *([] if option.optional else ["null"])]
            return {"not": {"type": unlike}, "minimum": -LATEST, "maximum": LATEST}
        case "positions":
            part = rf"\s*{RANGE}\s*"
            return {"type": ["string", "integer"], "pattern": f"^{part}(,{part})*$", "minimum": 1, "maximum": 999_999}
        case "mapping":
            return {"type": "object"}
        case "list":
            return {"type": "array", "items": _of_each(option, known)}
        case "named":
            return {"type": "object", "propertyNames": dict(_NAME), "additionalProperties": _of_each(option, known)}
        case "units":
            return {"type": "object", "propertyNames": dict(_RESOURCE), "additionalProperties": _of_each(option, known)}
        case "keys":
            return _keys(option, known)
    raise AssertionError(f"no schema for the kind {option.kind}")


#: A name or number of a user, group, partition or QOS; and a name of a resource.
_NAME = {"type": ["string", "integer"], "pattern": r"\S"}
_RESOURCE = {"type": "string", "pattern": r"^(?!(processors|nodes)$)[^\W\d_]\w*$"}


def _of_each(option: Option, known: dict[int, dict[str, Any]]) -> dict[str, Any]:
    assert option.each is not None, option
    return schema_of(option.each, known)


def _bounds(option: Option) -> dict[str, float]:
    least = {"minimum": option.least} if option.above is None else {"exclusiveMinimum": option.above}
    both = least | {"maximum": option.most}
    # Whole numbers as such, which YAML writes without an exponent.
    return {key: int(bound) if bound == int(bound) else bound for key, bound in both.items() if abs(bound) < LARGEST}


def _keys(option: Option, known: dict[int, dict[str, Any]]) -> dict[str, Any]:
    own = {name: schema_of(one, known) for name, one in option.keys.items()}
    found: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": own}
    if option.others is not None:
        named = schema_of(option.others, known)
        own |= {name: {"anyOf": [one, named]} for name, one in own.items()}
        found |= {"additionalProperties": named, "propertyNames": dict(_NAME)}
    if option.needed:
        found["required"] = list(option.needed)
    if option.either:
        given: list[Any] = [
            {"type": "object", "required": [name], "properties": {name: {"not": {"type": "null"}}}}
            for name in option.either
        ]
        found["oneOf"] = [*given, {"type": "null"}] if option.optional else given
    return found


def written_into(text: str) -> str:
    """Return the text of a schema with the block of options replaced."""
    import yaml

    block = yaml.safe_dump(properties(), sort_keys=False, width=110, allow_unicode=True, default_flow_style=None)
    lines = "".join(f"        {line}\n" if line else "\n" for line in block.splitlines())
    return _BLOCK.sub(lambda _: lines, text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(written_into(path.read_text()))
