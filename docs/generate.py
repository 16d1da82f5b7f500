"""Generate the pages config, commands, database, Python and gallery (a hook of mkdocs)."""

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
#: The project behind the generated pages; rebuilt when the code changes.
CACHE = ROOT / ".cache/docs"

sys.path.insert(0, str(DOCS))
from examples import make_project  # noqa: E402  its folder is on no path before

from papers import CLAIMS, COVERAGE, DEFINITIONS, DRAWN, FIGURES, OPEN, read  # noqa: E402

#: Former addresses of pages, and their present ones.
MOVED = {
    "what-if": "how-to/what-if",
    "how-to/add-a-log": "how-to/import-a-log",
    "how-to/describe-a-scheduler": "reference/schedulers",
    "how-to/explore": "how-to/twenty-questions",
    "how-to/repeat-random-draws": "how-to/design-an-evaluation",
    "explanation/conventions": "reference/conventions",
    "explanation/formulas": "reference/formulas",
    "explanation/how-a-schedule-is-made": "developers/how-a-schedule-is-made",
    "explanation/speed": "developers/speed",
    "explanation/papers": "papers/index",
    "reference/claims": "papers/evidence",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages and the pictures of the gallery."""
    from mkdocs.structure.files import File

    for name, content in (
        ("reference/config.md", config_page()),
        ("reference/commands.md", commands_page()),
        ("reference/database.md", database_page(project())),
        ("reference/api.md", api_page()),
        ("reference/python.md", python_page()),
        ("papers/evidence.md", evidence_page()),
        *((f"papers/{name}.svg", svg) for name, svg in charts().items()),
    ):
        files.append(File.generated(config, name, content=content))
    pictures = gallery_pictures(project())
    for name, path in pictures.items():
        files.append(File.generated(config, f"gallery/{name}", abs_src_path=str(path)))
    files.append(File.generated(config, "gallery.md", content=gallery_page(pictures)))
    return files


def on_post_build(config: Any) -> None:
    """Write a page at each former address that leads to the present one."""
    for old, new in MOVED.items():
        path = Path(config["site_dir"]) / f"{old}.html"
        target = f"{'../' * old.count('/')}{new}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Moved</title><link rel="canonical" href="{target}">'
            f'<meta http-equiv="refresh" content="0; url={target}"><a href="{target}">This page has moved.</a>\n',
            encoding="utf-8",
        )


def on_page_content(content: str, **_: Any) -> str:
    """Convert formulas to MathML, which browsers draw without JavaScript."""
    from latex2mathml.converter import convert

    def formula(match: re.Match[str]) -> str:
        display = match[2].startswith("\\[")
        return convert(html.unescape(match[2][2:-2]), display="block" if display else "inline")

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, content, flags=re.DOTALL)


# --- the example project ------------------------------------------------------------------------------------


def project() -> Path:
    """Return the folder with the project of `swflow init`, its database and its figures."""
    from swflow.files.fingerprint import fingerprint

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
    """Return the reference of the config, generated from its schema."""
    schema = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text(encoding="utf-8"))
    lines = [
        "# Config",
        "",
        "The keys of `config/config.yaml` and other configs, generated from `workflow/schemas/config.schema.yaml`.",
        "Unknown keys are rejected. Omitted keys have the default shown. Names consist of letters, digits, dots,",
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
            lines += ["Keys of each entry:", ""]
        lines += _keys(entry if isinstance(entry, dict) else part, schema)
        for condition in (entry or {}).get("allOf", []) if isinstance(entry, dict) else []:
            kind = condition["if"]["properties"]["kind"]["const"]
            step = _resolved(condition["then"], schema)
            lines += ["", f"### kind: {kind}", "", step.get("description", ""), "", *_keys(step, schema)]
    return "\n".join(lines) + "\n"


def _keys(part: dict[str, Any], schema: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the keys of an object as a table; nested keys have their path."""
    rows = [] if prefix else ["| key | value | default | description |", "|---|---|---|---|"]
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
    """Return a description of the values of a key."""
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
    words = {"object": "a mapping", "string": "text", "boolean": "true or false", "integer": "an integer"}
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
    """Return the reference of the command line, generated from the commands."""
    import typer

    from swflow.cli import application

    root = typer.main.get_command(application())
    lines = ["# Commands", "", "This page is generated from `swflow COMMAND --help`. To enable shell completion, run"]
    lines += ["`swflow --install-completion`.", ""]
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
        lines += [f"**{panel}**", "", "| option | default | description |", "|---|---|---|"]
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


#: How the tables are joined, and the units that most columns have.
SKETCH = """## How the tables belong together

```text
workloads ──┬── jobs            workload, job_id
            └── runs ──┬── outcomes, wait_reasons                                   run, job_id
schedulers ────────────├── metrics, heatmaps, bubbles, correlations, fairness       run
                       ├── comparisons, differences                                 variant and base are runs
                       └── replicates                                               recipe, scheduler
studies of the config ──── comparisons, whatifs                                     study
published ──── reproduction ──── metrics                                            workload, scheduler
```

Columns of the same name join two tables, for example `JOIN outcomes USING (run)`.

## Units

| columns | unit |
|---|---|
| times, waits, AWRT, AWWT, parts of waits | seconds; moments count from the start of the log |
| `squashed_area`, work | processor-seconds |
| `used_memory`, `requested_memory` | KB per processor |
| `memory_bandwidth` | MB/s per process |
| slowdowns, scores, correlations, Jain's index, Gini coefficient | without a unit |
| utilization, load, shares | parts of 1; columns with `percent` in their name: percent |
"""


def database_page(folder: Path) -> str:
    """Return the reference of the database, with the descriptions in docs/reference/database.yaml."""
    described = yaml.safe_load((DOCS / "reference/database.yaml").read_text(encoding="utf-8"))
    lines = [
        "# Database",
        "",
        "Tables and views of `results/swflow.duckdb`. Times are in seconds. The name of a run is `workload/scheduler`.",
        "Steps add columns to `jobs`. [Twenty questions](../how-to/twenty-questions.md) has example queries.",
        "",
        SKETCH,
    ]
    for kind, table, columns in tables_of(folder / "results/swflow.duckdb"):
        about = described.get(table, {})
        lines += [
            f"## {table}",
            "",
            f"*{kind}.* {about.get('about', '')}",
            "",
            "| column | type | description |",
            "|---|---|---|",
        ]
        for column, type_ in columns:
            text = about.get("columns", {}).get(column) or described["everywhere"].get(column, "")
            lines.append(f"| `{column}` | {type_.lower()} | {text} |")
        lines.append("")
    return "\n".join(lines) + "\n"


def tables_of(database: Path) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return the tables and views of a database with the names and types of their columns."""
    from swflow.files.query import open_database

    with open_database(database, read_only=True) as connection:
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

#: Modules that the Python reference omits.
_HIDDEN = ("swflow.cli", "swflow.compiled.cache", "swflow.papers")


def api_page() -> str:
    """Write the reference of the public interface from its docstrings."""
    import swflow

    order = (
        "read_log read_swf import_sacct Site clean open_workload generate Machine Workload Scheduler simulate metrics "
        "whatif why load query draw"
    )
    names = sorted(swflow.__all__, key=order.split().index)
    lines = ["# Python interface", "", "These names are the public interface: `import swflow` offers all of them.", ""]
    for name in names:
        lines += [
            f"## swflow.{name}",
            "",
            f"::: {swflow.HOMES[name].replace(':', '.')}",
            "    options: {show_root_heading: false}",
            "",
        ]
    return "\n".join(lines) + "\n"


def python_page() -> str:
    """Return the reference of the package, generated from its docstrings."""
    import swflow

    lines = ["# Python", "", "Modules in the order of the data flow, generated from their docstrings.", ""]
    stages = {
        "Reading": (
            "swflow.log.swf",
            "swflow.log.catalogue",
            "swflow.log.fetch",
            "swflow.jobs.table",
            "swflow.jobs.machine",
            "swflow.names",
            "swflow.studies.project",
        ),
        "Workloads": ("swflow.workload",),
        "Scheduling": ("swflow.scheduling",),
        "Analysis": ("swflow.analysis",),
        "Results": (
            "swflow.studies.runs",
            "swflow.studies.sweeps",
            "swflow.database.load",
            "swflow.files.query",
            "swflow.figures",
            "swflow.report",
        ),
    }
    modules = list(_modules())
    for title, prefixes in stages.items():
        lines += [f"## {title}", ""]
        for module in modules:
            if any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes):
                own = [name.partition(":")[2] for name in swflow.HOMES.values() if name.partition(":")[0] == module]
                # The public names are on their own page: an object has one address.
                hidden = ", ".join(['"!^_"', *(f'"!^{name}$"' for name in own)])
                lines += [f"::: {module}", *([f"    options: {{filters: [{hidden}]}}"] if own else []), ""]
    return "\n".join(lines) + "\n"


def _modules() -> Any:
    for path in sorted((ROOT / "src/swflow").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if path.stem != "__init__" and not path.stem.startswith("_") and not module.startswith(_HIDDEN):
            yield module


# --- the papers ---------------------------------------------------------------------------------------------


def evidence_page() -> str:
    """Return the page with the comparison of all published values and claims, from the tables in docs/papers."""
    lines = [
        "# Evidence: published values and claims",
        "",
        "This page counts how many published values swflow reproduces, lists those that stay unexplained, and gives",
        "a verdict on each claim. It is generated from a run of `config/archive.yaml`, whose report has",
        "every value.",
        "[Reproductions](index.md) explains the verdicts.",
        "",
        "## Coverage",
        "",
    ]
    coverage = read(COVERAGE)
    lines += [*_table(coverage), "", "## Open values", "", *_table(read(OPEN)), "", "## Values inside the draws", ""]
    lines += ["A single published draw that one more draw of swflow would contain; the distance is in brackets.", ""]
    lines += [*_table(read(DRAWN)), "", "## Definitions", ""]
    lines += ["What each column of the published tables says, and the figure of swflow that is compared with it.", ""]
    lines += [*_table(read(DEFINITIONS)), "", "## Claims", ""]
    claims = read(CLAIMS)
    for paper in dict.fromkeys(row["paper"] for row in claims):
        own = [{name: cell for name, cell in row.items() if name != "paper"} for row in claims if row["paper"] == paper]
        lines += [f"### {paper}", "", *_table(own), ""]
    return "\n".join(lines) + "\n"


def _table(rows: list[dict[str, str]]) -> list[str]:
    heading = [name.replace("_", " ") for name in rows[0]]
    cells = [[_cell(cell) for cell in row.values()] for row in rows]
    return [f"| {' | '.join(line)} |" for line in [heading, ["---"] * len(heading), *cells]]


#: The title of each chart: what the horizontal axis shows. Those of `LOGARITHMIC` have a logarithmic one.
CHARTS = {
    "krakov-cancelled": "rank correlation of load and slowdown",
    "krakov-loads": "jobs that experience a recorded load above 1 (%)",
    "ernemann-kth": "AWRT of KTH under FCFS (s), by table and row of the paper",
    "ernemann-sdsc00": "AWRT of SDSC00 under FCFS (s), by table and row of the paper",
    "guim-penalty": "penalized run time (%)",
    "guim-kills": "killed jobs",
    "cirne-single": "jobs with a single shape (%)",
    "cirne-responses": "mean response time under EASY (s)",
    "minh-repetitions": "distance of the lengths of repetitions from the log's",
    "minh-waits": "mean wait under EASY (h)",
}
LOGARITHMIC = ("krakov-loads", "ernemann-kth", "ernemann-sdsc00", "minh-waits")


def charts() -> dict[str, str]:
    """Return the charts of the papers' pages as SVG, drawn from docs/papers/figures.csv."""
    import altair as alt
    import polars as pl
    import vl_convert

    table = pl.read_csv(FIGURES, schema_overrides={"value": pl.Float64, "low": pl.Float64, "high": pl.Float64})
    found = {}
    for name, title in CHARTS.items():
        rows = table.filter(figure=name).with_columns(pl.col("panel", "series").fill_null(""))
        series, panels = rows["series"].unique(maintain_order=True), rows["panel"].unique(maintain_order=True)
        scale = alt.Scale(type="log", nice=False) if name in LOGARITHMIC else alt.Scale(zero=False)
        points = alt.Chart(rows).encode(
            y=alt.Y("row:N", sort=rows["row"].unique(maintain_order=True).to_list(), title=None),
            yOffset=alt.YOffset("series:N", sort=series.to_list()),
            color=alt.Color(
                "series:N",
                sort=series.to_list(),
                scale=alt.Scale(scheme="tableau10"),
                legend=alt.Legend(title=None, orient="top", columns=2, labelLimit=400) if len(series) > 1 else None,
            ),
        )
        layers = points.mark_rule().encode(x=alt.X("low:Q", scale=scale), x2="high:Q").transform_filter(
            "isValid(datum.low)"
        ) + points.mark_point(filled=True, size=50).encode(x=alt.X("value:Q", scale=scale, title=title))
        chart = layers.properties(width=560 if len(panels) == 1 else 250)
        if len(panels) > 1:
            chart = chart.facet(facet=alt.Facet("panel:N", sort=panels.to_list(), title=None), columns=2)
        found[name] = vl_convert.vegalite_to_svg(chart.to_dict())
    return found


# --- the gallery --------------------------------------------------------------------------------------------


def gallery_pictures(folder: Path) -> dict[str, Path]:
    """Return the pictures of the default run if it exists, else those of the example project."""
    made = sorted((ROOT / "results/figures").rglob("*.png")) if _is_default_run() else []
    if made:
        return {f"{path.parent.name}-{path.name}": path for path in made}
    return {path.name: path for path in sorted(folder.glob("*.png"))}


def _is_default_run() -> bool:
    """Return whether results/ contains synthetic logs only; the site shows no pictures of recorded logs."""
    from swflow.files.query import query

    database = ROOT / "results/swflow.duckdb"
    if not database.is_file():
        return False
    _, rows = query(database, "SELECT DISTINCT log FROM workloads")
    return all(log.startswith("synthetic-") for (log,) in rows)


#: Kind of figure (the end of its file's name) to title and caption.
_CAPTIONS = {
    "heatmap": (
        "Heatmap of load and performance",
        "Number of jobs by the load during their stay and their outcome, with contours and means.",
    ),
    "difference": (
        "Difference of two heatmaps",
        "Blue cells contain more jobs of the first run, orange cells more of the second.",
    ),
    "bubbles": (
        "Mean performance by load",
        "Mean over the jobs in each tenth of the load. The area is the number of jobs.",
    ),
    "reservation-table": (
        "Jobs on processors over time",
        "Rectangles are jobs. Dark areas are intervals in which the demands on a node exceed its capacity.",
    ),
    "marginals": (
        "Distributions of a log and of fitted models",
        "Run times and sizes of a log and of the synthetic workloads fitted to it.",
    ),
    "repetitions": ("Repeated run times", "Lengths of repetitions in a log and in the workloads fitted to it."),
    "moldable": ("Model of moldable jobs", "Distributions of the drawn jobs and of the published model."),
}
_SWEEP = ("Sweep of a scaling parameter", "Metrics against the varied parameter: means over draws with 95 % intervals.")


def gallery_page(pictures: dict[str, Path]) -> str:
    """Return the gallery page: a title, a caption and a picture per figure."""
    lines = ["# Gallery", "", "Figures of the default run (`snakemake --cores all`) or of the project in"]
    lines += ["[Five minutes](tutorials/five-minutes.md). All logs are synthetic.", ""]
    for name in pictures:
        title, caption = caption_of(name)
        lines += [f"## {title}", "", f"{caption} File: `{name}`.", "", f"![{title}](gallery/{name})", ""]
    return "\n".join(lines) + "\n"


def caption_of(name: str) -> tuple[str, str]:
    """Return the title and the caption of a figure by the last part of its file name: the study can have any name."""
    stem = name.removesuffix(".png")
    return next((text for kind, text in _CAPTIONS.items() if stem.endswith(kind)), _SWEEP)
