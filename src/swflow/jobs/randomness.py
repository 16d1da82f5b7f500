"""Random generators: one per stage, derived from the seed and from names, independent of the order of execution."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from swflow.values import whole_number


def generator(seed: int, *names: str) -> np.random.Generator:
    """
    Return the random generator of one stage, from the project's seed and names of its purpose.

    The same arguments give the same stream on every machine and in any order of the stages.

    Examples
    --------
    >>> int(generator(1, "KTH-SP2", "memory-high").integers(1000))
    533
    >>> int(generator(1, "KTH-SP2", "memory-low").integers(1000))
    87
    """
    return np.random.default_rng(_seed_sequence(seed, names))


def _seed_sequence(seed: int, names: Sequence[str]) -> np.random.SeedSequence:
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.SeedSequence([whole_number(seed, "seed", most=2**128), *words])


def uniform_per_job(seed: int, names: Sequence[str], ids: np.ndarray) -> np.ndarray:
    """
    Draw one uniform number per job, which depends on the job's id and not on other jobs.

    A job keeps its number when other jobs are removed, added or reordered; equal ids give equal numbers. They are
    multiples of 2**-53 in [0, 1). ``names`` state the purpose, such as the log's name and the step's name.

    References
    ----------
    G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014. The id counts
    the steps of two generators (SplitMix64). The names seed the first; its output seeds the second.

    Examples
    --------
    >>> uniform_per_job(1, ["KTH-SP2", "memory-high"], np.array([7, 8])).round(3).tolist()
    [0.906, 0.487]
    """
    keys = _seed_sequence(seed, names).generate_state(2, np.uint64)
    bits = np.asarray(ids, dtype=np.int64).astype(np.uint64)
    for key in keys:
        bits = bits * _GOLDEN + key  # intended overflow modulo 2**64
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits = bits ^ (bits >> np.uint64(31))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


#: Increment of SplitMix64: 2**64 over the golden ratio, rounded to an odd number.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def step_generator(seed: int, workload: str, output: str | os.PathLike[str], kind: str) -> np.random.Generator:
    """
    Return the random generator of a step: a different one for every seed, workload, step and replicate.

    The text after the last ``+`` of the output's name is the step's name, with the number of the replicate, as in
    ``KTH-SP2+scaled-1024@3.parquet``. Without a ``+``, ``kind`` replaces it.

    Examples
    --------
    >>> int(step_generator(1, "KTH-SP2", "KTH-SP2+memory-high.parquet", "memory").integers(1000))
    533
    """
    return generator(seed, workload, step_name(output, kind))


def step_name(output: str | os.PathLike[str], kind: str) -> str:
    """Return the name of the step that writes a file, with its replicate; its kind if the file's name has no ``+``."""
    stem = Path(output).name
    for ending in (".gz", ".swf", ".parquet"):
        stem = stem.removesuffix(ending)
    return stem.rpartition("+")[2] if "+" in stem else kind
