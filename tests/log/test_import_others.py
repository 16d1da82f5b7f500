"""Tests of imports of PBS, grid and tabular accounting from small synthetic files, with expected counts."""

import gzip

import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.log.importers.gwf import import_gwf
from swflow.log.importers.pbs import import_pbs
from swflow.log.importers.records import Site
from swflow.log.importers.table import PRESETS, import_table

# --- PBS --------------------------------------------------------------------------------------------------

TORQUE = (
    "user=ada group=staff account=physics jobname=my job queue=batch ctime=1704700800 qtime=1704700801 "
    "etime=1704700801 start=1704701400 owner=ada@front exec_host=n1/0-7+n2/0-7 Resource_List.nodes=2:ppn=8 "
    "Resource_List.walltime=02:00:00 Resource_List.mem=32gb session=1 end=1704705000 Exit_status=0 "
    "resources_used.cput=15:00:00 resources_used.mem=1600kb resources_used.walltime=00:59:59"
)
OPENPBS = (
    'user=bob group=chem project=_pbs_project_default jobname="x y" queue=workq ctime=1704700900 qtime=1704700900 '
    "etime=1704700900 start=1704700960 exec_host=n1/0*4+n2/0*2 exec_vnode=(n1:ncpus=4)+(n2:ncpus=2) "
    "Resource_List.ncpus=6 Resource_List.ngpus=1 Resource_List.select=1:ncpus=4+1:ncpus=2 "
    "Resource_List.walltime=00:10:00 session=2 end=1704701020 Exit_status=271 resources_used.ncpus=6 "
    "resources_used.walltime=00:01:00"
)
PBS = f"""\
01/08/2024 08:00:00;Q;1.front;queue=batch
01/08/2024 08:10:00;S;1.front;user=ada
01/08/2024 09:10:00;E;1.front;{TORQUE}
01/08/2024 08:17:00;E;2[7].front;{OPENPBS}
01/08/2024 08:17:00;D;3.front;requestor=ada@front
01/08/2024 08:30:00;R;1.front;
01/08/2024 10:00:00;E;1.front;{TORQUE.replace("1704701400", "1704706000").replace("end=1704705000", "end=1704706600")}
01/08/2024 09:10:00;E;1.front;{TORQUE}
01/08/2024 11:00:00;E;4.front;user=ada queue=batch ctime=1704700800 exec_host=n1/0+n1/1 end=1704706600 Exit_status=1
01/08/2024 11:00:00;E;5.front;user=eve queue=batch ctime=1704700800 start=1704706000 exec_host=n1/0+n1/1 end=1704706600
 Exit_status=-11
"""


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def written(content: str, name: str = "log.txt") -> str:
        (tmp_path / name).write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
        return str(tmp_path / name)

    return written


def test_pbs_and_torque(file):
    log = import_pbs(file(PBS), Site())
    jobs = log.fields.select(
        "site_job_id", "submit_time", "wait_time", "run_time", "allocated_processors", "requested_processors",
        "requested_time", "status",
    ).rows()  # fmt: skip
    assert jobs == [
        ("1", 0, 600, 3600, 16, 16, 7200, 1),
        ("5", 0, 5200, 600, 2, None, None, 0),
        ("2[7]", 100, 60, 60, 6, 6, 600, 5),
        ("1", 4200, 1000, 600, 16, 16, 7200, 1),  # rerun: submitted when the first run ended
    ]
    assert log.history[0]["removed"] == {"no start or no end": 1, "the same record again": 1}
    notes = log.history[0]["notes"]
    assert {reason[0] for reason in notes if " records" in reason} == {"Q", "S", "D", "R"}
    assert notes["further runs of jobs that were rerun"] == notes["tasks of arrays"] == notes["jobs with GPUs"] == 1
    assert notes["mended: line breaks in a value"] == 1
    first = log.fields.row(0, named=True)
    assert (first["used_memory"], first["requested_memory"], first["average_cpu_time"]) == (100, 2 * 1024**2, 3375)
    assert log.header.names_of("group_id") == {1: "physics", 2: "chem"}
    assert log.header.names_of("queue_id") == {1: "batch", 2: "workq"}
    assert log.header["Computer"] == ["front"]


