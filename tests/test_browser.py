"""The report in a real browser: what it draws, whether it fits, and how it is used without a mouse."""

import json
import os
import re
import shutil

import pytest

from swflow.database import load
from swflow.figures import draw, write
from swflow.report import read_figures, write_report
from swflow.runs import simulate_all
from test_report import CONFIG
from test_runs import SCHEDULERS, write_workloads

#: Where Debian and others install it; a driver's own browser is not downloaded.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VIEWS = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]
PATIENCE = 120_000  # ms


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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write a report of two logs with a page of every kind."""
    folder = tmp_path_factory.mktemp("browser")
    for path in write_workloads(folder, 2):
        simulate_all(path, SCHEDULERS, folder / "runs" / path.stem)
    load([folder / "runs/A", folder / "runs/B"], folder / "d.duckdb")
    config = json.loads(json.dumps(CONFIG))
    config["studies"]["one"]["runs"][0]["schedulers"] = ["easy", "fcfs"]
    (folder / "config.yaml").write_text(json.dumps(config))
    files = [folder / f"figures/one/A-{kind}.json" for kind in ("heatmap", "difference", "bubbles")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        write(draw(file.stem[2:], folder / "d.duckdb", log="A", interactive=True), file)
    for name, single in (("site", False), ("single", True)):
        write_report(folder / "d.duckdb", folder / name, read_figures(files), studies=folder / "config.yaml",
                     single_file=single)  # fmt: skip
    return folder


class Tab:
    """A page that was opened from disk, and what it complained of."""

    def __init__(self, browser, file, width=1280, scheme="light"):
        self.complaints = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self.requested)
        self.page.goto(file.as_uri(), timeout=PATIENCE)
        self.page.evaluate("swflowReport.buildAll()")

    def requested(self, request):
        """Note what is asked of a network."""
        if not request.url.startswith(("file:", "data:", "blob:")):
            self.complaints.append(f"request: {request.url}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


#: What a page must be: nothing wider than it, headings where they are seen, every figure drawn, every table filled.
CHECK = """() => {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`page is ${document.documentElement.scrollWidth} wide`);
  for (const figure of document.querySelectorAll("article:not([hidden]) figure.block")) {
    if (!(figure.dataset.marks > 0)) faults.push(`${figure.id}: ${figure.dataset.marks} marks`);
    if (figure.dataset.hollow !== "0") faults.push(`${figure.id}: ${figure.dataset.hollow} layers without a mark`);
    const place = figure.querySelector(".drawing");
    if (place.scrollWidth > place.clientWidth + 1) faults.push(`${figure.id}: ${place.scrollWidth} in ${place.clientWidth}`);
    if (place.getAttribute("aria-label").length < 40) faults.push(`${figure.id}: no alternative text`);
  }
  for (const table of document.querySelectorAll("article:not([hidden]) .block.table"))
    if (!table.querySelector(".tabulator-row")) faults.push(`${table.id}: no row`);
  for (const matrix of document.querySelectorAll("article:not([hidden]) .matrix, article:not([hidden]) .compare"))
    if (!matrix.querySelector("tbody td")) faults.push(`${matrix.id}: no cell`);
  for (const heading of document.querySelectorAll("article:not([hidden]) :is(h1, h2, h3)")) {
    heading.scrollIntoView();
    const box = heading.getBoundingClientRect(), seen = document.elementFromPoint(box.left + 2, box.top + box.height / 2);
    if (!seen || !(heading.contains(seen) || seen.contains(heading))) faults.push(`${heading.textContent}: covered`);
  }
  return faults;
}"""  # noqa: E501
PAGES = ("index", "tables", "studies/waits", "studies/one", "logs/A")


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
        head = block.locator(".tabulator-col", has_text="mean wait time").first
        column = "[...document.querySelector('.block.table').table.getRows('active')].map(row => row.getData().c4)"
        head.focus()
        tab.page.keyboard.press("Enter")
        values = tab.page.evaluate(column)
        assert head.get_attribute("aria-sort") == "ascending" and values == sorted(values) and len(set(values)) > 1
        tab.page.keyboard.press("Enter")
        assert tab.page.evaluate(column) == sorted(values, reverse=True)
        block.locator("input.filter").fill("b fcfs")
        assert tab.page.evaluate("document.querySelector('.block.table').table.getDataCount('active')") == 1
        assert tab.complaints == []


def test_a_table_is_saved_with_seconds_and_its_query_is_shown(browser, site):
    with Tab(browser, site / "site/tables.html") as tab:
        block = tab.page.locator(".block.table").first
        with tab.page.expect_download() as download:
            block.get_by_role("button", name="CSV").click()
        lines = download.value.path().read_text().splitlines()
        assert lines[0].startswith("workload,scheduler,jobs,utilization,mean_wait_time") and len(lines) == 5
        assert re.match(r"A,easy,300,0\.\d+,[\d.]+,", lines[1])
        block.get_by_role("button", name="SQL").click()
        assert "FROM metrics" in block.locator("pre").inner_text()


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
    with Tab(browser, site / "site/index.html") as tab:
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
