"""The applications of typer that the commands are added to."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from swflow.cli.panels import COMMANDS, arranged, command_panel


@contextlib.contextmanager
def _colons_as_they_are() -> Iterator[None]:
    """Keep rich from reading 0:100:1 as the code of an emoji."""
    from types import SimpleNamespace

    from typer import rich_utils

    module: Any = rich_utils
    before = module.Emoji
    module.Emoji = SimpleNamespace(replace=lambda text: text)
    try:
        yield
    finally:
        module.Emoji = before


class Command(TyperCommand):
    """A command whose help shows what is written."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        with _colons_as_they_are():
            super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group of commands whose help shows what is written, and the panels in the order of the data's way."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, panel by panel."""
        names = super().list_commands(ctx)
        panels = list(dict.fromkeys(COMMANDS.values()))

        def place(name: str) -> int:
            panel = getattr(self.get_command(ctx, name), "rich_help_panel", None)
            return panels.index(panel) if panel in panels else len(panels)

        return sorted(names, key=place)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        with _colons_as_they_are():
            super().format_help(ctx, formatter)


class Application(typer.Typer):
    """An application whose commands stand in panels, and so do their options."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Add a function as a command."""

        def add(function: Any) -> Any:
            settings.setdefault("cls", Command)
            settings.setdefault("rich_help_panel", command_panel(function))
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
generate_app = Application(cls=Group, help="Generate a synthetic log by a model.", no_args_is_help=True)
app.add_typer(generate_app, name="generate", rich_help_panel="Get logs")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"swflow {version('swflow')}")
        raise typer.Exit


@app.callback()
def _swflow(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF)."""
