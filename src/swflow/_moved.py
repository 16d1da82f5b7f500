"""Old import paths: modules that the documentation of earlier versions named still import, with a warning."""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old and new names of modules.
MOVED = {
    "swflow.env": "swflow.scheduling.gym_env",
    "swflow.fingerprint": "swflow.files.fingerprint",
    "swflow.logs": "swflow.log.catalogue",
    "swflow.machine": "swflow.jobs.machine",
    "swflow.project": "swflow.studies.project",
    "swflow.runs": "swflow.studies.runs",
    "swflow.scheduling.feedback": "swflow.scheduling.eligibility",
    "swflow.swf": "swflow.log.swf",
    "swflow.workloads": "swflow.workload",
    "swflow.workloads.clean": "swflow.workload.clean",
}


class MovedModules(MetaPathFinder, Loader):
    """Import a module under its old name."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return a specification for an old name, None for any other."""
        return ModuleSpec(fullname, self, is_package=True) if fullname in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module under its new name and warn."""
        new = MOVED[spec.name]
        warnings.warn(f"{spec.name} is now {new}; import it from there", DeprecationWarning, stacklevel=2)
        return importlib.import_module(new)

    def exec_module(self, module: ModuleType) -> None:
        """Keep the new name of the module; it is executed already."""


def install() -> None:
    """Add the finder of old names in front: a package that moved would find its old submodules itself, twice."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())
