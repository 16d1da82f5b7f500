"""Test the readers of accounting files against definitions in plain Python, on random and on boundary cases."""

import itertools
import random
import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from swflow.errors import SwflowError
from swflow.log.imported import names_of
from swflow.log.importers.lines import Layout, matches, read_records
from swflow.log.importers.pbs import import_pbs
from swflow.log.importers.records import ImportedLog, Site, Tally, make_log, read_key
from swflow.log.importers.sacct import import_sacct, is_accounting, is_headless
from swflow.log.importers.slurm import kilobytes, licenses, predecessors, seconds
from swflow.log.importers.table import import_table

# -- records of one line each


COLUMNS = ("id", "name", "cpus", "note", "state")
FREE = ("name", "note")
CHECKS = {"id": matches(r"\d+"), "cpus": matches(r"\d*"), "state": matches(r"[A-Z]*")}


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


def read_plainly(text: str, agrees) -> tuple[list[tuple[int, str, str]], dict[str, list[int]]]:
    """Return line, id and number of CPUs of each record, and the lines of repaired and dropped records by reason."""
    lines = text.split("\n")
    wrong = [bool(line) and (line.count("|") != 4 or not line[0].isdigit()) for line in lines]
    odd = [one or (bool(line) and after) for one, line, after in zip(wrong, lines, [*wrong[1:], False], strict=True)]
    records: list[tuple[int, str]] = []
    counts: dict[str, list[int]] = {}
    last = -1
    for number, line in enumerate(lines, 1):
        if odd[number - 1] and re.match(r"\d+\|", line):
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
        if len(fields) == 5 and "\n" not in record:
            found.append((number, fields[0], fields[2]))
            continue
        ways = [way for way in placements(fields, COLUMNS) if agrees(dict(zip(COLUMNS, way, strict=True)))]
        if len({(way[0], way[2], way[4]) for way in ways}) == 1:
            found.append((number, ways[0][0], ways[0][2]))
            counts.setdefault("mended: separators or line breaks in a text", []).append(number)
        else:
            reason = "too few fields" if len(fields) < 5 else "ambiguous fields"
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
            row = f"{number + 1}|{name}|{rng.choice(['', '4', '16'])}|{note}|{rng.choice(['', 'OK', 'OK', 'no'])}"
            damage = rng.random()
            rows.append(row[: rng.randint(0, len(row))] if damage < 0.1 else "\n" + row if damage < 0.2 else row)
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
    for text, lines in (("1|a|4||OK\n2|b|4||OK\n", [7, 8]), ("1|a|b|4||OK\n\n2|b|4||OK\n", [7, 9])):
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
    (tmp_path / "jobs.csv").write_text("t,r,n,m\n0,7,3,5\n")
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
    job = import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping)).fields.row(0, named=True)
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
    assert log.header["MaxJobs"] == log.header["MaxRecords"] == ["3"]
    assert log.tally.removed == {"no submit time": (1, 4)}
    assert log.tally.notes == {"started before it was submitted": (1, 3)}
    entry = log.history[0]
    assert (entry["read"], entry["kept"], entry["removed"]) == (4, 3, {"no submit time": 1})


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


# -- jobcomp/filetxt


def completion(**changed: str) -> str:
    """Return a line of the plugin jobcomp/filetxt."""
    values = {
        "JobId": "7", "UserId": "ada(1001)", "GroupId": "staff(100)", "Name": "sim", "JobState": "COMPLETED",
        "Partition": "main", "TimeLimit": "120", "StartTime": "2024-01-08T08:10:00", "EndTime": "2024-01-08T09:10:00",
        "NodeList": "n[1-2]", "NodeCnt": "2", "ProcCnt": "8", "WorkDir": "/home/ada", "ReservationName": "",
        "Tres": "cpu=8,mem=16G,node=2,gres/gpu=2", "Account": "physics", "QOS": "normal", "WcKey": "",
        "Cluster": "alpha", "SubmitTime": "2024-01-08T08:00:00", "EligibleTime": "2024-01-08T08:00:00",
        "DerivedExitCode": "0:0", "ExitCode": "0:0",
    }  # fmt: skip
    order = [*values]
    values |= changed
    extra = ("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset")
    order[1:1] = [name for name in extra if name in values]
    return " ".join(f"{name}={values[name]}" for name in order if values[name] is not None)


