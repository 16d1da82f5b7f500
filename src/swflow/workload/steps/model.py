"""The step `model`: fit a workload model to a workload, and generate a synthetic workload from it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from swflow.errors import SwflowError, suggest
from swflow.files.atomic import write_text
from swflow.files.reading import read_json
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator
from swflow.jobs.table import Entry, Workload, check_columns, log_fields, require_known
from swflow.workload.clean import clean
from swflow.workload.models.arrivals import DailyCycle, LogArrivals, arrivals_from_dict, fit_daily_cycle
from swflow.workload.models.fit_measures import fit_measures
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.models.minh_wolters import REPEATS, LocalityModel, fit_locality, generate_locality
from swflow.workload.models.mixtures import COMPONENTS
from swflow.workload.models.pools import Plain, Pools, as_plain, pools_of
from swflow.workload.models.resample import RepetitionModel, ResampleModel, fit_repetition, fit_resample
from swflow.workload.models.song import MarkovModel, fit_markov, generate_markov, power_of_two_class
from swflow.workload.removals import without_removed

#: The models, with descriptions.
MODELS: dict[str, str] = {
    "minh-wolters": "run times with temporal locality, and sizes that depend on them (Minh and Wolters 2009)",
    "mbc-ls": "its predecessor, without repetitions of single run times (Li, Muskulus and Wolters 2007)",
    "lublin": "sizes and run times by Lublin and Feitelson (2003), for the log's machine",
    "song": "Markov chains over classes of sizes and run times, after Song, Ernemann and Yahyapour (2004)",
    "resample": "the log's jobs, drawn with replacement: marginals and correlation without any order",
    "repetition": "the log's jobs, each drawn repeatedly in a row as in the log (Feitelson's locality of sampling)",
}

#: The models that draw whole jobs of the log, whose estimates they keep.
_WHOLE_JOBS = ("resample", "repetition")

#: Values of the option ``arrivals`` of `fit`.
ARRIVALS = (LogArrivals.kind, DailyCycle.kind)

#: Marker and layout version of the file of a fitted model.
_FORMAT = {"swflow": "fitted workload model", "version": 1}

#: Header keys that a synthetic workload keeps: the start of the clock.
_KEPT_HEADER = ("UnixStartTime", "TimeZoneString", "TimeZone")


@dataclass(frozen=True)
class LublinModel:
    """The model of Lublin and Feitelson with its published parameters; only the machine depends on the log."""

    processors: int


_Attributes = LocalityModel | MarkovModel | LublinModel | ResampleModel | RepetitionModel


@dataclass(frozen=True, kw_only=True)
class FittedModel:
    """
    A model fitted to a workload, with everything that `generate` needs; its file has these fields, in this order.

    ``goodness`` has the measures of `swflow.workload.models.fit_measures` for one draw; see `with_goodness`.
    """

    model: str  # one of `MODELS`
    source: str  # name of the workload to which the model was fitted
    jobs: int  # jobs of the source
    machine: Machine
    options: Mapping[str, Any]  # options of the model: `window` and `repeats`
    header: Mapping[str, list[str]]  # start of the source's clock
    history: tuple[Entry, ...]  # history of the source
    goodness: Mapping[str, list[float | None]] = field(default_factory=dict)
    attributes: _Attributes  # model of run times and sizes
    arrivals: LogArrivals | DailyCycle
    estimates: Pools  # the requested times of the source's jobs of each class


def fit(
    workload: Workload,
    *,
    model: str = "minh-wolters",
    arrivals: str = "log",
    components: int = COMPONENTS,
    window: int = 1,
    repeats: str = "fitted",
) -> FittedModel:
    """
    Fit a model to a workload; the same workload gives the same model.

    Run times must be known; jobs that were cancelled in the queue are left out. ``model`` is one of `MODELS`.
    ``arrivals`` is "log", the source's submit times, or "daily-cycle", an arrival process with a daily and weekly
    cycle. For minh-wolters and mbc-ls, ``components`` is the largest number of Gaussians to try, and ``window`` that of
    `swflow.workload.models.minh_wolters.permute_labels`; 1 permutes nothing. For minh-wolters, ``repeats`` is as in
    `swflow.workload.models.minh_wolters.generate_locality`.
    """
    _check_options(model, arrivals, components, window, repeats)
    workload = _that_ran(workload)
    jobs = check_columns(workload.jobs, f"model: {workload.name}", ("requested_time",))
    run_times, processors = attributes_of(workload)
    requested = jobs["requested_time"].to_numpy().astype(float)
    attributes, keys = _fit_attributes(model, run_times, processors, requested, workload.machine, components)
    submit_times = jobs["submit_time"].to_numpy()
    return FittedModel(
        model=model,
        source=workload.name,
        jobs=jobs.height,
        machine=workload.machine,
        attributes=attributes,
        arrivals=LogArrivals(submit_times) if arrivals == "log" else fit_daily_cycle(submit_times, workload.header),
        estimates=pools_of(keys, requested) if model not in _WHOLE_JOBS else Pools({}, {}),
        options={"window": window, "repeats": repeats} if isinstance(attributes, LocalityModel) else {},
        header={key: list(workload.header[key]) for key in _KEPT_HEADER if key in workload.header},
        history=workload.history,
    )


def with_goodness(fitted: FittedModel, source: Workload) -> FittedModel:
    """
    Add the goodness of fit to a fitted model: the measures of one draw with as many jobs as the source.

    The draw is independent of the project's seed, so that the file depends only on the source and the options.
    """
    drawn = with_measures(generate(fitted, generator(0, fitted.source, fitted.model, "goodness")), source)
    return replace(fitted, goodness=drawn.history[-1]["fit"])


def drawn_with(fitted: FittedModel, **options: Any) -> FittedModel:
    """Return a fitted model with other draw options, ``window`` and ``repeats``; None keeps the value of the fit."""
    chosen = {name: value for name, value in options.items() if value is not None}
    kept: dict[str, Any] = {"window": 1, "repeats": "fitted", **fitted.options, **chosen}
    _check_options(fitted.model, fitted.arrivals.kind, 1, kept["window"], kept["repeats"])
    return replace(fitted, options=kept) if isinstance(fitted.attributes, LocalityModel) else fitted


def generate(fitted: FittedModel, rng: np.random.Generator, *, jobs: int | None = None) -> Workload:
    """
    Generate a workload from a fitted model.

    The workload has the name of the source and, by default, as many jobs. Submit times, run times (whole seconds),
    sizes and requested times are known. A requested time is drawn from those of the source's jobs of the same class
    that are at least as long as the run time; if there is none, it is the run time.
    """
    count = fitted.jobs if jobs is None else jobs
    if count < 1:
        raise SwflowError(f"model: jobs: {jobs}; expected at least 1")
    run_times, processors, requested = _generate_attributes(fitted, count, rng)
    known = {
        "job_id": np.arange(1, count + 1),
        "submit_time": fitted.arrivals.sample(count, rng),
        "run_time": run_times,
        "allocated_processors": processors,
        "requested_processors": processors,
        "requested_time": requested,
        "status": np.ones(count, dtype=np.int64),
    }
    header = {
        "Version": ["2.2"],
        "Computer": ["synthetic"],
        "Note": [f"{count} jobs by the model {fitted.model}, fitted to the {fitted.jobs} jobs of {fitted.source}"],
        "MaxProcs": [str(fitted.machine.processors)],
        "MaxNodes": [str(fitted.machine.nodes)],
        **fitted.header,
    }
    synthetic = clean(log_fields(known), fitted.machine, name=fitted.source, drop=(), header=header)
    entry: Entry = {
        "stage": "model",
        "model": fitted.model,
        "source": fitted.source,
        "arrivals": fitted.arrivals.kind,
        **fitted.options,
        "read": fitted.jobs,
        "kept": count,
        "removed": {},
    }
    return Workload(synthetic.jobs, fitted.machine, fitted.source, synthetic.header, (*fitted.history, entry))


def _that_ran(workload: Workload) -> Workload:
    """Return the jobs that were not cancelled in the queue, and count the others."""
    if "cancelled_after" not in workload.jobs.columns:
        return workload
    jobs, removed = without_removed(workload.jobs, [("cancelled-in-queue", pl.col("cancelled_after").is_not_null())])
    entry = {"stage": "select", "read": workload.jobs.height, "kept": jobs.height, "removed": removed}
    return workload.with_jobs(jobs, entry) if removed else workload


def with_measures(synthetic: Workload, source: Workload) -> Workload:
    """
    Add the goodness of fit to the last history entry of a synthetic workload.

    The entry's ``fit`` has the measures of `swflow.workload.models.fit_measures`, each with its value and the source's.
    """
    measures = fit_measures(*attributes_of(synthetic), *attributes_of(_that_ran(source)))
    fit = {name: list(pair) for name, pair in measures.items()}
    entry = synthetic.history[-1] | {"source": source.name, "fit": fit}
    return replace(synthetic, history=(*synthetic.history[:-1], entry))


def describe_fit(synthetic: Workload) -> str:
    """Format the origin of a synthetic workload, and its main measures if available, in one line."""
    entry = synthetic.history[-1]
    text = f"{entry['kept']:,} jobs by {entry['model']}, fitted to {entry['read']:,} of {entry['source']}"
    fit = entry.get("fit")
    if not fit:
        return text

    def number(name: str, place: int, form: str) -> str:
        return "undefined" if fit[name][place] is None else format(fit[name][place], form)

    return (
        f"{text}; squashed area {number('squashed_area_difference', 0, '+.1f')} %, correlation "
        f"{number('correlation', 0, '.3f')} (log: {number('correlation', 1, '.3f')}), KS distance of run times "
        f"{number('run_time_ks', 0, '.3f')}, of processors {number('processors_ks', 0, '.3f')}"
    )


def attributes_of(workload: Workload) -> tuple[np.ndarray, np.ndarray]:
    """Return run times (s) and sizes by arrival; raise an error if one is unknown."""
    remedy = "; clean the log with the default rules, which remove them"
    require_known(workload.jobs, ("run_time", "processors"), f"model: {workload.name}", remedy)
    return workload.jobs["run_time"].to_numpy(), workload.jobs["processors"].to_numpy()


def write_model(fitted: FittedModel, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a JSON file, atomically; the same model gives an identical file."""
    write_text(path, _readable({**_FORMAT, **as_plain(fitted), "history": list(fitted.history)}) + "\n")


