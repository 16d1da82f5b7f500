"""Files of 30 kinds, three of each: what they are, and the command that reads them."""

import gzip
import json

import polars as pl
import pytest

from helpers.cli import HEADER, LINES, call
from swflow.errors import SwflowError
from swflow.log.recognise import KINDS, Recognized, recognize
from swflow.log.swf import read_swf

JOB = "1 0 5 60 4 -1 -1 4 90 -1 1 3 -1 -1 -1 -1 -1 -1"
SGE = "all.q:n1:g:ada:{}:1:sge:0:{}:0:0:" + ":".join(["0"] * 18) + ":NONE:d:mpi:8:0:1.0:0.0:0.0:{}:0.0:NONE:1.0\n"

FILES: dict[str, tuple[str, str, str]] = {
    "swf": (
        f"; MaxProcs: 8\n{JOB}\n",
        f"# a comment\n{JOB} 7 8 site\n{JOB} 7 8 site\n",
        f";a comment\n{JOB} 7 8 site\n{JOB} 7 8 site\n",
    ),
    "sacct": (
        "JobID|User|State|Submit\n1|a|b|c\n",
        "JobIDRaw|JobID|NCPUS|\n1|1|4|\n",
        '"JobID","State","Start","End"\n"1"\n',
    ),
    "sacct-json": (
        '{"jobs": [{"job_id": 1, "association": {}, "time": {"elapsed": 1}}]}',
        '{"meta": {"plugin": {}}, "jobs": [{"account": "a", "job_id": 7, "allocation_nodes": 1, "state": "COMPLETED"}]}',  # noqa: E501
        '{"jobs": []}',
    ),
    "sacct-yaml": (
        "jobs:\n- account: a\n  job_id: 12\n  time:\n    start: 1\n",
        "---\nmeta:\n  x: 1\njobs:\n- job_id: 1\n",
        "%YAML 1.1\n---\njobs:\n  - job_id: 3\n",
    ),
    "jobcomp": ("JobId=1 UserId=a(1) Name=x\n", "JobId=77 ArrayJobId=1 UserId=b(2)\n", "JobId=5 Name=y EndTime=1\n"),
    "squeue": (
        "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n 1 a b c R 1 1 n1\n",
        "JOBID|USER|START_TIME|SUBMIT_TIME|TIME_LIMIT\n1|a|b|c|d\n",
        '{"jobs": [{"job_id": 1, "job_state": ["PENDING"]}]}',
    ),
    "sacct-aligned": (
        "JobID      User   State\n---------- ------ -----\n1  a  b\n",
        "JobID Partition NCPUS\n1 a 4\n",
        "       JobID  State\n--- ---\n",
    ),
    "pbs": (
        "01/08/2024 09:10:00;E;1.f;user=a\n",
        "01/08/2024 09:10:00.123;Q;1.f;queue=q\n",
        "04/01/2015 00:00:01;S;7[1].head;user=a exec_host=n/0\n",
    ),
    "lsf": ('"JOB_FINISH" "10.1" 1 2 3\n', '"JOB_FINISH" "9.13" 1656313251 9 1\n', '\n"JOB_FINISH" "7.06" 16 9 1\n'),
    "sge": (
        SGE.format("x", "0:0", ""),
        "# Version: 8.1.9\n" + SGE.format("a:b", "0:1700000000", "-l h_rt=1"),
        SGE.format("y", "1:2", "-q a:b"),
    ),
    "condor": ("ClusterId = 1\nProcId = 0\n***\n", 'Owner = "a"\nClusterId = 3\n\n', '[{"ClusterId": 1, "ProcId": 0}]'),
    "oar": (
        '{"12": {"Job_Id": "12", "submissionTime": 1}}',
        '[{"id": 1, "submission_time": 3}]',
        "Job_Id: 1234\n    job_array_id = 1\n    owner = a\n",
    ),
    "moab": (
        "VERSION 230\n6335144 4 8 ada g 14400 Completed [batch:1] 1397084000 1397084100\n",
        "23:59:59 1:2 job M.1 JOBSUBMIT 1\n",
        "12:00:00 1397:1397 node n1 NODEUP x\n",
    ),
    "flux": (
        '{"jobs": [{"id": 1, "t_submit": 1.5}]}',
        '{"id": 7, "t_run": 2.0, "t_cleanup": 3}\n',
        "JOBID USER NAME ST NTASKS NNODES\n",
    ),
    "batsim": (
        '{"nb_res": 4, "jobs": [], "profiles": {}}',
        '{"jobs": [{"id": "a", "subtime": 1, "res": 2}]}',
        json.dumps({"description": "d", "nb_res": 9, "jobs": [{"id": 1}]}),
    ),
    "gwf": (
        "# GWF\n" + "1\t5\t10\t100\t4" + "\t-1" * 6 + "\tU1" + "\t-1" * 17 + "\n",
        "1 5 10 100 4 -1 -1 4 300 -1 1 U1" + " -1" * 17 + "\n",
        "# a\n# b\n1 5 10 100 4 -1 -1 4 300 -1 1\n",
    ),
    "clustercockpit": (
        '{"jobId": 1, "subCluster": "m"}',
        '{"jobId": 3, "numHwthreads": 72, "jobState": "failed"}',
        '[{"jobId": 1, "numNodes": 2}]',
    ),
    "philly": (
        '[{"status": "Pass", "attempts": [], "submitted_time": "x"}]',
        '[{"vc": "a", "attempts": [{"start_time": 1}]}]',
        json.dumps([{"jobid": "a", "attempts": [], "user": "u", "vc": "v"}], indent=1),
    ),
    "csv": (
        "job_id,user,state,submit_time\n1,a,b,c\n",
        " id | sent | ran \n----+------+-----\n  1 |    2 |   3 \n",
        "id^|^submit^|^wait\n1^|^2^|^3\n",
    ),
    "slurm.conf": (
        "ClusterName=c\nNodeName=n[1-4] CPUs=4\n",
        "# comment\nSlurmctldHost=a\n",
        "PartitionName=x Nodes=n1 \\\n Default=YES\n",
    ),
    "jobcomp-json": (
        '{"jobid": 1, "@submit": "x", "@end": "y", "total_cpus": 8}',
        '{"hits": {"hits": [{"_index": "slurm", "_source": {"jobid": 1, "@start": "x"}}]}}',
        '{"index": {"_index": "slurm"}}\n{"jobid": 1, "@end": "x"}\n',
    ),
    "scontrol-site": (
        "Configuration data as of 2024-01-08T08:00:00\nClusterName = c\n",
        "PartitionName=main\n   AllowGroups=ALL\n   Nodes=n1\n",
        "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nmain* up 1:00 4 idle n[1-4]\n",
    ),
    "slurm-nodes": (
        "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   CPUAlloc=0 CPUTot=16\n",
        "NodeName=n1 CPUTot=16 RealMemory=1\n",
        '{"nodes": [{"name": "n1", "cpus": 16, "real_memory": 1}], "meta": {}}',
    ),
    "slurm-qos": (
        "Name|Priority|GraceTime|Preempt|UsageFactor\nnormal|0|00:00:00||1\n",
        "Name|Priority|Preempt\nnormal|0|\n",
        "Name|UsageFactor|Priority|\nnormal|1|0|\n",
    ),
    "bacct": (
        "\nAccounting information about jobs that are: \n  - submitted by all users.\n",
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n5 a RUN q f n x Jan\n",
        "JOBID USER STAT QUEUE FROM_HOST\n",
    ),
    "qstat": (
        "Job id            Name             User\n----------------  -------- ----\n",
        "Job Id: 1.srv\n    Job_Name = x\n",
        "\nsrv: \n                                 Req'd  Req'd   Elap\nJob ID Username Queue\n",
    ),
    "condor-xml": (
        '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n<c>\n',
        "<classads>\n",
        '<?xml version="1.0"?><classads><c><a n="ClusterId"><i>7</i></a></c></classads>',
    ),
    "html": ("<!DOCTYPE html>\n<html>\n", "<html><body>", "<!-- a -->\n<HTML lang='en'>"),
    "unknown": (
        "[2024-01-08T08:00:00.123] _slurm_rpc_submit: JobId=7 InitPrio=1\n",
        "Cluster: c\nState: COMPLETED (exit code 0)\n",
        "schedulers:\n  easy:\n    order: fcfs\n",
    ),
    "binary": ("\0\1\2", "PK\x03\x04abc", "abc\0def"),
}