def completions(tmp_path, *lines: str) -> tuple[ImportedLog, dict[str, dict]]:
    (tmp_path / "jobcomp.txt").write_text("\n".join(lines) + "\n")
    log = import_sacct(str(tmp_path / "jobcomp.txt"), Site())
    return log, {row["site_job_id"]: row for row in log.fields.iter_rows(named=True)}


def test_job_completions(tmp_path):
    log, jobs = completions(
        tmp_path,
        completion(),
        completion(JobId="8", Name="two\nlines Partition=x StartTime=now", ReservationName="maint"),
        completion(JobId="10", Name="x JobState=FAILED", WorkDir="/home/a b/Tres=cpu=99 Account=art QOS=high"),
        completion(JobId="11", ArrayJobId="9", ArrayTaskId="2"),
        completion(JobId="21", HetJobId="20", HetJobOffset="1", ProcCnt="3", UserId="bob(7)(1002)"),
        completion(JobId="20", HetJobId="20", HetJobOffset="0"),
        completion(JobId="30", TimeLimit="UNLIMITED", JobState="TIMEOUT", Tres=""),
        "JobId=31 JobState=COMPLETED",
        completion(JobId="32", SubmitTime=None),
        completion(JobId="40", HetJobId="39"),
        completion(JobId="41", ArrayTaskId="3"),
    )
    assert jobs.keys() == {"7", "8", "9_2", "10", "20", "30", "40", "41"}
    for name in ("8", "10"):
        of_job = {key: value for key, value in jobs[name].items() if key not in ("job_id", "site_job_id")}
        assert of_job == {key: jobs["7"][key] for key in of_job} | {"executable_id": of_job["executable_id"]}
    job = jobs["7"]
    assert (job["submit_time"], job["wait_time"], job["run_time"], job["requested_time"]) == (0, 600, 3600, 7200)
    assert (job["allocated_processors"], job["requested_processors"], job["status"], job["gpus"]) == (8, 8, 1, 2)
    assert jobs["20"]["allocated_processors"] == 11
    assert (jobs["30"]["status"], jobs["30"]["requested_time"], jobs["30"]["gpus"]) == (0, None, None)
    assert names_of(log.header, "user_id") == {1: "ada", 2: "bob(7)"}
    assert names_of(log.header, "group_id") == {1: "physics"}
    assert log.header["Computer"] == ["alpha"]
    assert log.tally.removed == {"malformed line": (1, 9), "no submit time": (1, 10)}
    assert log.tally.notes["jobs in advance reservations"] == (1, 2)
    assert log.tally.notes["tasks of arrays"] == (1, 5)
    with pytest.raises(SwflowError, match="no valid record of jobcomp/filetxt"):
        completions(tmp_path, "JobId=1 Name=x")


# -- PBS


def pbs(tmp_path, *records: str, site: Site | None = None) -> ImportedLog:
    (tmp_path / "pbs.txt").write_text("\n".join(records) + "\n")
    return import_pbs(str(tmp_path / "pbs.txt"), site or Site())


def ended(job: str = "1.f", hosts: str = "n1/0", **changed: str) -> str:
    """Return the record of a job that ran from 100 to 200."""
    values = {"user": "a", "ctime": "50", "start": "100", "end": "200", "exec_host": hosts} | changed
    return f"01/08/2024 09:10:00;E;{job};" + " ".join(f"{name}={value}" for name, value in values.items() if value)


