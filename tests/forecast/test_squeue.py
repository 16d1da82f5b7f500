"""Queues in every form in which ``squeue`` writes them."""

import json
import math
from datetime import datetime

import pytest
import yaml

from swflow.errors import SwflowError
from swflow.forecast.queued import Blocked, Place, place_of
from swflow.forecast.squeue import FORMAT, read_squeue
from swflow.log.importers.slurm import STATES
from swflow.log.recognise import recognize

HEADER = "JOBID|USER|ACCOUNT|PARTITION|CPUS|TIME_LIMIT|SUBMIT_TIME|START_TIME|STATE"
WHOLE = f"{HEADER}|REASON|QOS|DEPENDENCY"


def read(tmp_path, text: str | bytes, name: str = "q.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_squeue(path)


def line(job="5", state="PENDING", limit="2:00:00", cpus="4", start="N/A", partition="batch") -> str:
    return f"{job}|ann|acc|{partition}|{cpus}|{limit}|2024-01-24T09:00:00|{start}|{state}"


def number(value, *, infinite=False, known=True) -> dict:
    return {"set": known, "infinite": infinite, "number": value}


def job(**values) -> dict:
    """Return a job of squeue --json."""
    base = {
        "job_id": 7, "job_state": ["PENDING"], "user_name": "ann", "partition": "batch", "cpus": number(4),
        "time_limit": number(120), "submit_time": number(1_700_000_000), "start_time": number(0),
    }  # fmt: skip
    return base | values


def read_json(tmp_path, *jobs: dict, **more):
    return read(tmp_path, json.dumps({"jobs": list(jobs), **more}), "q.json")


@pytest.mark.parametrize(
    "tasks",
    ["0-59%20", "0-59", "[0-59%20]", "0-29,30-59", "0,1-59", "0x" + "F" * 15, "0-58:2,1-59:2%5"],
)
def test_an_array_that_waits_is_its_tasks(tmp_path, tasks):
    (array,) = (read_json(tmp_path, job(job_id=50, array_job_id=number(50), array_task_string=tasks)),)
    assert sorted(array, key=lambda one: int(one.job[3:])) == [
        array[0]._replace(job=f"50_{task}") for task in range(60)
    ]
    listed = tasks.strip("[]")
    text = read(tmp_path, f"{HEADER}\n{line(f'50_[{listed}]')}\n")
    assert {one.job for one in text} == {one.job for one in array} and len(text) == 60
    by_columns = read(tmp_path, f"{HEADER}|ARRAY_JOB_ID|ARRAY_TASK_ID\n{line('50')}|50|{tasks}\n")
    assert [one.job for one in by_columns] == [one.job for one in text]


def test_a_task_and_an_array_that_runs_are_one_job(tmp_path):
    rows = f"{line('50_7')}\n{line('50_8', 'RUNNING', start='2024-01-24T09:00:00')}\n{line('60+1')}\n"
    assert [one.job for one in read(tmp_path, f"{HEADER}\n{rows}")] == ["50_7", "50_8", "60+1"]
    running = job(job_id=61, array_job_id=number(50), array_task_id=number(8), job_state=["RUNNING"],
                  start_time=number(1_700_000_100), array_task_string="")  # fmt: skip
    old = job(job_id=9, array_job_id=0, array_task_id=0, array_task_string="")
    assert [one.job for one in read_json(tmp_path, running, old)] == ["50_8", "9"]


@pytest.mark.parametrize("tasks", ["0-59,...", "9-3", "1-x", "0-9:0", "0-999999999"])
def test_tasks_that_cannot_be_read_are_named_by_their_line(tmp_path, tasks):
    with pytest.raises(SwflowError, match=r"q\.txt:3: .*array tasks"):
        read(tmp_path, f"{HEADER}\n{line('4')}\n{line(f'50_[{tasks}]')}\n")
    with pytest.raises(SwflowError, match=r"q\.json: job 1 of 1: .*array tasks"):
        read_json(tmp_path, job(array_job_id=50, array_task_string=tasks))


def test_every_state_of_slurm_has_a_place(tmp_path):
    for name in STATES:
        assert isinstance(place_of([name], "here"), Place)
        start = "2024-01-24T09:00:00"
        found = read(tmp_path, f"{HEADER}\n{line('1', name, start=start)}\n")
        same = read_json(tmp_path, job(job_state=name, start_time=1_700_000_100))
        assert len(found) == len(same) == (place_of([name], "here") is not Place.ENDED)
    waits = {name for name in STATES if place_of([name], "") in (Place.WAITS, Place.HELD)}
    assert waits == {
        "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT", "EXPEDITING"
    }  # fmt: skip
    ended = {name for name in STATES if place_of([name], "") is Place.ENDED}
    assert {"COMPLETED", "CANCELLED", "FAILED", "PREEMPTED", "TIMEOUT", "NODE_FAIL"} <= ended


@pytest.mark.parametrize(
    ("states", "place"),
    [
        (["PENDING", "REQUEUED"], Place.WAITS),
        (["CANCELLED", "COMPLETING"], Place.RUNS),
        (["RUNNING", "CONFIGURING"], Place.RUNS),
        (["PENDING", "SPECIAL_EXIT"], Place.HELD),
        (["PENDING", "REQUEUE_HOLD"], Place.HELD),
        (["COMPLETED"], Place.ENDED),
        (["COMPLETI"], Place.RUNS),
        (["CANCELLE"], Place.ENDED),
    ],
)
def test_states_with_flags(states, place):
    assert place_of(states, "here") is place


def test_short_and_cut_states_are_read(tmp_path):
    text = f"{HEADER.replace('STATE', 'ST')}\n{line('1', 'PD')}\n{line('2', 'R', start='2024-01-24T10:00:00')}\n"
    assert [one.start is None for one in read(tmp_path, text)] == [True, False]
    with pytest.raises(SwflowError, match=r"q\.txt:2: state: 'ODD'"):
        read(tmp_path, f"{HEADER}\n{line('1', 'ODD')}\n")
    with pytest.raises(SwflowError, match=r"q\.json: job 1 of 1: state: 'ODD'"):
        read_json(tmp_path, job(job_state=["ODD"]))


REASONS = [
    ("Resources", Blocked.NOT), ("Priority", Blocked.NOT), ("None", Blocked.NOT), ("", Blocked.NOT),
    ("JobHeldUser", Blocked.HELD), ("JobHeldAdmin", Blocked.HELD), ("JobHoldMaxRequeue", Blocked.HELD),
    ("launch failed requeued held", Blocked.HELD), ("Dependency", Blocked.DEPENDENCY),
    ("DependencyNeverSatisfied", Blocked.NEVER), ("BeginTime", Blocked.BEGIN), ("PartitionTimeLimit", Blocked.NEVER),
    ("PartitionNodeLimit", Blocked.NEVER), ("QOSMaxCpuPerJobLimit", Blocked.NEVER), ("BadConstraints", Blocked.NEVER),
    ("InvalidQOS", Blocked.NEVER), ("AssocGrpCpuLimit", Blocked.OTHER), ("QOSMaxJobsPerUserLimit", Blocked.OTHER),
    ("JobArrayTaskLimit", Blocked.OTHER), ("ReqNodeNotAvail, UnavailableNodes:n1", Blocked.OTHER),
    ("Licenses", Blocked.OTHER), ("Reservation", Blocked.OTHER), ("PartitionDown", Blocked.OTHER),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "blocked"), REASONS)