def test_durations_of_torque_may_be_seconds(file):
    text = TORQUE.replace("02:00:00", "7200").replace("15:00:00", "54000").replace("00:59:59", "3599")
    seconds, hours = (
        import_pbs(file(f"01/08/2024 09:10:00;E;1.front;{record}\n"), Site()).fields for record in (text, TORQUE)
    )
    assert seconds.equals(hours)
    assert seconds["requested_time"][0] == 7200


def test_resources_arrays_and_dependencies_of_pbs(file):
    def record(job, request):
        return f"01/08/2024 09:10:00;E;{job}.f;user=a ctime=1 start=2 end=3 exec_host=n1/0*4 {request} Exit_status=0\n"

    log = import_pbs(
        file(
            record("1", "Resource_List.mem=2gb Resource_List.select=2:ncpus=2:ngpus=3")
            + record("2", "Resource_List.nodes=1:ppn=4:gpus=1 depend=afterok:1.f@f")
            + record("3[0]", "Resource_List.ngpus=2") + record("3[1]", "Resource_List.ngpus=2")
            + record("3[]", "Resource_List.ncpus=4")
            + record("4", "depend=afterany:3[].f:2.f,afterok:9.f")
        ),
        Site(),
    )  # fmt: skip
    jobs = log.fields
    assert jobs["gpus"].to_list() == [6, 1, 2, 2, None]
    assert jobs["memory"].to_list() == [2048, None, None, None, None]
    assert jobs["depends_on"].to_list() == [None, [1], None, None, [2, 3, 4]]
    assert log.history[0]["removed"] == {"whole arrays, whose tasks are jobs": 1}
    assert log.history[0]["notes"]["dependencies on jobs that are not in the log (left out)"] == 1


@pytest.mark.parametrize(
    ("hosts", "request_", "expected"),
    [
        ("n1/0", "Resource_List.ncpus=1", (1, 1)),
        ("n1/0+n1/1+n2/0", "Resource_List.nodes=1:ppn=2+1:ppn=1", (3, 3)),
        ("n1/0,2,4-7", "Resource_List.nodes=n1:ppn=6", (6, 6)),
        ("n1/1*16+n2/0*16", "Resource_List.select=2:ncpus=16:mpiprocs=16:mem=64gb", (32, 32)),
        ("n1/0", "Resource_List.nodes=3", (3, 3)),
        ("n1/0", "Resource_List.select=4", (4, 4)),
    ],
)
def test_processors_of_pbs(file, hosts, request_, expected):
    record = f"01/08/2024 09:10:00;E;1.f;user=a ctime=1 start=2 end=3 exec_host={hosts} {request_}"
    log = import_pbs(file(record), Site())
    assert log.fields.select("allocated_processors", "requested_processors").rows() == [expected]


# --- the Grid Workloads Archive ---------------------------------------------------------------------------

GWF = """\
# a comment
1 1109000000 10 100 4 -1 -1 4 300 -1 1 U7 G1 X1 Q0 -1 S1 S1 UNITARY -1 -1 -1 -1 -1 -1 -1 -1 -1 -1
2\t1109000050\t-1\t60\t2\t-1\t-1\t2\t-1\t-1\t0\tU8\tG1\tX1\tQ0\tP3\tS1\tS2\tUNITARY\t\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1\t-1
3 1109000060 5 60
4 later 5 60 2 -1 -1 2 -1 -1 0 U8 G1 X1 Q0 -1 S1 S2 UNITARY
"""


