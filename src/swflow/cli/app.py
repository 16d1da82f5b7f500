"""The typer applications to which the commands are added."""

import importlib
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from swflow.cli.panels import COMMANDS, arranged, command_panel, described, position
from swflow.version import __version__


class Group(TyperGroup):
    """A group of commands whose help lists the commands in the order of the panels."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, panel by panel."""
        return sorted(super().list_commands(ctx), key=position)


class Application(typer.Typer):
    """An application that sorts commands and options into panels and completes their values."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a function as a command."""

        def add(function: Any) -> Any:
            settings.setdefault("rich_help_panel", command_panel(name or function.__name__))
            settings.setdefault("help", described(function)[0])
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


def application(command: str = "") -> Application:
    """Return the application with one command, for which the process starts sooner, or with all commands."""
    module_of = {name: module for modules in COMMANDS.values() for name, module in modules.items()}
    for module in [module_of[command]] if command in module_of else sorted(set(module_of.values())):
        importlib.import_module(f"swflow.cli.{module}")  # adds its commands
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"swflow {__version__}")
        raise typer.Exit


@app.callback()
def _swflow(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF)."""
