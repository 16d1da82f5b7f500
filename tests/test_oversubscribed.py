"""A recorded schedule that needed more than the machine has is warned about wherever it is looked at."""

import pytest

from swflow.database import load
from swflow.report import write_report
from swflow.runs import simulate_all
from test_cli import call

WEEK = 604_800


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Write a log of eight weeks that keeps 24 processors of 8 busy, into the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{job + 1} {WEEK // 12 * (job // 3)} 0 50000 8 -1 -1 8 60000 -1 1 {job % 3 + 1} 1 1 1 1 -1 -1"
        for job in range(3 * 96)
    ]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_check_says_so(log, capfd):
    assert call("check", "log.swf", "--strict") == 1
    out = capfd.readouterr().out
    assert "use-beyond-machine" in out
    assert "24 of 8 processors" in out


def test_the_table_of_a_what_if_has_the_warning_beside_it(log, capfd):
    assert call("whatif", "log.swf", "--scheduler", "easy", "--scheduler", "sjf", "-o", "a.html") == 0
    out, err = capfd.readouterr()
    assert "mean wait" in out
    assert "log: error: use-beyond-machine: " in err
    assert "24 of 8 processors" in err
    assert "use-beyond-machine" in (log / "a.html").read_text()  # whoever gets the page sees it, too


def test_the_overview_of_the_report_has_it(log):
    simulate_all("log.swf", {"easy": {"backfill": "easy"}}, "runs/log")
    load(["runs/log"], "d.duckdb")
    write_report("d.duckdb", "site")
    html = (log / "site/index.html").read_text()
    assert "use-beyond-machine" in html
    assert "24 of 8 processors" in html