def test_places_and_requests_of_pbs_equal_their_definitions(tmp_path):
    """A host with a factor has this many processors; otherwise each of its numbers is one."""
    rng = random.Random(3)
    expected, rows = [], []
    for job in range(40):
        hosts, processors = [], 0
        for host in rng.sample(range(9), rng.randint(1, 4)):
            factor = rng.choice([None, None, rng.randint(1, 9)])
            parts = [(low, low + rng.randint(0, 3)) for low in range(0, 4 * rng.randint(1, 3), 4)]
            processors += factor or sum(high - low + 1 for low, high in parts)
            text = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
            hosts.append((f"n{host}/{text}" + (f"*{factor}" if factor else ""), host))
        chunks = [(rng.randint(1, 3), rng.choice([None, rng.randint(1, 4)]), rng.choice([None, rng.randint(1, 2)]))
                  for _ in range(rng.randint(1, 3))]  # fmt: skip
        key, cpus, gpus = rng.choice([("select", "ncpus", "ngpus"), ("nodes", "ppn", "gpus")])
        request = "+".join(
            f"{count}:x" + (f":{cpus}={each}" if each else "") + (f":{gpus}={some}" if some else "")
            for count, each, some in chunks
        )
        rows.append(ended(f"{job}.f", "+".join(text for text, _ in hosts), **{f"Resource_List.{key}": request}))
        requested = sum(count * (each or 1) for count, each, _ in chunks)
        with_gpus = sum(count * (some or 0) for count, _, some in chunks)
        expected.append((processors, requested, len(hosts), with_gpus or None))
    log = pbs(tmp_path, *rows)
    names = ("allocated_processors", "requested_processors", "nodes", "gpus")
    assert log.fields.select(names).rows() == expected
    assert log.tally.notes["jobs with GPUs"][0] == sum(gpus is not None for *_, gpus in expected)


@pytest.mark.parametrize(
    ("changed", "column", "expected"),
    [
        ({}, "requested_processors", None), ({"Resource_List.ncpus": "3"}, "requested_processors", 3),
        ({"Resource_List.nodes": "4"}, "requested_processors", 4),
        ({"Resource_List.nodes": "4", "Resource_List.ncpus": "8"}, "requested_processors", 8),
        ({"exec_host": "", "resources_used.ncpus": "5"}, "allocated_processors", 5),
        ({"exec_host": "", "resources_used.ncpus": "5"}, "nodes", None),
        ({"exec_host": "n1/0+n1/1+n2/5"}, "nodes", 2), ({"Exit_status": "0"}, "status", 1),
        ({"Exit_status": "271"}, "status", 5), ({"Exit_status": "-1"}, "status", 5),
        ({"Exit_status": "1"}, "status", 0),
        ({"Exit_status": "270"}, "status", 0), ({}, "status", None), ({"Resource_List.ngpus": "2"}, "gpus", 2),
        ({"Resource_List.ngpus": "0"}, "gpus", None), ({"qtime": "60", "ctime": ""}, "wait_time", 40),
        ({"etime": "70", "ctime": ""}, "wait_time", 30), ({"qtime": "60", "etime": "70"}, "wait_time", 50),
        ({"etime": "70"}, "eligible_after", 20), ({"start": "01/01/1970 00:02:30"}, "wait_time", 100),
        ({"start": "01/01/1970 00:02:30"}, "run_time", 50), ({"Resource_List.mem": "3mb"}, "memory", 3),
        ({"Resource_List.mem": "1025kb"}, "memory", 2), ({"Resource_List.mem": "2048"}, "requested_memory", 2),
        ({"exec_host": "n1/0-3", "Resource_List.mem": "8kb"}, "requested_memory", 2),
        ({"exec_host": "n1/0-3", "resources_used.mem": "6kb"}, "used_memory", 1.5),
        ({"exec_host": "n1/0-3", "resources_used.cput": "00:01:00"}, "average_cpu_time", 15),
        ({"exec_host": "", "Resource_List.ncpus": "2", "resources_used.cput": "60"}, "average_cpu_time", 30),
        ({"Resource_List.walltime": "90"}, "requested_time", 90),
    ],
)  # fmt: skip
def test_values_of_pbs(tmp_path, changed, column, expected):
    job = pbs(tmp_path, ended(**changed)).fields.row(0, named=True)
    assert job.get(column) == expected


