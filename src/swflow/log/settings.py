"""Check the settings of a config or catalogue for cleaning and generating logs."""

import math
from collections.abc import Mapping
from typing import Any

from swflow.errors import SwflowError, require_known, suggest
from swflow.jobs.conditions import check_condition
from swflow.jobs.table import IMPORTED_COLUMNS, JOB_COLUMNS

#: How malformed lines are skipped, for errors: most commands that read a log have no such option.
LENIENT = "swflow clean --lenient (in a config: clean: {lenient: true})"

#: The rules of `clean` in the order of their application; a job counts under the first rule that it meets.
RULES = ("unknown-submit-time", "no-processors", "wider-than-machine", "unknown-run-time", "zero-run-time")

#: The columns that conditions of a config can use: those of job tables, and of imported logs.
CONDITION_COLUMNS = JOB_COLUMNS | IMPORTED_COLUMNS

#: The models of synthetic logs with their parameters: permitted values or type.
GENERATORS: dict[str, dict[str, type | tuple[str, ...]]] = {
    "lublin": {
        "load": float,
        "classes": ("batch-and-interactive", "combined"),
        "estimates": ("tsafrir", "exact", "none"),
        "users": bool,
    },
}


def check_clean(settings: Any, where: str) -> dict[str, Any]:
    """
    Check the settings for cleaning a log, and return them.

    They have at most ``drop``, ``without_status``, ``flurries`` and ``lenient``, as in
    `swflow.workload.clean.clean_log`. ``where`` is their key, for error messages.

    Examples
    --------
    >>> check_clean({"flurry": ["user_id == 3"]}, "logs.yaml: A: clean")
    Traceback (most recent call last):
    swflow.errors.SwflowError: logs.yaml: A: clean: unknown key 'flurry'; did you mean 'flurries'?
    """
    if not isinstance(settings, Mapping):
        raise SwflowError(f"{where}: {settings!r}; expected a mapping such as {{flurries: [...]}}")
    require_known(settings, ("drop", "without_status", "flurries", "lenient"), where)
    for rule in _list(settings, "drop", str, "text", where):
        if rule not in RULES:
            raise SwflowError(f"{where}: drop: unknown rule {rule!r}{suggest(rule, RULES)}")
    _list(settings, "without_status", int, "whole numbers", where)
    for flurry in _list(settings, "flurries", str, "conditions", where):
        check_condition(flurry, f"{where}: flurries", CONDITION_COLUMNS)
    if not isinstance(settings.get("lenient", False), bool):
        raise SwflowError(f"{where}: lenient: {settings['lenient']!r}; expected true or false")
    return dict(settings)


def check_generator(model: str, parameters: Mapping[str, object], where: str) -> None:
    """
    Check the model of a synthetic log, a name of `GENERATORS`, and its parameters other than processors, jobs and seed.

    ``where`` names the log, for error messages.
    """
    if model not in GENERATORS:
        raise SwflowError(f"{where}: generate: unknown model {model!r}{suggest(model, GENERATORS)}")
    known = GENERATORS[model]
    require_known(parameters, known, where)
    for name, value in parameters.items():
        kind = known[name]
        if isinstance(kind, tuple):
            if value not in kind:
                raise SwflowError(f"{where}: {name}: unknown value {value!r}{suggest(str(value), kind)}")
        elif kind is bool and not isinstance(value, bool):
            raise SwflowError(f"{where}: {name}: {value!r}; expected true or false")
        elif kind is float and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
        ):
            raise SwflowError(f"{where}: {name}: {value!r}; expected a positive number")


def _list(settings: Mapping[str, object], key: str, kind: type, what: str, where: str) -> list[Any]:
    """Return a list of the settings; raise an error if an item has another type."""
    values = settings.get(key, [])
    if not isinstance(values, list) or not all(
        isinstance(value, kind) and not isinstance(value, bool) for value in values
    ):
        raise SwflowError(f"{where}: {key}: {values!r}; expected a list of {what}")
    return values
