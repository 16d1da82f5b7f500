"""A scheduler: the validated options of a policy."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from typing import Any

from swflow.errors import SwflowError, UnsupportedError, require_known
from swflow.scheduling.option_checks import checked
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.options import CHOICES, OPTIONS
from swflow.scheduling.orders.formula import check_penalty
from swflow.scheduling.orders.vocabulary import LOG
from swflow.scheduling.plugins.source import is_own, own_digest
from swflow.scheduling.refusals import refusals, unsupported_columns
from swflow.scheduling.settings import Settings

__all__ = ["CHOICES", "LOG", "Scheduler"]

#: The key, among the options as plain data, of the hashes of plugins.
OWN_CODE = "own_code"


@dataclass(frozen=True)
class Scheduler(Settings):
    """
    The policy of a machine, or of several clusters.

    Its options are the fields of `swflow.scheduling.options.Options`, which states their meaning and values.

    A Python function as ``order`` or ``backfill_order`` is compiled; see `swflow.scheduling.orders.keys.key_function`.
    The outcome of ``shapes`` is defined at `swflow.scheduling.solve.solve`, that of ``feedback`` at
    `swflow.jobs.eligibility.dependencies_of`, and a ``policy`` at `swflow.scheduling.plugins.protocol.Policy`.

    Raises
    ------
    SwflowError
        If an option has an unknown value.

    Examples
    --------
    >>> Scheduler(order="sjf", backfill="easy").prediction
    'user'
    """

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            object.__setattr__(self, name, checked(option, getattr(self, name), name))
        check_penalty(self.penalty)
        for refusal in refusals(self):
            raise UnsupportedError(refusal.error)

    @classmethod
    def of(cls, name: str, options: Unchecked) -> "Scheduler":
        """Return the scheduler of a config's entry; errors name it."""
        if not isinstance(options, Mapping):
            raise SwflowError(f"schedulers: {name}: {options!r}; expected options with their values")
        options = {option: value for option, value in options.items() if option != OWN_CODE}
        require_known(options, OPTIONS, f"schedulers: {name}")
        values = {option: _plain(value) for option, value in options.items() if value is not None}
        try:
            return cls(**values)
        except SwflowError as error:
            raise type(error)(f"schedulers: {name}: {error}") from None

    @cached_property
    def unsupported(self) -> dict[str, str]:
        """Why the scheduler does not support columns of jobs, or counted resources ("resources"), by column."""
        errors: dict[str, str] = {}
        for column, refusal in unsupported_columns(self):
            errors.setdefault(column, refusal.error)
        return errors

    def to_dict(self) -> dict[str, object]:
        """
        Return every option, defaults included, as plain data; a function is given by its module and name.

        ``resources``, ``nodes`` and ``preemption`` are left out unless they are given, so that runs without them keep
        their keys.

        A plugin comes with a hash of its source, so that an edit makes another run.
        """
        options: dict[str, Any] = json.loads(json.dumps(asdict(self), default=_name_of))
        for name in ("resources", "nodes", "preemption"):
            if not options[name]:
                del options[name]
        named = [options["policy"], options["order"], options["backfill_order"], *self.orders]
        own = sorted({text for text in named if is_own(text)})
        return options | ({OWN_CODE: {text: own_digest(text) for text in own}} if own else {})


def _plain(value: Any) -> Any:
    """Return a value of the config with days as text, so that it can be compared and stored."""
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, date) else value


def _name_of(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
