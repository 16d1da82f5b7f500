"""The tables of docs/reference/slurm.md agree with the package and with the notes of `swflow import site`."""

import re
from pathlib import Path

import pytest

from swflow.scheduling.nested_options import SCHEDULER_PARAMETERS
from swflow.sites.slurm_site import treatments

PAGE = Path(__file__).parents[2] / "docs/reference/slurm.md"


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, str, str]]:
    """Return section, feature of Slurm, and whether it is simulated, of every row."""
    found, section = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        cells = [cell.strip() for cell in line.split("|")]
        if line.startswith("|") and cells[1] != "Slurm" and set(cells[1]) != {"-"}:
            found.append((section, cells[1], cells[2]))
    return found


def test_every_row_says_whether_the_feature_is_simulated(rows: list[tuple[str, str, str]]):
    assert len(rows) > 40 and {simulated for _, _, simulated in rows} == {"yes", "partly", "no"}


def test_options_of_the_tables_are_simulated_as_the_notes_say(rows: list[tuple[str, str, str]]):
    known = {name.rpartition(".")[2].lower(): one for name, one in treatments().items() if one is not None}
    checked = 0
    for section, feature, simulated in rows:
        for name in re.findall(r"`(\w+)`", feature):
            if name.lower() in known and section != "Limits":  # the notes on limits are about CPUs and others
                assert known[name.lower()].simulated == simulated, name
                checked += 1
    assert checked >= 10


def test_every_parameter_of_the_schedulers_is_in_a_table_and_simulated(rows: list[tuple[str, str, str]]):
    features = {name: simulated for _, feature, simulated in rows for name in re.findall(r"`(\w+)`", feature)}
    parameters = {name for name in SCHEDULER_PARAMETERS if name != "end_delay"}
    assert {name: features.get(name) for name in parameters} == dict.fromkeys(parameters, "yes")
