"""
swflow: evaluate parallel job schedulers on logs in the Standard Workload Format.

Examples
--------
>>> import swflow
>>> swflow.Scheduler(order="sjf", backfill="easy").backfill
'easy'
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from swflow.scheduling.scheduler import Scheduler
    from swflow.scheduling.simulate import simulate
    from swflow.swf import read_swf
    from swflow.workloads.clean import open_workload

__version__ = "0.1.0"
__all__ = ["Scheduler", "open_workload", "read_swf", "simulate"]

#: Where the names are that this package offers; they are imported when they are asked for, as that takes time.
_HOMES = {
    "Scheduler": "swflow.scheduling.scheduler",
    "simulate": "swflow.scheduling.simulate",
    "open_workload": "swflow.workloads.clean",
    "read_swf": "swflow.swf",
}


def __getattr__(name: str) -> Any:
    """Import a name of the package."""
    if name not in _HOMES:
        raise AttributeError(f"module 'swflow' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
