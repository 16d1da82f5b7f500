"""Random generators: one per stage, derived from the seed and from names, never from the order of execution."""

import hashlib

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
