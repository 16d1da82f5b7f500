"""Tests of conditions: they agree with Python's evaluation, and invalid ones are one-line errors."""

import itertools
import math
import operator

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from swflow.jobs.conditions import condition

ARITHMETIC = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow,
}  # fmt: skip
COMPARISONS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
COLUMNS = {"a": pl.Int64(), "b": pl.Int64(), "x": pl.Float64(), "killed": pl.Boolean()}


def computed(function):
    """Wrap a function of floats so that undefined arguments and results are None."""

    def value(*arguments):
        if None in arguments:
            return None
        try:
            result = function(*map(float, arguments))
        except (ArithmeticError, ValueError):
            return None
        return result if isinstance(result, float) and math.isfinite(result) else None

    return value


def either(left, right):
    """Return ``or`` with None for unknown values."""
    return True if left or right else None if None in (left, right) else False


def opposite(value):
    """Return ``not`` with None for unknown values."""
    return None if value is None else not value


# Each part of an expression is a pair of its text and a function of a row, computed with Python's operators.
literals = st.one_of(
    st.integers(0, 10), st.sampled_from([2**31, 2**32, 3 * 10**9, 2**53, 2**63, 10**30, 0.5, 1e-3, 1e300])
).map(lambda number: (repr(number), lambda row: number))
names = st.sampled_from(["a", "b", "x"]).map(lambda name: (name, lambda row: row[name]))


def larger_number(parts):
    """Return a strategy for numeric expressions of the given ones."""
    two = st.tuples(parts, st.sampled_from(sorted(ARITHMETIC)), parts).map(
        lambda part: (
            f"({part[0][0]} {part[1]} {part[2][0]})",
            lambda row: computed(ARITHMETIC[part[1]])(part[0][1](row), part[2][1](row)),
        )
    )
    return two | parts.map(
        lambda part: (f"(-{part[0]})", lambda row: None if part[1](row) is None else -float(part[1](row)))
    )


numbers = st.recursive(literals | names, larger_number, max_leaves=6)


def compared(parts):
    """Return the comparison of two or three numbers."""
    texts = " ".join([parts[0][0], *(f"{op} {part[0]}" for op, part in zip(parts[1], parts[2], strict=False))])

    def value(row):
        terms = [parts[0][1](row), *(part[1](row) for part in parts[2])]
        links = [
            None if None in pair else COMPARISONS[op](*pair)
            for op, pair in zip(parts[1], itertools.pairwise(terms), strict=False)
        ]
        return opposite(either(*map(opposite, links))) if len(links) == 2 else links[0]

    return f"({texts})", value


comparisons = st.integers(1, 2).flatmap(
    lambda links: st.tuples(
        numbers,
        st.lists(st.sampled_from(sorted(COMPARISONS)), min_size=links, max_size=links),
        st.lists(numbers, min_size=links, max_size=links),
    ).map(compared)
)
members = st.tuples(names, st.lists(st.integers(-3, 9), max_size=3), st.booleans()).map(
    lambda part: (
        f"({part[0][0]} {'not ' * part[2]}in {(*part[1],)})",
        lambda row: None if part[0][1](row) is None else (part[0][1](row) in part[1]) != part[2],
    )
)
unknowns = names.map(lambda name: (f"({name[0]} is null)", lambda row: name[1](row) is None))
flags = st.just(("killed", lambda row: row["killed"]))


def larger_condition(parts):
    """Return a strategy for conditions of the given ones."""
    one = parts.map(lambda part: (f"(not {part[0]})", lambda row: opposite(part[1](row))))
    some = st.tuples(parts, parts).map(
        lambda part: (f"({part[0][0]} or {part[1][0]})", lambda row: either(part[0][1](row), part[1][1](row)))
    )
    all_ = st.tuples(parts, parts).map(
        lambda part: (
            f"({part[0][0]} AND {part[1][0]})",
            lambda row: opposite(either(opposite(part[0][1](row)), opposite(part[1][1](row)))),
        )
    )
    return one | some | all_


conditions = st.recursive(comparisons | members | unknowns | flags, larger_condition, max_leaves=5)
whole = st.none() | st.integers(-5, 10) | st.sampled_from([2**31, -(2**33), 2**53])
rows = st.fixed_dictionaries({
    "a": whole, "b": whole,
    "x": st.none() | st.sampled_from([0.0, -0.5, 1.5, 3.0, 1e9, 1e308]) | st.floats(-100, 100),
    "killed": st.none() | st.booleans(),
})  # fmt: skip


@given(conditions, st.lists(rows, min_size=1, max_size=8))
def test_conditions_agree_with_pythons_evaluation(made, table):
    text, value = made
    frame = pl.DataFrame(table, schema=COLUMNS)
    kept = frame.select(condition(text, frame.schema, "here").alias("kept"))["kept"]
    kept = kept.to_list() * (len(table) // len(kept))
    assert kept == [value(row) is True for row in table]
    for row, is_kept in zip(table, kept, strict=True):  # without unknown values, compare with the interpreter
        if None not in row.values() and not any(word in text for word in ("null", "%", "//", "**")):
            try:
                expected = eval(text.replace("AND", "and"), {"__builtins__": {}}, row)
            except (ArithmeticError, TypeError):
                continue
            if all(abs(row[name]) < 2**50 for name in ("a", "b", "x")) and "1e" not in text and "10000" not in text:
                assert is_kept == expected


def test_negative_whole_numbers_are_compared_exactly():
    large = 2**53
    table = pl.DataFrame({"x": [-large - 1, -large, 5, None]})
    for text, found in {
        f"x == -{large + 1}": [-large - 1], f"x == -{large}": [-large], f"-{large} > x": [-large - 1], f"x < -{large}":
        [-large - 1], f"x in (-{large + 1}, 5)": [-large - 1, 5], "x == +5": [5], "x - -5 == 10": [5],
    }.items():  # fmt: skip
        assert table.filter(condition(text, table.schema, "where"))["x"].to_list() == found, text
