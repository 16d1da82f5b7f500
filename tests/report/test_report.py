"""Test the report: contents of its pages, reproducible bytes, and special cases."""

import json
import re
import time
from html import unescape
from itertools import combinations

import duckdb
import polars as pl
import pytest
import yaml

from helpers.reports import ASKING, CONFIG, published
from helpers.runs import SCHEDULERS, write_workloads
from swflow.analysis.verdicts import BETTER, NOT_DISTINGUISHABLE, WORSE
from swflow.database.load import load
from swflow.errors import SwflowError
from swflow.figures import FIGURES, draw, write
from swflow.files.query import query
from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.papers import read_papers
from swflow.report import CSV_TABLES, read_figures, write_report
from swflow.report.tables import TABLES
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.runs import simulate_all
from swflow.values import WEEK
from swflow.workload.clean import open_workload


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build a database of two logs under two schedulers, with its config."""
    folder = tmp_path_factory.mktemp("report")
    for path in write_workloads(folder, 2):
        simulate_all(path, SCHEDULERS, folder / "runs" / path.stem)
    load([folder / "runs/A", folder / "runs/B"], folder / "d.duckdb")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    (folder / "asking.yaml").write_text(yaml.safe_dump(ASKING))
    write_report(folder / "d.duckdb", folder / "site", studies=folder / "config.yaml")
    return folder


def test_the_folder_has_tables_as_csv(folder):
    found = {name: pl.read_csv(folder / f"site/{name}.csv") for name in CSV_TABLES}
    columns, rows = query(folder / "d.duckdb", "FROM metrics ORDER BY run")
    assert found["metrics"].columns == columns and found["metrics"]["run"].to_list() == [row[0] for row in rows]
    waits = [row[columns.index("mean_wait_time")] for row in rows]
    assert len(waits) > 3 and found["metrics"]["mean_wait_time"].to_list() == waits
    assert found["replicates"].is_empty() and "published" in found["reproduction"].columns


def blocks(html, kind="data"):
    """Return the data of a page."""
    return [json.loads(text) for text in re.findall(rf'<script type="application/json" class="{kind}">(.*?)</script>',
                                                    html, flags=re.DOTALL)]  # fmt: skip


def test_there_is_a_page_per_study_and_per_log(folder):
    pages = {str(path.relative_to(folder / "site")) for path in (folder / "site").rglob("*.html")}
    assert pages == {"index.html", "tables.html", "studies/waits.html", "studies/one.html", "logs/A.html",
                     "logs/B.html"}  # fmt: skip
    for page in pages:
        html = (folder / "site" / page).read_text()
        assert "default-src 'none'" in html and "unsafe-eval" not in html and "script-src 'self'" in html
        assert not re.search(r"https?://", html), page
        for target in re.findall(r'(?:href|src)="([^"#]+)"', html):
            assert (folder / "site" / page).parent.joinpath(target).resolve().is_file(), (page, target)


def test_a_study_shows_its_title_and_its_answer(folder):
    html = (folder / "site/studies/waits.html").read_text()
    assert "<h1>Who waits &lt;less&gt;?</h1>" in html  # prose: ignore
    lead = re.search(r'<p class="lead">(.*?)</p>', html).group(1).replace("\u00a0", " ")
    assert lead.startswith("easy and fcfs are equal on 1 of 2 workloads and ")
    assert "Who waits &lt;less&gt;?" in (folder / "site/index.html").read_text()  # prose: ignore


def test_every_run_is_in_the_tables_and_their_sql_gives_their_rows(folder):
    with duckdb.connect(folder / "d.duckdb", read_only=True) as connection:
        for page in ("tables.html", "studies/waits.html", "logs/B.html"):
            html = (folder / "site" / page).read_text()
            tables = [block for block in blocks(html) if block.get("name") in TABLES]
            queries = re.findall(r'class="block table".*?<code>(.*?)</code></pre>', html, flags=re.DOTALL)
            assert tables and len(tables) == len(queries)
            for table, sql in zip(tables, queries, strict=True):
                for entity, mark in (("&#39;", "'"), ("&#34;", '"'), ("&gt;", ">"), ("&lt;", "<"), ("&amp;", "&")):
                    sql = sql.replace(entity, mark)
                assert len(connection.execute(sql).fetchall()) == len(table["rows"]), (page, table["name"])
    metrics = next(block for block in blocks((folder / "site/tables.html").read_text()) if block["name"] == "metrics")
    assert [row[:2] for row in metrics["rows"]] == [["A", "easy"], ["A", "fcfs"], ["B", "easy"], ["B", "fcfs"]]


@pytest.mark.slow
def test_a_difference_of_workloads_within_the_bins_of_heatmaps_is_in_the_table(tmp_path):
    submit = [WEEK * (pair // 2) / 25 for pair in range(400)]  # eight weeks; the second job of a pair waits
    for name, length in (("A", 1100.0), ("A+longer", 1150.0), ("A+same", 1100.0)):
        run_time = [length, 60.0] * 200
        table = {"job_id": range(1, 401), "submit_time": submit, "run_time": run_time, "estimate": run_time}
        jobs = pl.DataFrame(table).with_columns(processors=pl.lit(4))
        write_workload(Workload(jobs, Machine.of(4), name), tmp_path / f"{name}.parquet")
        simulate_all(tmp_path / f"{name}.parquet", {"fcfs": {}}, tmp_path / "runs" / name)
    names = [f"{name}/fcfs" for name in ("A+longer", "A+same", "A")]
    load([tmp_path / "runs"], tmp_path / "d.duckdb", asked={"one": list(combinations(names, 2))})
    write_report(tmp_path / "d.duckdb", tmp_path / "site", draw=False)
    (table,) = (
        block for block in blocks((tmp_path / "site/tables.html").read_text()) if block["name"] == "comparisons"
    )
    pairs = {("A+longer/fcfs", "A+same/fcfs"), ("A+longer/fcfs", "A/fcfs")}
    assert {tuple(row[1:3]) for row in table["rows"]} == pairs
    assert "distance" not in [column["name"] for column in table["columns"]]  # no workload has two runs


def test_the_same_database_gives_the_same_bytes(folder, tmp_path):
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        connection.execute(f"ATTACH '{folder / 'd.duckdb'}' AS old (READ_ONLY)")
        connection.execute("COPY FROM DATABASE old TO d")
        connection.execute("UPDATE runs SET seconds = seconds * 3 + 1")
    time.sleep(1.1)
    write_report(tmp_path / "d.duckdb", tmp_path / "site", studies=folder / "config.yaml")
    first, second = ({path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
                     for root in (folder / "site", tmp_path / "site"))  # fmt: skip
    assert first == second


@pytest.mark.slow
def test_the_command_of_a_figure_names_a_run_of_the_database(tmp_path):
    """The figures of a log need its workload only, but their command names a run of it."""
    (source,) = write_workloads(tmp_path)
    for schedulers in (["easy", "fcfs"], ["fcfs"]):
        simulate_all(source, {name: SCHEDULERS[name] for name in schedulers}, tmp_path / "runs/A")
        load([tmp_path / "runs/A"], tmp_path / "d.duckdb")
        write_report(tmp_path / "d.duckdb", tmp_path / "site")
        page = (tmp_path / "site/logs/A.html").read_text()
        assert f"swflow figure offered-load --run A/{schedulers[0]}" in page


def test_a_single_file_has_all_pages_and_needs_no_other(folder, tmp_path):
    html = write_report(folder / "d.duckdb", tmp_path, studies=folder / "config.yaml", single_file=True).read_text()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["index.html"]
    assert html.count("<article") == 6 and "default-src 'none'" in html
    assert html.count("window.vegaEmbed=") == 1
    outside = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#)', outside)
    for target in re.findall(r'href="#([^"]+)"', outside):
        assert f'id="{target}"' in html, target


def test_obsolete_pages_are_removed(folder, tmp_path):
    for config in (CONFIG, {"studies": {"waits": CONFIG["studies"]["waits"]}}):
        (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
        write_report(folder / "d.duckdb", tmp_path / "site", studies=tmp_path / "c.yaml")
    assert [path.name for path in (tmp_path / "site/studies").iterdir()] == ["waits.html"]


def test_the_page_of_former_changes_is_removed_and_a_page_of_others_stays(folder, tmp_path):
    (tmp_path / "changes.json").write_text(json.dumps({"studies": {}, "lines": []}))
    for changes in (tmp_path / "changes.json", None):
        write_report(folder / "d.duckdb", tmp_path / "site", studies=folder / "config.yaml", changes=changes)
        assert (tmp_path / "site/changes.html").exists() == (changes is not None)
    (tmp_path / "site/changes.html").write_text("<title>mine</title>")
    write_report(folder / "d.duckdb", tmp_path / "site", studies=folder / "config.yaml", single_file=True)
    assert sorted(path.name for path in (tmp_path / "site").glob("*.html")) == ["changes.html", "index.html"]


def test_the_matrix_of_a_study_has_its_verdicts(folder, tmp_path):
    asked = {study: [("A/easy", "A/fcfs")] for study in ("another", "waits", "zzz")}
    load([folder / "runs/A", folder / "runs/B"], tmp_path / "d.duckdb", asked=asked)
    with duckdb.connect(tmp_path / "d.duckdb") as connection:
        for study, verdict in (("another", BETTER), ("waits", NOT_DISTINGUISHABLE), ("zzz", WORSE)):
            connection.execute("UPDATE comparisons SET score_verdict_holm = ? WHERE study = ?", [verdict, study])
        connection.execute(
            "UPDATE comparisons SET variant = base, base = variant, score = 0 - score WHERE study = 'zzz'"
        )
    write_report(tmp_path / "d.duckdb", tmp_path / "site", studies=folder / "config.yaml", draw=False)
    (found,) = [block for block in blocks((tmp_path / "site/studies/waits.html").read_text()) if "names" in block]
    cells = [cell for measure in found["measures"].values() for cell in measure.values()]
    assert len(cells) == 6 and all(cell[3:] == ["chance", NOT_DISTINGUISHABLE] for cell in cells)


def test_without_a_config_all_runs_are_one_study(folder, tmp_path):
    write_report(folder / "d.duckdb", tmp_path)
    assert [path.name for path in (tmp_path / "studies").iterdir()] == ["runs.html"]
    (tmp_path / "no.yaml").write_text("seed: 1")
    with pytest.raises(SwflowError, match="expected studies"):
        write_report(folder / "d.duckdb", tmp_path, studies=tmp_path / "no.yaml")


def test_figures_are_on_the_page_of_their_study(folder, tmp_path):
    file = tmp_path / "figures/one/A-heatmap.json"
    file.parent.mkdir(parents=True)
    write(draw("heatmap", folder / "d.duckdb", log="A", title="</script><b>", interactive=True), file)
    write_report(folder / "d.duckdb", tmp_path / "site", read_figures([file]), studies=folder / "config.yaml")
    page = (tmp_path / "site/studies/one.html").read_text()
    assert "Drag across a heatmap" in page and "</script><b>" not in page
    assert "Drag across a heatmap" not in (tmp_path / "site/studies/waits.html").read_text()
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(SwflowError, match="not a figure"):
        read_figures([tmp_path / "no.json"])


@pytest.mark.slow
def test_a_published_value_of_zero_is_shown(folder, tmp_path):
    database = tmp_path / "d.duckdb"
    database.write_bytes((folder / "d.duckdb").read_bytes())
    with duckdb.connect(database, read_only=True) as connection:
        ((mean,),) = connection.execute("SELECT mean_wait_time FROM metrics WHERE run = 'A/easy'").fetchall()
    published(database, [
        ("A", "zero", 0.0, "A", "easy", "mean_wait_time"), ("A", "near", mean * 1.03, "A", "easy", "mean_wait_time"),
        ("A", "far", mean * 2, "A", "easy", "mean_wait_time"), ("Z", "gone", 1.0, "Z", "easy", "mean_wait_time"),
    ])  # fmt: skip
    write_report(database, tmp_path / "site", studies=folder / "asking.yaml")
    html = (tmp_path / "site/index.html").read_text()
    assert re.findall(r'aria-label="(0 within[^"]*)"', html) == [
        "0 within 1 %, 1 within 5 %, 0 within 10 %, 0 inside the draws, 0 another version of the log, "
        "0 another reading, 2 open, 1 not compared"
    ]
    assert "3 of 4 published values are compared: within 10\N{NO-BREAK SPACE}%: 1, " in html
    assert 'href="papers/some-2001.html"' in html
    html = (tmp_path / "site/tables.html").read_text()
    (table,) = (block for block in blocks(html) if block.get("name") == "reproduction")
    names = [column["name"] for column in table["columns"]]
    assert {row[names.index("column")]: row[names.index("difference")] for row in table["rows"]}["zero"] > 0
    study = (tmp_path / "site/studies/waits.html").read_text()
    sections = re.findall(r"<h2>([^<]+)</h2>", study.partition("<main")[2])
    assert sections[:2] == ["What the study asks and finds", "Published and computed values"]
    assert sections[-2:] == ["Runs of A", "Runs of B"]
    assert study.count('<details class="fold">') == 2
    # The title is that of a paper's tables, so this comes first.
    assert ">Of 3 published values, 1 are reproduced within 5" in study.replace("\u00a0", " ")


def test_published_values_are_shown_where_a_study_asks_for_them(folder, tmp_path):
    """Any study on a log of a paper was presented as a reproduction of it, before its own answer."""
    database = tmp_path / "d.duckdb"
    database.write_bytes((folder / "d.duckdb").read_bytes())
    published(database, [("A", "far", 1.0, "A", "easy", "mean_wait_time")])
    titled = {**CONFIG, "studies": {**CONFIG["studies"], "one": {**CONFIG["studies"]["one"], "title": "Some 2001"}}}
    (tmp_path / "titled.yaml").write_text(yaml.safe_dump(titled))
    for config, asking in ((folder / "config.yaml", set()), (tmp_path / "titled.yaml", {"one"}),
                           (folder / "asking.yaml", {"one", "waits"})):  # fmt: skip
        site = tmp_path / config.stem
        write_report(database, site, studies=config, draw=False)
        pages = {name: (site / f"{name}.html").read_text() for name in ("index", "studies/one", "studies/waits")}
        assert ("Papers</h2>" in pages["index"]) == bool(asking) == (site / "papers/some-2001.html").exists()
        for name in ("one", "waits"):
            shown = [
                words in pages[f"studies/{name}"] for words in ("published value", "Published and computed values")
            ]
            assert shown == [name in asking] * 2


def test_the_pages_begin_with_the_differences_that_studies_ask_for(folder, tmp_path):
    pairs = {"waits": [(f"{log}/easy", f"{log}/fcfs") for log in "AB"], "one": []}
    load([folder / "runs/A", folder / "runs/B"], tmp_path / "d.duckdb", asked=pairs)
    write_report(tmp_path / "d.duckdb", tmp_path / "site", studies=folder / "config.yaml", draw=False)
    index, study = ((tmp_path / f"site/{name}.html").read_text() for name in ("index", "studies/waits"))
    sections = re.findall(r"<h2>([^<]+)</h2>", index.partition("<main")[2])
    assert sections.index("All differences that the studies ask for") < sections.index("Schedulers on every workload")
    assert "Compared: easy with fcfs (the base), on A and B." in study
    texts = {row["s"] for block in blocks(index) for rows in block.get("datasets", {}).values() for row in rows
             if "s" in row}  # fmt: skip
    assert {"easy on A", "easy on B"} < texts and any("at least 8 weeks" in text for text in texts)
    assert "<dt>A/easy, base A/fcfs</dt>" in study and "to decide: at least 8 weeks" in study
    assert "Differences from the base" not in (tmp_path / "site/studies/one.html").read_text()


@pytest.mark.parametrize("jobs", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_jobs_that_are_submitted_at_once_have_no_offered_load(jobs, tmp_path):
    table = pl.DataFrame({
        "job_id": range(1, jobs + 1), "submit_time": [7.0] * jobs, "run_time": [10.0] * jobs, "processors": [2] * jobs,
        "estimate": [10.0] * jobs,
    })  # fmt: skip
    path = tmp_path / "A.parquet"
    write_workload(Workload(table, Machine.of(4), "A"), path)
    simulate_all(path, SCHEDULERS, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    write_report(tmp_path / "d.duckdb", tmp_path / "site")
    assert "all jobs are submitted at once" in (tmp_path / "site/logs/A.html").read_text()


def test_checks_and_coverage_are_shown(folder, tmp_path):
    database = tmp_path / "d.duckdb"
    database.write_bytes((folder / "d.duckdb").read_bytes())
    with duckdb.connect(database) as connection:
        connection.execute(
            'INSERT INTO checks (workload, "check", severity, message) '
            "VALUES ('A', 'clock', 'warning', 'Jobs end before they start.')"
        )
        connection.execute(
            "UPDATE coverage SET published = 9, compared = 7, within_1 = 3, within_5 = 4, within_10 = 5, open = 2, "
            "missing = 2 WHERE rowid = (SELECT min(rowid) FROM coverage)"
        )
    with duckdb.connect(database, read_only=True) as connection:
        ((paper,),) = connection.execute("SELECT paper FROM coverage WHERE compared = 7").fetchall()
    title = f"{read_papers()[paper]['authors']}, again"
    titled = {**CONFIG, "studies": {**CONFIG["studies"], "one": {**CONFIG["studies"]["one"], "title": title}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(titled))
    write_report(database, tmp_path / "site", studies=tmp_path / "config.yaml")
    html = (tmp_path / "site/index.html").read_text()
    assert (
        "Jobs end before they start." in html
        and "Jobs end before they start." in (tmp_path / "site/logs/A.html").read_text()
    )
    assert 'aria-label="3 within 1 %, 1 within 5 %, 1 within 10 %' in html


def test_every_kind_of_figure_has_a_caption():
    assert all(figure.about and not figure.about.endswith(".") for figure in FIGURES.values())


def test_an_operator_reads_that_no_published_value_was_compared(folder):
    for page in ("index", "tables"):
        html = (folder / "site" / f"{page}.html").read_text()
        assert "ublished" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)  # prose: ignore


def test_a_guessed_machine_size_is_not_a_fact_in_the_report(tmp_path):
    """The largest number of processors that were busy at once was presented as the size of the machine."""
    log = tmp_path / "A.swf"
    log.write_text("".join(f"{job} {60 * job} 5 90 4 -1 -1 4 90 -1 1 7 1 1 1 1 -1 -1\n" for job in range(1, 9)))
    write_workload(open_workload(log), tmp_path / "A.parquet")
    simulate_all(tmp_path / "A.parquet", SCHEDULERS, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    write_report(tmp_path / "d.duckdb", tmp_path / "site", draw=False)
    assert "the size of the machine is not stated: 8 processors (guessed: peak use)" in (
        tmp_path / "site/index.html"
    ).read_text().replace("\\u0028", "(")


@pytest.mark.slow
def test_the_overview_is_silent_on_the_recorded_waits(tmp_path):
    jobs = 60
    table = pl.DataFrame({
        "job_id": range(1, jobs + 1), "submit_time": [30.0 * job for job in range(jobs)], "wait_time": [600.0] * jobs,
        "run_time": [100.0] * jobs, "processors": [3] * jobs, "estimate": [100.0] * jobs,
    })  # fmt: skip
    path = tmp_path / "A.parquet"
    write_workload(Workload(table, Machine.of(4), "A"), path)
    simulate_all(path, SCHEDULERS | {"log": {"order": "log"}}, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    write_report(tmp_path / "d.duckdb", tmp_path / "site")
    html = (tmp_path / "site/index.html").read_text()
    assert "Recorded and simulated schedules, and what-ifs" in re.findall(r"<h2>([^<]+)</h2>", html)
    (table,) = (block for block in blocks(html) if block.get("name") == "recorded")
    with duckdb.connect(tmp_path / "d.duckdb", read_only=True) as connection:
        ((mean,),) = connection.execute("SELECT mean_wait_time FROM metrics WHERE scheduler = 'easy'").fetchall()
    rows = {row[1]: row[2:5] for row in table["rows"]}
    assert rows["easy"] == [600, pytest.approx(mean), pytest.approx(mean / 600)]


def test_the_record_is_compared_over_the_jobs_with_a_recorded_wait(tmp_path):
    table = pl.DataFrame({
        "job_id": range(1, 61), "submit_time": [30.0 * job for job in range(60)], "run_time": [100.0] * 60,
        "processors": [3] * 60, "estimate": [100.0] * 60,
    })  # fmt: skip
    waits = simulate(Workload(table, Machine.of(4), "A"), Scheduler())["wait_time"]
    table = table.with_columns(wait_time=pl.when(pl.col("job_id") <= 20).then(waits))  # the record is the simulation
    write_workload(Workload(table, Machine.of(4), "A"), tmp_path / "A.parquet")
    simulate_all(tmp_path / "A.parquet", {"fcfs": {}, "log": {"order": "log"}}, tmp_path / "runs")
    load([tmp_path / "runs"], tmp_path / "d.duckdb")
    write_report(tmp_path / "d.duckdb", tmp_path / "site", draw=False)
    html = (tmp_path / "site/index.html").read_text()
    (table,) = (block for block in blocks(html) if block.get("name") == "recorded")
    mean = pytest.approx(waits[:20].mean())
    assert table["rows"][0][1:6] == ["fcfs", mean, mean, 1, 1]
    assert "(100 % of the record, over the 20 jobs in both)" in (tmp_path / "site/headlines.csv").read_text()


def test_a_warning_of_all_logs_is_one_line(folder):
    """The overview listed "no wait times are recorded" once for each of six workloads."""
    html = (folder / "site/index.html").read_text()
    assert "All logs: no wait times are recorded" in html.replace("\u00a0", " ")
    rows = [row for block in blocks(html) if block.get("name") == "checks_of_some" for row in block["rows"]]
    assert not any("no wait times" in str(row) for row in rows)


def test_a_message_of_a_check_is_cut(folder):
    html = (folder / "site/tables.html").read_text()
    (table,) = (block for block in blocks(html) if block.get("name") == "checks")
    columns = {column["name"]: column for column in table["columns"]}
    assert columns["message"]["long"] and "long" not in columns["workload"]


def cells_of(html):
    """Return style, title, published value and ours of the cells of the papers' tables."""
    return re.findall(r'<td class="(\w+)" title="([^"]*)">.*?</span>([^<]*)<b>([^<]*)</b>', html)