@pytest.mark.parametrize(("kind", "place"), [(kind, place) for kind in FILES for place in range(3)])
def test_a_file_is_recognized_with_its_command(tmp_path, kind: str, place: int):
    path = tmp_path / "some.file"
    path.write_text(FILES[kind][place])
    found = recognize(path)
    assert (found.key, bool(found.reason)) == (kind, True)
    named = "swflow import" in KINDS[kind][1]
    assert str(path) in found.command(path) or not found.is_read or not named
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert recognize(path).key == kind
    assert found.is_read or str(path) not in found.command(path)  # advice does not lead back to the file
    if kind not in ("swf", "binary", "unknown"):
        with pytest.raises(SwflowError) as caught:
            read_swf(path)
        assert found.name in str(caught.value) and "\n" not in str(caught.value)


def test_the_command_keeps_the_file_and_its_name():
    log = Recognized("log", "")
    assert log.command("site.parquet") == "swflow clean site.parquet -o site-new.parquet"
    assert log.command("OUT of FILE/a b.parquet") == "swflow clean 'OUT of FILE/a b.parquet' -o 'a b-new.parquet'"
    table = Recognized("csv", "", "my columns.yaml")
    assert table.command("FILE.csv") == "swflow import csv FILE.csv -o FILE.parquet --columns 'my columns.yaml'"


