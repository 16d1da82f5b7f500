"""Split the lines of a table whose columns have fixed widths, as ``squeue`` prints it."""

import re
from collections.abc import Sequence


class Aligned:
    """
    The columns of a table between blanks, each aligned with the right or left end of its name in the header.

    A line with as many words as the header has one word per column. Such lines show how each column is aligned; the
    others, which have empty cells or blanks in a cell, are cut at the ends of the columns.

    Examples
    --------
    >>> table = Aligned("JOBID     NAME ST", ["    5    train PD", "  100 my train  R", "    7           R"])
    >>> table.cells("  100 my train  R"), table.cells("    7           R")
    (['100', 'my train', 'R'], ['7', '', 'R'])
    """

    def __init__(self, header: str, lines: Sequence[str]) -> None:
        self._names = [match.span() for match in re.finditer(r"\S+", header)]
        whole = [found for line in lines if len(found := _words(line)) == len(self._names)]
        last = len(self._names) - 1
        self._is_right = [
            self._agree(whole, place, 1) and not (place == last and self._agree(whole, place, 0))
            if whole
            else header.startswith(" ") and place < last
            for place in range(len(self._names))
        ]
        self._is_cut = all(
            is_right or self._agree(whole, place, 0) for place, is_right in enumerate(self._is_right)
        )  # else the columns have no fixed widths

    def _agree(self, whole: Sequence[Sequence[tuple[int, int]]], place: int, end: int) -> bool:
        """Return whether the begin (0) or end (1) of all values of a column is that of its name."""
        return all(words[place][end] == self._names[place][end] for words in whole)

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a line; None if they are unclear."""
        spans = _words(line)
        if len(spans) == len(self._names):
            return [line[begin:end] for begin, end in spans]
        if not self._is_cut:
            return None
        cuts = [0]
        for place, (_, end) in enumerate(self._names[:-1]):
            if self._is_right[place]:
                cuts.append(end)
            elif self._is_right[place + 1]:
                cuts.append(max(line.find(" ", end), end))
            else:
                cuts.append(self._names[place + 1][0])
        parts = [line[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(line)], strict=True)]
        # A value that goes beyond its column to the right is not aligned as the others.
        is_torn = any(
            is_right and line[cut - 1 : cut].strip() and line[cut : cut + 1].strip()
            for cut, is_right in zip(cuts[1:], self._is_right, strict=False)
        )
        return None if is_torn else [part.strip() for part in parts]


def _words(line: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", line)]
