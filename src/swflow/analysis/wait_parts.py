"""The parts into which the waits of jobs are divided, and their words."""

from collections.abc import Mapping
from typing import Any

from swflow.phrases import listed, share_of

#: The parts of a wait, in the order in which a second is given to the first that applies.
PARTS = ("eligibility", "limit", "room", "order", "latency")

#: The parts of ``room``; the rest of it is that running jobs leave too few processors or units of a resource.
OF_ROOM = ("fragmentation", "drain")

#: The columns of the table besides ``job_id``.
REASONS = ("eligibility", "limit", "room", "fragmentation", "drain", "order", "latency")

#: Each part of a wait, in a sentence.
WORDS: dict[str, str] = {
    "eligibility": "not eligible",
    "limit": "a limit",
    "room": "no room",
    "order": "order",
    "latency": "latency",
}


def in_words(means: Mapping[str, Any]) -> str:
    """
    Return the shares of the reasons of a mean wait, without those of 0.

    Examples
    --------
    >>> reasons = {"eligibility": 0.0, "limit": None, "room": 60.0, "order": 40.0, "latency": 0.0}
    >>> in_words({"wait": 100.0, "fragmentation": None, "drain": 25.0, **reasons})
    '60 % no room (of it 25 % drain) and 40 % order'
    """
    wait = means["wait"] or 1.0
    shares = {part: (means[part] or 0.0) / wait for part in PARTS}
    said = [f"{share_of(share)} {WORDS[part]}" for part, share in shares.items() if share >= 0.0005]
    of_room = {part: (means[part] or 0.0) / wait for part in OF_ROOM}
    inside = [f"{share_of(share)} {part}" for part, share in of_room.items() if share >= 0.0005]
    text = listed(said)
    return text.replace("no room", f"no room (of it {listed(inside)})") if inside else text
