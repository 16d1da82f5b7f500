"""The tables of docs/reference/slurm.md follow from the package, and agree with the notes of `swflow import site`."""

import re
from pathlib import Path

from swflow.log.slurm.semantics import tables, written_into
from swflow.log.slurm.site_file import treatments
from swflow.scheduling.options import SCHEDULER_PARAMETERS

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_tables_of_the_package():
    text = (ROOT / "docs/reference/slurm.md").read_text()
    assert written_into(text) == text, "run: python -m swflow.log.slurm.semantics docs/reference/slurm.md"
    for section, rows in tables().items():
        assert f"\n## {section}\n" in text
        assert all(simulated in ("yes", "partly", "no") for _, simulated, _ in rows)


def test_a_changed_row_changes_the_page():
    page = "# Slurm\n\n## Limits\n\n| old |\n|---|\n| row |\n\nText.\n"
    assert "| submitted jobs (`MaxSubmitJobs`) | no |" in written_into(page)
    assert written_into(page).endswith("|\n\nText.\n") and "old" not in written_into(page)


def test_options_of_the_tables_are_simulated_as_the_notes_say():
    known = {name.rpartition(".")[2].lower(): one for name, one in treatments().items() if one is not None}
    checked = 0
    for section, rows in tables().items():
        for feature, simulated, _ in rows:
            for name in re.findall(r"`(\w+)`", feature):
                if name.lower() in known and section != "Limits":  # the notes on limits are about CPUs and others
                    assert known[name.lower()].simulated == simulated, name
                    checked += 1
    assert checked >= 10


def test_every_parameter_of_the_schedulers_is_in_a_table_and_simulated():
    features = {name: simulated for rows in tables().values() for feature, simulated, _ in rows
                for name in re.findall(r"`(\w+)`", feature)}  # fmt: skip
    parameters = {name for name in SCHEDULER_PARAMETERS if name != "end_delay"}
    assert {name: features.get(name) for name in parameters} == dict.fromkeys(parameters, "yes")
