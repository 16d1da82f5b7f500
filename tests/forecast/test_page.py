"""The page of forecasts: names of logs and partitions are text, whatever they contain."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

from swflow.forecast.chances import times
from swflow.forecast.forecaster import Forecast
from swflow.forecast.page import write_page

NAMES = [
    "@data@", "@coverage@", "@title@", "<!--<script>", "</script><script>alert(1)</script>", "\"'&quot;<b>", "\\u003c",
    "\u2028", "</title>", "${alert(1)}", "{{ 1 }}", "]]>",
]  # fmt: skip


class Texts(HTMLParser):
    """The tags of a page, and the text in each kind of element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags, self.texts, self.inside = [], {}, ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag

    def handle_data(self, data):
        self.texts[self.inside] = self.texts.get(self.inside, "") + data


def page_of(tmp_path, log: str, partitions: list[str], **common) -> Texts:
    queues = range(len(partitions))
    forecaster = SimpleNamespace(
        name=log, sweep=SimpleNamespace(processors=64), labels=dict(enumerate(partitions)), coverage=None, jobs=0,
        common={"sizes": Counter([1, 2]), "limits": Counter([60.0]), "queues": Counter(queues), **common},
        now=0.0, times=times(0.0, common.get("header")),
        of_requests=lambda jobs: [
            Forecast(None, 1, 60.0, "", "", 0.0, 1.0, 2.0, 3.0, "", (0.25, 0.5, 0.75, 1.0, 1.0)) for _ in jobs
        ],
    )  # fmt: skip
    write_page(forecaster, tmp_path / "page.html")
    return Texts((tmp_path / "page.html").read_text("utf-8"))


@pytest.mark.parametrize("log", [f"x{name.replace('/', '')}.txt" for name in NAMES])
def test_names_are_text(tmp_path, log):
    plain, found = page_of(tmp_path, "x.txt", ["a"]), page_of(tmp_path, log, NAMES)
    assert found.tags == plain.tags
    title = f"When will my job start? {log}"
    assert found.texts["title"].strip() == found.texts["h1"].strip() == title
    script = found.texts["script"]
    assert "<!--" not in script and "<script" not in script.lower()
    data = json.loads(re.search("^const data = (.*);$", script, re.MULTILINE)[1])
    assert sorted(data["partitions"]) == sorted(NAMES) and len(data["found"]) == 2 * len(NAMES)
    assert "@" not in found.texts["p"]


def data_of(page: Texts) -> dict:
    return json.loads(re.search("^const data = (.*);$", page.texts["script"], re.MULTILINE)[1])


def test_a_page_states_its_moment_and_when_it_is_old(tmp_path):
    header = {"UnixStartTime": ["1700000000"], "TimeZoneString": ["Europe/Stockholm"]}
    page = page_of(tmp_path, "x.txt", ["a"], header=header)
    assert "As of 2023-11-14 23:13 (UTC+0100)." in page.texts["p"]
    content = data_of(page)
    assert content["stale"] == 1_700_000_000 + 36 * 3600
    assert content["times"] == ["at once", "within 1 h", "within 4 h", "by tomorrow 09:00", "within 24 h"]
    assert content["found"][0] == [1, 2, 3, [0.25, 0.5, 0.75, 1.0, 1.0]]
    unknown = page_of(tmp_path, "x.txt", ["a"])
    assert "does not state" in unknown.texts["p"] and data_of(unknown)["stale"] is None
    assert "by tomorrow 09:00" not in data_of(unknown)["times"]


def test_a_page_has_no_forecast_for_limits_beyond_those_of_a_partition(tmp_path):
    content = data_of(page_of(tmp_path, "x.txt", ["a", "b"], longest={0: 30.0, 1: 60.0}))
    assert [one is None for one in content["found"]] == [True, True, False, False]
