"""The borders of packages: imports point downwards in the table of CONTRIBUTING.md, without circles."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"): path
           for path in (ROOT / "src/swflow").rglob("*.py")}  # fmt: skip

#: Packages that only some packages may import, and packages that import less than what is below them.
USERS = {"compiled": {"scheduling"}, "sites": {"cli"}}
LESS = {
    "jobs": {"values", "names", "errors"},
    "log": {"files", "jobs", "phrases", "columns", "values", "names", "errors"},
}


def imports(path: Path) -> Iterator[str]:
    """Yield the modules of swflow that a module imports, also inside functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{one.name}" for one in node.names}
            yield from (names & MODULES.keys()) or ({str(node.module)} & MODULES.keys())


USED = {name: sorted({*imports(path)} - {name, "swflow"}) for name, path in MODULES.items()}
EDGES = {(name, other, name.split(".")[1], other.split(".")[1])
         for name, used in USED.items() if name != "swflow" for other in used}  # fmt: skip


def test_imports_point_downwards_in_the_table_of_contributing():
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("Imports point downwards")[2].partition("\n\nInside")[0]
    order = re.findall(r"^\| `(\w+)(?:\.py)?` \|", section, re.MULTILINE)
    assert {*order} == {name.split(".")[1] for name in MODULES if name not in ("swflow", "swflow.__main__")}
    below = {package: LESS.get(package, {*order[place + 1 :]}) for place, package in enumerate(order)}
    below |= {package: allowed | {package} for package, allowed in below.items()} | {"__main__": {"cli"}}
    assert {edge[:2] for edge in EDGES if edge[3] not in below[edge[2]]} == set()


def test_some_packages_are_used_by_few():
    assert {(name, other) for name, other, user, used in EDGES if user not in {used, *USERS.get(used, {user})}} == set()
    assert not [other for other in USED["swflow.log.swf"] if "importers" in other]


def test_no_modules_import_in_a_circle():
    TopologicalSorter({name: used for name, used in USED.items() if name != "swflow"}).prepare()
    assert len(EDGES) > 800
