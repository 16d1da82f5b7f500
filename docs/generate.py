"""Makes the pages that are not written by hand: config, commands, database, Python, gallery; mkdocs calls it."""

import contextlib
import html
import io
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parent
ROOT = DOCS.parent
#: A project made for the site, kept between builds until the code changes.
CACHE = ROOT / ".cache/docs"

sys.path.insert(0, str(DOCS))
from examples import make_project  # noqa: E402  its folder is on no path before


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and the pictures of the gallery."""
    from mkdocs.structure.files import File

    for name, content in (
        ("reference/config.md", config_page()),
        ("reference/commands.md", commands_page()),
        ("reference/database.md", database_page(project())),
        ("reference/python.md", python_page()),
    ):
        files.append(File.generated(config, name, content=content))
    pictures = gallery_pictures(project())
    for name, path in pictures.items():
        files.append(File.generated(config, f"gallery/{name}", abs_src_path=str(path)))
    files.append(File.generated(config, "gallery.md", content=gallery_page(pictures)))
    return files


def on_page_content(content: str, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw by themselves."""
    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        display = match[2].startswith("\\[")
        return convert(html.unescape(match[2][2:-2]), display="block" if display else "inline")

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, content, flags=re.DOTALL)


# --- a project to look at -----------------------------------------------------------------------------------


def project() -> Path:
    """Return a folder with the project that `swflow init` makes, its database and its figures."""
    from swflow.fingerprint import fingerprint

    folder = CACHE / f"{fingerprint('load')}-{fingerprint('figure')}"
    if not (folder / "heatmap.png").is_file():
        shutil.rmtree(CACHE, ignore_errors=True)
        folder.mkdir(parents=True)
        make_project(folder)
        from swflow.figures import draw, write

        with contextlib.redirect_stderr(io.StringIO()):
            for kind in ("bubbles", "difference", "heatmap"):
                runs = ["example/easy", "example/fcfs"]
                write(draw(kind=kind, runs=runs, database=folder / "results/swflow.duckdb"), folder / f"{kind}.png")
    return folder


# --- the config ---------------------------------------------------------------------------------------------


def config_page() -> str:
    """Write the reference of the config from its schema."""
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text(encoding="utf-8"))
    lines = [
        "# Config",
        "",
        "What `config/config.yaml` and its like may say. This page is made of `workflow/schemas/config.schema.yaml`;",
        "unknown keys are refused, and what is left out is filled in from there. Names are letters, digits, dots,",
        "dashes and underscores.",
        "",
    ]
    lines += _keys(schema, schema)
    for name, part in schema["properties"].items():
        entry = part.get("additionalProperties")
        if not isinstance(entry, dict) and "properties" not in part:
            continue
        lines += ["", f"## {name}", "", part.get("description", ""), ""]
        if isinstance(entry, dict):
            lines += ["Each name has:", ""]
        lines += _keys(entry if isinstance(entry, dict) else part, schema)
        for condition in (entry or {}).get("allOf", []) if isinstance(entry, dict) else []:
            kind = condition["if"]["properties"]["kind"]["const"]
            step = _resolved(condition["then"], schema)
            lines += ["", f"### kind: {kind}", "", step.get("description", ""), "", *_keys(step, schema)]
    return "\n".join(lines) + "\n"


