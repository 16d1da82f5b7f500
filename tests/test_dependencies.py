"""Tests of the stated dependencies: `.ci/run` tests the lower bounds, so the two lists must agree."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_oldest_tested_versions_are_the_lower_bounds() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = dict(re.fullmatch(r"([\w-]+)>=([\d.]+),<\d[\d.]*", text).groups() for text in stated)
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert tested.keys() == bounds.keys()
    for name, version in bounds.items():
        parts, least = ([int(part) for part in text.split(".")] for text in (tested[name], version))
        assert parts[: len(least)] == least and not any(parts[len(least) :]), name
