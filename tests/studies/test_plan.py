"""Test the expansion of studies to runs, and of settings to options of commands."""

from pathlib import Path

import jsonschema
import pytest
import typer.main
import yaml

from swflow.cli import application
from swflow.errors import SwflowError
from swflow.log.catalogue import load_catalogue
from swflow.scheduling.options import CHOICES, OPTIONS
from swflow.studies.plan import check_schedulers, plan_studies, planned_replicates, with_kept, with_titles
from swflow.studies.schema_errors import explain, most_useful
from swflow.studies.step_options import command_options, step_options, sweep_options

ROOT = Path(__file__).parents[2]
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())

CONFIG = {
    "logs": None,
    "steps": {"ran": {"kind": "select"}},
    "schedulers": {"easy": {}, "fcfs": {}},
    "studies": {"one": {"logs": ["A", "B"], "runs": [{"workloads": ["{log}+ran"], "schedulers": ["easy", "log"]}]}},
}


def changed(**changes):
    """Return the config with changes in its only study."""
    return CONFIG | {"studies": {"one": CONFIG["studies"]["one"] | changes}}


def test_studies_share_runs_and_logs_limit_them():
    assert plan_studies(CONFIG, ["A", "B"]).runs == {"A+ran": ["easy", "log"], "B+ran": ["easy", "log"]}
    assert plan_studies(CONFIG | {"logs": ["B"]}, ["A", "B"]).runs == {"B+ran": ["easy", "log"]}
    more = changed(runs=[*CONFIG["studies"]["one"]["runs"], {"workloads": ["A+ran"], "schedulers": ["fcfs"]}])
    assert plan_studies(more, ["A", "B"]).runs["A+ran"] == ["easy", "fcfs", "log"]


def test_all_stands_for_every_scheduler_of_the_config():
    every = changed(runs=[{"workloads": ["{log}"], "schedulers": "all"}], bounds=True) | {"logs": ["B"]}
    assert plan_studies(every, ["A", "B"]).runs == {"B": ["easy", "fcfs"]}
    assert plan_studies(every, ["A", "B"]).bounds == ["B"]
    assert plan_studies(CONFIG, ["A", "B"]).bounds == []


def test_reasons_of_waits_are_those_of_studies_that_want_them():
    plan = plan_studies(changed(wait_reasons=True), ["A", "B"])
    assert plan.reasons == sorted(plan.runs)
    assert plan_studies(CONFIG, ["A", "B"]).reasons == []


def test_the_leaderboard_has_every_order_of_the_policies_under_easy_and_conservative_backfilling():
    paths = (ROOT / f"config/{name}.yaml" for name in ("policies", "leaderboard"))
    policies, ranked = (yaml.safe_load(path.read_text()) for path in paths)
    schedulers = policies["schedulers"] | ranked["schedulers"]
    catalogue = load_catalogue([ROOT / "config/logs.yaml"])
    runs = plan_studies({"logs": None, "steps": {}, **ranked, "schedulers": schedulers}, catalogue).runs
    assert all(names == sorted(schedulers) for names in runs.values())
    for name in policies["schedulers"]:
        assert schedulers[name]["backfill"] == "easy"
        assert schedulers[f"{name}-conservative"] == {"order": name, "backfill": "conservative"}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (changed(logs=["A", "KTH"]), "studies: one: logs: unknown log 'KTH'"),
        (CONFIG | {"logs": ["C"]}, "logs: unknown log 'C'"),
        (changed(runs=[{"workloads": ["{log}+rann"], "schedulers": ["easy"]}]), "unknown step 'rann'; did you mean"),
        (changed(runs=[{"workloads": ["{log}"], "schedulers": ["eesy"]}]), "unknown scheduler 'eesy'; did you mean"),
        (changed(logs=["A"]) | {"logs": ["B"]}, "no runs"),
    ],
)  # fmt: skip
def test_errors_locate_unknown_names(config, words):
    with pytest.raises(SwflowError, match=words):
        plan_studies(config, ["A", "B"])


