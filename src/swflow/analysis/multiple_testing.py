"""Corrections for the number of comparisons: Holm's method, and the columns of verdicts in table ``comparisons``."""

from collections.abc import Sequence
from typing import Any

from swflow.analysis.intervals import Estimate
from swflow.analysis.long_run import CONFIDENCE
from swflow.analysis.verdicts import BETTER, NOT_DISTINGUISHABLE, TOO_FEW_WEEKS, WORSE, better


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

    The rows have ``family``, ``score``, ``mean_difference`` and the result of `columns_of` for both. The rows of a
    family are corrected together, once for scores and once for differences. Each row gets ``family_size``, the number
    of rows of the family that have an interval. ``better`` is the run that wins more than half of the jobs, unless the
    corrected verdict of the score is ``not distinguishable`` or ``equal``.
    """
    families: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        families.setdefault(row["family"], []).append(row)
    for family in families.values():
        size = sum(row["mean_p"] is not None or row["score_p"] is not None for row in family)
        for row in family:
            row["family_size"] = size
        for name, value in (("score", "score"), ("mean", "mean_difference")):
            for row, adjusted in zip(family, holm([row[f"{name}_p"] for row in family]), strict=True):
                row[f"{name}_p_holm"] = adjusted
                verdict = row[f"{name}_verdict"]
                if adjusted is not None:
                    verdict = better(row[value], name != "score") if adjusted < 1 - CONFIDENCE else NOT_DISTINGUISHABLE
                row[f"{name}_verdict_holm"] = verdict
    for row in rows:
        row["better"] = None
        if row["score_verdict_holm"] in (BETTER, WORSE, TOO_FEW_WEEKS):
            if row["variant_wins"] > 0.5 and row["score"] > 0:
                row["better"] = row["variant"]
            elif row["base_wins"] > 0.5 and row["score"] < 0:
                row["better"] = row["base"]


def family_of(log: str, measure: str, replicate: int | None, replicates: bool) -> str:
    """
    Return the name of the family of comparisons that are corrected together.

    Examples
    --------
    >>> family_of("KTH-SP2", "wait_time", None, False), family_of("KTH-SP2", "wait_time", 3, False)
    ('KTH-SP2, wait_time, weeks', 'KTH-SP2, wait_time, weeks of replicate 3')
    """
    basis = "replicates" if replicates else "weeks"
    return f"{log}, {measure}, {basis}" + (f" of replicate {replicate}" if replicate is not None else "")
