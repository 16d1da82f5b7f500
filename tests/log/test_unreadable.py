"""A number that cannot be read is unknown, and the import states it; damaged lines take linear time."""

import json
from pathlib import Path

import pytest

from swflow.log.importers.pbs import import_pbs
from swflow.log.importers.records import ImportedLog, Site
from swflow.log.importers.sacct import import_sacct
from swflow.log.recognise import is_yaml

SACCT = {
    "JobID": "7", "User": "ada", "JobName": "run", "Partition": "main", "State": "COMPLETED",
    "Submit": "2024-01-08T08:00:00", "Eligible": "2024-01-08T08:00:00", "Start": "2024-01-08T08:10:00",
    "End": "2024-01-08T09:10:00", "Elapsed": "01:00:00", "Suspended": "00:00:00", "Timelimit": "02:00:00",
    "ReqCPUS": "8", "AllocCPUS": "8", "NNodes": "2", "ReqMem": "16G", "TotalCPU": "06:00:00",
    "AllocTRES": "cpu=8,mem=16G,node=2,gres/gpu=2", "ReqTRES": "cpu=8,mem=16G,node=2", "AveRSS": "", "MaxRSS": "",
    "NTasks": "", "SubmitLine": "sbatch x.sh",
}  # fmt: skip

PBS = {
    "user": "ada", "ctime": "1704700800", "qtime": "1704700800", "etime": "1704700800", "start": "1704701400",
    "exec_host": "n1/0*8", "Resource_List.walltime": "02:00:00", "Resource_List.select": "1:ncpus=8:ngpus=1",
    "Resource_List.mem": "4gb", "end": "1704705000", "Exit_status": "0", "resources_used.cput": "01:00:00",
    "resources_used.mem": "12345kb", "resources_used.walltime": "01:00:00",
}  # fmt: skip


ODD = ("12abc", "1_0", "½", "٣", "1" * 400, "1e400")


def sacct(folder: Path, *jobs: dict[str, str]) -> ImportedLog:
    """Import jobs that differ from `SACCT` in some columns; each has a step that differs in the same ones."""
    lines = [SACCT | {"JobID": "1000"}]
    for number, changed in enumerate(jobs, 1):
        of_step = {name: changed[name] for name in ("AveRSS", "MaxRSS", "NTasks") if name in changed}
        job = SACCT | {"JobID": str(number)} | {name: text for name, text in changed.items() if name not in of_step}
        lines += [job, SACCT | {"JobID": f"{number}.0", "MaxRSS": "200K", "NTasks": "4"} | of_step]
    (folder / "s.txt").write_text("\n".join("|".join(line) for line in (SACCT, *(x.values() for x in lines))) + "\n")
    return import_sacct(str(folder / "s.txt"), Site())


def pbs(folder: Path, *jobs: dict[str, str]) -> ImportedLog:
    """Import jobs that differ from `PBS` in some values."""
    lines = [
        f"01/08/2024 09:10:00;E;{number}.s;{' '.join(f'{key}={value}' for key, value in (PBS | job).items())}\n"
        for number, job in enumerate(({}, *jobs), 1)
    ]
    (folder / "p.txt").write_text("".join(lines))
    return import_pbs(str(folder / "p.txt"), Site())


def unreadable(log: ImportedLog) -> int:
    """Return the number of notes on values that cannot be read."""
    return sum(count for reason, (count, _) in log.tally.notes.items() if reason.startswith("unreadable"))


