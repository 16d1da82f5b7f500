"""A slow reference simulator of the textbook engine, simple enough to verify by reading; its kernels must agree."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

#: Limits of running jobs, of their processors and processor-minutes, and of what else is ``counted`` of them.
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
    after: int = -1  # the preceding job, on whose end the submission depends
    think: float = 0.0  # time from that end to the submission
    patience: float = math.inf  # response time above which no job is submitted after this one
    needs: tuple[int, ...] = ()  # jobs that must have ended; then, and not before `submit`, the job is submitted
    leaves: float = math.inf  # time after the submission at which the job leaves the queue, if it has not started
    array: int = 0  # the job array; 0: none
    array_limit: float = math.inf  # the most tasks of the array that run at once
    demands: tuple[int, ...] = ()  # units of each resource of the machine
    counted: tuple[int, ...] = ()  # units that only limits count

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
class FairShare:
    """Use of all accounts on all machines, and their shares, which sum to 1."""

    half_life: float = math.inf
    shares: dict[str, dict[int, float]] = field(default_factory=dict)  # shares of users and groups
    accounts: "dict[tuple[str, object], Account]" = field(default_factory=dict)

    def computed_at(self, now: float) -> float:
        """Return the last time until now at which priorities were computed."""
        return now

    def start_with(self, used: dict[tuple[int, int], float], since: float) -> None:
        """Begin with the use, in processor-seconds, of users in their groups."""
        unit = 1.0 if self.half_life == math.inf else self.half_life / math.log(2)
        for (group, user), seconds in used.items():
            for name in self.names_of(group, user):
                self.account(*name).used += seconds / unit
        for account in self.accounts.values():
            account.since = since

    def account(self, kind: str, number: object = 0) -> Account:
        return self.accounts.setdefault((kind, number), Account(self.half_life))

    def change(self, job: Job, now: float, processors: int) -> None:
        """Count the start of a job, or its end."""
        for name in self.names_of(job.group, job.user):
            self.account(*name).change(now, processors)

    def names_of(self, group: int, user: int) -> list[tuple[str, object]]:
        """Return the accounts of the jobs of a user in a group."""
        return [("all", 0), ("user", user), ("group", group)]

    def submit(self, job: Job) -> None:
        """Note that a job is queued."""

    def withdraw(self, job: Job) -> None:
        """Note that a queued job is cancelled."""

    def pass_time(self, now: float) -> None:
        """Compute what is computed at certain times only."""

    def used(self, kind: str, number: object, now: float) -> float:
        """Return the use of an account, as a share of all."""
        everybody = self.account("all").by(now)
        return self.account(kind, number).by(now) / everybody if everybody > 0 else 0.0

    def usage(self, kind: str, job: Job, now: float) -> float:
        """Return the share of the job's user or group in all use."""
        return 0.0 if getattr(job, kind) < 0 else self.used(kind, getattr(job, kind), now)  # below 0: unknown

    def entitled(self, kind: str, job: Job) -> float:
        return self.shares[kind][max(getattr(job, kind), -1)]  # -1: the share of an unknown one


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
    once: bool = False  # whether a job's penalty is computed only when it starts

    def cost(self, usage: list[int]) -> Fraction:
        """Return the penalty of a node: the sum over its resources."""
        pairs = zip(usage, self.capacities, strict=True)
        return sum((self.penalty(Fraction(used), Fraction(capacity)) for used, capacity in pairs), Fraction(0))

    def usage(self, processes: list[int]) -> list[int]:
        """Return the total demand of processes, given by their jobs."""
        return [sum(self.demands[job][k] for job in processes) for k in range(len(self.capacities))]


