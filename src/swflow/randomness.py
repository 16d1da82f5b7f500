"""Random generators: one per stage, derived from the seed and from names, never from the order of execution."""

import hashlib
import os
from pathlib import Path

import numpy as np


def generator(seed: int, *names: str) -> np.random.Generator:
    """
    Return the random generator of one stage.

    Parameters
    ----------
    seed : int
        The project's seed (``seed`` in the config).
    *names : str
        What the generator is for, such as the workload's name and the step's name.

    Returns
    -------
    numpy.random.Generator
        Depends on the seed and the names only: the same arguments give the same stream on every machine
        and in whatever order stages run.

    Examples
    --------
    >>> int(generator(1, "KTH-SP2", "memory-high").integers(1000))
    533
    >>> int(generator(1, "KTH-SP2", "memory-low").integers(1000))
    87
    """
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def step_generator(seed: int, workload: str, output: str | os.PathLike[str], kind: str) -> np.random.Generator:
    """
    Return the random generator of a step that is applied to a workload.

    Parameters
    ----------
    seed : int
        The project's seed.
    workload : str
        The name of the workload that the step is applied to.
    output : path-like
        The file that the step makes: what follows the last ``+`` of its name is the step's name, with the number
        of the replicate, as in ``KTH-SP2+scaled-1024@3.parquet``.
    kind : str
        The kind of step, which stands in for its name if the file's name has no ``+``.

    Returns
    -------
    numpy.random.Generator
        Of its own for every seed, workload, step and replicate.

    Examples
    --------
    >>> int(step_generator(1, "KTH-SP2", "KTH-SP2+memory-high.parquet", "memory").integers(1000))
    533
    """
    return generator(seed, workload, step_name(output, kind))


def step_name(output: str | os.PathLike[str], kind: str) -> str:
    """Return the name of the step that makes a file, replicate included; its kind if the name has no ``+``."""
    stem = Path(output).name
    for ending in (".gz", ".swf", ".parquet"):
        stem = stem.removesuffix(ending)
    return stem.rpartition("+")[2] if "+" in stem else kind
