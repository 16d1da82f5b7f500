"""A slow reference simulator, simple enough to verify by reading, with which every kernel must agree."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

#: Seconds between the times at which Slurm's main scheduler may make a pass.
TICK = 1 + 1 / 256

#: Limits of running jobs, of their processors, and of the processor-minutes that are left to them.
Most = tuple[float, ...]

#: Increments, in seconds, of a system-generated prediction each time that the job exceeds it.
INCREMENTS = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


@dataclass
class Job:
    """
    A job, times in seconds; ``planned`` is the run time that the scheduler plans with, at least 1.

    A moldable job has ``shapes``: run time, planned run time and processors of each.
    """

    number: int
    submit: float
    run: float
    planned: float
    processors: int
    user: int = 0
    shapes: list[tuple[float, float, int]] = field(default_factory=list)
    group: int = 0
    partition: int = 0
    qos: int = 0
    nodes: int = 1  # as requested
    constraint: int | None = None  # on the features of nodes
    after: int = -1  # the preceding job, on whose end the submission depends
    think: float = 0.0  # time from that end to the submission
    needs: tuple[int, ...] = ()  # jobs that must have ended; then, and not before `submit`, the job is submitted
    leaves: float = math.inf  # time after the submission at which the job leaves the queue, if it has not started
    array: int = 0  # the job array; 0: none
    array_limit: float = math.inf  # the most tasks of the array that run at once
    demands: tuple[int, ...] = ()  # units of each resource of the machine

    def least_nodes(self) -> int:
        """Return the nodes that the job needs at least."""
        return min(self.nodes, self.processors)

    def usable(self, free: int) -> int:
        """Return how many free processors of a node the job uses: a part of several nodes if these are equal."""
        part, rest = divmod(self.processors, self.least_nodes())
        if self.least_nodes() == 1 or rest:
            return free
        return part if free >= part else 0

    def fits(self, free: dict[int, int]) -> bool:
        """Return whether the job fits on nodes of which it can use these processors."""
        nodes = [node for node in free if free[node] > 0]
        return sum(free.values()) >= self.processors and len(nodes) >= self.least_nodes()

    def minutes(self) -> int:
        """Return the time limit in whole minutes."""
        return max(1, int(self.planned // 60))

    def molded(self) -> "list[Job]":
        """Return the job in each of its shapes."""
        return [replace(self, run=run, planned=planned, processors=width) for run, planned, width in self.shapes]


class Account:
    """The decayed use of a user, a group, or all users, in processor-seconds."""

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self.used = 0.0  # up to `since`; with a half-life in units of half_life / log(2) processor-seconds
        self.since = 0.0
        self.processors = 0  # processors of running jobs from `since` on

    def by(self, now: float) -> float:
        """Return the use until now."""
        if self.half_life == math.inf:
            return self.used + self.processors * (now - self.since)
        left = math.exp2(-(now - self.since) / self.half_life)
        return self.used * left + self.processors * (1.0 - left)

    def change(self, now: float, processors: int) -> None:
        """Add running processors from now on."""
        self.used, self.since = self.by(now), now
        self.processors += processors


@dataclass
class Node:
    """A user, given by group and user, or an account, in the fair tree: its raw share and what is below it."""

    share: float
    owner: tuple[int, int] | None = None  # a user with jobs
    below: "list[Node] | None" = None  # what is below an account, users first

    def usage(self, of_user: dict[tuple[int, int], float]) -> float:
        """Return the usage of the users here and below."""
        if self.below is None:
            return of_user.get(self.owner, 0.0) if self.owner else 0.0
        total = 0.0
        for node in reversed(self.below):
            total += node.usage(of_user)
        return total

    def users(self) -> int:
        return 1 if self.below is None else sum(node.users() for node in self.below)


def fair_tree(top: Node, of_user: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Return the factors of users by Slurm's Fair Tree, as its manual defines them."""
    rank = left = top.users()
    factors: dict[tuple[int, int], float] = {}

    def level(node: Node, above: Node) -> float:
        shares = sum(sibling.share for sibling in above.below or [])
        share = node.share / shares if shares else 0.0
        usage = node.usage(of_user)
        if share == 0:
            return 0.0
        return share / (usage / above.usage(of_user)) if usage > 0 else math.inf

    def serve(accounts: list[Node], tied: bool) -> None:
        nonlocal rank, left
        siblings = [(level(node, above), node.below is None, node) for above in accounts for node in above.below or []]
        values = sorted({value for value, *_ in siblings}, reverse=True)
        for place, value in enumerate(values):
            tied = tied and place == 0
            for _ in [node for one, is_user, node in siblings if one == value and is_user]:
                if not tied:
                    rank = left
                left, tied = left - 1, True
            for node in [node for one, is_user, node in siblings if one == value and is_user]:
                if node.owner:
                    factors[node.owner] = rank / top.users()
            merged = [node for one, is_user, node in siblings if one == value and not is_user]
            if merged:
                serve(merged, tied)

    serve([top], False)
    return factors


def effective_usage(
    top: Node, before: dict[tuple[int, int], float], of_user: dict[tuple[int, int], float]
) -> dict[tuple[int, int], float]:
    """
    Return the effective usage of users over their shares, by the formulas of Slurm's classic fair share.

    The usage of accounts is that of their users ``before``.
    """
    found = dict[tuple[int, int], float]()

    def visit(account: Node, effective_above: float, shares_above: float) -> None:
        below = account.below or []
        raw = sum(node.share for node in below)
        for node in below:
            share = node.share / raw if raw else 0.0
            effective = node.usage(of_user if node.owner else before)
            if account is not top:
                effective += (effective_above - effective) * share
            shares = shares_above * share
            if node.owner:
                found[node.owner] = effective / shares if shares else math.inf
            visit(node, effective, shares)

    visit(top, 0.0, 1.0)
    return found


def of_owners(shares: dict[tuple[str, object], float]) -> dict[tuple[int, int], float]:
    """Return the shares of use of the users in their groups."""
    return {number: share for (kind, number), share in shares.items() if kind == "both" and isinstance(number, tuple)}


@dataclass
class FairShare:
    """Use of all accounts on all machines, and their shares, which sum to 1."""

    half_life: float = math.inf
    shares: dict[str, dict[int, float]] = field(default_factory=dict)  # shares of users and groups
    accounts: "dict[tuple[str, object], Account]" = field(default_factory=dict)
    period: float = 0  # priorities are computed at its multiples; 0: always
    whole_periods: bool = False  # whether the use of a job after the last computation before its end does not count
    tree: Node | None = None
    # If priorities are computed in periods: how many have passed, now and at the beginning, the submitted jobs and
    # their starts (None: queued), and the use that is counted.
    passed: int | None = None
    passed_before: int = 0
    submitted: dict[int, tuple[Job, float | None]] = field(default_factory=dict)
    counted: dict[tuple[str, object], float] = field(default_factory=dict)
    # The shares of use at the last computation, and of users at its beginning; the effective usage of users since then.
    computed: dict[tuple[str, object], float] = field(default_factory=dict)
    at_beginning: dict[tuple[int, int], float] = field(default_factory=dict)
    known: dict[tuple[int, int], float] = field(default_factory=dict)

    def computed_at(self, now: float) -> float:
        """Return the last time until now at which priorities were computed."""
        return math.floor(now / self.period) * self.period if self.period else now

    def start_with(self, used: dict[tuple[int, int], float], since: float) -> None:
        """Begin with the use, in processor-seconds, of users in their groups."""
        unit = 1.0 if self.half_life == math.inf else self.half_life / math.log(2)
        for (group, user), seconds in used.items():
            for name in (("all", 0), ("user", user), ("group", group), ("both", (group, user))):
                self.counted[name] = self.counted.get(name, 0.0) + seconds
                self.account(*name).used += seconds / unit
        for account in self.accounts.values():
            account.since = since

    def account(self, kind: str, number: object = 0) -> Account:
        return self.accounts.setdefault((kind, number), Account(self.half_life))

    def change(self, job: Job, now: float, processors: int) -> None:
        """Count the start of a job, or its end."""
        for name in self.names(job):
            self.account(*name).change(now, processors)
        if self.period and processors > 0:
            self.submitted[job.number] = (job, now)
        elif self.period:
            _, start = self.submitted.pop(job.number)
            if start is not None and not self.whole_periods:
                self.count(job, start, now)

    def names(self, job: Job) -> list[tuple[str, object]]:
        """Return the accounts of a job."""
        return [("all", 0), ("user", job.user), ("group", job.group), ("both", (job.group, job.user))]

    def submit(self, job: Job) -> None:
        """Add a job to those in the queue."""
        if self.period:
            self.submitted[job.number] = (job, None)
            self.effective(job, job.submit)

    # Slurm's computation in periods, at whose beginning use loses a part of each second.

    def left(self, seconds: float) -> float:
        """Return the part of the use that is left after a time."""
        return float(max(0.0, 1.0 - 0.693 / self.half_life) ** seconds)

    def count(self, job: Job, start: float, end: float) -> None:
        """Count the use of a job since the last computation."""
        seconds = end - max(start, (self.passed or 0) * self.period)
        for name in self.names(job):
            self.counted[name] = self.counted.get(name, 0.0) + job.processors * seconds * self.left(seconds)

    def shares_now(self) -> dict[tuple[str, object], float]:
        whole = self.counted.get(("all", 0), 0.0)
        return {name: used / whole if whole > 0 else 0.0 for name, used in self.counted.items()}

    def pass_time(self, now: float) -> None:
        """Compute use at the ends of periods until now."""
        if not self.period:
            return
        if self.passed is None:
            self.passed = self.passed_before = math.floor(now / self.period) - 1
        while self.passed < math.floor(now / self.period):
            self.at_beginning, self.known = of_owners(self.shares_now()), {}
            if self.passed > self.passed_before:
                self.counted = {name: used * self.left(self.period) for name, used in self.counted.items()}
            for _, (job, start) in sorted(self.submitted.items()):
                if start is None:
                    self.effective(job, now)
                else:
                    self.count(job, start, (self.passed + 1) * self.period)
            self.passed += 1
            self.computed = self.shares_now()

    def used(self, kind: str, number: object, now: float) -> float:
        """Return the use of an account, as a share of all, when priorities were computed."""
        if self.period:
            return self.computed.get((kind, number), 0.0)
        everybody = self.account("all").by(now)
        return self.account(kind, number).by(now) / everybody if everybody > 0 else 0.0

    def usage(self, kind: str, job: Job, now: float) -> float:
        """Return the share of the job's user or group in all use."""
        return 0.0 if getattr(job, kind) < 0 else self.used(kind, getattr(job, kind), now)  # below 0: unknown

    def factor(self, job: Job, now: float) -> float:
        """Return the factor of the job's user in its account by the fair tree; 0 if one of both is unknown."""
        if min(job.user, job.group) < 0 or self.tree is None:
            return 0.0
        return fair_tree(self.tree, self.used_by_owner(now))[job.group, job.user]

    def effective(self, job: Job, now: float) -> float:
        """Return the effective usage of the job's user in its account; infinite if one of both is unknown."""
        if min(job.user, job.group) < 0 or self.tree is None:
            return math.inf
        owner = (job.group, job.user)
        if not self.period:
            return effective_usage(self.tree, self.used_by_owner(now), self.used_by_owner(now))[owner]
        if owner not in self.known:
            self.known[owner] = effective_usage(self.tree, self.at_beginning, of_owners(self.shares_now()))[owner]
        return self.known[owner]

    def used_by_owner(self, now: float) -> dict[tuple[int, int], float]:
        return of_owners({name: self.used(*name, now) for name in self.accounts})

    def entitled(self, kind: str, job: Job) -> float:
        return self.shares[kind][max(getattr(job, kind), -1)]  # -1: the share of an unknown one


