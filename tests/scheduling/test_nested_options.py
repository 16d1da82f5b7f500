"""Nested options: one declaration gives the checks, their messages, the schema, the help and the docs."""

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.scheduling.nested_options import SCHEDULER_PARAMETERS
from swflow.scheduling.option_checks import checked
from swflow.scheduling.option_kinds import Option
from swflow.scheduling.options import OPTIONS, Options, help_of
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.schema import schema_of
from swflow.studies.workflow import read_config

ROOT = Path(__file__).parents[2]

#: The options with keys or names of their own.
NESTED = {name: one for name, one in OPTIONS.items() if list(one.parts()) or one.kind in ("named", "units")}

#: The texts that are drawn for the kinds whose texts are parsed.
TEXTS = {"order": "fcfs", "positions": "2,5-8", "moment": "1996-01-01", "text": "some", "plugin": "fair-share"}


def without_rules(option: Option) -> Option:
    """Return an option without the checks that compare the parts of its value, which a schema cannot state."""
    return replace(
        option,
        rule=None,
        each=option.each and without_rules(option.each),
        others=option.others and without_rules(option.others),
        keys={name: without_rules(one) for name, one in option.keys.items()},
    )


def drawn(option: Option, rng: random.Random, wrong: float) -> Any:
    """Return a value of an option; each part is with the probability ``wrong`` of another kind or beyond its limits."""
    if rng.random() < wrong:
        return rng.choice(
            [None, True, -1, 0, 0.5, 2.0, 7, 2**60, 1e20, "", " ", "x", "5-8", [], [1], ["a", ""], {}, {"a": 1}]
        )
    if option.optional and rng.random() < 0.1:
        return None
    match option.kind:
        case "flag":
            return rng.random() < 0.5
        case "integer" | "number":
            bounds = [bound for bound in (option.least, option.most, option.above) if bound and abs(bound) < 1e300]
            value = rng.choice([*bounds, 1, 2, 3600])
            return int(value) if option.kind == "integer" else value
        case "choice":
            return rng.choice(list(option.choices))
        case "name":
            return rng.choice(["alice", 7, " b "])
        case "names":
            return rng.choice(["a", 3, ["a", 2], []])
        case "mapping":
            return {"a": rng.choice([1, None, []])}
        case "list":
            return [drawn(option.each, rng, wrong) for _ in range(rng.randrange(3))]
        case "named":
            return {name: drawn(option.each, rng, wrong) for name in rng.sample(["a", 5, "b c"], rng.randrange(3))}
        case "units":
            names = rng.sample(["gpus", "memory", "licenses"], rng.randrange(3))
            names += ["_x", "nodes", "2a", "a b"][: rng.random() < wrong]
            return {name: drawn(option.each, rng, wrong) for name in names}
        case "keys":
            return dict(_drawn_keys(option, rng, wrong))
    return TEXTS[option.kind]


def _drawn_keys(option: Option, rng: random.Random, wrong: float) -> Iterator[tuple[Any, Any]]:
    one = rng.choice(option.either) if option.either else None
    for name, part in option.keys.items():
        is_needed = name in option.needed or name == one
        if is_needed != (rng.random() < wrong) if is_needed or name in option.either else rng.random() < 0.4:
            is_named = option.others is not None and rng.random() < 0.2
            yield name, drawn(option.others if is_named else part, rng, wrong)  # type: ignore[arg-type]
    if rng.random() < wrong:
        yield "unknown", 1
    if option.others is not None:
        yield from ((name, drawn(option.others, rng, wrong)) for name in ("alice", 7) if rng.random() < 0.4)


def is_accepted(option: Option, value: Any) -> bool:
    try:
        checked(option, value, "it")
    except SwflowError as error:
        assert "\n" not in str(error)
        assert str(error).startswith("it: ")
        return False
    return True


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "policy"])  # whose module would be imported
def test_the_schema_accepts_exactly_what_the_check_accepts(name: str) -> None:
    option, rng = without_rules(OPTIONS[name]), random.Random(name)
    schema = jsonschema.Draft202012Validator(schema_of(option))
    found = {True: 0, False: 0}
    parsed = ("order", "text", "plugin", "positions", "moment")
    for _ in range(250):
        value = drawn(option, rng, wrong=rng.choice([0, 0.05, 0.3]))
        if option.kind in parsed and isinstance(value, str):
            value = TEXTS[option.kind]
        accepts = is_accepted(option, value)
        if accepts != schema.is_valid(value) and not _has_parsed_text(option, value):
            pytest.fail(f"{name}: {value!r}: the check {'accepts' if accepts else 'refuses'} it, the schema does not")
        found[accepts] += 1
    assert min(found.values()) >= 5, found


def _has_parsed_text(option: Option, value: Any) -> bool:
    """Return whether a value has a text that only its parser can judge, such as a formula or a day."""
    parsed = {one.kind for _, one in option.parts()} & {"order", "moment", "positions"}
    texts = {"", " ", "x", "5-8"}

    def has(one: Any) -> bool:
        if isinstance(one, dict):
            return any(map(has, one.values()))
        return any(map(has, one)) if isinstance(one, list) else one in texts if isinstance(one, str) else False

    return bool(parsed) and has(value)


def paths() -> Iterator[tuple[str, tuple[str, ...], Option]]:
    """Yield every key of every nested option."""
    for name, option in NESTED.items():
        yield from ((name, path, part) for path, part in option.parts())