@dataclass
class Policy:
    """
    Scheduler options; ``lookahead`` is the number of reservations, 1 for EASY; a pass backfills ``starts`` jobs.

    An order is a name of `ORDERS`, one by usage (see `Machine.key`), or a function of a job, the time and its machine.
    """

    order: "str | Callable[[Job, float, Machine], float]" = "fcfs"
    backfill: str = "none"  # none, lookahead, conservative, reservation-table
    lookahead: int = 1
    starts: float = math.inf
    backfill_order: "str | Callable[[Job, float, Machine], float]" = "fcfs"
    event_order: str = "batch"  # batch, per-event
    # count, first-fit, longest-idle, first-contiguous, least-shared, threshold
    allocation: str = "count"
    predict: bool = False  # planned run times from the user's last two jobs, instead of the estimates
    unavailable: list[tuple[float, float, int]] = field(default_factory=list)  # from, until, processors
    resources: Resources | None = None
    shapes: str = "requested"  # requested, submit, start: time at which the shape of a moldable job is chosen
    # Limits of running jobs and processors of a user, group or partition: ("user", 3) to both.
    limits: dict[tuple[str, int], Most] = field(default_factory=dict)


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
        self.turns: dict[int, int] = {}
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
        return sum(len(one.places) for one in taken) <= self.processors and all(
            sum(one.demands[number] for one in taken if one.demands) <= units
            for number, units in enumerate(self.resources)
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
        if shared is None or not shared.slows or shared.once or job in unseen:
            return Fraction(0)
        return shared.cost(shared.usage([other for other in self.processes_of(node) if other not in unseen]))

    def cost_at_start(self, job: Job, node: int, now: float) -> Fraction:
        """Return the delay of a job that starts now by a node, until it or a visible job there is planned to end."""
        shared, unseen = self.policy.resources, self.unseen.get(node, {})
        if shared is None or not shared.slows or not shared.once:
            return Fraction(0)
        seen = [other for other in self.processes_of(node) if other not in unseen]
        planned = [self.running[other][1].end - now for other in seen if other != job.number]
        return shared.cost(shared.usage(seen)) * Fraction(max(min([job.run, *planned]), 0))

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
        self.fair.withdraw(job)
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
            return sorted(self.queue, key=lambda job: self.turns[job.number])
        return sorted(self.queue, key=lambda job: (self.key(order, job, now), job.number))

    def key(self, order: "str | Callable[[Job, float, Machine], float]", job: Job, now: float) -> float:
        """Return the sort key of the queue, when it was computed last, or at the submission."""
        now = max(self.fair.computed_at(now), job.submit)
        if callable(order):
            return order(job, now, self)
        if order == "fair-share":
            return self.fair.usage("user", job, now) / self.fair.entitled("user", job)
        if order == "group-usage":
            return self.fair.usage("group", job, now)
        return ORDERS[order](job, now)

    def is_limited(self, job: Job) -> bool:
        """Return whether the job would exceed a limit of its user, group, partition or job array."""
        running = [other for other, _ in self.running.values()]
        if job.array and len([other for other in running if other.array == job.array]) >= job.array_limit:
            return True
        for (kind, number), (most_jobs, most_processors, *most) in self.policy.limits.items():
            there = [other for other in running if getattr(other, kind) == number] + [job]
            if getattr(job, kind) != number:
                continue
            if len(there) > most_jobs or sum(other.processors for other in there) > most_processors:
                return True
            for units, most_units in enumerate(most[1:] if job.counted else ()):
                if sum(other.counted[units] for other in there) > most_units:
                    return True
        return False

    def begin(self, job: Job, now: float, places: list[int]) -> None:
        self.queue = [queued for queued in self.queue if queued.number != job.number]
        self.reserved.pop(job.number, None)
        self.done.setdefault(job.number, job)
        self.running[job.number] = (job, Occupation(now, now + job.planned, places, job.demands))
        self.starts[job.number] = now
        self.fair.change(job, now, job.processors)
        self.places[job.number] = places
        self.progress[job.number] = Fraction(0)
        self.added[job.number] = {node: self.cost_at_start(job, node, now) for node in self.nodes_of(job)}
        self.fresh.append(job.number)

    def serve(self, now: float) -> None:
        """Make one scheduling pass."""
        self.correct(now)
        if self.policy.backfill == "conservative":
            self.serve_conservatively(now)
        elif self.policy.backfill == "reservation-table":
            self.serve_in_table(now)
        else:
            self.serve_ahead(now, self.policy.lookahead if self.policy.backfill == "lookahead" else 0)

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
        left = self.policy.starts
        for job in self.ordered(self.policy.backfill_order, now):
            able = None if self.is_limited(job) else self.fastest_now(job, now, reservations)
            if job not in reserved_for and able is not None and left > 0:
                self.begin(able[0], now, able[1])
                left -= 1

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


def released(jobs: list[Job], ended: Job, over: set[int], now: float) -> list[Job]:
    """Return the jobs that are submitted because a job ended or left the queue, with their submit times."""
    number = ended.number
    over.add(number)
    after = [replace(one, submit=now + one.think) for one in jobs if one.after == number]
    after = [] if now - ended.submit > ended.patience else after
    needing = [one for one in jobs if number in one.needs and set(one.needs) <= over]
    return after + [replace(one, submit=max(one.submit, now + one.think)) for one in needing]


def simulate_centres(jobs: list[Job], machines: list[Machine], rule: str) -> list[Machine]:
    """Simulate several machines; a machine makes a pass at each of its events."""
    dispatcher = Dispatcher(machines, rule)
    per_event = machines[0].policy.event_order == "per-event"
    coming = sorted((job for job in jobs if job.after < 0 and not job.needs), key=lambda job: (job.submit, job.number))
    over: set[int] = set()  # jobs that ended or left the queue
    window_ends = [sorted(until for _, until, _ in machine.policy.unavailable) for machine in machines]
    now = -math.inf
    while coming or any(one.running or one.queue for one in machines):
        moments = [job.submit for job in coming[:1]] + [ends[0] for ends in window_ends if ends]
        for machine in machines:
            moments += [machine.end_of(job) for job, _ in machine.running.values()]
            moments += [one.start for one in machine.reserved.values()]
            moments += [job.submit + job.leaves for job in machine.queue]
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
        for machine in machines:
            machine.pass_time(now)
        for index in ended:
            window_ends[index].pop(0)
        for number, index in done:
            machine, job = machines[index], machines[index].running[number][0]
            if machine.unlimited_end(job) > now:  # killed
                machine.spent[number] = machine.progress[number]
        for number, index in done:
            job = machines[index].running[number][0]
            machines[index].complete(job, now)
            coming.extend(released(jobs, job, over, now))
        for _, number, index in cancelled:
            job = next(job for job in machines[index].queue if job.number == number)
            machines[index].leave(job)
            coming.extend(released(jobs, job, over, now))
            touched.add(index)
        coming.sort(key=lambda job: (job.submit, job.number))
        for job in arrivals if per_event else [job for job in coming if job.submit <= now]:
            coming.remove(job)
            index = dispatcher.choose(job, now)
            machines[index].arrive(job)
            touched.add(index)
        touched |= {index for _, index in done} | set(ended)
        for index in sorted(touched):
            machines[index].forget_shadows(now)
            machines[index].serve(now)
            machines[index].begin_shadows()
            machines[index].interrupt_shadows(now)
    return machines
