"""Slurm's fair share of users by the usage and shares of accounts in a tree: Fair Tree and the classic algorithm."""

from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.state.accounts import AccountTree
from swflow.scheduling.state.heap import ELEMENT, pop, push

#: A node, which is a user or an account: its share of those next to it, and of all (``entitled``); its usage, and the
#: ``effective`` one; its factor if it is a user; the node above, its children from ``first`` to before ``end`` (-1 for
#: users), and its row of usage (-1 without jobs).
NODE = record("share entitled usage effective factor", "above first end row")

#: The account at the top, as in Slurm; its users are next to the accounts below it.
TOP = "root"


class FairTree(NamedTuple):
    """The tree, and the leaf of each job: its user in its account; -1 where one of both is unknown."""

    leaf: np.ndarray
    nodes: np.ndarray
    line: np.ndarray  # scratch: siblings by their level's fair share
    stack: np.ndarray  # scratch: nodes that are not ranked yet
    at: np.ndarray  # the time of the last factors and effective usage


def new_fair_tree(tree: AccountTree) -> FairTree:
    """
    Return the tree of accounts and of their users.

    A user or account that is not in ``tree.accounts`` has the share 1, and such an account is at the top.
    """
    accounts, pairs, leaf = tree
    users: dict[str, dict[str, float]] = {TOP: {}}
    shares: dict[str, float] = {}
    above: dict[str, str] = {}
    for name, account in accounts.items():
        users.setdefault(name, {}).update(account.get("users", {}))
        above[name], shares[name] = account.get("parent", TOP), account.get("share", 1.0)
    for account_of, user in pairs:
        users.setdefault(account_of, {}).setdefault(user, 1.0)
    for name in [*users, *above.values()]:
        users.setdefault(name, {})
        above.setdefault(name, TOP)
    below: dict[str, list[str]] = {name: [] for name in users}
    for name in sorted(users.keys() - {TOP}):
        below[above[name]].append(name)
    rows = {pair: row for row, pair in enumerate(pairs)}
    nodes = np.zeros(len(users) + sum(map(len, users.values())), NODE)
    nodes["row"] = nodes["first"] = nodes["end"] = -1
    nodes[0]["entitled"] = 1.0
    leaves = np.empty(len(pairs) + 1, np.int64)
    leaves[-1] = -1
    waiting, size = [(0, TOP)], 1
    for node, name in waiting:
        children = sorted(users[name]) + below[name]
        owned = [users[name][user] for user in sorted(users[name])] + [shares.get(one, 1.0) for one in below[name]]
        total = sum(owned)
        nodes[node]["first"], nodes[node]["end"] = size, size + len(children)
        for place, child in enumerate(children):
            one = nodes[size]
            one["above"], one["share"] = node, owned[place] / total if total else 0.0
            one["entitled"] = nodes[node]["entitled"] * one["share"]
            if place >= len(users[name]):
                waiting.append((size, child))
            elif (name, child) in rows:
                one["row"] = rows[name, child]
                leaves[rows[name, child]] = size
            size += 1
    return FairTree(leaves[leaf], nodes, np.empty(size, ELEMENT), np.empty(size, np.int64), np.full(1, np.nan))


#: Without the fair tree.
NO_TREE = FairTree(
    np.empty(0, np.int64), np.zeros(0, NODE), np.empty(0, ELEMENT), np.empty(0, np.int64), np.full(1, np.nan)
)


def add_up(tree: FairTree) -> int:
    """Compute the usage of accounts from that of users; return the number of users."""
    nodes, users = tree.nodes, 0
    for node in range(nodes.size - 1, 0, -1):
        nodes[nodes[node].above].usage += nodes[node].usage
        users += nodes[node].end < 0
    return users


def rank_users(tree: FairTree) -> None:
    """
    Compute the factors of users from the usage of the leaves.

    Siblings are sorted by their share of shares over their share of usage. Users have their rank over the number of
    users as factor. The children of tied accounts are siblings, and tied users have the same rank (R. Cox, L. Morrison,
    "Fair Tree: fairshare algorithm for Slurm", Slurm User Group 2014; slurm.schedmd.com/fair_tree.html).
    """
    nodes, stack = tree.nodes, tree.stack
    rank = left = users = add_up(tree)
    top = _stack(tree, _line_up(tree, 0, 0), 0, 0)
    while top > 0:
        top -= 1
        node, tied = stack[top] >> 1, stack[top] & 1
        if nodes[node].end < 0:
            if not tied:
                rank = left
            nodes[node].factor = rank / users
            left -= 1
            continue
        lined_up = _line_up(tree, node, 0)
        while top > 0 and stack[top - 1] & 1 and nodes[stack[top - 1] >> 1].end >= 0:  # tied accounts
            top -= 1
            lined_up = _line_up(tree, stack[top] >> 1, lined_up)
        top = _stack(tree, lined_up, top, tied)


def spread_usage(tree: FairTree) -> None:
    """Compute the effective usage of accounts and users, after `add_up`."""
    for node in range(1, tree.nodes.size):
        set_effective(tree.nodes, node)


def set_effective(nodes: np.ndarray, node: int) -> None:
    """
    Compute the effective usage of an account or user from that of the account above it.

    Effective usage is the usage as a part of all, to which a user or an account adds its share of what the account
    above used more. It is the usage itself for those at the top (SchedMD, "Classic Fairshare Algorithm",
    slurm.schedmd.com/classic_fair_share.html; `_set_assoc_usage_efctv` in Slurm's priority_multifactor.c).
    """
    one = nodes[node]
    one.effective = one.usage
    if one.above > 0:
        one.effective += (nodes[one.above].effective - one.usage) * one.share


def _line_up(tree: FairTree, account: int, size: int) -> int:
    """Add the children of an account to the siblings; return their number."""
    nodes = tree.nodes
    for child in range(nodes[account].first, nodes[account].end):
        share, usage = nodes[child].share, nodes[child].usage
        level = np.inf if share > 0 else 0.0
        if usage > 0:
            level = share / (usage / nodes[account].usage)
        number = child if nodes[child].end < 0 else child + nodes.size  # users precede tied accounts
        size = push(tree.line, size, -level, number)
    return size


def _stack(tree: FairTree, size: int, top: int, tied: int) -> int:
    """Put the siblings on the stack, the first one on top, each with whether it is tied with the one before it."""
    line, stack, nodes = tree.line, tree.stack, tree.nodes
    before = np.nan
    for place in range(top + size - 1, top - 1, -1):
        level, number = line[0].time, line[0].job
        size = pop(line, size)
        is_tied = tied if np.isnan(before) else level == before
        stack[place] = 2 * (number if number < nodes.size else number - nodes.size) + is_tied
        before = level
        top += 1
    return top
