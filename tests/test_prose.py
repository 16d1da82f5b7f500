"""Tests of the checks of style and length in tools/prose.py and tools/words.py."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def tool(name):
    """Return a module of tools, which are no package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


prose, words = tool("prose"), tool("words")


def wording(path, text):
    path.write_text(text)
    return [line for line, _ in prose.wording(path, prose.phrases())]


def test_texts_in_python_are_checked_and_code_is_not(tmp_path):
    text = '''"""The scheduler is told the time."""
selective = "the scheduler is told"  # for want of a better name
def f(x):
    """Return who of the queue starts."""
    raise ValueError(f"{x}: nobody waits")
option(help="Jobs that come so many times as fast.")
note = "a file in the making"
query = "SELECT nobody FROM users WHERE so many"
'''
    assert wording(tmp_path / "module.py", text) == [1, 2, 2, 4, 5, 6, 7]


def test_comments_begin_with_a_noun(tmp_path):
    text = """width = 1  # of each job
# The width
# of each job.
height = 2
    # of each node
"""
    assert wording(tmp_path / "module.py", "if True:\n    " + text.replace("\n", "\n    ")) == [2, 6]


def test_texts_of_pages_and_scripts_are_checked_and_their_code_is_not(tmp_path):
    page = """<style>/* for want of a name */ .nobody {color: red}</style>
<p>{{ "nobody waits" }} The scheduler
is told the time.</p>
"""
    assert wording(tmp_path / "page.html", page) == [1, 3]
    script = "// nobody waits\nconst nobody = waits\nsay(`the job ${nobody} is told`)\n"
    assert wording(tmp_path / "page.js", script) == [1, 3]


def test_a_line_can_be_silenced(tmp_path):
    assert wording(tmp_path / "page.md", "It ends in 45 s.\n") == [1]
    assert wording(tmp_path / "page.md", "It ends in 45 s. <!-- prose: ignore -->\n") == []


def test_code_and_links_in_markdown_are_exempt(tmp_path):
    text = "See `nobody` and [users](nobody.md).\n\n```sh\necho nobody\n```\n"
    assert wording(tmp_path / "page.md", text) == []


def test_yaml_keys_and_names_are_exempt(tmp_path):
    text = "forgetful: {penalty: x} # nobody waits\nscheduler: first-fit-forgetful\n"
    assert wording(tmp_path / "config.yaml", text) == [1]


def test_wide_lines_are_found_unless_they_hold_one_sentence(tmp_path):
    page = tmp_path / "page.md"
    sentence = "This sentence is long " + "and it continues " * 6 + "until here."
    two = f"Short. {sentence}"
    table = "| " + "cell " * 40 + "|"
    page.write_text("\n".join([sentence, two, table, "```", two, "```"]))
    assert [line for line, _ in prose.widths(page)] == [2]


def test_a_line_that_would_be_a_row_of_the_table_above_it_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("| a | b |\n|---|---|\n| 1 | 2 |\nText of its own.\n\n| c |\n|---|\n\nMore text.\n")
    assert [line for line, _ in prose.tables(page)] == [4]


def test_every_phrase_has_a_suggestion():
    assert all(suggestion and pattern.pattern for pattern, suggestion in prose.phrases())


@pytest.mark.skipif(importlib.util.find_spec("codespell_lib") is None, reason="codespell is not installed")
def test_spelling_is_checked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Recieve the jobs.\n")  # prose: ignore
    assert [(path, line) for path, (line, _) in prose.spelling([page])] == [(page, 1)]


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="not a clone")
def test_readme_has_no_problems():
    assert prose.check([ROOT / "README.md"]) == {}


def test_pages_with_short_sentences_are_found():
    short = words.count("It runs. It ends.\n")
    connected = words.count("A job waits because its processors are busy, and therefore it starts later.\n")
    found = words.problems({"tutorials/a.md": short, "b.md": connected})
    assert any("docs/tutorials/a.md: 100% of the sentences" in problem for problem in found)
    assert not any("docs/b.md" in problem for problem in found)
    assert connected.connectives == 2
    assert words.count("A model (T. N. Minh, L. Wolters, 2009) repeats labels.\n").sentences == [10]
