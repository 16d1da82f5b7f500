"""Parse values of options on the command line: numbers, names with values, and schedulers."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swflow.errors import SwflowError, shown
from swflow.values import number as number_of
from swflow.values import whole_number

if TYPE_CHECKING:
    from swflow.scheduling.option_kinds import Unchecked
    from swflow.scheduling.scheduler import Scheduler


def read_pairs(texts: Iterable[str] | None, option: str, example: str) -> dict[str, float]:
    """Parse NAME=NUMBER texts into a mapping; each name may occur once."""
    pairs: dict[str, float] = {}
    for text in texts or ():
        name, equals, number = text.partition("=")
        if not name or not equals:
            raise SwflowError(f"{option}: {text!r} is not NAME=NUMBER, such as {example}")
        if name in pairs:
            raise SwflowError(f"{option}: {name} is given twice")
        pairs[name] = read_number(number, f"{option}: {name}")
    return pairs


#: The notation of the options that `read_units` parses.
_UNITS = {
    "--partition": "PARTITION=PROCESSORS, such as cpu=3840",
    "--machine-resource": "NAME=UNITS, such as gpus=512",
    "--resource": "NAME=UNITS, such as gpus=512, or gpus=none",
}


def read_units(texts: Iterable[str] | None, option: str) -> dict[str, Any]:
    """Parse NAME=UNITS texts into a mapping to whole numbers; with --resource, the number none leaves one out."""
    units: dict[str, int | None] = {}
    for text in texts or ():
        name, _, number = text.rpartition("=")
        is_none = option == "--resource" and number == "none"
        if not name or not (number.isdecimal() or is_none):
            raise SwflowError(f"{option} {text!r}: expected {_UNITS[option]}")
        if name in units:
            raise SwflowError(f"{option}: {name} is given twice")
        units[name] = None if is_none else whole_number(number, f"{option} {name}")
    return units


def read_formulas_of(texts: Iterable[str] | None, output: Path) -> dict[str, str]:
    """Parse NAME=FORMULA texts of --resource; raise an error if the output has no columns for resources."""
    formulas: dict[str, str] = {}
    for text in texts or ():
        name, _, formula = text.partition("=")
        if name.strip() in formulas:
            raise SwflowError(f"--resource: {name.strip()} is given twice")
        formulas[name.strip()] = formula
    if formulas and output.suffix != ".parquet":
        raise SwflowError(f"{output}: the format has no column for {next(iter(formulas))}; expected .parquet")
    return formulas


def read_number(text: str, where: str) -> float:
    """Parse a finite number, or raise an error that names the option."""
    return number_of(text, where)


def require_own_machine(processors: int | None, what: str) -> None:
    """Raise an error for --processors where the machine must be that of the workload; ``what`` begins the reason."""
    if processors is not None:
        hint = f"set it with: swflow clean LOG --machine-processors {processors} -o WORKLOAD.parquet"
        raise SwflowError(f"--processors {processors}: {what} the machine of the workload; {hint}")


def read_object(text: str, option: str) -> dict[str, Any]:
    """Parse a JSON object, or raise an error that names the option."""
    from swflow.files.reading import parse_json

    content = parse_json(text, f"{option} {shown(text)}", is_option=True)
    if not isinstance(content, dict):
        raise SwflowError(f'{option} {shown(text)}: write an object such as {{"path": "my.swf"}}')
    return content


def read_mapping(text: str, option: str) -> "Unchecked":
    """Parse a mapping in YAML or JSON, or raise an error that names the option."""
    from swflow.files.yaml import parse_user_yaml

    content = parse_user_yaml(text, f"{option} {shown(text)}")
    if not isinstance(content, dict):
        raise SwflowError(f"{option} {shown(text)}: write names with their values, such as {{alice: 3}}")
    return content


def read_schedulers(texts: Sequence[str] | None, default: "Mapping[str, Unchecked]") -> "dict[str, Scheduler]":
    """Return the schedulers of the --scheduler options, or the default ones."""
    from swflow.scheduling.scheduler import Scheduler

    named = named_schedulers(texts or ()) or default
    return {name: Scheduler.of(name, options) for name, options in named.items()}


def named_schedulers(texts: Iterable[str]) -> "dict[str, Unchecked]":
    """Parse the --scheduler options into a mapping of names to options; each name may occur once."""
    from swflow.names import check_name
    from swflow.scheduling.named import read_scheduler

    schedulers: dict[str, Unchecked] = {}
    for text in texts:
        name, options = read_scheduler(text)
        check_name(name, "--scheduler")
        if name in schedulers:
            raise SwflowError(f"--scheduler: {name} is given twice")
        schedulers[name] = options
    return schedulers
