"""Sentences on the limits that a variant changes, and on limits that replace others under Slurm."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from swflow.scheduling.nested_options import USERS
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.orders.names import shortened
from swflow.scheduling.orders.replaced_limits import replaced_by


class _Limit(NamedTuple):
    kind: str  # the kind of account, such as ``user of qos``
    name: str  # the user, group, partition or QOS; empty: each
    what: str  # what it limits, such as jobs

    @property
    def account(self) -> str:
        """The user, group, partition or QOS of which the options state it."""
        kind = self.kind.removeprefix("user of ").replace("qos", "QOS")
        return f"{kind} {self.name}" if self.name else f"each {kind}"

    @property
    def owner(self) -> str:
        """Whose limit it is."""
        return f"each user in {self.account}" if self.kind.startswith("user of ") else self.account


def replacements_in_words(before: Unchecked, after: Unchecked) -> list[str]:
    """
    Return where the limits that options change do not hold, and the limits that they replace, as in Slurm.

    Examples
    --------
    >>> site = {"backfill": "slurm", "limits": {"user": {"bob": {"jobs": 2}}, "qos": {"rush": {"user_jobs": 4}}}}
    >>> for changes in ({"user": {"bob": {"jobs": 1}}}, {"qos": {"long": {"user_jobs": 9}}}):
    ...     print(*replacements_in_words(site, {**site, "limits": {**site["limits"], **changes}}))
    the limit of jobs of user bob does not hold in QOS rush, whose own limit replaces it
    the limit of jobs of each user in QOS long replaces that of user bob
    """
    if after.get("backfill") != "slurm":
        return []
    known, limits = dict(_limits(before)), dict(_limits(after))
    replacing = [one for one in limits if after.get("nodes") or (one.kind, one.what) != ("partition", "processors")]
    found = []
    for limit in [one for one, most in limits.items() if known.get(one) != most]:
        same = [one for one in limits if one.what == limit.what]
        above = [one.account for one in same if one in replacing and one.kind in replaced_by(limit.kind, limit.what)]
        below = [one.owner for one in same if limit.kind in replaced_by(one.kind, one.what)]
        what = f"the limit of {limit.what.replace('_', '-')} of {limit.owner}"
        if above:
            found.append(f"{what} does not hold in {shortened(above)}, whose own limit replaces it")
        if below and limit in replacing:
            found.append(f"{what} replaces that of {shortened(below)}")
    return found


def _limits(options: Unchecked) -> Iterator[tuple[_Limit, Any]]:
    """Yield the limits of options with their values."""
    for kind, of_kind in (options.get("limits") or {}).items():
        for name, own in [("", of_kind), *((name, own) for name, own in of_kind.items() if isinstance(own, Mapping))]:
            for what, most in own.items():
                if what == USERS:
                    for user, own_of_user in most.items():
                        yield from ((_Limit("user", str(user), one), value) for one, value in own_of_user.items())
                elif not isinstance(most, Mapping):
                    of_user = what.startswith("user_")
                    yield _Limit(f"user of {kind}" if of_user else kind, str(name), what.removeprefix("user_")), most
