"""The state of nodes with counted processors: what is free, which job runs where, and the table of a cycle."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from swflow.compiled.kernel import record
from swflow.scheduling.machine.allocation import EMPTY, ONE, lowest, ones
from swflow.scheduling.slurm.preempted import Preempted, classes_that_preempt
from swflow.scheduling.slurm.problem import Nodes
from swflow.scheduling.state.items import Items

#: Some processors of a node that a running job has, or will have, and the ``next`` part of the same job, -1 for none.
PART = record("", "node processors next")

#: A running job by its planned end, with its first part.
END = record("time", "job part")

#: Processors of each of some nodes, of one word of a set, that are released at the planned end of a job.
RELEASE = record("time", "job word processors")

#: Consecutive nodes of a weight with free processors, and the numbers of these and of the nodes.
RUN = record("", "first last processors weight nodes")

#: A slot of a cycle's table: a time span in which the same nodes are not reserved, the ``next`` slot, 0 for none, the
#: number of the first word, from 1 on, of nodes that are reserved in it but not in the next one, 0 for none, and the
#: number of failures that were noted.
SLOT = record("begin end", "next gains failures")

#: A job of a set of nodes with some processors that would end at a time cannot start from a slot on ``until`` another
#: time; nor can wider or later ones that need as many units for a processor, since a cycle only adds reservations.
FAILURE = record("end until", "processors allowed job")

#: The failures that are kept of each slot.
KEPT = 8

#: The begin and the end of a window in which some nodes are unavailable, in whole seconds.
WINDOW = record("begin until", "")

#: A bound in a cycle: the processors that a kind of jobs can use of nodes that are not reserved before a time.
BOUND = record("until", "free")

#: The number of jobs in ``ends``, of chosen parts and of slots, the first spare part, the processors of the largest
#: node, and how many ``releases`` are before the start of a job by `would_start`. The processors ``fitting`` that it
#: can use by node, and the number of their ``hosts``, after the ``counted`` releases (-1: none is known), and a
#: ``mark`` of each such count. In a cycle, the numbers of jobs that were taken from the queue and that were tested, the
#: first that may start, and the last such one that is known to be within reach. The number of ``releases`` is -1 if
#: they must be listed anew. The ``version`` counts changes of the running jobs.
HEAD = record(
    "",
    "version releases running chosen slots spare largest ended counted fitting hosts mark taken passed hopeful reached",
)


class Search(NamedTuple):
    """Scratch arrays of the search for the nodes of one job."""

    own: np.ndarray  # the set of nodes of a job's partition that are available while it runs
    usable: np.ndarray  # the set of nodes that a job may use
    open: np.ndarray  # the set of nodes that are open to jobs in a pass
    closed: np.ndarray  # whether each partition is closed in a pass
    then: np.ndarray  # the processors of each node that are free when a job starts
    later: np.ndarray  # the units of each node that are free then
    fitting: np.ndarray  # the processors of each usable node that a job can use by node
    marks: np.ndarray  # the last count by `could_use` that included each node
    sums: np.ndarray  # the units of each resource that are free then
    runs: np.ndarray  # the consecutive nodes among those that a job may use


class Cycle(NamedTuple):
    """The table of a backfill cycle, and the state of the jobs that it still tests."""

    slots: np.ndarray  # the table of a cycle
    failures: np.ndarray  # the last failures in each slot
    bounds: np.ndarray  # bounds on the jobs of each kind that may start in a cycle, by time
    bounded: np.ndarray  # the number of bounds of each kind
    stale: np.ndarray  # whether reservations or starts followed the bounds of each kind
    unreserved: np.ndarray  # the set of nodes that are not reserved in each slot
    occupied: np.ndarray  # the set of nodes that have no free processors in the window of a cycle


class NodeState(NamedTuple):
    """The free processors of each node, the nodes of running jobs, and the table of a backfill cycle."""

    sizes: np.ndarray  # the processors of each node
    weights: np.ndarray  # jobs take nodes of the lowest weight first
    free: np.ndarray  # the free processors of each node
    capacities: np.ndarray  # (resources, nodes): the units of each node
    units: np.ndarray  # (resources, nodes): the free ones
    idle: np.ndarray  # the set of nodes with free processors
    members: np.ndarray  # the sets of nodes that jobs of each partition and constraint may use
    partition: np.ndarray  # the set of each set's partition without a constraint
    allowed: np.ndarray  # the set of each job
    windows: np.ndarray  # the windows in which nodes are unavailable
    away: np.ndarray  # the sets of these nodes
    kind: np.ndarray  # the kind of each job: those of a set and class that need about as many units for a processor
    allowed_of: np.ndarray  # the set of each kind
    class_of: np.ndarray  # the class of each kind of jobs that may preempt others; -1 for other kinds
    rates: np.ndarray  # (kinds, resources): at most the units for a processor
    requested: np.ndarray  # the nodes that each job needs at least
    share: np.ndarray  # the processors of each job on each of several requested nodes, 0 if they may differ
    parts: np.ndarray  # the parts of all running jobs, and the spare ones
    ends: np.ndarray  # the running jobs by planned end, in whole seconds; ties go to the first job
    head: np.ndarray
    releases: np.ndarray  # what running jobs release, by planned end
    released: np.ndarray  # the nodes of each release, a word of a set
    chosen: np.ndarray  # the parts of the job that starts next
    picked: np.ndarray  # the set of their nodes
    search: Search
    cycle: Cycle
    preempted: Preempted


#: The most kinds of jobs.
_KINDS = 64


def _kinds(
    allowed: np.ndarray, classes: np.ndarray, demands: np.ndarray, processors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the set and class of each kind of jobs, the kind of each job, and the least units for a processor."""
    with np.errstate(divide="ignore"):
        octave = np.log2(demands / processors.reshape(-1, 1))
    for parts in (8, 4, 2, 1):  # in which an octave is divided
        levels = np.column_stack([allowed, classes, np.floor(parts * octave)])
        kinds, kind = np.unique(levels, axis=0, return_inverse=True)
        if len(kinds) <= _KINDS:
            rates = np.exp2(kinds[:, 2:] / parts) * (1 - 1e-9)  # safe from rounding
            return kinds[:, :2].astype(np.int64), kind.reshape(-1), np.ascontiguousarray(rates)
    kinds, kind = np.unique(np.column_stack([allowed, classes]), axis=0, return_inverse=True)
    return kinds, kind.reshape(-1), np.zeros((len(kinds), demands.shape[1]))