def read_model(path: str | os.PathLike[str]) -> FittedModel:
    """Read a fitted model that `write_model` wrote."""
    what = "a fitted model; create one with: swflow model WORKLOAD --save-fit MODEL.json"
    content = read_json(path, what, _FORMAT)
    try:
        values = {
            "machine": Machine(**content["machine"]),
            "history": tuple(content["history"]),
            "attributes": _attributes_from(content["model"], content["attributes"]),
            "arrivals": arrivals_from_dict(content["arrivals"]),
            "estimates": Pools.from_dict(content["estimates"]),
        }
        return FittedModel(**{name: value for name, value in content.items() if name not in _FORMAT} | values)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise SwflowError(f"{path}: incomplete fitted model ({type(error).__name__}: {error}); fit it again") from None


def _check_options(model: str, arrivals: str, components: int, window: int, repeats: str) -> None:
    choices = (("model", model, MODELS), ("arrivals", arrivals, ARRIVALS), ("repeats", repeats, REPEATS))
    for option, value, known in choices:
        if value not in known:
            raise SwflowError(f"model: {option}: unknown value {value!r}{suggest(value, known)}")
    for option, number in (("components", components), ("window", window)):
        if number < 1:
            raise SwflowError(f"model: {option}: {number}; expected at least 1")


