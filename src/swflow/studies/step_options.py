"""The options of commands by the config: steps, models that are fitted, and sweeps."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from swflow.names import (
    split_step,
    steps_of,
)

#: A config, or a part of one, as YAML gives it.
Config = Mapping[str, Any]

#: The kinds of steps that draw random numbers; their commands accept a seed.
SEEDED_KINDS = ("memory", "model", "moldable", "scale")

#: The options of a step of kind ``model`` that apply only when jobs are drawn from a fitted model.
DRAW_OPTIONS = ("jobs", "window", "repeats")


def sources_behind(workload: str, steps: Config) -> list[str]:
    """
    Return the workloads that a workload depends on: itself, and the workloads that models are fitted to.

    Examples
    --------
    >>> sources_behind("SDSC-SP2+joint@3", {"joint": {"kind": "memory", "like": "LANL-CM5"}})
    ['SDSC-SP2+joint@3', 'LANL-CM5']
    """
    likes = (steps[split_step(step)[0]].get("like") for step in steps_of(workload))
    return [workload, *(like for like in likes if like)]


def step_options(step: str, config: Config) -> str:
    """
    Return the options of the command of a step, which may be a replicate.

    Examples
    --------
    >>> step_options("few@2", {"seed": 7, "steps": {"few": {"kind": "select", "jobs": 10}}})
    '--jobs 10'
    """
    content = config["steps"][split_step(step)[0]]
    seed = {"seed": config["seed"]} if content["kind"] in SEEDED_KINDS else {}
    fitted = {"like", *fit_options(content)} if is_fitted(content) else ()
    left = {name: value for name, value in (content | seed).items() if name != "kind" and name not in fitted}
    return command_options(left)


def is_fitted(content: Config) -> bool:
    """Return whether a step draws from a fit: kind ``model``, or memory demands that are ``like`` a log's."""
    return content.get("kind") == "model" or "like" in content


def fit_options(content: Config) -> dict[str, Any]:
    """
    Return the options of a step that apply to fitting its model, not to drawing jobs or demands.

    Examples
    --------
    >>> fit_options({"kind": "model", "model": "song", "arrivals": "daily-cycle", "jobs": 1000})
    {'model': 'song', 'arrivals': 'daily-cycle'}
    >>> fit_options({"kind": "memory", "like": "LANL-CM5", "high": 1})
    {'from_log': 'used'}
    """
    if "like" in content:
        return {"from_log": content.get("from_log", "used")}
    fitted = {"model": "minh-wolters", "arrivals": "log", **content}
    return {name: value for name, value in fitted.items() if name not in ("kind", *DRAW_OPTIONS)}


def fit_name(content: Config) -> str:
    """
    Return the name of a fit; steps that differ only in how jobs are drawn share it.

    Examples
    --------
    >>> fit_name({"kind": "model", "model": "mbc-ls", "components": 6}), fit_name({"model": "song", "jobs": 10})
    ('mbc-ls-6', 'song')
    >>> fit_name({"kind": "memory", "like": "LANL-CM5", "from_log": "requested"})
    'memory-requested'
    """
    if "like" in content:
        return f"memory-{fit_options(content)['from_log']}"
    options = fit_options(content)
    model, arrivals = options.pop("model"), options.pop("arrivals")
    others = [str(options[name]) for name in sorted(options)]
    return "-".join([model, *([] if arrivals == "log" else [arrivals]), *others])


def sweep_options(sweep: str, config: Config) -> tuple[str, str]:
    """
    Return the command of a sweep and its options.

    Examples
    --------
    >>> config = {"seed": 1, "sweeps": {"a": {"processors": 64, "search": True, "tolerance": 0.02}}}
    >>> sweep_options("a", config)
    ('adjust', '--processors 64 --seed 1 --tolerance 0.02')
    """
    content = dict(config["sweeps"][sweep]) | {"seed": config["seed"]}
    content.pop("keep", None)
    command = "adjust" if content.pop("search", False) else "sweep"
    return command, command_options(content)


def command_options(options: Config) -> str:
    """
    Return the options of a step or a log as command-line options, quoted for a shell.

    A list becomes a repeated option, a mapping a repeated option ``KEY=VALUE``. Null is omitted, and ``none`` in a
    mapping. Options are sorted by name, so that the order in the config does not matter.

    Examples
    --------
    >>> command_options({"without_status": [5], "jobs": 10000, "where": "user_id == 50"})
    "--jobs 10000 --where 'user_id == 50' --without-status 5"
    >>> command_options({"nodes": 28, "capacities": {"memory_bandwidth": 6000}})
    '--capacities memory_bandwidth=6000 --nodes 28'
    >>> command_options({"resources": {"gpus": None, "licenses": 4}})
    '--resources gpus=none --resources licenses=4'
    """
    words: list[str] = []
    for name in sorted(options):
        value = options[name]
        option = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        elif value is not None:
            if isinstance(value, Mapping):
                texts = {key: "none" if one is None else one for key, one in value.items()}
                value = [f"{key}={texts[key]}" for key in sorted(texts, key=str)]
            for item in value if isinstance(value, list) else [value]:
                words += [option, json.dumps(item) if isinstance(item, dict) else str(item)]
    return shlex.join(words)
