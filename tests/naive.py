"""A second simulator, slow and right at a glance, that every kernel must equal."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

#: Seconds by which a system-generated prediction grows, one after the other, each time that a job outruns it.
INCREMENTS = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


@dataclass
class Job:
    """A job, times in seconds; ``planned`` is what the scheduler takes for its run time, at least 1."""

    number: int
    submit: float
    run: float
    planned: float
    processors: int
    user: int = 0


#: The orders of the queue: the smallest key is served first, ties by number.
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
class Policy:
    """How a queue is served; ``lookahead`` is the number of reservations, 1 for EASY."""

    order: str = "fcfs"
    backfill: str = "none"  # none, lookahead, conservative
    lookahead: int = 1
    backfill_order: str = "fcfs"
    event_order: str = "batch"  # batch, per-event
    allocation: str = "count"  # count, first-fit, longest-idle, first-contiguous, best-contiguous, next-fit
    predict: bool = False  # planned run times by the user's last two, instead of the estimates
    unavailable: list[tuple[float, float, int]] = field(default_factory=list)  # from, until, processors


@dataclass
class Occupation:
    """Processors taken from ``start`` until ``end``, by a running job, a reservation or a maintenance window."""

    start: float
    end: float
    places: list[int]


class Machine:
    """Processors, the queue before them, and what the scheduler knows and plans of them."""

    def __init__(self, processors: int, policy: Policy) -> None:
        self.processors = processors
        self.policy = policy
        self.queue: list[Job] = []
        self.running: dict[int, tuple[Job, Occupation]] = {}
        self.reserved: dict[int, Occupation] = {}
        self.windows = [
            Occupation(start, until, list(range(processors - count, processors)))
            for start, until, count in policy.unavailable
        ]
        self.released = [-math.inf] * processors
        self.pointer = 0
        self.starts: dict[int, float] = {}
        self.places: dict[int, list[int]] = {}
        self.history: dict[int, list[float]] = {}
        self.estimate: dict[int, float] = {}
        self.increments: dict[int, int] = {}
        self.replan = False

    # -- what is free

    def occupations(self, reservations: list[Occupation]) -> list[Occupation]:
        return [occupation for _, occupation in self.running.values()] + self.windows + reservations

    def choose_now(self, job: Job, now: float, reservations: list[Occupation]) -> list[int] | None:
        """Return the processors with which the job can start at once, or None."""
        # Who ends now, but is not yet done, is in the way of a start, though not of a plan.
        still_there = [
            Occupation(one.start, math.nextafter(now, math.inf), one.places)
            for _, one in self.running.values()
            if one.end <= now
        ]
        return self.choose(job, now, reservations + still_there)

    def free_now(self, places: list[int]) -> bool:
        """Return whether processors that a reservation holds are left by those who had them before."""
        busy = [place for _, occupation in self.running.values() for place in occupation.places]
        if self.policy.allocation == "count":
            return len(busy) + len(places) <= self.processors
        return not set(busy) & set(places)

    def choose(self, job: Job, start: float, reservations: list[Occupation]) -> list[int] | None:
        """Return the processors that the job would get at ``start`` for its planned run time, or None."""
        end = start + job.planned
        taken = self.occupations(reservations)
        if self.policy.allocation == "count":
            moments = [start] + [one.start for one in taken if start < one.start < end]
            for moment in moments:
                busy = sum(len(one.places) for one in taken if one.start <= moment < one.end)
                if self.processors - busy < job.processors:
                    return None
            return list(range(job.processors))
        blocked = {place for one in taken if one.start < end and start < one.end for place in one.places}
        eligible = [place for place in range(self.processors) if place not in blocked]
        return self.select(eligible, job.processors, start, taken)

    def select(self, eligible: list[int], count: int, start: float, taken: list[Occupation]) -> list[int] | None:
        """Apply the allocation to the eligible processors."""
        if len(eligible) < count:
            return None
        allocation = self.policy.allocation
        if allocation == "first-fit":
            return eligible[:count]
        if allocation == "next-fit":
            return sorted(sorted(eligible, key=lambda place: (place < self.pointer, place))[:count])
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
        fitting = [run for run in runs if len(run) >= count]
        if not fitting:
            return None
        if allocation == "best-contiguous":
            return min(fitting, key=len)[:count]
        return fitting[0][:count]

    def earliest(self, job: Job, now: float, reservations: list[Occupation]) -> Occupation:
        """Return the first place and time at which the job fits for its planned run time."""
        moments = {now} | {one.end for one in self.occupations(reservations) if one.end > now}
        for moment in sorted(moments):
            places = self.choose(job, moment, reservations)
            if places is not None:
                return Occupation(moment, moment + job.planned, places)
        raise AssertionError("the job is wider than the machine")

    # -- events

    def arrive(self, job: Job) -> None:
        if self.policy.predict:
            self.estimate[job.number] = job.planned
            last = self.history.get(job.user, [])[-2:]  # in order of completion, ties by number
            if len(last) == 2:
                job.planned = max(1.0, min(job.planned, sum(last) / 2))
        self.queue.append(job)

    def complete(self, job: Job, now: float) -> None:
        _, occupation = self.running.pop(job.number)
        for place in occupation.places:
            self.released[place] = now
        self.history.setdefault(job.user, []).append(job.run)
        self.replan |= now < occupation.end

    def correct(self, now: float) -> None:
        """Give every job that outran its prediction the next increment, up to the user's estimate."""
        for job, occupation in self.running.values():
            while occupation.end <= now < occupation.start + job.run:
                step = self.increments.get(job.number, 0)
                self.increments[job.number] = step + 1
                length = occupation.end - occupation.start + INCREMENTS[min(step, len(INCREMENTS) - 1)]
                occupation.end = occupation.start + min(length, self.estimate[job.number])
                self.reserved.clear()  # promises that rested on the prediction cannot be kept

    def ordered(self, order: str, now: float) -> list[Job]:
        return sorted(self.queue, key=lambda job: (ORDERS[order](job, now), job.number))

    def begin(self, job: Job, now: float, places: list[int]) -> None:
        self.queue.remove(job)
        self.reserved.pop(job.number, None)
        self.running[job.number] = (job, Occupation(now, now + job.planned, places))
        self.starts[job.number] = now
        self.places[job.number] = places
        self.pointer = (places[-1] + 1) % self.processors

    def serve(self, now: float) -> None:
        """Make one scheduling pass."""
        self.correct(now)
        if self.policy.backfill == "conservative":
            self.serve_conservatively(now)
        else:
            self.serve_ahead(now, self.policy.lookahead if self.policy.backfill == "lookahead" else 0)

    def serve_ahead(self, now: float, lookahead: int) -> None:
        """Start the head while it fits; reserve for the first that do not; let others start if they delay none."""
        reservations: list[Occupation] = []
        for job in self.ordered(self.policy.order, now):
            places = self.choose_now(job, now, reservations)
            if places is not None:
                self.begin(job, now, places)
                continue
            if lookahead == 0:
                return
            reservations.append(self.earliest(job, now, reservations))
            if len(reservations) == lookahead:
                break
        reserved_for = self.ordered(self.policy.order, now)[: len(reservations)]
        for job in self.ordered(self.policy.backfill_order, now):
            places = self.choose_now(job, now, reservations)
            if job not in reserved_for and places is not None:
                self.begin(job, now, places)

    def serve_conservatively(self, now: float) -> None:
        """Give reservations to all; when a job ended early, move them forward, in order of the queue."""
        if self.replan:
            for job in self.ordered(self.policy.order, now):
                if job.number in self.reserved:
                    del self.reserved[job.number]
                    self.reserved[job.number] = self.earliest(job, now, list(self.reserved.values()))
        self.replan = False
        for job in self.ordered(self.policy.order, now):
            if job.number not in self.reserved:
                self.reserved[job.number] = self.earliest(job, now, list(self.reserved.values()))
        for job in self.ordered(self.policy.order, now):
            reservation = self.reserved[job.number]
            if reservation.start <= now and self.free_now(reservation.places):
                self.begin(job, now, reservation.places)


