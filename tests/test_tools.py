"""The scripts for developers."""

import importlib.util
from pathlib import Path

TOOLS = Path(__file__).parents[1] / "tools"


def test_lines_of_code_are_those_without_docstrings_comments_and_blanks() -> None:
    specification = importlib.util.spec_from_file_location("size", TOOLS / "size.py")
    assert specification is not None and specification.loader is not None
    size = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(size)
    documented = 'def f():\n    """Return 1.\n\n    Twice.\n    """\n\n    # one\n'
    text = documented + '    x = (\n        1\n    )\n    return """a\n\n    b"""\n'
    assert size.code_lines(text) == 7
