"""The panels of the help, in the order in which they are shown, and the completion of values by the shell."""

import copy
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_args, get_origin

from typer import Argument, Context, Option

from swflow.scheduling.named import KNOWN
from swflow.scheduling.options import OPTIONS as SCHEDULER_OPTIONS
from swflow.scheduling.options import ORDERS

#: The panels of the commands, with the module of each command; groups are listed by their own names.
COMMANDS: dict[str, dict[str, str]] = {
    "Start a project": {"init": "project"},
    "Get logs": {"fetch": "logs", "import": "imports", "generate": "logs", "clean": "logs"},
    "Answer questions": {
        "check": "questions",
        "fidelity": "questions",
        "calibrate": "questions",
        "whatif": "questions",
        "why": "waits",
        "forecast": "forecast",
        "power": "questions",
    },
    "Make workloads": dict.fromkeys(
        ("select", "machine", "memory", "moldable", "model", "scale", "intensify"), "steps"
    ),
    "Simulate": dict.fromkeys(("simulate", "sweep", "adjust"), "simulation"),
    "Use results": {"load": "results", "sql": "results", "figure": "results", "report": "results", "export": "imports"},
    "Judge schedules and simulators": {"bound": "judging", "conformance": "judging"},
    "Called by the workflow": {"reach": "batches", "replicate": "batches", "prune": "batches", "figures": "results"},
}

#: The panels of a command's options; the others are listed under "Options".
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "simulate": {
        "Queue and backfilling": (
            "order",
            "backfill",
            "reservations",
            "scheduler_parameters",
            "backfill_order",
            "backfill_starts",
            "event_order",
        ),
        "Estimates": ("estimates", "prediction"),
        "Machine": ("processors", "resources", "nodes", "preemption", "allocation", "places", "unavailable"),
        "Jobs that share nodes": ("runtime", "penalty", "sharing_limit"),
        "Moldable jobs": ("shapes", "shape_choice", "efficiency"),
        "Clusters and partitions": ("clusters", "dispatch"),
        "Users and groups": ("half_life", "user_shares", "group_shares", "priority", "limits", "accounts", "feedback"),
        "Policies in Python": ("policy", "policy_options"),
        "Jobs in the metrics": ("without_status", "warm_up", "cool_down"),
        "Called by the workflow": ("plan", "store"),
    },
    "clean": {
        "Machine": ("machine_processors", "machine_nodes"),
        "Removed jobs": ("drop", "without_status", "flurries", "since", "until", "lenient"),
        "Kept and added columns": ("dependencies", "resource"),
    },
    "model": {
        "Model": ("model", "arrivals", "components", "window", "repeats"),
        "Fitted models as files": ("fitted", "save_fit"),
    },
    "memory": {
        "Scenario": ("high", "medium", "low", "high_level", "medium_level", "low_level"),
        "Instead of a scenario": ("demands", "from_log", "file", "column"),
        "Depending on size and run time": ("like", "fitted", "save_fit"),
    },
    "generate_lublin": {"Model": ("load", "classes", "estimates", "users")},
    "sweep": {"Varied parameters": ("d", "variant", "factor", "excess", "copies")},
    "figure": {
        "Runs and jobs": ("log", "run", "split"),
        "Sweeps": ("sweep", "measure"),
        "Reservation tables": ("since", "until"),
    },
    "forecast": {
        "The job": ("processors", "time_limit", "partition", "user"),
        "The moment": ("at", "queue", "machine"),
        "Method": ("method", "scheduler"),
        "Evaluation": ("evaluate", "weeks", "study"),
    },
    "sql": {"Output": ("output", "csv", "parquet", "limit")},
}


def _values_of(module: str, name: str, *more: str) -> Callable[[], Iterable[str]]:
    """Return a function that imports the values of a module when the shell completes them."""
    return lambda: (*getattr(importlib.import_module(module), name), *more)


