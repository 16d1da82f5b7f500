"""Test the readers of accounting files against definitions in plain Python, on random and on boundary cases."""

import itertools
import random
import re

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.log.importers.lines import Layout, matches, read_records
from swflow.log.importers.records import ImportedLog, Site, Tally, make_log, read_key
from swflow.log.importers.slurm import gpus, kilobytes, licenses, predecessors, seconds, state
from swflow.log.importers.table import import_table
from swflow.log.recognise import is_accounting, recognize

# -- records of one line each


COLUMNS = ("id", "step", "name", "cpus", "note", "state")
FREE = ("name", "note")
CHECKS = {"id": matches(r"\d+"), "step": matches("[a-z]*"), "cpus": matches(r"\d*"), "state": matches(r"[A-Z]*")}


def placements(fields: list[str], columns: tuple[str, ...]) -> list[list[str]]:
    """Return all ways to join fields to one text per column; only free text contains separators or line breaks."""
    if not columns:
        return [[]] if not fields else []
    found = []
    for width in range(1, len(fields) + 1 if columns[0] in FREE else 2):
        text = "|".join(fields[:width])
        fits = columns[0] in FREE or ("\n" not in text and CHECKS[columns[0]](text))
        if len(fields) >= width and fits:
            found += [[text, *rest] for rest in placements(fields[width:], columns[1:])]
    return found


def is_whole(line: str, agrees) -> list[str]:
    """Return the columns of a line that is a whole record; empty for others."""
    found = placements(line.split("|"), COLUMNS) if line.count("|") == 5 else []
    return found[0] if found and agrees(dict(zip(COLUMNS, found[0], strict=True))) else []


def read_plainly(text: str, agrees) -> tuple[list[tuple[int, str, str]], dict[str, list[int]]]:
    """Return line, id and number of CPUs of each record, and the lines of repaired and dropped records by reason."""
    lines = text.split("\n")
    wrong = [bool(line) and (line.count("|") != 5 or not line[0].isdigit()) for line in lines]
    odd = [one or (bool(line) and after) for one, line, after in zip(wrong, lines, [*wrong[1:], False], strict=True)]
    records: list[tuple[int, str]] = []
    counts: dict[str, list[int]] = {}
    last = -1
    for number, line in enumerate(lines, 1):
        if odd[number - 1] and re.match(r"\d+\|[a-z]*(\||$)", line):
            records.append((number, line))
        elif odd[number - 1] and number == last + 1:
            records[-1] = (records[-1][0], f"{records[-1][1]}\n{line}")
        elif odd[number - 1]:
            counts.setdefault("malformed line", []).append(number)
            continue
        elif line:
            records.append((number, line))
            continue
        else:
            continue
        last = number
    found = []
    for number, record in records:
        fields = record.split("|")
        if len(fields) == 6 and "\n" not in record:
            found.append((number, fields[0], fields[3]))
            continue
        ways = [way for way in placements(fields, COLUMNS) if agrees(dict(zip(COLUMNS, way, strict=True)))]
        if len({(way[0], way[1], way[3], way[5]) for way in ways}) == 1:
            found.append((number, ways[0][0], ways[0][3]))
            counts.setdefault("mended: separators or line breaks in a text", []).append(number)
        elif not ways and (alone := is_whole(record.split("\n")[0], agrees)):
            found.append((number, alone[0], alone[3]))
            counts.setdefault("malformed line", []).extend(number + place for place in range(1, record.count("\n") + 1))
        else:
            reason = "too few fields" if len(fields) < 6 else "ambiguous fields"
            counts.setdefault(reason, []).append(number)
    return found, counts


def test_records_equal_their_definition():
    rng = random.Random(1)
    texts = ["", "a", "a b", "x|y", "7", "7|8", "two\nlines", "|", "p|4|q", "\n", "a\n3|b"]
    seen = set()
    for _ in range(400):
        rows = []
        for number in range(rng.randint(1, 5)):
            name, note = (rng.choice(texts) if rng.random() < 0.5 else "a" for _ in range(2))
            step, cpus, state = (rng.choice(part) for part in (["", "", "s", "5"], ["", "4", "16"], ["", "OK", "no"]))
            row = f"{number + 1}|{step}|{name}|{cpus}|{note}|{state}"
            row = row[: rng.randint(0, len(row))] if rng.random() < 0.1 else row
            row = rng.choice("/:0x") + row if rng.random() < 0.15 else row
            rows.append("\n" + row if rng.random() < 0.15 else row)
        text = "\n".join(rows) + rng.choice(["", "\n", "\n\n"])
        agrees = rng.choice([lambda record: True, lambda record: record["cpus"] != "4"])
        tally = Tally()
        layout = Layout(COLUMNS, "|", CHECKS, FREE, agrees)
        table = read_records(text.encode(), layout, ["cpus", "id"], tally, 1)
        expected, counts = read_plainly(text, agrees)
        assert table.select("line", "id", "cpus").rows() == expected, text
        found = {reason: entry for part in (tally.removed, tally.notes) for reason, entry in part.items()}
        assert found == {reason: (len(numbers), min(numbers)) for reason, numbers in counts.items()}, text
        assert all((reason in tally.notes) == reason.startswith("mended") for reason in found)
        seen |= counts.keys()
    assert len(seen) == 4


