"""Tests of unusual and invalid conditions, formulas, configs, catalogues and queries."""

import math
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import polars as pl
import pytest
import yaml

from swflow.cli.option_values import named_schedulers
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.jobs.conditions import check_condition, condition
from swflow.log.catalogue import load_catalogue
from swflow.log.settings import GENERATORS
from swflow.scheduling.orders.formula import check_penalty, compile_formula, compile_penalty
from swflow.studies.plan import check_conditions, check_schedulers, plan_studies
from swflow.studies.schema_errors import explain
from swflow.workload.models.lublin import CLASSES, ESTIMATES

SCHEMA = yaml.safe_load((Path(__file__).parents[1] / "workflow/schemas/config.schema.yaml").read_text())

DEEP, LONG = 300, 5000
ALL = [1, 2, 3, 4, 5, 6]

TABLE = pl.DataFrame(
    {
        "job_id": ALL,
        "run_time": [0.0, 60.0, 600.0, 3600.0, None, 1e9],
        "user_id": [1, 2, 3, 50, None, 2**60 + 1],
        "processors": [1, 2, 4, 8, 16, 32],
        "queue_id": [1, 1, 2, None, 2, 0],
        "killed": [True, False, None, True, False, False],
        "places": ["0", "1-2", "3", "4", "5", "6"],
    }
)

#: Valid conditions, and the ids of the jobs that they keep.
CONDITIONS: dict[str, list[int]] = {
    # as in configs
    "queue_id == 1": [1, 2],
    "processors <= 4": [1, 2, 3],
    "user_id == 50 and 1 <= job_id <= 64542": [4],
    "user_id == 3 and processors == 4 and queue_id == 2": [3],
    "processors >= 32": [6],
    "run_time < 600": [1, 2],
    "job_id <= 3 # three jobs": [1, 2, 3],
    " job_id <= 3 ": [1, 2, 3],
    "(job_id <= 3)": [1, 2, 3],
    # large constants
    "run_time < 60*60*24*365*70": [1, 2, 3, 4, 6],
    "run_time < 3*10**9": [1, 2, 3, 4, 6],
    "run_time < 2**31": [1, 2, 3, 4, 6],
    "run_time < 2**32": [1, 2, 3, 4, 6],
    "run_time < 2**63": [1, 2, 3, 4, 6],
    "run_time < 2**64": [1, 2, 3, 4, 6],
    "run_time < 10**300": [1, 2, 3, 4, 6],
    "run_time < 9223372036854775808": [1, 2, 3, 4, 6],
    "run_time > -9223372036854775809": [1, 2, 3, 4, 6],
    "user_id == 1152921504606846977": [6],
    "user_id == 1152921504606846976": [],
    "user_id > 1152921504606846976": [6],
    "user_id in (1152921504606846977, 3)": [3, 6],
    "user_id < 99999999999999999999999999": [1, 2, 3, 4, 6],
    "user_id in (99999999999999999999999999, 3)": [3],
    "-9223372036854775808 // -1 > 0": ALL,
    "-9223372036854775808 % -1 == 0": ALL,
    "9223372036854775807 + 1 > 0": ALL,
    "4000000000 * 4000000000 > 0": ALL,
    "1e308 * 10 > 0": [],
    "job_id * 10**18 > 0": ALL,
    # powers and divisions
    "user_id ** -1 > 0": [1, 2, 3, 4, 6],
    "run_time ** -1 > 0": [2, 3, 4, 6],
    "(0 - processors) ** 0.5 > -99": [],
    "(0 - processors) ** 2 == processors * processors": ALL,
    "processors ** 3 == 8": [2],
    "processors ** 1000 > 0": [1, 2],
    "2 ** -1 == 0.5": ALL,
    "2 ** 3 ** 2 == 512": ALL,
    "-2 ** 2 == -4": ALL,
    "run_time / 0 > 1": [],
    "run_time // 0 > 1": [],
    "run_time % 0 == 0": [],
    "0 / 0 == 0 / 0": [],
    "not 1 / 0 > 1": [],
    "1 / run_time > 0 or job_id == 1": [1, 2, 3, 4, 6],
    "-7 // 2 == -4": ALL,
    "-7 % 3 == 2": ALL,
    "7 % -3 == -2": ALL,
    "1 // 0.1 == 9": ALL,
    "0.1 + 0.2 == 0.3": [],
    "+job_id == 1": [1],
    "--job_id == 1": [1],
    # unknown
    "user_id > 0": [1, 2, 3, 4, 6],
    "not user_id > 0": [],
    "not user_id > 1": [1],
    "user_id == user_id": [1, 2, 3, 4, 6],
    "user_id != user_id": [],
    "user_id is null": [5],
    "user_id is not null": [1, 2, 3, 4, 6],
    "run_time + user_id is null": [5],
    "1 / run_time is null": [1, 5],
    "user_id > 0 or job_id == 5": ALL,
    "user_id > 0 and job_id == 5": [],
    "not (user_id > 0 and job_id == 4)": [1, 2, 3, 5, 6],
    "queue_id not in (1, 2)": [6],
    "queue_id in (1, 2)": [1, 2, 3, 5],
    "queue_id in [1]": [1, 2],
    "queue_id in {0, -1}": [6],
    "queue_id in (1)": [1, 2],
    "queue_id in 1": [1, 2],
    "queue_id in ()": [],
    "queue_id in (0.5, 1e0)": [1, 2],
    # boolean columns as conditions
    "killed": [1, 4],
    "not killed": [2, 5, 6],
    "killed and run_time > 60": [4],
    "killed or job_id == 3": [1, 3, 4],
    "killed is null": [3],
    # words in capitals
    "queue_id == 1 AND processors >= 2": [2],
    "queue_id == 0 OR NOT job_id > 1": [1, 6],
    "queue_id IN (0, 2) AND user_id IS NOT NULL": [3, 6],
    "user_id Is Null": [5],
    # without a column
    "1 < 2": ALL,
    "1 > 2": [],
    "1 < 2 < 3 < 4": ALL,
    "0.5 in (0.5, 2)": ALL,
    # chains and lengths
    "1 < job_id < 4 < processors < 16": [],
    "1 < job_id < 4 != processors": [2],
    " or ".join(f"job_id == {job}" for job in range(LONG)): ALL,
    f"job_id in ({', '.join(map(str, range(3, LONG)))})": [3, 4, 5, 6],
    "(" * 50 + "job_id" + ")" * 50 + " == 1": [1],
    "not " * 50 + "job_id == 1": [1],
    "ｊob_id == 1": [1],  # Python's grammar treats full-width letters as equal
}

