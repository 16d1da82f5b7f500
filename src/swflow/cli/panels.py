"""Where commands and options stand in the help: the names of the panels, in the order in which they are shown."""

import copy
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

#: The panel of a command, by the file that it stands in.
COMMANDS = {
    "project": "Begin",
    "imports": "Get logs",
    "logs": "Get logs",
    "questions": "Get logs",
    "steps": "Make workloads",
    "batches": "Make workloads",
    "simulation": "Simulate",
    "results": "Look at results",
    "comparisons": "Look at results",
}

#: The panels of a command's options; what is in none stands under "Options".
OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "simulate": {
        "Queue and backfilling": ("order", "backfill", "lookahead", "backfill_order", "event_order"),
        "Estimates": ("estimates", "prediction"),
        "Machine": ("processors", "allocation", "places", "unavailable"),
        "Jobs that share nodes": ("runtime", "penalty", "sharing_limit"),
        "Moldable jobs": ("shapes", "shape_choice", "efficiency"),
        "Several centres, partitions": ("centre", "dispatch"),
        "Users and groups": ("half_life", "user_shares", "group_shares", "priority", "limits", "feedback"),
        "A policy of your own": ("policy", "policy_options"),
    },
    "clean": {
        "Machine": ("machine_processors", "machine_nodes"),
        "What is removed": ("drop", "without_status", "flurries", "since", "until", "lenient"),
    },
    "model": {
        "Model": ("model", "arrivals", "components", "window", "repeats"),
        "Fits as files": ("fitted", "save_fit"),
    },
    "memory": {
        "Scenario": ("high", "medium", "low", "high_level", "medium_level", "low_level"),
        "Instead of a scenario": ("demands", "from_log", "file", "column"),
        "With size and run time": ("like", "fitted", "save_fit"),
    },
    "generate_lublin": {"Model": ("load", "classes", "estimates", "users")},
    "sweep": {"What is varied": ("d", "variant", "factor", "excess", "copies")},
    "figure": {
        "What is drawn": ("log", "run", "split"),
        "Sweeps": ("sweep", "measure"),
        "Reservation tables": ("since", "until"),
    },
    "sql": {"Output": ("output", "csv", "parquet", "limit")},
}


def command_panel(function: Callable[..., Any]) -> str | None:
    """Return the panel of a command, or None for the one that is shown first."""
    return COMMANDS.get(function.__module__.rpartition(".")[2])


def arranged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Put the options of a command into their panels, and return it; options that others share are copied first."""
    panels = OPTIONS.get(function.__name__, {})
    panel_of = {name: panel for panel, names in panels.items() for name in names}
    parameters = []
    signature = inspect.signature(function, eval_str=True)
    for parameter in signature.parameters.values():
        if parameter.name in panel_of and get_origin(parameter.annotation) is Annotated:
            kind, info = get_args(parameter.annotation)
            info = copy.copy(info)
            info.rich_help_panel = panel_of[parameter.name]
            function.__annotations__[parameter.name] = Annotated[kind, info]
            parameter = parameter.replace(annotation=Annotated[kind, info])
        parameters.append(parameter)
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
