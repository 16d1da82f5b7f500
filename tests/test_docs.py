"""Tests of the documentation: examples run and print the documented output; every page is in the navigation."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import examples  # noqa: E402  its folder is on no path before

PAGES = {str(page.relative_to(ROOT)): page for page in examples.pages()}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if examples.blocks(page)])
def test_examples_print_the_documented_output(name, request, tmp_path):
    page = PAGES[name]
    place = examples.place_of(page)
    folder = request.getfixturevalue(place) if place else tmp_path
    for block, printed in examples.run_page(page, folder):
        assert block.lines == printed, (
            f"{name}:{block.first}: output differs; run `python docs/examples.py {name}` and check the diff"
        )


def test_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 1\n2\n```\n")
    ((block, printed),) = examples.run_page(page, tmp_path)
    assert (block.lines, printed) == (["$ echo 1", "2"], ["$ echo 1", "1"])
    examples.rewrite(page, [(block, printed)])
    assert page.read_text() == "```console\n$ echo 1\n1\n```\n"
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(AssertionError, match="exit status 1"):
        examples.run_page(page, tmp_path)


def test_no_documented_table_is_empty():
    for name, page in PAGES.items():
        for block in examples.blocks(page):
            for line, after in pairwise([*block.lines, ""]):
                assert set(line) != {" ", "─"} or after.strip(), f"{name}:{block.first}: a table without a row"


@pytest.fixture
def clone(tmp_path) -> Path:
    """Return a folder with the benchmarks of a clone."""
    examples.make_clone(tmp_path / "clone")
    return tmp_path / "clone"


def test_excluded_blocks_have_a_reason_and_are_few():
    """A reason that begins with a file states that it runs the example instead."""
    reasons = [block.reason for page in PAGES.values() for block in examples.blocks(page) if block.reason]
    assert all(len(reason.split()) > 3 for reason in reasons)
    elsewhere = [reason for reason in reasons if "/" in reason.split()[0]]
    assert [reason for reason in elsewhere if not (ROOT / reason.split()[0]).is_file()] == []
    assert len(reasons) - len(elsewhere) <= 10


def test_twenty_questions_have_answers():
    blocks = examples.blocks(ROOT / "docs/how-to/twenty-questions.md")
    answers = [after for block, after in pairwise(blocks) if block.kind == "sql"]
    assert len(answers) == 20
    assert all(answer.kind == "text" and len(answer.lines) > 2 for answer in answers)


@pytest.mark.slow
def test_the_hours_with_the_longest_waits_follow_from_the_outcomes(project):
    """A query once rounded half hours up, and its printed output agreed with it."""
    blocks = examples.blocks(ROOT / "docs/how-to/twenty-questions.md")
    printed = next(after for block, after in pairwise(blocks) if "AS hour" in "".join(block.lines))
    waits: dict[int, list[float]] = {}
    outcomes = pl.read_parquet(project / "results/runs/example/easy.parquet", columns=["submit_time", "wait_time"])
    for submit, wait in outcomes.iter_rows():
        waits.setdefault(int(submit) // 3600 % 24, []).append(wait)
    longest = sorted(waits, key=lambda hour: -sum(waits[hour]) / len(waits[hour]))[:3]
    rows = [line.split() for line in printed.lines[2:]]
    assert [int(hour) for hour, _, _ in rows] == longest
    assert [int(jobs) for _, jobs, _ in rows] == [len(waits[hour]) for hour in longest]


def test_the_comparison_denies_no_feature_that_a_simulator_has():
    """The page denied Alea's failures and dependencies, stated a wrong format for Batsim, and omitted six projects."""
    page = (ROOT / "docs/comparison.md").read_text()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    names = table[0][1:]
    of = {row[0]: dict(zip(names, row[1:], strict=True)) for row in table if len(row) == len(table[0])}
    assert "failures" in of["power, failures"]["Alea"]
    assert of["dependencies between jobs"]["Alea"] == "DAGs"
    assert "JSON in version 5" in of["output"]["Batsim"]
    assert "library in the simulator's process" in of["custom policy"]["Batsim"]
    for project in ("HPCOpt", "ExaDigiT RAPS", "OpenDC", "ElastiSim", "SPARS", "WRENCH"):
        assert f"[{project}]" in page


def test_selective_reservations_are_not_lookahead():
    """Both words were used for EASY with k reservations, but each denotes another published algorithm."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for line in page.read_text().splitlines():
            assert not re.search(r"\b(selective|lookahead)\b", line, re.IGNORECASE), f"{page.name}: {line}"


def test_the_documentation_has_a_search_that_works_from_disk():
    assert {"search", "offline"} <= set(re.findall(r"^  - (\w+)", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in config


def test_the_sketch_of_the_database_names_its_tables():
    import generate

    described = yaml.safe_load((ROOT / "docs/reference/database.yaml").read_text())
    sketch = generate.SKETCH.partition("```text")[2].partition("```")[0]
    others = "studies of the config and are variant base study recipe workload job_id run scheduler"
    assert set(re.findall(r"[a-z_]+", sketch)) - set(others.split()) <= described.keys()


def test_every_table_is_described():
    from swflow.database.schema import TABLES

    described = yaml.safe_load((ROOT / "docs/reference/database.yaml").read_text())
    assert set(TABLES) | {"outcomes", "jobs"} <= described.keys()
    assert all(described[table].get("about") for table in described if table != "everywhere")


def test_readme_links_exist():
    text = (ROOT / "README.md").read_text()
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("heatmaps-synthetic-128-heatmap.png", "Heatmap of load and performance"),
        ("heatmaps-synthetic-128-difference.png", "Difference of two heatmaps"),
        ("sharing-synthetic-64-reservation-table.png", "Jobs on processors over time"),
        ("scaling-synthetic-128+d-256.png", "Sweep of a scaling parameter"),
        ("difference.png", "Difference of two heatmaps"),
    ],
)
def test_gallery_captions_follow_the_figure_not_the_study(name, title):
    import generate

    assert generate.caption_of(name)[0] == title