def test_the_grid_workloads_format(file):
    log = import_gwf(file(GWF, "grid.gwf.gz"), Site(processors=64))
    assert log.header["UnixStartTime"] == ["1109000000"]
    assert log.header["MaxProcs"] == ["64"]
    rows = log.fields.select("submit_time", "wait_time", "run_time", "allocated_processors", "requested_time", "status")
    assert rows.rows() == [(0, 10, 100, 4, 300, 1), (50, None, 60, 2, None, 0)]
    assert log.history[0]["removed"] == {"fewer than 11 fields of 29": 1, "SubmitTime is not a number": 1}
    assert log.header.names_of("user_id") == {1: "U7", 2: "U8"}
    assert log.header.names_of("partition_id") == {1: "S1", 2: "P3"}
    assert log.history[0]["notes"] == {"jobs of 2 sites taken as one machine (choose one: --site)": 2}
    one = import_gwf(file(GWF), Site(), of_site="S2")
    assert one.fields.height == 1
    repeated = import_gwf(file(GWF + GWF.replace("U8", "None")), Site())
    assert repeated.history[0]["removed"]["the same record again"] == 1
    assert repeated.fields["user_id"].to_list() == [1, 2, None]
    assert import_gwf(file(GWF.replace("S2", "-1")), Site()).history[0]["notes"] == {}  # -1 is no site


# --- tables -----------------------------------------------------------------------------------------------

TABLE = """\
id;who;submitted;began;finished;minutes;cores;megabytes;state;kind
a;ada;2024-01-08 08:00:00+00:00;2024-01-08T09:10:00+01:00;2024-01-08 09:10:00Z;120;4;100;COMPLETED;x
b;bob;2024-01-08 08:00:30;2024-01-08 08:01:30.5;2024-01-08 08:00:00;60;2;;CANCELLED by 3;x
c;bob;2024-01-08 08:00:30;2024-01-08 08:01:30;2024-01-08 08:02:00;soon;2;nan;OTHER;y
"""
MAPPING = """\
columns:
  job_id: id
  user: who
  submit_time: submitted
  start_time: {column: began}
  end_time: finished
  requested_time: {column: minutes, unit: min}
  processors: cores
  used_memory: {column: megabytes, unit: MB}
  status: state
"""


def test_times_from_the_start_of_a_log_are_not_those_of_1970(file):
    log = import_gwf(file("1 5 10 100 4 -1 -1 4 300 -1 1\n2 50 0 60 2 -1 -1 2 300 -1 1\n"), Site())
    assert log.fields["submit_time"].to_list() == [0, 45]
    assert not {"UnixStartTime", "TimeZoneString", "StartTime"} & log.header.keys()


def test_a_table_with_a_mapping(file):
    log = import_table(file(TABLE, "jobs.csv"), Site(), file(MAPPING, "mapping.yaml"))
    rows = log.fields.select(
        "site_job_id", "submit_time", "wait_time", "run_time", "requested_time", "allocated_processors", "used_memory",
        "status",
    )  # fmt: skip
    assert rows.rows() == [("a", 0, 600, 3600, 7200, 4, 102400, 1), ("c", 30, 60, 30, None, 2, None, None)]
    assert log.history[0]["removed"] == {"ended before it started": 1}
    assert log.history[0]["notes"] == {"unreadable requested_time": 1, "unreadable status": 1}
    assert log.tally.notes["unreadable requested_time"] == (1, 4)


def test_a_job_that_never_started_does_not_run_since_1970(file):
    """Slurm's database has a start of 0 for it, an array of 0 for a job of none, and no GPU among its resources."""
    table = (
        "id_job,time_submit,time_start,time_end,cpus_req,nodes_alloc,timelimit,state,id_user,partition,id_array_job,"
        "tres_alloc\n1,1600000000,1600000100,1600003700,4,1,60,3,7,a,0,2=9\n2,1600000000,0,1600003700,4,0,60,4,7,a,0,\n"
    )
    log = import_table(file(table), Site(), "mit-supercloud")
    assert log.fields.select("wait_time", "run_time", "status").rows() == [(100, 3600, 1), (3700, 0, 5)]
    assert log.history[0]["notes"] == {"never started (kept, with a run time of 0)": 1}


