"""A slow reference simulator of Slurm: its accounts and priorities, its two schedulers, nodes and preemption."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from naive import Dispatcher, FairShare, Job, Machine, Most, Occupation, Policy, released

#: Seconds between the times at which Slurm's main scheduler may make a pass.
TICK = 1 + 1 / 256


@dataclass
class SlurmJob(Job):
    """A job with a QOS, and what it requests of nodes."""

    qos: int = 0
    nodes: int = 1  # as requested
    constraint: int | None = None  # on the features of nodes

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


def minutes_of(job: Job) -> int:
    """Return the time limit of a job in whole minutes."""
    return max(1, int(job.planned // 60))


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
class SlurmShare(FairShare):
    """Use of accounts in a tree, which may be counted at multiples of a period only."""

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
        super().start_with(used, since)
        for (group, user), seconds in used.items():
            for name in self.names_of(group, user):
                self.counted[name] = self.counted.get(name, 0.0) + seconds

    def change(self, job: Job, now: float, processors: int) -> None:
        """Count the start of a job, or its end."""
        super().change(job, now, processors)
        if self.period and processors > 0:
            self.submitted[job.number] = (job, now)
        elif self.period:
            _, start = self.submitted.pop(job.number)
            if start is not None and not self.whole_periods:
                self.count(job, start, now)

    def names_of(self, group: int, user: int) -> list[tuple[str, object]]:
        return [*super().names_of(group, user), ("both", (group, user))]

    def withdraw(self, job: Job) -> None:
        self.submitted.pop(job.number, None)

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
        for name in self.names_of(job.group, job.user):
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
        return self.computed.get((kind, number), 0.0) if self.period else super().used(kind, number, now)

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
    jobs_of_partition: float = math.inf
    depth: int = 100
    batch_delay: int = 3  # from a pass of the main scheduler to one because of an event
    every: float = 60 * TICK  # between passes that test all jobs
    epoch: int = 0  # the log's start from 1970 on, from which the resolution counts

    def slot(self, time: float) -> float:
        """Return the start of the slot of the resolution at a time."""
        return rounded_down(time, self.resolution, self.epoch)

    def passes_over(self, job: Job, tested: list[Job]) -> bool:
        """Return whether a cycle that tested some jobs has no test left for the user or partition of a job."""
        of_user = [other for other in tested if other.user == job.user]
        of_partition = [other for other in tested if other.partition == job.partition >= 0]
        return len(of_user) >= self.jobs_of_user or len(of_partition) >= self.jobs_of_partition


@dataclass
class SlurmPolicy(Policy):
    """The options of Slurm; also of textbook machines whose accounts and priorities are Slurm's."""

    cycles: Cycles = field(default_factory=Cycles)
    multifactor: Multifactor = field(default_factory=Multifactor)  # for order slurm-multifactor
    # Limits of running jobs, processors, processor-minutes and counted units: of a user, group, partition or QOS
    # (``limits``), of each user in a partition or QOS, of a group with all groups below it, and of a user in a group;
    # and the group above.
    user_limits: dict[tuple[str, int], Most] = field(default_factory=dict)
    tree_limits: dict[int, Most] = field(default_factory=dict)
    member_limits: dict[tuple[int, int], Most] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)  # the processors of each node
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

    def of(self, job: SlurmJob) -> int:
        """Return the partition or QOS of a job."""
        return job.partition if self.kind == "partition" else job.qos

    def tier(self, job: SlurmJob) -> float:
        return self.tiers.get(self.of(job), 1 if self.kind == "partition" else 0)

    def level(self, job: SlurmJob) -> float:
        """Return a number that is higher for jobs that are before others in the queue."""
        return self.tier(job) if self.kind == "partition" else self.depth(job.qos)

    def depth(self, qos: int) -> int:
        return max((1 + self.depth(other) for other in self.listed.get(qos, ())), default=0)

    def mode_of(self, job: SlurmJob) -> str:
        return self.modes.get(self.of(job), self.mode)

    def allows(self, job: SlurmJob, other: SlurmJob) -> bool:
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


def picked(free: dict[int, int], job: SlurmJob, weights: list[int]) -> dict[int, int]:
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


