"""Verdicts: the values that state the result of a comparison of a variant with its base."""

#: The verdicts on a variant and its base. The difference is always variant minus base.
BETTER, WORSE, NOT_DISTINGUISHABLE = "variant is better", "base is better", "not distinguishable"
EQUAL = "equal"

#: The verdicts without an answer, with the reason: too few weeks for an interval, or an interval that contains 0 over
#: weeks that depend on each other for as long as the log lasts, so that it is very wide.
TOO_FEW_WEEKS, DEPENDENT_WEEKS = "cannot tell: too few weeks", "cannot tell: dependent weeks"
CANNOT_TELL = (TOO_FEW_WEEKS, DEPENDENT_WEEKS)


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