def test_reasons_are_told_apart_in_every_format(tmp_path, reason, blocked):
    (text,) = read(tmp_path, f"{WHOLE}\n{line()}|{reason}|normal|(null)\n")
    (listed,) = read(tmp_path, f"{HEADER}|NODELIST(REASON)\n{line()}|({reason})\n")
    (of_json,) = read_json(tmp_path, job(state_reason=reason))
    assert [one.blocked() for one in (text, listed, of_json)] == [blocked] * 3
    assert (text.account, text.qos) == ("acc", "normal")


def test_begin_times_dependencies_and_holds(tmp_path):
    (later,) = read(tmp_path, f"{WHOLE}\n{line(start='2024-02-01T08:00:00')}|BeginTime||(null)\n")
    assert later.begin == datetime(2024, 2, 1, 8) and later.blocked() is Blocked.BEGIN
    begin = number(1_800_000_000)
    (same,) = read_json(tmp_path, job(state_reason="BeginTime", start_time=begin))
    (old,) = read_json(tmp_path, job(state_reason="BeginTime", start_time=0, eligible_time=1_800_000_000))
    assert same.begin == old.begin == 1_800_000_000
    (after,) = read(tmp_path, f"{WHOLE}\n{line()}|None||afterok:3(unfulfilled)\n")
    assert after.blocked() is Blocked.DEPENDENCY and after.dependency == "afterok:3(unfulfilled)"
    (free,) = read_json(tmp_path, job(state_reason="Priority", dependency="afterok:3"))
    assert free.blocked() is Blocked.NOT
    (held,) = read_json(tmp_path, job(hold=True, state_reason="None"))
    (special,) = read(tmp_path, f"{HEADER}\n{line(state='SPECIAL_EXIT')}\n")
    assert held.blocked() is special.blocked() is Blocked.HELD


