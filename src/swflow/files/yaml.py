"""
YAML of swflow's own files and of catalogues by the C library, which parses it ten times faster than Python.

Other texts of users are parsed in Python, because the C library ends the process if a text is nested too deeply.
"""

from typing import Any

import yaml

#: The loader of plain values; in Python where PyYAML was built without the library.
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """Return the content of one of swflow's own YAML texts."""
    return yaml.load(text, SafeLoader)
