"""
The scheduler part of the config's JSON schema, generated from the table of options.

    python -m swflow.scheduling.schema workflow/schemas/config.schema.yaml

writes it into the schema, where it is the block below ``schedulers``.
"""

import re
import sys
from pathlib import Path

from swflow.scheduling.options import OPTIONS, schema_of

#: The lines before and after the block.
_BLOCK = re.compile(r"(?<=\n        # options: generated\n).*?(?=        # end of options\n)", re.DOTALL)


def properties() -> dict[str, object]:
    """Return the JSON schema of each option."""
    return {name: {"description": option.meaning} | schema_of(name) for name, option in OPTIONS.items()}


def written_into(text: str) -> str:
    """Return the text of a schema with the block of options replaced."""
    import yaml

    block = yaml.safe_dump(properties(), sort_keys=False, width=110, allow_unicode=True)
    lines = "".join(f"        {line}\n" if line else "\n" for line in block.splitlines())
    return _BLOCK.sub(lambda _: lines, text)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(written_into(path.read_text()))