@dataclass
class Multifactor:
    """Slurm's multifactor priority, as defined in its manual; the highest value is first."""

    age: float = 0
    max_age: float = 604800
    fair_share: float = 0
    fair_share_of: str = "user"
    dampening: float = 1
    calc_period: float = 0
    whole_periods: bool = False
    whole_points: bool = False
    size: float = 0
    nodes: int = 0
    favor_small: bool = False
    partition: float = 0
    partition_factors: dict[int, float] = field(default_factory=dict)
    qos: float = 0
    qos_factors: dict[int, float] = field(default_factory=dict)

    def priority(self, job: Job, now: float, machine: "Machine") -> float:
        fair = machine.fair
        age_factor = min(1, (now - job.submit) / self.max_age)
        who = self.fair_share_of
        if who == "fair-tree":
            fair_share_factor = fair.factor(job, now)
        elif who == "association":
            fair_share_factor = math.exp2(-fair.effective(job, now) / self.dampening)
        else:
            fair_share_factor = math.exp2(-fair.usage(who, job, now) / fair.entitled(who, job) / self.dampening)
        size = job.processors / machine.processors
        points = self.size * job.processors / machine.processors
        if self.nodes:
            size = (job.nodes / self.nodes + size) / 2
            points = self.size * size
        partition_factor = self.partition_factors.get(job.partition, 0) / max(
            self.partition_factors.values(), default=1
        )
        qos_factor = self.qos_factors.get(job.qos, 0) / max(self.qos_factors.values(), default=1)
        priority = (
            self.age * age_factor
            + self.fair_share * fair_share_factor
            + (self.size * (1 - size) if self.favor_small else points)
            + self.partition * partition_factor
            + self.qos * qos_factor
        )
        return max(1, math.floor(priority)) if self.whole_points else priority


#: The orders of the queue: the smallest key is first, ties by number.
ORDERS: dict[str, Callable[[Job, float], float]] = {
    "fcfs": lambda job, now: job.submit,
    "sjf": lambda job, now: job.planned,
    "ljf": lambda job, now: -job.planned,
    "smallest-first": lambda job, now: job.processors,
    "largest-first": lambda job, now: -job.processors,
    "saf": lambda job, now: job.planned * job.processors,
    "wfp3": lambda job, now: -(((now - job.submit) / job.planned) ** 3) * job.processors,
    "unicef": lambda job, now: -(now - job.submit) / (math.log2(max(job.processors, 2)) * job.planned),
    "expansion-factor": lambda job, now: -(now - job.submit + job.planned) / job.planned,
}


@dataclass
class Resources:
    """Shared resources of a node: ``demands`` by job, ``capacities`` and ``penalty`` by resource."""

    per_node: int
    demands: list[list[int]]
    capacities: list[int]
    allowed: list[float]  # time at which a job is killed, from its start
    penalty: Callable[[Fraction, Fraction], Fraction] = lambda usage, capacity: max(usage / capacity, Fraction(1)) - 1
    second: int = 0  # additional cost of every overloaded shadow
    limit: float = math.inf  # penalty above which a job waits
    slows: bool = True
    forgets: bool = False  # whether the rest of a shadow is dropped when a job starts or ends in it

    def cost(self, usage: list[int]) -> Fraction:
        """Return the penalty of a node: the sum over its resources."""
        pairs = zip(usage, self.capacities, strict=True)
        return sum((self.penalty(Fraction(used), Fraction(capacity)) for used, capacity in pairs), Fraction(0))

    def usage(self, processes: list[int]) -> list[int]:
        """Return the total demand of processes, given by their jobs."""
        return [sum(self.demands[job][k] for job in processes) for k in range(len(self.capacities))]


def rounded_down(time: float, unit: float, origin: float = 0) -> float:
    """Return the last multiple of a unit until a time; the multiples are counted from ``origin`` before 0."""
    return math.floor((time + origin) / unit) * unit - origin


@dataclass
class Cycles:
    """Slurm's backfill cycles: seconds, and numbers of jobs; and its main scheduler, which tests ``depth`` jobs."""

    interval: float = 30
    window: int = 86400
    resolution: int = 60
    jobs: int = 500
    jobs_of_user: float = math.inf
    depth: int = 100
    batch_delay: int = 3  # from a pass of the main scheduler to one because of an event
    every: float = 60 * TICK  # between passes that test all jobs
    epoch: int = 0  # the log's start from 1970 on, from which the resolution counts

    def slot(self, time: float) -> float:
        """Return the start of the slot of the resolution at a time."""
        return rounded_down(time, self.resolution, self.epoch)


@dataclass
class Policy:
    """
    Scheduler options; ``lookahead`` is the number of reservations, 1 for EASY.

    An order is a name of `ORDERS`, one by usage (see `Machine.key`), or a function of a job, the time and its machine.
    """

    order: "str | Callable[[Job, float, Machine], float]" = "fcfs"
    backfill: str = "none"  # none, lookahead, slurm, conservative, reservation-table
    lookahead: int = 1
    cycles: "Cycles" = field(default_factory=lambda: Cycles())  # for backfill slurm
    backfill_order: "str | Callable[[Job, float, Machine], float]" = "fcfs"
    event_order: str = "batch"  # batch, per-event
    # count, first-fit, longest-idle, first-contiguous, least-shared, threshold
    allocation: str = "count"
    predict: bool = False  # planned run times from the user's last two jobs, instead of the estimates
    unavailable: list[tuple[float, float, int]] = field(default_factory=list)  # from, until, processors
    resources: Resources | None = None
    shapes: str = "requested"  # requested, submit, start: time at which the shape of a moldable job is chosen
    multifactor: Multifactor = field(default_factory=Multifactor)  # for order slurm-multifactor
    # Limits of running jobs and processors of a user, group, partition or qos: ("user", 3) to both.
    limits: dict[tuple[str, int], Most] = field(default_factory=dict)
    # The same of each user in a partition or qos; of a group with all groups below it; and the group above each.
    user_limits: dict[tuple[str, int], Most] = field(default_factory=dict)
    tree_limits: dict[int, Most] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)  # for backfill slurm: the processors of each node
    units: list[tuple[int, ...]] = field(default_factory=list)  # the units of each resource of each node
    node_weights: list[int] = field(default_factory=list)
    partitions: dict[int, set[int]] = field(default_factory=dict)  # the nodes of each partition; all if it is not here
    maintenance: list[tuple[float, float, set[int]]] = field(default_factory=list)  # from, until, nodes
    featured: dict[int | None, set[int]] = field(default_factory=dict)  # the nodes that satisfy each constraint
    preemption: "Preemption | None" = None


