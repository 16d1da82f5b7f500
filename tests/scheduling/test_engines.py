"""The borders of the engines: which packages of `swflow.scheduling` import each other, and who mentions Slurm."""

import ast
import re
from pathlib import Path

import pytest

SCHEDULING = Path(__file__).parents[2] / "src" / "swflow" / "scheduling"


def imported(package: str) -> dict[str, set[str]]:
    """Return the modules of `swflow.scheduling` that each module of a package imports."""
    found: dict[str, set[str]] = {}
    for path in sorted((SCHEDULING / package).glob("*.py")):
        names = set[str]()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        found[path.name] = {name.removeprefix("swflow.scheduling.") for name in names if "swflow.scheduling." in name}
    return found


@pytest.mark.parametrize(
    ("package", "others"),
    [
        ("engine", {"slurm"}),
        ("slurm", {"engine"}),
        ("machine", {"engine", "slurm"}),
        ("state", {"engine", "slurm", "machine"}),
    ],
)
def test_a_package_does_not_import_what_is_above_or_beside_it(package: str, others: set[str]) -> None:
    modules = imported(package)
    assert len(modules) > 5
    assert {name: one for name, used in modules.items() for one in used if one.split(".")[0] in others} == {}


@pytest.mark.parametrize("package", ["engine", "machine", "state"])
def test_the_textbook_engine_does_not_mention_what_only_slurm_does(package: str) -> None:
    words = re.compile("slurm|qos|tier|preempt|cycle", re.IGNORECASE)
    assert [path.name for path in (SCHEDULING / package).glob("*.py") if words.search(path.read_text())] == []
