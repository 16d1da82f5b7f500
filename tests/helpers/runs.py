"""Small synthetic workloads, and the schedulers that run them."""

from swflow.files.tables import write_workload
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin

SCHEDULERS = {"fcfs": {"backfill": "none"}, "easy": {"backfill": "easy"}}


def write_workloads(folder, count=1, jobs=300):
    """Write synthetic workloads named A, B, C, … and return their paths."""
    paths = []
    for name in "ABCDEFGH"[:count]:
        fields = generate_lublin(jobs, 32, generator(1, name))
        write_workload(clean(fields, Machine.of(32), name=name), folder / "workloads" / f"{name}.parquet")
        paths.append(folder / "workloads" / f"{name}.parquet")
    return paths