def test_repeated_rows_of_a_table_are_noted(file):
    log = import_table(file(TABLE + TABLE.partition("\n")[2], "jobs.csv"), Site(), file(MAPPING, "mapping.yaml"))
    assert log.fields.height == 4
    assert log.tally.notes["the id, times and sizes of an earlier job (kept)"] == (3, 5)


def test_a_parquet_table_and_other_units(tmp_path, file):
    table = pl.DataFrame(
        {
            "t": pl.Series([1704700800000]), "w": [30], "n": [2], "d": pl.Series(["01:30:00"]),
            "s": pl.Series(["done"]), "gone": [None],
        }
    )  # fmt: skip
    table.write_parquet(tmp_path / "jobs.parquet")
    mapping = """\
columns: {submit_time: {column: t, unit: ms}, wait_time: w, run_time: d, nodes: n, status: s}
status: {done: 1}
"""
    log = import_table(str(tmp_path / "jobs.parquet"), Site(), file(mapping, "m.yaml"))
    row = log.fields.row(0, named=True)
    assert (row["wait_time"], row["run_time"], row["allocated_processors"], row["status"]) == (30, 5400, 2, 1)
    assert log.header["UnixStartTime"] == ["1704700800"]
    assert log.history[0]["notes"] == {"nodes taken for processors": 1}


