"""What a config or a catalogue may say of how a log is cleaned or generated: checked before anything runs."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from swflow.errors import SwflowError, suggest
from swflow.expressions import check_condition
from swflow.jobs import JOB_COLUMNS
from swflow.workloads.clean import RULES

#: The models of synthetic logs, each with its parameters: the values that one may have, or their kind.
GENERATORS: dict[str, dict[str, Any]] = {
    "lublin": {
        "load": float,
        "classes": ("batch-and-interactive", "combined"),
        "estimates": ("tsafrir", "exact", "none"),
        "users": bool,
    },
}


def check_clean(settings: Any, where: str) -> dict[str, Any]:
    """
    Check the settings of cleaning a log.

    Parameters
    ----------
    settings : mapping
        At most ``drop``, ``without_status``, ``flurries`` and ``lenient``, as `swflow.workloads.clean.clean_log` has
        them.
    where : str
        The key that they come from, for errors.

    Returns
    -------
    dict
        The settings.

    Raises
    ------
    SwflowError
        If a key is unknown, or a value is not of its kind, or a flurry is no condition.

    Examples
    --------
    >>> check_clean({"flurry": ["user_id == 3"]}, "logs.yaml: A: clean")
    Traceback (most recent call last):
    swflow.errors.SwflowError: logs.yaml: A: clean: unknown key 'flurry'; did you mean 'flurries'?
    """
    if not isinstance(settings, Mapping):
        raise SwflowError(f"{where}: must be a mapping such as {{flurries: [...]}}, not {settings!r}")
    _require_known(settings, ("drop", "without_status", "flurries", "lenient"), where)
    for rule in _list(settings, "drop", str, "text", where):
        if rule not in RULES:
            raise SwflowError(f"{where}: drop: unknown rule {rule!r}{suggest(rule, RULES)}")
    _list(settings, "without_status", int, "whole numbers", where)
    for flurry in _list(settings, "flurries", str, "conditions", where):
        check_condition(flurry, f"{where}: flurries", JOB_COLUMNS)
    if not isinstance(settings.get("lenient", False), bool):
        raise SwflowError(f"{where}: lenient: must be true or false, not {settings['lenient']!r}")
    return dict(settings)


def check_generator(model: str, parameters: Mapping[str, Any], where: str) -> None:
    """
    Check the model of a synthetic log and its parameters.

    Parameters
    ----------
    model : str
        A name of `GENERATORS`.
    parameters : mapping
        What the model is to be given besides processors, jobs and a seed.
    where : str
        The log that they come from, for errors.

    Raises
    ------
    SwflowError
        If the model or a parameter is unknown, or a value is none that it may have.
    """
    if model not in GENERATORS:
        raise SwflowError(f"{where}: generate: unknown model {model!r}{suggest(model, GENERATORS)}")
    known = GENERATORS[model]
    _require_known(parameters, known, where)
    for name, value in parameters.items():
        kind = known[name]
        if isinstance(kind, tuple):
            if value not in kind:
                raise SwflowError(f"{where}: {name}: unknown value {value!r}{suggest(str(value), kind)}")
        elif kind is bool and not isinstance(value, bool):
            raise SwflowError(f"{where}: {name}: must be true or false, not {value!r}")
        elif kind is float and (
            isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf
        ):
            raise SwflowError(f"{where}: {name}: must be a positive number, not {value!r}")


def _require_known(content: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    for key in content:
        if key not in known:
            raise SwflowError(f"{where}: unknown key {key!r}{suggest(str(key), known)}")


def _list(settings: Mapping[str, Any], key: str, kind: type, what: str, where: str) -> list[Any]:
    """Return a list of the settings, all items of one kind."""
    values = settings.get(key, [])
    if not isinstance(values, list) or not all(
        isinstance(value, kind) and not isinstance(value, bool) for value in values
    ):
        raise SwflowError(f"{where}: {key}: must be a list of {what}, not {values!r}")
    return values
