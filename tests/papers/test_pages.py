"""The figures in the sentences of docs/papers and README.md, which a command writes from the archive's database."""

import re
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs"))

import papers  # noqa: E402  its folder is on no path before

#: Figures of the papers themselves, of the way a value is judged, and those that another test recomputes.
PRINTED = {
    "cirne-2001.md": {
        "98", "5",  # the survey, and section 3.3
        "0.143", "1.29", "1.51", "0.005",  # tests/workload/test_moldable_model.py
    },
    "ernemann-2003.md": {
        "1,024", "2.3814", "38.14", "26", "474,928,903", "9,482", "67,655",  # printed
        "2.62",  # 2 x .3814 + 3 x .6186
        "8.09",  # printed, a factor
        "1", "5", "10",  # tolerances
    },
    "guim-2007.md": {"10,000", "32,730", "44,940"},
    "index.md": {"1", "5", "95"},
    "krakov-2012.md": {"0.72"},
    "minh-2009.md": {"0.005", "3.3", "23,911", "37,517"},
}  # fmt: skip

FIGURE = re.compile(r"\d[\d,]*\.\d+|\d[\d,]*(?= ?%)|\d{1,3}(?:,\d{3})+")


def sentences(path):
    """Return a page without code, links and the figures that the command writes."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)|`[^`]*`", "", papers.NUMBER.sub("", text))


def test_the_pages_have_the_numbers_of_the_stored_run():
    """Without a database, the command compares the pages with the stored numbers."""
    done = subprocess.run(
        [sys.executable, ROOT / "docs/papers.py", "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_changed_number_is_found(tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    page.write_text(papers.PAGES[0].read_text() + "AWRT is <!--=kth-easy-awrt-->1<!--.--> s.\n")
    monkeypatch.setattr(papers, "PAGES", (page,))
    monkeypatch.setattr(sys, "argv", ["papers.py", "--check"])
    assert papers.main() == 1
    assert capsys.readouterr().out == f"{page}: differs\n"
    monkeypatch.setattr(sys, "argv", ["papers.py"])
    assert papers.main() == 0
    stored = {row["name"]: row["text"] for row in papers.read(papers.NUMBERS)}
    assert page.read_text().endswith(f"AWRT is <!--=kth-easy-awrt-->{stored['kth-easy-awrt']}<!--.--> s.\n")


def test_every_number_has_a_query_and_a_sentence():
    named = [match[1] for page in papers.PAGES for match in papers.NUMBER.finditer(page.read_text(encoding="utf-8"))]
    queries = papers.queries()
    assert set(named) == queries.keys()
    stored = {row["name"]: row["text"] for row in papers.read(papers.NUMBERS)}
    assert stored.keys() == queries.keys()
    assert "?" not in stored.values()


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_other_figures_are_those_of_the_paper(name):
    found = set(FIGURE.findall(sentences(ROOT / "docs/papers" / name)))
    assert found == PRINTED[name]


@pytest.mark.slow
def test_queries_of_numbers_fit_the_tables():
    """A query that names a missing table or column would never be written; columns of steps are missing here."""
    from swflow.database.schema import FIGURES, MEDIANS, TABLES
    from swflow.jobs.table import JOB_COLUMNS
    from swflow.papers.views import CELLS, CONVENTION_VALUES, PLACED, READINGS, REPRODUCTION, SENSITIVITY
    from swflow.scheduling.simulate import OUTCOME_COLUMNS

    with duckdb.connect() as connection:
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
        for table, names in (("jobs", JOB_COLUMNS), ("outcomes", OUTCOME_COLUMNS)):
            others = ", ".join(f'"{column}" {"BIGINT" if column == "processors" else "DOUBLE"}' for column in names)
            first = "workload VARCHAR" if table == "jobs" else "run VARCHAR, workload VARCHAR, scheduler VARCHAR"
            connection.execute(f"CREATE TABLE {table} ({first}, {others})")
        for view in (FIGURES, MEDIANS, PLACED, CELLS, READINGS, REPRODUCTION, CONVENTION_VALUES, SENSITIVITY):
            connection.execute(view)
        for name, sql in papers.queries().items():
            rows = connection.execute(sql).fetchall()
            assert len(rows) <= 1, name