@pytest.mark.parametrize(
    ("form", "content", "options", "words"),
    [
        ("pbs", None, [], "bad: no such file"),
        ("pbs", "", [], "bad: no E record of an ended job (the file is empty)"),
        ("pbs", "nonsense\n", [], "1 malformed line"),
        ("pbs", "01/08/2024 08:00:00;Q;1.f;queue=b\n", [], "bad: no E record of an ended job (1 Q records"),
        ("pbs", "01/08/2024 08:00:00;E;1.f;queue=b\n", [], "none of 1 records is a valid job; 1 no start or no end"),
        ("gwf", "", [], "bad: no line in the Grid Workloads Format"),
        ("gwf", "1 2 3\n", [], "bad: no line in the Grid Workloads Format"),
        ("gwf", GWF, ["--site", "S9"], "bad: no job ran at site 'S9'; there are S1, S2"),
        ("gwf", GWF, ["--processors", "0"], "--processors: 0; expected at least 1"),
        ("csv", TABLE, ["--columns", "nowhere"], "--columns nowhere: no such file"),
        (
            "csv",
            TABLE,
            ["--columns", "a.yaml", MAPPING.replace("user:", "usr:")],
            "unknown 'usr'; did you mean 'user'?",
        ),
        (
            "csv",
            TABLE,
            ["--columns", "a.yaml", MAPPING.replace("cores", "core")],
            "no column 'core'; did you mean 'cores'?",
        ),
        ("csv", TABLE, ["--columns", "a.yaml", "columns: {user: who}"], "columns: submit_time is missing"),
        ("csv", TABLE, ["--columns", "a.yaml", "columns: [a"], "a.yaml:2: invalid YAML"),
        ("csv", TABLE, ["--columns", "a.yaml", "x: 1"], "a.yaml: must have 'columns'"),
        ("csv", TABLE, ["--columns", "a.yaml", MAPPING.replace("unit: min", "unit: MB")], "unknown unit 'MB'"),
        ("csv", TABLE, ["--columns", "a.yaml", MAPPING + "status: {a: 7}"], "status: must map values to 0"),
        (
            "csv",
            TABLE,
            [
                "--columns",
                "a.yaml",
                "columns: {submit_time: {column: submitted, factor: 60}, run_time: a, processors: b}",
            ],
            "submit_time: factor does not apply to it; expected unit, format",
        ),
        ("csv", "", ["--columns", "a.yaml", MAPPING], "bad: an empty table"),
        ("csv", "id;who\n", ["--columns", "a.yaml", MAPPING], "no column 'submitted'"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capfd, form, content, options, words):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "bad").write_text(content)
    if "a.yaml" in options:
        (tmp_path / "a.yaml").write_text(options[-1])
        options = options[:2]
    assert call("import", form, "bad", "-o", "out.parquet", *options) == 1
    (error,) = capfd.readouterr().err.strip().splitlines()
    assert error.startswith("swflow: ")
    assert words in error
    assert not (tmp_path / "out.parquet").exists()


def test_table_with_resources_arrays_and_dependencies(file):
    table = "id;t;w;d;n;tres;mem;array;most;after\n1;0;5;10;4;1=4,1001=1,1002=2;1.5;7;2;\n2;9;5;10;4;1=4;;0;;1 3\n"
    mapping = """
columns:
  job_id: id
  submit_time: t
  wait_time: w
  run_time: d
  processors: n
  gpus: {column: tres, pattern: '(?:^|,)100[12]=(\\d+)'}
  memory: {column: mem, unit: GB}
  array: array
  array_limit: most
  depends_on: after
"""
    jobs = import_table(file(table, "jobs.csv"), Site(), file(mapping, "mapping.yaml")).fields
    assert jobs["gpus"].to_list() == [3, None]
    assert jobs["memory"].to_list() == [1536, None]
    assert jobs["array_id"].to_list() == [1, None]
    assert jobs["array_limit"].to_list() == [2, None]
    assert jobs["depends_on"].to_list() == [None, [1]]
    wrong = mapping.replace("(\\d+)", "[0-9]+")
    with pytest.raises(SwflowError, match=r"gpus: pattern: .*; expected a regular expression with one group"):
        import_table(file(table, "jobs.csv"), Site(), file(wrong, "mapping.yaml"))


def test_jobs_without_ids_precede_no_job(file):
    table = "id,before,t,d,n,array,after\na,,0,10,1,,\n,,5,10,1,7,\n,a,9,10,1,,7_*\nd,x,9,10,1,7,7_*\n"
    columns = "submit_time: t, run_time: d, processors: n"
    jobs = import_table(file(table, "jobs.csv"), Site(), file(f"columns: {{{columns}}}", "plain.yaml")).fields
    assert jobs["preceding_job_id"].null_count() == 4
    columns += ", job_id: id, preceding_job: before, array: array, depends_on: after"
    log = import_table(file(table, "jobs.csv"), Site(), file(f"columns: {{{columns}}}", "named.yaml"))
    assert log.fields["preceding_job_id"].to_list() == [None, None, 1, None]
    assert log.fields["depends_on"].to_list() == [None, None, [4], None]
    assert log.tally.notes["preceding jobs that are not in the log (left out)"] == (1, 5)


@pytest.mark.parametrize("mapping", sorted(path.stem for path in PRESETS.glob("*.yaml")))
def test_mappings_of_data_sets_name_the_needed_columns(tmp_path, mapping):
    """A table with the columns of each mapping is imported; this does not check the columns of the data sets."""
    columns = yaml.safe_load((PRESETS / f"{mapping}.yaml").read_text())["columns"]
    values = {"submit_time": 1704700800, "start_time": 1704700860, "end_time": 1704701000, "requested_time": 10}
    values |= {"wait_time": 60, "run_time": 140}
    row = {entry if isinstance(entry, str) else entry["column"]: values.get(name, 2) for name, entry in columns.items()}
    pl.DataFrame([row]).write_csv(tmp_path / "jobs.csv")
    log = import_table(str(tmp_path / "jobs.csv"), Site(), mapping)
    assert log.fields.select("wait_time", "run_time").rows() == [(60, 140)]