def simulate(jobs: list[Job], processors: int, policy: Policy) -> Machine:
    """Simulate one machine; its ``starts`` and ``places`` are the schedule."""
    machine = Machine(processors, policy)
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    window_ends = sorted(one.end for one in machine.windows)
    while coming or machine.running or machine.queue:
        ends = [machine.starts[job.number] + job.run for job, _ in machine.running.values()]
        promised = [one.start for one in machine.reserved.values()]
        now = min([job.submit for job in coming[:1]] + ends + window_ends[:1] + promised)
        done = sorted(
            (job for job, _ in machine.running.values() if machine.starts[job.number] + job.run <= now),
            key=lambda job: job.number,
        )
        if policy.event_order == "per-event":
            # one event at a time, arrivals before completions, a pass after each
            if coming and coming[0].submit <= now:
                machine.arrive(coming.pop(0))
            elif done:
                machine.complete(done[0], now)
            elif window_ends and window_ends[0] <= now:
                window_ends.pop(0)
        else:
            window_ends = [end for end in window_ends if end > now]
            for job in done:
                machine.complete(job, now)
            while coming and coming[0].submit <= now:
                machine.arrive(coming.pop(0))
        machine.serve(now)
    return machine


class Dispatcher:
    """Sends every job on its arrival to one of several machines that are wide enough."""

    def __init__(self, machines: list[Machine], rule: str) -> None:
        self.machines = machines
        self.rule = rule  # round-robin, least-loaded, earliest-start
        self.turn = 0

    def choose(self, job: Job, now: float) -> int:
        """Return the index of the machine for the job; ties go to the lowest."""
        wide = [index for index, machine in enumerate(self.machines) if machine.processors >= job.processors]
        if self.rule == "round-robin":
            chosen = min(wide, key=lambda index: (index < self.turn, index))
            self.turn = (chosen + 1) % len(self.machines)
            return chosen
        if self.rule == "least-loaded":
            return min(wide, key=lambda index: self.load(self.machines[index]))
        return min(wide, key=lambda index: self.would_start(self.machines[index], job, now))

    def load(self, machine: Machine) -> float:
        """Return the processors of running and queued jobs over those of the machine."""
        running = sum(job.processors for job, _ in machine.running.values())
        return (running + sum(job.processors for job in machine.queue)) / machine.processors

    def would_start(self, machine: Machine, job: Job, now: float) -> float:
        """Return the start of the job if all queued jobs, in order, and then it got reservations."""
        reserved = dict(machine.reserved)
        for queued in machine.ordered(machine.policy.order, now):
            if queued.number not in reserved:
                reserved[queued.number] = machine.earliest(queued, now, list(reserved.values()))
        last = machine.history.get(job.user, [])[-2:]
        if machine.policy.predict and len(last) == 2:
            job = replace(job, planned=max(1.0, min(job.planned, sum(last) / 2)))
        return machine.earliest(job, now, list(reserved.values())).start