def test_names_of_pbs(tmp_path):
    log = pbs(
        tmp_path, ended("1.f", group="g", account="p"), ended("2.f", group="h", project="_pbs_project_default"),
        ended("3.f", account="null", group=""), ended("4.f", group="g", project="q", jobname='"a b"'),
    )  # fmt: skip
    assert names_of(log.header, "group_id") == {1: "p", 2: "h", 3: "q"}
    assert log.fields["group_id"].to_list() == [1, 2, None, 3]
    assert names_of(log.header, "unix_group_id") == {1: "g"}
    assert log.fields["executable_id"].to_list() == [None, None, None, 1]


def test_records_of_pbs_that_are_left_out_or_noted(tmp_path):
    log = pbs(
        tmp_path, "no record", ended("1.f"), ended("1.f"), "continued", ended("2.f", end="99"), ended("3.f", end=""),
        ended("4[1].f"), ended("4[2].g", depend="afterok:1.f"), ended("5-1.f", depend="before:1.f"),
        ended("6.f", **{"resources_used.walltime": "40"}), ended("7.f", **{"resources_used.walltime": "39"}),
        "01/08/2024 08:00:00;W;1.f;", "01/08/2024 08:00:00;S;1.f;", "01/08/2024 08:00:00;S;2.f;",
    )  # fmt: skip
    assert log.tally.removed == {
        "malformed line": (1, 1), "ended before it started": (1, 5), "no start or no end": (1, 6),
        "the same record again": (1, 3),
    }  # fmt: skip
    assert log.tally.notes == {
        "mended: line breaks in a value": (1, 4), "tasks of arrays": (3, 7), "jobs that depend on others": (1, 8),
        "end - start differs from the wall time used": (1, 11), "W records (unknown)": (1, 12),
        "S records (started)": (2, 13),
    }  # fmt: skip
    assert "Computer" not in log.header  # there are two servers
    assert log.fields["depends_on"].to_list()[2] == [1]


def test_a_rerun_of_pbs_is_submitted_when_the_run_before_it_ended(tmp_path):
    again = ended(start="300", end="400", depend="afterok:9.f")
    log = pbs(tmp_path, again, ended(), ended("2.f"), ended("2.f", ctime="250", start="300", end="350"), ended("9.f"))
    assert log.fields.select("site_job_id", "submit_time", "wait_time", "run_time").rows() == [
        ("1", 0, 50, 100), ("2", 0, 50, 100), ("9", 0, 50, 100), ("1", 150, 100, 100), ("2", 200, 50, 50),
    ]  # fmt: skip
    assert log.tally.notes["further runs of jobs that were rerun"] == (2, 1)
    assert "depends_on" not in log.fields.columns


# -- tables


def table_of(tmp_path, frame: pl.DataFrame, mapping: str, site: Site | None = None) -> ImportedLog:
    frame.write_parquet(tmp_path / "jobs.parquet")
    (tmp_path / "mapping.yaml").write_text(mapping)
    return import_table(str(tmp_path / "jobs.parquet"), site or Site(), str(tmp_path / "mapping.yaml"))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Stockholm"])
def test_times_of_tables_are_those_of_the_zone_unless_they_state_one(tmp_path, zone):
    """Of 2:30 on 29 October 2023, the first one counts in Stockholm."""
    local = datetime(2023, 10, 29, 2, 30)
    moment = 1698539400 if zone != "UTC" else 1698546600
    known = datetime(2023, 10, 29, 0, 30, 0, 250000, UTC)
    frame = pl.DataFrame({
        "naive": [local], "zoned": [known], "text": ["2023-10-29 02:30:00"], "formed": ["29.10.2023 02:30"],
        "offset": ["2023-10-29T02:30:00.250+02:00"], "z": ["2023-10-29 00:30:00.25Z"], "number": ["1698539400.25"],
        "ms": [1698539400250], "r": [5], "n": [1], "other": ["29.10.2023 02:30 +0200"],
    })  # fmt: skip
    forms = {"formed": "'%d.%m.%Y %H:%M'", "other": "'%d.%m.%Y %H:%M %z'"}
    for column, expected in {
        "naive": moment, "zoned": 1698539400.25, "text": moment, "formed": moment, "offset": 1698539400.25,
        "z": 1698539400.25, "number": 1698539400.25, "ms": 1698539400.25, "other": 1698539400,
    }.items():  # fmt: skip
        options = ", unit: ms" if column == "ms" else f", format: {forms[column]}" if column in forms else ""
        mapping = f"columns: {{submit_time: {{column: {column}{options}}}, run_time: r, processors: n}}"
        log = table_of(tmp_path, frame, mapping, Site(time_zone=zone))
        began = int(log.header["UnixStartTime"][0])
        assert began + log.fields["submit_time"][0] == expected, column


