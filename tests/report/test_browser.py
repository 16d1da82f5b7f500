"""Test the report in a real browser: figures, layout, and use by keyboard."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

import altair as alt
import duckdb
import pytest

from helpers.forecasts import recorded_site
from helpers.reports import ASKING, published
from helpers.runs import SCHEDULERS, write_workloads
from swflow.analysis.verdicts import TOO_FEW_WEEKS
from swflow.database.load import load
from swflow.figures import draw, write
from swflow.figures.parts import FigureData, beside, finished_figure, layered
from swflow.figures.runs import run_lines
from swflow.figures.styles import run_styles
from swflow.files.tables import write_table
from swflow.forecast.evaluation import summary, walk_forward
from swflow.forecast.forecaster import cases_of, fit
from swflow.forecast.page import write_page
from swflow.forecast.sweep import from_log
from swflow.forecast.words import coverage, span
from swflow.report import read_figures, write_report
from swflow.studies.runs import simulate_all
from swflow.studies.whatif import BASE
from swflow.values import WEEK

pytestmark = pytest.mark.slow

#: Where Debian and others install it; a driver's own browser is not downloaded.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PATIENCE = 60_000  # ms

#: A limit with a long name, in the words of `swflow whatif`.
LIMIT = "user:processors=32,user:jobs=1"


@pytest.fixture(scope="module")
def browser():
    """Start Chromium, or skip where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason='no Playwright: pip install -e ".[browser]"')
    path = os.environ.get("SWFLOW_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium, or set SWFLOW_CHROMIUM")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


#: Long names of runs: several lines of words, of steps, of a single word, and a short one.
LONG = [
    "EASY with efficient sizes chosen at the start and kept until the end",
    "+completed+alvio-28+first-10000 easy-first",
    "easy-first-contiguous-shared-on-numbered-processors-of-nodes",
    "FCFS",
]


def wide_figures():
    """Return small figures of every kind that needs more than the width of a phone: names, legends, titles, panels."""
    data, rows = FigureData(), [{"r": name, "x": place, "y": 1 + place} for place, name in enumerate(LONG)]
    rows += [row | {"x": 5} for row in rows]
    chart = alt.Chart(data.add(rows))
    sorts = alt.Y("r:N", sort=LONG, axis=alt.Axis(title=None, labelLimit=130))
    styles = run_styles([{"workload": "A", "scheduler": str(place)} for place in range(len(LONG))])
    lines = {"x": alt.X("x:Q", title="a long title of an axis, as that of a table of reservations has one"), "y": "y:Q"}
    above = run_lines(dict(zip(LONG, styles, strict=True)), True, 4)
    colour = alt.Scale(domain=LONG, range=["black", "red", "blue", "green"])
    beside_panels = alt.Color("r:N", scale=colour, legend=alt.Legend(title=None, orient="right", labelLimit=320))
    titles = [{"text": f"{LONG[0]} − {name}", "subtitle": [f"better at equal load: {LONG[0]}"]} for name in LONG]
    bar = alt.Color("y:Q", legend=alt.Legend(title=["jobs", "per cell"]))
    drawn = {
        "names": [
            chart.mark_rect().encode(x="x:O", y=sorts).properties(width=760, height=88),
            layered(chart.mark_point().encode(x="x:Q", y=sorts), width=620, height={"step": 20}),
            chart.mark_line().encode(**lines, **above).properties(width=760, height=100),
        ],
        "titles": [beside(*(chart.mark_point().encode(**lines, color=bar).properties(width=300, height=90, title=title)
                            for title in titles), spacing=14, color="independent")],
        "shares": [beside(*(chart.mark_line().encode(**lines, color=beside_panels).properties(width=330, height=90)
                            for _ in "ab"), spacing=24)],
    }  # fmt: skip
    return {
        name: finished_figure(data, panels, name, f"A figure that is wider than a phone because of {name}.")
        for name, panels in drawn.items()
    }


