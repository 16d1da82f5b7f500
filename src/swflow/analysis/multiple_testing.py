"""Corrections for the number of comparisons: Holm's method, and the columns of verdicts in table ``comparisons``."""

from collections.abc import Sequence
from typing import Any

from swflow.analysis.intervals import Estimate
from swflow.analysis.long_run import CONFIDENCE
from swflow.analysis.verdicts import BETTER, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, WORSE


def holm(p: Sequence[float | None]) -> list[float | None]:
    """
    Adjust the p-values of a family by Holm's method: results below 5 % hold simultaneously.

    None values are not members of the family. The adjusted p-values are at least ``p`` and at most 1.

    References
    ----------
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6(2), 1979.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    members = sorted((value, place) for place, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, place) in enumerate(members):
        highest = max(highest, min(1.0, value * (len(members) - rank)))
        adjusted[place] = highest
    return adjusted


def corrected(verdict: str, adjusted: float | None) -> str:
    """
    Return the verdict of a comparison after the correction, from its own verdict and its adjusted p-value.

    Examples
    --------
    >>> corrected("base is better", 0.03), corrected("base is better", 0.06), corrected("equal", None)
    ('base is better', 'not distinguishable', 'equal')
    """
    decided = verdict in (BETTER, WORSE)
    return NOT_DISTINGUISHABLE if decided and adjusted is not None and adjusted >= 1 - CONFIDENCE else verdict


def columns_of(name: str, found: Estimate) -> dict[str, str | float | None]:
    """Return the columns of a statistic (``score`` or ``mean``) in a table of comparisons; `correct` adds the rest."""
    low, high = found.interval
    verdict = found.verdict(smaller_is_better=name != "score")
    return {
        f"{name}_low": low, f"{name}_high": high, f"{name}_p": found.p, f"{name}_verdict": verdict,
        f"{name}_freedom": None if low is None else found.freedom,
        f"{name}_p_holm": None, f"{name}_verdict_holm": verdict,
    }  # fmt: skip


def correct(rows: Sequence[dict[str, Any]]) -> None:
    """
    Fill in the p-values and verdicts that are corrected for the number of comparisons.

    The rows have ``family``, ``score`` and the result of `columns_of` for scores and differences. The rows of a
    family are corrected together, once for scores and once for differences. Each row gets ``family_size``, the number
    of rows of the family that have an interval. ``better`` is the run that wins more than half of the jobs, unless the
    corrected verdict of the score is ``not distinguishable``, ``cannot tell: dependent weeks`` or ``equal``.
    """
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family in families.values():
        size = sum(row["mean_p"] is not None or row["score_p"] is not None for row in family)
        for row in family:
            row["family_size"] = size
        for name in ("score", "mean"):
            for row, adjusted in zip(family, holm([row[f"{name}_p"] for row in family]), strict=True):
                row[f"{name}_p_holm"] = adjusted
                row[f"{name}_verdict_holm"] = corrected(row[f"{name}_verdict"], adjusted)
    for row in rows:
        row["better"] = None
        if row["score_verdict_holm"] in (BETTER, WORSE, TOO_FEW_WEEKS):
            if row["variant_wins"] > 0.5 and row["score"] > 0:
                row["better"] = row["variant"]
            elif row["base_wins"] > 0.5 and row["score"] < 0:
                row["better"] = row["base"]