@dataclass
class Preemption:
    """
    Which jobs preempt others, by their ``kind``, a partition or a QOS: those of some of higher ``tiers``, or as listed.

    What is not in ``tiers`` has 1 for partitions and 0 for a QOS.
    """

    kind: str  # partition, qos
    tiers: dict[int, float] = field(default_factory=dict)
    listed: dict[int, set[int]] = field(default_factory=dict)
    modes: dict[int, str] = field(default_factory=dict)
    mode: str = "requeue"
    exempt: float = 0
    delay: float = 121
    release: float = 0  # from a preemption until the nodes are free

    def of(self, job: Job) -> int:
        """Return the partition or QOS of a job."""
        return job.partition if self.kind == "partition" else job.qos

    def tier(self, job: Job) -> float:
        return self.tiers.get(self.of(job), 1 if self.kind == "partition" else 0)

    def level(self, job: Job) -> float:
        """Return a number that is higher for jobs that are before others in the queue."""
        return self.tier(job) if self.kind == "partition" else self.depth(job.qos)

    def depth(self, qos: int) -> int:
        return max((1 + self.depth(other) for other in self.listed.get(qos, ())), default=0)

    def mode_of(self, job: Job) -> str:
        return self.modes.get(self.of(job), self.mode)

    def allows(self, job: Job, other: Job) -> bool:
        """Return whether a job may preempt another one."""
        if self.mode_of(other) == "off":
            return False
        if self.kind == "partition":
            return self.tier(job) > self.tier(other)
        return other.qos in self.listed.get(job.qos, ())


@dataclass
class Slot:
    """A span of time in a cycle, and the nodes that no queued job reserves in it."""

    begin: float
    end: float
    nodes: set[int]


def picked(free: dict[int, int], job: Job, weights: list[int]) -> dict[int, int]:
    """
    Return the processors of each node that a job gets, of nodes with these free processors, which suffice.

    The smallest set of consecutive nodes of the lowest weight that suffices is taken, or else the largest one and then
    others; of one that suffices, the node with the fewest processors that suffice alone, or else the first nodes. Each
    node leaves a processor to each other node that is requested.
    """
    width, needed = job.processors, job.least_nodes()
    runs: list[list[int]] = []
    for node in sorted(node for node in free if free[node] > 0):
        if runs and runs[-1][-1] == node - 1 and weights[node - 1] == weights[node]:
            runs[-1].append(node)
        else:
            runs.append([node])
    found: dict[int, int] = {}
    while width > 0:
        lightest = min(weights[run[0]] for run in runs)
        sizes = {k: sum(free[node] for node in run) for k, run in enumerate(runs) if weights[run[0]] == lightest}
        best, suffices = -1, False
        for k, size in sizes.items():
            here = size >= width and len(runs[k]) >= needed
            if best < 0 or (here and (not suffices or size < sizes[best])) or (not here and size > sizes[best]):
                best, suffices = k, here
        run = runs.pop(best)
        alone = [node for node in run if free[node] >= width and needed <= 1]
        for node in [min(alone, key=lambda node: free[node])] if alone else run:
            if width > 0:
                found[node] = min(free[node], width - max(needed - 1, 0))
                width, needed = width - found[node], needed - 1
    return found


def share_of(job: "Job", processors: int) -> list[int]:
    """Return the whole units of each resource that some processors of a job need."""
    return [math.ceil(Fraction(units * processors, job.processors)) for units in job.demands]


def reserve_nodes(table: list[Slot], nodes: set[int], begin: float, end: float) -> int:
    """Reserve nodes from one time to another; return by how many slots Slurm's table grows, which keeps merged ones."""
    made, place = 0, next((place for place, slot in enumerate(table) if slot.end >= begin), None)
    if place is None:
        return 0
    if table[place].end > begin:
        table.insert(place + 1, Slot(begin, table[place].end, set(table[place].nodes)))
        table[place].end, made = begin, 1
    last = place + 1
    while last < len(table):
        if end < table[last].end:
            table.insert(last + 1, Slot(end, table[last].end, set(table[last].nodes)))
            table[last].end, made = end, made + 1
        table[last].nodes -= nodes
        last += 1
        if table[last - 1].end == end:
            break
    # Slots are compared up to the one after the last that changed; only the first two alike are merged.
    for first in range(max(place - 1, 0), min(last, len(table) - 1)):
        if table[first].nodes == table[first + 1].nodes:
            table[first].end = table.pop(first + 1).end
            break
    return made


@dataclass
class Occupation:
    """Processors and resources in use from ``start`` to ``end``, by a running job, a reservation or a window."""

    start: float
    end: float
    places: list[int]
    demands: tuple[int, ...] = ()


