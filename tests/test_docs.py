"""The documentation: every example runs, and prints what the page says; every page is in the navigation."""

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import examples  # noqa: E402  its folder is on no path before

PAGES = {str(page.relative_to(ROOT)): page for page in examples.pages()}


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if examples.blocks(page)])
def test_examples_run_and_print_what_the_page_says(name, request, tmp_path):
    page = PAGES[name]
    folder = request.getfixturevalue("project") if examples.in_project(page) else tmp_path
    for block, printed in examples.run_page(page, folder):
        assert block.lines == printed, (
            f"{name}:{block.first}: run `python docs/examples.py {name}` and look at the difference"
        )


def test_a_page_that_says_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo 1\n2\n```\n")
    ((block, printed),) = examples.run_page(page, tmp_path)
    assert (block.lines, printed) == (["$ echo 1", "2"], ["$ echo 1", "1"])
    examples.rewrite(page, [(block, printed)])
    assert page.read_text() == "```console\n$ echo 1\n1\n```\n"
    page.write_text("```sh\nfalse\n```\n")
    with pytest.raises(AssertionError, match="exit status 1"):
        examples.run_page(page, tmp_path)


def test_what_is_not_run_says_why():
    for page in PAGES.values():
        for block in examples.blocks(page):
            assert block.reason is None or len(block.reason.split()) > 3


def test_twenty_questions_have_answers():
    blocks = examples.blocks(ROOT / "docs/how-to/twenty-questions.md")
    answers = [after for block, after in pairwise(blocks) if block.kind == "sql"]
    assert len(answers) == 20
    assert all(answer.kind == "text" and len(answer.lines) > 2 for answer in answers)


def test_every_page_is_in_the_navigation():
    config = (ROOT / "mkdocs.yml").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in config


def test_every_table_is_described():
    from swflow.database import TABLES

    described = yaml.safe_load((ROOT / "docs/reference/database.yaml").read_text())
    assert set(TABLES) | {"outcomes", "jobs"} <= described.keys()
    assert all(described[table].get("about") for table in described if table != "everywhere")


def test_the_readme_is_one_and_a_half_screens():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 110
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (ROOT / link).exists(), link
