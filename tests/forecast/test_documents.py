"""Forecasts for other programs: the JSON document keeps to its schema, and the metrics to Prometheus' format."""

import json
import math
import re
from importlib.resources import files

import jsonschema
import numpy as np
import polars as pl
import pytest

from helpers.forecasts import NOW, known_forecaster
from swflow.forecast.chances import Chances
from swflow.forecast.documents import document, json_text, prometheus_text
from swflow.forecast.forecaster import Forecaster
from swflow.forecast.queued import Queue, Queued
from swflow.forecast.words import COLUMNS, table

SCHEMA = json.loads(files("swflow.forecast").joinpath("forecast.schema.json").read_text("utf-8"))


@pytest.fixture
def known() -> Forecaster:
    found = known_forecaster()
    count = 100
    found.chances = Chances(
        np.tile([1.0, 2.0, 3.0], (count, 1)), np.linspace(0, 5, count), np.ones(count, bool), np.zeros(count, bool)
    )
    found.hits, found.forecasts, found.jobs = 90, 100, 80
    ordinary = Queued("1", 'an"n', "batch", 4, 3600.0, NOW - 600, None, "physics", "normal", "Priority")
    found.set_queue(Queue([
        ordinary, ordinary._replace(job="2_7", reason="JobHeldUser"), ordinary._replace(job="3", limit=math.nan),
        ordinary._replace(job="4", reason="Dependency", dependency="afterok:1"),
    ]), "q.json")  # fmt: skip
    return found


def test_the_document_keeps_to_its_schema(known):
    forecasts = known.of_waiting()
    content = json.loads(json_text(known, forecasts))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(content, SCHEMA)
    assert content["as_of"] == "2024-01-23T22:03:20+00:00" and content["coverage"] == 0.9
    rows = {row["job_id"]: row for row in content["rows"]}
    assert rows["2_7"]["median"] is None and "no forecast" in rows["2_7"]["condition"]
    assert {one["chance"] for one in rows["2_7"]["chances"]} == {None}
    assert rows["3"]["time_limit"] is None and rows["3"]["median"] > 0
    assert [one["name"] for one in rows["1"]["chances"]] == [
        "at_once", "within_1h", "within_4h", "by_morning", "within_24h"
    ]  # fmt: skip
    assert all(0 <= one["chance"] <= 1 for one in rows["1"]["chances"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content | {"rows": [rows["1"] | {"odd": 1}]}, SCHEMA)


def test_a_document_of_a_log_without_a_start_keeps_to_the_schema(known):
    known.common["header"] = {}
    content = document(known, known.of_requests([known.describe(4, 60.0, "batch", None)]))
    jsonschema.validate(json.loads(json.dumps(content)), SCHEMA)
    assert content["as_of"] is None
    assert "by_morning" not in [one["name"] for one in content["rows"][0]["chances"]]


LINE = re.compile(r'swflow_forecast_[a-z_]+\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\} [-+0-9.e]+')


def test_metrics_have_the_format_of_prometheus(known):
    known.name = 'a "site"\\\n'
    text = prometheus_text(known, known.of_waiting())
    assert text.endswith("\n")
    seen: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in seen and line.endswith(" gauge")
            seen.add(name)
        elif not line.startswith("# HELP "):
            assert LINE.fullmatch(line), line
            assert line.partition("{")[0] == name
    assert 'an"n' not in text and "NaN" not in text and "nan" not in text
    assert 'job="2_7"' in text.partition("condition_info")[2] and 'quantile="0.5"' in text
    assert f'swflow_forecast_as_of_seconds{{log="a \\"site\\"\\\\\\n"}} {NOW - 600}' in text


def test_a_table_has_a_column_for_each_chance(known):
    found = table(known, known.of_waiting())
    assert found.columns == [*COLUMNS, "at_once", "within_1h", "within_4h", "by_morning", "within_24h"]
    assert found.filter(pl.col("job_id") == "2_7").select("low", "at_once").row(0) == (None, None)