def test_what_if_tables_are_of_a_study_and_a_workload():
    entry = {"workloads": ["{log}+ran"], "schedulers": ["easy", "fcfs"], "processors": ["+20%"]}
    config = changed(whatif=[entry])
    wanted = {"schedulers": ["easy", "fcfs"], "processors": ["+20%"]}
    assert plan_studies(config, ["A", "B"]).whatifs == {("one", "A+ran"): wanted, ("one", "B+ran"): wanted}
    assert list(plan_studies(config | {"logs": ["B"]}, ["A", "B"]).whatifs) == [("one", "B+ran")]
    for wrong, words in (
        (entry | {"schedulers": ["eesy"]}, r"studies: one: whatif\[0\]: schedulers: unknown scheduler 'eesy'"),
        (entry | {"workloads": ["{log}+rann"]}, r"whatif\[0\]: workloads: unknown step 'rann'"),
    ):
        with pytest.raises(SwflowError, match=words):
            plan_studies(changed(whatif=[wrong]), ["A", "B"])
    with pytest.raises(SwflowError, match=r"whatif\[1\]: workloads: A\+ran: is in two entries; expected one"):
        plan_studies(changed(whatif=[entry, entry]), ["A", "B"])
    assert plan_studies(changed(whatif=[entry], runs=[]), ["A", "B"]).runs == {}


@pytest.mark.parametrize("wrong", [{"processors": [0]}, {"estimates": ["good"]}, {"arrivals": [0]}, {"runs": 1}, {}])
def test_what_if_options_are_checked_by_the_schema(wrong):
    whatif = SCHEMA["properties"]["studies"]["additionalProperties"]["properties"]["whatif"] | {
        "$defs": SCHEMA["$defs"]
    }
    entry = {"workloads": ["{log}"], "schedulers": ["easy"], "processors": ["+20%", 64], "estimates": ["perfect", 2]}
    if not wrong:
        jsonschema.validate([entry], whatif)
        return
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([entry | wrong], whatif)


SEEDED = CONFIG | {"seed": 7, "steps": {"ran": {"kind": "select"}, "high": {"kind": "memory", "high": 0.8}}}


def seeded(workload, **more):
    runs = [{"workloads": [workload], "schedulers": ["easy"]}]
    return SEEDED | {"studies": {"one": {"logs": ["A", "B"], "runs": runs, **more}}}


def test_each_replicate_is_a_workload():
    runs = plan_studies(seeded("{log}+ran+high@{seed}", seeds=2), ["A", "B"]).runs
    assert list(runs) == ["A+ran+high@1", "A+ran+high@2", "B+ran+high@1", "B+ran+high@2"]
    assert step_options("high@2", SEEDED) == "--high 0.8 --seed 7"
    assert step_options("ran", SEEDED) == ""


@pytest.mark.parametrize(
    ("workload", "more", "words"),
    [
        ("{log}+high@{seed}", {}, "studies: one: seeds: missing"),
        ("{log}+ran@{seed}", {"seeds": 2}, "ran@1: a step of kind select draws no random numbers"),
        ("{log}+high@0", {}, "unknown step 'high@0'"),
    ],
)
def test_replicates_of_deterministic_steps_are_refused(workload, more, words):
    with pytest.raises(SwflowError, match=words):
        plan_studies(seeded(workload, **more), ["A", "B"])


def test_figures_show_one_replicate():
    config = seeded("{log}+high@{seed}", seeds=3, figures=["heatmap"])
    assert plan_studies(config, ["A", "B"]).figures["one/A-heatmap"]["runs"] == ["A+high@1/easy"]


def swept(**entry):
    """Return a config whose study has one sweep."""
    entry = {"workloads": ["{log}+ran"], "sweeps": ["d"], "schedulers": ["easy"]} | entry
    return changed(sweeps=[entry]) | {"sweeps": {"d": {"processors": 64, "d": ["0:100:5"]}}, "seed": 7}


def test_sweeps_are_planned_with_their_schedulers_and_studies():
    config = swept()
    assert plan_studies(config | {"logs": ["B"]}, ["A", "B"]).sweeps == {("B+ran", "d"): ["easy"]}
    assert sweep_options("d", config) == ("sweep", "--d 0:100:5 --processors 64 --seed 7")
    for entry, words in (
        ({"sweeps": ["e"]}, r"studies: one: sweeps\[0\]: sweeps: unknown sweep 'e'"),
        ({"schedulers": ["log"]}, "no recorded schedule"),
        ({"workloads": ["{log}+rann"]}, "unknown step 'rann'"),
    ):
        with pytest.raises(SwflowError, match=words):
            plan_studies(swept(**entry), ["A", "B"])


