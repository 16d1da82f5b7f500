"""The one exception that a user is meant to read: a single line, without a traceback."""

import difflib
from collections.abc import Iterable


class SwflowError(Exception):
    """What is wrong and what to do about it, in one line that names the file, line or config key."""


def suggest(word: str, known: Iterable[str]) -> str:
    """
    Return what to say after naming an unknown word: the nearest known one, or all of them.

    Examples
    --------
    >>> suggest("eazy", ["none", "easy"]), suggest("xyz", ["none", "easy"])
    ("; did you mean 'easy'?", '; known are none, easy')
    """
    spelt = {name.lower(): name for name in known}
    guess = difflib.get_close_matches(str(word).lower(), spelt, 1)
    if guess:
        return f"; did you mean {spelt[guess[0]]!r}?"
    return f"; known are {', '.join(spelt.values())}" if spelt else "; none is known"
