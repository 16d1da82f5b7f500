"""The report: a site with one page per paper, study and log, built from the database; it opens without a network."""

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from swflow.errors import SwflowError
from swflow.figures.parts import DARK, Spec
from swflow.figures.request import all_runs
from swflow.files.atomic import write_text
from swflow.files.cache import read_cached, write_cached
from swflow.files.fingerprint import fingerprint
from swflow.files.query import connect, fetched
from swflow.files.reading import read_json
from swflow.report.answers import COLUMNS
from swflow.report.blocks import Page
from swflow.report.changes import changes_page
from swflow.report.pages import pages as pages_of
from swflow.report.plan import read_plan
from swflow.report.source import Source
from swflow.version import __version__

#: Files that the pages share.
_SITE = Path(__file__).parent / "site"
_ASSETS = {f"assets/{name}": name for name in ("report.css", "fit.js", "report.js")}

#: A text of every page.
_MARK = "swflow report</title>"


def read_figures(files: Iterable[str | os.PathLike[str]]) -> list[Spec]:
    """Read Vega-Lite specifications that ``swflow figure`` wrote; the name of a file's folder is the figure's study."""
    figures = []
    for file in map(Path, files):
        try:
            figure = json.loads(file.read_text())
            _ = figure["usermeta"]["caption"], figure["$schema"]
            figure["usermeta"]["study"] = file.absolute().parent.name
        except (OSError, ValueError, KeyError, TypeError):
            raise SwflowError(
                f"{file}: not a figure; create one with: swflow figure heatmap --log LOG -o FIGURE.json"
            ) from None
        figures.append(figure)
    return figures


#: Tables and views of the database that Snakemake's own report shows.
CSV_TABLES = ("metrics", "replicates", "reproduction")

#: Views of all runs, each after those that it reads: computed once per report, not per study.
_OF_ALL_RUNS = ("medians", "reproduction", "readings", "sensitivity", "trend_checks", "differences")


def write_report(
    database: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    figures: Sequence[Spec] = (),
    *,
    studies: str | os.PathLike[str] | None = None,
    changes: str | os.PathLike[str] | None = None,
    single_file: bool = False,
    draw: bool = True,
) -> Path:
    """
    Write a report: a folder with ``index.html``, one page per paper, study and log, and shared files; or a single file.

    The folder also contains `CSV_TABLES` as CSV, and ``headlines.csv``: the answers to the studies' titles, with the
    verdict behind each claim. Obsolete pages of a previous report are removed. Each of the ``figures``, interactive
    Vega-Lite specifications from `swflow.figures.draw`, appears on the page of its study; with ``draw``, the figures of
    each study that has none are drawn. ``studies`` is the config that assigns runs to studies; default: all runs are
    one study. ``changes``, which `swflow load --changes` wrote, become a page. Returns the page to open first.
    """
    folder = Path(folder)
    # One thread: the order of floating-point sums is then fixed, so that the report is reproducible.
    with connect(database, threads=1) as connection:
        for view in _OF_ALL_RUNS:
            connection.execute(f'CREATE TEMP TABLE "{view}" AS SELECT * FROM main."{view}"')
        plan = read_plan(studies, all_runs(connection))
        source = Source(connection, plan, figures, draw, () if single_file else _answer_pages(folder))
        pages = list(pages_of(source))
        if changes is not None:
            pages.append(changes_page(read_json(changes, "changes; write them with: swflow load --changes")))
        tables = {name: fetched(connection.execute(f"FROM {name} ORDER BY ALL")) for name in CSV_TABLES}
    site = Site(pages, plan.digest, single_file)
    if single_file:
        files = {"index.html": site.render(pages)}
    else:
        files = {f"{page.name}.html": site.render([page]) for page in pages}
        files |= {name: (_SITE / part).read_text() for name, part in _ASSETS.items()}
        files["assets/vega.js"] = _vega()
        tables["headlines"] = [*COLUMNS], source.headlines()
        files |= {f"{name}.csv": _csv(*table) for name, table in tables.items()}
    for name in sorted(files, key=lambda name: (name == "index.html", name)):
        write_text(folder / name, files[name])
    _remove_former(folder, files)
    return folder / "index.html"


