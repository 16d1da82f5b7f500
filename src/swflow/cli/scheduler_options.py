"""The options of `swflow simulate` that describe a scheduler: generated from the table of options."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any

from typer import Option

from swflow.cli.option_values import read_mapping, read_object, read_units
from swflow.errors import SwflowError
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.options import OPTIONS, Unavailable, help_of

#: The types of option values on the command line, by kind; other kinds are texts, nested ones in YAML.
_TYPES: dict[str, Any] = {"flag": bool, "integer": int, "number": float, "list": list[str], "units": list[str]}

#: Options that are repeated, each time with one value: the flag, and the notation of a value.
_REPEATED = {
    "unavailable": (
        "--unavailable",
        "Make processors unavailable in a window: FROM/UNTIL/PROCESSORS, in seconds from the start of the log, or as "
        "days; UNTIL may be never; repeatable.",
    ),
    "nodes": (
        "--nodes",
        "With backfill slurm, place jobs on nodes: COUNTxPROCESSORS, or PARTITION,…=COUNTxPROCESSORS for a group of "
        "nodes that some partitions may use; repeatable, in the order of the nodes.",
    ),
    "clusters": (
        "--cluster",
        "Simulate several clusters instead of one machine: the processors of one, or PARTITION=PROCESSORS; repeatable.",
    ),
    "resources": (
        "--resource",
        "The machine's units of a resource besides processors, by the name of a job column: gpus=512, memory=4000000 "
        "(MB); none leaves one of the workload's machine out; repeatable.",
    ),
    "without_status": (
        "--without-status",
        "Leave out jobs of this SWF status (0 failed, 1 completed, 5 cancelled); repeatable.",
    ),
}


def with_scheduler_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Replace the parameter ``**values`` of a command by the options of a scheduler."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    generated = [_parameter(name) for name in OPTIONS]
    first = [one for one in own if one.name in ("workload", "output")]
    last = [one for one in own if one not in first]
    command.__signature__ = signature.replace(parameters=[*first, *generated, *last])  # type: ignore[attr-defined]
    command.__annotations__ |= {one.name: one.annotation for one in generated}
    return command


def _parameter(name: str) -> inspect.Parameter:
    option = OPTIONS[name]
    default, info = option.default, Option(help=help_of(name))
    if name in _REPEATED:
        flag, text = _REPEATED[name]
        default, info = None, Option(flag, help=text)
    is_numbers = option.each is not None and option.each.kind == "integer" and option.kind == "list"
    kind: Any = list[int] if is_numbers else _TYPES.get(option.kind, str)
    kind = kind | None if default is None else kind
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, place, default=default, annotation=Annotated[kind, info])


def scheduler_options(values: Unchecked) -> Unchecked:
    """Return the options of a scheduler from the values of the command line."""
    return {name: _value(name, values.get(name)) for name in OPTIONS}


def given_options(values: Unchecked) -> list[str]:
    """Return the flags of the options that have another value than their default."""
    return [_flag(name) for name in OPTIONS if values.get(name) != _parameter(name).default]


def _flag(name: str) -> str:
    return _REPEATED[name][0] if name in _REPEATED else f"--{name.replace('_', '-')}"


def _value(name: str, value: Any) -> Any:
    flag = _flag(name)
    match OPTIONS[name].kind:
        case "list":
            parsers: dict[str, Callable[[Any], Any]]
            parsers = {"unavailable": _window, "clusters": _cluster, "nodes": _nodes, "without_status": int}
            return tuple(map(parsers[name], value or ()))
        case "units":
            return read_units(value, "--resource") or None
        case "mapping":
            return read_object(value, flag) if value else None
        case "named" | "keys":
            return None if value is None else read_mapping(value, flag)
    return value


def _window(text: str) -> Unavailable:
    """Parse FROM/UNTIL/PROCESSORS."""
    try:
        since, until, processors = text.split("/")
        end = None if until == "never" else _moment(until)
        return {"from": _moment(since), "until": end, "processors": int(processors)}
    except ValueError:
        raise SwflowError(
            f"--unavailable: {text!r} is not FROM/UNTIL/PROCESSORS, such as 0/3600/16, 0/never/16 or "
            "1996-12-24/1996-12-27/100"
        ) from None


def _cluster(text: str) -> Unchecked:
    """Parse PROCESSORS, or PARTITION=PROCESSORS."""
    partition, equals, processors = text.rpartition("=")
    if not processors.isdecimal() or (equals and not partition):
        raise SwflowError(f"--cluster {text!r}: write a number of processors, or PARTITION=PROCESSORS")
    return {"processors": int(processors)} | ({"partition": partition} if equals else {})


def _nodes(text: str) -> Unchecked:
    """Parse COUNTxPROCESSORS, or PARTITION,…=COUNTxPROCESSORS."""
    partitions, equals, size = text.rpartition("=")
    count, _, processors = size.partition("x")
    if not (count.isdecimal() and processors.isdecimal()) or (equals and not partitions):
        raise SwflowError(f"--nodes {text!r}: write COUNTxPROCESSORS, or PARTITION,…=COUNTxPROCESSORS")
    own = {"partition": partitions.split(",")} if equals else {}
    return {"count": int(count), "processors": int(processors)} | own


def _moment(text: str) -> float | str:
    """Parse seconds, or return a day unchanged."""
    try:
        return float(text)
    except ValueError:
        return text
