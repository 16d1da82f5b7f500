"""Find the separator of a table in its header."""

import re
from collections import Counter

#: The separators that are looked for first, the most likely one first.
SEPARATORS = ("|", "\t", ";", ",")

#: Characters that names of columns contain, or that surround them.
_OF_NAMES = re.compile(r"[()\[\]{}\"'*°$€]|(?<!%)%(?!%)")
_IN_NAMES = {"", ".", "-", "/", ":", "=", "+"}

#: A line of a printed table that only separates other lines.
RULER = re.compile(rb"(?m)^[ \t]*[|+:=-][ \t|+:=-]*-[ \t|+:=-]*\r?(?:\n|\Z)")


def separator_of(header: str) -> str:
    """
    Return the most likely separator of a header: the most frequent one, else blanks.

    Examples
    --------
    >>> [separator_of(text) for text in ("id,start,end", "id;mean,of;end", "id||start||end", "id  start end", "id")]
    [',', ';', '||', ' ', ',']
    >>> [separator_of(text) for text in ("id^|^start^|^end", "id :: start :: end", "a (x),b (y),c (z)", "a~b~c")]
    ['^|^', '::', ',', '~']
    """
    bare = re.sub(r'"[^"]*"', "x", header)
    best = max(SEPARATORS, key=bare.count)
    gaps = (_OF_NAMES.sub("", gap).strip(" ") for gap in re.split(r"\w+", bare)[1:-1])
    odd = Counter(gap for gap in gaps if gap not in _IN_NAMES and not {*gap} <= {*SEPARATORS})
    for gap, count in odd.most_common(1):
        if count > 1 and count >= bare.count(best):
            return gap
    if best in bare:
        doubled = best * 2
        return doubled if best != "\t" and bare.count(doubled) * 2 == bare.count(best) else best
    return " " if re.search(r"\S\s+\S", bare.strip()) else ","
