"""The applications of typer that the commands are added to."""

import typer

app = typer.Typer(
    name="swflow",
    help="Evaluate parallel job schedulers on logs in the Standard Workload Format (SWF).",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
generate_app = typer.Typer(help="Generate a synthetic log by a model.", no_args_is_help=True)
app.add_typer(generate_app, name="generate")
