"""
Every kernel is compiled once, and gives the result of its interpreted form and of the slow simulator.

Other tests interpret the kernels. With ``SWFLOW_INTERPRET=0`` all of them compile.
"""

import importlib
import pkgutil
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import fuzz
import swflow
from swflow.analysis.job_load import loads_of
from swflow.compiled.kernel import Kernel
from swflow.jobs.busy import use_of
from swflow.jobs.randomness import generator
from swflow.log.swf import parse_swf
from swflow.workload.models.estimates import modal_estimates
from test_fuzz import OFTEN

pytestmark = pytest.mark.compiled


def all_kernels() -> Iterator[tuple[str, Kernel]]:
    """Yield the kernels of the package, each with its place."""
    seen: set[int] = set()
    for found in pkgutil.walk_packages(swflow.__path__, "swflow."):
        if found.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            of_name = value.values() if isinstance(value, dict) else [value]
            for number, kernel in enumerate(one for one in of_name if isinstance(one, Kernel)):
                if id(kernel) not in seen:
                    seen.add(id(kernel))
                    yield f"{name}[{number}]" if isinstance(value, dict) else name, kernel


KERNELS = dict(all_kernels())
SWF = b"; MaxProcs: 8\n1 0 5 10 4 -1 -1 4 20 -1 1 7 1 1 1 1 -1 -1\n2 1 -1 10 8 -1 -1 8 20 -1 1 7 1 1 1 1 -1 -1\n"


def _estimates() -> list[float]:
    return modal_estimates(np.linspace(1, 7200, 50), generator(1, "x"), maximum=18 * 3600).tolist()


def _loads() -> list[float]:
    times = {"submit_time": [0.0, 0.0, 4.0], "start_time": [0.0, 10.0, 8.0], "end_time": [10.0, 20.0, 9.0]}
    return loads_of(pl.DataFrame(times | {"processors": [4, 2, 1]}), 8).load.tolist()


def _case(group: str, number: int) -> Callable[[], Any]:
    wanted, names = GROUPS[group]
    return lambda: fuzz.ordinary(random.Random(f"{group} {number}"), names, wanted)


#: Options of random cases that use each event loop.
GROUPS = OFTEN | {
    "plain": ({"order": "fcfs"}, ("backfill",)),
    "released shadows": ({"penalty": "forgets-shadows", "column cancelled_after": "some"}, ("backfill",)),
    "table with cancellations": ({"backfill": "reservation-table", "column cancelled_after": "some"}, ("order",)),
}

#: Calls that use kernels: what uses one alone, and random cases of schedulers.
CALLS: dict[str, Callable[[], Any]] = {
    "parse": lambda: parse_swf(SWF, "a log").fields.rows(),
    "estimates": _estimates,
    "use": lambda: use_of(np.array([1.0, 5.0]), np.array([11.0, 10.0]), np.array([3, 2]), 4),
    "loads": _loads,
    **{f"{group} {number}": _case(group, number) for number in range(20) for group in reversed(GROUPS)},
}
ALONE = {"parse", "estimates", "use", "loads"}


@pytest.fixture(scope="module")
def users() -> dict[str, str]:
    """Return, for each kernel, the first call that uses it, found in interpreted mode."""
    found: dict[str, str] = {}
    names = {id(kernel): name for name, kernel in KERNELS.items()}
    called = Kernel.__call__
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SWFLOW_INTERPRET", "1")
        now = ""

        def noted(kernel: Kernel, *arguments: Any) -> int:
            if id(kernel) in names:
                found.setdefault(names[id(kernel)], now)
            return called(kernel, *arguments)

        patch.setattr(Kernel, "__call__", noted)
        for now, call in CALLS.items():  # noqa: B007  the function reads it
            call()
            if len(found) == len(KERNELS):
                break
    return found


@pytest.mark.parametrize("name", KERNELS)
def test_the_compiled_kernel_gives_the_same_result(name: str, users: dict[str, str], monkeypatch) -> None:
    call = CALLS[users[name]]
    monkeypatch.setenv("SWFLOW_INTERPRET", "0")
    compiled = call()
    assert KERNELS[name].ready
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    assert compiled == call()
    assert users[name] in ALONE or compiled[0] == fuzz.EQUAL
