"""Synthetic workloads by a published model, without a log to fit to."""

from typing import Any

from swflow.errors import SwflowError
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Workload
from swflow.workload.clean import clean
from swflow.workload.models.lublin import generate_lublin, lublin_header


def generate(
    model: str = "lublin",
    *,
    jobs: int = 5000,
    processors: int = 128,
    name: str = "synthetic",
    seed: int = 1,
    load: float | None = None,
    classes: str = "batch-and-interactive",
    estimates: str = "tsafrir",
    users: bool = False,
) -> Workload:
    """
    Generate a synthetic workload.

    Parameters
    ----------
    model : {'lublin'}
        The model of Lublin and Feitelson (2003).
    jobs : int
        The number of jobs.
    processors : int
        Processors of the machine.
    name : str
        The name of the log. The same name, seed and options give the same jobs.
    seed : int
        The seed of all random draws.
    load : float, optional
        The offered load, above 0 and at most 1; by default that of the model.
    classes : {'batch-and-interactive', 'combined'}
        Two classes of jobs, or one.
    estimates : {'tsafrir', 'exact'}
        The requested time: drawn by the modal model of Tsafrir, Etsion and Feitelson (2005), or the run time.
    users : bool
        Whether jobs have users.

    Returns
    -------
    Workload

    Raises
    ------
    SwflowError
        If a number is out of range, or a choice unknown.

    Examples
    --------
    >>> import swflow
    >>> workload = swflow.generate("lublin", jobs=500, processors=64, name="demo")
    >>> workload.name, workload.jobs.height, workload.machine.processors
    ('demo', 500, 64)
    """
    if model != "lublin":
        raise SwflowError(f"generate: unknown model {model!r}; expected lublin")
    machine = Machine.of(processors)
    options: Any = {"classes": classes, "load": load, "estimates": estimates, "users": users}
    fields = generate_lublin(jobs, processors, generator(seed, name, model), **options)
    return clean(fields, machine, name=name, header=lublin_header(jobs, processors, seed=seed, **options))
