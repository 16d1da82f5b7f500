"""Recognize accounting records of Slurm by the beginning of a file."""

import os
import re
import zlib
from pathlib import Path

from swflow.files.reading import BOM, is_file

#: The columns of sacct that are used, in lower case, and other names of some.
USED = (
    "jobid", "cluster", "user", "uid", "group", "gid", "account", "partition", "qos", "jobname", "state", "submit",
    "eligible", "start", "end", "elapsed", "elapsedraw", "suspended", "timelimit", "timelimitraw", "reqcpus",
    "alloccpus", "allocnodes", "reqmem", "alloctres", "reqtres", "totalcpu", "maxrss", "averss", "ntasks", "licenses",
    "reservation", "submitline", "constraints", "allocgres", "reqgres",
)  # fmt: skip
OTHER_NAMES = {"alloccpus": "ncpus", "allocnodes": "nnodes"}

#: All names of used columns.
_COLUMN_NAMES = {"jobidraw", *USED, *OTHER_NAMES.values()}


def is_accounting(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is the output of ``sacct -P``, ``sacct --json`` or jobcomp/filetxt."""
    begin = _begin_of(path)
    return begin[:1] == b"{" or is_jobcomp(begin) or _is_header(begin.partition(b"\n")[0])


def is_headless(path: str | os.PathLike[str]) -> bool:
    """Return whether a file looks like the output of ``sacct -P -n``: records between ``|`` without a header."""
    line = _begin_of(path).partition(b"\n")[0]
    return line.count(b"|") >= 4 and not line.startswith(b";") and not _is_header(line)


def is_jobcomp(text: bytes) -> bool:
    """Return whether a text is in the format of jobcomp/filetxt."""
    return text.lstrip().startswith(b"JobId=")


#: The line before the jobs in YAML of Slurm, after other keys and their values.
_YAML = re.compile(rb"(?:(?:%YAML|---|#|\.\.\.|[\w\"']+:|[ \t]+)[^\n]*\n)*?['\"]?jobs['\"]?:[ \t]*\n")


def is_yaml(text: bytes) -> bool:
    """Return whether a text is the output of ``sacct --yaml``."""
    return _YAML.match(text[: 1 << 16]) is not None


def _begin_of(path: str | os.PathLike[str]) -> bytes:
    """Return the beginning of a file, plain or gzipped; empty if it cannot be read."""
    if not is_file(path):
        return b""
    try:
        with Path(path).open("rb") as file:
            begin = file.read(1 << 16)
        if begin[:2] == b"\x1f\x8b":
            begin = zlib.decompressobj(31).decompress(begin)
    except (OSError, zlib.error):
        return b""
    return begin.removeprefix(BOM).lstrip()


def _is_header(line: bytes) -> bool:
    """Return whether a line names columns of sacct; the first line of a log has numbers or a ``;``."""
    if line.startswith(b";"):
        return False
    names = re.split(r"[|,;:\s]+", line.decode("utf-8", "replace").strip().lower())
    return "jobid" in names or len(_COLUMN_NAMES.intersection(names)) >= 2
