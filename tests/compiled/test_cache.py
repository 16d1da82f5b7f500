"""Tests of the cache of compiled kernels: an object is reused only if all its dependencies are unchanged."""

import shutil

import pytest

from swflow.compiled import cache
from swflow.compiled.cache import object_key
from swflow.compiled.kernel import Kernel
from swflow.files import fingerprint
from swflow.files.fingerprint import PACKAGE, Package
from swflow.scheduling.engine.loop import run_events
from swflow.scheduling.machine.counted import COUNTED

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize(
    "ingredient", ["python", "numba", "llvmlite", "numpy", "cpu", "instructions", "setting", "variant"]
)
def test_an_object_depends_on_the_compiler_and_the_processor(monkeypatch, ingredient):
    versions, cpu = cache.compiler_versions(), cache.processor()
    before = object_key([run_events], "ints")
    place = {"python": 0, "numba": 1, "llvmlite": 2, "numpy": 3}.get(ingredient)
    if place is not None:
        other = (*versions[:place], "0.0.1", *versions[place + 1 :])
        monkeypatch.setattr(cache, "compiler_versions", lambda: other)
    elif ingredient in ("cpu", "instructions"):
        other = (cpu[0], "+none") if ingredient == "instructions" else ("other", cpu[1])
        monkeypatch.setattr(cache, "processor", lambda: other)
    elif ingredient == "setting":
        monkeypatch.setenv("NUMBA_BOUNDSCHECK", "2")
    assert object_key([run_events], "floats" if ingredient == "variant" else "ints") != before
    monkeypatch.undo()
    assert object_key([run_events], "ints") == before


def test_the_versions_are_those_of_the_installed_compiler():
    import llvmlite
    import numba
    import numpy

    assert cache.compiler_versions()[1:] == (numba.__version__, llvmlite.__version__, numpy.__version__)


@pytest.mark.parametrize(
    ("file", "old", "new", "is_other"),
    [
        ("scheduling/state/operations.py", "def ", "SEEN = 1\n\n\ndef ", True),  # uses neither numba nor a decorator
        ("scheduling/engine/passes.py", "def ", "SEEN = 1\n\n\ndef ", True),
        ("compiled/numba_internals.py", '"_nrt": False', '"_nrt": True', True),
        ("scheduling/engine/passes.py", '"""', '"""Other words. ', False),
        ("scheduling/options.py", "def ", "SEEN = 1\n\n\ndef ", False),  # tables and options are above the engine
        ("jobs/table.py", "def ", "SEEN = 1\n\n\ndef ", False),
        ("report/pages.py", "def ", "SEEN = 1\n\n\ndef ", False),
    ],
)
def test_an_object_depends_on_the_import_closure_of_its_kernel(tmp_path, monkeypatch, file, old, new, is_other):
    copy = tmp_path / "swflow"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    compilers = [copy / "compiled" / path.name for path in cache._COMPILER]
    monkeypatch.setattr(cache, "_COMPILER", compilers)

    def key() -> str:
        monkeypatch.setattr(fingerprint, "installed", lambda: Package(copy))
        functions = [run_events, *(function for pair in COUNTED.items() for function in pair)]
        moved = []
        for function in functions:
            code = function.__code__
            inside = code.co_filename.replace(str(PACKAGE), str(copy))
            moved.append(type(function)(code.replace(co_filename=inside), {}))
        return object_key(moved, "ints")

    before = key()
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new, 1))
    assert (key() != before) == is_other


def _one(number):
    return number + 1


def test_an_object_of_another_numba_is_not_loaded(monkeypatch, tmp_path):
    """An object compiled by numba 0.68.1 was loaded under 0.68.0."""
    monkeypatch.setenv("SWFLOW_CACHE", str(tmp_path))
    assert Kernel(_one)(1) == 2
    versions = cache.compiler_versions()
    (compiled,) = tmp_path.glob("*/*.o")
    assert Kernel(_one)(2) == 3
    assert list(tmp_path.glob("*/*.o")) == [compiled]
    monkeypatch.setattr(cache, "compiler_versions", lambda: (versions[0], "0.68.0.1", *versions[2:]))
    assert Kernel(_one)(3) == 4
    assert len(list(tmp_path.glob("*/*.o"))) == 2