def test_a_paper_has_a_page_with_its_tables_and_claims(folder, tmp_path):
    database = tmp_path / "d.duckdb"
    database.write_bytes((folder / "d.duckdb").read_bytes())
    with duckdb.connect(database, read_only=True) as connection:
        ((mean,),) = connection.execute("SELECT mean_wait_time FROM metrics WHERE run = 'A/easy'").fetchall()
    published(database, [
        ("late", "b", mean * 2, "A", "easy", "mean_wait_time"), ("late", "a", mean, "A", "easy", "mean_wait_time"),
        ("early", "a", 1.0, "Z", "easy", "mean_wait_time"),
    ])  # fmt: skip
    with duckdb.connect(database) as connection:
        connection.execute(
            "INSERT INTO claims (paper, section, claim, holds, logs, logs_held, other_logs, other_logs_held, sql) "
            "VALUES ('Some 2001', '1', 'Jobs wait.', 'does not hold', 2, 1, 1, 1, 'SELECT 1')"
        )
    write_report(database, tmp_path / "site", studies=folder / "asking.yaml")
    html = (tmp_path / "site/papers/some-2001.html").read_text()
    assert re.findall(r'<th scope="row" title="([^"]*)"', html) == ["late", "early"]  # the order of the paper
    assert re.findall(r'<th scope="col">(\w+)</th>', html) == ["b", "a"]
    found = cells_of(html)
    assert [cell[0] for cell in found] == ["open", "w1", "missing"]
    assert "(-50.00 %)" in found[0][1]
    assert found[2][3] == "–"
    (table,) = (block for block in blocks(html) if block.get("name") == "some-2001-table-i")
    names = [column["name"] for column in table["columns"]]
    assert [row[names.index("verdict")] for row in table["rows"]] == ["open", "within 1 %", "not compared"]
    assert table["rows"][2][names.index("explanation")] == "log not here"
    assert '<span class="chip far">does not hold</span>' in html
    assert "Holds on 1 of 2 logs of the paper and 1 of 1 other logs." in html
    assert '<a href="../studies/waits.html">' in html
    with duckdb.connect(database, read_only=True) as connection:
        for sql in re.findall(r"<pre tabindex=\"0\"><code>(SELECT .*?)</code>", html, flags=re.DOTALL)[:2]:
            assert connection.execute(unescape(sql)).fetchall()
    assert not (folder / "site/papers").exists()  # no value of a paper is compared there


def test_a_log_with_impossible_loads_has_a_warning(folder, tmp_path):
    database = tmp_path / "d.duckdb"
    database.write_bytes((folder / "d.duckdb").read_bytes())
    with duckdb.connect(database) as connection:
        connection.execute("INSERT INTO runs (run, workload, scheduler) VALUES ('A/log', 'A', 'log')")
        connection.execute("INSERT INTO correlations VALUES ('A/log', 'slowdown', 0.1, 100, 49)")
    write_report(database, tmp_path / "site", studies=folder / "config.yaml", draw=False)
    pages = [(tmp_path / "site/logs" / f"{log}.html").read_text().replace("\u00a0", " ") for log in ("A", "B")]
    assert ["49 % of the jobs meet a recorded load above 1" in page for page in pages] == [True, False]