@pytest.mark.parametrize("factor", ["true", "0", "-1", "x"])
def test_a_factor_is_a_positive_number(tmp_path, factor):
    mapping = f"columns: {{submit_time: t, run_time: {{column: t, factor: {factor}}}, processors: t}}"
    with pytest.raises(SwflowError, match=r"run_time: factor: .*; expected a positive number"):
        table_of(tmp_path, pl.DataFrame({"t": [1]}), mapping)


def test_a_machine_has_at_least_one_processor_and_node():
    assert Site(processors=1, nodes=1).processors == 1
    for name in ("processors", "nodes"):
        with pytest.raises(SwflowError, match=f"--{name}: 0; expected at least 1"):
            Site(**{name: 0})


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ("submit_time: t, end_time: t, processors: t", "run_time, or start_time and end_time, is missing"),
        ("submit_time: t, start_time: t, processors: t", "end_time or run_time is missing, but required"),
        ("submit_time: t, run_time: t", "nodes or processors or requested_processors is missing"),
        ("submit_time: t, run_time: t, nodes: [t]", "nodes: give a column's name, or {column: NAME, unit: min}"),
        ("submit_time: t, run_time: t, nodes: {unit: s}", "nodes: give a column's name, or {column: NAME, unit: min}"),
        ("submit_time: t, run_time: t, nodes: {column: t, units: s}", "nodes: unknown key 'units'"),
        ("submit_time: t, run_time: t, nodes: t, user: {column: t, factor: 2}", "factor does not apply to it"),
        ("submit_time: t, run_time: {column: t, unit: KB}, nodes: t", "run_time: unknown unit 'KB'"),
        ("submit_time: t, run_time: {column: t, pattern: '('}, nodes: t", "expected a regular expression"),
        ("submit_time: t, run_time: {column: t, pattern: 7}, nodes: t", "expected a regular expression"),
        ("submit_time: t, run_time: {column: t, pattern: '(a)(b)'}, nodes: t", "expected a regular expression"),
        ("submit_time: {column: text, format: 7}, run_time: t, nodes: t", "submit_time: format: 7; expected a text"),
        ("submit_time: {column: t, unit: [s]}, run_time: t, nodes: t", "submit_time: unknown unit ['s']"),
    ],
)  # fmt: skip
def test_mappings_are_checked(tmp_path, mapping, words):
    with pytest.raises(SwflowError) as caught:
        table_of(tmp_path, pl.DataFrame({"t": [1], "text": ["a"]}), f"columns: {{{mapping}}}")
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("delimiter", "expected"),
    [("';'", True), ("''", True), ("','", False), ("';;'", False), ("7", False), ("é", False)],
)
def test_a_delimiter_is_one_character(tmp_path, delimiter, expected):
    (tmp_path / "jobs.csv").write_text("t;n,r\n0;1;5\n".replace("n,r", "n;r" if expected else "n,r"))
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(f"columns: {{submit_time: t, run_time: r, processors: n}}\ndelimiter: {delimiter}\n")
    if expected:
        assert import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping)).fields["run_time"].to_list() == [5]
    else:
        words = "no column 't'" if delimiter == "','" else "mapping.yaml: delimiter: .*; expected one character"
        with pytest.raises(SwflowError, match=words):
            import_table(str(tmp_path / "jobs.csv"), Site(), str(mapping))