WIDE = wide_figures()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a report of two logs with a page of every kind."""
    folder = tmp_path_factory.mktemp("browser")
    for path in write_workloads(folder, 2):
        simulate_all(path, SCHEDULERS, folder / "runs" / path.stem)
    workload = recorded_site(1000, "A")
    found = summary(walk_forward(from_log(workload)[0], 6 * WEEK, 10 * WEEK), 20)
    about = {"kind": "forecast", "study": "one", "workload": "A"}
    write_table(found, folder / "forecast.parquet", about)
    asked = {"waits": [(f"{log}/easy", f"{log}/fcfs") for log in "AB"], "one": [("A/fcfs", "A/easy")]}
    load([folder / "runs/A", folder / "runs/B", folder / "forecast.parquet"], folder / "d.duckdb", asked=asked)
    published(folder / "d.duckdb", [
        ("A", "far", 1.0, "A", "easy", "mean_wait_time"), ("A", "none", 0.0, "A", "easy", "killed"),
        ("Z", "gone", 1.0, "Z", "easy", "mean_wait_time"),
    ])  # fmt: skip
    with duckdb.connect(folder / "d.duckdb") as connection:  # long names in the figure of differences
        connection.executemany(
            "INSERT INTO whatifs (study, workload, variant, measure, value, base, difference, weeks, verdict, "
            "verdict_holm) VALUES ('one', 'A', ?, ?, 105, 100, 5, 3, ?, ?)",
            [
                (variant, measure, verdict, verdict)
                for variant, verdict in (("easy", BASE), (f"easy, limit {LIMIT}", TOO_FEW_WEEKS))
                for measure in ("mean_wait_time", "p95_wait_time", "awrt", "mean_bounded_slowdown")
            ],
        )
    config = json.loads(json.dumps(ASKING))
    config["studies"]["one"]["runs"][0]["schedulers"] = ["easy", "fcfs"]
    (folder / "config.yaml").write_text(json.dumps(config))
    files = [folder / f"figures/one/A-{kind}.json" for kind in ("heatmap", "difference", "bubbles")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(draw(file.stem[2:], folder / "d.duckdb", log="A", interactive=True), file)
    values = [["A/easy", "mean_wait_time", 3600.0, 1800.0], ["A/easy", "utilization", 0.5, None]]
    verdicts = [["A/easy", "A/fcfs", "awrt", "equal", "base is better"]]
    changed = {"runs": 2, "values": values, "added": ["A/mine"], "removed": [], "verdicts": verdicts}
    (folder / "changes.json").write_text(json.dumps({"studies": {"waits": changed}, "lines": []}))
    for file in (folder / f"figures/waits/{name}.json" for name in ("names", "titles", "shares")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(WIDE[file.stem]))
        files.append(file)
    for name, single in (("site", False), ("single", True)):
        write_report(folder / "d.duckdb", folder / name, read_figures(files), studies=folder / "config.yaml",
                     changes=folder / "changes.json", single_file=single)  # fmt: skip
    return folder


class Tab:
    """A page opened from disk, with its errors."""

    def __init__(self, browser, file, width=1280, scheme="light", build=True, **options):
        self.complaints = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self.requested)
        self.page.goto(file.as_uri(), timeout=PATIENCE)
        if build:
            self.page.evaluate("swflowReport.buildAll()")

    def requested(self, request):
        """Record requests to a network."""
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


#: What a page must be: nothing wider than it, headings where they are seen, every figure drawn, every table filled.
CHECK = """() => {
  const faults = [];
  // Texts that a limit cuts.
  const cut = item => (item.items || []).flatMap(part => part.text && part.limit > 0 && !String(part.text).includes("…") &&
    [part.text].flat().some(line => wide(part, line) > part.limit) ? [String(part.text)] : cut(part));
  const pen = document.createElement("canvas").getContext("2d");
  function wide(part, line) {
    pen.font = `${part.fontWeight || "normal"} ${part.fontSize}px ${part.font}`;
    return pen.measureText(line).width;
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`page is ${document.documentElement.scrollWidth} wide`);
  for (const figure of document.querySelectorAll("article:not([hidden]) figure.block")) {
    if (!(figure.dataset.marks > 0)) faults.push(`${figure.id}: ${figure.dataset.marks} marks`);
    if (figure.dataset.hollow !== "0") faults.push(`${figure.id}: ${figure.dataset.hollow} layers without a mark`);
    const place = figure.querySelector(".drawing");
    if (place.scrollWidth > place.clientWidth + 1) faults.push(`${figure.id}: ${place.scrollWidth} in ${place.clientWidth}`);
    if (figure.view) faults.push(...cut(figure.view.scenegraph().root).map(text => `${figure.id}: ${text}: cut`));
    if (place.getAttribute("aria-label").length < 40) faults.push(`${figure.id}: no alternative text`);
  }
  for (const table of document.querySelectorAll("article:not([hidden]) .block.table"))
    if (!table.querySelector("tbody td")) faults.push(`${table.id}: no row`);
  for (const cell of document.querySelectorAll("article:not([hidden]) .table .long"))
    if (cell.scrollWidth > cell.clientWidth + 1 || cell.textContent.endsWith("…")) faults.push(`${cell.textContent}: cut`);
  for (const matrix of document.querySelectorAll("article:not([hidden]) .matrix, article:not([hidden]) .compare"))
    if (!matrix.querySelector("tbody td")) faults.push(`${matrix.id}: no cell`);
  for (const heading of document.querySelectorAll("article:not([hidden]) :is(h1, h2, h3)")) {
    heading.scrollIntoView();
    const box = heading.getBoundingClientRect(), seen = document.elementFromPoint(box.left + 2, box.top + box.height / 2);
    if (!seen || !(heading.contains(seen) || seen.contains(heading))) faults.push(`${heading.textContent}: covered`);
  }
  return faults;
}"""  # noqa: E501


@pytest.fixture(scope="module")
def forecast_page(tmp_path_factory):
    """Write the page of forecasts of a log with two queues, and return it with its forecaster."""
    cases, state = cases_of(recorded_site(1000))
    forecaster = fit(cases, method="past", **state)
    path = tmp_path_factory.mktemp("forecast") / "forecast.html"
    write_page(forecaster, path)
    return path, forecaster


def test_names_in_the_page_of_forecasts_are_text(browser, forecast_page, tmp_path):
    _, forecaster = forecast_page
    names = ["<!--<script>", "</script><img src=x onerror=\"document.title='run'\">"]
    labels = dict(zip(forecaster.labels, names, strict=True))
    write_page(replace(forecaster, name="x@data@.txt", labels=labels), tmp_path / "page.html")
    with Tab(browser, tmp_path / "page.html", 1280, build=False) as tab:
        assert tab.complaints == []
        assert sorted(tab.page.locator("#partition option").all_inner_texts()) == sorted(names)
        assert "(median)" in tab.page.inner_text("#answer")
        assert tab.page.title() == "When will my job start? x@data@.txt" and tab.page.locator("img").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_forecasts_answers_and_fits(browser, forecast_page, width):
    path, forecaster = forecast_page
    with Tab(browser, path, width, build=False) as tab:
        page = tab.page
        assert tab.complaints == [] and coverage(forecaster) in page.inner_text("footer")
        size, limit = (page.locator(f"#{name} option").all_inner_texts()[3] for name in ("size", "limit"))
        for name, text in (("partition", "1"), ("size", size), ("limit", limit)):
            page.select_option(f"#{name}", label=text)
        longest = [value for value in forecaster.common["limits"] if span(value) == limit]
        request = forecaster.describe(int(size), longest[0], "1", None)
        (expected,) = forecaster.of_requests([request])
        answer = page.inner_text("#answer")
        assert f"within {span(round(expected.median))} (median)" in answer
        assert f"within {span(round(expected.low))} to " in answer
        box = page.locator("rect.range").bounding_box()
        assert box["x"] >= 0 and box["width"] >= 3 and box["x"] + box["width"] <= width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        rows = {page.locator(f"#{name}").bounding_box()["y"] for name in ("partition", "size", "limit")}
        assert (len(rows) == 1) == (width == 1280)
        assert tab.complaints == []


PAGES = ("index", "tables", "changes", "papers/some-2001", "studies/waits", "studies/one", "logs/A")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_every_page_draws_everything_and_fits(browser, site, page, width, scheme):
    with Tab(browser, site / "site" / f"{page}.html", width, scheme) as tab:
        assert tab.page.evaluate(CHECK) == []
        assert tab.complaints == []
        dark = tab.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (scheme == "dark")


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_chart_whose_data_are_gone_is_found(browser, site, tmp_path, number):
    shutil.copytree(site / "site", tmp_path / "site")
    file = tmp_path / "site/logs/A.html"
    html = file.read_text()
    figures = list(re.finditer(r'"data-0":\[.*?\]', html))
    assert len(figures) == 3
    file.write_text(html[: figures[number - 1].start()] + '"data-0":[]' + html[figures[number - 1].end() :])
    with Tab(browser, file) as tab:
        faults = tab.page.evaluate(CHECK)
        assert faults and all(re.match(rf"logs-A-\d+-{number}: .*(marks|without a mark)", part) for part in faults)


def test_tables_are_sorted_and_filtered_by_keyboard(browser, site):
    with Tab(browser, site / "site/tables.html") as tab:
        block = tab.page.locator(".block.table").first
        head = block.locator("thead th", has_text="mean wait time")

        def seconds():
            cells = block.locator("tbody tr").evaluate_all("rows => rows.map(row => row.children[6].title)")
            return [float(cell.removesuffix(" s").replace(",", "")) for cell in cells]

        head.locator("button").focus()
        tab.page.keyboard.press("Enter")
        values = seconds()
        assert head.get_attribute("aria-sort") == "ascending" and values == sorted(values) and len(set(values)) > 1
        tab.page.keyboard.press("Enter")
        assert head.get_attribute("aria-sort") == "descending" and seconds() == sorted(values, reverse=True)
        block.locator("input.filter").fill("b fcfs")
        assert block.locator("tbody tr").count() == 1
        block.locator("input.filter").fill("nothing of the kind")
        assert "No row contains this text." in block.locator("tbody").inner_text()
        assert tab.complaints == []


def test_a_long_table_is_built_while_it_is_scrolled(browser, site, tmp_path):
    shutil.copytree(site / "site", tmp_path / "site")
    file = tmp_path / "site/tables.html"
    html = file.read_text()
    start = html.index('"rows":[') + len('"rows":[')
    row = html[start : html.index("]", start) + 1]
    file.write_text(html[:start] + ",".join([row] * 700) + "," + html[start:])
    with Tab(browser, file) as tab:
        block = tab.page.locator(".block.table").first
        assert block.locator("tbody tr").count() == 200 and "504 more rows" in block.locator(".rest").inner_text()
        scroll = block.locator(".scroll")
        for _ in range(8):
            scroll.evaluate("part => { part.scrollTop = part.scrollHeight; }")
            tab.page.wait_for_timeout(50)
        assert block.locator("tbody tr").count() == 704 and not block.locator(".rest").is_visible()


def test_a_table_is_saved_with_seconds_and_its_query_is_shown(browser, site):
    with Tab(browser, site / "site/tables.html") as tab:
        block = tab.page.locator(".block.table").first
        lines = saved(tab, block, "CSV").read_text().splitlines()
        assert lines[0].startswith("workload,scheduler,jobs,offered_load,utilization,peak_processors,mean_wait_time")
        assert len(lines) == 5
        assert re.match(r"A,easy,300,[\d.]+,0\.\d+,\d*,[\d.]+,", lines[1])
        block.get_by_role("button", name="SQL").click()
        assert "FROM metrics" in block.locator("pre").inner_text()


def saved(tab, block, name):
    """Click a button that saves a file, and return the file."""
    with tab.page.expect_download() as download:
        block.locator(f"button.{name.lower()}").click()
    return download.value.path()


def test_the_csv_of_a_filtered_table_has_all_rows(browser, site):
    with Tab(browser, site / "site/tables.html") as tab:
        block = tab.page.locator(".block.table").first
        block.locator("input.filter").fill("b fcfs")
        lines = saved(tab, block, "CSV").read_text().splitlines()
        assert len(lines) == 2 and lines[1].startswith("B,fcfs,")


def test_the_csv_of_a_paper_has_the_reasons(browser, site):
    with Tab(browser, site / "site/papers/some-2001.html") as tab:
        cells = tab.page.locator("td.open")
        assert cells.count() == 1 and "swflow has" in cells.first.get_attribute("title")
        text = saved(tab, tab.page.locator(".block.paper"), "CSV").read_text()
        assert text.startswith("paper,table,row,column,published,ours,")
        assert "swflow has" in text and "log not here" in text
        assert tab.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_figure_cannot_be_saved_and_has_no_source(browser, site, scheme):
    with Tab(browser, site / "site/studies/one.html", scheme=scheme) as tab:
        for place in range(tab.page.locator("figure.block").count()):
            figure = tab.page.locator("figure.block").nth(place)
            svg = saved(tab, figure, "SVG").read_text()
            assert svg.startswith("<svg") and 'fill="white"' in svg and svg.count("<path") > 5
            assert saved(tab, figure, "PNG").read_bytes().startswith(b"\x89PNG")
            figure.get_by_role("button", name="SQL").click()
            *commands, queries = figure.locator("pre").all_inner_texts()
            # Only the report draws the figure of forecasts.
            assert commands or "FROM forecasts" in queries
            assert all(command.startswith("swflow figure ") for command in commands)
            assert "SELECT" in queries and "$" not in queries
        assert tab.complaints == []


def test_a_printed_page_has_empty_tables(browser, site):
    with Tab(browser, site / "site/tables.html", build=False) as tab:
        tab.page.emulate_media(media="print")
        tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        for block in tab.page.locator(".block.table").all():
            rows = len(json.loads(block.locator("script.data").inner_text())["rows"])
            cell = block.locator("tbody > tr").last.locator("td").last
            assert block.locator("tbody > tr").count() == rows and cell.is_visible()
            bottom = cell.evaluate("cell => cell.getBoundingClientRect().bottom")
            box = block.locator(".scroll").evaluate("part => part.getBoundingClientRect().bottom")
            assert bottom <= box + 1  # nothing is cut by the box that scrolls on a screen
        assert tab.page.pdf().startswith(b"%PDF")


def test_generic_figures_stand_before_those_of_the_study(browser, site):
    with Tab(browser, site / "site/studies/one.html", build=False) as tab:
        fold = tab.page.locator("details.fold")
        assert fold.count() == 1 and not fold.locator("figure").first.is_visible()
        assert tab.page.locator("section").last.locator("details.fold").count() == 1
        fold.locator("summary").click()
        fold.locator("figure[data-marks]").first.wait_for()
        assert tab.complaints == []


@pytest.fixture(scope="module")
def axe():
    """Return the source of axe-core, or skip where it is not installed."""
    package = pytest.importorskip("axe_playwright_python", reason='no axe-core: pip install -e ".[browser]"')
    return Path(package.__file__).with_name("axe.min.js").read_text()


@pytest.fixture(scope="module")
def report(request):
    """Return the folder of a report: the one in SWFLOW_REPORT, such as results/report, else a small one."""
    folder = os.environ.get("SWFLOW_REPORT")
    return Path(folder).resolve() if folder else request.getfixturevalue("site") / "site"


@pytest.fixture(scope="module")
def crawled(browser, report):
    """Return all pages that are reached by links from the first page."""
    waiting, found = [report / "index.html"], set[Path]()
    while waiting:
        page = waiting.pop()
        if page not in found:
            found.add(page)
            with Tab(browser, page, build=False) as tab:
                links = tab.page.locator("a[href]").evaluate_all("links => links.map(link => link.href)")
            paths = {Path(unquote(urlsplit(link).path)) for link in links if link.startswith("file:")}
            waiting += [path for path in paths if path.suffix == ".html"]
    return sorted(found)


def test_a_page_is_reached_by_no_link(report, crawled):
    assert set(crawled) == set(report.rglob("*.html"))


def violations(tab, axe):
    """Return the violations that axe-core finds on a page."""
    tab.page.evaluate(axe)
    found = tab.page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    return [(part["impact"], part["id"], part["nodes"][0]["html"][:200]) for part in found]


@pytest.mark.parametrize(("width", "scheme"), [VIEWS[0], VIEWS[3]])
def test_axe_finds_serious_faults(browser, report, crawled, axe, width, scheme):
    faults = {}
    for page in crawled:
        with Tab(browser, page, width, scheme, bypass_csp=True) as tab:
            faults[page.relative_to(report).as_posix()] = violations(tab, axe)
    assert {page: found for page, found in faults.items() if found} == {}


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("document.querySelector('main p').style.color = '#eee'", "color-contrast"),
        ("document.querySelector('th').setAttribute('role', 'presentation-of-data')", "aria-roles"),
    ],
)
def test_a_fault_that_is_put_in_is_missed_by_axe(browser, site, axe, fault, rule):
    with Tab(browser, site / "site/index.html", bypass_csp=True) as tab:
        assert violations(tab, axe) == []
        tab.page.evaluate(fault)
        (found,) = violations(tab, axe)
        assert found[0] in ("serious", "critical") and found[1] == rule


def test_the_matrix_changes_its_measure(browser, site):
    with Tab(browser, site / "site/index.html") as tab:
        cell = tab.page.locator(".matrix tbody td").first
        before = cell.inner_text()
        tab.page.locator(".matrix select").select_option(label="utilization")
        assert cell.inner_text() != before and "%" in cell.inner_text()
        assert tab.page.locator(".matrix td.best").count() >= 1


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("SDSC-SP2+ran", 20, "SDSC-SP2+ran"),
        ("SDSC-SP2+completed+first-10000+memory-high", 34, "SDSC-SP2+…+first-10000+memory-high"),
        ("SDSC-SP2+completed+first-10000+memory-high", 33, "SDSC-SP2+…+memory-high"),
        ("SDSC-SP2+completed+first-10000+memory-high", 20, "…+memory-high"),
        ("a sentence with 3+4 in it, longer than that", 20, "a sentence with 3+4 in it, longer than that"),
    ],
)
def test_a_long_recipe_leaves_out_steps_in_the_middle(browser, site, text, most, shown):
    with Tab(browser, site / "site/index.html", build=False) as tab:
        assert tab.page.evaluate("([text, most]) => swflowReport.recipe(text, most)", [text, most]) == shown


def test_pointing_at_a_cell_tells_its_count_and_brushing_chooses_jobs(browser, site):
    with Tab(browser, site / "site/studies/one.html") as tab:
        figure = tab.page.locator("figure.block", has=tab.page.get_by_text("performance against load")).first
        canvas = figure.locator("canvas")
        tab.page.evaluate("y => scrollBy(0, y - 100)", canvas.bounding_box()["y"])
        box, tooltip = canvas.bounding_box(), tab.page.locator("#vg-tooltip-element.visible")
        # Down through the loads of the first panel, until there is a cell.
        places = [(box["x"] + x, box["y"] + y) for x in (250, 225, 200, 150) for y in range(50, 300, 4)]
        cell = None
        for x, y in places:
            tab.page.mouse.move(x, y)
            if tooltip.count() and "load from" in tooltip.inner_text():
                cell = (x, y)
                break
        assert cell and re.search(r"jobs\s+\d", tooltip.inner_text())
        before = tab.page.evaluate(STORE)
        tab.page.mouse.down()
        tab.page.mouse.move(cell[0] - 60, cell[1], steps=5)
        tab.page.mouse.up()
        assert before == 0 and tab.page.evaluate(STORE) > 0
        assert tab.complaints == []


#: How many brushes there are in the heatmaps of a page.
STORE = """() => {
  const figure = [...document.querySelectorAll("figure.block")]
    .find(part => part.textContent.includes("performance against load"));
  return figure.view.data("loads_store").length;
}"""


def test_the_navigation_is_a_drawer_on_a_phone(browser, site):
    with Tab(browser, site / "site/index.html", 390) as tab:
        link = tab.page.locator("nav a", has_text="waits")
        assert not link.is_visible()
        tab.page.locator("#menu").press("Enter")
        link.wait_for(state="visible")
        assert tab.page.evaluate("document.querySelector('nav').contains(document.activeElement)")
        tab.page.keyboard.press("Escape")
        link.wait_for(state="hidden")
        tab.page.locator("#menu").click()
        link.click()
        tab.page.wait_for_url("**/studies/waits.html")


def test_a_single_file_turns_its_pages(browser, site):
    with Tab(browser, site / "single/index.html") as tab:
        assert tab.page.locator("article:visible").count() == 1
        tab.page.locator("nav a", has_text="waits").click()
        tab.page.locator("#studies-waits").wait_for(state="visible")
        tab.page.evaluate("swflowReport.buildAll()")
        assert tab.page.locator("article:visible").count() == 1
        assert tab.page.evaluate(CHECK) == []
        assert tab.complaints == []
