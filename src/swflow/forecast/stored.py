"""A forecaster as bytes: JSON, plain arrays and LightGBM's text of its models. Reading them runs no code."""

import dataclasses
import hashlib
import io
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from swflow.files.cache import read_cached, trim, write_cached
from swflow.files.fingerprint import fingerprint
from swflow.files.reading import file_digest
from swflow.forecast.cases import Cases, Recent
from swflow.forecast.chances import Chances
from swflow.forecast.forecaster import Forecaster
from swflow.forecast.model import Quantiles
from swflow.forecast.record import Request
from swflow.forecast.sweep import Sweep

#: The classes whose attributes are stored, by name; `_class_of` knows one more.
_CLASSES: dict[str, type] = {one.__name__: one for one in (Cases, Chances, Forecaster, Recent, Request, Sweep)}

#: The folder of the cache that keeps forecasters, and how many it keeps.
_FOLDER, _KEPT = "forecasts", 20

#: The name of the array that has the JSON text.
_TEXT = "text"

#: The types that JSON has as they are.
_SCALARS = frozenset((type(None), bool, int, float, str))


def cached(path: Path, make: Callable[[], Forecaster], *key: Any) -> Forecaster:
    """
    Return the forecaster of a file, from the cache if it was fitted to the same content with the same code.

    The cache is the folder ``forecasts`` of swflow's cache, with the last 20 forecasters. It contains names of users,
    so that only the user can read it. If it cannot be used, the forecaster is fitted at each call.
    """
    versions = [sys.version, *map(version, ("lightgbm", "numpy"))]
    parts = [file_digest(path), fingerprint("forecast"), *versions, *map(str, key)]
    name = f"{hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()}.npz"
    stored = read_cached(_FOLDER, name)
    if stored is not None:
        with suppress(Exception):  # what cannot be restored is fitted again
            return dataclasses.replace(from_bytes(stored[1]), name=str(path))
    found = make()
    with suppress(TypeError, ValueError, MemoryError):  # a part without a plain form
        write_cached(_FOLDER, name, "forecaster", to_bytes(found))
    trim(_FOLDER, most=_KEPT)
    return found


def to_bytes(forecaster: Forecaster) -> bytes:
    """Return a forecaster as bytes; raise `TypeError` if a part of it has no plain form."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_plain(forecaster, arrays)).encode()
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **{_TEXT: np.frombuffer(text, np.uint8)}, **arrays)
    return content.getvalue()


def from_bytes(content: bytes) -> Forecaster:
    """Return the forecaster of `to_bytes`; raise `ValueError` if a scheduler in Python was edited since."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        found = _restored(json.loads(arrays[_TEXT].tobytes()), arrays)
    if not isinstance(found, Forecaster):
        raise ValueError("not a forecaster")
    return found


def _plain(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value in the form of JSON: numbers and texts as they are, others as a kind with their content."""
    if value is None or isinstance(value, bool | int | float | str):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return ["objects", [_plain(one, arrays) for one in value.tolist()]]
        name = f"array{len(arrays)}"
        arrays[name] = value
        return ["array", name]
    if isinstance(value, Quantiles):
        return ["models", [model.model_to_string() for model in value.models]]
    if type(value).__name__ == "Scheduler":
        return ["scheduler", value.to_dict()]
    if type(value) is _class_of(type(value).__name__):
        parts = value._asdict() if isinstance(value, Request) else _attributes(value)
        return [type(value).__name__, [_plain(part, arrays) for part in parts.values()]]
    if type(value) in (tuple, list):
        kind = type(value).__name__
        if kind == "list" and (flat := _flat(value)):
            return [flat, value]
        return [kind, [_plain(one, arrays) for one in value]]
    if type(value) in (dict, Counter, defaultdict):
        columns = [_plain(list(part), arrays) for part in (value, value.values())]
        return ["Counter" if isinstance(value, Counter) else "dict", columns]
    raise TypeError(f"{type(value).__name__} has no plain form")


def _flat(values: list[Any]) -> str | None:
    """
    Return ``lists`` or ``tuples`` if a list has only scalars and lists, or tuples, of scalars, otherwise None.

    Such a list is stored as it is: thousands of small forms, each with its kind, would be most of the time of a read.
    """
    kinds = {type(one) for one in values} - _SCALARS
    if len(kinds) > 1 or not kinds <= {list, tuple}:
        return None
    if any(type(part) not in _SCALARS for one in values if type(one) in kinds for part in one):
        return None
    return "tuples" if tuple in kinds else "lists"


def _class_of(name: str) -> type | None:
    """Return a class whose attributes are stored; only simulated futures import the code of simulations."""
    if name == "Simulator":
        from swflow.forecast.simulation import Simulator

        return Simulator
    return _CLASSES.get(name)


def _attributes(value: Any) -> dict[str, Any]:
    """Return what makes up an object: the fields of a data class, otherwise all attributes in their order."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return vars(value)


def _restored(stored: Any, arrays: Any) -> Any:
    """Return the value of `_plain`."""
    if not isinstance(stored, list):
        return stored
    kind, content = stored
    if kind == "array":
        return arrays[content]
    if kind == "models":
        return Quantiles.of_texts(content)
    if kind == "scheduler":
        from swflow.scheduling.scheduler import Scheduler

        scheduler = Scheduler.of("the forecast's", content)
        if scheduler.to_dict() != content:
            raise ValueError("the code of the scheduler was edited")
        return scheduler
    if kind == "lists":
        return content
    if kind == "tuples":
        return [tuple(one) if type(one) is list else one for one in content]
    if kind in ("dict", "Counter"):
        pairs = dict(zip(*(_restored(column, arrays) for column in content), strict=True))
        return Counter(pairs) if kind == "Counter" else pairs
    parts = [_restored(one, arrays) if isinstance(one, list) else one for one in content]
    if kind == "list":
        return parts
    if kind == "tuple":
        return tuple(parts)
    if kind == "objects":
        found = np.empty(len(parts), object)
        found[:] = parts
        return found
    if kind == "Recent":
        recent = Recent(parts[0])
        recent.known = parts[1]
        return recent
    if kind == "Sweep":
        return Sweep.of_attributes(parts)
    found_class = _class_of(kind)
    if found_class is None:
        raise ValueError(f"{kind}: no class of a forecaster")
    return found_class(*parts)