def test_values_of_tables(tmp_path):
    frame = pl.DataFrame({
        "t": [0.0, 1.0, 2.0, 3.0], "s": [None, 5.0, None, 9.0], "w": [4, 9, None, 2], "r": ["5", "0:10", "-1", "inf"],
        "n": ["2.5", "-1", "x", "0"], "state": ["COMPLETED", "CANCELLED by 3", "7", None],
        "span": [timedelta(0, 90)] * 4,
        "after": ["2", "", None, "1,3;2|4"], "list": [["2"], [], None, ["1"]], "text": ["a1b22", "b", None, "a3"],
        "array": ["0", "5", "5", None], "mem": [0.0, 0.1, None, None], "q": ["a", " ", None, "b"], "most": [2] * 4,
    })  # fmt: skip
    log = table_of(tmp_path, frame, """columns:
  job_id: t
  submit_time: t
  start_time: s
  wait_time: w
  run_time: r
  processors: n
  requested_time: span
  status: state
  depends_on: after
  nodes: {column: text, pattern: '([0-9]+)'}
  array: array
  array_limit: most
  memory: mem
  queue: q
""")  # fmt: skip
    jobs = log.fields
    assert jobs["wait_time"].to_list() == [4, 4, None, 6]
    assert jobs["run_time"].to_list() == [5, 10, None, None]
    assert jobs["allocated_processors"].to_list() == [3, None, None, 0]
    assert jobs["requested_time"].to_list() == [90] * 4
    assert jobs["status"].to_list() == [1, 5, None, None]
    assert jobs["nodes"].to_list() == [23, None, None, 3]
    assert jobs["array_id"].to_list() == [None, 1, 1, None]
    assert jobs["memory"].to_list() == [None, 1, None, None]
    assert jobs["queue_id"].to_list() == [1, None, None, 2]
    assert log.tally.notes == {
        "unreadable run_time": (1, 5), "unreadable processors": (1, 4), "unreadable status": (1, 4),
        "unreadable memory": (1, 2), "dependencies on jobs that are not in the log (left out)": (5, 2),
    }  # fmt: skip
    again = table_of(
        tmp_path, frame, "columns: {job_id: w, submit_time: t, run_time: t, processors: t, depends_on: list}"
    )
    assert again.fields["depends_on"].to_list() == [[4], None, None, None]


# -- sacct


#: A job of two processors that waited 10 min and ran for an hour.
SACCT = {
    "JobID": "1", "Cluster": "", "User": "a", "UID": "1001", "Group": "g", "GID": "100", "Account": "p",
    "Partition": "main", "QOS": "normal", "State": "COMPLETED", "Submit": "2024-01-08T08:00:00",
    "Eligible": "2024-01-08T08:00:00", "Start": "2024-01-08T08:10:00", "End": "2024-01-08T09:10:00",
    "Elapsed": "01:00:00", "Suspended": "00:00:00", "Timelimit": "02:00:00", "ReqCPUS": "2", "AllocCPUS": "2",
    "NNodes": "1", "ReqMem": "", "AllocTRES": "", "ReqTRES": "", "TotalCPU": "", "MaxRSS": "", "AveRSS": "",
    "NTasks": "", "Licenses": "", "Reservation": "",
}  # fmt: skip


def sacct(tmp_path, *jobs: dict[str, str], site: Site | None = None, drop=(), **options) -> ImportedLog:
    names = [name for name in SACCT if name not in drop]
    lines = ["|".join((SACCT | job).get(name, "") for name in names) for job in jobs]
    (tmp_path / "sacct.txt").write_text("\n".join(["|".join(names), *lines]) + "\n")
    return import_sacct(str(tmp_path / "sacct.txt"), site or Site(), **options)