def _logs() -> Iterable[str]:
    from swflow.log.catalogue import default_catalogue, load_catalogue

    return load_catalogue(default_catalogue())


#: Values that the shell completes, by parameter, or by function and parameter; a function imports them when needed.
VALUES: dict[str, Iterable[str] | Callable[[], Iterable[str]]] = {
    **{name: tuple(option.choices) for name, option in SCHEDULER_OPTIONS.items() if option.choices},
    "order": tuple(ORDERS),
    "backfill_order": tuple(ORDERS),
    "scheduler": tuple(KNOWN),
    "figure.kind": _values_of("swflow.figures", "KINDS", "sweep", "forest"),
    "figure.scale": ("log", "linear"),
    "sql.query": _values_of("swflow.database.schema", "TABLES", "jobs", "outcomes"),
    "fetch.log": _logs,
    "clean.drop": _values_of("swflow.log.settings", "RULES", "none"),
    "model.model": _values_of("swflow.workload.steps.model", "MODELS"),
    "model.arrivals": ("log", "daily-cycle"),
    "model.repeats": ("fitted", "at-least-two", "printed"),
    "scale.variant": ("integer", "precise-size", "precise"),
    "sweep.variant": ("integer", "precise-size", "precise"),
    "intensify.by": ("arrivals", "run-times", "sizes"),
    "machine.preset": ("alvio-node",),
    "memory.from_log": ("used", "requested"),
    "generate_lublin.classes": ("batch-and-interactive", "combined"),
    "generate_lublin.estimates": ("tsafrir", "exact"),
    "forecast.method": ("past", "simulation", "best"),
    "whatif.estimates": ("perfect",),
    "why.by": _values_of("swflow.studies.why", "GROUPS"),
    "export.estimates": ("raise", "kill"),
}


def command_panel(name: str) -> str | None:
    """Return the panel of a command or group, or None for an unknown one."""
    return next((panel for panel, names in COMMANDS.items() if name in names), None)


def position(name: str) -> int:
    """Return the position of a command in the help."""
    names = [name for names in COMMANDS.values() for name in names]
    return names.index(name) if name in names else len(names)


def completed_values(command: str, parameter: str) -> list[str]:
    """
    Return the values that the shell completes for a parameter; none for a parameter that takes other values.

    Examples
    --------
    >>> completed_values("simulate", "runtime")
    ['trace', 'shared']
    """
    values = VALUES.get(f"{command}.{parameter}", VALUES.get(parameter, ()))
    return list(values() if callable(values) else values)


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the help of a command, and of its options: ``name: text`` below the heading Options of the docstring."""
    text, _, options = (inspect.getdoc(function) or "").partition("\n\nOptions\n-------\n")
    entries = (entry.partition(": ") for entry in re.split(r"\n(?=\w)", options) if entry)
    return text, {name: " ".join(help.split()) for name, _, help in entries}


def arranged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Set the help, the panel and the completed values of a command's options, and return the command."""
    panel_of = {name: panel for panel, names in OPTIONS.get(function.__name__, {}).items() for name in names}
    help_of = described(function)[1]
    parameters = []
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        name, kind = parameter.name, parameter.annotation
        completes = f"{function.__name__}.{name}" in VALUES or name in VALUES
        info = Argument() if parameter.default is parameter.empty else Option()
        if get_origin(kind) is Annotated:
            kind, info = get_args(kind)
            info = copy.copy(info)  # commands share the definitions of some options
        if kind is not Context:
            info.help = info.help or help_of[name]
            info.rich_help_panel = panel_of.get(name)
            if completes:
                info.autocompletion = _completer(function.__name__, name)
            kind = function.__annotations__[name] = Annotated[kind, info]
        parameters.append(parameter.replace(annotation=kind))
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


def _completer(command: str, parameter: str) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [value for value in completed_values(command, parameter) if value.startswith(incomplete)]

    return complete