def _answer_pages(folder: Path) -> list[tuple[str, str]]:
    """Return study and workload of the pages of what-ifs that the workflow wrote beside the report."""
    return [(path.parent.name, path.stem) for path in sorted((folder.parent / "whatif").glob("*/*.html"))]


def _csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def _remove_former(folder: Path, files: Iterable[str]) -> None:
    """Remove pages of a previous report that the new one lacks; other files of the folder stay."""
    kept = {folder / name for name in files}
    for path in (folder / f"{name}.html" for name in ("changes", "tables")):
        if path not in kept and path.is_file() and _MARK in path.read_text(errors="replace"):
            path.unlink()
    for part in ("papers", "studies", "logs", "assets"):
        for path in sorted((folder / part).glob("*")):
            if path.is_file() and path.suffix in {".html", ".js", ".css"} and path not in kept:
                path.unlink()


class Site:
    """Renderer of the pages as HTML, with a navigation of all pages; ``digest`` is that of the config."""

    def __init__(self, pages: Sequence[Page], digest: str | None, single_file: bool) -> None:
        import jinja2

        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_SITE), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        environment.filters["data"] = _data
        environment.filters["bound"] = _bound
        self.template = environment.get_template("page.html")
        self.single_file = single_file
        self.shared = {
            "navigation": _navigation(pages),
            "version": __version__,
            "digests": [*([("config", digest)] if digest else []), ("code", fingerprint("load"))],
            "dark": DARK,
            "single_file": single_file,
        }

    def render(self, pages: Sequence[Page]) -> str:
        """Return the HTML of a file that contains the given pages."""
        here = "" if self.single_file else "../" * pages[0].name.count("/")
        inlined = {"css": "", "scripts": []}
        if self.single_file:
            from markupsafe import Markup

            css, *own = ((_SITE / part).read_text() for part in _ASSETS.values())
            # Only this text would end the script; a bare "</" also occurs in regular expressions and must stay.
            safe = [re.sub("</(?=script)", r"<\\/", code, flags=re.IGNORECASE) for code in (_vega(), *own)]
            inlined = {"css": Markup(css), "scripts": [Markup(code) for code in safe]}

        def link(name: str) -> str:
            return f"#{slug(name)}" if self.single_file else f"{here}{name}.html"

        return self.template.render(pages=pages, here=here, link=link, slug=slug, **inlined, **self.shared)


def slug(name: str) -> str:
    """
    Return a name as an HTML identifier.

    Examples
    --------
    >>> slug("studies/heat maps")
    'studies-heat-maps'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "section"


def _navigation(pages: Sequence[Page]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the groups of the navigation: heading; and name, text and title of each page."""
    groups: dict[str, list[tuple[str, str, str]]] = {"": [], "Papers": [], "Studies": [], "Logs": [], "Data": []}
    for page in pages:
        folder, _, name = page.name.rpartition("/")
        text = name.replace("-", " ").title() if folder == "papers" else name if folder else page.title
        groups[folder.capitalize() or ("" if name == "index" else "Data")].append((page.name, text, page.title))
    return [(heading, entries) for heading, entries in groups.items() if entries]


def _data(value: Any) -> Any:
    """Return data as JSON that cannot end a script element."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _bound(text: str) -> str:
    """Replace spaces between numbers and their units by no-break spaces."""
    return re.sub(r"(?<=\d) (?=(?:d|h|min|s|%)(?![A-Za-z]))", "\u00a0", text)


def _vega() -> str:
    """Return the Vega code as a plain script, since browsers do not load modules from disk; it is bundled once."""
    name = f"{version('vl-convert-python')}.js"
    kept = read_cached("vega", name)
    if kept is not None:
        return kept[1].decode()
    import vl_convert

    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub misses the default
    script = "(() => {" + code + "})();\n"
    write_cached("vega", name, "script", script.encode())
    return script
