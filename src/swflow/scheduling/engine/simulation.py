"""Simulating machines: plain arrays in, start times out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from swflow.compilation import make_ready
from swflow.errors import SwflowError
from swflow.jobs import check_arrays
from swflow.kernels import Handle, Kernel
from swflow.machine import MOST_PROCESSORS
from swflow.scheduling.engine import state as records
from swflow.scheduling.engine.centres import handle_of, stack
from swflow.scheduling.engine.followers import followers_of, nobody
from swflow.scheduling.engine.heap import ELEMENT
from swflow.scheduling.engine.loop import Arrivals, run_events
from swflow.scheduling.engine.queue import new_tree
from swflow.scheduling.engine.short_queues import easy, fcfs
from swflow.scheduling.engine.state import CONSERVATIVE, LOOKAHEAD, NONE, RESERVATION_TABLE, State
from swflow.scheduling.engine.usage import Owners, Usage, new_usage
from swflow.scheduling.machine.counted import COUNTED, Counted, new_counted
from swflow.scheduling.machine.placed import PLACED, larger, new_places
from swflow.scheduling.machine.shared import MOST_PENALTY, Resources, longest_stretch
from swflow.scheduling.options import CHOICES
from swflow.scheduling.orders import kernel_order

#: An order of the queue: a name or a formula, static keys (the smallest first), or a compiled key function.
Order = str | np.ndarray | Callable[..., float]

#: The backfills that the engine knows; others are these by another name.
BACKFILLS = {
    "none": NONE, "lookahead": LOOKAHEAD, "conservative": CONSERVATIVE, "reservation-table": RESERVATION_TABLE,
}  # fmt: skip

#: The loop of events, for counted and for numbered processors.
RUN_COUNTED, RUN_PLACED = Kernel(run_events, COUNTED), Kernel(run_events, PLACED)


class Shapes(NamedTuple):
    """
    The ways in which jobs can run.

    Parameters
    ----------
    first : int64 array of shape (jobs + 1,)
        The shapes of job j are those from ``first[j]`` to before ``first[j + 1]``, at least one, by ascending
        processors.
    run, planned : float64 array of shape (shapes,)
        Run times, and what the scheduler takes for them, at least 1 and not below ``run``. Seconds.
    processors : int64 array of shape (shapes,)
        Processors, 1 to the machine's.
    """

    first: np.ndarray
    run: np.ndarray
    planned: np.ndarray
    processors: np.ndarray


@dataclass(frozen=True)
class Schedule:
    """
    What a simulation gives.

    Parameters
    ----------
    start : float64 array of shape (jobs,)
        Start times, seconds.
    promise : float64 array of shape (jobs,)
        The start of the reservation that each job got at its submission under conservative backfilling; else NaN.
    centre : int64 array of shape (jobs,)
        The index of the machine of each job.
    processors : int64 array of shape (jobs,)
        The processors of each job, as they were chosen.
    run : float64 array of shape (jobs,)
        Its run time on these, seconds.
    submit : float64 array of shape (jobs,)
        When it was submitted, seconds.
    end : float64 array of shape (jobs,)
        End times, seconds.
    penalty : float64 array of shape (jobs,)
        How long a job was held up by its neighbours, seconds.
    killed : bool array of shape (jobs,)
        Whether that made a job reach the time at which it is killed; empty if penalties move no ends.
    offsets : int64 array of shape (jobs + 1,)
        Of numbered processors: job ``i`` has the ranges ``offsets[i]`` to before ``offsets[i + 1]``.
    ranges : int32 array of shape (ranges, 2)
        First and last processor of every range, numbered from 0, ascending within a job.
    """

    start: np.ndarray
    promise: np.ndarray
    centre: np.ndarray
    processors: np.ndarray
    run: np.ndarray
    submit: np.ndarray
    end: np.ndarray
    penalty: np.ndarray
    killed: np.ndarray
    offsets: np.ndarray
    ranges: np.ndarray

    def of(self, job: int) -> np.ndarray:
        """Return the processors of one job, ascending."""
        ranges = self.ranges[self.offsets[job] : self.offsets[job + 1]]
        return np.concatenate([np.arange(first, last + 1) for first, last in ranges] or [np.empty(0, np.int64)])


def simulate_arrays(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    order: Order = "fcfs",
    backfill: str = "none",
    lookahead: int = 1,
    backfill_order: Order = "fcfs",
    per_event: bool = False,
    predict: bool = False,
    users: np.ndarray | None = None,
    unavailable: Sequence[tuple[float, float, int]] = (),
    attributes: np.ndarray | None = None,
    centres: Sequence[Mapping[str, Any]] = (),
    dispatch: str = "round-robin",
    shapes: Shapes | None = None,
    select: str = "requested",
    feedback: tuple[np.ndarray, np.ndarray] | None = None,
    allocation: str = "count",
    resources: Resources | None = None,
    owners: Owners | None = None,
    half_life: float = np.inf,
    limits: np.ndarray | None = None,
    partition: np.ndarray | None = None,
) -> Schedule:
    """
    Simulate machines, whose processors are counted or numbered.

    A reservation of numbered processors holds particular ones: another job may take one of them only if it ends, by
    its planned run time, before the reservation starts (as in the reservation table of F. Guim, J. Corbalan,
    J. Labarta, "Modeling the impact of resource sharing in backfilling policies using the Alvio simulator", MASCOTS
    2007). In the reservation table itself the head has a reservation, and jobs get one in the order of backfilling if
    its start is not after the head's, they are not wider than what is free now, and they may also overtake where
    processors are merely counted: they end before the head's shadow time or need fewer than the extra processors
    (strictly). The table is planned anew when a job ends early or another job has come to the head; in between,
    newcomers are added behind the others.

    With ``select="submit"`` the availability profile is asked when a job arrives: the planned ends of the running
    jobs, and the queue planned ahead, one job after the other in its order, each at its earliest place; under
    conservative backfilling queued jobs have their reservations. For each shape, the job's earliest place after
    all of these and its planned run time give a completion; the earliest wins, of equals the narrowest. From then
    on the job is rigid (W. Cirne, F. Berman, "Adaptive selection of partition size for supercomputer requests",
    JSSPP 2000).

    With ``select="start"`` a job that is looked at, as the head or for backfilling, starts if any of its shapes
    can start by the rules: in the one with the shortest planned run time, of equals the narrowest. A job that gets
    a reservation gets it for the shape that would complete first by the profile, of equals the narrowest; this
    is chosen anew in every pass (without and with lookahead), or whenever reservations move forward
    (conservative). A queued job's place in the queue is that of its request.

    Parameters
    ----------
    submit, run, planned : float64 array of shape (jobs,)
        Submit times, ascending; run times; what the scheduler takes for the run time, at least 1 and not below
        ``run``. Seconds. Of moldable jobs: those of the request, which matter to orders with ``select="start"``.
    processors : int64 array of shape (jobs,)
        Processors of each job, 1 to ``machine``; of a moldable job those of its request.
    machine : int
        Processors of the machine; with several those of the widest.
    order : str, array or callable
        The order of the queue, smallest key first, ties by index: a name or a formula; static keys, one a job (with
        ``select="submit"`` one a shape); or, where the keys depend on the instant, a function made by
        `swflow.scheduling.engine.queue.key_function`.
    backfill : {'none', 'lookahead', 'conservative', 'reservation-table'}
        Whether and how later jobs may overtake.
    lookahead : int
        How many jobs have a reservation with ``backfill='lookahead'``; 1 is EASY (D. Lifka, "The ANL/IBM SP
        scheduling system", JSSPP 1995).
    backfill_order : str, array or callable
        The order in which jobs are tried for backfilling with ``backfill='lookahead'``.
    per_event : bool
        One event at a time, arrivals before completions, and a pass after each; else all events of an
        instant, then one pass.
    predict : bool
        Plan with the mean of the user's last two run times, within the estimate, and correct it when it is
        outrun (Tsafrir, Etsion, Feitelson, IEEE TPDS 2007). ``planned`` are the estimates. Predictions know what
        ended on the same machine.
    users : int64 array of shape (jobs,), optional
        The user of each job, needed by ``predict``.
    unavailable : sequence of (from, until, processors)
        Windows in which processors are away.
    attributes : float64 array of shape (jobs, 5), optional
        User, group, queue, executable and job id for a key function, NaN where unknown.
    centres : sequence of mappings
        Several machines instead of one: each with ``machine``, its processors, and any of ``order``, ``backfill``,
        ``lookahead``, ``backfill_order``, ``allocation``, ``limits`` and ``unavailable`` of its own. A job stays where
        it is sent.
    dispatch : str
        How a job is sent, on its arrival, to one of them that has room for its narrowest shape; see the table of
        options. ``earliest-start`` asks for the shape that would complete first there.
    shapes : Shapes, optional
        The shapes of moldable jobs, with a ``select``; the request need not be one of them.
    select : {'requested', 'submit', 'start'}
        When shapes are chosen.
    feedback : (int64 array, float64 array) of shape (jobs,), optional
        Whom each job follows, an earlier one, and how long after its end it is submitted; -1 stands for its own
        ``submit``. Not with several machines or with ``select="submit"``. The queue is then in order of arrival, equal
        keys of other orders by index; orders that ask for the submit time must be functions.
    allocation : str
        ``count``, or one of `swflow.scheduling.machine.places.ALLOCATIONS`; of several machines all count, or none.
        Windows take the processors of the highest numbers.
    resources : Resources, optional
        What the processes of a node share, and what it costs to ask for more than there is. The scheduler plans
        with ``planned`` whatever the penalties; a job that outruns its plan has it extended step by step. Needs
        numbered processors and passes per instant. The allocations ``least-shared`` and ``threshold`` need it, and a
        backfill of ``none`` or ``lookahead`` 1 without windows.
    owners : Owners, optional
        Whose the jobs are, for limits and for orders that know of it.
    half_life : float
        Seconds after which what was used counts half.
    limits : int64 array of shape (accounts, 2), optional
        The most running jobs and processors at a machine: of everybody together (not looked at), then of every user,
        group and partition. A job that would be one too many is passed over, as if it were not in the queue: it does
        not start, and has no reservation. Not with ``backfill='conservative'`` or a choice of shapes.
    partition : int64 array of shape (jobs,), optional
        With ``dispatch='partition'`` the index of the machine of each job.

    Returns
    -------
    Schedule

    Raises
    ------
    SwflowError
        If an option is unknown or does not fit the others, or a job can never start because of a window without end.

    Examples
    --------
    >>> submit, run = np.array([0.0, 1.0, 2.0]), np.array([10.0, 10.0, 3.0])
    >>> processors = np.array([3, 4, 1])
    >>> simulate_arrays(submit, run, run, processors, 4, backfill="lookahead").start
    array([ 0., 10.,  2.])
    >>> two = [{"machine": 4}, {"machine": 2}]
    >>> simulate_arrays(submit, run, run, processors, 4, centres=two, dispatch="least-loaded").centre
    array([0, 0, 1])

    The second job can wait 10 s for 4 processors, or take 1 at once and run for 30 s.

    >>> submit, run, processors = np.array([0.0, 1.0]), np.array([10.0, 9.0]), np.array([3, 4])
    >>> lengths = np.array([10.0, 30.0, 9.0])
    >>> shapes = Shapes(np.array([0, 1, 3]), lengths, lengths, np.array([3, 1, 4]))
    >>> for select in ("submit", "start"):
    ...     result = simulate_arrays(submit, run, run, processors, 4, shapes=shapes, select=select)
    ...     print(result.start, result.processors)
    [ 0. 10.] [3 4]
    [0. 1.] [3 1]
    """
    count, first = submit.size, np.empty(0, np.int64)
    common: dict[str, Any] = {"order": order, "backfill": backfill, "lookahead": lookahead}
    common |= {"backfill_order": backfill_order, "allocation": allocation, "limits": limits, "unavailable": ()}
    machines = [common | dict(one) for one in centres or [{"machine": machine, "unavailable": unavailable}]]
    widest = max(one["machine"] for one in machines)
    _check_options(machines, dispatch, select, resources, per_event)
    stretch = max(longest_stretch(resources, count, one["machine"]) if resources else 1.0 for one in machines)
    _check_given(
        submit, run, planned, processors, widest, shapes, users, attributes, "dispatch" if centres else "jobs", stretch
    )
    if owners is None and any(one["limits"] is not None for one in machines):
        raise SwflowError("limits: whose the jobs are is needed")
    if centres and dispatch == "partition":
        _check_partitions(partition, processors, machines)
    submit, run, planned, processors = map(_sealed, (submit, run, planned, processors))
    plain = allocation == "count" and not (
        per_event or predict or len(unavailable) or centres or shapes or limits is not None or feedback
    )  # fmt: skip
    if plain and isinstance(order, str) and order == "fcfs":
        start = _short(submit, run, planned, processors, machine, backfill, lookahead, backfill_order)
        if start is not None:
            return _schedule(submit, start, run, processors)

    if shapes and select == "submit":  # every shape is an item that may arrive, once
        first, job = shapes.first, np.repeat(np.arange(count), np.diff(shapes.first))
        submit, run, planned, processors = submit[job], shapes.run, shapes.planned, shapes.processors
        users = users if users is None else users[job]
        attributes = attributes if attributes is None else attributes[job]
        resources = resources and resources.of(job)
    if planned.min(initial=1.0) < 1.0:
        planned = np.maximum(planned, 1.0)
    submit, run, planned, processors = map(_sealed, (submit, run, planned, processors))
    plans_ahead = select == "submit" or (len(machines) > 1 and dispatch == "earliest-start")
    of_jobs = job if first.size else None
    known = [new_usage(owners, one.pop("limits"), of_jobs, submit.min(initial=0.0)) for one in machines]
    states = [
        new_state(
            submit, run, planned, processors, **one, per_event=per_event, predict=predict, users=users,
            attributes=attributes, plans_ahead=plans_ahead, moves=feedback is not None, usage=usage,
            half_life=half_life, resources=resources, widest=widest,
        )
        for one, usage in zip(machines, known, strict=True)
    ]  # fmt: skip
    jobs = states[0].jobs
    if shapes and select == "start":
        requests = _with_requests(planned, processors, shapes)
        for one in states:
            one.options["shapes"] = 1
        states = [one._replace(shapes=requests) for one in states]
    for one in states:  # usage is of all machines together
        one.options["accounts"] = any(other.options["accounts"][0] for other in states)
    together = stack(states) if len(states) > 1 else states[0]
    arrivals = _arrivals(first, count, states)
    if len(states) > 1 and partition is not None:
        arrivals.centre[:] = partition
    if feedback is not None:
        arrivals = arrivals._replace(followers=followers_of(*feedback))
    together = _run(together, arrivals, list(CHOICES["dispatch"]).index(dispatch))
    items = arrivals.chosen if first.size else slice(None)
    done = jobs[items]
    never = np.flatnonzero(np.isnan(done["start"]))
    if never.size:
        if any(one.options["limits"][0] for one in states):
            raise SwflowError(
                f"limits: {never.size:,} jobs never start, the first with {done['processors'][never[0]]:,} processors; "
                "raise the limits, or leave these jobs out"
            )
        raise SwflowError(
            f"unavailable: {never.size:,} jobs never start, the first with {done['processors'][never[0]]:,} "
            "processors; end the window or take fewer processors"
        )
    processors, run = processors[items], run[items]
    if shapes and select == "start":
        processors, run = done["processors"].copy(), done["run"].copy()
    submit = done["submit"].copy() if feedback is not None else submit[items]
    start, centre, free = done["start"].copy(), arrivals.centre, together.free
    promise = None
    if any(one["backfill"] == "conservative" for one in machines):
        promise = done["promise"].copy()
    del one, together, states, jobs, done, arrivals  # what follows needs their memory
    found = _schedule(submit, start, run, processors)
    if promise is not None:
        found = replace(found, promise=promise)
    if len(machines) > 1:
        found = replace(found, centre=centre)
    if isinstance(free, Counted):
        return found
    found = _with_places(found, free, items)
    return _with_penalties(found, free.sharing, items) if resources else found


def _check_partitions(
    partition: np.ndarray | None, processors: np.ndarray, machines: Sequence[Mapping[str, Any]]
) -> None:
    """Raise an error unless every job has a machine that is wide enough for it."""
    if partition is None or partition.shape != processors.shape:
        raise SwflowError("dispatch: partition: the machine of every job is needed")
    if partition.size and not (partition.min() >= 0 and partition.max() < len(machines)):
        raise SwflowError(f"dispatch: partition: machines are numbered 0 to {len(machines) - 1}")
    sizes = np.array([one["machine"] for one in machines])
    wide = np.flatnonzero(processors > sizes[partition])
    if wide.size:
        raise SwflowError(
            f"dispatch: partition: {wide.size:,} jobs are wider than their partition, the first with "
            f"{processors[wide[0]]:,} of {sizes[partition[wide[0]]]:,} processors; give it more, or leave them out"
        )


def _sealed(values: np.ndarray) -> np.ndarray:
    """Return a view that is not written to: kernels are compiled once, whether or not the caller may write."""
    view = np.ascontiguousarray(values).view()
    view.flags.writeable = False
    return view


def _run(state: State, arrivals: Arrivals, dispatch: int) -> State:
    """Run all events; make room where arrays turn out to be too short."""
    kernel, coming = RUN_COUNTED if isinstance(state.free, Counted) else RUN_PLACED, Handle([arrivals])
    make_ready(kernel, handle_of(state), coming, dispatch)
    while not kernel(handle_of(state), coming, dispatch):
        state = state._replace(free=larger(state.free))
    return state


def _schedule(submit: np.ndarray, start: np.ndarray, run: np.ndarray, processors: np.ndarray) -> Schedule:
    """Return the schedule of counted processors on one machine."""
    none, nothing = np.broadcast_to(np.nan, start.shape), np.zeros(0, np.int64)
    return Schedule(
        start, none, np.zeros(start.size, np.int64), processors, run, submit, start + run, np.zeros(start.size),
        killed=np.zeros(0, np.bool_), offsets=nothing, ranges=nothing,
    )  # fmt: skip


def _with_places(found: Schedule, places: Any, items: np.ndarray | slice) -> Schedule:
    """Return the schedule with the processors of each job."""
    placed = places.jobs[items]
    offsets = np.append(0, np.cumsum(placed["ranges"], dtype=np.int64))
    index = np.arange(offsets[-1]) + np.repeat(placed["first"] - offsets[:-1], placed["ranges"])
    pool = places.pool
    ranges = pool[index] if pool.ndim == 2 else pool[np.repeat(found.centre, placed["ranges"]), index]
    return replace(found, offsets=offsets, ranges=ranges)


def _with_penalties(found: Schedule, sharing: Any, items: np.ndarray | slice) -> Schedule:
    """Return the schedule with what shared resources cost."""
    if (sharing.numbers[..., 2] > 0).any():
        raise SwflowError(
            f"penalty: the formula is undefined, above {MOST_PENALTY:g}, or of an overload negative for a usage that "
            "occurs; write one that never is, such as: max(usage / capacity, 1) - 1"
        )
    if not sharing.slows:
        return replace(found, killed=np.zeros(found.start.size, np.bool_))
    jobs, start = sharing.job[items], found.start
    killed, end = jobs["killed"] != 0, jobs["end"]
    spent = np.where(killed, jobs["progress"], found.run)  # what the run took without penalties
    lost = np.where(end > start + spent, end - start - spent, 0.0)
    run = np.where(end == found.end, found.run, end - start)
    return replace(found, run=run, end=end, penalty=lost, killed=killed)


def _check_options(
    machines: Sequence[Mapping[str, Any]], dispatch: str, select: str, resources: Resources | None, per_event: bool
) -> None:
    """Raise an error about options that the engine does not know, or that do not go together."""
    counted = {one["allocation"] == "count" for one in machines}
    if len(counted) > 1 or (counted == {True} and resources is not None):
        raise SwflowError("allocation: processors are counted at all centres or at none, and have no nodes then")
    if resources is not None and per_event:
        raise SwflowError("event_order: shared resources need batch: a shadow lasts for some time")
    if resources is not None and resources.slows and select == "start":
        raise SwflowError("shapes: with shared run times choose them when jobs are submitted")
    for one in machines:
        if one["allocation"] not in CHOICES["allocation"]:
            raise SwflowError(f"allocation: unknown value {one['allocation']!r}")
        if counted == {True} and one["backfill"] == "reservation-table":
            raise SwflowError("backfill: a reservation-table has numbered processors; choose another allocation")
        if one["backfill"] not in BACKFILLS:
            raise SwflowError(f"backfill: unknown value {one['backfill']!r}; known are {', '.join(BACKFILLS)}")
        if one["backfill"] == "lookahead" and one["lookahead"] < 1:
            raise SwflowError(f"lookahead: must be at least 1, not {one['lookahead']}")
        promises = one["backfill"] in ("conservative", "reservation-table") or select != "requested"
        if one["limits"] is not None and promises:
            raise SwflowError(
                "limits: jobs that are passed over have no reservation; not with conservative, a reservation-table or "
                "shapes"
            )
        if one["backfill"] == "reservation-table" and select == "start":
            raise SwflowError("backfill: a reservation-table has jobs of one shape; choose shapes when they arrive")
        if one["allocation"] in ("least-shared", "threshold"):
            ahead = select == "submit" or (len(machines) > 1 and dispatch == "earliest-start")
            _check_neighbours(one, resources, ahead)
    for option, value in (("dispatch", dispatch), ("shapes", select)):
        if value not in CHOICES[option]:
            raise SwflowError(f"{option}: unknown value {value!r}; known are {', '.join(CHOICES[option])}")


def _check_neighbours(one: Mapping[str, Any], resources: Resources | None, plans_ahead: bool) -> None:
    """Raise an error unless all plans are for times at which the neighbours are known."""
    if resources is None:
        raise SwflowError("allocation: least-shared and threshold need to know what the processes of a node share")
    many = one["backfill"] not in ("none", "lookahead") or (one["backfill"] == "lookahead" and one["lookahead"] != 1)
    if len(one["unavailable"]) or many or plans_ahead:
        raise SwflowError("allocation: least-shared and threshold need backfill none or easy, and no windows")


def _check_given(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    shapes: Shapes | None,
    users: np.ndarray | None,
    attributes: np.ndarray | None,
    name: str,
    stretch: float,
) -> None:
    """Raise an error about arrays that no kernel may see; requests may be wider than the machine if shapes are not."""
    times = {"submit_time": submit, "run_time": run, "planned_run_time": planned}
    others = {"users": users, "attributes": attributes}
    most = MOST_PROCESSORS if shapes else machine
    check_arrays(times, processors, most, name=name, others=others, stretch=stretch)
    if shapes is None:
        return
    lengths = {"run_time": shapes.run, "planned_run_time": shapes.planned}
    check_arrays(lengths, shapes.processors, machine, name="shapes", stretch=stretch)
    first = shapes.first
    if first.shape != (submit.size + 1,) or first[0] != 0 or first[-1] != shapes.run.size or (np.diff(first) < 1).any():
        raise SwflowError(f"shapes: first must lead to the shapes of {submit.size:,} jobs, at least one each")


def _short(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    backfill: str,
    lookahead: int,
    backfill_order: Order,
) -> np.ndarray | None:
    """Return the start times if queues are short enough for the kernels that are made for that."""
    if backfill == "none":
        return fcfs(submit, run, processors, machine)
    if backfill == "lookahead" and lookahead == 1 and isinstance(backfill_order, str) and backfill_order == "fcfs":
        start, finished = easy(submit, run, planned, processors, machine)
        return start if finished else None
    return None


def _arrivals(first: np.ndarray, count: int, states: Sequence[State]) -> Arrivals:
    """Return what is to arrive."""
    several = len(states) > 1
    ranks = [np.stack([one.jobs[name] for one in states]) for name in ("rank", "backfill_rank") if several]
    nothing = np.empty((0, 0), np.int64)
    return Arrivals(
        first=first,
        chosen=np.empty(count if first.size else 0, np.int64),
        centre=np.zeros(count if several else 0, np.int64),
        ranks=ranks[0] if several else nothing,
        backfill_ranks=ranks[1] if several else nothing,
        due=np.zeros(len(states), np.bool_),
        followers=nobody(),
        clock=np.full(1, -np.inf),
        turn=np.zeros(1, np.int64),
    )


def _with_requests(planned: np.ndarray, processors: np.ndarray, shapes: Shapes) -> np.ndarray:
    """Return the requests and then the shapes, as the state of a machine holds them."""
    begin, count = shapes.first[:-1], planned.size
    both = np.zeros(count + shapes.run.size, records.SHAPE)
    requests, choices = both[:count], both[count:]
    requests["planned"], requests["processors"] = planned, processors
    requests["first"], requests["end"] = count + begin, count + shapes.first[1:]
    requests["narrowest"] = np.minimum.reduceat(shapes.processors, begin) if count else 0
    requests["shortest"] = np.minimum.reduceat(shapes.planned, begin) if count else 0
    choices["run"], choices["planned"], choices["processors"] = shapes.run, shapes.planned, shapes.processors
    return both


def new_state(
    submit: np.ndarray,
    run: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    machine: int,
    *,
    order: Order,
    backfill: str,
    lookahead: int,
    backfill_order: Order,
    per_event: bool,
    predict: bool,
    users: np.ndarray | None,
    unavailable: Sequence[tuple[float, float, int]],
    attributes: np.ndarray | None,
    moves: bool = False,
    plans_ahead: bool = False,
    usage: Usage | None = None,
    half_life: float = np.inf,
    allocation: str = "count",
    resources: Resources | None = None,
    widest: int = 0,
) -> State:
    """
    Make the state of a machine before the first event; see `simulate`.

    With ``moves`` submit times change.
    With ``plans_ahead`` there is room for reservations of all queued jobs, as `plan_queue` makes them.
    """
    count = submit.size
    jobs = np.empty(count, records.JOB)
    records.write_jobs(records.Given(jobs, submit, run, planned, processors))

    windows = checked_windows(unavailable, machine)
    if backfill in ("none", "conservative"):
        backfill_order = order
    usage = new_usage(None, None, None, 0.0) if usage is None else usage
    owners = usage.owners if usage.owners.size == count else None
    about_jobs = (submit, planned, processors, attributes, predict, owners, moves)
    keys, formula = order_of(order, "order", *about_jobs)
    queue, rank = new_tree(keys, count)
    if keys is not None:
        jobs["rank"] = rank
    one_tree = backfill_order is order or (
        isinstance(order, str) and isinstance(backfill_order, str) and order == backfill_order
    )
    second_keys, second_formula = keys, formula
    if not one_tree:
        second_keys, second_formula = order_of(backfill_order, "backfill_order", *about_jobs)
        one_tree = second_keys is None and keys is None
    if backfill == "reservation-table":
        one_tree = False  # one knows when reservations begin, the other how long jobs are
    backfill_queue = queue
    if not one_tree:
        backfill_queue, jobs["backfill_rank"] = new_tree(second_keys, count)
    if attributes is None or not (formula or second_formula):
        attributes = np.full((1, 5), np.nan)

    options = np.zeros(1, records.RULES)
    options["machine"] = machine
    options["backfill"] = BACKFILLS[backfill]
    options["lookahead"] = lookahead if backfill == "lookahead" else 0
    options["formula"], options["backfill_formula"] = formula, second_formula
    options["by_arrival"] = keys is None
    options["backfill_by_arrival"] = second_keys is None and not one_tree
    options["one_tree"], options["per_event"], options["predict"] = one_tree, per_event, predict
    options["windows"] = len(windows)
    options["limits"] = usage.limits.size > 0
    options["accounts"] = usage.limits.size > 0 or min(formula, second_formula) < 0
    options["half_life"] = half_life
    slows = resources is not None and resources.slows
    options["corrects"] = predict or slows
    options["simple"] = options["lookahead"][0] <= 1 and not windows and not per_event

    running = min(machine, count) + 1
    conservative = backfill == "conservative"
    reservations = count if conservative else min(lookahead, count)
    free: Any
    if allocation == "count":
        changes = min(running + 2 * reservations, 2 * count) + 2 * len(windows) + 4
        free = new_counted(machine, changes, windows, processors, planned, plans_ahead and not conservative)
    else:
        ahead = int(options["lookahead"][0])
        free = new_places(machine, count, allocation, ahead, windows, resources, plans_ahead, max(widest, machine))

    predicted = np.zeros(count if predict or slows else 0, records.PREDICTED)
    people = 0
    if predict:
        if users is None:
            raise SwflowError("predict: the users of the jobs are needed")
        names, predicted["user"] = np.unique(users, return_inverse=True)
        people = names.size
    now = np.zeros(1, records.NOW)
    now["full"], now["planned"] = 1, -1
    held = int(options["lookahead"][0]) + 1
    return State(
        options=options,
        now=now,
        jobs=jobs,
        running=np.empty(running, ELEMENT),
        predictions=np.empty(count if predict or slows else 0, ELEMENT),
        predicted=predicted,
        users=np.zeros(people, records.USER),
        free=free,
        queue=queue,
        backfill_queue=backfill_queue,
        window_starts=_moments([(begin, away) for begin, _, away in windows]),
        window_ends=_moments([(until, away) for _, until, away in windows]),
        steps=np.zeros(held + len(windows) + 3, records.STEP),
        line=np.empty(count, ELEMENT),
        held=np.empty(held, np.int64),
        attributes=attributes,
        shapes=np.empty(0, records.SHAPE),
        usage=usage,
    )


def order_of(
    order: Order,
    option: str,
    submit: np.ndarray,
    planned: np.ndarray,
    processors: np.ndarray,
    attributes: np.ndarray | None,
    predict: bool,
    owners: np.ndarray | None = None,
    moves: bool = False,
) -> tuple[np.ndarray | None, int]:
    """Return the static keys of an order (None: that of arrival), or the address of its formula, else 0."""
    if isinstance(order, str):
        order = kernel_order(order, option, submit, planned, processors, attributes, predict, owners, moves)
    if isinstance(order, np.ndarray):
        return order, 0
    return None, 0 if isinstance(order, str) else order.address  # type: ignore[attr-defined]


def checked_windows(unavailable: Sequence[tuple[float, float, int]], machine: int) -> list[tuple[float, float, int]]:
    """Return the windows, or raise an error if one is empty or takes more than there is."""
    for begin, until, away in unavailable:
        if not until > begin:
            raise SwflowError(f"unavailable: the window from {begin:g} until {until:g} is empty")
        if not 1 <= away <= machine:
            raise SwflowError(f"unavailable: {away} processors are not 1 to {machine}")
    return [(float(begin), float(until), int(away)) for begin, until, away in unavailable]


def _moments(pairs: list[tuple[float, int]]) -> np.ndarray:
    """Return times and processors as elements in order of time."""
    return np.array(sorted(pairs), ELEMENT)
