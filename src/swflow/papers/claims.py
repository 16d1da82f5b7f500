"""Claims of the papers, each checked by a query of the database."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swflow.analysis.verdicts import NOT_DISTINGUISHABLE
from swflow.errors import reason_of
from swflow.files.yaml import parse_yaml

if TYPE_CHECKING:
    import duckdb

#: The verdicts on a claim, besides `NOT_DISTINGUISHABLE`.
HOLDS, FAILS, UNCHECKED = "holds", "does not hold", "cannot be checked here"


def published_claims() -> list[dict[str, Any]]:
    """
    Return the claims of all papers.

    ``sql`` is a query that returns ``log``, ``holds`` (boolean, null if the random draws leave it open) and
    ``evidence`` (text, null if the log has none). A claim that is not judged by what its paper used has ``judged_by``.

    Examples
    --------
    >>> sorted({claim["paper"] for claim in published_claims()})
    ['Cirne 2001', 'Ernemann 2003', 'Guim 2007', 'Krakov 2012', 'Minh 2009']
    """
    claims: list[dict[str, Any]] = parse_yaml(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))
    return claims


def check_claims(
    connection: "duckdb.DuckDBPyConnection", claims: Iterable[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """
    Check the claims of the papers on the runs of a database; return the rows of table ``claims``.

    The verdict is about the logs of the claim: ``does not hold`` if the claim fails on one of those that are
    here, else ``not distinguishable`` if the replicates of one leave it open, and ``holds`` otherwise. Other logs are
    counted apart. Without runs of a log of the claim, and if the query fails because a table or column is missing, the
    claim ``cannot be checked here``.
    """
    return [_checked(connection, claim) for claim in (published_claims() if claims is None else claims)]


def _checked(connection: "duckdb.DuckDBPyConnection", claim: Mapping[str, Any]) -> dict[str, Any]:
    import duckdb

    sql = claim["sql"].strip()
    found: dict[str, tuple[list[bool | None], list[str]]] = {}
    missing: str | None = "no run has the evidence"
    try:
        for log, holds, evidence in connection.execute(sql).fetchall():
            if log is not None and (holds is not None or evidence):
                answers, texts = found.setdefault(log, ([], []))
                answers.append(holds)
                texts += [evidence] if evidence else []
    except duckdb.Error as error:
        missing = reason_of(error)
    verdicts = {log: _together(found[log][0]) for log in sorted(found)}
    own, other = (
        {log: verdict for log, verdict in verdicts.items() if (log in claim["logs"]) == of_paper}
        for of_paper in (True, False)
    )
    texts = [
        f"{log}{mark} {verdict} ({', '.join(found[log][1])})"
        for some, mark in ((own, ":"), (other, ", not in the claim:"))
        for log, verdict in some.items()
    ]
    return {
        **{name: str(claim[name]) for name in ("paper", "section", "claim")},
        "holds": next((one for one in (FAILS, NOT_DISTINGUISHABLE, HOLDS) if one in own.values()), UNCHECKED),
        "logs": len(own),
        "logs_held": list(own.values()).count(HOLDS),
        "other_logs": len(other),
        "other_logs_held": list(other.values()).count(HOLDS),
        "judged_by": claim.get("judged_by"),
        "evidence": "; ".join(texts) or missing,
        "sql": sql,
    }


def _together(answers: list[bool | None]) -> str:
    """Return the verdict on a claim that needs all answers."""
    return FAILS if False in answers else NOT_DISTINGUISHABLE if None in answers else HOLDS
