"""Forecasts for other programs: a JSON document, whose schema is `forecast.schema.json`, and metrics of Prometheus."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from swflow.forecast.forecaster import Forecast, Forecaster
from swflow.forecast.words import COLUMNS, as_of
from swflow.jobs.header import Header

#: The version of the document; a change that breaks readers raises it.
VERSION = 1


def document(forecaster: Forecaster, forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Return forecasts as the content of a JSON document."""
    times = [(one.name, one.label, _number(one.seconds)) for one in forecaster.times]
    return {
        "version": VERSION,
        "log": forecaster.name,
        "as_of": as_of(forecaster),
        "moment": forecaster.now,
        "method": forecaster.method,
        "level": 0.9,
        "coverage": forecaster.coverage,
        "forecasts": forecaster.forecasts,
        "jobs": forecaster.jobs,
        "rows": [
            {
                **{name: _number(value) for name, value in zip(COLUMNS, _values(one), strict=True)},
                "chances": [
                    {"name": name, "label": label, "within": within, "chance": _number(chance)}
                    for (name, label, within), chance in zip(times, one.chances, strict=True)
                    if within is not None
                ],
            }
            for one in forecasts
        ],
    }


def json_text(forecaster: Forecaster, forecasts: Sequence[Forecast]) -> str:
    """Return forecasts as the text of a JSON document."""
    return json.dumps(document(forecaster, forecasts), indent=1, allow_nan=False)


def _values(forecast: Forecast) -> tuple[Any, ...]:
    job = None if forecast.job is None else str(forecast.job)
    return job, *forecast[1 : len(COLUMNS)]


def _number(value: Any) -> Any:
    """Return a value; None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def prometheus_text(forecaster: Forecaster, forecasts: Sequence[Forecast]) -> str:
    """
    Return forecasts as metrics in the text format of Prometheus, without names of users.

    References
    ----------
    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    return "".join(f"{line}\n" for line in _metrics(forecaster, forecasts))


def _metrics(forecaster: Forecaster, forecasts: Sequence[Forecast]) -> Iterator[str]:
    start = Header.of(forecaster.common.get("header")).start
    moment = None if start is None else start + forecaster.now
    log = {"log": forecaster.name}
    yield from _metric("as_of_seconds", "Moment of the forecasts in Unix seconds.", [(log, moment)])
    yield from _metric(
        "coverage_ratio", "Share of the past four weeks' intervals that held.", [(log, forecaster.coverage)]
    )
    yield from _metric(
        "checked_forecasts", "Forecasts of the past four weeks with a known outcome.", [(log, forecaster.forecasts)]
    )
    named = [(_labels(one), one) for one in forecasts]
    ends = [
        ({**labels, "quantile": level}, value)
        for labels, one in named
        for level, value in (("0.05", one.low), ("0.5", one.median), ("0.95", one.high))
    ]
    about = "Seconds from the moment, or from that of its condition, until the start of a job."
    yield from _metric("start_seconds", about, ends)
    chances = [
        ({**labels, "within": time.name}, chance)
        for labels, one in named
        for time, chance in zip(forecaster.times, one.chances, strict=True)
    ]
    yield from _metric("start_chance_ratio", "Chance of a start within a time.", chances)
    conditions = [({**labels, "condition": one.condition}, 1) for labels, one in named if one.condition]
    yield from _metric("condition_info", "Why a job has no forecast, or on what it depends.", conditions)


def _metric(name: str, about: str, samples: Sequence[tuple[Mapping[str, str], float | None]]) -> Iterator[str]:
    known = [(labels, value) for labels, value in samples if _number(value) is not None]
    if not known:
        return
    yield f"# HELP swflow_forecast_{name} {about}"
    yield f"# TYPE swflow_forecast_{name} gauge"
    for labels, value in known:
        text = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
        yield f"swflow_forecast_{name}{{{text}}} {value!r}"


def _labels(forecast: Forecast) -> dict[str, str]:
    job = {} if forecast.job is None else {"job": str(forecast.job)}
    limit = "" if math.isnan(forecast.limit) else f"{forecast.limit:.0f}"
    return {**job, "partition": forecast.partition, "processors": str(forecast.processors), "time_limit": limit}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
