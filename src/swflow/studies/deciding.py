"""What would decide a comparison that shows no difference: more weeks, more replicates, or another workload."""

from swflow.analysis.intervals import FEWEST_WEEKS, of_interval
from swflow.analysis.sample_size import blocks_needed
from swflow.analysis.verdicts import DEPENDENT_WEEKS, NOT_DISTINGUISHABLE, SATURATED, TOO_FEW_WEEKS

#: Larger numbers of weeks or replicates are not stated.
MOST_BLOCKS = 1000


def blocks_to_decide(
    base: float, difference: float, low: float | None, high: float | None, blocks: int, freedom: float | None
) -> int | None:
    """
    Return the weeks or replicates that show a difference as large as the observed one with a probability of 80 %.

    ``low`` and ``high`` are the ends of the difference's interval over ``blocks`` weeks or replicates. None if there is
    no interval, or the base is 0, or the number is too large to state.

    Examples
    --------
    >>> blocks_to_decide(7200.0, -1200.0, -2400.0, 300.0, 9, 8 / 1.5)
    23
    >>> blocks_to_decide(7200.0, -1200.0, None, None, 3, None)
    """
    if low is None or high is None or not freedom or not base > 0:
        return None
    found = of_interval(difference, low / base, high / base, blocks, freedom, base)
    return blocks_needed(found, abs(found.center))


def what_decides(verdict: str, needed: int | None, blocks: int, basis: str) -> str:
    """
    Return what would decide a comparison with this verdict in a few words; empty if it is decided.

    ``needed`` is the result of `blocks_to_decide`; there are ``blocks`` weeks or replicates (``basis``).

    Examples
    --------
    >>> what_decides("not distinguishable", 23, 9, "weeks")
    'about 23 weeks (9 here)'
    >>> what_decides("not distinguishable", 10**6, 9, "weeks"), what_decides("base is better", None, 9, "weeks")
    ('more than 1,000 weeks (9 here)', '')
    """
    match verdict:
        case _ if verdict == NOT_DISTINGUISHABLE and needed is not None:
            least = max(needed, blocks + 1)
            number = f"about {least:,}" if least <= MOST_BLOCKS else f"more than {MOST_BLOCKS:,}"
            return f"{number} {basis} ({blocks:,} here)"
        case _ if verdict == NOT_DISTINGUISHABLE:
            return f"more {basis} ({blocks:,} here)"
        case _ if verdict == TOO_FEW_WEEKS:
            return f"at least {FEWEST_WEEKS} weeks ({blocks:,} here)"
        case _ if verdict == DEPENDENT_WEEKS:
            return f"a longer log, or replicates: its {blocks:,} weeks depend on each other"
        case _ if verdict == SATURATED:
            return "a lower load: the queue of the better run grows over the log"
        case _:
            return ""