class Machine:
    """A machine with its queue and the state of its scheduler."""

    def __init__(
        self, processors: int, policy: Policy, fair: FairShare | None = None, resources: tuple[int, ...] = ()
    ) -> None:
        self.processors = processors
        self.resources = resources  # units of each
        self.policy = policy
        self.fair = fair or FairShare()
        self.queue: list[Job] = []
        self.running: dict[int, tuple[Job, Occupation]] = {}
        self.reserved: dict[int, Occupation] = {}
        self.reserved_shape: dict[int, Job] = {}
        self.done: dict[int, Job] = {}
        # The processors of overlapping windows add up; the highest numbers are unavailable.
        times = sorted({time for start, until, _ in policy.unavailable for time in (start, until)})
        self.maintenance = [  # in whole seconds
            (math.floor(begin), math.floor(until) if until < math.inf else until, nodes)
            for begin, until, nodes in policy.maintenance
        ]
        self.windows = []
        for start, until in pairwise(times):
            away = sum(count for begin, end, count in policy.unavailable if begin <= start < end)
            self.windows.append(Occupation(start, until, list(range(processors))[max(processors - away, 0) :]))
        self.released = [-math.inf] * processors
        self.starts: dict[int, float] = {}
        self.places: dict[int, list[int]] = {}
        self.history: dict[int, list[float]] = {}
        self.estimate: dict[int, float] = {}
        self.increments: dict[int, int] = {}
        self.replan = False
        self.head: Job | None = None
        self.newcomers: list[Job] = []
        # Slurm's main scheduler: the time of the pass that is due, of the last one, and whether one that tests all jobs
        # or a cycle came after the last event.
        self.due, self.last_pass, self.settled = math.inf, -math.inf, False
        self.cycle, self.last_cycle = math.inf, 0.0  # the next backfill cycle and the last one
        self.turns: dict[int, int] = {}
        self.parts: dict[int, dict[int, int]] = {}  # the processors of each node that a running job has
        # Preempted jobs: when each leaves its nodes, and when each is queued again; the time until which a node is not
        # free; when jobs were last preempted for each job; how often each was preempted, and the time that it lost.
        self.leaving: list[tuple[float, int]] = []
        self.away: list[tuple[float, Job]] = []
        self.until: dict[int, float] = {}
        self.cleared: dict[int, float] = {}
        self.preemptions: dict[int, int] = {}
        self.lost: dict[int, float] = {}
        self.killed: set[int] = set()
        self.at_once = False  # whether a pass is due now because a preempted job left its nodes
        # With shared resources: the completed part of each job's run, and the penalty time that each of its nodes
        # added.
        self.progress: dict[int, Fraction] = {}
        self.added: dict[int, dict[int, Fraction]] = {}
        self.ends: dict[int, float] = {}
        self.spent: dict[int, Fraction | float] = {}
        self.shadows: dict[int, set[int]] = {}
        # With dropped shadows. By node: the start of its shadow. By node and job: the jobs within a shadow, and the
        # jobs that are not visible there, each with the job at whose end that shadow ends.
        self.since: dict[int, float] = {}
        self.inside: dict[int, dict[int, int]] = {}
        self.unseen: dict[int, dict[int, int]] = {}
        self.gone: list[int] = []
        self.fresh: list[int] = []

    # -- what is free

    def occupations(self, reservations: list[Occupation]) -> list[Occupation]:
        return [occupation for _, occupation in self.running.values()] + self.windows + reservations

    def choose_now(self, job: Job, now: float, reservations: list[Occupation]) -> list[int] | None:
        """Return the processors on which the job can start now, or None."""
        # A job that ends now but is not yet complete blocks a start, but not a plan.
        still_there = [
            Occupation(one.start, math.nextafter(now, math.inf), one.places, one.demands)
            for _, one in self.running.values()
            if one.end <= now
        ]
        return self.choose(job, now, reservations + still_there)

    def free_now(self, reservation: Occupation) -> bool:
        """Return whether what a reservation is of is released by the previous jobs."""
        running = [occupation for _, occupation in self.running.values()]
        if self.policy.allocation == "count":
            return self.suffices([*running, reservation])
        return not {place for one in running for place in one.places} & set(reservation.places)

    def suffices(self, taken: list[Occupation]) -> bool:
        """Return whether the machine has the processors and resources of all these occupations at once."""
        # Slurm's rounded reservations may occupy more than there is; only what the last occupation needs counts then.
        needs = taken[-1].demands if self.policy.backfill == "slurm" else (1,) * len(self.resources)
        needs = needs or (0,) * len(self.resources)
        return sum(len(one.places) for one in taken) <= self.processors and all(
            sum(one.demands[number] for one in taken if one.demands) <= units
            for number, units in enumerate(self.resources)
            if needs[number]
        )

    def choose(self, job: Job, start: float, reservations: list[Occupation]) -> list[int] | None:
        """Return the processors that the job would get at ``start`` for its planned run time, or None."""
        end = start + job.planned
        taken = self.occupations(reservations)
        if self.policy.allocation == "count":
            moments = [start] + [one.start for one in taken if start < one.start < end]
            places = list(range(job.processors))
            for moment in moments:
                there = [one for one in taken if one.start <= moment < one.end]
                if not self.suffices([*there, Occupation(start, end, places, job.demands)]):
                    return None
            return places
        blocked = {place for one in taken if one.start < end and start < one.end for place in one.places}
        eligible = [place for place in range(self.processors) if place not in blocked]
        return self.select(job, eligible, start, taken)

    def select(self, job: Job, eligible: list[int], start: float, taken: list[Occupation]) -> list[int] | None:
        """Apply the allocation to the eligible processors."""
        count = job.processors
        if len(eligible) < count:
            return None
        allocation = self.policy.allocation
        if allocation in ("least-shared", "threshold"):
            return self.select_least_shared(job, eligible, start)
        if allocation == "first-fit":
            return eligible[:count]
        if allocation == "longest-idle":

            def idle_since(place: int) -> float:
                ends = [one.end for one in taken if place in one.places and one.end <= start]
                return max([self.released[place], *ends])

            return sorted(sorted(eligible, key=lambda place: (idle_since(place), place))[:count])
        runs: list[list[int]] = []
        for place in eligible:
            if runs and runs[-1][-1] == place - 1:
                runs[-1].append(place)
            else:
                runs.append([place])
        return next((run[:count] for run in runs if len(run) >= count), None)

    def select_least_shared(self, job: Job, eligible: list[int], start: float) -> list[int] | None:
        """Assign each process to the node with the lowest resulting penalty, then load, then number."""
        shared = self.policy.resources
        assert shared is not None
        there = [
            (other.number, place) for other, one in self.running.values() if one.end > start for place in one.places
        ]
        limit = self.limit(job) if self.policy.allocation == "threshold" else math.inf
        chosen: list[int] = []

        def cost(place: int) -> tuple[Fraction, Fraction, int]:
            node = place // shared.per_node
            processes = [other for other, where in there if where // shared.per_node == node]
            mine = [job.number for where in [*chosen, place] if where // shared.per_node == node]
            usage = shared.usage(processes + mine)
            load = max(Fraction(used, capacity) for used, capacity in zip(usage, shared.capacities, strict=True))
            return shared.cost(usage), load, place

        for _ in range(job.processors):
            best = min((place for place in eligible if place not in chosen), key=cost)
            if cost(best)[0] > limit:
                return None
            chosen.append(best)
        return sorted(chosen)

    def limit(self, job: Job) -> float:
        """Return the limit that applies to the job; None if the job exceeds it even on an empty machine."""
        shared = self.policy.resources
        assert shared is not None
        within = [shared.cost(shared.usage([job.number] * n)) <= shared.limit for n in range(1, shared.per_node + 1)]
        together = [*within, False].index(False)
        return shared.limit if together * (self.processors // shared.per_node) >= job.processors else math.inf

    def earliest(self, job: Job, now: float, reservations: list[Occupation]) -> Occupation:
        """Return the earliest time at which the job fits for its planned run time, with its processors."""
        moments = {now} | {one.end for one in self.occupations(reservations) if one.end > now}
        for moment in sorted(moments):
            places = self.choose(job, moment, reservations)
            if places is not None:
                if self.policy.allocation == "threshold":
                    # new neighbors would delay the job
                    per_node = self.policy.resources.per_node if self.policy.resources else 1
                    nodes = {place // per_node for place in places}
                    places = [place for place in range(self.processors) if place // per_node in nodes]
                return Occupation(moment, moment + job.planned, places, job.demands)
        raise AssertionError("the job is wider than the machine")

    # -- shared resources

    def processes_of(self, node: int) -> list[int]:
        """Return the jobs of the processes on a node."""
        per_node = self.policy.resources.per_node if self.policy.resources else 1
        return [
            job.number
            for job, occupation in self.running.values()
            for place in occupation.places
            if place // per_node == node
        ]

    def cost_of(self, node: int, job: int | None = None) -> Fraction:
        """Return the present penalty of a node, for one of its jobs or for all visible jobs."""
        shared, unseen = self.policy.resources, self.unseen.get(node, {})
        if shared is None or not shared.slows or job in unseen:
            return Fraction(0)
        return shared.cost(shared.usage([other for other in self.processes_of(node) if other not in unseen]))

    def nodes_of(self, job: Job) -> set[int]:
        per_node = self.policy.resources.per_node if self.policy.resources else 1
        return {place // per_node for place in self.places[job.number]}

    def pass_time(self, now: float) -> None:
        """
        Advance the running jobs to now, each at the speed that its nodes permit.

        A part x of the run takes x + max(added + cost x) - max(added), where the maximum is over the nodes.
        """
        self.fair.pass_time(now)
        for job, _ in self.running.values() if self.policy.resources else ():
            added, number = self.added[job.number], job.number
            most = max(added.values())
            time = Fraction(now) - Fraction(self.starts[job.number]) - self.progress[job.number] - most
            if time > 0:
                ahead = min((time + most - added[node]) / (1 + self.cost_of(node, number)) for node in added)
                self.progress[job.number] += ahead
                for node in added:
                    added[node] += self.cost_of(node, number) * ahead

    def begin_shadows(self) -> None:
        """Charge the cost of a new overloaded shadow, if there is one, to its jobs."""
        shared = self.policy.resources
        if shared is None:
            return
        for node in range(self.processors // shared.per_node):
            there = set(self.processes_of(node))
            if there != self.shadows.get(node, set()) and self.cost_of(node) > 0:
                for job in there:
                    self.added[job][node] += shared.second
            self.shadows[node] = there

    def nodes_by_job(self, jobs: list[int]) -> dict[int, list[int]]:
        """Return the present and former jobs of each node."""
        per_node = self.policy.resources.per_node if self.policy.resources else 1
        nodes: dict[int, list[int]] = {}
        for job in jobs:
            for node in {place // per_node for place in self.places[job]}:
                nodes.setdefault(node, []).append(job)
        return nodes

    def forget_shadows(self, now: float) -> None:
        """
        Drop the rest of the shadows in which the jobs that just ended were.

        Jobs that such a job met at its start are not visible on the node until the first of them ends.
        """
        forgets = self.policy.resources is not None and self.policy.resources.forgets
        for node, gone in self.nodes_by_job(self.gone).items() if forgets else ():
            self.since[node] = now
            inside, unseen = self.inside.setdefault(node, {}), self.unseen.setdefault(node, {})
            before = dict(unseen)
            for job in set(self.processes_of(node)):
                alike = [one for one in gone if before.get(one) == before.get(job)]
                if (alike and job in before) or before.get(job) in gone:
                    del unseen[job]
                if alike and all(one in inside and inside[one] not in gone for one in alike):
                    last = max(alike, key=lambda one: self.starts[one])
                    if self.starts[job] < self.starts[last]:
                        unseen[job] = inside[last]
                if inside.get(job) in gone:
                    del inside[job]
            for one in gone:
                unseen.pop(one, None)
        self.gone = []

    def interrupt_shadows(self, now: float) -> None:
        """Determine which of the jobs that just started are within a shadow, by the presently known ends."""
        newcomers = self.nodes_by_job(self.fresh) if self.policy.resources else {}
        for node, jobs in newcomers.items():
            others = {job for job in self.processes_of(node) if job not in jobs}
            end = {number: self.end_of(job) for number, (job, _) in self.running.items()}
            seen = others - self.unseen.get(node, {}).keys()
            if len(jobs) == 1 and seen and self.since.get(node, -math.inf) < now:
                first = min(others, key=lambda job: (end[job], job))
                if end[jobs[0]] < end[first]:
                    self.inside.setdefault(node, {})[jobs[0]] = first
            self.since[node] = now
        self.fresh = []

    def unlimited_end(self, job: Job) -> float:
        """Return the end of a running job if its nodes do not change and it is not killed."""
        end = self.starts[job.number] + job.run
        if self.policy.resources is None:
            return end
        added = self.added[job.number]
        left = max(Fraction(job.run) - self.progress[job.number], Fraction(0))
        worst = max(added[node] + self.cost_of(node, job.number) * left for node in added)
        return float(round((Fraction(end) + worst) * 2**20) / Fraction(2**20)) if worst > 0 else end

    def end_of(self, job: Job) -> float:
        """Return the end of a running job if its nodes do not change."""
        shared = self.policy.resources
        allowed = shared.allowed[job.number] if shared else math.inf
        return min(self.unlimited_end(job), self.starts[job.number] + allowed)

    # -- shapes

    def shapes_of(self, job: Job) -> list[Job]:
        """Return the shapes in which a queued job can start."""
        return self.forms_of(job) if self.policy.shapes == "start" else [job]

    def forms_of(self, job: Job) -> list[Job]:
        """Return the shapes of a job that fit on the machine."""
        return [form for form in job.molded() if form.processors <= self.processors]

    def takes(self, job: Job) -> bool:
        """Return whether a job fits on the machine, in one of its shapes if these are chosen."""
        if any(demand > units for demand, units in zip(job.demands, self.resources, strict=True)):
            return False
        return bool(self.forms_of(job)) if self.policy.shapes != "requested" else job.processors <= self.processors

    def fastest_now(self, job: Job, now: float, reservations: list[Occupation]) -> tuple[Job, list[int]] | None:
        """Return the fastest shape of the job that can start now, and its processors."""
        possible = [(form, self.choose_now(form, now, reservations)) for form in self.shapes_of(job)]
        able = [(form, places) for form, places in possible if places is not None]
        return min(able, key=lambda pair: (pair[0].planned, pair[0].processors), default=None)

    def soonest(self, forms: list[Job], now: float, reservations: list[Occupation]) -> tuple[Job, Occupation]:
        """Return the shape with the earliest planned completion, and its place."""
        plans = [(form, self.earliest(form, now, reservations)) for form in forms]
        return min(plans, key=lambda plan: (plan[1].end, plan[0].processors))

    def planned_queue(self, now: float) -> list[Occupation]:
        """Return the reservations that all queued jobs would have, in order."""
        reserved = dict(self.reserved)
        for queued in self.ordered(self.policy.order, now):
            if queued.number not in reserved:
                forms = self.shapes_of(queued)
                reserved[queued.number] = self.soonest(forms, now, list(reserved.values()))[1]
        return list(reserved.values())

    # -- events

    def leave(self, job: Job) -> None:
        """Remove a cancelled job from the queue."""
        self.fair.submitted.pop(job.number, None)
        self.queue = [queued for queued in self.queue if queued.number != job.number]
        self.newcomers = [queued for queued in self.newcomers if queued.number != job.number]
        if self.reserved.pop(job.number, None) is not None:
            self.replan = True

    def arrive(self, job: Job) -> None:
        if self.policy.predict:
            self.estimate[job.number] = job.planned
            last = self.history.get(job.user, [])[-2:]  # in order of completion, ties by number
            if len(last) == 2:
                job.planned = max(1.0, min(job.planned, sum(last) / 2))
        if self.policy.shapes == "submit":
            job, _ = self.soonest(self.forms_of(job), job.submit, self.planned_queue(job.submit))
        self.turns[job.number] = len(self.turns)
        self.fair.submit(job)
        self.queue.append(job)
        self.newcomers.append(job)

    def complete(self, job: Job, now: float) -> None:
        self.ends[job.number] = now
        self.spent.setdefault(job.number, job.run)
        _, occupation = self.running.pop(job.number)
        self.fair.change(job, now, -job.processors)
        self.gone.append(job.number)
        for place in occupation.places:
            self.released[place] = now
        slows = self.policy.resources is not None and self.policy.resources.slows
        self.history.setdefault(job.user, []).append(now - self.starts[job.number] if slows else job.run)
        self.replan |= now < occupation.end

    def correct(self, now: float) -> None:
        """Raise the prediction of every job that exceeded it by the next increment, up to the user's estimate."""
        slows = self.policy.resources is not None and self.policy.resources.slows
        if not (self.policy.predict or slows):
            return
        for job, occupation in sorted(self.running.values(), key=lambda one: (one[1].end, one[0].number)):
            while occupation.end <= now < self.end_of(job):
                self.running[job.number] = self.running.pop(job.number)
                step = self.increments.get(job.number, 0)
                self.increments[job.number] = step + 1
                length = occupation.end - occupation.start + INCREMENTS[min(step, len(INCREMENTS) - 1)]
                shared = self.policy.resources
                most = shared.allowed[job.number] if shared and shared.slows else self.estimate[job.number]
                occupation.end = occupation.start + min(length, most)
                self.reserved.clear()  # reservations that depend on the prediction are no longer valid
                self.head = None

    def ordered(self, order: "str | Callable[[Job, float, Machine], float]", now: float) -> list[Job]:
        if order == "fcfs":  # in order of arrival; ties by number
            found = sorted(self.queue, key=lambda job: self.turns[job.number])
        else:
            found = sorted(self.queue, key=lambda job: (self.key(order, job, now), job.number))
        rules = self.policy.preemption
        return sorted(found, key=rules.level, reverse=True) if rules else found

    def key(self, order: "str | Callable[[Job, float, Machine], float]", job: Job, now: float) -> float:
        """Return the sort key of the queue, when it was computed last, or at the submission."""
        now = max(self.fair.computed_at(now), job.submit)
        if callable(order):
            return order(job, now, self)
        if order == "fair-share":
            return self.fair.usage("user", job, now) / self.fair.entitled("user", job)
        if order == "group-usage":
            return self.fair.usage("group", job, now)
        if order == "slurm-multifactor":
            return -self.policy.multifactor.priority(job, now, self)
        return ORDERS[order](job, now)

    def is_limited(self, job: Job) -> bool:
        """Return whether the job would exceed a limit of its user, group, partition or job array."""
        tasks = [other for other, _ in self.running.values() if other.array == job.array]
        if job.array and len(tasks) >= job.array_limit:
            return True
        alike: list[tuple[Most, list[Job]]] = []  # limits that apply to the job, and what they count
        others = [other for other, _ in self.running.values()]
        for (kind, number), most in self.policy.limits.items():
            if getattr(job, kind) == number:
                alike.append((most, [other for other in others if getattr(other, kind) == number]))
        for (kind, number), most in self.policy.user_limits.items():
            if getattr(job, kind) == number and job.user >= 0:
                there = [other for other in others if getattr(other, kind) == number]
                alike.append((most, [other for other in there if other.user == job.user]))
        for group, most in self.policy.tree_limits.items():
            if group in self.above(job.group):
                alike.append((most, [other for other in others if group in self.above(other.group)]))
        for limits, running in alike:
            jobs, processors = len(running) + 1, sum(other.processors for other in running) + job.processors
            minutes = sum(map(self.seconds_left, running)) // 60 + job.processors * job.minutes()
            if any(count > most for count, most in zip((jobs, processors, minutes), limits, strict=False)):
                return True
        return False

    def seconds_left(self, job: Job) -> int:
        """Return the processor-seconds from a job's start, or the last end of a period, to its time limit."""
        start, fair = self.starts[job.number], self.fair
        since = max(start, (fair.passed or 0) * fair.period) if fair.period else start
        return job.processors * math.floor(max(0, start + 60 * job.minutes() - since) + 0.5)

    def above(self, group: int) -> list[int]:
        """Return a group and those above it."""
        parent = self.policy.parents.get(group)
        return [group] if parent is None else [group, *self.above(parent)]

    def begin(self, job: Job, now: float, places: list[int]) -> None:
        self.queue = [queued for queued in self.queue if queued.number != job.number]
        self.reserved.pop(job.number, None)
        self.done.setdefault(job.number, job)  # a requeued job keeps its first submit time
        self.running[job.number] = (job, Occupation(now, now + job.planned, places, job.demands))
        for node in self.parts.get(job.number, {}):
            left = self.left_on(node, self.running)
            assert min(left) >= 0, "a node has more processors or units in use than there are"
        self.starts[job.number] = now
        self.fair.change(job, now, job.processors)
        self.places[job.number] = places
        self.progress[job.number] = Fraction(0)
        self.added[job.number] = dict.fromkeys(self.nodes_of(job), Fraction(0))
        self.fresh.append(job.number)

    def serve(self, now: float) -> None:
        """Make one scheduling pass."""
        self.correct(now)
        if self.policy.backfill == "conservative":
            self.serve_conservatively(now)
        elif self.policy.backfill == "reservation-table":
            self.serve_in_table(now)
        elif self.policy.backfill == "slurm":
            self.serve_as_slurm(now)
        else:
            self.serve_ahead(now, self.policy.lookahead if self.policy.backfill == "lookahead" else 0)

    def notice(self, now: float) -> None:
        """Schedule the pass of Slurm's main scheduler because of an event, after a delay since its last pass."""
        last = max(self.last_pass, rounded_down(now, self.policy.cycles.every))
        self.due = min(self.due, math.ceil(max(now, last + self.policy.cycles.batch_delay) / TICK) * TICK)
        self.settled = False
        self.request_cycle(now)

    def request_cycle(self, now: float) -> None:
        """Schedule the next cycle, because of a change since the last one: an interval later, plus whole seconds."""
        due = self.last_cycle + self.policy.cycles.interval
        if due < math.inf:
            self.cycle = min(self.cycle, due + max(math.ceil(now - due), 0))

    def serve_as_slurm(self, now: float) -> None:
        """Make the pass of the main scheduler and the cycle, if they are due."""
        cycles = self.policy.cycles
        tests_all = bool(self.queue) and rounded_down(now, cycles.every) == now
        at_once, self.at_once = self.at_once, False
        is_due = self.due <= now or tests_all
        if is_due:
            self.due, self.last_pass = math.inf, now
        if is_due or at_once:
            taken = sum(len(one.places) for _, one in self.running.values())
            taken += sum(len(one.places) for one in self.windows if one.start <= now < one.end)
            is_full = self.processors - taken < min((job.processors for job in self.queue), default=0)
            serve = self.serve_partitions if self.policy.nodes else self.serve_heads
            if serve(now, None if tests_all else cycles.depth) or is_full:
                self.request_cycle(now)
        is_cycle = self.cycle <= now
        if is_cycle:
            self.cycle, self.last_cycle, queued = math.inf, now, len(self.queue)
            if self.policy.nodes:
                self.serve_cycle_on_nodes(now)
            else:
                self.serve_cycle(now)
            if len(self.queue) < queued:
                self.request_cycle(now)
        self.settled |= tests_all or is_cycle

    def next_pass(self, now: float) -> float:
        """Return the time of Slurm's next pass or cycle; infinity if none would find more than the last did."""
        if self.policy.backfill != "slurm":
            return math.inf
        windows = [*self.policy.unavailable, *self.policy.maintenance]
        changes = self.running or any(now < until < math.inf for _, until, _ in windows)
        time = min(self.due, self.cycle)
        if not self.queue or (self.settled and not changes):
            return time
        return min(time, rounded_down(now, self.policy.cycles.every) + self.policy.cycles.every)

    def serve_heads(self, now: float, depth: int | None) -> bool:
        """Start jobs in order until one does not fit, as Slurm's main scheduler; return whether one is not limited."""
        tested = False
        for job in self.ordered(self.policy.order, now)[:depth]:
            if self.is_limited(job):
                continue
            tested, places = True, self.choose_now(job, now, [])
            if places is None:
                break
            self.begin(job, now, places)
        return tested

    def serve_cycle(self, now: float) -> None:
        """Plan the queue anew, in its order: start jobs that can start now, and reserve for others in the window."""
        cycles, tested = self.policy.cycles, list[Job]()
        ends = self.ends_in_cycle()
        taken = [replace(one, end=max(ends[number], now)) for number, (_, one) in self.running.items()] + self.windows
        for job in self.ordered(self.policy.order, now):
            of_user = [other for other in tested if other.user == job.user]
            if self.is_limited(replace(job, processors=0)) or len(of_user) >= cycles.jobs_of_user:
                continue
            if len(tested) == cycles.jobs:
                return
            tested.append(job)
            if self.is_limited(job):
                continue
            places = list(range(job.processors))
            moments = {now} | {one.end for one in taken if one.end > now}
            start = min(moment for moment in moments if self.fits_until(job, moment, taken))
            if start > now + cycles.window:
                continue
            begin = max(cycles.slot(start), now)
            end = cycles.slot(start + job.planned)
            there = [one for _, one in self.running.values()] + [
                one for one in self.windows if one.start <= now < one.end
            ]
            if start <= now and self.suffices([*there, Occupation(now, end, places, job.demands)]):
                self.begin(job, now, places)
                taken.append(Occupation(now, max(end, now), places, job.demands))
            else:
                taken.append(Occupation(begin, max(end, begin + cycles.resolution), places, job.demands))

    def ends_in_cycle(self) -> dict[int, float]:
        """
        Return the ends with which a cycle plans running jobs, rounded down to the resolution.

        Jobs that end within 30 s are planned to end with the last of them, later ones within 60 s, 120 s, and so on.
        """
        ends: dict[int, float] = {}
        left, length = sorted((one.end, number) for number, (_, one) in self.running.items()), 30
        while left:
            together = [one for one in left if one[0] <= left[0][0] + length]
            ends |= {number: self.policy.cycles.slot(together[-1][0]) for _, number in together}
            left, length = left[len(together) :], 2 * length
        return ends

    def fits_until(self, job: Job, start: float, taken: list[Occupation]) -> bool:
        """Return whether the machine has what a job needs from ``start`` to its planned end, inclusive."""
        end = start + job.planned
        own = Occupation(start, end, list(range(job.processors)), job.demands)
        moments = [start] + [one.start for one in taken if start < one.start <= end]
        return all(self.suffices([*(one for one in taken if one.start <= moment < one.end), own]) for moment in moments)

    # -- Slurm's two schedulers on nodes

    def nodes_for(self, job: Job) -> set[int]:
        """Return the nodes of the job's partition."""
        return self.policy.partitions.get(job.partition, set(range(len(self.policy.nodes))))

    def suitable(self, job: Job, nodes: set[int]) -> set[int]:
        """Return those of some nodes that satisfy the job's constraint."""
        return nodes & self.policy.featured.get(job.constraint, nodes)

    def met(self, job: Job, start: float) -> list[tuple[float, float, set[int]]]:
        """Return the windows with nodes of a job's partition in which it would run if it started at a time."""
        end, own = start + job.planned, self.nodes_for(job)
        return [one for one in self.maintenance if one[0] < end and one[1] > start and one[2] & own]

    def left_for(self, job: Job, start: float) -> set[int]:
        """Return the nodes of a job's partition that are available while it runs."""
        return self.nodes_for(job).difference(*(nodes for _, _, nodes in self.met(job, start)))

    def free_for(self, job: Job, nodes: Iterable[int], running: Iterable[int] | None = None) -> dict[int, int]:
        """Return the processors of nodes that a job can use if these jobs are running, by default those that are."""
        numbers = self.running if running is None else running
        found = {}
        for node in nodes:
            left, *spare = self.left_on(node, numbers)
            able = (n for n in range(left, 0, -1) if all(a <= b for a, b in zip(share_of(job, n), spare, strict=True)))
            found[node] = job.usable(next(able, 0))
        return found

    def left_on(self, node: int, numbers: Iterable[int]) -> list[int]:
        """Return the processors, and the units of each resource, of a node that these running jobs leave."""
        left = [self.policy.nodes[node], *self.policy.units[node]]
        for number in numbers:
            part = self.parts[number].get(node, 0)
            left = [
                some - used for some, used in zip(left, [part, *share_of(self.running[number][0], part)], strict=True)
            ]
        return left

    def serve_partitions(self, now: float, depth: int | None) -> bool:
        """
        Start jobs in order; one that does not fit closes its partition, and its nodes, to later ones.

        A job that is wider than the open nodes that it may use closes nothing. Return whether one is not limited.
        """
        tested, closed, shut = False, set[int](), set[int]()
        for job in self.ordered(self.policy.order, now)[:depth]:
            if self.is_limited(job):
                continue
            tested = True
            usable = self.suitable(job, self.left_for(job, math.floor(now))) - shut
            if job.partition in closed:
                continue
            clear = usable - self.dirty(now)
            if job.fits(self.free_for(job, clear)):
                self.begin_on(job, now, clear)
                continue
            self.preempt(job, now, clear)
            if job.fits(self.free_for(job, usable, [])):
                closed.add(job.partition)
                shut |= self.nodes_for(job)
        return tested

    def begin_on(self, job: Job, now: float, usable: set[int]) -> None:
        """Start a job on some of these nodes."""
        self.parts[job.number] = picked(self.free_for(job, usable), job, self.policy.node_weights)
        self.begin(job, now, list(range(job.processors)))

    def serve_cycle_on_nodes(self, now: float) -> None:
        """Start jobs that can start now, and reserve whole nodes for others that can start in the window."""
        cycles, clock = self.policy.cycles, math.floor(now)
        table = [Slot(cycles.slot(clock), cycles.slot(clock + cycles.window), set(range(len(self.policy.nodes))))]
        tried, tested, made = list[Job](), 0, 1
        for job in self.ordered(self.policy.order, now):
            if self.is_limited(replace(job, processors=0)):
                continue
            if len([other for other in tried if other.user == job.user]) >= cycles.jobs_of_user:
                continue
            if tested >= cycles.jobs:
                return
            tried.append(job)
            counts, start, usable, parts = self.plan_on_nodes(job, clock, table)
            tested += counts
            if start == math.inf or self.is_limited(job):
                continue
            if start <= clock and job.fits(self.free_for(job, usable)):
                self.begin_on(job, now, usable)
            elif start <= clock + cycles.window:
                if start <= clock:
                    self.preempt(job, now, usable)
                if made >= cycles.jobs:
                    return
                begin, end = self.slots_of(job, start)
                made += reserve_nodes(table, parts, begin, end)

    def slots_of(self, job: Job, start: float) -> tuple[float, float]:
        """Return the begin and end of the reservation of a job that starts at a time."""
        begin = self.policy.cycles.slot(start)
        return begin, max(self.policy.cycles.slot(start + job.planned), begin + self.policy.cycles.resolution)

    def plan_on_nodes(self, job: Job, clock: float, table: list[Slot]) -> tuple[bool, float, set[int], set[int]]:
        """
        Return the start of a job in a cycle, the nodes that it may use then, and those that it would get.

        The first value is whether its partition had as many nodes as it needs. The job is tested from now on, and again
        from later times at which nodes are no longer reserved, or a window has ended. A window of all nodes of the
        partition is skipped at once.
        """
        cycles, members = self.policy.cycles, self.nodes_for(job)
        counts, moments = False, [float(clock)]
        while moments:
            earliest = moments.pop()
            while ends := [one[1] for one in self.met(job, earliest) if one[2] >= members and one[1] < math.inf]:
                earliest = min(ends)
            own = self.left_for(job, earliest)
            if earliest >= table[-1].end:
                return counts or len(own) >= job.least_nodes(), math.inf, set(), set()
            during = [slot for slot in table if slot.end > earliest and slot.begin <= earliest + job.planned]
            usable = own.intersection(*(slot.nodes for slot in during))
            # The first change after which nodes are available that are not now, and that begins during the job.
            ahead = [slot for slot in table if slot.end > earliest]
            later = math.inf
            for number, (slot, after) in enumerate(pairwise(ahead)):
                common = own.intersection(*(one.nodes for one in ahead[: number + 1]))
                if (number == 0 or ahead[number - 1].begin <= earliest + job.planned) and own & after.nodes - common:
                    later = slot.end
                    break
            if self.met(job, earliest):
                end = min(until for _, until, _ in self.maintenance if until >= earliest)
                again = cycles.slot(end + cycles.resolution - 1) + 1 if end < math.inf else math.inf
                later = min(later, again if again < table[-1].end else math.inf)
            if later < math.inf:
                moments.append(later)
            if len(usable) < job.least_nodes():
                continue
            counts, usable = True, self.suitable(job, usable)
            start, left = self.start_on_nodes(job, clock, usable)
            start = max(start, earliest)
            if start > clock and (start > later or start == math.inf):
                continue
            if start > clock + cycles.window:
                return counts, start, usable, set()
            parts = set(picked(self.free_for(job, usable, left), job, self.policy.node_weights))
            if start <= clock:
                return counts, start, usable, parts
            begin, end = self.slots_of(job, start)
            if all(parts <= slot.nodes for slot in table if slot.end > begin and slot.begin < end):
                return counts, start, usable, parts
            moments = [start]
        return counts, math.inf, set(), set()

    def start_on_nodes(self, job: Job, clock: float, usable: set[int]) -> tuple[float, list[int]]:
        """
        Return the time at which a job fits on nodes by the planned ends, and the jobs that are running then.

        The jobs on these nodes end in groups: the first by 30 s after the multiple of 30 s that follows the first end,
        the next ones by 60 s, 120 s and so on after it; a group has one job at least.
        """
        left = list(self.running)
        if not job.fits(self.free_for(job, usable)):  # jobs that may be preempted are no obstacle
            left = [number for number in left if number not in self.candidates(job, clock)]
        free = self.free_for(job, usable, left)
        if job.fits(free):
            dirty = self.dirty(clock) & picked(free, job, self.policy.node_weights).keys()
            return clock + bool(dirty), left
        ends = sorted((math.floor(self.running[number][1].end), number) for number in left)
        barrier, span = None, 30
        while ends:
            last = None
            while ends:
                end, number = ends.pop(0)
                if not usable & self.parts[number].keys():
                    continue
                left.remove(number)
                last = end
                if barrier is None:
                    barrier = rounded_down(end, 30, self.policy.cycles.epoch) + 30
                if ends and ends[0][0] > barrier + span:
                    break
            if last is None:
                break
            span *= 2
            while ends and ends[0][0] > barrier + span:
                span *= 2
            if job.fits(self.free_for(job, usable, left)):
                return (last if last > clock else max(last + 30, clock + 1)), left
        return math.inf, left

    def dirty(self, now: float) -> set[int]:
        """Return the nodes that preempted jobs have not left yet."""
        return {node for node, until in self.until.items() if until > now}

    def candidates(self, job: Job, now: float) -> list[int]:
        """Return the running jobs that a job may preempt, in the order in which they are taken."""
        rules, found = self.policy.preemption, list[tuple[float, int, int]]()
        for number, (other, one) in self.running.items():
            is_near = self.nodes_for(job) & self.parts[number].keys()
            old = math.floor(now) - math.floor(one.start)
            if rules and rules.allows(job, other) and is_near and old >= rules.exempt:
                found.append((rules.tier(other), len(self.parts[number]), number))
        return [number for *_, number in sorted(found)]

    def preempt(self, job: Job, now: float, usable: set[int]) -> None:
        """
        Preempt jobs so that a job fits on some of these nodes, unless that was done in the last 40 s.

        Candidates are taken until it does. If there are more, that is done again, with the last one first and then
        those on the most of the nodes that the job would get; and with three or more, once again. Those that are not on
        the nodes that the job gets at last are spared.
        """
        rules, order = self.policy.preemption, self.candidates(job, now)
        taken, nodes = list[int](), set[int]()
        for turn in range(min(len(order), 3)):
            if turn:
                before = [one for one in order if one in taken[:-1]]
                before.sort(key=lambda one: -len(nodes & self.parts[one].keys()))
                used = [one for one in before if nodes & self.parts[one].keys()]
                order = [taken[-1], *used, *(one for one in order if one != taken[-1] and one not in used)]
            for count in range(1, len(order) + 1):
                taken = order[:count]
                free = self.free_for(job, usable, self.running.keys() - set(taken))
                if job.fits(free):
                    nodes = set(picked(free, job, self.policy.node_weights))
                    break
            else:
                return
        clock = math.floor(now)
        if not rules or not order or clock < self.cleared.get(job.number, -math.inf) + 40:
            return
        self.cleared[job.number] = clock
        for number in taken:
            if nodes & self.parts[number].keys():
                self.stop(number, now, rules)

    def stop(self, number: int, now: float, rules: Preemption) -> None:
        """End a running job for another one."""
        other, one = self.running.pop(number)
        self.fair.change(other, now, -other.processors)
        self.until |= dict.fromkeys(self.parts[number], now + rules.release)
        self.preemptions[number] = self.preemptions.get(number, 0) + 1
        self.leaving.append((now + rules.release, number))
        if rules.mode_of(other) == "requeue":
            self.lost[number] = self.lost.get(number, 0.0) + now - one.start
        else:
            self.ends[number] = now
            self.spent[number] = now - one.start
            self.killed.add(number)

    def leave_nodes(self, now: float) -> list[int]:
        """Let preempted jobs leave their nodes; return them. Requeued ones are eligible again after some time."""
        gone = sorted(one for one in self.leaving if one[0] <= now)
        self.leaving = [one for one in self.leaving if one[0] > now]
        for _, number in gone:
            if number not in self.killed and self.policy.preemption:
                again = math.floor(now) + self.policy.preemption.delay
                self.away.append((again, replace(self.done[number], submit=again, leaves=math.inf)))
        return [number for _, number in gone]

    def come_back(self, now: float) -> None:
        """Queue the requeued jobs that are eligible; their turn in the order of arrival is the first one."""
        for _, job in sorted((one for one in self.away if one[0] <= now), key=lambda one: (one[0], one[1].number)):
            self.fair.submit(job)
            self.queue.append(job)
            self.newcomers.append(job)
            self.settled = False
        self.away = [one for one in self.away if one[0] > now]

    def serve_ahead(self, now: float, lookahead: int) -> None:
        """Start the head while it fits; reserve for the first waiting jobs; start others that delay none of these."""
        reservations: list[Occupation] = []
        reserved_for: list[Job] = []
        for job in self.ordered(self.policy.order, now):
            if self.is_limited(job):  # passed over
                continue
            able = self.fastest_now(job, now, reservations)
            if able is not None:
                self.begin(able[0], now, able[1])
                continue
            if lookahead == 0:
                return
            reservations.append(self.soonest(self.shapes_of(job), now, reservations)[1])
            reserved_for.append(job)
            if len(reservations) == lookahead:
                break
        for job in self.ordered(self.policy.backfill_order, now):
            able = None if self.is_limited(job) else self.fastest_now(job, now, reservations)
            if job not in reserved_for and able is not None:
                self.begin(able[0], now, able[1])

    def serve_conservatively(self, now: float) -> None:
        """Reserve for all jobs; if a job ended early, move the reservations forward, in the order of the queue."""
        if self.replan:
            for job in self.ordered(self.policy.order, now):
                if job.number in self.reserved:
                    del self.reserved[job.number]
                    self.reserve(job, now)
        self.replan = False
        for job in self.ordered(self.policy.order, now):
            if job.number not in self.reserved:
                self.reserve(job, now)
        for job in self.ordered(self.policy.order, now):
            reservation = self.reserved[job.number]
            if reservation.start <= now and self.free_now(reservation):
                self.begin(self.reserved_shape[job.number], now, reservation.places)

    def reserve(self, job: Job, now: float) -> None:
        """Reserve the earliest place for a queued job, in the shape that completes first."""
        form, place = self.soonest(self.shapes_of(job), now, list(self.reserved.values()))
        self.reserved_shape[job.number], self.reserved[job.number] = form, place

    def serve_in_table(self, now: float) -> None:
        """
        Reserve for the head, and for later jobs that are due and can backfill by count.

        If a job ended early or the head changed, all reservations are planned again; otherwise new jobs are added.
        """
        while self.queue:
            head = self.ordered(self.policy.order, now)[0]
            considered = self.newcomers
            if self.replan or self.head is not head:
                self.reserved = {head.number: self.earliest(head, now, [])}
                considered = self.queue
            self.replan, self.head = False, head
            free, shadow, extra = self.count(head, now)
            for job in self.ordered(self.policy.backfill_order, now):
                by_count = now + job.planned < shadow or job.processors < extra
                if job in considered and job.number not in self.reserved and job.processors <= free and by_count:
                    reservation = self.earliest(job, now, list(self.reserved.values()))
                    if reservation.start <= self.reserved[head.number].start:
                        self.reserved[job.number] = reservation
            for job in self.ordered(self.policy.order, now):
                reserved = self.reserved.get(job.number)
                if head in self.queue and reserved and reserved.start <= now and self.free_now(reserved):
                    self.begin(job, now, reserved.places)
            if head in self.queue:
                break
        self.newcomers = []

    def count(self, head: Job, now: float) -> tuple[int, float, int]:
        """Return the free processors, and the start and extra processors of the head by count only."""
        free = extra = self.processors - sum(job.processors for job, _ in self.running.values())
        shadow = now
        for job, occupation in sorted(self.running.values(), key=lambda one: one[1].end):
            if extra < head.processors:  # jobs that end at the same time count in the order of their starts
                shadow, extra = max(occupation.end, now), extra + job.processors
        return free, shadow, extra - head.processors


def simulate(
    jobs: list[Job],
    processors: int,
    policy: Policy,
    fair: FairShare | None = None,
    resources: tuple[int, ...] = (),
) -> Machine:
    """Simulate one machine; its ``starts``, ``places`` and ``done`` (jobs as they ran) are the schedule."""
    return simulate_centres(jobs, [Machine(processors, policy, fair, resources)], "round-robin")[0]


class Dispatcher:
    """A dispatcher that sends each arriving job to one of several machines that are wide enough."""

    def __init__(self, machines: list[Machine], rule: str) -> None:
        self.machines = machines
        self.rule = rule  # round-robin, least-loaded, earliest-start, partition
        self.turn = 0

    def choose(self, job: Job, now: float) -> int:
        """Return the index of the job's machine; ties go to the lowest."""
        if self.rule == "partition":
            return job.partition
        wide = [index for index, machine in enumerate(self.machines) if machine.takes(job)]
        if self.rule == "round-robin":
            chosen = min(wide, key=lambda index: (index < self.turn, index))
            self.turn = (chosen + 1) % len(self.machines)
            return chosen
        if self.rule == "least-loaded":
            return min(wide, key=lambda index: self.load(self.machines[index]))
        return min(wide, key=lambda index: self.would_start(self.machines[index], job, now))

    def load(self, machine: Machine) -> float:
        """Return the processors of running and queued jobs divided by those of the machine."""
        running = sum(job.processors for job, _ in machine.running.values())
        return (running + sum(job.processors for job in machine.queue)) / machine.processors

    def would_start(self, machine: Machine, job: Job, now: float) -> float:
        """Return the start of the job if all queued jobs and then the job got reservations, in order."""
        planned = machine.planned_queue(now)
        last = machine.history.get(job.user, [])[-2:]
        if machine.policy.predict and len(last) == 2:
            job = replace(job, planned=max(1.0, min(job.planned, sum(last) / 2)))
        forms = machine.forms_of(job) if machine.policy.shapes != "requested" else [job]
        return machine.soonest(forms, now, planned)[1].start


def released(jobs: list[Job], number: int, over: set[int], now: float) -> list[Job]:
    """Return the jobs that are submitted because a job ended or left the queue, with their submit times."""
    over.add(number)
    after = [replace(one, submit=now + one.think) for one in jobs if one.after == number]
    needing = [one for one in jobs if number in one.needs and set(one.needs) <= over]
    return after + [replace(one, submit=max(one.submit, now + one.think)) for one in needing]


def simulate_centres(jobs: list[Job], machines: list[Machine], rule: str) -> list[Machine]:
    """Simulate several machines; a machine makes a pass at each of its events."""
    dispatcher = Dispatcher(machines, rule)
    per_event = machines[0].policy.event_order == "per-event"
    coming = sorted((job for job in jobs if job.after < 0 and not job.needs), key=lambda job: (job.submit, job.number))
    over: set[int] = set()  # jobs that ended or left the queue
    policies = [machine.policy for machine in machines]
    window_ends = [sorted(until for _, until, _ in [*one.unavailable, *one.maintenance]) for one in policies]
    now = -math.inf
    while coming or any(one.running or one.queue or one.leaving or one.away for one in machines):
        moments = [job.submit for job in coming[:1]] + [ends[0] for ends in window_ends if ends]
        for machine in machines:
            moments += [machine.end_of(job) for job, _ in machine.running.values()]
            moments += [one.start for one in machine.reserved.values()]
            moments += [job.submit + job.leaves for job in machine.queue]
            moments += [time for time, _ in machine.leaving] + [time for time, _ in machine.away]
        times = [machine.next_pass(now) for machine in machines]
        moments += times
        now = max(now, min(moments))
        arrivals = [job for job in coming if job.submit <= now]
        done = sorted(
            (job.number, index)
            for index, machine in enumerate(machines)
            for job, _ in machine.running.values()
            if machine.end_of(job) <= now
        )
        ended = [index for index, ends in enumerate(window_ends) for end in ends if end <= now]
        cancelled = sorted(
            (job.submit + job.leaves, job.number, index)
            for index, machine in enumerate(machines)
            for job in machine.queue
            if job.submit + job.leaves <= now
        )
        if per_event:  # one event at a time, arrivals before completions, a pass after each
            arrivals = arrivals[:1]
            done = [] if arrivals else done[:1]
            ended = [] if arrivals or done else ended[:1]
            cancelled = [] if arrivals or done or ended else cancelled[:1]
        touched = {i for i, machine in enumerate(machines) if any(r.start <= now for r in machine.reserved.values())}
        slurm = {i for i, machine in enumerate(machines) if machine.policy.backfill == "slurm"}
        passes = {i for i in slurm if times[i] <= now}
        for machine in machines:
            machine.pass_time(now)
        for index in ended:
            window_ends[index].pop(0)
        for number, index in done:
            machine, job = machines[index], machines[index].running[number][0]
            if machine.unlimited_end(job) > now:  # killed
                machine.spent[number] = machine.progress[number]
        for number, index in done:
            machines[index].complete(machines[index].running[number][0], now)
            coming.extend(released(jobs, number, over, now))
        for index, machine in enumerate(machines):
            gone = machine.leave_nodes(now)
            if gone:
                machine.at_once, machine.settled = True, False
                machine.request_cycle(now)
                passes.add(index)
            for number in gone:
                if number in machine.killed:
                    coming.extend(released(jobs, number, over, now))
            machine.come_back(now)
        for _, number, index in cancelled:
            machines[index].leave(next(job for job in machines[index].queue if job.number == number))
            coming.extend(released(jobs, number, over, now))
            touched.add(index)
        coming.sort(key=lambda job: (job.submit, job.number))
        for job in arrivals if per_event else [job for job in coming if job.submit <= now]:
            coming.remove(job)
            index = dispatcher.choose(job, now)
            machines[index].arrive(job)
            touched.add(index)
        touched |= {index for _, index in done} | set(ended)
        for index in slurm & touched:
            machines[index].notice(now)
        for index in sorted(touched | passes):
            machines[index].forget_shadows(now)
            machines[index].serve(now)
            machines[index].begin_shadows()
            machines[index].interrupt_shadows(now)
    return machines