#: Invalid conditions, and words of the error.
NO_CONDITIONS: dict[str, str] = {
    "": "empty",
    " ": "empty",
    "user_id": "user_id at position 1 is a number, not a condition; compare it",
    "not user_id": "user_id at position 5 is a number, not a condition",
    "1": "is a number, not a condition",
    "-1": "is a number, not a condition",
    "user_id and killed": "is a number, not a condition",
    "-(user_id > 1) > 0": "user_id > 1 at position 3 is a condition, not a number",
    "(user_id > 1) + 1 > 1": "is a condition, not a number",
    "(user_id > 1) == (job_id > 1)": "is a condition, not a number",
    "killed == 1": "killed at position 1 is a condition, not a number",
    "killed in (1, 0)": "is a condition, not a number",
    "(not killed) is null": "is a condition, not a number",
    "user_id = 1": "compare with ==",
    "user_id := 1": "cannot be parsed at position",
    "(user_id := 1) > 0": "NamedExpr",
    "user_id <> 1": "cannot be parsed at position",
    "user_id == 1;": "cannot be parsed at position",
    "user_id == 1; DROP TABLE jobs": "cannot be parsed at position",
    "user_id == 1) OR (1 == 1": "cannot be parsed at position",
    "user_id == (1": "cannot be parsed at position 12",
    "user_id == 1 --": "incomplete at position",
    "user_id == 'a'": "'a' at position 12 is not a number",
    "user_id == b'a'": "is not a number",
    "user_id == True": "True at position 12 is not a number",
    "user_id == None": "None at position 12 is not a number",
    "user_id == ...": "is not a number",
    "user_id == 1j": "1j at position 12 is not a number",
    "user_id == 1e999": "the number at position 12 is too large",
    "user_id == 1" + "0" * 400: "the number at position 12 is too large",
    "user_id == 1" + "0" * 5000: "is too large",
    "user_id in (1" + "0" * 400 + ",)": "is too large",
    "usr_id == 1": "unknown name 'usr_id' at position 1; did you mean 'user_id'?",
    "places == 1": "unknown name 'places'",
    "null == 1": "unknown name 'null'",
    "user_id == null": "unknown name 'null'",
    "user_id is 5": "only null can follow is",
    "user_id is not 5": "only null can follow is",
    "user_id in queue_id": "write numbers after in",
    "user_id in (1, queue_id)": "write numbers after in",
    "user_id in (2**3, 1)": "write numbers after in",
    "user_id in ('a',)": "is not a number",
    "user_id in (True,)": "is not a number",
    "user_id in ((1, 2), 3)": "write numbers after in",
    "user_id in (*queue_id,)": "write numbers after in",
    "0 < user_id in (1, 2)": "cannot be chained",
    "user_id in (1, 2) in (3,)": "cannot be chained",
    "__import__('os').system('touch x')": "cannot call",
    "open('/etc/passwd')": "cannot call 'open'",
    "abs(user_id) > 1": "cannot call 'abs' at position 1; functions are not allowed",
    "user_id.real == 1": "Attribute at position 1 is not allowed",
    "user_id.__class__ == 1": "Attribute",
    "user_id[0] == 1": "Subscript",
    "[1] == 1": "List at position 1 is not allowed",
    "(1, 2) == 1": "Tuple at position 1 is not allowed",
    "{1: 2} == 1": "Dict",
    "[x for x in (1, 2)] == 1": "ListComp",
    "(lambda: 1) == 1": "Lambda",
    "user_id == 1 if killed else killed": "IfExp",
    "f'{user_id}' == 1": "JoinedStr",
    "await user_id": "Await",
    "(yield) == 1": "Yield",
    "user_id & 1 == 1": "is not allowed",
    "user_id | 1 == 1": "is not allowed",
    "user_id ^ 1 == 1": "is not allowed",
    "user_id << 1 == 1": "is not allowed",
    "~user_id == 1": "Invert",
    "user_id @ 1 == 1": "is not allowed",
    "*user_id == 1": "at position",
    "import os": "cannot be parsed at position",
    "exec == 1": "unknown name 'exec'",
    "exists(select * from read_text('/etc/passwd'))": "cannot be parsed at position",
    "x=true) AS BOOLEAN), false) AS part FROM (select 1) LIMIT 0; COPY (select 1) TO 'f'": "parsed at position",
    "user_id == 1 UNION SELECT 1": "cannot be parsed at position",
    "read_text == 1": "unknown name",
    "user_id BETWEEN 1 AND 2": "cannot be parsed at position",
    "user_id LIKE 1": "cannot be parsed at position",
    "user_id::int == 1": "cannot be parsed at position",
    '"user_id" == 1': "is not a number",
    "user_id == 1\nor True": "cannot be parsed at position",
    "user_id ==\t": "incomplete at position",
    "user_id == 1\0": "cannot be parsed",
    "\ud800 == 1": "cannot be parsed",
    "user_id == 1,": "Tuple",
    "user_id == 0x": "cannot be parsed at position",
    "user_id == 01": "cannot be parsed at position",
    "user_id == 1_": "cannot be parsed at position",
    "user_id === 1": "cannot be parsed at position",
    "user_id == 1 and": "incomplete at position",
    "and": "cannot be parsed at position",
    "(" * DEEP + "user_id" + ")" * DEEP + " == 1": "too deeply nested",
    "-" * DEEP + "user_id == 1": "too deeply nested",
    "-" * 100_000 + "user_id == 1": "too deeply nested",
    "not " * DEEP + "user_id == 1": "too deeply nested",
    "+".join(["user_id"] * DEEP) + " == 1": "too deeply nested",
    "**".join(["user_id"] * 20_000) + " == 1": "too deeply nested",
    "[" * DEEP + "]" * DEEP: "too deeply nested",
}

