"""Verdicts: the values that state the result of a comparison of a variant with its base."""

#: The verdicts on a variant and its base. The difference is always variant minus base.
BETTER, WORSE, NOT_DISTINGUISHABLE = "variant is better", "base is better", "not distinguishable"
EQUAL, TOO_FEW_WEEKS = "equal", "too few weeks"


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