def _sets(rows: np.ndarray) -> np.ndarray:
    """Return rows of a bool per node as sets of nodes."""
    sets = np.zeros((len(rows), 8 * ((rows.shape[1] + 63) >> 6)), np.uint8)
    packed = np.packbits(rows, axis=1, bitorder="little")
    sets[:, : packed.shape[1]] = packed
    return sets.view(np.uint64)


def new_node_state(
    nodes: Nodes, items: Items, most_slots: int, windows: Sequence[tuple[float, float, int]], preempted: Preempted
) -> NodeState:
    """Return idle nodes; a cycle's table has at most ``most_slots`` slots when it gets another reservation."""
    count, processors, jobs = nodes.sizes.size, int(nodes.sizes.sum()), items.submit.size
    words = (count + 63) >> 6
    # Sets with the same nodes, also of their partitions, are alike; all nodes come last.
    members = _sets(nodes.members)
    both = np.hstack([members, members[nodes.partition]])
    sets, first, alike = np.unique(both, axis=0, return_index=True, return_inverse=True)
    sets, alike = np.ascontiguousarray(sets[:, :words]), alike.reshape(-1)
    demands = items.demands.reshape(jobs, nodes.units.shape[1])
    kinds, kind, rates = _kinds(alike[nodes.allowed], classes_that_preempt(preempted, jobs), demands, items.processors)
    parts = np.zeros(min(processors, count * max(jobs, 1)) + 1, PART)
    parts["next"] = np.arange(1, parts.size + 1)
    slots, head = min(most_slots, 2 * jobs + 1) + 1, np.zeros(1, HEAD)
    head["largest"] = nodes.sizes.max()
    return NodeState(
        sizes=nodes.sizes,
        weights=nodes.weights,
        free=nodes.sizes.copy(),
        capacities=np.ascontiguousarray(nodes.units.T),
        units=np.array(nodes.units.T, order="C"),
        idle=sets[-1].copy(),
        members=sets,
        partition=alike[nodes.partition[first]],
        allowed=alike[nodes.allowed],
        windows=np.array([tuple(np.floor(window[:2])) for window in windows], WINDOW),
        away=_sets(nodes.away),
        kind=kind,
        allowed_of=kinds[:, 0].copy(),
        class_of=kinds[:, 1].copy(),
        rates=rates,
        requested=nodes.requested,
        share=nodes.share,
        parts=parts,
        ends=np.empty(min(processors, jobs) + 1, END),
        head=head,
        releases=np.empty(parts.size, RELEASE),
        released=np.zeros(parts.size, np.uint64),
        chosen=np.zeros(count, PART),
        picked=np.zeros(words, np.uint64),
        search=_new_search(nodes, len(sets), words),
        cycle=_new_cycle(len(kinds), slots, words),
        preempted=preempted,
    )