#: Formulas, and their value at second 30 for a job submitted at 10, with estimate 8 s, 4 processors, user 1.
FORMULAS: dict[str, float] = {
    "0": 0.0,
    "submit_time": 10.0,
    "-processors": -4.0,
    "wait / 0": math.inf,
    "-wait / 0": -math.inf,
    "10**300 * processors": 4e300,
    "1e308 * 10": math.inf,
    "2**63 + 1": 2.0**63,
    "9223372036854775808 // -1": -(2.0**63),
    "processors ** -1": 0.25,
    "not processors": 0.0,
    "-(processors > 1)": -1.0,
    "(wait > 1) + (wait > 2)": 2.0,
    "wait if processors > 3 and user_id == 1 else 0": 20.0,
    "max(wait, estimate) - min(1, 2)": 19.0,
    "(" * 50 + "wait" + ")" * 50: 20.0,
    "+".join(["wait"] * 80): 1600.0,
    "-7 // 2 + -7 % 3": -2.0,
    "exp(log(processors)) >= 3.9": 1.0,
    "abs(-wait)": 20.0,
}  # fmt: skip

NO_FORMULAS: dict[str, str] = {
    "": "empty",
    "fcfs; touch x": "cannot be parsed at position",
    "sjf()": "cannot call",
    "__builtins__": "unknown name",
    "().__class__": "is not allowed",
    "exec('1')": "cannot call 'exec'",
    "eval('1')": "cannot call 'eval'",
    "wait.__class__": "Attribute",
    "wait[0]": "Subscript",
    "max.__self__": "Attribute",
    "max": "unknown",
    "log": "unknown",
    "min(*[wait])": "Starred",
    "min(**wait)": "by position",
    "max(wait, key=abs)": "by position",
    "log(1, 2, 3)": "wrong number of arguments",
    "exp()": "wrong number of arguments",
    "lambda: wait": "Lambda",
    "[wait for x in (1,)]": "is not allowed",
    "'a'": "is not a number",
    "'a' * 10**9": "is not a number",
    "True": "unknown",
    "None + 1": "is not a number",
    "1j": "is not a number",
    "1e999": "too large",
    "1" + "0" * 400: "too large",
    "1" + "0" * 5000: "is too large",
    "wait in (1, 2)": "is not allowed",
    "wait is user_id": "is not allowed",
    "wait & 1": "is not allowed",
    "wait @ wait": "is not allowed",
    "~wait": "is not allowed",
    "(x := 1)": "is not allowed",
    "f'{wait}'": "is not allowed",
    "wait;": "cannot be parsed at position",
    "wait\n+ 1": "cannot be parsed at position",
    "wait\0": "cannot be parsed",
    "import os": "cannot be parsed at position",
    "(" * DEEP + "wait" + ")" * DEEP: "too deeply nested",
    "-" * DEEP + "wait": "too deeply nested",
    "+".join(["wait"] * DEEP): "too deeply nested",
    " or ".join(["wait"] * LONG): "at most of 1000 parts",
    f"max({', '.join(['wait'] * LONG)})": "at most of 1000 parts",
    "run_time": "unknown",
    "now()": "cannot call",
}