def _keys(part: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> list[str]:
    """Write the keys of an object as a table, those of objects inside of it with their path."""
    rows = [] if prefix else ["| key | what it may be | by default | |", "|---|---|---|---|"]
    required = part.get("required", ())
    for name, described in part.get("properties", {}).items():
        key = _resolved(described, schema)
        default = "*required*" if name in required else _code(key["default"]) if "default" in key else ""
        text = key.get("description", "").replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{prefix}{name}` | {_kind(key, schema)} | {default} | {text} |")
        inner = _resolved(key.get("items", {}), schema) if key.get("type") == "array" else key
        if inner.get("properties") and prefix.count(".") < 2:
            rows += _keys(inner, schema, f"{prefix}{name}{'[]' if key.get('type') == 'array' else ''}.")
    return rows


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    target = schema
    for step in part["$ref"].removeprefix("#/").split("/"):
        target = target[step]
    return _resolved(target, schema) | {key: value for key, value in part.items() if key != "$ref"}


def _kind(key: dict[str, Any], schema: dict[str, Any]) -> str:
    """Say in words what a key may be."""
    key = _resolved(key, schema)
    if "const" in key:
        return _code(key["const"])
    if "enum" in key:
        return ", ".join(_code(value) for value in key["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in key:
            return " or ".join(dict.fromkeys(_kind(one, schema) for one in key[choice]))
    kinds = key.get("type", "anything")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    words = {"object": "a mapping", "string": "a text", "boolean": "true or false", "integer": "a whole number"}
    words |= {"number": "a number", "array": "a list", "null": "null", "anything": "a value"}
    text = " or ".join(words[kind] for kind in kinds)
    if "array" in kinds and "items" in key:
        text += f" of {_kind(key['items'], schema).removeprefix('a ')}"
    bounds = [f"{word} {key[name]}" for name, word in _BOUNDS.items() if name in key]
    return f"{text}, {', '.join(bounds)}" if bounds else text


_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def _code(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).strip().removesuffix("...").strip()
    return f"`{text}`"


# --- the commands -------------------------------------------------------------------------------------------


def commands_page() -> str:
    """Write the reference of the command line from the commands themselves."""
    import typer

    from swflow.cli import app

    root = typer.main.get_command(app)
    lines = ["# Commands", "", "This page is made of what `swflow COMMAND --help` shows. `swflow --install-completion`"]
    lines += ["makes the shell complete names and options.", ""]
    context = typer.Context(root, info_name="swflow")
    for name in root.list_commands(context):  # type: ignore[attr-defined]
        command = root.commands[name]  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        for title, one in {f"{name} {sub}": one for sub, one in inner.items()}.items() if inner else [(name, command)]:
            lines += _command(title, one)
    return "\n".join(lines) + "\n"


def _command(title: str, command: Any) -> list[str]:
    import inspect

    import typer

    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    lines = [f"## {title}", "", text, "", "```text", _usage(title, command), "```", ""]
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        argument = parameter.param_type_name == "argument"
        panel = getattr(parameter, "rich_help_panel", None) or ("Arguments" if argument else "Options")
        panels.setdefault(panel, []).append(parameter)
    context = typer.Context(command, info_name=title)
    for panel, parameters in sorted(panels.items(), key=lambda item: (item[0] != "Arguments", item[0] != "Options")):
        lines += [f"**{panel}**", "", "| | by default | |", "|---|---|---|"]
        for parameter in parameters:
            names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
            if parameter.param_type_name == "argument":
                names = f"`{parameter.name.upper()}`"
            default = "*required*" if parameter.required else _default(parameter.get_default(context))
            lines.append(f"| {names} | {default} | {_cell(parameter.help or '')} |")
        lines.append("")
    return lines


def _usage(title: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    words = [one.name.upper() if one.required else f"[{one.name.upper()}]" for one in arguments]
    return " ".join(["swflow", title, "[OPTIONS]", *words])


def _default(value: Any) -> str:
    if value in (None, False, (), []):
        return ""
    return f"`{'yes' if value is True else value}`"


def _cell(text: str) -> str:
    return html.escape(text.replace("\n", " "), quote=False).replace("|", "\\|").replace("*", "\\*")


# --- the database -------------------------------------------------------------------------------------------


def database_page(folder: Path) -> str:
    """Write the reference of the database from one, with the descriptions of docs/reference/database.yaml."""
    described = yaml.safe_load((DOCS / "reference/database.yaml").read_text(encoding="utf-8"))
    lines = [
        "# Database",
        "",
        "The tables and views of `results/swflow.duckdb`. Times are seconds; a run is called `workload/scheduler`;",
        "a step adds columns to `jobs`. [Twenty questions](../how-to/twenty-questions.md) shows how to ask.",
        "",
    ]
    for kind, table, columns in tables_of(folder / "results/swflow.duckdb"):
        about = described.get(table, {})
        lines += [f"## {table}", "", f"*{kind}.* {about.get('about', '')}", "", "| column | type | |", "|---|---|---|"]
        for column, type_ in columns:
            text = about.get("columns", {}).get(column) or described["everywhere"].get(column, "")
            lines.append(f"| `{column}` | {type_.lower()} | {text} |")
        lines.append("")
    return "\n".join(lines) + "\n"


def tables_of(database: Path) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the tables and views of a database, each with the names and types of its columns."""
    import duckdb

    with duckdb.connect(str(database), read_only=True) as connection:
        views = {
            name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        }
        found: dict[str, list[tuple[str, str]]] = {}
        rows = """SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal
            ORDER BY table_oid, column_index"""
        for table, column, type_ in connection.execute(rows).fetchall():
            found.setdefault(table, []).append((column, type_))
    return [("View" if table in views else "Table", table, columns) for table, columns in found.items()]


# --- Python -------------------------------------------------------------------------------------------------

#: The modules of the package, by what they are for; private ones and those of the command line are not shown.
_HIDDEN = ("swflow.cli", "swflow.compilation", "swflow.published")


def python_page() -> str:
    """Write the reference of the package from its docstrings."""
    lines = ["# Python", "", "The modules in the order of the data's way; made of their docstrings.", ""]
    stages = {
        "Reading": ("swflow.swf", "swflow.logs", "swflow.jobs", "swflow.machine", "swflow.names", "swflow.project"),
        "Workloads": ("swflow.workloads",),
        "Scheduling": ("swflow.scheduling",),
        "Analysis": ("swflow.analysis",),
        "Results": (
            "swflow.runs",
            "swflow.scaling",
            "swflow.database",
            "swflow.query",
            "swflow.figures",
            "swflow.report",
        ),
    }
    modules = list(_modules())
    for title, prefixes in stages.items():
        lines += [f"## {title}", ""]
        for module in modules:
            if any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes):
                lines += [f"::: {module}", ""]
    return "\n".join(lines) + "\n"


def _modules() -> Any:
    for path in sorted((ROOT / "src/swflow").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if path.stem != "__init__" and not path.stem.startswith("_") and not module.startswith(_HIDDEN):
            yield module


# --- the gallery --------------------------------------------------------------------------------------------


def gallery_pictures(folder: Path) -> dict[str, Path]:
    """Return the pictures of the default run if there is one, else those of the small project."""
    made = sorted((ROOT / "results/figures").rglob("*.png")) if _is_default_run() else []
    if made:
        return {f"{path.parent.name}-{path.name}": path for path in made}
    return {path.name: path for path in sorted(folder.glob("*.png"))}


def _is_default_run() -> bool:
    """Return whether results/ holds synthetic logs only: pictures of recorded logs stay out of the site."""
    from swflow.query import query

    database = ROOT / "results/swflow.duckdb"
    if not database.is_file():
        return False
    _, rows = query(database, "SELECT DISTINCT log FROM workloads")
    return all(log.startswith("synthetic-") for (log,) in rows)


_CAPTIONS = {
    "heatmap": "Jobs by the load that they experienced and what came of them, with contours and means.",
    "difference": "Where two runs differ: blue cells hold more of the first run's jobs, orange ones of the second's.",
    "bubbles": "The mean of the jobs in each tenth of the load.",
    "reservation-table": "Jobs on their processors over time; shadows where the demands exceed a node are darkened.",
    "marginals": "Run times and sizes of a log and of synthetic workloads fitted to it.",
    "repetitions": "How often run times repeat, in a log and in workloads fitted to it.",
    "moldable": "What the model of moldable jobs draws, against its stated distributions.",
}


def gallery_page(pictures: dict[str, Path]) -> str:
    """Write the gallery."""
    lines = ["# Gallery", "", "The figures of the default run (`snakemake --cores all`), or of the project of"]
    lines += ["[Five minutes](tutorials/five-minutes.md), all of synthetic logs.", ""]
    for name in pictures:
        kind = next((kind for kind in _CAPTIONS if kind in name), None)
        caption = _CAPTIONS[kind] if kind else "A sweep: metrics against the parameter that was varied."
        title = name.removesuffix(".png").replace("-", " ")
        lines += [f"## {title}", "", caption, "", f"![{title}](gallery/{name})", ""]
    return "\n".join(lines) + "\n"