def share_of(job: SlurmJob, processors: int) -> list[int]:
    """Return the whole units of each resource that some processors of a job need."""
    return [-(-units * processors // job.processors) for units in job.demands]  # rounded up


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


class AccountedMachine(Machine):
    """A textbook machine with the accounts, limits and priorities of Slurm."""

    policy: SlurmPolicy
    fair: SlurmShare

    def key(self, order: "str | Callable[[Job, float, Machine], float]", job: Job, now: float) -> float:
        """Return the sort key of the queue, when it was computed last, or at the submission."""
        if order != "slurm-multifactor":
            return super().key(order, job, now)
        return -self.policy.multifactor.priority(job, max(self.fair.computed_at(now), job.submit), self)

    def is_limited(self, job: Job) -> bool:
        """Return whether the job would exceed a limit of its user, group, partition or job array."""
        tasks = [other for other, _ in self.running.values() if other.array == job.array]
        if job.array and len(tasks) >= job.array_limit:
            return True
        for _, limits, running in self.limits_for(job):
            jobs, processors = len(running) + 1, sum(other.processors for other in running) + job.processors
            minutes = sum(map(self.seconds_left, running)) // 60 + job.processors * minutes_of(job)
            counted = [sum(units) for units in zip(*(other.counted for other in [*running, job]), strict=False)]
            if any(count > most for count, most in zip((jobs, processors, minutes, *counted), limits, strict=False)):
                return True
        return False

    def limits_for(self, job: Job) -> list[tuple[str, Most, list[Job]]]:
        """Return the limits that apply to a job: whose they are, the limits, and the running jobs that they count."""
        found: list[tuple[str, Most, list[Job]]] = []
        others = [other for other, _ in self.running.values()]
        for (kind, number), most in self.policy.limits.items():
            if getattr(job, kind) == number:
                found.append((kind, most, [other for other in others if getattr(other, kind) == number]))
        for (kind, number), most in self.policy.user_limits.items():
            if getattr(job, kind) == number and job.user >= 0:
                there = [other for other in others if getattr(other, kind) == number]
                found.append((f"user of {kind}", most, [other for other in there if other.user == job.user]))
        for (group, user), most in self.policy.member_limits.items():
            if (job.group, job.user) == (group, user):
                found.append(("user", most, [other for other in others if (other.group, other.user) == (group, user)]))
        for group, most in self.policy.tree_limits.items():
            if group in self.above(job.group):
                found.append(("group", most, [other for other in others if group in self.above(other.group)]))
        return found

    def seconds_left(self, job: Job) -> int:
        """Return the processor-seconds from a job's start, or the last end of a period, to its time limit."""
        start, fair = self.starts[job.number], self.fair
        since = max(start, (fair.passed or 0) * fair.period) if fair.period else start
        return job.processors * math.floor(max(0, start + 60 * minutes_of(job) - since) + 0.5)

    def above(self, group: int) -> list[int]:
        """Return a group and those above it."""
        parent = self.policy.parents.get(group)
        return [group] if parent is None else [group, *self.above(parent)]


class SlurmMachine(AccountedMachine):
    """A machine with Slurm's two schedulers, and its nodes."""

    def __init__(
        self, processors: int, policy: SlurmPolicy, fair: SlurmShare | None = None, resources: tuple[int, ...] = ()
    ) -> None:
        super().__init__(processors, policy, fair or SlurmShare(), resources)
        self.maintenance = [  # in whole seconds
            (math.floor(begin), math.floor(until) if until < math.inf else until, nodes)
            for begin, until, nodes in policy.maintenance
        ]
        # The main scheduler: the time of the pass that is due, of the last one, and whether one that tests all jobs or
        # a cycle came after the last event.
        self.due, self.last_pass, self.settled = math.inf, -math.inf, False
        self.cycle, self.last_cycle = math.inf, 0.0  # the next backfill cycle and the last one
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

    def limits_for(self, job: Job) -> list[tuple[str, Most, list[Job]]]:
        """
        Return the limits that apply to a job, without those that are replaced.

        A limit of a partition replaces the same one of a QOS, and each of both that of groups and of users. That of the
        jobs of a user is replaced by that of the jobs of each user. Without nodes, a
        partition's limit of processors is its size.
        """
        applying = super().limits_for(job)
        given = {kind: list(most) for kind, most, _ in applying if kind not in ("user", "group")}
        if "partition" in given and not self.policy.nodes:
            given["partition"][1] = math.inf  # the size of the partition, not a limit of a QOS
        by = {
            "partition": [], "user of partition": [], "qos": ["partition"], "user of qos": ["user of partition"],
            "group": ["partition", "qos"], "user": ["partition", "qos"],
        }  # fmt: skip
        found = []
        for kind, limits, running in applying:
            left = list(limits)
            for what in range(len(left)):
                others = ["user of partition", "user of qos"] if kind == "user" and what == 0 else by.get(kind, [])
                if any(given[other][what] < math.inf for other in others if other in given):
                    left[what] = math.inf
            found.append((kind, tuple(left), running))
        return found

    def has_all_jobs(self, job: Job) -> bool:
        """Return whether as many jobs are running as a limit that applies to a job allows."""
        tasks = [other for other, _ in self.running.values() if other.array == job.array]
        if job.array and len(tasks) >= job.array_limit:
            return True
        return any(len(running) >= most[0] for _, most, running in self.limits_for(job))

    def suffices(self, taken: list[Occupation]) -> bool:
        """Return whether the machine has the processors, and what the last occupation needs, of all at once."""
        # Rounded reservations may occupy more than there is; only what the last occupation needs counts then.
        needs = taken[-1].demands or (0,) * len(self.resources)
        return sum(len(one.places) for one in taken) <= self.processors and all(
            sum(one.demands[number] for one in taken if one.demands) <= units
            for number, units in enumerate(self.resources)
            if needs[number]
        )

    def ordered(self, order: "str | Callable[[Job, float, Machine], float]", now: float) -> list[Job]:
        found, rules = super().ordered(order, now), self.policy.preemption
        return sorted(found, key=rules.level, reverse=True) if rules else found

    def begin(self, job: Job, now: float, places: list[int]) -> None:
        super().begin(job, now, places)
        for node in self.parts.get(job.number, {}):
            left = self.left_on(node, self.running)
            assert min(left) >= 0, "a node has more processors or units in use than there are"

    def serve(self, now: float) -> None:
        """Make the pass of the main scheduler and the cycle, if they are due."""
        self.correct(now)
        self.serve_as_slurm(now)

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
            if self.has_all_jobs(job) or cycles.passes_over(job, tested):
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

    def nodes_for(self, job: SlurmJob) -> set[int]:
        """Return the nodes of the job's partition."""
        return self.policy.partitions.get(job.partition, set(range(len(self.policy.nodes))))

    def suitable(self, job: SlurmJob, nodes: set[int]) -> set[int]:
        """Return those of some nodes that satisfy the job's constraint."""
        return nodes & self.policy.featured.get(job.constraint, nodes)

    def met(self, job: SlurmJob, start: float) -> list[tuple[float, float, set[int]]]:
        """Return the windows with nodes of a job's partition in which it would run if it started at a time."""
        end, own = start + job.planned, self.nodes_for(job)
        return [one for one in self.maintenance if one[0] < end and one[1] > start and one[2] & own]

    def left_for(self, job: SlurmJob, start: float) -> set[int]:
        """Return the nodes of a job's partition that are available while it runs."""
        return self.nodes_for(job).difference(*(nodes for _, _, nodes in self.met(job, start)))

    def free_for(self, job: SlurmJob, nodes: Iterable[int], running: Iterable[int] | None = None) -> dict[int, int]:
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
            if part := self.parts[number].get(node, 0):
                used = [part, *share_of(self.running[number][0], part)]
                left = [some - taken for some, taken in zip(left, used, strict=True)]
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

    def begin_on(self, job: SlurmJob, now: float, usable: set[int]) -> None:
        """Start a job on some of these nodes."""
        self.parts[job.number] = picked(self.free_for(job, usable), job, self.policy.node_weights)
        self.begin(job, now, list(range(job.processors)))

    def serve_cycle_on_nodes(self, now: float) -> None:
        """Start jobs that can start now, and reserve whole nodes for others that can start in the window."""
        cycles, clock = self.policy.cycles, math.floor(now)
        table = [Slot(cycles.slot(clock), cycles.slot(clock + cycles.window), set(range(len(self.policy.nodes))))]
        tried, tested, made = list[Job](), 0, 1
        for job in self.ordered(self.policy.order, now):
            if self.has_all_jobs(job) or cycles.passes_over(job, tried):
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

    def slots_of(self, job: SlurmJob, start: float) -> tuple[float, float]:
        """Return the begin and end of the reservation of a job that starts at a time."""
        begin = self.policy.cycles.slot(start)
        return begin, max(self.policy.cycles.slot(start + job.planned), begin + self.policy.cycles.resolution)

    def plan_on_nodes(self, job: SlurmJob, clock: float, table: list[Slot]) -> tuple[bool, float, set[int], set[int]]:
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

    def start_on_nodes(self, job: SlurmJob, clock: float, usable: set[int]) -> tuple[float, list[int]]:
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

    def candidates(self, job: SlurmJob, now: float) -> list[int]:
        """Return the running jobs that a job may preempt, in the order in which they are taken."""
        rules, found = self.policy.preemption, list[tuple[float, int, int]]()
        own = self.nodes_for(job)
        for number, (other, one) in self.running.items() if rules else ():
            is_near = own & self.parts[number].keys()
            old = math.floor(now) - math.floor(one.start)
            has_ended = rules is not None and one.start + other.run - rules.release <= now
            if rules and rules.allows(job, other) and is_near and old >= rules.exempt and not has_ended:
                found.append((rules.tier(other), len(self.parts[number]), number))
        return [number for *_, number in sorted(found)]

    def preempt(self, job: SlurmJob, now: float, usable: set[int]) -> None:
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
            self.lost[number] = self.lost.get(number, 0.0) + (now - one.start)
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


def simulate_slurm(jobs: list[Job], machines: list[SlurmMachine], rule: str) -> list[SlurmMachine]:
    """Simulate one or several machines; the events of an instant come before the passes that are due."""
    dispatcher = Dispatcher(list(machines), rule)
    coming = sorted((job for job in jobs if job.after < 0 and not job.needs), key=lambda job: (job.submit, job.number))
    over: set[int] = set()  # jobs that ended or left the queue
    policies = [machine.policy for machine in machines]
    window_ends = [sorted(until for _, until, _ in [*one.unavailable, *one.maintenance]) for one in policies]
    now = -math.inf
    while coming or any(one.running or one.queue or one.leaving or one.away for one in machines):
        moments = [job.submit for job in coming[:1]] + [ends[0] for ends in window_ends if ends]
        for machine in machines:
            moments += [machine.end_of(job) for job, _ in machine.running.values()]
            moments += [job.submit + job.leaves for job in machine.queue]
            moments += [time for time, _ in machine.leaving] + [time for time, _ in machine.away]
        times = [machine.next_pass(now) for machine in machines]
        now = max(now, min([*moments, *times]))
        passes, touched = {index for index, time in enumerate(times) if time <= now}, set[int]()
        done = sorted(
            (job.number, index)
            for index, machine in enumerate(machines)
            for job, _ in machine.running.values()
            if machine.end_of(job) <= now
        )
        cancelled = sorted(
            (job.submit + job.leaves, job.number, index)
            for index, machine in enumerate(machines)
            for job in machine.queue
            if job.submit + job.leaves <= now
        )
        for machine in machines:
            machine.pass_time(now)
        for index, ends in enumerate(window_ends):
            while ends and ends[0] <= now:
                ends.pop(0)
                touched.add(index)
        for number, index in done:
            job = machines[index].running[number][0]
            machines[index].complete(job, now)
            coming.extend(released(jobs, job, over, now))
            touched.add(index)
        for index, machine in enumerate(machines):
            gone = machine.leave_nodes(now)
            if gone:
                machine.at_once, machine.settled = True, False
                machine.request_cycle(now)
                passes.add(index)
            for number in gone:
                if number in machine.killed:
                    job = next(job for job in jobs if job.number == number)
                    coming.extend(released(jobs, job, over, now))
            machine.come_back(now)
        for _, number, index in cancelled:
            job = next(job for job in machines[index].queue if job.number == number)
            machines[index].leave(job)
            coming.extend(released(jobs, job, over, now))
            touched.add(index)
        coming.sort(key=lambda job: (job.submit, job.number))
        for job in [job for job in coming if job.submit <= now]:
            coming.remove(job)
            index = dispatcher.choose(job, now)
            machines[index].arrive(job)
            touched.add(index)
        for index in touched:
            machines[index].notice(now)
        for index in sorted(touched | passes):
            machines[index].serve(now)
    return machines