#: Penalties, and their value at a usage of 9000 and a capacity of 6000.
PENALTIES: dict[str, float] = {
    "0": 0.0,
    "max(usage / capacity, 1) - 1": 0.5,
    "usage / capacity": 1.5,
    "(usage > capacity) * 2": 2.0,
    "exp(usage / capacity) - 1 if usage > 0 else 0": math.exp(1.5) - 1,
    "min(usage, 100) / 100": 1.0,
}

NO_PENALTIES: dict[str, str] = {
    "used / 2": "unknown name 'used'",
    "usage()": "cannot call",
    "usage; 1": "cannot be parsed at position",
    "usage.real": "Attribute",
    "__import__('os')": "cannot call",
    "'linear'": "is not a number",
    "printed()": "cannot call",
    "wait": "unknown name",
    "1e400": "too large",
    "1" + "0" * 400: "too large",
    "": "empty",
    "-" * DEEP + "usage": "too deeply nested",
    "(" * DEEP + "1" + ")" * DEEP: "too deeply nested",
    "lambda: 0": "Lambda",
    "[0]": "List",
    "usage if": "at position",
    "usage in (1, 2)": "is not allowed",
    "max(usage, default=1)": "by position",
}


@pytest.mark.parametrize(("text", "kept"), CONDITIONS.items(), ids=lambda text: str(text)[:60])
def test_a_condition_keeps_the_expected_jobs(text, kept):
    assert TABLE.filter(condition(text, TABLE.schema, "where"))["job_id"].to_list() == kept


