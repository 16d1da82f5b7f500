"""Check the metadata of swflow's Parquet files once, where a file is opened."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from swflow.errors import SwflowError, shown
from swflow.jobs.machine import Machine
from swflow.values import number, text, whole_number

#: The keys that a file of each kind must have.
_REQUIRED: dict[str, tuple[str, ...]] = {
    "workload": ("machine", "header", "history"),
    "log": ("header", "history"),
    "run": ("workload", "scheduler", "options", "machine", "input", "source", "metrics", "correlations",
            "peak_processors", "rows"),
    "bounds": ("workload", "input"),
    "sweep": ("workload", "schedulers"),
}  # fmt: skip


#: The options of a scheduler whose values are names, or none.
_NAMED = {
    "order", "backfill", "backfill_order", "estimates", "prediction", "allocation", "runtime", "event_order",
    "dispatch", "shapes",
}  # fmt: skip


def check_metadata(about: Mapping[str, Any], where: str) -> None:
    """
    Raise an error if the metadata of a file lacks a key of its kind, or has a value of another type.

    Examples
    --------
    >>> check_metadata({"kind": "log", "header": {"MaxProcs": 8}, "history": []}, "my.parquet")
    Traceback (most recent call last):
    swflow.errors.SwflowError: my.parquet: metadata: header: MaxProcs: 8; expected a list; create the file again
    """
    try:
        for key in _REQUIRED.get(str(about.get("kind")), ()):
            if key not in about:
                raise SwflowError(f"no key {key!r}")
        for key, check in _CHECKS.items():
            if key in about:
                check(about[key], key)
    except SwflowError as error:
        raise SwflowError(f"{where}: metadata: {error}; create the file again") from None


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SwflowError(f"{where}: {shown(value)}; expected an object")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise SwflowError(f"{where}: {shown(value)}; expected a list")
    return value


def _kind(value: Any, where: str) -> None:
    if value is not None:
        text(value, where)


def _machine(value: Any, where: str) -> None:
    known = {field.name for field in fields(Machine)}
    unknown = [name for name in _mapping(value, where) if name not in known]
    if unknown or not {"processors", "nodes"} <= value.keys():
        raise SwflowError(f"{where}: {shown(value)}; expected {', '.join(sorted(known))}")
    Machine(**value)


def _header(value: Any, where: str) -> None:
    for key, values in _mapping(value, where).items():
        for one in _list(values, f"{where}: {key}"):
            if not isinstance(one, str):
                raise SwflowError(f"{where}: {key}: {shown(one)}; expected a text")


def _counts(value: Any, where: str) -> None:
    for reason, count in _mapping(value, where).items():
        whole_number(count, f"{where}: {reason}")


def _history(value: Any, where: str) -> None:
    for place, entry in enumerate(_list(value, where), 1):
        at = f"{where}: entry {place}"
        text(_mapping(entry, at).get("stage"), f"{at}: stage")
        is_read = entry["stage"] in ("import", "clean")  # its counts are printed
        for key in ("read", "kept"):
            if key in entry or is_read:
                whole_number(entry.get(key), f"{at}: {key}")
        if "removed" in entry or is_read:
            _counts(entry.get("removed"), f"{at}: removed")
        _counts(entry.get("notes") or {}, f"{at}: notes")
        for key in ("machine_from", "format", "source", "model"):
            if entry.get(key) is not None:
                text(entry[key], f"{at}: {key}")
        if entry.get("guessed_processors") is not None:
            whole_number(entry["guessed_processors"], f"{at}: guessed_processors")
        for warning in _list(entry.get("warnings", []), f"{at}: warnings"):
            text(warning, f"{at}: warnings")
        for measure, pair in _mapping(entry.get("fit") or {}, f"{at}: fit").items():
            if len(_list(pair, f"{at}: fit: {measure}")) != 2:
                raise SwflowError(f"{at}: fit: {measure}: {shown(pair)}; expected two numbers")


def _metrics(value: Any, where: str) -> None:
    for name, figure in _mapping(value, where).items():
        if figure is not None:
            number(figure, f"{where}: {name}")


def _options(value: Any, where: str) -> None:
    if missing := {*_NAMED, "without_status"} - _mapping(value, where).keys():
        raise SwflowError(f"{where}: no key {min(missing)!r}")
    for name in _NAMED:
        if not isinstance(value[name], str | None):
            raise SwflowError(f"{where}: {name}: {shown(value[name])}; expected a text")


def _schedulers(value: Any, where: str) -> None:
    for name, options in _mapping(value, where).items():
        _options(options, f"{where}: {name}")


def _seconds(value: Any, where: str) -> None:
    number(value, where, least=0)


_CHECKS: dict[str, Callable[[Any, str], object]] = {
    "kind": _kind,
    "machine": _machine,
    "header": _header,
    "history": _history,
    **dict.fromkeys(("workload", "scheduler", "input", "source", "log", "sweep", "measured"), text),
    "options": _options,
    "metrics": _metrics,
    "correlations": _metrics,
    "schedulers": _schedulers,
    "rows": whole_number,
    "peak_processors": whole_number,
    "seconds": _seconds,
}
