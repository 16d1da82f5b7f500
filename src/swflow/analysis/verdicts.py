"""Verdicts: the values that state the result of a comparison of a variant with its base, and their words."""

#: The verdicts on a variant and its base. The difference is always variant minus base.
BETTER, WORSE, NOT_DISTINGUISHABLE = "variant is better", "base is better", "not distinguishable"
EQUAL = "equal"

#: The verdicts without an answer, with the reason: too few weeks for an interval; an interval that contains 0 over
#: weeks that depend on each other for as long as the log lasts, so that it is very wide; or a run that would be better,
#: but whose queue grows over the log, so that its waits depend on the length of the log.
TOO_FEW_WEEKS, DEPENDENT_WEEKS = "cannot tell: too few weeks", "cannot tell: dependent weeks"
SATURATED = "cannot tell: saturated"
CANNOT_TELL = (TOO_FEW_WEEKS, DEPENDENT_WEEKS, SATURATED)

#: The direction of a decided change of a time, and of a slowdown.
DIRECTIONS: dict[str, str] = {BETTER: "shorter", WORSE: "longer"}
SIZES: dict[str, str] = {BETTER: "smaller", WORSE: "larger"}

#: What a comparison without a difference states of both sides.
WITHOUT_DIFFERENCE: dict[str, str] = {
    EQUAL: "are equal",
    NOT_DISTINGUISHABLE: "are not distinguishable",
    TOO_FEW_WEEKS: "cannot be distinguished over so few weeks",
    DEPENDENT_WEEKS: "cannot be distinguished because the weeks depend on each other",
    SATURATED: "cannot be compared because a queue grows over the whole log",
}


def better(value: float, smaller_is_better: bool) -> str:
    """
    Return the verdict that the sign of a difference implies if its interval excludes 0.

    Examples
    --------
    >>> better(-3.0, smaller_is_better=True), better(-3.0, smaller_is_better=False)
    ('variant is better', 'base is better')
    """
    if value == 0:
        return NOT_DISTINGUISHABLE
    return BETTER if (value < 0) == smaller_is_better else WORSE


def without_saturated_winner(verdict: str, variant: float | None, base: float | None) -> str:
    """
    Return the verdict, or ``cannot tell: saturated`` if the better run is saturated.

    ``variant`` and ``base`` are the metric ``saturated`` of the two runs.

    Examples
    --------
    >>> without_saturated_winner("variant is better", 1, 0), without_saturated_winner("variant is better", 0, 1)
    ('cannot tell: saturated', 'variant is better')
    """
    return SATURATED if {BETTER: variant, WORSE: base}.get(verdict) else verdict