def _new_search(nodes: Nodes, sets: int, words: int) -> Search:
    """Return empty arrays for the search of nodes."""
    count = nodes.sizes.size
    return Search(
        own=np.zeros(words, np.uint64),
        usable=np.zeros(words, np.uint64),
        open=np.zeros(words, np.uint64),
        closed=np.zeros(sets, np.bool_),
        then=np.zeros(count, np.int64),
        later=np.zeros_like(nodes.units.T, order="C"),
        fitting=np.zeros(count, np.int64),
        marks=np.zeros(count, np.int64),
        sums=np.zeros(nodes.units.shape[1], np.int64),
        runs=np.zeros(count, RUN),
    )


def _new_cycle(kinds: int, slots: int, words: int) -> Cycle:
    """Return the empty table of a cycle."""
    return Cycle(
        slots=np.zeros(slots, SLOT),
        failures=np.zeros((slots, KEPT), FAILURE),
        bounds=np.zeros((kinds, slots), BOUND),
        bounded=np.zeros(kinds, np.int64),
        stale=np.zeros(kinds, np.bool_),
        unreserved=np.zeros((slots, words), np.uint64),
        occupied=np.zeros(words, np.uint64),
    )


# -- sets of nodes


def keep(nodes: np.ndarray, other: np.ndarray) -> None:
    """Remove the nodes that are not in another set from a set."""
    for word in range(nodes.size):
        nodes[word] &= other[word]


def in_both(nodes: np.ndarray, others: np.ndarray) -> int:
    """Return the number of nodes that are in both sets."""
    found = 0
    for word in range(nodes.size):
        found += ones(nodes[word] & others[word])
    return found


def most_usable(machine: NodeState) -> int:
    """Return at least as many processors as the usable nodes can have in the window of a cycle, by their number."""
    nodes = 0
    for word in range(machine.search.usable.size):
        nodes += ones(machine.search.usable[word] & ~machine.cycle.occupied[word])
    return machine.head[0].largest * nodes


def total(processors: np.ndarray, nodes: np.ndarray, others: np.ndarray) -> int:
    """Return the sum of the processors of the nodes that are in both sets."""
    found = 0
    for index in range(nodes.size):
        word = nodes[index] & others[index]
        while word != EMPTY:
            found += processors[(index << 6) + lowest(word)]
            word &= word - ONE
    return found