SENTINELS = [4294967294, 4294967295, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("value", [*SENTINELS, *map(str, SENTINELS), None, 0, number(0, known=False),
                                   number(0, infinite=True), number(4294967294)])  # fmt: skip
def test_unset_and_infinite_numbers_are_unknown(tmp_path, value):
    (found,) = read_json(
        tmp_path, job(time_limit=value, array_job_id=value, array_task_id=value, cpus=value, node_count=number(3))
    )
    assert math.isnan(found.limit) and found.processors == 3 and found.job == "7"
    with pytest.raises(SwflowError, match=r"q\.json: job 1 of 1: no cpus"):
        read_json(tmp_path, job(cpus=value))


@pytest.mark.parametrize(
    ("text", "limit"),
    [("UNLIMITED", math.nan), ("NOT_SET", math.nan), ("Partition_Limit", math.nan), ("INVALID", math.nan),
     ("", math.nan), ("4294967295", math.nan), ("1-12:00:00", 129600.0), ("10:00", 600.0), ("90", 5400.0),
     ("2-00", 172800.0)],
)  # fmt: skip
def test_limits_of_texts(tmp_path, text, limit):
    (found,) = read(tmp_path, f"{HEADER}\n{line(limit=text)}\n")
    assert found.limit == limit or (math.isnan(limit) and math.isnan(found.limit))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (line(limit="soon"), "TIME_LIMIT: 'soon'"),
        (line(cpus="many"), "CPUS: 'many'"),
        (line(state="RUNNING"), "START_TIME: 'N/A'"),
        (line().rpartition("|")[0], "8 columns, but 9 in the header"),
        (line(start="2199-01-01T00:00:00", state="RUNNING"), "is in the future"),
    ],
)
def test_odd_values_are_named_by_their_line(tmp_path, row, named):
    with pytest.raises(SwflowError) as caught:
        read(tmp_path, f"{HEADER}\n\n{line()}\n{row}\n")
    assert str(caught.value).startswith(f"{tmp_path}/q.txt:4: ") and named in str(caught.value)


def test_large_numbers_of_cpus_can_be_short(tmp_path):
    assert [one.processors for one in read(tmp_path, f"{HEADER}\n{line(cpus='2K')}\n{line(cpus='1.5K')}\n")] == [
        2048, 1536
    ]  # fmt: skip


@pytest.mark.parametrize("encoded", ["utf-8-sig", "utf-8"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_marks_of_byte_order_and_ends_of_lines(tmp_path, encoded, end):
    text = end.join([WHOLE, f"{line()}|Priority|normal|(null)", ""])
    (found,) = read(tmp_path, text.encode(encoded))
    assert (found.job, found.qos, found.dependency) == ("5", "normal", "")
    (same,) = read(tmp_path, json.dumps({"jobs": [job()]}).encode(encoded), "q.json")
    assert same.job == "7"


def test_columns_can_have_any_order_and_fixed_widths(tmp_path):
    names = ["JOBID", "USER", "PARTITION", "CPUS", "TIME_LIMIT", "SUBMIT_TIME", "START_TIME", "STATE", "REASON"]
    rows = [
        ["50_[0-3]", "ann", "batch", "4", "2:00:00", "2024-01-24T09:00:00", "N/A", "PENDING", "Resources"],
        ["8", "a_user_with_20_letter", "batch", "64", "UNLIMITED", "2024-01-24T08:00:00", "2024-01-24T08:30:00",
         "RUNNING", "None"],
        ["9", "ann", "batch", "2", "1:00:00", "2024-01-24T09:30:00", "N/A", "PENDING", ""],
    ]  # fmt: skip
    fixed = "\n".join("".join(f"{value[:20]:<20}" for value in row) for row in [names, *rows])
    right = "\n".join(" ".join(f"{value:>22}" for value in row[:8]) for row in [names, *rows])
    mixed = "\n".join("|".join(reversed(row)) for row in [names, *rows])
    for text in (fixed, right, mixed):
        found = read(tmp_path, text + "\n")
        assert [one.job for one in found] == ["50_0", "50_1", "50_2", "50_3", "8", "9"]
        assert found[4].start == datetime(2024, 1, 24, 8, 30) and math.isnan(found[4].limit)
        assert found[4].processors == 64 and found[5].limit == 3600.0
    # -O JobID,JobArrayID: both columns have the same name
    twice = f"JOBID|{HEADER}\n50|{line('50_[0-2]')}\n"
    assert [one.job for one in read(tmp_path, twice)] == ["50_0", "50_1", "50_2"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "q.txt:1: 'empty'"),
        ("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n", "no column CPUS"),
        ("squeue: error: Unable to contact slurm controller\n", "no header"),
        (line() + "\n", "no header"),
        ('{"jobs": 3}', "JSON without a list 'jobs'"),
        ('{"jobs": [3]}', "q.txt: job 1 of 1"),
        ('[{"job_id": 3}]', "q.txt: job 1 of 1: no job_state"),
    ],
)
def test_other_formats_are_refused_with_the_right_one(tmp_path, text, named):
    with pytest.raises(SwflowError) as caught:
        read(tmp_path, text)
    assert named in str(caught.value) and "\n" not in str(caught.value)
    assert FORMAT in str(caught.value) or "squeue --json" in str(caught.value)


