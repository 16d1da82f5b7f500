"""Slurm's two schedulers: by hand, and against the slow simulator."""

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import cases
import slurm_queues
from swflow.compiled.kernel import Handle, Kernel
from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.importers.records import numbered
from swflow.scheduling.nested_options import SCHEDULER_PARAMETERS
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.scheduling.slurm import solve
from swflow.scheduling.slurm.fair_tree import FairTree, new_fair_tree, rank_users, spread_usage
from swflow.scheduling.slurm.placement import NODES
from swflow.scheduling.state import operations
from swflow.scheduling.state.accounts import AccountTree


def starts(*arguments: Any, **parameters: Any) -> list[float]:
    """Return the starts of `exact_starts` in whole seconds."""
    return [float(np.floor(start)) for start in exact_starts(*arguments, **parameters)]


def exact_starts(
    jobs: list[tuple[float, float, float, int, int]],
    processors: int,
    limits: Any = None,
    epoch: int = 0,
    partitions: list[int | None] | None = None,
    **parameters: float,
) -> list[float]:
    """Return the starts of jobs; each has submit time, run time, estimate, processors and user, and a partition."""
    names = ("submit_time", "run_time", "estimate", "processors", "user_id")
    table = pl.DataFrame(
        jobs, schema=dict.fromkeys(names[:3], pl.Float64) | dict.fromkeys(names[3:], pl.Int64), orient="row"
    )
    table = table.with_row_index("job_id", 1).cast({"job_id": pl.Int64})
    if partitions is not None:
        table = table.with_columns(partition_id=pl.Series(partitions, dtype=pl.Int64))
    log = Workload(table, Machine.of(processors), "drawn", header={"UnixStartTime": [str(epoch)]})
    given = {"bf_resolution": 1, "batch_sched_delay": 0, "end_delay": 0} | parameters
    options = Scheduler(backfill="slurm", scheduler_parameters=given, limits=limits)
    return simulate(log, options).sort("job_id")["start_time"].to_list()


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run random cases as plain Python, because most need another kernel; `tests/fuzz.py` compiles such cases."""
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")


def test_jobs_overtake_in_cycles_only():
    # The second job waits for the first until 100; the third would not delay it, and starts in the cycle at 30.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 2, 0), (3, 20, 20, 1, 0), (31, 20, 20, 1, 0)]
    assert starts(jobs, 4) == [1, 101, 30, 60]
    assert starts(jobs, 4, bf_interval=10) == [1, 101, 10, 40]


def test_a_cycle_comes_an_interval_after_the_last_one_or_at_the_first_change_after_that():
    # Cycles are at 30, because of the first job, and at 100, because of the second one, which waits; then at 130.
    jobs = [(1, 200, 200, 3, 0), (100, 10, 10, 2, 0), (101, 20, 20, 1, 0)]
    assert starts(jobs, 4) == [1, 201, 130]


def test_a_job_beyond_a_limit_does_not_end_a_pass():
    # The last job starts in a pass, though the second one neither fits nor is within its user's limit.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 2, 0), (3, 20, 20, 1, 1)]
    assert starts(jobs, 4) == [1, 101, 30]
    assert starts(jobs, 4, {"user": {"processors": 3}}) == [1, 101, 3]
    assert starts(jobs, 4, {"user": {"jobs": 1}}) == [1, 101, 3]
    assert starts([(1, 100, 100, 2, 0), *jobs[1:]], 4, {"user": {"processors": 3}}) == [1, 101, 3]


def test_a_cycle_begins_whole_seconds_after_it_was_due():
    # The cycle of the second job is due at 60, 30 s after that of the first one; Slurm looks for changes each second.
    jobs = [(1, 200, 200, 3, 0), (100.25, 10, 10, 2, 0), (100.5, 20, 20, 1, 0)]
    assert exact_starts(jobs, 4)[2] == 101


def test_reservations_are_rounded_down_to_the_resolution():
    # The second job is planned at 101, rounded to 60, so that in the cycle at 30 the third would delay it.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 200, 4, 0), (3, 40, 40, 1, 0)]
    assert starts(jobs, 4) == [1, 101, 30]
    assert starts(jobs, 4, bf_resolution=60) == [1, 101, 111]


def test_slots_are_counted_from_1970_on():
    # As above; the log starts 40 s after a minute, so that the second job is planned at 80 instead of 60.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 200, 4, 0), (3, 40, 40, 1, 0)]
    assert starts(jobs, 4, bf_resolution=60) == [1, 101, 111]
    assert starts(jobs, 4, epoch=100, bf_resolution=60) == [1, 101, 30]


def test_jobs_that_start_beyond_the_window_have_no_reservation():
    # The second job is planned at 101, beyond the minute of the window, so that the third may delay it.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 4, 0), (3, 200, 200, 1, 0)]
    assert starts(jobs, 4) == [1, 101, 111]
    assert starts(jobs, 4, bf_window=1) == [1, 230, 30]


def test_a_cycle_tests_as_many_jobs_as_it_may():
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 4, 0), (3, 20, 20, 1, 0), (4, 20, 20, 1, 1)]
    assert starts(jobs, 4) == [1, 101, 30, 60]
    assert starts(jobs, 4, bf_max_job_test=1) == [1, 101, 111, 111]
    assert starts(jobs, 4, bf_max_job_user=1) == [1, 101, 111, 30]
    assert starts(jobs, 4, bf_max_job_part=1, partitions=[5, 5, 5, 6]) == [1, 101, 111, 30]
    assert starts(jobs, 4, bf_max_job_part=2, partitions=[5, 5, 5, 6]) == [1, 101, 30, 60]
    # Jobs of unknown partitions have no limit together.
    assert starts(jobs, 4, bf_max_job_part=1, partitions=[5, 5, None, None]) == [1, 101, 30, 60]


def test_a_job_beyond_the_tests_of_its_partition_is_none_of_its_user():
    # The cycle at 30 tests the second job, not the third one of its partition, and so the fourth one of its user.
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 4, 0), (3, 20, 20, 1, 1), (4, 20, 20, 1, 1)]
    assert starts(jobs, 4, bf_max_job_part=1, bf_max_job_user=1, partitions=[5, 5, 5, 6]) == [1, 101, 111, 30]
    assert starts(jobs, 4, bf_max_job_user=1, partitions=[5, 5, 5, 6]) == [1, 101, 30, 60]


def test_a_cycle_on_nodes_tests_some_jobs_of_each_partition():
    # Partitions 5 and 6 have the same node; each has its own tests.
    jobs = [(1, 100, 100, 3, 5), (2, 10, 10, 4, 5), (3, 20, 20, 1, 5), (4, 20, 20, 1, 6)]
    nodes = [{"count": 1, "processors": 4}]
    assert starts_on_nodes(jobs, nodes) == [1, 101, 30, 60]
    assert starts_on_nodes(jobs, nodes, parameters={"bf_max_job_part": 1}) == [1, 101, 111, 30]


def test_a_job_that_a_cycle_on_nodes_passes_over_is_none_that_it_tests():
    # The node of partition 5 is occupied beyond the window. The cycle at 30 tests the second job and the last one.
    nodes = [{"count": 1, "processors": 4, "partition": 5}, {"count": 1, "processors": 4, "partition": 6}]
    jobs = [(1, 400, 400, 4, 5), (2, 10, 10, 4, 5), (3, 10, 10, 4, 5), (4, 20, 20, 1, 6)]
    given = {"bf_window": 1, "bf_max_job_test": 2, "default_queue_depth": 1, "sched_interval": 600}
    assert starts_on_nodes(jobs, nodes, parameters=given)[3] == 402  # when the second job runs
    assert starts_on_nodes(jobs, nodes, parameters=given | {"bf_max_job_part": 1})[3] == 30


def test_the_main_scheduler_waits_after_a_pass_and_after_events():
    jobs = [(1, 10, 10, 4, 0), (2, 10, 10, 1, 0), (13, 10, 10, 1, 0), (14, 10, 10, 1, 0)]
    assert starts(jobs, 4) == [1, 11, 13, 14]
    # Passes because of events are at about 3, 6, 13 and 16, at least 3 s apart.
    assert starts(jobs, 4, batch_sched_delay=3) == [3, 13, 13, 16]
    assert starts(jobs, 4, batch_sched_delay=3, sched_interval=2) == [2, 12, 14, 14]
    # The processors of the first job are free 0.5 s after its end, and the next pass is at the next second.
    assert starts(jobs, 4, end_delay=0.5) == [1, 12, 13, 14]


def test_without_cycles_jobs_start_in_order():
    jobs = [(1, 100, 100, 3, 0), (2, 10, 10, 2, 0), (3, 20, 20, 1, 0)]
    assert starts(jobs, 4, bf_interval=-1) == [1, 101, 101]


def test_a_cycle_plans_that_jobs_end_in_groups():
    # The fourth job is planned at 131, the later of two ends within 30 s, so that in the cycle at 30 the fifth, which
    # ends at 125, is no delay; in reality it could begin at 105.
    jobs = [(1, 104, 104, 2, 0), (1, 130, 130, 1, 0), (2, 10, 10, 3, 0), (3, 95, 95, 1, 0)]
    assert starts(jobs, 4) == [1, 1, 125, 30]
    # Ends that are further apart are planned as they are.
    assert starts([jobs[0], (1, 140, 140, 1, 0), *jobs[2:]], 4) == [1, 1, 105, 115]


def test_the_main_scheduler_tests_as_many_jobs_as_it_may():
    jobs = [(1, 10, 10, 4, 0), (2, 10, 10, 1, 0), (3, 10, 10, 1, 0), (4, 10, 10, 1, 0)]
    assert starts(jobs, 4) == [1, 11, 11, 11]
    assert starts(jobs, 4, default_queue_depth=2) == [1, 11, 11, 21]
    # The pass of every minute tests all jobs, although nothing changed since the last one.
    assert starts([(1, 500, 500, 1, 0)] * 3, 4, bf_interval=-1, bf_max_job_test=1, default_queue_depth=1) == [1, 60, 60]


# -- nodes


def starts_on_nodes(*arguments: Any, **options: Any) -> list[float]:
    """Return the starts of jobs in whole seconds."""
    return outcomes_on_nodes(*arguments, **options)["start_time"].floor().to_list()


def outcomes_on_nodes(
    jobs: list[tuple[float, float, float, int, int | None]], nodes: list[dict[str, Any]], **options: Any
) -> pl.DataFrame:
    """
    Return the outcomes of jobs; each has submit time, run time, estimate, processors, partition.

    The options ``gpus`` and ``requested_nodes`` are columns of the jobs; ``constraints`` has their texts.
    """
    names = ("submit_time", "run_time", "estimate", "processors", "partition_id")
    types = dict.fromkeys(names[:3], pl.Float64) | dict.fromkeys(names[3:], pl.Int64)
    table = pl.DataFrame(jobs, schema=types, orient="row").with_columns(job_id=pl.int_range(1, len(jobs) + 1))
    columns = [name for name in ("gpus", "requested_nodes") if name in options]
    table = table.with_columns(pl.Series(name, options.pop(name)) for name in columns)
    header = {"UnixStartTime": [str(options.pop("epoch", 0))]}
    if "constraints" in options:
        ids, texts = numbered(pl.Series(options.pop("constraints"), dtype=pl.String))
        table = table.with_columns(constraint_id=ids)
        header["Constraint"] = [f"{number} {text}" for number, text in enumerate(texts, 1)]
    parameters = {"bf_resolution": 1, "batch_sched_delay": 0, "end_delay": 0} | options.pop("parameters", {})
    scheduler = Scheduler(backfill="slurm", nodes=nodes, scheduler_parameters=parameters, **options)
    return simulate(Workload(table, Machine.of(1024), "drawn", header=header), scheduler).sort("job_id")


def test_cycles_reserve_whole_nodes():
    # The second job has a reservation from 101 on. It leaves a processor, on which the third job may start now, but not
    # if the whole node is reserved; the fourth ends in time.
    jobs = [(1, 100, 100, 3, None), (2, 50, 50, 2, None), (3, 200, 200, 1, None), (4, 20, 20, 1, None)]
    assert starts(jobs, 4) == [1, 101, 30, 101]
    assert starts_on_nodes(jobs, [{"count": 1, "processors": 4}]) == [1, 101, 101, 30]


def test_a_job_gets_the_node_that_fits_best():
    # The nodes have 1, 2 and 4 processors: the jobs of 2 and 1 leave those of 4 to the last one.
    jobs = [(1, 90, 90, 2, None), (1, 90, 90, 1, None), (1, 90, 90, 4, None), (1, 90, 90, 1, None)]
    sizes = [{"count": 1, "processors": size} for size in (1, 2, 4)]
    assert starts_on_nodes(jobs, sizes) == [1, 1, 1, 91]


def test_a_job_gets_the_consecutive_nodes_that_fit_best():
    # The first job is on the third node. Of the two nodes before and the one after it, the second job gets the latter,
    # for which the third job waits.
    nodes = [{"count": count, "processors": 2, "partition": own} for count, own in ((2, 5), (1, [5, 9]), (1, [5, 8]))]
    assert starts_on_nodes([(1, 200, 200, 2, 9), (2, 50, 50, 2, 5), (3, 10, 10, 1, 8)], nodes) == [1, 2, 52]


def test_a_job_that_does_not_fit_closes_its_partition_only():
    nodes = [{"count": 1, "processors": 4, "partition": 1}, {"count": 1, "processors": 4, "partition": [2, "3"]}]
    jobs = [
        (1, 100, 100, 3, 1),
        (2, 10, 10, 2, 1),
        (3, 5, 5, 1, 1),
        (4, 10, 10, 2, 2),
        (5, 10, 10, 3, 3),
        (6, 1, 1, 1, 2),
    ]
    # The third job waits for a cycle, and the last one for the fifth, though a processor is free.
    assert starts_on_nodes(jobs, nodes) == [1, 101, 30, 4, 14, 14]


def test_a_job_wider_than_the_open_nodes_of_its_partition_closes_nothing():
    shared, own = {"count": 1, "processors": 4, "partition": [1, 2]}, {"count": 1, "processors": 2, "partition": 2}
    # The second job closes partition 1 with its node. The third is wider than the other node, and the fourth starts.
    jobs = [(1, 100, 100, 3, 1), (2, 10, 10, 2, 1), (3, 10, 10, 3, 2), (4, 10, 10, 2, 2)]
    assert starts_on_nodes(jobs, [shared, own]) == [1, 101, 30, 4]


def test_a_cycle_ends_when_its_table_is_full():
    # The second job has the only reservation that fits into the table; the third needs another one, so that the fourth
    # is not tested, though it would start in time.
    jobs = [(1, 100, 100, 2, None), (2, 10, 10, 3, None), (3, 10, 10, 3, None), (4, 20, 20, 1, None)]
    nodes = [{"count": 3, "processors": 1}]
    assert starts_on_nodes(jobs, nodes) == [1, 101, 111, 30]
    assert starts_on_nodes(jobs, nodes, parameters={"bf_max_job_test": 3}) == [1, 101, 111, 121]


def test_ends_are_grouped_by_multiples_of_30_seconds_from_1970_on():
    # The third job would start at 60, with the first group of ends, if that included 59 and 60, or at 1 + 58.
    jobs = [(1, 58, 58, 1, None), (1, 119, 119, 1, None), (2, 20, 20, 1, None), (3, 70, 70, 1, None)]
    nodes = [{"count": 2, "processors": 1}]
    assert starts_on_nodes(jobs, nodes) == [1, 1, 59, 79]


def test_jobs_beyond_their_planned_end_are_planned_to_end_30_seconds_later():
    # The first job ends just after the cycle at 101, so that the second is planned at 131: the third ends in time.
    jobs = [(1, 100, 100, 1, None), (2, 10, 10, 2, None)]
    nodes = [{"count": 2, "processors": 1}]
    assert starts_on_nodes([*jobs, (100.5, 29, 29, 1, None)], nodes) == [1, 130, 101]
    assert starts_on_nodes([*jobs, (100.5, 30, 30, 1, None)], nodes) == [1, 101, 111]


def test_jobs_need_free_gpus_on_the_nodes_of_their_processors():
    # The third job has the GPUs of the second node, so that the fourth waits for those of the first, where one free
    # processor is reserved for it; the last job starts in the next cycle on the second node.
    nodes = [{"count": 2, "processors": 4, "resources": {"gpus": 2}}]
    jobs = [(1, 100, 100, 2, None)] * 3 + [(2, 10, 10, 1, None), (3, 200, 200, 2, None)]
    assert starts_on_nodes(jobs, nodes, gpus=[2, 0, 2, 1, 0]) == [1, 1, 1, 101, 30]
    assert starts_on_nodes(jobs, nodes, gpus=[0, 0, 0, 1, 0]) == [1, 1, 1, 2, 12]


def test_a_node_gives_a_job_whole_gpus():
    # Four processors with a GPU are three of one node and one of the other: each node gives a GPU.
    nodes = [{"count": 2, "processors": 3, "resources": {"gpus": 1}}]
    jobs = [(1, 50, 50, 4, None), (2, 10, 10, 1, None)]
    assert starts_on_nodes(jobs, nodes, gpus=[1, 1]) == [1, 51]
    assert starts_on_nodes(jobs, nodes, gpus=[0, 1]) == [1, 2]


def test_a_job_has_equal_parts_on_the_nodes_that_it_requests():
    # A processor is free on the first node, so that the second job, which needs two on each node, waits; in the cycle
    # at 30 it has a reservation of both nodes, which the third job would delay.
    nodes = [{"count": 2, "processors": 4}]
    jobs = [(1, 100, 100, 3, None), (2, 10, 10, 4, None), (3, 200, 200, 1, None)]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 1, 1]) == [1, 2, 3]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[None, 2, 1]) == [1, 101, 101]
    # The first job leaves two processors of each node, which suffice.
    assert starts_on_nodes([(1, 100, 100, 4, None), *jobs[1:]], nodes, requested_nodes=[2, 2, 1]) == [1, 2, 12]


def test_a_job_on_whole_nodes_of_several_sizes_has_unequal_parts():
    nodes = [{"count": 1, "processors": 12}, {"count": 1, "processors": 16}]
    jobs = [(1, 100, 100, 28, None), (2, 10, 10, 1, None)]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[2, 1]) == [1, 101]


def test_a_job_has_a_processor_at_least_on_each_node_that_it_requests():
    # The second job has two processors of the first node and one of the other, or three of the first.
    nodes = [{"count": 1, "processors": 4, "partition": [1, 2]}, {"count": 1, "processors": 4, "partition": [1, 3]}]
    jobs = [(1, 50, 50, 3, 1), (2, 10, 10, 2, 2), (2, 10, 10, 4, 3)]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 1, 1]) == [1, 51, 2]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[2, 1, 1]) == [1, 2, 51]
    # More nodes than processors are as many.
    assert starts_on_nodes([(1, 50, 50, 2, 1), (2, 10, 10, 3, 2)], nodes, requested_nodes=[5, 1]) == [1, 2]
    with pytest.raises(SwflowError, match=r"1 jobs are wider .* with 3 of 2 processors on 3 nodes of all nodes;"):
        starts_on_nodes([(1, 9, 9, 3, None)], [{"count": 2, "processors": 4}], requested_nodes=[3])


def test_a_set_of_too_few_nodes_does_not_suffice():
    # The third node has the most processors, of which the second job takes three; it takes the last one of the first.
    nodes = [
        {"count": 1, "processors": 2},
        {"count": 1, "processors": 1, "partition": 1},
        {"count": 1, "processors": 8},
    ]
    jobs = [(1, 90, 90, 1, 1), (2, 90, 90, 5, None), (3, 50, 50, 5, None)]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 2, 1]) == [1, 2, 3]


def test_a_job_waits_for_nodes_that_satisfy_its_constraint():
    nodes = [{"count": 1, "processors": 4, "features": features} for features in (["a", "ib"], "b")]
    # The second job fits on the second node, or waits for the first one; the third starts in the cycle, because the
    # second closed the partition.
    jobs = [(1, 100, 100, 4, None), (2, 10, 10, 1, None), (3, 200, 200, 1, None)]
    assert starts_on_nodes(jobs, nodes, constraints=["a&ib", None, "b"]) == [1, 2, 3]
    assert starts_on_nodes(jobs, nodes, constraints=["a&ib", "ib|c", "b"]) == [1, 101, 30]
    # The third job would delay the reservation of the second one on the first node.
    jobs[0] = (1, 100, 100, 3, None)
    assert starts_on_nodes(jobs, nodes, constraints=["ib", "(c|b)&b", "a"]) == [1, 2, 3]
    jobs[1] = (2, 10, 10, 2, None)
    assert starts_on_nodes(jobs, nodes, constraints=["ib", "a", "a"]) == [1, 101, 101]
    assert starts_on_nodes(jobs, nodes, constraints=["ib", "a", None]) == [1, 101, 30]


def test_a_job_whose_constraint_no_open_node_satisfies_closes_nothing():
    # The second job closes partition 1 with its node, the only one for the third job of partition 2.
    own, both = {"partition": [1, 2], "features": "a"}, {"partition": 2, "features": "b"}
    nodes = [{"count": 1, "processors": 4} | group for group in (own, both)]
    jobs = [(1, 100, 100, 3, 1), (2, 10, 10, 2, 1), (3, 10, 10, 1, 2), (4, 10, 10, 2, 2)]
    assert starts_on_nodes(jobs, nodes, constraints=[None, None, "a", None]) == [1, 101, 30, 4]
    # Without the second job, the third one closes its partition.
    jobs[1:3] = [(2, 10, 10, 2, 2)]
    assert starts_on_nodes(jobs, nodes, constraints=[None, "a", None]) == [1, 101, 30]


def test_a_cycle_counts_jobs_whose_constraint_no_free_node_satisfies():
    # In the cycle at 30, the second job reserves the first node, which the third one needs. This one counts as a tested
    # job, because the other node of its partition is not reserved; therefore the last one is not tested.
    nodes = [{"count": 1, "processors": 2, "features": "a"}, {"count": 1, "processors": 2, "partition": [1, 2]}]
    jobs = [(1, 100, 100, 1, 1), (2, 500, 500, 2, 1), (3, 200, 200, 1, 1), (4, 10, 10, 1, 2)]
    given = {"constraints": ["a", "a", "a", None], "parameters": {"bf_window": 5, "default_queue_depth": 1}}
    assert starts_on_nodes(jobs, nodes, **given) == [1, 101, 602, 30]
    given["parameters"] |= {"bf_max_job_test": 2}
    assert starts_on_nodes(jobs, nodes, **given) == [1, 101, 602, 102]


def test_a_cycle_does_not_count_jobs_of_more_nodes_than_are_not_reserved():
    # In the cycle at 30, the third job reserves the second node. The fourth needs two nodes, of which only the first is
    # not reserved, so that it does not count, and the last job is tested.
    nodes = [{"count": 2, "processors": 2, "partition": 1}, {"count": 1, "processors": 2, "partition": 2}]
    jobs = [(1, 2000, 2000, 2, 1), (2, 100, 100, 1, 1), (3, 900, 900, 2, 1), (4, 300, 300, 2, 1), (5, 10, 10, 1, 2)]
    given = {"bf_window": 5, "default_queue_depth": 1, "bf_max_job_test": 2}
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 1, 1, 2, 1], parameters=given)[4] == 30
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 1, 1, 1, 1], parameters=given)[4] == 60


@pytest.mark.parametrize("constraint", ["[a|b]", "a*2&b*2", "(a", "a)", "a&", "a,b", "a&&b", "a (b)", "()"])
def test_constraints_of_another_form_are_refused_in_one_line(constraint: str):
    nodes = [{"count": 1, "processors": 4, "features": ["a", "b"]}]
    with pytest.raises(SwflowError, match=r"constraint_id: .*; expected features of nodes with &, . and") as error:
        starts_on_nodes([(1, 10, 10, 1, None)], nodes, constraints=[constraint])
    assert repr(constraint) in str(error.value) and "\n" not in str(error.value)


def test_a_constraint_that_no_node_satisfies_is_refused():
    nodes = [{"count": 1, "processors": 4, "features": "a"}, {"count": 1, "processors": 4, "partition": 2}]
    message = (
        r"nodes: features: 2 jobs of drawn have no nodes, the first is job 2 with partition 2 and constraint 'a&b'; "
    )
    with pytest.raises(SwflowError, match=message):
        starts_on_nodes([(1, 10, 10, 1, 2)] * 3, nodes, constraints=["a", "a&b", "a&b"])
    with pytest.raises(SwflowError, match="job 1 with 5 of 4 processors of all nodes and constraint 'a'; give it more"):
        starts_on_nodes([(1, 10, 10, 5, None)], nodes, constraints=["a"])


def test_consecutive_nodes_that_suffice_are_taken_before_a_wide_one():
    # The first job takes both nodes of four processors, and not those of the wide node, which the second one needs.
    groups = ({"processors": 6, "partition": [1, 2]}, {"processors": 1, "partition": 3})
    nodes = [*({"count": 1} | group for group in groups), {"count": 2, "processors": 4, "partition": 1}]
    jobs = [(1, 50, 50, 5, 1), (2, 50, 50, 6, 2)]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[2, 1]) == [1, 2]
    assert starts_on_nodes(jobs, nodes, requested_nodes=[1, 1]) == [1, 51]
    assert starts_on_nodes(jobs, nodes[::-1], requested_nodes=[2, 1]) == [1, 2]
    # A later set that does not suffice is taken if it has more processors (`_eval_nodes`): four of the wide node.
    nodes[0]["processors"] = 9
    assert starts_on_nodes(jobs, nodes[::-1], requested_nodes=[2, 1]) == [1, 51]


def test_jobs_take_nodes_of_the_lowest_weight_first():
    nodes = [{"count": 1, "processors": 2, "weight": 2, "partition": [1, 2]}, {"count": 1, "processors": 2}]
    jobs = [(1, 50, 50, 2, 1), (2, 50, 50, 2, 2)]
    assert starts_on_nodes(jobs, [nodes[0], nodes[1] | {"partition": 1}]) == [1, 2]
    assert starts_on_nodes(jobs, [nodes[0] | {"weight": 1}, nodes[1] | {"partition": 1}]) == [1, 51]
    # Three processors are on both nodes; then the job of two waits.
    assert starts_on_nodes([(1, 50, 50, 3, None), (2, 50, 50, 2, None)], nodes) == [1, 51]


def test_no_job_runs_into_a_window_of_its_nodes():
    # The first job needs both nodes, and would run until 61; it closes no node to the others. The second one has the
    # other node, and the third ends before the window.
    away = {"unavailable": [{"from": 50, "until": 80, "nodes": 1}]}
    jobs = [(1, 10, 60, 4, None), (2, 10, 60, 2, None), (3, 10, 40, 2, None)]
    nodes = [{"count": 2, "processors": 2}]
    assert starts_on_nodes(jobs, nodes, **away) == [80, 2, 3]
    # On the last processors, which are those of both nodes.
    away = {"unavailable": [{"from": 50, "until": 80, "processors": 4}]}
    assert starts_on_nodes(jobs, nodes, **away) == [80, 90, 3]


def test_jobs_wait_for_the_end_of_a_window_of_all_nodes():
    # The second job closes no nodes, so that the third starts at once. The fourth would run into the window, too, and
    # comes after the second one. Node 1 is drained by a window without an end.
    nodes, away = [{"count": 2, "processors": 2}], {"from": 50, "until": 80, "nodes": "1-2"}
    jobs = [(1, 40, 40, 1, None), (2, 10, 60, 2, None), (3, 10, 30, 1, None), (4, 10, 48, 3, None)]
    assert starts_on_nodes(jobs, nodes, unavailable=[away]) == [1, 80, 3, 90]
    assert starts_on_nodes(jobs[:3], nodes, unavailable=[{"from": 0, "until": None, "nodes": 1}]) == [1, 41, 51]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ({"nodes": "2-5"}, "unavailable: nodes: 5; expected positions from 1 to 4"),
        (
            {"processors": 1},
            "unavailable: processors: 1; expected those of whole nodes, of which the last has 2 and all have 8",
        ),
    ],
)
def test_windows_are_of_nodes(window: dict[str, Any], message: str):
    nodes = [{"count": 1, "processors": 4}, {"count": 2, "processors": 1}, {"count": 1, "processors": 2}]
    with pytest.raises(SwflowError, match=message):
        starts_on_nodes([(1, 1, 1, 1, None)], nodes, unavailable=[{"from": 0, "until": 9} | window])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [{"count": 4, "processors": 1, "resources": {"gpus": 2}}, {}],
            "1 jobs are wider .* job 1 with 5 of 4 processors with 8 gpus of all nodes;",
        ),
        ([{"resources": {"gpus": -1}}], "nodes: resources: gpus: -1; expected a whole number of units"),
        ([{"resources": {"gpus": 2**32}}], "nodes: resources: gpus: 4294967296; expected at most 2,147,483,648"),
        ([{"weight": "low"}], "nodes: weight: 'low'; expected a whole number"),
        ([{}, {"resources": {"memory": 2}}], "drawn: no column memory, though the machine has the resource memory"),
    ],
)
def test_wrong_resources_of_nodes_are_refused_in_one_line(nodes: list[dict[str, Any]], message: str):
    groups = [{"count": 1, "processors": 4} | group for group in nodes]
    with pytest.raises(SwflowError, match=message) as error:
        starts_on_nodes([(1, 10, 10, 5, None)], groups, gpus=[8])
    assert "\n" not in str(error.value)


def test_nodes_replace_the_machine_and_must_serve_every_job():
    nodes = [{"count": 2, "processors": 2, "partition": "1"}]
    jobs = [(1, 10, 10, 3, 1), (1, 10, 10, 4, None)]
    assert starts_on_nodes(jobs, nodes) == [1, 11]
    with pytest.raises(SwflowError, match=r"nodes: partition: 1 jobs of drawn have no nodes, .* partition 2; name it"):
        starts_on_nodes([*jobs, (1, 10, 10, 1, 2)], nodes)
    wide = [{"count": 1, "processors": 2, "partition": 1}, {"count": 2, "processors": 2, "partition": 2}]
    with pytest.raises(SwflowError, match="nodes: 1 jobs are wider than their partition's nodes, the first is job 1 "):
        starts_on_nodes(jobs, wide)


# -- preemption

ON_NODES: dict[str, Any] = {"backfill": "slurm", "nodes": [{"count": 1, "processors": 1}]}

#: Partition 2 preempts partition 1.
BY_TIER: dict[str, Any] = {"partition": {"2": 2}}


def test_preempted_jobs_run_again_or_are_cancelled():
    # Both nodes are full when the third job comes, for which the job with the fewest nodes, and the lower number, ends.
    # It is eligible 121 s later, and found by the pass that tests all jobs.
    jobs = [(1, 200, 200, 2, 1), (1, 100, 100, 2, 1), (10, 20, 20, 2, 2)]
    nodes = [{"count": 2, "processors": 2}]
    found = outcomes_on_nodes(jobs, nodes, preemption=BY_TIER)
    assert found["start_time"].floor().to_list() == [180, 1, 10]
    assert (found["submit_time"].to_list(), found["preemptions"].to_list()) == ([1, 1, 10], [1, 0, 0])
    assert found["lost_time"].floor().to_list() == [9, 0, 0]
    assert found["killed"].to_list() == [False] * 3
    assert starts_on_nodes(jobs, nodes, preemption=BY_TIER | {"requeue_delay": 25}) == [60, 1, 10]
    # Preempted in second 11, the job is eligible at 60, when a pass tests all jobs.
    late = [*jobs[:2], (10.5, 20, 20, 2, 2)]
    assert starts_on_nodes(late, nodes, preemption=BY_TIER | {"requeue_delay": 49}) == [60, 1, 11]
    found = outcomes_on_nodes(jobs, nodes, preemption=BY_TIER | {"mode": "cancel"})
    assert found["start_time"].floor().to_list() == [1, 1, 10]
    assert found["end_time"].floor().to_list() == [10, 101, 30]
    assert found["killed"].to_list() == [True, False, False]
    assert found["lost_time"].to_list() == [0] * 3


def test_nodes_are_free_some_time_after_a_preemption():
    # The pass comes at once when the preempted job has left its node.
    jobs = [(1, 200, 200, 2, 1), (10, 20, 20, 1, 2)]
    found = outcomes_on_nodes(jobs, [{"count": 1, "processors": 2}], preemption=BY_TIER, parameters={"end_delay": 2.5})
    passed = found["start_time"].to_list()[1] - 2.5
    assert passed == pytest.approx(10, abs=0.1)
    assert found["lost_time"].to_list()[0] == pytest.approx(9, abs=0.1)


def test_jobs_are_spared_for_a_time_and_where_they_would_not_help():
    nodes = [{"count": 1, "processors": 2, "partition": 1}, {"count": 3, "processors": 2, "partition": [1, 2]}]
    # The first job is on the node that only its partition may use, the second one on two others. At the end, the next
    # pass after 100 s comes at 120 s.
    jobs = [(1, 200, 200, 2, 1), (2, 200, 200, 4, 1), (20, 200, 200, 2, 1), (30, 20, 20, 2, 2)]
    found = outcomes_on_nodes(jobs, nodes, preemption=BY_TIER)
    assert found["preemptions"].to_list() == [0, 0, 1, 0]
    # The second job is spared for 28 s from 2 on; after that, the third one has fewer nodes and is preempted.
    for time, submit, preempted, start in ((28, 30, 2, 30), (29, 30, 3, 60), (28, 29.5, 2, 30)):
        last = (submit, 20, 20, 2, 2)
        found = outcomes_on_nodes([*jobs[:3], last], nodes, preemption=BY_TIER | {"exempt_time": time})
        assert found.filter(pl.col("preemptions") > 0)["job_id"].to_list() == [preempted]
        assert found["start_time"].to_list()[3] == start
    found = outcomes_on_nodes(jobs, nodes, preemption=BY_TIER | {"exempt_time": 100})
    assert found["start_time"].floor().to_list()[3] == 120
    found = outcomes_on_nodes(jobs, nodes, preemption=BY_TIER | {"modes": {"1": "off"}})
    assert found["preemptions"].sum() == 0


def test_candidates_that_are_taken_first_are_spared_if_the_last_one_suffices():
    # The first two jobs have the fewest nodes, and suffice.
    jobs = [(1, 500, 500, 2, 1), (1, 500, 500, 2, 1), (2, 500, 500, 4, 1), (10, 20, 20, 4, 2)]
    found = outcomes_on_nodes(jobs, [{"count": 4, "processors": 2}], preemption=BY_TIER)
    assert found["preemptions"].to_list() == [1, 1, 0, 0]
    # The third job is taken, too; with it, the first one suffices.
    found = outcomes_on_nodes([*jobs[:3], (10, 20, 20, 6, 2)], [{"count": 4, "processors": 2}], preemption=BY_TIER)
    assert found["preemptions"].to_list() == [1, 0, 1, 0]


@pytest.mark.slow
def test_queues_with_preemption_have_the_schedule_of_the_slow_simulator():
    preempted = 0
    for seed in range(40):
        case = slurm_queues.with_preemption(random.Random(f"preemption {seed}"), windows=seed % 4 == 3)
        found = simulate(case.workload(), Scheduler(**case.options))
        assert not cases.differences(case, found), seed
        preempted += found["preemptions"].sum()
    assert preempted > 60


@pytest.mark.slow
def test_a_formula_that_equals_the_order_of_submission_preempts_the_same_jobs_under_limits():
    """A preemption ends a job, so that another one of its user is below a limit again."""
    preempted = 0
    for seed in range(40):
        rng = random.Random(f"preemption with limits {seed}")
        users, count = rng.randint(1, 3), rng.randint(20, 60)
        runs = [float(rng.randint(100, 900)) for _ in range(count)]
        table = pl.DataFrame({
            "job_id": range(1, count + 1), "submit_time": sorted(float(rng.randint(0, 900)) for _ in range(count)),
            "run_time": runs, "estimate": [run * rng.choice([1, 1.5]) for run in runs],
            "processors": [rng.choice([1, 1, 2, 4]) for _ in range(count)],
            "partition_id": [rng.choice([1, 1, 1, 2]) for _ in range(count)],
            "user_id": [rng.randint(1, users) for _ in range(count)],
        })  # fmt: skip
        log = Workload(table, Machine.of(12), "drawn")
        options: dict[str, Any] = {
            "backfill": "slurm", "nodes": [{"count": rng.choice([3, 12]), "processors": 1}], "preemption": BY_TIER,
            "limits": {"user": {"jobs": rng.randint(1, 4)}},
            "scheduler_parameters": {"bf_interval": rng.choice([1, 30]), "sched_interval": rng.choice([5, 60])},
        }  # fmt: skip
        options["nodes"][0]["processors"] = 12 // options["nodes"][0]["count"]
        found = [simulate(log, Scheduler(order=order, **options)) for order in ("job_id", "job_id + 0 * wait")]
        assert found[0].equals(found[1]), seed
        preempted += found[0]["preemptions"].sum()
    assert preempted > 20


def test_jobs_that_have_ended_are_not_preempted():
    parameters = {"end_delay": 100, "batch_sched_delay": 0, "sched_interval": 10, "bf_interval": 1}
    found = outcomes_on_nodes(
        [(1, 20, 20, 2, 1), (60, 20, 20, 2, 2)], [{"count": 1, "processors": 2}], preemption=BY_TIER,
        parameters=parameters,
    )  # fmt: skip
    assert found["preemptions"].to_list() == [0, 0]
    assert found["end_time"].to_list()[0] == pytest.approx(21, abs=2)


@pytest.mark.slow
def test_wide_jobs_preempt_the_same_jobs_as_in_the_slow_simulator():
    preempted = 0
    for seed in range(120):
        case = slurm_queues.with_wide_jobs(random.Random(f"wide {seed}"))
        found = simulate(case.workload(), Scheduler(**case.options))
        assert not cases.differences(case, found), seed
        preempted += found["preemptions"].sum()
    assert preempted > 500


@pytest.mark.slow
@pytest.mark.parametrize("preemption", list(cases.VALUES["preemption"])[1:])
@pytest.mark.usefixtures("interpreted")
def test_random_cases_with_preemption_have_the_schedule_of_the_slow_simulator(preemption: str):
    rng = random.Random(f"preemption {preemption}")
    fixed, done = ("backfill", "nodes", "preemption"), 0
    while done < 30:
        site = cases.new_site(rng)
        others = [one for one in cases.CHOOSABLE if one[0] not in fixed]
        wanted = {"backfill": "slurm", "nodes": rng.choice(["alike", "partitions", "resources"])}
        wanted |= {"preemption": preemption}
        values = cases.completed(site, dict(rng.sample(others, rng.randint(0, 3))) | wanted)
        if values is not None:
            case = cases._with_jobs(site, values)
            assert not cases.differences(case, simulate(case.workload(), Scheduler(**case.options))), case
            done += 1


@pytest.mark.slow
@pytest.mark.parametrize("nodes", ["alike", "partitions", "resources"])
@pytest.mark.parametrize("parameters", ["none", "bf_resolution", "bf_max_job_test", "all"])
@pytest.mark.usefixtures("interpreted")
def test_random_cases_on_nodes_have_the_schedule_of_the_slow_simulator(nodes: str, parameters: str):
    rng = random.Random(f"nodes {nodes} {parameters}")
    done = 0
    while done < 30:
        site = cases.new_site(rng)
        others = [one for one in cases.CHOOSABLE if one[0] not in ("backfill", "scheduler_parameters", "nodes")]
        wanted = {"backfill": "slurm", "scheduler_parameters": parameters, "nodes": nodes}
        values = cases.completed(site, dict(rng.sample(others, rng.randint(0, 2))) | wanted)
        if values is not None:
            case = cases._with_jobs(site, values)
            assert not cases.differences(case, simulate(case.workload(), Scheduler(**case.options))), case
            done += 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "resources", "many", "windows"),
    [(1, False, False, False), (3, False, False, False), (1, True, False, False), (1, True, True, False),
     (2, True, False, True)],
)  # fmt: skip
@pytest.mark.parametrize("seed", [*(f"queue {number}" for number in range(40)), "more 36", "more 172"])
def test_queues_on_nodes_have_the_schedule_of_the_slow_simulator(
    seed: str, users: int, resources: bool, many: bool, windows: bool
):
    case = slurm_queues.a_queue(random.Random(seed), users, resources, many, windows)
    assert not cases.differences(case, simulate(case.workload(), Scheduler(**case.options)))


#: Whether each start in `test_no_node_has_more_processors_in_use_than_it_has` left nodes within their sizes.
PLACED: list[bool] = []


def _place(state: Any, item: int, now: float) -> None:
    """Place a job, and note whether it has its processors, and no node has fewer free ones than 0."""
    before = state.machine.free.copy()
    NODES[operations.occupy](state, item, now)
    free, sizes = state.machine.free, state.machine.sizes
    PLACED.append(bool(((free >= 0) & (free <= before) & (before <= sizes)).all()))
    PLACED.append((before - free).sum() == state.jobs[item].processors)


@pytest.mark.slow
def test_no_node_has_more_processors_in_use_than_it_has(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    for name in ("RUN_NODES", "RUN_PREEMPTIVE"):
        kernel = getattr(solve, name)
        monkeypatch.setattr(solve, name, Kernel(kernel.function, {**kernel.hooks, operations.occupy: _place}))
    rng = random.Random("in use")
    for _ in range(10):
        case = slurm_queues.with_preemption(rng)
        simulate(case.workload(), Scheduler(**case.options))
    for _ in range(20):
        values = cases.completed(site := cases.new_site(rng), {"backfill": "slurm", "nodes": "partitions"})
        assert values is not None
        case = cases._with_jobs(site, values)
        simulate(case.workload(), Scheduler(**case.options))
    assert len(PLACED) > 100
    assert all(PLACED)


def test_limits_of_qos_of_users_in_them_and_of_groups_above():
    # Submit time, run time, estimate, processors, user, group, QOS: all jobs would fit at once.
    rows = [(0, 10, 10, 1, user, group, qos) for user, group, qos in ((1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 2, 1))]
    names = ("submit_time", "run_time", "estimate", "processors", "user_id", "group_id", "queue_id")
    types = dict.fromkeys(names[:3], pl.Float64) | dict.fromkeys(names[3:], pl.Int64)
    table = pl.DataFrame(rows, schema=types, orient="row").with_columns(job_id=pl.int_range(1, 5))
    log = Workload(table, Machine.of(9), "drawn")

    def starts_with(**options: Any) -> list[float]:
        return simulate(log, Scheduler(**options)).sort("job_id")["start_time"].to_list()

    assert starts_with(limits={"qos": {"1": {"jobs": 2}}}) == [0, 0, 0, 10]
    assert starts_with(limits={"qos": {"user_jobs": 1}}) == [0, 0, 10, 0]
    assert starts_with(limits={"qos": {"1": {"user_processors": 1}}}) == [0, 0, 10, 0]
    assert starts_with(limits={"group": {"1": {"jobs": 1}}}) == [0, 10, 0, 0]
    for what, other in (("gpus", "memory"), ("memory", "gpus")):
        log = Workload(table.with_columns(pl.Series([2, 1, None, 1]).alias(what)), Machine.of(9), "drawn")
        assert starts_with(limits={"user": {"1": {what: 2}}}) == [0, 10, 0, 0]
        assert starts_with(limits={"user": {what: 2}}, backfill="slurm") == pytest.approx([0, 13, 3, 3], abs=30)
        assert starts_with(limits={"qos": {what: 2}}) == [0, 0, 0, 10]
        assert starts_with(limits={"qos": {f"user_{what}": 2}}) == [0, 0, 0, 0]
        with pytest.raises(
            SwflowError, match=rf"limits: user: 1 jobs can never start, the first is job 1 with 2 of 1 {what}"
        ):
            starts_with(limits={"user": {what: 1}})
        with pytest.raises(SwflowError, match=rf"limits: {other}: drawn has no column {other}"):
            starts_with(limits={"user": {other: 1}})
    top = {"limits": {"group": {"3": {"processors": 2}}}}
    assert starts_with(**top, accounts={"1": {"parent": 3}, "2": {"parent": 3}}) == [0, 0, 10, 10]
    assert starts_with(**top, accounts={"1": {"parent": "lab"}, "lab": {"parent": 3}}) == [0, 0, 0, 0]
    of_lab = {"limits": {"group": {"lab": {"processors": 1}}}, "accounts": {"1": {"parent": "lab"}, "lab": {}}}
    assert starts_with(**of_lab) == [0, 10, 0, 0]
    with pytest.raises(SwflowError, match="drawn has no group 'lab'"):
        starts_with(limits=of_lab["limits"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("accounts", ("flat", "below each other", "above the log's")),
        ("limits", ("named groups", "named qos", "all")),
        ("priority", ("association", "whole_periods", "whole_periods of associations")),
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_random_accounts_give_the_schedule_of_the_slow_simulator(option: str, values: tuple[str, ...]):
    rng = random.Random(option)
    done = 0
    while done < 40:
        site = cases.new_site(rng)
        wanted = {option: values[done % 3], "backfill": rng.choice(["none", "easy", "slurm"])}
        if option == "priority":
            order = "association_usage" if rng.random() < 0.3 else "slurm-multifactor"
            wanted |= {"order": order, "accounts": rng.choice(list(cases.VALUES["accounts"]))}
        found = cases.completed(site, wanted)
        if found is not None:
            case = cases._with_jobs(site, found)
            assert not cases.differences(case, simulate(case.workload(), Scheduler(**case.options))), case
            done += 1


@pytest.mark.slow
@pytest.mark.parametrize("parameters", list(cases.VALUES["scheduler_parameters"]))
@pytest.mark.usefixtures("interpreted")
def test_random_cases_have_the_schedule_of_the_slow_simulator(parameters: str):
    rng = random.Random(f"slurm {parameters}")
    done = 0
    while done < 12:
        site = cases.new_site(rng)
        others = [choice for choice in cases.CHOOSABLE if choice[0] not in ("backfill", "scheduler_parameters")]
        wanted = dict(rng.sample(others, rng.randint(0, 2))) | {"backfill": "slurm", "scheduler_parameters": parameters}
        values = cases.completed(site, wanted)
        if values is not None:
            case = cases._with_jobs(site, values)
            assert not cases.differences(case, simulate(case.workload(), Scheduler(**case.options))), case
            done += 1


def _ranked(tree: FairTree) -> int:
    rank_users(tree)
    return 1


def test_the_fair_tree_has_the_factors_that_slurm_computed():
    # Accounts, shares, usage and factors that sshare printed for a run on Slurm 22.05; the first two have no usage.
    accounts: Any = {
        "root": {"users": {"root": 1}}, "physics": {"users": {"root": 1}}, "art": {"share": 2}, "science": {"share": 3},
        "bio": {"parent": "science"}, "chem": {"parent": "science", "share": 3, "users": {"mail": 2}},
    }  # fmt: skip
    used = {("art", "backup"): 72, ("bio", "games"): 1338, ("chem", "mail"): 382, ("chem", "news"): 277}
    tree = new_fair_tree(AccountTree(accounts, list(used), np.arange(4)))
    tree.nodes["usage"][tree.leaf] = list(used.values())
    assert Kernel(_ranked)(Handle([tree]))
    factors = tree.nodes["factor"][tree.leaf]
    assert factors.round(6).tolist() == [0.666667, 0.166667, 0.5, 0.333333]
    absent = (tree.nodes["end"] < 0) & (tree.nodes["row"] < 0)
    assert tree.nodes["factor"][absent].tolist() == [1, 1]


def _spread(tree: FairTree) -> int:
    rank_users(tree)
    spread_usage(tree)
    return 1


def test_effective_usage_is_that_of_the_example_in_the_manual():
    # An account without shares has the usage that is missing in the example.
    accounts: Any = {
        "A": {"share": 40}, "B": {"share": 30, "parent": "A"}, "C": {"share": 10, "parent": "A"},
        "D": {"share": 60}, "E": {"share": 25, "parent": "D"}, "F": {"share": 35, "parent": "D"}, "G": {"share": 0},
    }  # fmt: skip
    used = {("B", "1"): 0.2, ("C", "2"): 0.25, ("C", "3"): 0.0, ("E", "4"): 0.25, ("F", "5"): 0.0, ("G", "6"): 0.3}
    tree = new_fair_tree(AccountTree(accounts, list(used), np.arange(6)))
    tree.nodes["usage"][tree.leaf] = list(used.values())
    assert Kernel(_spread)(Handle([tree]))
    users = tree.nodes[tree.leaf]
    assert users["effective"][:5].round(4).tolist() == [0.3875, 0.275, 0.15, 0.25, 0.1458]
    assert users["entitled"].round(4).tolist() == [0.3, 0.05, 0.05, 0.25, 0.35, 0]
    factors = 2 ** -(users["effective"][:5] / users["entitled"][:5])
    assert factors.round(6).tolist() == [0.408479, 0.022097, 0.125, 0.5, 0.749154]


def test_users_without_shares_or_accounts_have_infinite_usage():
    # Submit time, run time, user, group; the first job occupies the machine. At 5 the users without a share or with an
    # unknown group wait for the others.
    rows = [(0, 5, 1, 1), (1, 5, 2, 1), (2, 5, 1, None), (3, 5, 3, 1), (4, 5, 3, 1)]
    table = pl.DataFrame({
        "job_id": list(range(1, 6)), "submit_time": [float(row[0]) for row in rows],
        "run_time": [float(row[1]) for row in rows], "estimate": [10.0] * 5, "processors": [1] * 5,
        "user_id": [row[2] for row in rows], "group_id": [row[3] for row in rows],
    })  # fmt: skip
    log, accounts = Workload(table, Machine.of(1), "tiny"), {"1": {"users": {"2": 0}}}
    for options in (
        {"order": "association_usage"},
        {"order": "slurm-multifactor", "priority": {"fair_share": 1, "fair_share_of": "association", "dampening": 2}},
    ):
        found = simulate(log, Scheduler(accounts=accounts, **options)).sort("job_id")
        assert found["start_time"].to_list() == [0, 15, 20, 5, 10]


def test_usage_counts_in_whole_periods_until_a_job_ends():
    # Submit time, run time, user. User 1 used the processor from 0 to 9, of which 8 s count with a period of 4 s, and
    # 5 s with a period of 5 s; user 2 from 9 to 16 all 4 or 5 s from 12 or 10 to 16 or 15.
    rows = [(0, 9, 1), (1, 7, 2), (10, 3, 1), (10.5, 3, 2)]
    table = pl.DataFrame({
        "job_id": list(range(1, 5)), "submit_time": [float(row[0]) for row in rows],
        "run_time": [float(row[1]) for row in rows], "estimate": [10.0] * 4, "processors": [1] * 4,
        "user_id": [row[2] for row in rows],
    })  # fmt: skip
    log = Workload(table, Machine.of(1), "tiny")

    def starts_with(**priority: Any) -> list[float]:
        found = simulate(log, Scheduler(order="slurm-multifactor", priority={"fair_share": 1} | priority))
        return found.sort("job_id")["start_time"].to_list()

    assert starts_with(calc_period=4) == [0, 9, 19, 16]
    assert starts_with(calc_period=4, whole_periods=True) == [0, 9, 19, 16]
    assert starts_with(calc_period=5) == [0, 9, 19, 16]
    assert starts_with(calc_period=5, whole_periods=True) == [0, 9, 16, 19]


def test_priorities_are_computed_at_multiples_of_a_period():
    # Submit time, run time, processors, user. At 9, when one of the last two jobs starts, user 1 has used more; at 5
    # both had used the same, and the first of the two jobs came first.
    rows = [(0, 5, 1, 1), (0, 5, 1, 2), (5, 4, 1, 1), (6, 3, 1, 2), (8, 10, 2, 1), (8.5, 10, 2, 2)]
    table = pl.DataFrame({
        "job_id": list(range(1, 7)), "submit_time": [float(row[0]) for row in rows],
        "run_time": [float(row[1]) for row in rows], "estimate": [10.0] * 6,
        "processors": [row[2] for row in rows], "user_id": [row[3] for row in rows], "group_id": [1] * 6,
    })  # fmt: skip
    log = Workload(table, Machine.of(2), "tiny")

    def starts_with(**priority: Any) -> list[float]:
        options = {"priority": {"fair_share": 1, "fair_share_of": "fair-tree"} | priority}
        found = simulate(log, Scheduler(order="slurm-multifactor", **options))
        return found.sort("job_id")["start_time"].to_list()

    assert starts_with() == [0, 0, 5, 6, 19, 9]
    assert starts_with(calc_period=5) == [0, 0, 5, 6, 9, 19]
    assert starts_with(calc_period=8) == [0, 0, 5, 6, 19, 9]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"accounts": {"a": {}}}, "accounts: no group has limits, and no order uses association_usage or fair_tree"),
        ({"limits": {"group": {"jobs": 1}}, "accounts": {"a": {"share": 2}}}, "accounts: no order uses shares in acc"),
        ({"order": "-fair_tree", "accounts": {"a": {"share": -1}}}, "accounts: a: share: -1; expected at least 0"),
        ({"order": "-fair_tree", "accounts": {"a": {"users": {"b": "c"}}}}, "users: b: 'c'; expected a number"),
        ({"order": "-fair_tree", "allocation": "first-fit"}, "order: fair_tree needs allocation count"),
        ({"order": "association_usage", "allocation": "first-fit"}, "order: association_usage needs allocation count"),
        (
            {"order": "slurm-multifactor", "priority": {"fair_share": 1, "whole_periods": True}},
            "priority: whole_periods: calc_period is 0; set it",
        ),
        (
            {"order": "slurm-multifactor", "priority": {"age": 1, "calc_period": 0.5}},
            "priority: calc_period: 0.5; expected 0, or at least 1 second",
        ),
        ({"limits": {"group": {"jobs": 1}}, "accounts": {"a": {"parent": "a"}}}, "accounts: a: it is above itself"),
        ({"limits": {"group": {"jobs": 1}}, "accounts": {"a": {"parents": "b"}}}, "did you mean 'parent'"),
        ({"limits": {"user": {"user_jobs": 1}}}, "limits: user: user_jobs: 1; expected limits such as"),
        ({"preemption": {"partition": {"a": 2}}}, "preemption: only jobs on nodes are preempted; give nodes"),
        (ON_NODES | {"preemption": {}}, "preemption: {}; give either qos or partition"),
        (ON_NODES | {"preemption": BY_TIER | {"qos": {"a": "b"}}}, "give either qos or partition"),
        (ON_NODES | {"preemption": {"qos": {"a": ["b", "c"], "b": "a"}}}, "qos: a preempts b preempts a; correct it"),
        (
            ON_NODES | {"preemption": BY_TIER | {"modes": {"1": "of"}}},
            "modes: 1: unknown value 'of'; did you mean 'off",
        ),
        (ON_NODES | {"preemption": BY_TIER | {"mode": "off"}}, "mode: unknown value 'off'"),
        (ON_NODES | {"preemption": BY_TIER | {"qos_priorities": {"1": 1}}}, "qos_priorities: only preemption by qos"),
        (ON_NODES | {"preemption": {"partition": {"1": 1.5}}}, "partition: 1: 1.5; expected a whole number"),
        (ON_NODES | {"preemption": BY_TIER, "prediction": "system"}, "preemption: jobs that run again are not pred"),
        ({"scheduler_parameters": {"bf_window": 2}}, "scheduler_parameters: only backfill slurm uses them"),
        ({"backfill": "slurm", "allocation": "first-fit"}, "backfill: slurm needs allocation count"),
        ({"backfill": "slurm", "event_order": "per-event"}, "backfill: slurm needs allocation count"),
        ({"backfill": "slurm", "scheduler_parameters": {"bf_interval": -2}}, "bf_interval: -2; expected at least -1"),
        ({"backfill": "slurm", "scheduler_parameters": {"bf_intervals": 5}}, "did you mean 'bf_interval'"),
        ({"backfill": "slurm", "scheduler_parameters": {"bf_window": 1.5}}, "bf_window: 1.5; expected a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict, error: str):
    with pytest.raises(SwflowError, match=error):
        Scheduler(**options)


def test_the_defaults_are_those_of_the_manual():
    assert {name: one.default for name, one in SCHEDULER_PARAMETERS.items()} == Scheduler(backfill="slurm").cycles == {
        "bf_interval": 30, "bf_window": 1440, "bf_resolution": 60, "bf_max_job_test": 500, "bf_max_job_user": 0,
        "bf_max_job_part": 0, "default_queue_depth": 100, "batch_sched_delay": 3, "sched_interval": 60,
        "end_delay": 0.1,
    }  # fmt: skip


def test_users_without_jobs_hold_shares_but_not_all_of_them():
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 0.0, 5.0], "run_time": [10.0] * 3, "estimate": [10.0] * 3,
        "processors": [4, 4, 4], "user_id": [1, 2, 1],
    })  # fmt: skip
    log, order = Workload(jobs, Machine.of(4), "tiny"), "job_id * (user_share - 0.2)"
    # Both users have half of the shares; with a third one without jobs, a tenth.
    assert simulate(log, Scheduler(order=order, user_shares={"1": 1.0}))["start_time"].to_list() == [0, 10, 20]
    shares = {"1": 1.0, "eve": 8.0}
    assert simulate(log, Scheduler(order=order, user_shares=shares))["start_time"].to_list() == [20, 0, 10]
    with pytest.raises(SwflowError, match="tiny has no user 'eva'"):
        simulate(log, Scheduler(order=order, user_shares={"eva": 8.0}))
