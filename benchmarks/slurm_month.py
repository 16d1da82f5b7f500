"""
Measure Slurm's two schedulers on a month of 100,000 jobs on 1,000 nodes of 32 CPUs; the goal is 60 s on one core.

    python benchmarks/slurm_month.py [--load 0.95] [--jobs 100000] [--nodes 1000] [--only NAME ...]

The jobs are drawn: log-normal run times, estimates that are rounded up and mostly too long, submissions by day and in
bursts of a user, and 300 users in 30 accounts, of which every tenth has a QOS whose jobs can be preempted; they need
1.85 GB of memory for a processor in the mean, of 4 GB. The load is offered work over capacity; at 0.95 thousands of
jobs wait.
"""

import argparse
import resource
import time
from typing import Any

import numpy as np
import polars as pl

from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate

CPUS, MONTH = 32, 30 * 86_400

MULTIFACTOR = {
    "order": "slurm-multifactor",
    "priority": {"age": 1000, "max_age": 604_800, "fair_share": 10_000, "size": 1000, "calc_period": 300},
    "half_life": 604_800,
}


def schedulers(nodes: int) -> dict[str, dict[str, Any]]:
    """Return the measured schedulers on some nodes."""
    return {
        "first come": {},
        "multifactor": MULTIFACTOR,
        "multifactor, limits": MULTIFACTOR | {"limits": {"user": {"jobs": 1000, "processors": 16_384}}},
        "fair tree": MULTIFACTOR | {"priority": MULTIFACTOR["priority"] | {"fair_share_of": "fair-tree"}},
        "multifactor, 20 jobs of a user": MULTIFACTOR | {"scheduler_parameters": {"bf_max_job_user": 20}},
        "multifactor, limit of 100 jobs": MULTIFACTOR | {"limits": {"user": {"jobs": 100}}},
        "first come, nodes": {"nodes": [{"count": nodes, "processors": CPUS}]},
        "multifactor, nodes": MULTIFACTOR | {"nodes": [{"count": nodes, "processors": CPUS}]},
        "multifactor, nodes, partitions": MULTIFACTOR | {
            "nodes": [
                {"count": nodes * 6 // 10, "processors": CPUS, "partition": [0, 1]},
                {"count": nodes * 3 // 10, "processors": CPUS},
                {"count": nodes // 10, "processors": CPUS, "partition": 2},
            ],
        },
        "multifactor, nodes, memory": MULTIFACTOR | {
            "nodes": [{"count": nodes, "processors": CPUS, "resources": {"memory": 4000 * CPUS}}],
        },
        "multifactor, nodes, limits": MULTIFACTOR | {
            "nodes": [{"count": nodes, "processors": CPUS}], "limits": {"user": {"jobs": 100}}
        },
        "multifactor, nodes, preemption": MULTIFACTOR | {
            "nodes": [{"count": nodes, "processors": CPUS}], "preemption": {"qos": {0: [1]}}
        },
    }  # fmt: skip


def month(jobs: int, load: float, nodes: int) -> Workload:
    """Draw the month."""
    rng = np.random.default_rng(1)
    bursts = rng.geometric(0.2, jobs // 2)  # with about 5 jobs each
    burst = rng.permutation(np.repeat(np.arange(bursts.size), bursts))[:jobs]
    times = 86_400 * (rng.integers(0, MONTH // 86_400, bursts.size) + rng.beta(3, 3, bursts.size))
    burst = burst[np.argsort(times[burst])]
    submit = np.round(times[burst])
    users = (rng.zipf(1.6, bursts.size) % 300)[burst]
    processors = rng.choice([1, 4, 16, 32, 64, 128, 256, 1024], jobs, p=[0.3, 0.15, 0.15, 0.2, 0.1, 0.06, 0.03, 0.01])
    run = rng.lognormal(7.0, 1.8, jobs).clip(5, 172_800)
    for _ in range(20):  # the longest run times are cut off
        run = (run * load * nodes * CPUS * MONTH / (run * processors).sum()).clip(1, 172_800)
    run = np.round(run)
    estimate = np.minimum(np.ceil(run * rng.uniform(1, 8, jobs) / 1800) * 1800, 2 * 172_800)
    table = pl.DataFrame({
        "job_id": np.arange(1, jobs + 1), "submit_time": submit, "run_time": run, "estimate": estimate,
        "processors": processors, "user_id": users, "group_id": users % 30,
        "queue_id": np.int64(users % 10 == 3),
        "partition_id": np.where(processors > 256, 0, 1 + (users % 5 == 0)),
        "memory": processors * rng.choice([500, 1000, 2000, 4000, 8000], jobs, p=[0.3, 0.3, 0.2, 0.15, 0.05]),
    })  # fmt: skip
    return Workload(table, Machine.of(nodes * CPUS), "month")


def main() -> None:
    """Print each scheduler's CPU time, without its compilation, and mean wait."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=0.95)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=1000, help="Nodes, a multiple of 10 from 40 on (default: 1,000).")
    parser.add_argument("--only", nargs="*", help="Names of the schedulers (default: all).")
    options = parser.parse_args()
    workload, warm = (month(jobs, options.load, options.nodes) for jobs in (options.jobs, 100))
    for name, values in schedulers(options.nodes).items():
        if options.only and name not in options.only:
            continue
        scheduler = Scheduler(backfill="slurm", **values)
        simulate(warm, scheduler)
        began = time.process_time()
        waits = simulate(workload, scheduler)["wait_time"]
        spent = time.process_time() - began
        print(f"{name:32} {spent:7.1f} s CPU, mean wait {waits.mean() / 3600:6.2f} h", flush=True)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