@pytest.mark.parametrize(
    ("job", "column", "expected"),
    [
        ({"ReqCPUS": "", "ReqTRES": "cpu=3,mem=6M"}, "requested_processors", 3),
        ({"ReqCPUS": "0"}, "requested_processors", None),
        ({"ReqCPUS": "1"}, "requested_processors", 1),
        ({"AllocCPUS": "", "AllocTRES": "cpu=3"}, "allocated_processors", 3),
        ({"AllocTRES": "mem=3000K"}, "memory", 3), ({"ReqTRES": "mem=3M"}, "memory", 3),
        ({"ReqMem": "3M"}, "memory", 3),
        ({"ReqMem": "3Mc"}, "memory", 6), ({"ReqMem": "3Mn", "NNodes": "2"}, "memory", 6), ({}, "memory", None),
        ({"ReqMem": "3Mn", "NNodes": "2"}, "requested_memory", 3 * 1024),
        ({"ReqMem": "3Mc"}, "requested_memory", 3 * 1024),
        ({"ReqMem": "3M", "AllocCPUS": ""}, "requested_memory", 1536), ({"ReqMem": "0"}, "requested_memory", None),
        ({"TotalCPU": "01:00:00"}, "average_cpu_time", 1800), ({"TotalCPU": "00:30.500"}, "average_cpu_time", 15.25),
        ({"AllocTRES": "gres/gpu=0"}, "gpus", 0), ({"ReqTRES": "gres/gpu=4"}, "gpus", 4),
        ({"Licenses": "a:2"}, "licenses", 2),
        ({"Licenses": "a:2", "ReqTRES": "license/a=3"}, "licenses", 3), ({"Licenses": "a:0"}, "licenses", None),
        ({"Licenses": "a:1"}, "licenses", 1), ({"Suspended": "00:10:00"}, "suspended_time", 600),
        ({"Elapsed": "", "Suspended": "00:10:00"}, "run_time", 3000),
        ({"End": "Unknown", "Suspended": "00:10:00"}, "run_time", 3600),
        ({"Eligible": "2024-01-08T08:00:01"}, "eligible_after", None),
        ({"Eligible": "2024-01-08T08:00:02"}, "eligible_after", 2),
        ({"Submit": "2024-01-08T08:00"}, "wait_time", 600), ({"Start": "2024-01-08T08:11"}, "wait_time", 660),
        ({"Timelimit": "90"}, "requested_time", 5400), ({"State": "CANCELLED", "Elapsed": "0"}, "run_time", 0),
        ({"State": "CANCELLED", "Elapsed": "0:1"}, "run_time", 1),
        ({"State": "FAILED", "Elapsed": "0"}, "allocated_processors", 2),
        ({"State": "CANCELLED", "Elapsed": "0"}, "allocated_processors", None),
    ],
)  # fmt: skip
def test_values_of_sacct(tmp_path, job, column, expected):
    assert sacct(tmp_path, job).fields.row(0, named=True).get(column) == expected


def test_names_of_sacct(tmp_path):
    log = sacct(tmp_path, {"User": "", "Group": ""}, {"JobID": "2", "Account": "", "QOS": "Unknown"})
    named = {column: names_of(log.header, column) for column in ("user_id", "group_id", "unix_group_id", "queue_id")}
    assert named == {
        "user_id": {1: "1001", 2: "a"}, "group_id": {1: "p", 2: "g"}, "unix_group_id": {1: "100", 2: "g"},
        "queue_id": {1: "normal"},
    }  # fmt: skip
    log = sacct(tmp_path, {}, drop=["Account"])
    assert names_of(log.header, "group_id") == {1: "g"} and names_of(log.header, "unix_group_id") == {}


@pytest.mark.parametrize(
    ("elapsed", "reason"),
    [
        ("01:00:02", None), ("01:00:03", "differs from Elapsed"), ("00:59:58", None),
        ("00:59:57", "differs from Elapsed"),
        ("02:00:02", "by an hour"), ("02:00:03", "differs from Elapsed"), ("00:00:02", "by an hour"),
        ("00:00:03", "differs from Elapsed"), ("01:59:58", "by an hour"), ("01:59:57", "differs from Elapsed"),
    ],
)  # fmt: skip
def test_spans_that_differ_from_elapsed_are_noted(tmp_path, elapsed, reason):
    notes = sacct(tmp_path, {"Elapsed": elapsed}).history[0]["notes"]
    found = {text for text in notes if "differs" in text}
    end = "differs from Elapsed by an hour (give --timezone)" if reason == "by an hour" else reason
    assert found == ({f"End - Start {end}"} if reason else set())


