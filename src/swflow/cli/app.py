"""The typer applications to which the commands are added."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from swflow.cli.panels import arranged, command_panel, position


class _Coercion:
    """
    The conversion of a parameter's values, without pydantic if the value is plain.

    Typer builds a pydantic schema for every parameter of a command, also for options that are not given. Importing
    pydantic and building 40 schemas takes 0.1 s. Values that are not plain are converted, or rejected, by typer.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the converted value."""
        kind, several = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if get_origin(kind) is list and isinstance(value, list | tuple):
            plain = [_plain_value(one, get_args(kind)[0], param) for one in value]
        else:
            plain = [_plain_value(value, kind, param)]
        if all(one is not None for one in plain):
            return plain if get_origin(kind) is list else plain[0]
        param._runtime_param = None  # typer's own, which is built on demand
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _plain_value(value: Any, kind: Any, param: Any) -> Any:
    """Return the value of a plain text or default; None if only typer can convert it."""
    info = param.type_descriptor.parameter_info
    special = ("parser", "min", "max", "exists", "writable", "resolve_path", "allow_dash", "path_type")
    if any(getattr(info, name, None) not in (None, False) for name in special):
        return None
    if kind in (str, int, float, bool) and type(value) is kind:
        return value
    if kind is Path and isinstance(value, str | Path):
        return Path(value) if os.access(value, os.R_OK) or not os.path.lexists(value) else None
    if kind is int and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    return float(value) if kind is float and isinstance(value, str) and _DECIMAL.fullmatch(value) else None


_INTEGER, _DECIMAL = re.compile(r"-?[0-9]{1,18}"), re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


class _Plain:
    """A command or group that converts plain values itself and whose help keeps colons as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, with our conversion of values as long as typer has the attribute for its own."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "_runtime_param", parameter) is None:
                parameter._runtime_param = _Coercion()
        return parameters

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; keep rich from replacing a text such as 0:100:1 by an emoji."""
        from types import SimpleNamespace

        from typer import rich_utils

        module: Any = rich_utils
        before, module.Emoji = module.Emoji, SimpleNamespace(replace=lambda text: text)
        try:
            super().format_help(ctx, formatter)  # type: ignore[misc]
        finally:
            module.Emoji = before


class Command(_Plain, TyperCommand):
    """A command."""


class Group(_Plain, TyperGroup):
    """A group of commands whose help lists the commands in the order of the panels."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, panel by panel."""
        return sorted(super().list_commands(ctx), key=position)


class Application(typer.Typer):
    """An application that sorts commands and options into panels and completes their values."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a function as a command."""

        def add(function: Any) -> Any:
            settings.setdefault("cls", Command)
            settings.setdefault("rich_help_panel", command_panel(name or function.__name__))
            typer.Typer.command(self, name, **settings)(arranged(function))
            return function

        return add


app = Application(
    name="swflow",
    cls=Group,
    help="Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF).",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
generate_app = Application(cls=Group, help="Generate a synthetic log with a model.", no_args_is_help=True)
app.add_typer(generate_app, name="generate", rich_help_panel=command_panel("generate"))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"swflow {version('swflow')}")
        raise typer.Exit


@app.callback()
def _swflow(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF)."""