def test_kept_draws_of_a_sweep_become_runs_of_steps():
    config = swept()
    assert with_kept(config) == config
    kept = {"processors": 64, "d": [0, 50], "variant": ["precise-size", "precise"], "copies": 3, "keep": "outcomes"}
    wide = with_kept(config | {"sweeps": {"d": kept}})
    runs = wide["studies"]["one"]["runs"]
    assert runs[:-1] == config["studies"]["one"]["runs"]
    names = [f"precise-size-64-d{d}-c3" for d in (0, 50)] + [f"precise-64-d{d}" for d in (0, 50)]
    assert runs[-1] == {"workloads": [f"{{log}}+ran+{name}@1" for name in names], "schedulers": ["easy"]}
    scaled = {"kind": "scale", "processors": 64}
    assert wide["steps"]["precise-size-64-d0-c3"] == {**scaled, "d": 0, "variant": "precise-size", "copies": 3}
    assert wide["steps"]["precise-64-d50"] == {**scaled, "d": 50, "variant": "precise"}
    for name in names:
        jsonschema.validate(wide["steps"][name], SCHEMA["$defs"]["scale"] | {"$defs": SCHEMA["$defs"]})
    assert "B+ran+precise-64-d50@1" in plan_studies(wide, ["A", "B"]).runs
    assert sweep_options("d", wide) == sweep_options("d", config | {"sweeps": {"d": kept | {"keep": {"d": 0}}}})
    factors = {"processors": 64, "factor": "2:2.5:0.25", "seeds": 4, "keep": {"factor": [2.25], "seeds": 2}}
    few = with_kept(config | {"sweeps": {"d": factors}})["studies"]["one"]["runs"][-1]["workloads"]
    assert few == ["{log}+ran+precise-64-d50-f2.25@1", "{log}+ran+precise-64-d50-f2.25@2"]


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({"search": True, "keep": "outcomes"}, "sweeps: d: keep: a search chooses its own factors"),
        ({"excess": 2, "keep": "outcomes"}, "excess depends on the source"),
        ({"d": [0, 50], "keep": {"d": [0, 40]}}, "sweeps: d: keep: d: the sweep has no 40"),
        ({"keep": {"variant": "integer"}}, "variant: the sweep has no integer"),
        ({"seeds": 2, "keep": {"seeds": 3}}, "seeds: 3; the sweep has 2 draws"),
        ({"d": 7, "keep": "outcomes"}, "precise-64-d7: name of another step of the config"),
    ],
)
def test_a_draw_that_cannot_be_kept_is_refused(sweep, words):
    config = swept() | {"sweeps": {"d": {"processors": 64, **sweep}}}
    config = config | {"steps": config["steps"] | {"precise-64-d7": {"kind": "select", "jobs": 1}}}
    with pytest.raises(SwflowError, match=words):
        with_kept(config)


def test_the_schema_of_sweeps_and_their_commands_have_the_same_options():
    commands = typer.main.get_command(application()).commands
    spec = SCHEMA["properties"]["sweeps"]["additionalProperties"]
    of_search = {"processors", "d", "seeds", "tolerance", "first_crossing", "step"}
    assert of_search <= {parameter.name for parameter in commands["adjust"].params}
    names = spec["properties"].keys() - {"search", "tolerance", "first_crossing", "step", "keep"}
    assert names <= {parameter.name for parameter in commands["sweep"].params}
    checker = jsonschema.Draft202012Validator(spec | {"$defs": SCHEMA["$defs"]})
    for content, good in (
        ({"d": "0:100:1", "variant": ["precise"], "factor": [1, "2:3:0.5"]}, True),
        ({"search": True, "tolerance": 0.01, "d": 40}, True),
        ({"search": True, "d": "0:100:1"}, False),
        ({"search": True, "factor": 3}, False),
        ({"tolerance": 0.01}, False),
        ({"d": "0:100"}, False),
        ({"keep": "outcomes"}, True),
        ({"keep": {"d": [1, "50:99:49"], "variant": "precise", "seeds": 2}}, True),
        ({"keep": "jobs"}, False),
        ({"keep": {}}, False),
        ({"keep": {"excess": 2}}, False),
    ):
        assert checker.is_valid({"processors": 64} | content) == good


def test_schedulers_of_the_config_are_checked():
    with pytest.raises(SwflowError, match="reserved for replaying"):
        check_schedulers({"schedulers": {"log": {}}})