def around(option: Option, path: tuple[str, ...], value: Any) -> Any:
    """Return a valid value of an option but for the value at a path."""
    if option.kind == "list":
        assert option.each is not None
        return [around(option.each, path, value)]
    if not path:
        return value
    first, *rest = path
    if option.kind == "named":
        assert option.each is not None
        return {first: around(option.each, tuple(rest), value)}
    inner = option.others if first == "NAME" else option.keys[first]
    assert inner is not None
    found = dict.fromkeys(option.needed, 1) | {first: around(inner, tuple(rest), value)}
    if option.either and not found.keys() & set(option.either):
        given = option.either[0]
        found[given] = {"a": ["b"]} if option.keys[given].kind == "named" else 1
    return found


def wrong_values(option: Option) -> Iterator[Any]:
    """Yield a value of a wrong type, one with an unknown key, and values beyond the limits."""
    yield {"no": ["such", "value"]} if option.kind not in ("keys", "named", "units", "mapping") else "text"
    if option.kind == "keys":
        yield {"no_such_key": 1}
    if option.kind == "choice":
        yield "unknown"
    if option.kind in ("integer", "number"):
        yield from (bound + step for bound, step in ((option.least, -1), (option.most, 1)) if abs(bound) < 1e14)
        yield from () if option.above is None else (option.above,)


def _shown(one: Any) -> str:
    return one if isinstance(one, str) else ".".join(one) if isinstance(one, tuple) else ""


@pytest.mark.parametrize(("name", "path", "part"), list(paths()), ids=_shown)
def test_a_wrong_value_of_a_nested_key_is_one_line_with_its_path(
    name: str, path: tuple[str, ...], part: Option
) -> None:
    option = without_rules(OPTIONS[name])
    schema = jsonschema.Draft202012Validator(schema_of(option))
    for wrong in wrong_values(part):
        value = around(option, path, wrong)
        with pytest.raises(SwflowError) as caught:
            checked(option, value, name)
        assert str(caught.value).startswith(": ".join((name, *path)) + ": "), wrong
        assert "\n" not in str(caught.value)
        if part.kind not in ("order", "text"):
            assert not schema.is_valid(value), value


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"limits": {"user": {1: {"processors": 4}, "1": {"processors": 8}}}}, "limits: user: 1"),
        ({"limits": {"group": {"a": {"users": {2: {"jobs": 4}, "2": {"jobs": 8}}}}}}, "limits: group: a: users: 2"),
        ({"order": "fair-share", "user_shares": {3: 1, " 3 ": 2}}, "user_shares: 3"),
        ({"accounts": {4: {"share": 1}, "4": {"share": 2}}}, "accounts: 4"),
    ],
)
def test_a_number_and_a_text_of_one_name_are_refused(options: dict[str, object], where: str) -> None:
    with pytest.raises(SwflowError, match=f"^{where} occurs twice"):
        Scheduler(**options)


def test_every_nested_key_has_a_meaning_in_schema_help_and_docs() -> None:
    documented = (ROOT / "docs/reference/schedulers.md").read_text()
    for name, path, part in paths():
        assert part.meaning, (name, path)
        assert part.meaning.removesuffix(".") in (Options.__doc__ or "")
        assert path[-1].removeprefix("user_") in documented, (name, path)
    for name, option in NESTED.items():
        assert all(key in help_of(name) for key in option.keys)


def test_the_documentation_has_the_defaults_of_the_parameters_of_slurm() -> None:
    documented = (ROOT / "docs/reference/schedulers.md").read_text()
    rows = dict(re.findall(r"^  \| `(\w+)` \| .* \| ([\d.]+) \|$", documented, re.MULTILINE))
    assert rows == {name: f"{one.default:g}" for name, one in SCHEDULER_PARAMETERS.items()}


def test_a_wrong_nested_option_of_a_config_has_the_message_of_its_check(tmp_path: Path) -> None:
    study = {"logs": ["x"], "runs": [{"workloads": ["x"], "schedulers": ["mine"]}]}
    for options, message in (
        ({"limits": {"user": {"alice": {"jbs": 1}}}}, "limits: user: alice: unknown key 'jbs'; did you mean 'jobs'?"),
        ({"priority": {"age": -1}}, "priority: age: -1; expected at least 0"),
        ({"accounts": {"bio": {"share": "2"}}}, "accounts: bio: share: '2'; expected a number"),
        ({"unavailable": [{"from": 0, "until": 5}]}, "unavailable: {'from': 0, 'until': 5}; give either processors or"),
    ):
        config = yaml.safe_load(yaml.safe_dump({"seed": 1, "studies": {"a": study}, "schedulers": {"mine": options}}))
        with pytest.raises(SwflowError) as caught:
            read_config(config, ROOT / "workflow/schemas/config.schema.yaml")
        assert str(caught.value).startswith(f"schedulers: mine: {message}")


def test_nested_options_of_the_command_line_are_read_as_yaml(tmp_path: Path, capsys) -> None:
    jobs = "".join(f"{job} {job} -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 1 -1 -1\n" for job in (1, 2))
    (tmp_path / "jobs.swf").write_text(f"; MaxProcs: 4\n{jobs}")
    for name in ("preemption", "limits", "priority", "accounts", "scheduler_parameters", "user_shares"):
        assert call("simulate", str(tmp_path / "jobs.swf"), f"--{name.replace('_', '-')}", "[1]") != 0
        assert "write names with their values" in capsys.readouterr().err
        assert call("simulate", str(tmp_path / "jobs.swf"), f"--{name.replace('_', '-')}", "{a: [[1]]}") != 0
        assert f"{name}: " in capsys.readouterr().err