def test_the_first_line_has_the_given_number():
    layout = Layout(COLUMNS, "|", CHECKS, FREE)
    for text, lines in (("1||a|4||OK\n2||b|4||OK\n", [7, 8]), ("1||a|b|4||OK\n\n2||b|4||OK\n", [7, 9])):
        assert read_records(text.encode(), layout, ["id"], Tally(), 7)["line"].to_list() == lines


# -- counts


def test_counts_of_records_have_the_first_line():
    tally = Tally()
    for count, line, removed in ((2, 9, True), (3, 4, True), (1, 7, False), (0, 1, False)):
        tally.add("reason", count, line, removed=removed)
    assert (tally.removed, tally.notes) == ({"reason": (5, 4)}, {"reason": (1, 7)})
    tally = Tally()
    table = pl.DataFrame({"line": [5, 3, 8], "value": [1, None, 1]})
    assert tally.note(table, "one", pl.col("value") == 1).to_list() == [True, False, True]
    assert tally.note(table, "all", pl.lit(True)).to_list() == [True] * 3
    assert tally.note(table, "none", pl.col("value") == 2).to_list() == [False] * 3
    assert tally.drop(table, "gone", pl.col("value") == 1)["line"].to_list() == [3]
    assert tally.drop_repeated(table, "value")["line"].to_list() == [5, 3]
    assert tally.notes == {"one": (2, 5), "all": (3, 3)}
    assert tally.removed == {"gone": (2, 5), "the same record again": (1, 8)}


# -- units


def evaluated(texts: list[str | None], expression) -> list:
    return pl.Series("t", texts, pl.String).to_frame().select(expression(pl.col("t"))).to_series().to_list()


def test_durations_equal_their_definition():
    numbers = {
        f"{days}-{hours}": 86400 * days + 3600 * hours for days, hours in itertools.product((0, 1, 12), (0, 5, 23))
    }
    for days, hours, minutes in itertools.product((0, 3), (0, 7), (0, 59)):
        numbers[f"{days}-{hours}:{minutes}"] = 86400 * days + 3600 * hours + 60 * minutes
        numbers[f"{days}-{hours}:{minutes:02}:09"] = 86400 * days + 3600 * hours + 60 * minutes + 9
        numbers[f"{hours}:{minutes}:31.25"] = 3600 * hours + 60 * minutes + 31.25
        numbers[f"{minutes}:07.500"] = 60 * minutes + 7.5
        numbers[str(minutes)] = 60 * minutes
    assert evaluated([*numbers], seconds) == [*numbers.values()]
    assert evaluated(["90", "1:30", "1-0"], lambda text: seconds(text, bare=1.0)) == [90, 90, 86400]
    assert evaluated(["", "x", "-1", "1:", "1:2:3:4", None], seconds) == [None] * 6


def test_states_are_whole_short_or_cut():
    """A cut state counts if only one state begins so."""
    texts = {
        "CANCELLED by 1001": "CANCELLED", "CANCEL+": "CANCELLED", "CANCE+": "CANCE+", "COMPLETE+": "COMPLETED",
        "REQUEUE+": "REQUEUE+", "completed": "COMPLETED", " TO": "TIMEOUT", "OUT_OF_MEMOR+": "OUT_OF_MEMORY", "X": "X",
    }  # fmt: skip
    assert evaluated([*texts], state) == [*texts.values()]


def test_amounts_of_memory_equal_their_definition():
    powers = {"K": 0, "M": 1, "G": 2, "T": 3, "P": 4, "E": 5}
    for letter, power in powers.items():
        for text in (f"3{letter}", f"3{letter.lower()}", f"3{letter}B", f"3{letter}c", f"3{letter}n"):
            assert evaluated([text], lambda given: kilobytes(given, unit="")) == [3 * 1024.0**power], text
        assert evaluated(["2.5"], lambda given, unit=letter: kilobytes(given, unit=unit)) == [2.5 * 1024.0**power]
    assert evaluated(["2048", "2048b", "x", "1.5.2M"], lambda given: kilobytes(given, unit="")) == [2, 2, None, None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gres/gpu:a=2", 2), ("cpu=1,gres/gpu:a=2,gres/gpu:b=1", 3), ("gres/gpu:a=2,gres/gpu=5", 5), ("gres/gpu=0", 0),
        ("cpu=1", None), ("gres/gpumem:a=7", None), ("", None),
    ],
)  # fmt: skip
def test_gpus_are_the_total_or_the_sum_over_types(text, expected):
    assert evaluated([text], gpus) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("license/a=2,license/b=3", 5), ("a", 1), ("a:2;b", 3), ("a:2,b*3,c=4", 9), ("cpu=4", None),
        ("a,cpu=4", None), ("", None), ("a@srv:2", 2),
    ],
)  # fmt: skip
def test_licenses_of_all_products_are_added(text, expected):
    assert evaluated([text], licenses) == [expected]


