"""
Simulate sites in plain Python, without swflow: the source of truths for `truths.py`.

    python benchmarks/other_simulator.py

It shares no code with swflow. A site has pools of alike units, which are processors, whole nodes, or nodes whose GPUs
jobs share. Two policies are known: ``easy``, as in the textbook, and ``slurm``, a main scheduler at events and cycles
of a backfill scheduler that plans the queue anew. Times are whole seconds. Run as a script, it checks schedules that
were computed by hand.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

DAY = 86_400


@dataclass(frozen=True)
class Job:
    """A job: it runs for ``run`` seconds, at most for its ``limit``, on some units of the pool of its partition."""

    number: int
    submit: int
    run: int
    limit: int
    units: int
    partition: str = "all"
    user: str = "ann"
    qos: str = "normal"


@dataclass(frozen=True)
class Pool:
    """Units that jobs occupy; with a ``share``, they are GPUs, that many make a node, and a job is on one node."""

    units: int
    share: int = 0


@dataclass(frozen=True)
class Site:
    """
    A site and its policy.

    ``partitions`` maps to pools; jobs of a higher tier come first, and then those with more points, which are
    ``weights`` times the factors age, size, QOS and partition. ``limits`` of a QOS or partition are the units and the
    running jobs of each user. ``preempts`` maps a QOS to those whose jobs it requeues; these wait for ``requeue``
    seconds. With ``within_plan``, a cycle requeues jobs only if no earlier job of the order is delayed. A start and an
    end take up to ``latency`` seconds.
    """

    pools: Mapping[str, Pool]
    partitions: Mapping[str, str]
    policy: str = "easy"
    order: str = "fcfs"
    backfill: bool = True
    tiers: Mapping[str, int] = field(default_factory=dict)
    weights: Mapping[str, int] = field(default_factory=dict)
    qos: Mapping[str, int] = field(default_factory=dict)
    favor: Mapping[str, int] = field(default_factory=dict)
    max_age: int = 7 * DAY
    limits: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    preempts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    requeue: int = 121
    within_plan: bool = False
    cycle: int = 30
    tests: int = 100
    window: int = DAY
    latency: int = 0


@dataclass(frozen=True)
class Record:
    """A run of a job: when it became eligible, started and ended, and how."""

    job: Job
    eligible: int
    start: int
    end: int
    state: str


class Units:
    """The units of a pool over time: what is free now, and in a plan, from each time on."""

    def __init__(self, pool: Pool) -> None:
        self.share = pool.share
        nodes = pool.units // pool.share if pool.share else 1
        self.free = [pool.share or pool.units] * nodes
        self.running: dict[int, tuple[int, int, int]] = {}  # planned end, units, node
        self.steps: list[tuple[list[int], list[int]]] = []

    def node_for(self, units: int) -> int:
        """Return the fullest node with enough free units; -1 if there is none."""
        fitting = [(free, node) for node, free in enumerate(self.free) if free >= units]
        return min(fitting)[1] if fitting else -1

    def start(self, number: int, units: int, end: int) -> None:
        """Let a job occupy units until its planned end."""
        node = self.node_for(units)
        self.free[node] -= units
        self.running[number] = (end, units, node)

    def stop(self, number: int) -> None:
        """Free the units of a job."""
        _, units, node = self.running.pop(number)
        self.free[node] += units

    def open_plan(self, now: int) -> None:
        """Plan the running jobs until their limits."""
        self.steps = []
        ends: list[list[tuple[int, int]]] = [[] for _ in self.free]
        for end, units, node in self.running.values():
            ends[node].append((max(end, now + 1), units))
        for node, free in enumerate(self.free):
            times, left = [now], [free]
            for end, units in sorted(ends[node]):
                if times[-1] == end:
                    left[-1] += units
                else:
                    times.append(end)
                    left.append(left[-1] + units)
            self.steps.append((times, left))

    def earliest(self, units: int, length: int) -> tuple[int, int]:
        """Return the earliest planned start, and the node; ties go to the fullest node."""
        found = []
        for node, (times, left) in enumerate(self.steps):
            first = step = 0
            while first < len(times):
                if step == len(times) or times[step] >= times[first] + length:
                    found.append((times[first], left[first], node))
                    break
                if left[step] < units:
                    first = step + 1
                step += 1
        start, _, node = min(found, default=(-1, 0, -1))
        return start, node

    def reserve(self, node: int, start: int, length: int, units: int) -> None:
        """Take units of a node out of the plan."""
        times, left = self.steps[node]
        for time in (start, start + length):
            place = bisect_right(times, time)
            if times[place - 1] != time:
                times.insert(place, time)
                left.insert(place, left[place - 1])
        for step in range(bisect_right(times, start) - 1, bisect_right(times, start + length) - 1):
            left[step] -= units


class Simulation:
    """The state of a site while it runs jobs."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.pools = {name: Units(pool) for name, pool in site.pools.items()}
        self.total = sum(pool.units for pool in site.pools.values())
        self.queue: dict[int, Job] = {}
        self.eligible: dict[int, int] = {}
        self.started: dict[int, tuple[Job, int, int]] = {}  # the job, its start, and the time of its release
        self.used: dict[tuple[str, str], list[int]] = {}
        self.events: list[tuple[int, int, int]] = []
        self.records: list[Record] = []
        self.now = 0

    def run(self, jobs: Iterable[Job]) -> list[Record]:
        """Return the runs of all jobs, in the order of their ends."""
        coming = {job.number: job for job in jobs}
        fits = {
            job.number: job.units <= (pool.share or pool.units)
            for job in coming.values()
            for pool in [self.site.pools[self.site.partitions[job.partition]]]
        }
        coming = {number: job for number, job in coming.items() if fits[number]}
        self.events = [(job.submit, 1, number) for number, job in coming.items()]
        heapq.heapify(self.events)
        due, changed = 0, False
        while self.events or (changed and self.queue):
            cycle = max(due, self.now) if changed and self.site.policy == "slurm" and self.site.backfill else 1 << 62
            self.now = min(self.events[0][0] if self.events else 1 << 62, cycle)
            if self.now == 1 << 62:
                break
            happened = False
            while self.events and self.events[0][0] == self.now:
                happened = self._happen(*heapq.heappop(self.events), coming) or happened
            changed |= happened
            if happened:
                self._easy() if self.site.policy == "easy" else self._main()
            if self.site.policy == "slurm" and changed and self.now >= due and self.site.backfill:
                changed = self._cycle()
                due = self.now + self.site.cycle
        return self.records

    def _happen(self, time: int, kind: int, number: int, coming: Mapping[int, Job]) -> bool:
        """Process a release (0) or a submission (1); return whether there was one: a preempted run has no end."""
        if kind == 0:
            job, start, release = self.started.get(number, (None, 0, -1))
            if job is None or release != time:
                return False
            self._leave(job)
            end = start + min(job.run, job.limit)
            state = "COMPLETED" if job.run <= job.limit else "TIMEOUT"
            self.records.append(Record(job, self.eligible[number], start, end, state))
            return True
        self.queue[number], self.eligible[number] = coming[number], time
        return True

    def _leave(self, job: Job) -> None:
        self._pool(job).stop(job.number)
        del self.started[job.number]
        for place in (job.qos, job.partition):
            used = self.used[place, job.user]
            used[0] -= job.units
            used[1] -= 1

    def _pool(self, job: Job) -> Units:
        return self.pools[self.site.partitions[job.partition]]

    def _begin(self, job: Job) -> None:
        """Start a job: it occupies its units at once, but starts and ends with some latency."""
        latency = self.site.latency
        start = self.now + (job.number * 7 % (latency + 1))
        release = start + min(job.run, job.limit) + (job.number * 5 % (latency + 1))
        self._pool(job).start(job.number, job.units, start + job.limit)
        self.started[job.number] = (job, start, release)
        for place in (job.qos, job.partition):
            used = self.used.setdefault((place, job.user), [0, 0])
            used[0] += job.units
            used[1] += 1
        del self.queue[job.number]
        heapq.heappush(self.events, (max(release, self.now + 1), 0, job.number))
        self.started[job.number] = (job, start, max(release, self.now + 1))

    def _is_limited(self, job: Job) -> bool:
        for place in (job.qos, job.partition):
            limits, (units, jobs) = self.site.limits.get(place, {}), self.used.get((place, job.user), (0, 0))
            if units + job.units > limits.get("units", 1 << 60) or jobs + 1 > limits.get("jobs", 1 << 60):
                return True
        return False

    def _points(self, job: Job) -> int:
        site, weights = self.site, self.site.weights
        age = min(1.0, (self.now - self.eligible[job.number]) / site.max_age)
        return int(
            weights.get("age", 0) * age
            + weights.get("size", 0) * job.units / self.total
            + weights.get("qos", 0) * site.qos.get(job.qos, 0) / max(site.qos.values(), default=1)
            + weights.get("partition", 0) * site.favor.get(job.partition, 1) / max(site.favor.values(), default=1)
        )

    def _sorted(self) -> list[Job]:
        """Return the queue in the order of the policy."""
        if self.site.order == "sjf":
            return sorted(self.queue.values(), key=lambda job: (job.limit, job.submit, job.number))
        tiers = self.site.tiers
        return sorted(
            self.queue.values(), key=lambda job: (-tiers.get(job.partition, 1), -self._points(job), job.number)
        )

    # -- EASY

    def _easy(self) -> None:
        """Start jobs in order in each pool; others may overtake the first one that waits, without delaying it."""
        heads: dict[str, tuple[int, int]] = {}  # the shadow time and the extra units
        for job in self._sorted():
            name, pool = self.site.partitions[job.partition], self._pool(job)
            if self._is_limited(job):
                continue
            if name not in heads:
                if pool.free[0] >= job.units:
                    self._begin(job)
                    continue
                shadow, units = self.now, pool.free[0]
                for end, more, _ in sorted(pool.running.values()):
                    if units >= job.units and end > shadow:
                        break
                    shadow, units = end, units + more
                heads[name] = (shadow, units - job.units)
            elif self.site.backfill and pool.free[0] >= job.units:
                shadow, extra = heads[name]
                in_time = self.now + job.limit <= shadow
                if in_time or job.units <= extra:
                    self._begin(job)
                    heads[name] = (shadow, extra if in_time else extra - job.units)

    # -- Slurm

    def _main(self) -> None:
        """Start jobs in order, until one of a pool does not fit; it closes the pool for later ones."""
        closed = set()
        for job in self._sorted()[: self.site.tests]:
            name = self.site.partitions[job.partition]
            if name in closed or self._is_limited(job):
                continue
            if self.pools[name].node_for(job.units) >= 0 or self._preempt(job):
                self._begin(job)
            else:
                closed.add(name)

    def _cycle(self) -> bool:
        """Plan the queue anew, and start the jobs whose planned start is now; return whether any did."""
        full = {name for name, pool in self.pools.items() if max(pool.free) == 0 and not self.site.preempts}
        opened, any_started = set(), False
        for job in self._sorted()[: self.site.tests]:
            name = self.site.partitions[job.partition]
            if name in full or self._is_limited(job):
                continue
            pool = self.pools[name]
            if name not in opened:
                pool.open_plan(self.now)
                opened.add(name)
            start, node = pool.earliest(job.units, job.limit)
            if start > self.now and self._delays_none(job) and self._preempt(job):
                self._begin(job)
                return True  # the next cycle plans with the units that are left
            if start == self.now and pool.free[node] >= job.units:
                pool.reserve(node, start, job.limit, job.units)
                self._begin(job)
                any_started = True
            elif start < self.now + self.site.window:
                pool.reserve(node, start, job.limit, job.units)
        return any_started

    def _preempted(self, job: Job) -> list[tuple[int, Job]]:
        """Return the running jobs that a job preempts, with their starts."""
        others, pool = self.site.preempts.get(job.qos, ()), self._pool(job)
        return [
            (start, one) for one, start, _ in self.started.values() if one.qos in others and self._pool(one) is pool
        ]

    def _delays_none(self, job: Job) -> bool:
        """Return whether a job fits into the plan from now on without the jobs that it preempts."""
        if not self.site.within_plan or self._pool(job).share:
            return True
        pool = self._pool(job)
        freed = [(max(pool.running[one.number][0], self.now + 1), one.units) for _, one in self._preempted(job)]
        return all(
            left + sum(units for end, units in freed if end > time) >= job.units
            for time, left in zip(*pool.steps[0], strict=True)
            if time < self.now + job.limit
        )

    def _preempt(self, job: Job) -> bool:
        """Requeue the smallest jobs that a job preempts, if it then has room; return whether it has."""
        pool, running = self._pool(job), self._preempted(job)
        running.sort(key=lambda entry: (entry[1].units, entry[1].number))
        if pool.share or not running or pool.free[0] + sum(one.units for _, one in running) < job.units:
            return False
        for start, one in running:
            if pool.free[0] >= job.units:
                break
            if start > self.now:
                start = self.now
            self._leave(one)
            self.records.append(Record(one, self.eligible[one.number], start, self.now, "PREEMPTED"))
            heapq.heappush(self.events, (self.now + self.site.requeue, 1, one.number))
        return True


