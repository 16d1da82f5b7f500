"""The report: a site made from the database, a page per study and per log, that opens from disk without a network."""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swflow import __version__
from swflow.charts.parts import DARK
from swflow.errors import SwflowError
from swflow.files import atomic_path
from swflow.fingerprint import fingerprint
from swflow.query import connect
from swflow.report.pages import Book, Page
from swflow.report.plan import read_plan

#: What the pages share, and the folders that hold pages.
_SITE = Path(__file__).parent / "site"
_ASSETS = {
    "assets/report.css": ("vendor/tabulator.min.css", "report.css"),
    "assets/tabulator.js": ("vendor/tabulator.min.js",),
    "assets/report.js": ("report.js",),
}
_FOLDERS = ("studies", "logs", "assets")


def read_figures(files: Iterable[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """
    Read figures for the report.

    Parameters
    ----------
    files : iterable of path-like
        Vega-Lite specifications that ``swflow figure`` wrote. The folder of one names the study that it belongs to.

    Returns
    -------
    list of dict
        The specifications, with the ``study`` under ``usermeta``.

    Raises
    ------
    SwflowError
        If a file is missing or is no such specification.
    """
    figures = []
    for file in map(Path, files):
        try:
            figure = json.loads(file.read_text())
            _ = figure["usermeta"]["caption"], figure["$schema"]
            figure["usermeta"]["study"] = file.absolute().parent.name
        except (OSError, ValueError, KeyError, TypeError):
            raise SwflowError(
                f"{file}: not a figure; make one with: swflow figure heatmap --log LOG -o {file}"
            ) from None
        figures.append(figure)
    return figures


#: Views that are made of the metrics of all runs: computed once for a report, and not once for every study.
_OF_ALL_RUNS = ("reproduction", "readings", "sensitivity", "trend_checks")


def write_report(
    database: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    figures: Sequence[Mapping[str, Any]] = (),
    *,
    studies: str | os.PathLike[str] | None = None,
    single_file: bool = False,
    draw: bool = True,
) -> Path:
    """
    Write a report: a folder with ``index.html``, a page per study and per log, and what they share; or one file.

    Parameters
    ----------
    database : path-like
        A database that `swflow.database.load` wrote.
    folder : path-like
        Where to write; made if need be. Pages of former reports that are no more are removed.
    figures : sequence of mapping
        Vega-Lite specifications as `swflow.figures.draw` returns them, interactive; each on the page of its study.
    studies : path-like, optional
        The config that says which runs belong to which study; without one all runs are one study.
    single_file : bool
        Write everything into ``index.html``, to be mailed.
    draw : bool
        Draw the figures that a study asks for if none is given.

    Returns
    -------
    pathlib.Path
        The page to open first.

    Raises
    ------
    SwflowError
        If there is no such database, or ``studies`` is no config.
    """
    folder = Path(folder)
    # One thread: sums of floating-point numbers then have one order, and the same database the same bytes.
    with connect(database, threads=1) as connection:
        for view in _OF_ALL_RUNS:
            connection.execute(f'CREATE TEMP TABLE "{view}" AS SELECT * FROM main."{view}"')
        rows = connection.execute("SELECT run, workload, scheduler FROM runs ORDER BY run").fetchall()
        runs = [dict(zip(("run", "workload", "scheduler"), row, strict=True)) for row in rows]
        plan = read_plan(studies, runs)
        pages = list(Book(connection, plan, figures, draw).pages())
    site = Site(pages, plan.digest, single_file)
    if single_file:
        files = {"index.html": site.render(pages)}
    else:
        files = {f"{page.name}.html": site.render([page]) for page in pages}
        files |= {name: "\n".join((_SITE / part).read_text() for part in parts) for name, parts in _ASSETS.items()}
        files["assets/vega.js"] = _vega()
    for name in sorted(files, key=lambda name: (name == "index.html", name)):
        with atomic_path(folder / name) as temporary:
            temporary.write_text(files[name], encoding="utf-8")
    _remove_former(folder, files)
    return folder / "index.html"


def _remove_former(folder: Path, files: Iterable[str]) -> None:
    """Remove pages of a former report that this one does not have."""
    kept = {folder / name for name in files}
    for part in _FOLDERS:
        for path in sorted((folder / part).glob("*")):
            if path.is_file() and path.suffix in {".html", ".js", ".css"} and path not in kept:
                path.unlink()


class Site:
    """
    The pages as HTML.

    Parameters
    ----------
    pages : sequence of Page
        All of them, for the navigation.
    digest : str or None
        Of the config.
    single_file : bool
        Whether all pages stand in one file.
    """

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
            "digests": [("config", digest)] * bool(digest) + [("code", fingerprint("load")), ],
            "dark": DARK,
            "single_file": single_file,
        }  # fmt: skip

    def render(self, pages: Sequence[Page]) -> str:
        """Return the HTML of a file with some pages."""
        here = "" if self.single_file else "../" * pages[0].name.count("/")
        inlined = {"css": "", "scripts": []}
        if self.single_file:
            from markupsafe import Markup

            css, *scripts = ("\n".join((_SITE / part).read_text() for part in parts) for parts in _ASSETS.values())
            # The only thing that would end the script; a bare "</" also occurs as a regular expression, and must stay.
            safe = [re.sub("</(?=script)", r"<\\/", code, flags=re.IGNORECASE) for code in (_vega(), *scripts)]
            inlined = {"css": Markup(css), "scripts": [Markup(code) for code in safe]}

        def link(name: str) -> str:
            return f"#{slug(name)}" if self.single_file else f"{here}{name}.html"

        return self.template.render(pages=pages, here=here, link=link, slug=slug, **inlined, **self.shared)


def slug(name: str) -> str:
    """
    Return a name as an identifier of HTML.

    Examples
    --------
    >>> slug("studies/heat maps")
    'studies-heat-maps'
    """
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "section"


def _navigation(pages: Sequence[Page]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the groups of the navigation: heading, and name, words and title of each page."""
    groups: dict[str, list[tuple[str, str, str]]] = {"": [], "Studies": [], "Logs": [], "Data": []}
    for page in pages:
        folder, _, name = page.name.rpartition("/")
        group = {"studies": "Studies", "logs": "Logs"}.get(folder, "" if name == "index" else "Data")
        groups[group].append((page.name, name if folder else page.title, page.title))
    return [(heading, entries) for heading, entries in groups.items() if entries]


def _data(value: Any) -> Any:
    """Write data so that no script can end in it."""
    from markupsafe import Markup

    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _bound(text: str) -> str:
    """Keep numbers and their units on one line."""
    return re.sub(r"(?<=\d) (?=(?:d|h|min|s|%)(?![A-Za-z]))", "\u00a0", text)


def _vega() -> str:
    """Return the code that draws figures as a plain script: modules cannot be loaded from a disk."""
    import vl_convert

    code: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub misses the default
    return "(() => {" + code + "})();\n"
