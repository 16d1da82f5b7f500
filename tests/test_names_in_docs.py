"""Names that the documentation states: modules and functions of the package, and terms of the glossary."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def is_defined(name: str) -> bool:
    """Return whether a dotted name is a module of the package, or a module defines or imports its last parts."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        folder = ROOT / "src" / "/".join(parts[:end])
        file = next((file for file in (folder.with_suffix(".py"), folder / "__init__.py") if file.is_file()), None)
        if file is not None:
            rest = parts[end:]
            text = file.read_text(encoding="utf-8")
            return not rest or re.search(rf"\b{re.escape(rest[0])}\b", text) is not None
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_and_functions_exist(page):
    """A page named a module that had been renamed."""
    names = set(re.findall(r"`(swflow(?:\.[A-Za-z_]\w*)+)[`(]", page.read_text(encoding="utf-8")))
    assert {
        name for name in names if not is_defined(name) and not name.endswith((".duckdb", ".yaml", ".json"))
    } == set()


def test_the_glossary_is_sorted_and_has_the_terms_of_the_report():
    page = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^\| ([^|]+?) \|", page, flags=re.MULTILINE)[1:]
    assert terms == sorted(terms, key=str.lower) and len(terms) == len(set(terms))
    needed = {"base", "variant", "verdict", "score", "saturated", "recipe", "catalogue", "offered load", "decade",
              "dominate", "replicate", "contrast", "not distinguishable", "Holm correction"}  # fmt: skip
    assert needed <= set(terms)