def simulate(site: Site, jobs: Iterable[Job]) -> list[Record]:
    """Return the runs of jobs at a site."""
    return Simulation(site).run(jobs)


def waits(records: Sequence[Record]) -> dict[int, int]:
    """Return the wait of each job, from its submission to its last start."""
    return {one.job.number: one.start - one.job.submit for one in records if one.state != "PREEMPTED"}


# -- schedules by hand

_FOUR = Site({"all": Pool(4)}, {"all": "all"})


def _starts(site: Site, *jobs: tuple[int, ...], **changed: Mapping[int, str]) -> list[int]:
    """Return the last start of each job, of submit, run, limit and units."""
    made = [Job(number, *values) for number, values in enumerate(jobs)]
    made = [
        replace(job, **{name: of.get(job.number, getattr(job, name)) for name, of in changed.items()}) for job in made
    ]
    last = {one.job.number: one.start for one in simulate(site, made)}
    return [last[number] for number in range(len(jobs))]


def check() -> None:
    """Compare schedules with those computed by hand."""
    # EASY: job 1 needs all units at 100; job 2 ends by then; job 3 would delay it.
    jobs = (0, 90, 100, 3), (1, 10, 10, 4), (2, 97, 97, 1), (3, 98, 99, 1)
    assert _starts(_FOUR, *jobs) == [0, 99, 2, 109]
    assert _starts(replace(_FOUR, backfill=False), *jobs) == [0, 90, 100, 100]
    # Extra units: job 1 needs 3 at 100, so that 1 is left over for a long job.
    assert _starts(_FOUR, (0, 90, 100, 2), (1, 10, 10, 3), (2, 500, 500, 1)) == [0, 90, 2]
    # The shortest limit first, when the units are free.
    assert _starts(replace(_FOUR, order="sjf"), (0, 10, 10, 4), (1, 9, 9, 4), (2, 5, 5, 4)) == [0, 15, 10]
    # Slurm: the main scheduler stops at job 1, and the cycle at 30 starts job 2. A job ends at its limit.
    slurm = replace(_FOUR, policy="slurm")
    jobs = (0, 200, 100, 3), (1, 10, 10, 4), (2, 60, 70, 1)
    assert _starts(slurm, *jobs) == [0, 100, 30]
    assert _starts(replace(slurm, backfill=False), *jobs) == [0, 100, 110]
    # Conservative: job 3 fits beside job 1 at 100, but delays job 2 at 110, which EASY allows.
    jobs = (0, 100, 100, 3), (1, 10, 10, 3), (1, 10, 10, 4), (2, 300, 300, 1)
    assert _starts(slurm, *jobs) == [0, 100, 110, 120]
    assert _starts(_FOUR, *jobs) == [0, 100, 302, 2]
    # A limit of one job of a user: the others pass by.
    for place in ("normal", "all"):  # its QOS, and its partition
        one = replace(slurm, limits={place: {"jobs": 1}})
        assert _starts(one, (0, 50, 50, 1), (1, 50, 50, 1), (2, 5, 5, 1), user={2: "bob"}) == [0, 50, 2]
    # Points: the larger job first, and a tier before all points.
    large = replace(slurm, weights={"size": 100})
    jobs = (0, 10, 10, 4), (1, 10, 10, 2), (2, 10, 10, 3)
    assert _starts(large, *jobs) == [0, 20, 10]
    tiers = replace(large, partitions={"all": "all", "top": "all"}, tiers={"top": 2})
    assert _starts(tiers, *jobs, partition={1: "top"}) == [0, 10, 20]
    # Preemption: job 1 requeues job 0, which runs anew.
    preempting = replace(slurm, preempts={"high": ["normal"]})
    assert _starts(preempting, (0, 300, 300, 4), (50, 10, 10, 2), qos={1: "high"}) == [171, 50]
    # Job 2 is planned at 300, when job 1 ends; job 3 preempts job 1 at once, or not, since it would delay job 2.
    jobs = (0, 100, 100, 4), (0, 300, 300, 1), (1, 10, 10, 5), (50, 260, 260, 1)
    qos = {0: "high", 2: "high", 3: "high"}
    five = replace(preempting, pools={"all": Pool(5)})
    assert _starts(five, *jobs, qos=qos)[2:] == [320, 60]
    assert _starts(replace(five, within_plan=True), *jobs, qos=qos) == [0, 221, 100, 110]
    # GPUs: two nodes of 2; jobs of 1 GPU share a node, so that the job of 2 has one.
    gpus = replace(slurm, pools={"all": Pool(4, share=2)})
    assert _starts(gpus, (0, 50, 50, 1), (1, 50, 50, 1), (2, 50, 50, 2), (3, 5, 5, 1)) == [0, 1, 2, 50]
    # Latency: job 1 starts 7 % 3 = 1 s late.
    assert _starts(replace(slurm, latency=2), (0, 5, 5, 4), (1, 5, 5, 4))[1] == 6


if __name__ == "__main__":
    check()
    print("all schedules are as computed by hand")
