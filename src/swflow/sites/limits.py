"""Limits and shares of users, accounts and QOS, from what sacctmgr and sshare print."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from swflow.errors import SwflowError
from swflow.phrases import listed
from swflow.sites.conf import SlurmPartition
from swflow.sites.tables import Row


def limits_of(partitions: Iterable[SlurmPartition], levels: Sequence[Row], members: Sequence[Row]) -> dict[str, Any]:
    """Return the limits of users, accounts and QOS, and of partitions, which are those of their QOS."""
    qos = without_empty({row.text("name"): _qos_limits(row) for row in levels})
    of_partitions = {one.name: dict(qos[one.text("QOS")]) for one in partitions if one.text("QOS") in qos}
    return without_empty(_association_limits(members) | {"qos": qos, "partition": of_partitions})


def with_known_gpus(rows: Sequence[Row], types: Collection[str]) -> list[Row]:
    """
    Return rows whose limits of GPUs of the only type of the site are limits of all GPUs.

    Limits of a type that no node has are left out, because no job can reach them. ``types`` are in lower case, and
    empty for GPUs without a type, which could be of any.
    """
    if "" in types:
        return list(rows)
    return [replace(row, texts={**row.texts, **_of_known_gpus(row, types)}) for row in rows]


def _of_known_gpus(row: Row, types: Collection[str]) -> dict[str, str]:
    """Return the columns of limits that mention types of GPUs, without types that are unknown or the only one."""
    found = {}
    for column in ("grptres", "maxtrespu"):
        most = row.tres(column)
        typed = {name: name.lower().removeprefix("gres/gpu:") for name in most if name.lower().startswith("gres/gpu:")}
        if not typed:
            continue
        kept = {name: limit for name, limit in most.items() if name not in typed or typed[name] in types}
        if len(types) == 1:
            gpus = [kept.pop(name) for name in typed if name in kept]
            gpus += [kept["gres/gpu"]] if "gres/gpu" in kept else []
            kept |= {"gres/gpu": min(gpus)} if gpus else {}
        found[column] = ",".join(f"{name}={limit}" for name, limit in kept.items())
    return found


def run_minutes(row: Row) -> int | None:
    """Return the limit of CPU-minutes that are left to running jobs."""
    return row.tres("grptresrunmins").get("cpu")


def _qos_limits(row: Row) -> dict[str, int]:
    """Return the limits of a QOS: its running jobs, CPUs, GPUs, memory and CPU-minutes; all but these of each user."""
    limits = {
        "jobs": row.whole("grpjobs"), "processor_minutes": run_minutes(row), "user_jobs": row.whole("maxjobspu"),
        **_of_resources(row, "grptres"),
        **{f"user_{name}": most for name, most in _of_resources(row, "maxtrespu").items()},
    }  # fmt: skip
    return _stated(limits)


#: The resources whose limits are simulated, by their names in limits.
_SIMULATED = {"processors": "cpu", "gpus": "gres/gpu", "memory": "mem"}


def _of_resources(row: Row, column: str) -> dict[str, int | None]:
    """Return the limits of CPUs, GPUs and memory (MB) of running jobs."""
    most = row.tres(column)
    return {name: most.get(resource) for name, resource in _SIMULATED.items()}


def accounts_of(members: Sequence[Row], used: Sequence[Row], with_shares: bool) -> dict[str, dict[str, Any]]:
    """Return the accounts, each with the one above it except the root; with shares, also those and usage of users."""
    found: dict[str, dict[str, Any]] = {}
    for row in members:
        account, above, user = row.text("account").strip(), row.text("parname").strip(), row.text("user")
        share = 1 if row.text("share") == "parent" else row.whole("share") or 0
        if user and with_shares:
            found.setdefault(account, {}).setdefault("users", {})[user] = share
        elif account != "root" and not user:
            one = found.setdefault(account, {})
            one |= {"parent": above} if above not in ("", "root") else {}
            one |= {"share": share} if with_shares and share != 1 else {}
    for row in used if with_shares else ():
        user, seconds = row.text("user").strip(), row.whole("rawusage")
        if user and seconds:
            found.setdefault(row.text("account").strip(), {}).setdefault("usage", {})[user] = seconds
    return found


def _association_limits(members: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """
    Return the limits of users and accounts: running jobs, CPUs, GPUs, memory and CPU-minutes; 0 allows no job.

    The limit of a user of several accounts holds in its account. Those of a user in a partition are left out. Raise
    `SwflowError` if two rows limit a user in an account differently.
    """
    members = [row for row in members if not row.text("partition")]
    pairs = {(row.text("account").strip(), row.text("user")) for row in members if row.text("user")}
    several = {user for user, count in Counter(user for _, user in pairs).items() if count > 1}
    seen: dict[tuple[str, str], dict[str, int]] = {}
    users: dict[str, dict[str, int]] = {}
    groups: dict[str, dict[str, Any]] = {}
    for row in members:
        user, account = row.text("user"), row.text("account").strip()
        if account == "root" and not user:
            continue
        own = _limits_of_member(row)
        if user and seen.setdefault((account, user), own) != own:
            raise SwflowError(
                f"{row.place}: a second row of user {user} in account {account}, with other limits; expected one row, "
                "or a column that tells them apart (sacctmgr show assoc -P format=Cluster,Partition,…)"
            )
        if own and user in several:
            groups.setdefault(account, {}).setdefault("users", {})[user] = own
        elif own and user:
            users[user] = own
        elif own:
            groups.setdefault(account, {}).update(own)
    return {"user": users, "group": groups}


def _limits_of_member(row: Row) -> dict[str, int]:
    """Return the limits of a user or an account: running jobs, CPUs, GPUs, memory and CPU-minutes."""
    jobs = [row.whole("maxjobs") if row.text("user") else None, row.whole("grpjobs")]
    stated = [most for most in jobs if most is not None]
    return _stated({
        "jobs": min(stated) if stated else None, **_of_resources(row, "grptres"), "processor_minutes": run_minutes(row),
    })  # fmt: skip


def differences_in_words(
    partitions: Iterable[SlurmPartition], levels: Sequence[Row], members: Sequence[Row]
) -> list[str]:
    """
    Return how the simulation differs from Slurm in which limits count together, and in which replace others.

    In Slurm, a limit of a QOS replaces those of the same kind of associations (manual, "Resource Limits", hierarchy).
    """
    found = []
    users = [row.text("user") for row in members if row.text("user") and row.whole("grpjobs") is not None]
    if users and any(row.whole(column) is not None for row in levels for column in ("grpjobs", "maxjobspu")):
        found.append(
            f"GrpJobs of users, such as {users[0]}, is simulated as MaxJobs: in Slurm, GrpJobs of a QOS replaces it, "
            "and MaxJobsPU does not"
        )
    limited = {row.text("name"): row.text("flags").lower() for row in levels if _qos_limits(row)}
    of_partitions: dict[str, list[str]] = {}
    for one in partitions:
        if one.text("QOS") in limited:
            of_partitions.setdefault(one.text("QOS"), []).append(one.name)
    found += [
        f"partitions {listed(names)} have the limits of QOS {name} each: in Slurm, they have them together"
        for name, names in of_partitions.items()
        if len(names) > 1
    ]
    over = [name for name, flags in limited.items() if "overpartqos" in flags and of_partitions.keys() - {name}]
    if over:
        found.append(
            f"limits of partitions replace those of QOS {', '.join(over)}: in Slurm, its flag OverPartQOS reverses this"
        )
    return found


def flat_in_words(members: Sequence[Row]) -> list[str]:
    """Return that the parents of several accounts are not known."""
    accounts = {row.text("account").strip() for row in members if not row.text("user")} - {"root"}
    if len(accounts) < 2 or any(row.text("parname") for row in members):
        return []
    return [
        "the associations have no column ParentName, so that no account is below another: add it (sacctmgr show assoc "
        "-P format=Cluster,Account,User,ParentName,…)"
    ]


#: The columns of limits of running jobs with the resources that are simulated, and those of accounts in a QOS.
_RESOURCES = {"grptres": _SIMULATED.values(), "maxtrespu": _SIMULATED.values(), "grptresrunmins": ("cpu",)}
_OF_ACCOUNTS = ("maxtrespa", "maxjobspa")

#: The columns of limits of running jobs of an association.
_OF_MEMBERS = ("maxjobs", "grpjobs", "grptres", "grptresrunmins")

#: All columns of limits of running jobs.
COLUMNS = frozenset({*_RESOURCES, *_OF_ACCOUNTS, *_OF_MEMBERS, "maxjobspu"})


def not_simulated(levels: Sequence[Row], members: Sequence[Row]) -> list[str]:
    """Return the limits that can make running jobs wait and are not simulated, such as ``QOS long: MaxTRESPU …``."""
    found = []
    for kind, rows in (("QOS", levels), ("account", members)):
        for row in rows:
            name = " ".join(filter(None, (row.text("name") or row.text("account").strip(), row.text("user"))))
            if partition := row.text("partition"):
                limits = [f"{column} {row.text(column)}" for column in _OF_MEMBERS if row.text(column)]
                found += [f"{kind} {name} in partition {partition}: {', '.join(limits)}"] if limits else []
                continue
            for column, simulated in _RESOURCES.items():
                known = (*simulated, "billing")
                others = [f"{what}={most}" for what, most in row.tres(column).items() if what not in known]
                found += [f"{kind} {name}: {column} {','.join(others)}"] if others else []
            found += [f"{kind} {name}: {column} {row.text(column)}" for column in _OF_ACCOUNTS if row.text(column)]
    return found


def _stated(limits: Mapping[str, int | None]) -> dict[str, int]:
    return {name: most for name, most in limits.items() if most is not None}


def without_empty(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a mapping that are neither empty nor 0."""
    return {name: value for name, value in content.items() if value}
