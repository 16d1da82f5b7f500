"""Resolve the Include lines of slurm.conf to files in its folder: no other file is read."""

import os
from fnmatch import fnmatchcase
from pathlib import Path

from swflow.errors import SwflowError

#: Limits of the included files: how deep they include each other, their number (a file counts each time), their bytes.
DEPTH, FILES, BYTES = 10, 1000, 2**26

#: Files next to slurm.conf that it does not include.
_OTHERS = (
    "acct_gather.conf", "burst_buffer.conf", "cgroup.conf", "ext_sensors.conf", "gres.conf", "helpers.conf",
    "job_container.conf", "knl_generic.conf", "mpi.conf", "namespace.yaml", "oci.conf", "plugstack.conf",
    "resources.yaml", "slurmdbd.conf", "topology.conf", "topology.yaml",
)  # fmt: skip


class Includes:
    """
    The files that a slurm.conf includes.

    The file of an absolute path, which is that on the cluster, is searched in the folder of slurm.conf, too, by ever
    shorter ends of the path. Links out of the folder, hidden files and special files are refused. ``cluster`` and
    ``host``, which slurm.conf states, replace ``%c`` and ``%h`` in names.
    """

    def __init__(self, conf: Path, cluster: str = "", host: str = "") -> None:
        self.conf = conf
        self.names = {"%c": cluster, "%h": host}
        self._folder = Path(os.path.realpath(conf.parent))
        self._files = self._bytes = 0

    def files_of(self, text: str, place: object, depth: int) -> list[Path]:
        """
        Return the files of an Include line, and count them; several for a pattern such as ``*.conf``.

        ``%c`` in the name is the cluster and ``%h`` the host of the controller; one that slurm.conf does not state is
        any name, if there is only one such file. ``place`` is the line, for errors, and ``depth`` the number of files
        around it. Raise `SwflowError` if there is no such file, or a limit is exceeded.
        """
        if depth == DEPTH:
            raise SwflowError(f"{place}: files include each other more than {DEPTH} deep; remove the cycle")
        name, is_open = text, False
        for mark, meaning in self.names.items():
            is_open |= mark in text and not meaning
            name = name.replace(mark, meaning or "*")
        found = self._found(Path(name))
        if len(found) > 1 and is_open:
            lacking = "ClusterName" if "%c" in text and not self.names["%c"] else "SlurmctldHost"
            raise SwflowError(
                f"{place}: Include {_short(text)}: {len(found)} such files, and no {lacking}; expected {lacking}=NAME"
            )
        if not found:
            raise SwflowError(f"{place}: Include {_short(text)}: no such file; copy it next to {self.conf.name}")
        for file in found:
            self._files += 1
            self._bytes += file.stat().st_size
        if self._files > FILES:
            raise SwflowError(f"{place}: more than {FILES:,} included files; expected fewer; join them")
        if self._bytes > BYTES:
            raise SwflowError(f"{place}: more than {BYTES // 2**20} MiB in included files; expected less")
        return found

    def _found(self, named: Path) -> list[Path]:
        """Return the files with a path in the folder, or else those with the longest end of it."""
        parts = named.parts
        if named.is_absolute() and named.is_relative_to(self.conf.parent.absolute()):
            parts = named.relative_to(self.conf.parent.absolute()).parts
        for begin in range(len(parts)):
            relative = parts[begin:]
            if ".." not in relative and not Path(*relative).is_absolute():
                found = [self.conf.parent / path for path in self._matching(Path(*relative), begin > 0)]
                if found:
                    return found
        return []

    def _matching(self, relative: Path, is_end: bool) -> list[Path]:
        """
        Return the file of a path in the folder, or those whose names match it; folders have no patterns.

        The end of a pattern's path, such as ``*.conf``, matches no file that is slurm.conf or has another purpose.
        """
        outer = self._folder / relative.parent
        names = [relative.name]
        if not (self._folder / relative).exists() and outer.is_dir():
            names = sorted(entry.name for entry in os.scandir(outer) if fnmatchcase(entry.name, relative.name))
            if is_end or relative.parent == Path():
                names = [name for name in names if name not in (*_OTHERS, self.conf.name)]
        return [relative.parent / name for name in names if self._is_inside(relative.parent / name)]

    def _is_inside(self, relative: Path) -> bool:
        """Return whether a path is a regular file in the folder, neither hidden nor a link to a hidden one."""
        path = Path(os.path.realpath(self._folder / relative))
        if not path.is_relative_to(self._folder) or not path.is_file():
            return False
        return not any(part.startswith(".") for part in (*relative.parts, *path.relative_to(self._folder).parts))


def _short(text: str) -> str:
    """Return the name in an Include line for a message."""
    return text if text.isprintable() and len(text) <= 80 else f"{text[:77]!r}…"