def test_valid_values_are_not_noted(tmp_path: Path):
    assert unreadable(sacct(tmp_path, {}, {})) == unreadable(pbs(tmp_path, {}, {})) == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("AllocTRES", "cpu=8,mem=16G,node=2,gres/gpu={}"),
        ("AllocTRES", "cpu=8,mem=16G,node=2,gres/gpu:a={},gres/gpu:b=1"),
        ("AllocTRES", "cpu=8,mem={},node=2"),
        ("ReqTRES", "cpu=8,mem=16G,node={}"),
        *((name, "{}") for name in ("ReqMem", "AveRSS", "MaxRSS", "NTasks", "NNodes", "TotalCPU", "Timelimit")),
    ],
)
def test_unreadable_values_of_sacct_are_noted(tmp_path: Path, key: str, value: str):
    assert unreadable(sacct(tmp_path, *({key: value.format(odd)} for odd in ODD))) == len(ODD)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exec_host", "n1/0*{}"), ("exec_host", "n1/{}+n2/0"), ("Resource_List.select", "1:ncpus={}"),
        ("Resource_List.select", "1:ncpus=8:ngpus={}+2:ncpus=1"),
        *((name, "{}") for name in ("Resource_List.walltime", "Resource_List.mem", "Exit_status", "etime",
                                    "resources_used.cput", "resources_used.mem", "Resource_List.ncpus")),
    ],
)  # fmt: skip
def test_unreadable_values_of_pbs_are_noted(tmp_path: Path, key: str, value: str):
    assert unreadable(pbs(tmp_path, *({key: value.format(odd)} for odd in ODD))) == len(ODD)


def test_a_step_without_its_job_is_noted(tmp_path: Path):
    lines = [SACCT | {"JobID": "1"}, SACCT | {"JobID": "1.0", "MaxRSS": "1K"}, SACCT | {"JobID": "1_0.0"}]
    (tmp_path / "s.txt").write_text("\n".join("|".join(line) for line in (SACCT, *(x.values() for x in lines))) + "\n")
    notes = import_sacct(str(tmp_path / "s.txt"), Site()).tally.notes
    assert notes["steps of jobs that are not in the file (left out)"] == (1, 4)


def test_numbers_of_json_beyond_64_bits_are_noted(tmp_path: Path):
    second = {"set": True, "number": 1704700800}
    job = {"job_id": 1, "state": "COMPLETED", "array": {"limits": {"max": {"running": {"tasks": 2}}}},
           "time": dict.fromkeys(("submission", "start", "end"), second), "required": {"CPUs": 4}}  # fmt: skip
    other = job | {"job_id": 2, "array": {"limits": {"max": {"running": {"tasks": 10**300}}}}}
    (tmp_path / "s.json").write_text(json.dumps({"jobs": [job, other]}))
    log = import_sacct(str(tmp_path / "s.json"), Site())
    assert log.fields["site_job_id"].to_list() == ["1"] and log.tally.removed["malformed job"] == (1, 2)


def test_times_in_milliseconds_are_read(tmp_path: Path):
    logs = (
        pbs(tmp_path, {"start": "1704701400000", "end": "1704705000000"}),
        sacct(tmp_path, {"Start": "1704701400000", "End": "1704705000000"}),
    )
    assert all(3600 in log.fields["run_time"].to_list() and not log.tally.removed for log in logs)


# If the time grew with the square of a line's length or faster, none of the next three tests would end.


@pytest.mark.parametrize("what", ["|", "\ny", "[|"])
def test_long_lines_of_sacct_take_linear_time(tmp_path: Path, what: str):
    log = sacct(tmp_path, {}, {"JobName": "x" + what * 1_000_000})
    assert log.fields.height == (3 if "\n" in what else 2)


@pytest.mark.parametrize("line", ["      x", "\t\tjobs", "a: b", "#", '"a":'])
def test_lines_before_the_jobs_of_yaml_take_linear_time(line: str):
    assert not is_yaml((line + "\n").encode() * 100_000)  # exponential if blanks had two places


@pytest.mark.parametrize("what", [" ", "+", "a", "n/"])
def test_long_lines_of_pbs_take_linear_time(tmp_path: Path, what: str):
    assert pbs(tmp_path, {"exec_host": what * 1_000_000}).fields.height == 2


@pytest.mark.parametrize("value", ["undefined", "NULL", "nan", "not set", "?", " -1 ", "0", "'None'"])
def test_placeholders_are_unknown_and_not_unreadable(tmp_path: Path, value: str):
    assert unreadable(pbs(tmp_path, {"Resource_List.walltime": value}, {})) == 0