def test_runs_of_heterogeneous_jobs(tmp_path):
    """The second run begins when the first one ended; components overlap, start apart, and have two memories."""

    def part(component, start, end, **changed):
        times = {"Start": f"2024-01-08T08:{start:02}:00", "End": f"2024-01-08T08:{end:02}:00"}
        return {"JobID": f"5+{component}", "Elapsed": f"{end - start}:00"} | times | changed

    log = sacct(
        tmp_path,
        part(0, 10, 20, ReqMem="3Mc", Eligible="2024-01-08T08:02:00", AllocTRES="gres/gpu=1"),
        part(1, 12, 18, AllocCPUS="6", ReqMem="7Mc", Eligible="2024-01-08T08:05:00", Suspended="00:01:00", NNodes="3"),
        part(0, 20, 30), part(1, 20, 30),
        {"JobID": "6+0", "AllocCPUS": "1"}, {"JobID": "6+1", "Elapsed": "01:00:09"},
        {"JobID": "7+0", "ReqMem": "4Mc"}, {"JobID": "7+1", "AllocCPUS": "3"},
    )  # fmt: skip
    columns = ["submit_time", "wait_time", "run_time", "allocated_processors", "nodes", "gpus", "requested_memory"]
    assert log.fields.select(columns).rows() == [
        (0, 600, 540, 8, 4, 1, 6 * 1024), (0, 600, 3609, 3, 2, None, None), (0, 600, 3600, 5, 2, None, 4 * 1024),
        (1200, 0, 600, 4, 2, None, None),
    ]  # fmt: skip
    assert log.fields["eligible_after"].to_list() == [300, None, None, None]
    assert log.history[0]["notes"]["further runs of requeued jobs"] == 1
    assert log.history[0]["notes"]["suspended for a while"] == 1


def test_runs_of_a_requeued_job(tmp_path):
    """A run is submitted at the end of the run before it, unless sacct states a later time."""
    runs = (("8:10", "8:20", "8:00"), ("8:20", "8:40", "8:00"), ("8:50", "9:00", "8:45"), ("8:55", "9:05", "8:50"))
    jobs = [
        dict(zip(("Start", "End", "Submit"), (f"2024-01-08T0{time}:00" for time in run), strict=True)) for run in runs
    ]
    log = sacct(tmp_path, *(job | {"Elapsed": ""} for job in jobs))
    assert log.fields.select("submit_time", "wait_time", "run_time").rows() == [
        (0, 600, 600), (1200, 0, 1200), (2700, 300, 600), (3000, 300, 600),
    ]  # fmt: skip
    assert log.tally.notes["further runs of requeued jobs"] == (2, 3)
    assert log.tally.notes["records of one job that overlap in time (not reruns)"] == (1, 5)


def test_memory_of_steps(tmp_path):
    """The memory of a step is that of its largest task times its tasks, or the mean if it is larger."""
    steps = [
        {"JobID": "1.0", "MaxRSS": "100K", "NTasks": "3"}, {"JobID": "1.1", "MaxRSS": "200K", "NTasks": ""},
        {"JobID": "2.0", "MaxRSS": "", "AveRSS": "50K", "NTasks": "2"}, {"JobID": "3.0", "MaxRSS": "0"},
    ]  # fmt: skip
    log = sacct(tmp_path, {}, {"JobID": "2"}, {"JobID": "3"}, *steps)
    assert log.fields["used_memory"].to_list() == [150, 50, 0]
    assert log.tally.notes["steps, which are not jobs"] == (4, 5)


# -- recognized formats


@pytest.mark.parametrize(
    ("text", "accounting", "headless"),
    [
        ('{"jobs": []}', True, False), ("JobId=1 UserId=a", True, False), ("JobID|User|State\n1|a|b", True, False),
        ("User,Submit\n", True, False), ("User\n", False, False), ("; JobID|User|State|x|y|z\n", False, False),
        ("1|a|b|c|d\n", False, True), ("1|a|b|c\n", False, False), (";1|a|b|c|d\n", False, False), ("", False, False),
        ("JobID|User|State|Start|End\n", True, False), ("\n\n  {", True, False), ("1 2 3 4\n", False, False),
    ],
)  # fmt: skip
def test_accounting_is_recognized_by_its_beginning(tmp_path, text, accounting, headless):
    (tmp_path / "file").write_text(text)
    assert (is_accounting(tmp_path / "file"), is_headless(tmp_path / "file")) == (accounting, headless)
    assert not is_accounting(tmp_path / "missing")
