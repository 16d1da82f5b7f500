"""Sets of numbered processors as bits, against sets of Python."""

import random

import pytest

from helpers.sets import as_bits, as_set, runs_of
from swflow.scheduling.machine import allocation


def drawn(rng: random.Random, machine: int) -> set[int]:
    """Return a set that consists of long runs or of single processors."""
    ends = sorted(rng.choices([*range(machine + 1), 63, 64, 65, 128], k=rng.choice([0, 2, 4, 6])))
    runs = {one for first, after in zip(ends[::2], ends[1::2], strict=True) for one in range(first, after)}
    return {one for one in runs if one < machine} ^ {rng.randrange(machine) for _ in range(rng.choice([0, 1, 9]))}


@pytest.mark.parametrize("machine", [1, 5, 63, 64, 65, 128, 200])
def test_operations_equal_those_of_sets(machine: int) -> None:
    rng = random.Random(machine)
    for _ in range(60):
        one, other = drawn(rng, machine), drawn(rng, machine)
        if rng.random() < 0.3:
            other |= one
        bits = as_bits(one, machine)
        first, last = sorted(rng.choices([*range(machine), machine - 1, min(63, machine - 1)], k=2))
        between = set(range(first, last + 1))
        assert allocation.size_of(bits) == len(one)
        assert allocation.is_within(bits, as_bits(other, machine)) == (one <= other)
        for change, arguments, expected in (
            (allocation.add, (as_bits(other, machine),), one | other),
            (allocation.remove, (as_bits(other, machine),), one - other),
            (allocation.assign, (as_bits(other, machine),), other),
            (allocation.fill, (first, last), one | between),
            (allocation.clear, (first, last), one - between),
        ):
            changed = bits.copy()
            change(changed, *arguments)
            assert as_set(changed) == expected, (change, one, arguments)
        some = rng.choices(range(machine), k=4)
        for at in (*range(min(machine, 3)), *some, *range(max(machine - 2, 0), machine + 2)):
            later = [processor for processor in range(at, machine) if processor in one]
            assert allocation.next_in(bits, at, machine) == min(later, default=machine)
            outside = [processor for processor in range(at, machine) if processor not in one]
            assert allocation.next_out(bits, at, machine) == min(outside, default=machine)
            earlier = [processor for processor in range(min(at, machine)) if processor not in one]
            if at <= machine:
                assert allocation.last_out(bits, at) == max(earlier, default=-1)


@pytest.mark.parametrize("machine", [1, 5, 64, 65, 200])
def test_choices_equal_those_among_sorted_processors(machine: int) -> None:
    rng = random.Random(machine)
    for _ in range(60):
        free = drawn(rng, machine)
        bits, chosen = as_bits(free, machine), as_bits(drawn(rng, machine), machine)
        runs = runs_of(free, machine)
        lengths = [last - first + 1 for first, last in runs]
        enough = rng.randint(1, machine)
        longest = next((length for length in lengths if length >= enough), max(lengths, default=0))
        assert allocation.longest_run(bits, machine, enough) == longest
        for first, last in runs:
            inside = sorted(rng.choices(range(first, last + 1), k=2))
            run = as_bits(set(range(inside[0], inside[1] + 1)), machine)
            assert allocation.run_around(bits, run, machine) == last - first + 1
        for width in {1, len(free), *lengths, rng.randint(1, machine), machine}:
            if width == 0:
                continue
            found = allocation.choose(bits, width, allocation.FIRST_FIT, machine, chosen)
            assert found == (width <= len(free))
            assert as_set(chosen) == (set(sorted(free)[:width]) if found else set())
            found = allocation.choose(bits, width, allocation.FIRST_CONTIGUOUS, machine, chosen)
            starts = [first for first, last in runs if last - first + 1 >= width]
            assert found == bool(starts)
            assert as_set(chosen) == (set(range(starts[0], starts[0] + width)) if starts else set())