def refused(where, call, *arguments) -> str:
    """Return the error of a call; check that it is one line and not too long."""
    with pytest.raises(SwflowError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert message.startswith(where) and message.isprintable() and len(message) < 700
    return message


@pytest.mark.parametrize(("text", "words"), NO_CONDITIONS.items(), ids=lambda text: repr(str(text)[:60]))
def test_an_invalid_condition_is_one_line(text, words):
    assert words in refused("where: ", condition, text, TABLE.schema, "where")


def test_conditions_of_a_config_are_checked_without_a_table():
    for text in CONDITIONS:
        check_condition(text, "where")
    for text, words in NO_CONDITIONS.items():
        if "unknown name" not in words and "killed" not in text:
            assert words in refused("where: ", check_condition, text, "where")


@pytest.mark.parametrize(("text", "value"), FORMULAS.items(), ids=lambda text: str(text)[:60])
def test_a_formula_has_the_expected_value(text, value):
    assert compile_formula(text)(30, 10, 8, 4, 1, 1, 2, 3, 9, *[0] * 6) == value


@pytest.mark.parametrize(("text", "words"), NO_FORMULAS.items(), ids=lambda text: repr(str(text)[:60]))
def test_an_invalid_formula_is_one_line(text, words):
    assert words in refused("order: ", compile_formula, text)


@pytest.mark.parametrize(("text", "value"), PENALTIES.items())
def test_a_penalty_has_the_expected_value(text, value):
    assert compile_penalty(text)(9000, 6000) == value


@pytest.mark.parametrize(("text", "words"), NO_PENALTIES.items(), ids=lambda text: repr(str(text)[:60]))
def test_an_invalid_penalty_is_one_line(text, words):
    assert words in refused("penalty: ", check_penalty, text)


# --- configs ----------------------------------------------------------------------------------------------

RUNS = [{"workloads": ["{log}"], "schedulers": ["easy"]}]


def study(**changes: Any) -> dict[str, Any]:
    """Return a config with a change in its only study."""
    return {"studies": {"one": {"logs": ["A"], "runs": RUNS} | changes}}


def step(**content: Any) -> dict[str, Any]:
    """Return a config with a step."""
    return {"steps": {"s": content}}


def split(condition: Any) -> dict[str, Any]:
    """Return a config with a figure split by a condition."""
    return study(split={"x": condition}, figures=["heatmap"])


def check(changes: dict[str, Any]) -> None:
    """Check a config with the workflow's function."""
    config = {"schedulers": {"easy": {}}} | study() | changes
    for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(config):
        raise SwflowError(explain(error))
    config = {"seed": 1, "steps": {}, "sweeps": {}, "logs": None} | config
    check_schedulers(config)
    check_conditions(config)
    plan_studies(config, ["A", "B"])


CONFIGS: list[dict[str, Any]] = [
    {},
    {"seed": 0},
    {"mirror": "; touch x"},
    {"mirror": "$(touch x)"},
    {"logs": ["A"]},
    {"clean": {"drop": [], "flurries": ["user_id == 3"], "without_status": [5], "lenient": True}},
    step(kind="select", where="queue_id == 1"),
    step(kind="select", where="memory_bandwidth > 10 AND status IN (1, 0)"),
    step(kind="memory", resource="memory", high=1),
    split("processors <= 4"),
    split("killed"),
    split("places is null"),
    study(title="$(touch x) {log} `id` <script>alert(1)</script>"),
    study(split="queue_id", figures=["heatmap"]),
    {"schedulers": {"easy": {"order": "wait"}, "x.y-z_1": {}}},
    {"sweeps": {"d": {"processors": 64, "d": "0:100:2.5"}}},
    study(runs=[{"workloads": ["{log}" + "+s" * 80], "schedulers": ["easy"]}]) | step(kind="select", jobs=1),
]

WRONG_CONFIGS: list[tuple[dict[str, Any], str]] = [
    ({"sede": 1}, "unknown key 'sede'; did you mean 'seed'"),
    ({"seed": -1}, "seed: "),
    ({"seed": "1; touch x"}, "seed: "),
    ({"seed": 1.5}, "seed: "),
    ({"seed": True}, "seed: "),
    ({"mirror": 5}, "mirror: "),
    ({"catalogue": "logs.yaml"}, "catalogue: "),
    ({"logs": []}, "logs: "),
    ({"logs": ["C"]}, "logs: unknown log 'C'"),
    ({"logs": ["A\n"]}, "logs: unknown log"),
    ({"clean": {"flurry": []}}, "clean: unknown key 'flurry'"),
    ({"clean": {"output": "x"}}, "clean: unknown key 'output'"),
    ({"clean": {"drop": ["everything"]}}, "clean: drop[0]: unknown value 'everything'"),
    ({"clean": {"flurries": "user_id == 3"}}, "clean: flurries: "),
    ({"clean": {"flurries": ["user_id"]}}, "clean: flurries: "),
    ({"clean": {"flurries": ["usr == 3"]}}, "clean: flurries: 'usr == 3': unknown name 'usr'"),
    ({"clean": {"flurries": ["memory_bandwidth == 3"]}}, "clean: flurries: "),
    ({"clean": {"lenient": "yes"}}, "clean: lenient: "),
    ({"clean": {"without_status": ["5"]}}, "clean: without_status[0]: "),
    (step(kind="shell", command="touch x"), "steps: s: "),
    (step(jobs=5), "steps: s: "),
    (step(kind="select", output="x"), "unknown key 'output'"),
    (step(kind="select", job=5), "steps: s: unknown key 'job'; did you mean 'jobs'"),
    (step(kind="select", jobs=0), "steps: s: jobs: "),
    (step(kind="select", jobs="5; touch x"), "steps: s: jobs: "),
    (step(kind="select", where=5), "steps: s: where: "),
    (step(kind="select", where="user_id"), "steps: s: where: 'user_id': user_id at position 1 is a number"),
    (step(kind="select", where="user_id = 5"), "compare with =="),
    (step(kind="select", where="exec('x')"), "steps: s: where: "),
    (step(kind="select", where="not user_id"), "steps: s: where: "),
    (step(kind="select", where="user_id > 1" + "0" * 400), "steps: s: where: "),
    (step(kind="select", where="-" * DEEP + "user_id > 1"), "steps: s: where: "),
    (step(kind="memory", resource="memory; touch x"), "steps: s: resource: "),
    (step(kind="memory", resource="memory\n"), "steps: s: resource: "),
    (step(kind="memory", resource="../memory"), "steps: s: resource: "),
    (step(kind="memory", high=2), "steps: s: high: "),
    (step(kind="machine", preset="laptop"), "steps: s: preset: "),
    (step(kind="model", model="lublin; touch x"), "steps: s: model: unknown value"),
    (step(kind="model", model="/bin/sh"), "steps: s: model: unknown value"),
    (step(kind="model", save_fit="x.json"), "steps: s: unknown key 'save_fit'"),
    (step(kind="scale", processors=64, variant="$(id)"), "steps: s: variant: "),
    (step(kind="scale"), "steps: s: "),
    (step(kind="scale", processors=64, output="x"), "unknown key 'output'"),
    ({"steps": {"../s": {"kind": "select"}}}, "steps: "),
    ({"steps": {"s\n": {"kind": "select"}}}, "steps: "),
    ({"steps": {"s t": {"kind": "select"}}}, "steps: "),
    ({"steps": {"$(id)": {"kind": "select"}}}, "steps: "),
    ({"steps": {"s+t": {"kind": "select"}}}, "steps: "),
    ({"steps": {"": {"kind": "select"}}}, "steps: "),
    ({"steps": {".s": {"kind": "select"}}}, "steps: "),
    ({"steps": {"-s": {"kind": "select"}}}, "steps: "),
    ({"steps": {"s" * 101: {"kind": "select"}}}, "steps: "),
    ({"schedulers": {"easy": {}, "../evil": {}}}, "schedulers: "),
    ({"schedulers": {"easy": {}, "fcfs2\n": {}}}, "schedulers: "),
    ({"schedulers": {"easy": {}, "/etc/x": {}}}, "schedulers: "),
    ({"schedulers": {"easy": {}, "a b": {}}}, "schedulers: "),
    ({"schedulers": {"easy": {}, "a;b": {}}}, "schedulers: "),
    ({"schedulers": {"easy": {}, "log": {}}}, "schedulers: log: reserved for replaying"),
    ({"schedulers": {"easy": {"ordr": "sjf"}}}, "schedulers: easy: unknown key 'ordr'"),
    ({"schedulers": {"easy": {"order": "exec('x')"}}}, "schedulers: easy: order: "),
    ({"schedulers": {"easy": {"order": 5}}}, "schedulers: easy: order: "),
    ({"schedulers": {"easy": {"order": "-" * DEEP + "wait"}}}, "schedulers: easy: order: "),
    ({"schedulers": {"easy": {"order": "1" + "0" * 400}}}, "schedulers: easy: order: "),
    ({"schedulers": {"easy": {"backfill": "$(id)"}}}, "schedulers: easy: backfill: unknown value"),
    ({"schedulers": {"easy": {"penalty": "__import__('os')"}}}, "schedulers: easy: penalty: "),
    ({"schedulers": {"easy": {"reservations": 0}}}, "schedulers: easy: reservations: "),
    (split("x=true) AS part; COPY (select 1) TO 'f'"), "studies: one: split: x: "),
    (split("exists(select * from read_text('/etc/passwd'))"), "studies: one: split: x: "),
    (split("processors"), "studies: one: split: x: 'processors': processors at position 1 is a number"),
    (split("processors = 4"), "studies: one: split: x: "),
    (split(5), "studies: one: split: "),
    (study(split={"a=b": "killed"}), "studies: one: split: "),
    (study(split={"a\n": "killed"}), "studies: one: split: "),
    (study(split='queue_id" FROM jobs; COPY'), "studies: one: split: "),
    (study(split="queue_id\n"), "studies: one: split: "),
    (study(figures=["heatmap; touch x"]), "studies: one: figures[0]: "),
    (study(logs=["../A"]), "studies: one: logs: unknown log"),
    (study(logs=["A;id"]), "studies: one: logs: unknown log"),
    (study(runs=[{"workloads": ["{log}; touch x"], "schedulers": ["easy"]}]), "unknown log"),
    (study(runs=[{"workloads": ["../../A"], "schedulers": ["easy"]}]), "unknown log"),
    (study(runs=[{"workloads": ["{log}+s@1\n"], "schedulers": ["easy"]}]) | step(kind="memory"), "unknown step"),
    (study(runs=[{"workloads": ["{log}" + "+s" * 110], "schedulers": ["easy"]}]) | step(kind="select"), "at most 200"),
    (study(runs=[{"workloads": ["{log}"], "schedulers": ["../easy"]}]), "unknown scheduler"),
    (study(window={"from": "0; touch x"}), "studies: one: window: from: "),
    (study(seeds=0), "studies: one: seeds: "),
    (study(output="x"), "studies: one: unknown key 'output'"),
    ({"studies": {}}, "studies: "),
    ({"studies": {"../one": study()["studies"]["one"]}}, "studies: "),
    ({"studies": {"one\n": study()["studies"]["one"]}}, "studies: "),
    ({"sweeps": {"d": {"processors": 64, "d": "0:100:1\n"}}}, "sweeps: d: d: "),
    ({"sweeps": {"d": {"processors": 64, "d": "..:.:."}}}, "sweeps: d: d: "),
    ({"sweeps": {"d": {"processors": 64, "d": "0:100:1; touch x"}}}, "sweeps: d: d: "),
    ({"sweeps": {"d": {"processors": 0}}}, "sweeps: d: processors: "),
    ({"sweeps": {"../d": {"processors": 64}}}, "sweeps: "),
    ({"sweeps": {"d": {"processors": 64, "output": "x"}}}, "sweeps: d: unknown key 'output'"),
]


@pytest.mark.parametrize("changes", CONFIGS, ids=lambda changes: str(changes)[:70])
def test_a_valid_config_is_accepted(changes):
    check(changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    WRONG_CONFIGS,
    ids=lambda changes: repr(str(changes)[:70]),
)
def test_a_wrong_config_is_one_line(changes, words):
    assert words in refused("", check, changes)


# --- the catalogue ----------------------------------------------------------------------------------------

ENTRIES: list[dict[str, Any]] = [
    {"path": "a b; touch x.swf"},
    {"path": "$(touch x).swf"},
    {"path": "a.swf", "clean": {}},
    {"path": "a.swf", "clean": {"flurries": ["user_id == 50 and 24439 <= job_id <= 64542"]}},
    {"path": "a.swf", "clean": {"drop": ["zero-run-time"], "without_status": [5, 0], "lenient": True}},
    {"path": "a.swf", "acknowledgement": "`id`; <script>alert(1)</script>", "citation": "two\nlines"},
    {"generate": "lublin", "processors": 8},
    {"generate": "lublin", "processors": 8, "jobs": 5, "load": 0.5, "users": True},
    {"generate": "lublin", "processors": 8, "classes": "combined", "estimates": "exact", "load": 1},
]

WRONG_ENTRIES: list[tuple[Any, str]] = [
    (None, "expected a mapping"),
    ("a.swf", "expected a mapping"),
    ([], "expected a mapping"),
    ({}, "no source"),
    ({"path": "a.swf", "clean": {"output": "FILE"}}, "clean: unknown key 'output'"),
    ({"path": "a.swf", "clean": {"nosuch": 5}}, "clean: unknown key 'nosuch'"),
    ({"path": "a.swf", "clean": {"machine_processors": 5}}, "clean: unknown key 'machine_processors'"),
    ({"path": "a.swf", "clean": {"name": "x"}}, "clean: unknown key 'name'"),
    ({"path": "a.swf", "clean": {"flurry": []}}, "clean: unknown key 'flurry'; did you mean 'flurries'"),
    ({"path": "a.swf", "clean": {5: 5}}, "clean: unknown key 5"),
    ({"path": "a.swf", "clean": "lenient"}, "clean: 'lenient'; expected a mapping"),
    ({"path": "a.swf", "clean": ["lenient"]}, "clean: ['lenient']; expected a mapping"),
    ({"path": "a.swf", "clean": {"drop": "none"}}, "clean: drop: 'none'; expected a list of text"),
    ({"path": "a.swf", "clean": {"drop": ["all"]}}, "clean: drop: unknown rule 'all'"),
    ({"path": "a.swf", "clean": {"drop": [5]}}, "clean: drop: [5]; expected a list"),
    ({"path": "a.swf", "clean": {"without_status": 5}}, "clean: without_status: 5; expected a list of whole numbers"),
    ({"path": "a.swf", "clean": {"without_status": ["5; touch x"]}}, "clean: without_status: "),
    ({"path": "a.swf", "clean": {"without_status": [True]}}, "clean: without_status: "),
    ({"path": "a.swf", "clean": {"without_status": [1.5]}}, "clean: without_status: "),
    (
        {"path": "a.swf", "clean": {"flurries": "user_id == 3"}},
        "clean: flurries: 'user_id == 3'; expected a list of conditions",
    ),
    ({"path": "a.swf", "clean": {"flurries": [5]}}, "clean: flurries: [5]; expected a list of conditions"),
    ({"path": "a.swf", "clean": {"flurries": ["user_id"]}}, "clean: flurries: 'user_id': user_id at position 1"),
    ({"path": "a.swf", "clean": {"flurries": ["open('x')"]}}, "clean: flurries: "),
    ({"path": "a.swf", "clean": {"flurries": ["user == 3"]}}, "clean: flurries: 'user == 3': unknown name 'user'"),
    ({"path": "a.swf", "clean": {"flurries": ["(" * DEEP]}}, "clean: flurries: "),
    ({"path": "a.swf", "clean": {"lenient": "--help"}}, "clean: lenient: '--help'; expected true or false"),
    ({"path": "a.swf", "clean": {"lenient": 1}}, "clean: lenient: 1; expected true or false"),
    ({"generate": "lublin; touch x", "processors": 8}, "generate: unknown model 'lublin; touch x'"),
    ({"generate": "lublin\n-o x", "processors": 8}, "generate: unknown model"),
    ({"generate": "$(id)", "processors": 8}, "generate: unknown model '$(id)'; known are lublin"),
    ({"generate": "Lublin", "processors": 8}, "generate: unknown model 'Lublin'; did you mean 'lublin'"),
    ({"generate": "--help", "processors": 8}, "generate: unknown model"),
    ({"generate": 5, "processors": 8}, "generate: 5; expected text"),
    ({"generate": "lublin", "processors": 8, "output": "FILE"}, "unknown key 'output'"),
    ({"generate": "lublin", "processors": 8, "seed": 5}, "unknown key 'seed'"),
    ({"generate": "lublin", "processors": 8, "name": "x"}, "unknown key 'name'"),
    ({"generate": "lublin", "processors": 8, "lod": 0.5}, "unknown key 'lod'; did you mean 'load'"),  # prose: ignore
    (
        {"generate": "lublin", "processors": 8, "load": "0.5; touch x"},
        "load: '0.5; touch x'; expected a positive number",
    ),
    ({"generate": "lublin", "processors": 8, "load": -1}, "load: -1; expected a positive number"),
    ({"generate": "lublin", "processors": 8, "load": math.inf}, "load: inf; expected a positive number"),
    ({"generate": "lublin", "processors": 8, "load": math.nan}, "load: nan; expected a positive number"),
    ({"generate": "lublin", "processors": 8, "load": True}, "load: True; expected a positive number"),
    ({"generate": "lublin", "processors": 8, "load": [0.5]}, "load: [0.5]; expected a positive number"),
    ({"generate": "lublin", "processors": 8, "classes": "x; touch x"}, "classes: unknown value"),
    ({"generate": "lublin", "processors": 8, "estimates": ["exact"]}, "estimates: unknown value"),
    ({"generate": "lublin", "processors": 8, "users": "yes"}, "users: 'yes'; expected true or false"),
    ({"generate": "lublin", "processors": "8; touch x"}, "processors: '8; touch x'; expected a whole number"),
    ({"generate": "lublin", "processors": 8, "jobs": 0}, "jobs: 0; expected a whole number"),
    ({"generate": "lublin"}, "processors: a synthetic log needs a machine"),
    ({"path": "a\0b.swf"}, "path: "),
    ({"path": "a\x1b[31m.swf"}, "path: "),
    ({"path": "a.swf", "citation": "a\x07"}, "citation: "),
    ({"path": 5}, "path: 5; expected text"),
    ({"path": ""}, "path: ''; expected text"),
    ({"path": "a.swf", "url": "http://x/y"}, "has url and path"),
    ({"url": "ftp://x/y"}, "url: 'ftp://x/y'; expected http"),
    ({"url": "http://x/y", "file": "../y"}, "file: '../y'; expected a file name"),
    ({"url": "http://x/y", "sha256": "x"}, "sha256: 'x'; expected 64"),
    ({"url": "http://x/y", "sha256": "0" * 64 + "\n0"}, "expected 64"),
    ({"path": "a.swf", "processors": True}, "processors: True; expected a whole number"),
    ({"path": "a.swf", "processors": 8, "nodes": 3}, "nodes: 3 must divide"),
    ({"path": "a.swf", "output": "FILE"}, "unknown key 'output'"),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: repr(str(entry)[:70]))
def test_a_valid_catalogue_entry_is_accepted(entry):
    assert load_catalogue({"A": entry})["A"].clean == entry.get("clean", {})


@pytest.mark.parametrize(("entry", "words"), WRONG_ENTRIES, ids=lambda entry: repr(str(entry)[:70]))
def test_a_wrong_catalogue_entry_is_one_line(entry, words):
    assert words in refused("catalogue: A: ", load_catalogue, {"A": entry})


@pytest.mark.parametrize("name", ["../A", "A\n", "A B", "", "A;id", "/A", ".A", "-A", "A+s", 5, "A/B", "Ä"])
def test_a_log_must_have_a_plain_name(name):
    with pytest.raises(SwflowError, match="a log name must consist of letters"):
        load_catalogue({name: {"path": "a.swf"}})


@pytest.mark.parametrize(
    "name", ["../evil", "/evil", "a/b", "fcfs2\n", "", ".a", "-a", "a b", "a;b", "$(id)", "a+b", "a@1", "x" * 201, "é"]
)
def test_a_scheduler_must_have_a_plain_name_on_the_command_line(name):
    with pytest.raises(SwflowError, match=r"^--scheduler[: ]"):
        named_schedulers([f"{name}={{}}"])


def test_generators_of_the_catalogue_are_those_of_the_models():
    assert GENERATORS["lublin"]["classes"] == CLASSES and GENERATORS["lublin"]["estimates"] == ESTIMATES


# --- queries ----------------------------------------------------------------------------------------------

QUERIES = [
    "SELECT 1", "FROM t", "TABLE t", "VALUES (1)", "WITH x AS (FROM t) FROM x", "DESCRIBE t", "SHOW TABLES",
    "SUMMARIZE t", "PIVOT t ON b USING sum(a)", "EXPLAIN FROM t", "FROM t;", "-- a comment\nFROM t -- another",
]  # fmt: skip

WRONG_QUERIES: dict[str, str] = {
    "": "no query",
    " ;": "no query",
    "-- nothing": "no query",
    "SELECT 1; SELECT 2": "2 statements",
    "FROM t; COPY t TO 'x.csv'": "2 statements",
    "COPY t TO 'x.csv'": "COPY is not a query",
    "COPY (SELECT 1) TO 'x.parquet'": "COPY is not a query",
    "EXPORT DATABASE 'x'": "EXPORT is not a query",
    "IMPORT DATABASE 'x'": "sql: ",
    "ATTACH 'x.duckdb'": "ATTACH is not a query",
    "DETACH d": "DETACH is not a query",
    "INSTALL httpfs": "LOAD is not a query",
    "LOAD httpfs": "LOAD is not a query",
    "SET threads = 1": "SET is not a query",
    "RESET threads": "is not a query",
    "INSERT INTO t VALUES (1, 'x')": "INSERT is not a query",
    "DELETE FROM t": "DELETE is not a query",
    "UPDATE t SET a = 1": "UPDATE is not a query",
    "DROP TABLE t": "DROP is not a query",
    "CREATE TABLE x AS SELECT 1": "CREATE is not a query",
    "CREATE MACRO f() AS 1": "CREATE is not a query",
    "CALL pragma_version()": "CALL is not a query",
    "CHECKPOINT": "is not a query",
    "VACUUM": "VACUUM is not a query",
    "BEGIN": "TRANSACTION is not a query",
    "PREPARE x AS SELECT 1": "PREPARE is not a query",
    "SELECT * FROM read_text('/etc/passwd')": "--write",
    "SELECT * FROM read_csv('/etc/passwd')": "--write",
    "SELECT * FROM '/etc/passwd'": "sql: ",
    "SELECT * FROM glob('/*')": "--write",
    "EXPLAIN ANALYZE COPY t TO 'x.csv'": "--write",
    "FROM read_parquet('http://127.0.0.1:9/x.parquet')": "sql: ",
    "SELECT nothing FROM t": "sql: ",
    "SELEC 1": "sql: ",
    "SELECT 1) TO 'x.csv'; COPY (SELECT 2": "sql: ",
    "SELECT getenv('HOME')": "sql: ",
}


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    """Return a small database."""
    path = tmp_path_factory.mktemp("queries") / "d.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b")
        connection.execute("CREATE TABLE runs (run VARCHAR)")
        connection.execute("CREATE VIEW evil AS SELECT * FROM read_text('/etc/hostname')")
    return path


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_is_answered(database, text):
    assert query(database, text)[1]


@pytest.mark.parametrize(("text", "words"), [*WRONG_QUERIES.items(), ("FROM evil", "--write")])
def test_more_than_a_query_is_an_error_and_leaves_no_file(database, text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = database.read_bytes()
    assert words in refused("sql: ", query, database, text)
    if text.strip(" ;"):
        refused("sql: ", query, database, text, tmp_path / "out.csv")
        (tmp_path / "out.csv").unlink(missing_ok=True)
    assert not list(tmp_path.iterdir()) and database.read_bytes() == content


def test_with_write_all_statements_are_permitted(database, tmp_path):
    target = tmp_path / "x.csv"
    assert query(database, f"COPY t TO '{target}'; SELECT count(*) FROM '{target}'", write=True)[1] == [(1,)]
    assert target.is_file()