def test_options_do_not_depend_on_the_order_of_keys():
    assert command_options({"b": [1, 2], "a_b": True, "c": None, "d": False}) == "--a-b --b 1 --b 2 --no-d"
    assert command_options({"where": "x == 1"}) == "--where 'x == 1'"


@pytest.mark.parametrize("file", ["config.yaml", "archive.yaml", "minimal.yaml", "leaderboard.yaml"])
def test_configs_fit_the_schema_and_the_catalogue(file):
    config = yaml.safe_load((ROOT / "config" / file).read_text())
    jsonschema.validate(config, SCHEMA)
    config = with_titles({"schedulers": {}} | config)
    check_schedulers(config)
    catalogue = load_catalogue(ROOT / "config/logs.yaml")
    assert plan_studies(with_kept({"logs": None, "steps": {}, "schedulers": {}} | config), catalogue).runs


def test_only_defaults_of_the_schema_are_null():
    """A comma in an unquoted description begins a key without a value."""

    def names_of_nulls(part):
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for name, value in items:
            yield from [name] if value is None and isinstance(part, dict) else names_of_nulls(value)

    assert {*names_of_nulls(SCHEMA)} == {"default"}


def test_schema_and_code_have_the_same_options():
    schedulers = SCHEMA["properties"]["schedulers"]["additionalProperties"]["properties"]
    assert schedulers.keys() == {"title", *OPTIONS}
    for option, choices in CHOICES.items():
        known = set(schedulers[option]["enum"])
        assert known == choices.keys() - {"log"}
    commands = typer.main.get_command(application()).commands
    for kind in SCHEMA["properties"]["steps"]["additionalProperties"]["properties"]["kind"]["enum"]:
        options = {parameter.name for parameter in commands[kind].params}
        assert SCHEMA["$defs"][kind]["properties"].keys() - {"kind"} <= options


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"studys": {}}, "unknown key 'studys'; did you mean 'studies'"),
        ({"studies": {"a": {"logs": ["x"], "runs": []}}}, "studies: a: runs: "),
        ({"schedulers": {"e": {"backfil": "easy"}}}, "schedulers: e: unknown key 'backfil'; did you mean 'backfill'"),
        (
            {"schedulers": {"e": {"backfill": "esy"}}},  # prose: ignore
            "backfill: unknown value 'esy'; did you mean 'easy'",
        ),
        ({"steps": {"s": {"kind": "select", "job": 3}}}, "steps: s: unknown key 'job'; did you mean 'jobs'"),
        ({"seed": "one"}, "seed: 'one'; expected a whole number"),
        ({"steps": {"a b": {"kind": "machine"}}}, "steps: 'a b'; expected a name of letters, digits, "),
        ({"steps": {"s": {"jobs": 3}}}, "steps: s: 'kind' is missing; given: jobs"),
    ],
)
def test_a_wrong_config_is_one_line_that_names_the_key(config, words):
    studies = {"studies": {"mine": {"logs": ["x"], "runs": [{"workloads": ["x"], "schedulers": ["log"]}]}}}
    errors = list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(studies | config))
    text = explain(most_useful(errors))
    assert words in text
    assert "\n" not in text


def test_a_misspelt_key_is_named_rather_than_the_key_that_is_missing_therefore():
    errors = jsonschema.Draft202012Validator(SCHEMA).iter_errors({"studys": {}})
    assert explain(most_useful(errors)) == "unknown key 'studys'; did you mean 'studies'?"


def test_replicates_of_different_steps_are_not_summarized_together():
    message = r"A\+draw\+like@1 and A\+draw@1\+like differ in the steps .* A\+draw\+like would summarize both"
    with pytest.raises(SwflowError, match=message):
        planned_replicates(["A+draw+like@1", "A+draw@1+like"])
    names = ["A+draw+like", "A+draw+like@1", "A+draw+like@2"]
    assert planned_replicates(names) == {"A+draw+like": names[1:]}


def test_the_first_planned_replicate_is_drawn_whatever_its_number():
    runs = [{"workloads": ["{log}", "{log}+draw@3", "{log}+draw@2"], "schedulers": ["easy"]}]
    study = {"logs": ["A"], "figures": ["heatmap"], "runs": runs}
    config = {
        "logs": None,
        "steps": {"draw": {"kind": "moldable"}},
        "schedulers": {"easy": {}},
        "studies": {"s": study},
    }
    assert plan_studies(config, ["A"]).figures["s/A-heatmap"]["runs"] == ["A/easy", "A+draw@2/easy"]
