"""
Write the tables of docs/reference/slurm.md: which parts of Slurm swflow simulates.

    python -m swflow.log.slurm.semantics docs/reference/slurm.md
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

#: The tables: rows of a feature, whether it is simulated, and a remark, by section.
_TABLES = Path(__file__).with_name("semantics.yaml")

#: A table below the heading of its section.
_TABLE = re.compile(r"(?<=\n## )(?P<section>[^\n]+)\n\n(?:\|[^\n]*\n)+")


def tables() -> Mapping[str, Sequence[tuple[str, str, str]]]:
    """Return the rows of each section: a feature of Slurm, `yes`, `partly` or `no`, and a remark."""
    content = yaml.safe_load(_TABLES.read_text(encoding="utf-8"))
    return {section: [(row[0], row[1], row[2]) for row in rows] for section, rows in content.items()}


def written_into(text: str) -> str:
    """Return the text of a page with the table of each section replaced; raise a `KeyError` if there is no table."""
    rows = tables()

    def table(found: re.Match[str]) -> str:
        lines = ["| Slurm | simulated | remark |", "|---|---|---|"]
        lines += [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows[found["section"]]]
        return f"{found['section']}\n\n" + "\n".join(lines) + "\n"

    return _TABLE.sub(table, text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(written_into(path.read_text(encoding="utf-8")), encoding="utf-8")