@pytest.mark.parametrize(
    ("line", "task", "expected"),
    [
        ("sbatch -d afterok:1:2?afterany:3 x", None, ([], True)), ("sbatch x", None, ([], False)),
        ("sbatch --dependency=afterok:1,after:2 x", None, (["1"], True)), ("sbatch -d afterok x", None, ([], True)),
        ("sbatch -d afterok:1:1,afternotok:1", None, (["1"], False)), ("sbatch -d afterok:x:4", None, (["4"], True)),
        ("sbatch -d aftercorr:7:8_2", "5", (["7_5", "8_2"], False)), ("sbatch -d aftercorr:7", None, (["7"], False)),
        ("sbatch -d after:2,afterok:1", None, (["1"], True)),
        ("sbatch -d 'afterok:5_*' x", None, (["5_*"], False)), ("sbatch -d afterok:7 x", "5", (["7"], False)),
    ],
)  # fmt: skip
def test_predecessors_of_a_command_line(line, task, expected):
    assert predecessors(line, task) == expected


SPANS = {"s": 1, "ms": 0.001, "us": 1e-6, "ns": 1e-9, "min": 60, "h": 3600, "days": 86400}
SIZES = {"B": 1 / 1024, "KB": 1, "MB": 1024, "GB": 1024**2, "TB": 1024**3}


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("size", [*SIZES, None])
def test_units_and_factors_of_tables(tmp_path, span, size):
    (tmp_path / "jobs.csv").write_text("t,r,n,m\n0,7,3,5\n9,7,3,5\n")
    mapping = tmp_path / "mapping.yaml"
    memory = f"{{column: m, factor: 3, unit: {size}}}" if size else "{column: m, factor: 3}"
    mapping.write_text(f"""columns:
  submit_time: {{column: t, unit: {span}}}
  wait_time: {{column: r, unit: {span}}}
  run_time: {{column: r, unit: {span}, factor: 2}}
  processors: {{column: n, factor: 0.5}}
  used_memory: {memory}
  memory: {memory}
""")
    jobs = import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping)).fields
    assert jobs["submit_time"].to_list() == pytest.approx([0, 9 * SPANS[span]])
    job = jobs.row(0, named=True)
    assert (job["wait_time"], job["run_time"]) == pytest.approx((7 * SPANS[span], 14 * SPANS[span]))
    assert job["allocated_processors"] == 2  # 1.5 rounds up
    assert job["used_memory"] == pytest.approx(15 * SIZES[size or "KB"])
    assert job["memory"] == -(-15 * SIZES[size or "MB"] // 1024)


# -- logs


def records(**columns) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame({"line": range(2, height + 2), **columns})


def log_of(site: Site | None = None, form: str = "test", **columns) -> ImportedLog:
    return make_log(records(**columns), Tally(), site or Site(), source="log.txt", form=form)


def test_times_of_a_log_count_from_its_first_submission():
    log = log_of(
        submit=[1000000007.5, 1000000003.25, None, 1000000003.25], start=[1000000009.5, 1000000003.0, 1.0, None],
        eligible=[1000000008.5, 1000000004.5, None, 1000000003.0], allocated_processors=[2, 3, 9, 4],
        run_time=[10.0, 20.0, 30.0, 40.0],
    )  # fmt: skip
    assert log.fields.select("job_id", "submit_time", "wait_time", "allocated_processors").rows() == [
        (1, 0.25, -0.25, 3), (2, 0.25, None, 4), (3, 4.5, 2, 2),
    ]  # fmt: skip
    assert "eligible_after" not in log.fields.columns  # a delay of 1 s is none
    assert log.header["UnixStartTime"] == ["1000000003"]
    assert log.header["StartTime"] == ["Sun Sep 09 01:46:43 UTC 2001"]
    assert (log.header["Version"], log.header["Conversion"]) == (["2.2"], ["swflow import test"])
    assert log.header["MaxJobs"] == log.header["MaxRecords"] == ["3"]
    assert log.tally.removed == {"no submit time": (1, 4)}
    assert log.tally.notes == {"started before it was submitted": (1, 3)}
    entry = log.history[0]
    assert (entry["read"], entry["kept"], entry["removed"]) == (4, 3, {"no submit time": 1})


def test_a_job_may_start_when_it_is_submitted():
    assert log_of(submit=[5.0], start=[5.0], run_time=[1.0], allocated_processors=[1]).tally.notes == {}


@pytest.mark.parametrize(("start", "expected"), [(315532800, True), (315532799, False)])
def test_submit_times_are_unix_times_from_1980_on(start, expected):
    log = log_of(submit=[float(start)], run_time=[1.0], allocated_processors=[1])
    assert ("UnixStartTime" in log.header) is expected


def test_jobs_are_eligible_after_a_delay_of_more_than_a_second():
    log = log_of(
        submit=[0.0, 0.0, 0.0, 0.0], start=[9.0, 9.0, 9.0, 2.0], eligible=[1.0, 1.5, None, 5.0],
        run_time=[1.0] * 4, allocated_processors=[1] * 4,
    )  # fmt: skip
    assert log.fields["eligible_after"].to_list() == [None, 1.5, None, 2.0]


@pytest.mark.parametrize(
    ("site", "processors", "is_guessed"),
    [
        (Site(), "5", True), (Site(processors=64), "64", False), (Site(partitions={"a": 40}), "5", True),
        (Site(partitions={"a": 40, "b": 2}), "42", False), (Site(nodes=4), "5", True),
    ],
)  # fmt: skip
def test_the_machine_is_stated_or_the_peak(site, processors, is_guessed):
    log = log_of(
        site, submit=[0.0, 5.0], start=[0.0, 5.0], run_time=[9.0, 9.0], allocated_processors=[3, None],
        requested_processors=[7, 2], partition=["a", "b"],
    )  # fmt: skip
    assert log.header["MaxProcs"] == [processors] and ("Note" in log.header) is is_guessed
    assert log.header.get("MaxNodes") == (["4"] if site.nodes else None)


def test_predecessors_are_the_last_runs_and_all_tasks():
    """Job 1 ran twice; jobs 7_1 and 7_2 are tasks of array 7."""
    log = log_of(
        submit=[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], site_job_id=["1", "1", "7_1", "7_2", "8", "9"], run_time=[1.0] * 6,
        allocated_processors=[1] * 6, array=[None, None, "7", "7", None, None],
        depends_on=[None, ["1"], [], ["7_1", "7_*"], ["1", "99", "7_*"], ["99"]],
    )  # fmt: skip
    assert log.fields["depends_on"].to_list() == [None, None, None, [3], [2, 3, 4], None]
    assert log.tally.notes["dependencies on jobs that are not in the log (left out)"] == (2, 6)


def test_nothing_valid_names_the_reasons():
    with pytest.raises(SwflowError, match=r"log.txt: none of 2 records is a valid job; 2 no submit time \(line 2\)"):
        log_of(submit=[None, None], run_time=[1.0, 2.0])


@pytest.mark.parametrize(("length", "expected"), [(15, False), (16, True)])
def test_a_key_has_16_characters(tmp_path, length, expected):
    (tmp_path / "short.key").write_text("x" * length + "\n")
    if expected:
        assert read_key(tmp_path / "short.key") == (b"x" * 16, tmp_path / "short.key", False)
    else:
        with pytest.raises(SwflowError, match=r"short.key: must have at least 16 characters"):
            read_key(tmp_path / "short.key")
    key, path, is_new = read_key(tmp_path / "new.key")
    assert is_new and len(key) == 64 and read_key(path) == (key, path, False)
    with pytest.raises(SwflowError, match="the key cannot be read or written"):
        read_key(tmp_path)


# -- recognized formats


@pytest.mark.parametrize(
    ("text", "accounting", "headless"),
    [
        ('{"jobs": []}', True, False), ("JobId=1 UserId=a", True, False), ("JobID|User|State\n1|a|b", True, False),
        ("User,Submit\n", False, False), ("User\n", False, False), ("; JobID|User|State|x|y|z\n", False, False),
        ("1|a|b|c|d\n", False, True), ("1|a|b|c\n", False, False), (";1|a|b|c|d\n", False, False), ("", False, False),
        ("JobID|User|State|Start|End\n", True, False), ("\n\n  {", False, False), ("1 2 3 4\n", False, False),
    ],
)  # fmt: skip
def test_accounting_is_recognized_by_its_beginning(tmp_path, text, accounting, headless):
    (tmp_path / "file").write_text(text)
    assert is_accounting(tmp_path / "file") == accounting
    assert (recognize(tmp_path / "file").key == "sacct-headless") == headless
    assert not is_accounting(tmp_path / "missing")