def test_no_command_replaces_the_log_that_it_reads(tmp_path, capfd):
    for name, words in (("a.swf", ("clean",)), ("b.parquet", ("import", "csv", "--columns", tmp_path / "m.yaml"))):
        file = tmp_path / name
        if file.suffix == ".swf":
            file.write_text(HEADER + "\n".join(LINES) + "\n")
        else:
            pl.DataFrame({"t": [1], "d": [2], "n": [3]}).write_parquet(file)
        (tmp_path / "m.yaml").write_text("columns: {submit_time: t, run_time: d, processors: n}\n")
        before = file.read_bytes()
        assert call(*words, file, "-o", tmp_path / "." / name) == 1
        assert "the output is the input" in capfd.readouterr().err
        assert file.read_bytes() == before


def test_commands_name_what_a_file_of_another_kind_is(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(FILES["lsf"][0])
    assert call("import", "sacct", "a.txt", "-o", "x.parquet") == 1
    assert "accounting of LSF" in (error := capfd.readouterr().err) and "swflow import lsf a.txt" in error
    (tmp_path / "b.csv").write_text(FILES["csv"][0])
    for words in (("import", "pbs", "b.csv", "-o", "x.parquet"), ("clean", "b.csv", "-o", "x.swf"), ("check", "b.csv")):
        assert call(*words) == 1
        assert "swflow import csv b.csv -o b.parquet --columns" in capfd.readouterr().err


def test_a_table_with_known_columns_names_its_mapping(tmp_path):
    header = "COBALT_JOBID,QUEUED_TIMESTAMP,START_TIMESTAMP,END_TIMESTAMP,WALLTIME_SECONDS,CORES_USED,CORES_REQUESTED,"
    header += "NODES_USED,USERNAME_GENID,PROJECT_NAME_GENID,QUEUE_NAME,EXIT_STATUS"
    (tmp_path / "a.csv").write_text(f"{header}\n" + ",".join("1" * 12) + "\n")
    assert recognize(tmp_path / "a.csv").command("a.csv") == "swflow import csv a.csv -o a.parquet --columns alcf"
    pl.DataFrame({"ts_submit": [1], "workflow_id": [2]}).write_parquet(tmp_path / "a.parquet")
    assert recognize(tmp_path / "a.parquet").key == "wta"
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "b.parquet")
    assert recognize(tmp_path / "b.parquet").key == "parquet"
