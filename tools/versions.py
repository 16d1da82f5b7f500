"""
Compare the installed packages with constraints.txt, the record of a tested set.

`python tools/versions.py` prints the packages that differ; `python tools/versions.py --write` records the installed
ones, after the tests have passed with them.
"""

import importlib.metadata
import re
import sys
from pathlib import Path

RECORD = Path(__file__).resolve().parents[1] / "constraints.txt"
#: Packages of the environment itself, and swflow.
OWN = {"pip", "setuptools", "swflow", "wheel"}


def normal(name: str) -> str:
    """Return the name of a package as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed() -> dict[str, str]:
    """Return the versions of the installed packages by name."""
    found = {normal(one.metadata["Name"]): one.version for one in importlib.metadata.distributions()}
    return {name: version for name, version in sorted(found.items()) if name not in OWN}


def recorded(text: str) -> dict[str, str]:
    """Return the versions in a file of constraints by name."""
    lines = [line.partition("==") for line in text.splitlines() if line and not line.startswith("#")]
    return {normal(name): version for name, _, version in lines}


def differences(record: dict[str, str], present: dict[str, str]) -> list[str]:
    """
    Return a line for each installed package that is not the recorded one.

    >>> differences({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "2.1", "d": "4"})
    ['b: tested 2, installed 2.1', 'd: not tested, installed 4']
    """
    return [
        f"{name}: {f'tested {record[name]}' if name in record else 'not tested'}, installed {version}"
        for name, version in present.items()
        if record.get(name) != version
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("".join(f"{name}=={version}\n" for name, version in installed().items()), encoding="utf-8")
    else:
        print("\n".join(differences(recorded(RECORD.read_text(encoding="utf-8")), installed())) or "no difference")
