"""The choices of a scheduler that kernels receive as numbers."""

from enum import IntEnum


class Choice(IntEnum):
    """A choice of an option, by its name in capital letters with underscores."""

    @classmethod
    def number_of(cls, choice: str) -> int:
        """
        Return the number of a choice.

        Examples
        --------
        >>> Allocation.number_of("first-fit")
        1
        """
        return cls[choice.replace("-", "_").upper()].value


class Backfill(Choice):
    """The backfills of one event loop; from ``CONSERVATIVE`` on, the queue is a tree of the starts of reservations."""

    NONE = 0
    EASY = 1
    CONSERVATIVE = 2
    RESERVATION_TABLE = 3


class Allocation(Choice):
    """The allocations; from ``LEAST_SHARED`` on, they depend on the resources that the processes of a node share."""

    COUNT = 0
    FIRST_FIT = 1
    LONGEST_IDLE = 2
    FIRST_CONTIGUOUS = 3
    LEAST_SHARED = 4
    THRESHOLD = 5


class Dispatch(Choice):
    """The dispatch rules."""

    ROUND_ROBIN = 0
    LEAST_LOADED = 1
    EARLIEST_START = 2
    PARTITION = 3
