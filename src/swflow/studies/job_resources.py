"""Memory and run time of the workflow's jobs, by the size of their input."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from swflow.log.catalogue import Log, source_of
from swflow.names import log_of

#: Memory (MB) of the Snakemake processes that start a batch job, and that start a job of a group within it.
SNAKEMAKE = 500

#: Memory (MB) for compiling kernels on a node without cached kernels.
COMPILING = 600

#: Size (MB) per job of a file derived from a log: at most 50 bytes in workloads of the archive.
MB_PER_JOB = 6e-5

#: Assumed number of jobs of a log whose catalogue entry does not state it.
MANY_JOBS = 250_000


def size_mb(catalogue: Mapping[str, Log], wildcards: Any, input: Iterable[str]) -> float:
    """
    Return the size (MB) of a job's input, estimated by the jobs of the log for files that do not exist yet.

    A group of jobs is submitted before most of its files exist, and Snakemake omits resources that it cannot
    evaluate from the memory and the time of the group.
    """
    name = getattr(wildcards, "workload", None) or getattr(wildcards, "log", None)
    log = catalogue.get(log_of(name)) if name else None
    jobs = (log and (log.jobs or source_of(log, catalogue).jobs)) or MANY_JOBS
    size = 0.0
    for path in map(Path, input):
        files = [*path.iterdir()] if path.is_dir() else [path]
        size += sum(file.stat().st_size / 1e6 if file.is_file() else jobs * MB_PER_JOB for file in files)
    return size


def memory(catalogue: Mapping[str, Log], base: float, per_mb: float) -> Callable[[Any, Any, int], int]:
    """Return the memory (MB) of a job as a function: base plus a part per MB of input, times 1.5 per retry."""
    own = SNAKEMAKE + base
    return lambda wildcards, input, attempt: int(
        (own + per_mb * size_mb(catalogue, wildcards, input)) * 1.5 ** (attempt - 1)
    )


def minutes(catalogue: Mapping[str, Log], base: float, per_mb: float) -> Callable[[Any, Any, int], int]:
    """Return the run time (minutes) of a job as a function: base plus a part per MB of input, doubled per retry."""
    return lambda wildcards, input, attempt: int(
        (base + per_mb * size_mb(catalogue, wildcards, input)) * 2 ** (attempt - 1) + 1
    )