def _fit_attributes(
    model: str, run_times: np.ndarray, processors: np.ndarray, requested: np.ndarray, machine: Machine, components: int
) -> tuple[_Attributes, np.ndarray]:
    """Fit the model of run times and sizes; return it with the class of every job, on which estimates depend."""
    if len(run_times) < 2:
        raise SwflowError("model: at least 2 jobs are needed")
    if model in ("minh-wolters", "mbc-ls"):
        return fit_locality(run_times, processors, components=components)
    if model == "song":
        return fit_markov(run_times, processors)
    if model == "lublin":
        return LublinModel(machine.processors), power_of_two_class(run_times).astype(str)
    fit_jobs = fit_repetition if model == "repetition" else fit_resample
    return fit_jobs(run_times, processors, requested), np.full(len(run_times), "all")


def _attributes_from(model: str, content: Plain) -> _Attributes:
    """Create the model of run times and sizes from JSON-compatible data."""
    if model not in MODELS:
        raise ValueError(f"unknown model {model!r}{suggest(model, MODELS)}")
    if model == "song":
        return MarkovModel.from_dict(content)
    if model in _WHOLE_JOBS:
        return (ResampleModel if model == "resample" else RepetitionModel).from_dict(content)
    return LublinModel(**content) if model == "lublin" else LocalityModel.from_dict(content)


def _generate_attributes(
    fitted: FittedModel, jobs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw run times, sizes and requested times (NaN where unknown)."""
    attributes = fitted.attributes
    if isinstance(attributes, ResampleModel | RepetitionModel):
        return attributes.draw(jobs, rng)
    if isinstance(attributes, LocalityModel):
        repeats = None if fitted.model == "mbc-ls" else fitted.options["repeats"]
        run_times, processors, keys = generate_locality(
            attributes, jobs, rng, repeats=repeats, window=fitted.options["window"]
        )
    elif isinstance(attributes, MarkovModel):
        run_times, processors, keys = generate_markov(attributes, jobs, rng)
    else:
        made = generate_lublin(jobs, attributes.processors, rng, classes="combined", estimates="none")
        run_times, processors = made["run_time"].to_numpy(), made["requested_processors"].to_numpy()
        keys = power_of_two_class(run_times).astype(str)
    return run_times, processors, fitted.estimates.draw(keys, rng, least=run_times)


def _readable(content: Any, indent: str = "") -> str:
    """Return JSON with one line per key; lists of numbers and small tables stay on one line."""
    if isinstance(content, Mapping) and content:
        line = json.dumps(content, ensure_ascii=False)
        if len(line) <= 100:
            return line
        inner = indent + " "
        lines = (
            f"{inner}{json.dumps(str(name), ensure_ascii=False)}: {_readable(value, inner)}"
            for name, value in content.items()
        )
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(content, list) and any(isinstance(item, Mapping | list) for item in content):
        inner = indent + " "
        return "[\n" + ",\n".join(inner + _readable(item, inner) for item in content) + f"\n{indent}]"
    return json.dumps(content, ensure_ascii=False)