@pytest.mark.parametrize("version", ["20.11", "21.08", "22.05", "23.02", "23.11", "24.11", "25.11"])
def test_json_of_all_versions(tmp_path, version):
    """Numbers are plain at first and mappings later; states are texts and later lists."""
    plain = version < "23.02"
    of = (lambda value: value) if plain else number
    states = "PENDING" if version < "23.11" else ["PENDING"]
    values = job(
        job_id=5, job_state=states, cpus=of(8), time_limit=of(4294967295) if plain else number(0, infinite=True),
        submit_time=1_700_000_000 if version < "23.11" else number(1_700_000_000), array_job_id=of(5),
        array_task_id=of(0) if plain else number(0, known=False), array_task_string="1-3", eligible_time=of(0),
        start_time=of(0), state_reason="Priority", dependency="", user_id=1000, node_count=of(1),
    )  # fmt: skip
    del values["user_name"]
    more = {"last_update": number(1_700_000_300)} if version >= "23.11" else {}
    found = read_json(tmp_path, values, meta={"Slurm": {"version": {"major": version[:2]}}}, **more)
    assert [one.job for one in found] == ["5_1", "5_2", "5_3"] and found[0].user == "1000"
    assert found[0].processors == 8 and math.isnan(found[0].limit) and found[0].submit == 1_700_000_000
    assert found.moment == (1_700_000_300 if more else None)


def test_an_empty_field_between_single_blanks_is_named_by_its_line(tmp_path):
    header, row = HEADER.replace("|", " "), line().replace("|", " ")
    assert len(read(tmp_path, f"{header}\n{row}\n")) == 1
    with pytest.raises(SwflowError, match=r"q\.txt:3: "):
        read(tmp_path, f"{header}\n{row}\n{row.replace(' acc', '')}\n")


NAMES = ("JOBID", "NAME", "USER", "PARTITION", "CPUS", "TIME_LIMIT", "SUBMIT_TIME", "STATE", "REASON")


def aligned(*rows: tuple[str, ...], right: bool) -> str:
    """Return a table whose columns but the last are 20 characters wide."""
    lines = [(*(f"{cell:>20}" if right else f"{cell:<20}" for cell in row[:-1]), row[-1]) for row in (NAMES, *rows)]
    return "".join((" " if right else "").join(line).rstrip() + "\n" for line in lines)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_blanks_and_empty_cells_in_fixed_widths(tmp_path, right, whole):
    rest = ("ann", "batch", "4", "2:00:00", "2024-01-24T09:00:00", "PENDING")
    rows = [
        ("7", "my long name", *rest, "Priority"), ("12345678901234567890", "a b", *rest, "launch failed requeued held"),
        ("9", "x", *rest, ""),
    ]  # fmt: skip
    found = read(tmp_path, aligned(*rows, *([("10", "x", *rest, "None")] if whole else []), right=right))
    assert [one.job for one in found[:3]] == ["7", "12345678901234567890", "9"]
    assert {(one.user, one.processors, one.limit) for one in found} == {("ann", 4, 7200)}
    assert [one.reason for one in found[:3]] == ["Priority", "launch failed requeued held", ""]


