"""Test the warnings about a recorded schedule that uses more processors than the machine has."""

import numpy as np
import pytest

from helpers.cli import call
from swflow.database.load import load
from swflow.figures import draw
from swflow.files.query import query
from swflow.jobs.busy import use_of
from swflow.report import write_report
from swflow.studies.runs import simulate_all

WEEK = 604_800


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Write a log of 8 weeks that uses 24 processors on a machine of 8 to the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{job + 1} {WEEK // 12 * (job // 3)} 0 50000 8 -1 -1 8 60000 -1 1 {job % 3 + 1} 1 1 1 1 -1 -1"
        for job in range(3 * 96)
    ]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_check_reports_it(log, capfd):
    assert call("check", "log.swf", "--strict") == 1
    out = capfd.readouterr().out
    assert "use-beyond-machine" in out
    assert "24 of 8 processors" in out


def test_a_what_if_prints_the_warning(log, capfd):
    assert call("whatif", "log.swf", "--scheduler", "easy", "--scheduler", "sjf", "-o", "a.html") == 0
    out, err = capfd.readouterr()
    assert "mean wait" in out
    assert "log: error: use-beyond-machine: " in err
    assert "24 of 8 processors" in err
    assert "use-beyond-machine" in (log / "a.html").read_text()  # the page contains the warning


def test_the_overview_of_the_report_shows_it(log):
    simulate_all("log.swf", {"easy": {"backfill": "easy"}}, "runs/log")
    load(["runs/log"], "d.duckdb")
    write_report("d.duckdb", "site")
    html = (log / "site/index.html").read_text()
    assert "use-beyond-machine" in html
    assert "24 of 8 processors" in html


def test_the_recorded_utilization_and_load_are_marked(log, capfd):
    assert call("simulate", "log.swf", "--order", "log") == 0
    assert "log: warning: the recorded schedule uses up to 24 processors of 8; " in capfd.readouterr().err
    assert call("simulate", "log.swf", "--backfill", "easy") == 0
    assert "recorded schedule uses" not in capfd.readouterr().err
    simulate_all("log.swf", {"log": {"order": "log"}, "easy": {"backfill": "easy"}}, "runs/log")
    load(["runs/log"], "d.duckdb")
    _, rows = query("d.duckdb", "SELECT scheduler, processors, peak_processors FROM runs ORDER BY scheduler")
    assert rows == [("easy", 8, 8), ("log", 8, 24)]
    _, rows = query("d.duckdb", "SELECT DISTINCT run, jobs, above_1 FROM correlations ORDER BY run")
    assert rows == [("log/easy", 288, 0), ("log/log", 288, 288)]
    for split in ((), ("user_id",)):
        drawn = str(draw("heatmap", "d.duckdb", log="log", split=split))
        assert drawn.count("288 at recorded loads above 1") == 1
        assert drawn.count("clamp") == drawn.count("'load experienced'") > 0  # disks of such loads are drawn at 1
    write_report("d.duckdb", "site", draw=False)
    assert any("above_1" in page.read_text() and "peak_processors" in page.read_text() for page in log.rglob("*.html"))


@pytest.mark.parametrize("seed", range(6))
def test_the_use_of_a_schedule_equals_a_count_at_every_second(seed):
    random = np.random.default_rng(seed)
    start = random.integers(0, 60, 80).astype(float)
    start = np.sort(start) if seed % 2 else start
    end, processors = start + random.integers(1, 20, 80), random.integers(1, 5, 80)
    seconds = np.arange(start.min(), end.max())[:, None]
    busy = ((start <= seconds) & (seconds < end)) @ processors
    expected = (busy.max(), seconds[busy.argmax(), 0], (busy > 20).sum(), seconds.size, busy.sum())
    assert tuple(use_of(start, end, processors, 20)) == expected
