"""
swflow: evaluate parallel job schedulers on logs in the Standard Workload Format.

The names of this module are the public interface. They are imported on first use, so that ``import swflow`` is fast.

Examples
--------
>>> import swflow
>>> workload = swflow.generate("lublin", jobs=500, processors=64, load=0.7, seed=1)
>>> easy = swflow.simulate(workload, swflow.Scheduler(order="fcfs", backfill="easy"))
>>> swflow.metrics(easy, workload.machine)["jobs"]
500
"""

from typing import TYPE_CHECKING, Any

from swflow.version import __version__ as __version__

if TYPE_CHECKING:
    from swflow.api import draw, metrics, query, read_log, whatif, why
    from swflow.database.load import load
    from swflow.jobs.machine import Machine
    from swflow.jobs.table import Workload
    from swflow.log.importers.records import Site
    from swflow.log.importers.sacct import import_sacct
    from swflow.log.swf import read_swf
    from swflow.scheduling.scheduler import Scheduler
    from swflow.scheduling.simulate import simulate
    from swflow.workload.clean import clean_log as clean
    from swflow.workload.clean import open_workload
    from swflow.workload.generate import generate

__all__ = [
    "Machine", "Scheduler", "Site", "Workload", "clean", "draw", "generate", "import_sacct", "load", "metrics",
    "open_workload", "query", "read_log", "read_swf", "simulate", "whatif", "why",
]  # fmt: skip

#: Modules of the names that are imported on first use, each with the name that it has there.
HOMES = {
    "Machine": "swflow.jobs.machine:Machine",
    "Scheduler": "swflow.scheduling.scheduler:Scheduler",
    "Site": "swflow.log.importers.records:Site",
    "Workload": "swflow.jobs.table:Workload",
    "clean": "swflow.workload.clean:clean_log",
    "draw": "swflow.api:draw",
    "generate": "swflow.workload.generate:generate",
    "import_sacct": "swflow.log.importers.sacct:import_sacct",
    "load": "swflow.database.load:load",
    "metrics": "swflow.api:metrics",
    "open_workload": "swflow.workload.clean:open_workload",
    "query": "swflow.api:query",
    "read_log": "swflow.api:read_log",
    "read_swf": "swflow.log.swf:read_swf",
    "simulate": "swflow.scheduling.simulate:simulate",
    "whatif": "swflow.api:whatif",
    "why": "swflow.api:why",
}


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        """Import a name of the public interface."""
        if name not in HOMES:
            raise AttributeError(f"module 'swflow' has no attribute {name!r}")
        from importlib import import_module

        module, _, attribute = HOMES[name].partition(":")
        return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
