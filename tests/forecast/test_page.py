"""The page of forecasts: names of logs and partitions are text, whatever they contain."""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

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


def page_of(tmp_path, log: str, partitions: list[str]) -> Texts:
    queues = range(len(partitions))
    forecaster = SimpleNamespace(
        name=log, sweep=SimpleNamespace(processors=64), labels=dict(enumerate(partitions)), coverage=None, jobs=0,
        common={"sizes": Counter([1, 2]), "limits": Counter([60.0]), "queues": Counter(queues)},
        describe=lambda *given: given,
        of_requests=lambda jobs: [Forecast(None, 1, 60.0, "", "", 0.0, 1.0, 2.0, 3.0) for _ in jobs],
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
