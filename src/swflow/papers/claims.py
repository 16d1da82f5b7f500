"""Claims of the papers, each checked by a query of the database."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from swflow.errors import reason_of

if TYPE_CHECKING:
    import duckdb

#: The verdicts on a claim.
HOLDS, FAILS, UNCHECKED = "holds", "does not hold", "cannot be checked here"


def published_claims() -> list[dict[str, Any]]:
    """
    Return the claims of all papers.

    Returns
    -------
    list of dict
        ``paper``, ``section``, ``claim``, ``logs`` (the logs of the paper, by their names here), and ``sql``: a query
        that returns ``log``, ``holds`` (boolean, null if the log has no evidence) and ``evidence`` (text).

    Examples
    --------
    >>> sorted({claim["paper"] for claim in published_claims()})
    ['Cirne 2001', 'Ernemann 2003', 'Guim 2007', 'Krakov 2012', 'Minh 2009']
    """
    claims: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))
    return claims


def check_claims(
    connection: "duckdb.DuckDBPyConnection", claims: Iterable[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """
    Check the claims of the papers on the runs of a database.

    The verdict is about the logs that the paper used: ``holds`` if the claim holds on all of them that are here, and
    ``does not hold`` if it fails on one. Other logs are counted apart. Without runs of a log of the paper, and if the
    query fails because a table or column is missing, the claim ``cannot be checked here``.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The database, with its views.
    claims : iterable of dict, optional
        As `published_claims` returns them, which is the default.

    Returns
    -------
    list of dict
        One row per claim, with the columns of table ``claims``.
    """
    return [_checked(connection, claim) for claim in (published_claims() if claims is None else claims)]


def _checked(connection: "duckdb.DuckDBPyConnection", claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a claim."""
    import duckdb

    sql = claim["sql"].strip()
    found: dict[str, tuple[bool, str]] = {}
    missing: str | None = "no run has the evidence"
    try:
        for log, holds, evidence in connection.execute(sql).fetchall():
            if log is not None and holds is not None:
                before = found.get(log, (True, ""))
                found[log] = (before[0] and holds, ", ".join(filter(None, (before[1], evidence))))
    except duckdb.Error as error:
        missing = reason_of(error)
    own, other = (
        {log: found[log] for log in sorted(found) if (log in claim["logs"]) == of_paper} for of_paper in (True, False)
    )
    held, other_held = (sum(holds for holds, _ in some.values()) for some in (own, other))
    texts = [
        f"{log}{mark} {'holds' if holds else 'does not hold'} ({evidence})"
        for some, mark in ((own, ":"), (other, ", not in the paper:"))
        for log, (holds, evidence) in some.items()
    ]
    return {
        **{name: str(claim[name]) for name in ("paper", "section", "claim")},
        "holds": UNCHECKED if not own else HOLDS if held == len(own) else FAILS,
        "logs": len(own),
        "logs_held": held,
        "other_logs": len(other),
        "other_logs_held": other_held,
        "evidence": "; ".join(texts) or missing,
        "sql": sql,
    }
