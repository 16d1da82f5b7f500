"""Figures for print: the stated width in every format, the font, and one line for what cannot be printed."""

import re
import struct

import pytest

from helpers.cli import call
from helpers.runs import SCHEDULERS, write_workloads
from swflow.database.load import load
from swflow.figures import draw
from swflow.figures.print import Print, read_width
from swflow.studies.runs import simulate_all


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    folder = tmp_path_factory.mktemp("print")
    path = write_workloads(folder, 1)[0]
    simulate_all(path, SCHEDULERS, folder / "runs/A")
    load([folder / "runs/A"], folder / "d.duckdb")
    return folder / "d.duckdb"


def drawn(database, output, *options):
    """Draw a figure with the command."""
    return call("figure", "heatmap", "--run", "A/easy", "--database", database, "-o", output, *options)


def test_every_format_has_the_width(database, tmp_path):
    for ending in ("pdf", "svg", "png"):
        drawn(database, tmp_path / f"x.{ending}", "--measure", "wait_time", "--width", "90mm", "--title", "none")
    box = re.search(rb"/MediaBox ?\[0 0 ([0-9.]+) ", (tmp_path / "x.pdf").read_bytes())
    assert float(box[1]) / 72 * 25.4 == pytest.approx(90, abs=0.5)
    svg = (tmp_path / "x.svg").read_text()
    assert float(re.search(r'width="([0-9.]+)"', svg)[1]) / 96 * 25.4 == pytest.approx(90, abs=0.5)
    assert "performance against load" not in svg
    (dots,) = struct.unpack(">L", (tmp_path / "x.png").read_bytes()[16:20])
    assert dots / 300 * 25.4 == pytest.approx(90, abs=0.5)


def test_titles_are_broken_instead_of_cut_and_do_not_narrow_the_panels(database):
    """Subtitles ended in an ellipsis, and the title was the widest part of the figure."""
    options = {"runs": ["A/fcfs", "A/easy"], "measures": ["wait_time"]}
    plain = draw("difference", database, **options)
    narrow, untitled = (
        draw("difference", database, how=Print(84, titled=titled), **options) for titled in (True, False)
    )
    panels = [figure["vconcat"][0]["hconcat"][0] for figure in (plain, narrow, untitled)]
    assert panels[1]["width"] == panels[2]["width"] > 150
    (title, broken), words = (panel["title"] for panel in panels[:2]), narrow["title"]["subtitle"]
    assert " ".join(broken["subtitle"]) == " ".join(title["subtitle"])
    assert len(broken["subtitle"]) > len(title["subtitle"])
    assert len(words) > 1 and " ".join(words) == plain["title"]["subtitle"]


def test_a_measure_is_one_row_and_a_font_takes_the_place_of_the_own(database, tmp_path):
    drawn(database, tmp_path / "all.svg")
    drawn(database, tmp_path / "one.svg", "--measure", "slowdown", "--font", "serif")
    both = [(tmp_path / name).read_text() for name in ("all.svg", "one.svg")]
    assert [text.count("load experienced") > 2 for text in both] == [True, False]
    assert ["response time" in text for text in both] == [True, False]
    assert ['font-family="serif, ' in text for text in both] == [False, True]
    assert draw("heatmap", database, log="A", measures=["slowdown"])["usermeta"]["kind"] == "heatmap"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--width", "84"], r"--width: '84'; expected a width from 30mm to 1000mm, such as 84mm"),
        (["--width", "2 m"], r"--width: '2 m'; expected"),
        (["--width", "40mm"], r"--width: the panels of this figure do not fit into 40 mm; .* or give [0-9]+mm or more"),
        (["--font", "No Such Font"], r"--font: 'No Such Font' is not installed"),
        (["--measure", "wait"], r"--measure: 'wait'; expected one of .* did you mean 'wait_time'\?"),
    ],
)
def test_what_cannot_be_printed_is_one_line(database, tmp_path, capsys, options, words):
    assert drawn(database, tmp_path / "x.svg", *options) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(f"swflow: {words}", line)
    assert not list(tmp_path.iterdir())


def test_widths_in_other_units():
    assert [read_width(text) for text in ("8.4cm", "240 pt", "84mm")] == [84, pytest.approx(84.667), 84]