def simulate_centres(jobs: list[Job], machines: list[Machine], rule: str) -> list[Machine]:
    """Simulate several machines; a machine makes a pass when something happens at it."""
    dispatcher = Dispatcher(machines, rule)
    per_event = machines[0].policy.event_order == "per-event"
    coming = sorted(jobs, key=lambda job: (job.submit, job.number))
    window_ends = [sorted(one.end for one in machine.windows) for machine in machines]
    while coming or any(machine.running or machine.queue for machine in machines):
        moments = [job.submit for job in coming[:1]] + [ends[0] for ends in window_ends if ends]
        for machine in machines:
            moments += [machine.starts[job.number] + job.run for job, _ in machine.running.values()]
            moments += [one.start for one in machine.reserved.values()]
        now = min(moments)
        arrivals = [job for job in coming if job.submit <= now]
        done = sorted(
            (job.number, index)
            for index, machine in enumerate(machines)
            for job, _ in machine.running.values()
            if machine.starts[job.number] + job.run <= now
        )
        ended = [index for index, ends in enumerate(window_ends) for end in ends if end <= now]
        if per_event:
            arrivals = arrivals[:1]
            done = [] if arrivals else done[:1]
            ended = [] if arrivals or done else ended[:1]
        touched = {i for i, machine in enumerate(machines) if any(r.start <= now for r in machine.reserved.values())}
        for index in ended:
            window_ends[index].pop(0)
        for number, index in done:
            machines[index].complete(machines[index].running[number][0], now)
        for job in arrivals:
            coming.remove(job)
            index = dispatcher.choose(job, now)
            machines[index].arrive(job)
            touched.add(index)
        for index in sorted(touched | {index for _, index in done} | set(ended)):
            machines[index].serve(now)
    return machines