def test_a_cell_beyond_its_width_is_not_cut(tmp_path):
    header, row = aligned(("7", "x", "ann", "batch", "4", "2:00:00", "2024-01-24T09:00:00", "PENDING", ""), right=True
                          ).splitlines()  # fmt: skip
    with pytest.raises(SwflowError, match=r"q\.txt:2: another number of columns"):
        read(tmp_path, f"{header}\n{'1' * 24}{row[20:]}\n")


#: Quirks of queues: how the plain text is written otherwise.
QUIRKS = {
    "utf-16": lambda text: text.encode("utf-16"),
    "comma": lambda text: text.replace("|", ","),
    "semicolon": lambda text: text.replace("|", ";"),
    "tab": lambda text: text.replace("|", "\t"),
    "trailing separator": lambda text: text.replace("\n", "|\n"),
    "lower-case header": lambda text: text.replace(WHOLE, WHOLE.lower()),
    "cluster": lambda text: f"CLUSTER: main\n{text}",
    "date": lambda text: f"Wed Jan 24 09:30:00 2024\n{text}",
    "message": lambda text: f"squeue: warning: slow\n\n{text}",
    "offset": lambda text: text.replace("T09:00:00|", "T09:00:00+0100|"),
}


@pytest.mark.parametrize("quirk", QUIRKS)
def test_quirks_of_texts(tmp_path, quirk):
    plain = f"{WHOLE}\n{line()}|Priority|normal|(null)\n{line('50_[1-9:4]')}|(null)||\n"
    expected = read(tmp_path, plain)
    found = read(tmp_path, QUIRKS[quirk](plain))
    if quirk == "offset":
        assert {one.submit for one in found} == {1_706_083_200.0}
        found = [one._replace(submit=expected[0].submit) for one in found]
    assert list(found) == list(expected) and [one.job for one in found] == ["5", "50_1", "50_5", "50_9"]
    assert {one.blocked() for one in found} == {Blocked.NOT}
    assert recognize(tmp_path / "q.txt").key == "squeue"


@pytest.mark.parametrize("form", ["yaml", "list", "lines", "infinite"])
def test_quirks_of_documents(tmp_path, form):
    jobs = [job(job_id=number, time_limit=math.inf if form == "infinite" else 120) for number in (7, 8)]
    text = {
        "yaml": "---\n" + yaml.safe_dump({"meta": {"x": 1}, "jobs": jobs}, sort_keys=False),
        "lines": "".join(json.dumps(one) + "\n" for one in jobs),
        "list": json.dumps(jobs), "infinite": json.dumps({"jobs": jobs}),
    }[form]  # fmt: skip
    found = read(tmp_path, text)
    assert [one.job for one in found] == ["7", "8"]
    assert all(math.isnan(one.limit) if form == "infinite" else one.limit == 7200 for one in found)
    assert recognize(tmp_path / "q.txt").key == "squeue"


@pytest.mark.parametrize("text", [f"{WHOLE}\n", json.dumps({"jobs": [], "last_update": number(1_700_000_000)})])
def test_a_queue_can_be_empty(tmp_path, text):
    found = read(tmp_path, text)
    assert list(found) == [] and found.moment == (None if "|" in text else 1_700_000_000)
    assert recognize(tmp_path / "q.txt").key == "squeue"


@pytest.mark.parametrize("second", [HEADER, "CLUSTER: other"])
def test_two_queues_in_a_file_are_refused(tmp_path, second):
    with pytest.raises(SwflowError, match=r"q\.txt:3: .*: a second queue"):
        read(tmp_path, f"{HEADER}\n{line()}\n{second}\n{line()}\n")


@pytest.mark.slow
def test_a_queue_with_too_many_tasks_is_refused(tmp_path):
    rows = "\n".join(line(f"{array}_[0-149999]") for array in (50, 60))
    with pytest.raises(SwflowError, match=r"q\.txt: more than 200,000 jobs and array tasks"):
        read(tmp_path, f"{HEADER}\n{rows}\n")
    arrays = [job(array_job_id=array, array_task_string="0-149999") for array in (50, 60)]
    with pytest.raises(SwflowError, match=r"q\.json: more than 200,000 jobs and array tasks"):
        read_json(tmp_path, *arrays)
