"""Known jobs, written in each dialect with random notations, are read back, or counted with their reason."""

import os
import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from helpers.records import condor, csv, gwf, jobcomp, lsf, one, pbs, read, sacct, sge, slurm_json, text
from swflow.log.importers.batsim import import_batsim
from swflow.log.importers.records import Site
from swflow.workload.clean import clean_log
from swflow.workload.export import export

#: Logs of each dialect; more of them take about 0.2 s each.
LOGS = int(os.environ.get("SWFLOW_MANGLED", "4"))


def moment(rng: random.Random, seconds: int, *, plain: bool = True) -> str:
    """Return a time in a random notation."""
    utc = datetime.fromtimestamp(seconds, UTC)
    zone = timezone(timedelta(minutes=rng.choice([-210, 60, 330])))
    notations = [
        f"{utc:%Y-%m-%dT%H:%M:%S}", f"{utc:%Y-%m-%d %H:%M:%S}", f"{utc:%Y-%m-%dT%H:%M:%S}Z", f"{utc:%Y/%m/%d %H:%M:%S}",
        f"{utc:%Y-%m-%dT%H:%M:%S}.000", f"{utc.astimezone(zone):%Y-%m-%dT%H:%M:%S%z}", f" {utc:%Y-%m-%dT%H:%M:%S} ",
        utc.astimezone(zone).isoformat(), utc.ctime(), f"{utc:%d-%b-%Y %H:%M:%S}", f"{utc:%a, %d %b %Y %H:%M:%S +0000}",
        f"{utc.astimezone(timezone(timedelta(hours=1))):%a %b %e %H:%M:%S CET %Y}",
    ]  # fmt: skip
    return rng.choice([*notations, *([str(seconds), f"{seconds}000"] if plain else [])])


def limit(rng: random.Random, minutes: int) -> str:
    """Return a time limit in a random notation of Slurm."""
    hours, rest = divmod(minutes, 60)
    days, left = divmod(hours, 24)
    return rng.choice(
        [f"{hours:02}:{rest:02}:00", str(minutes), f"{days}-{left:02}:{rest:02}", f"{days}-{left:02}:{rest:02}:00"]
    )


def jobs(rng: random.Random) -> list[dict[str, int]]:
    """Return random jobs, in the order of their submission."""
    begin, found = rng.randint(10**9, 2 * 10**9), []
    for number in range(1, rng.randint(2, 6)):
        begin += rng.randint(1, 10**5)
        start = begin + rng.choice([0, rng.randint(1, 10**5)])
        found.append({"number": number, "submit": begin, "start": start, "end": start + rng.randint(1, 10**5),
                      "width": rng.choice([1, 8, 64, 1024]), "limit": rng.randint(1, 5000)})  # fmt: skip
    return found


def written(rng: random.Random, dialect: str, given: list[dict[str, int]]) -> str:
    """Return jobs in a dialect with random notations."""
    pad = rng.choice(["", " "])
    epoch = rng.choice(["", ".0", "000"])
    parts = []
    for job in given:
        n, width = job["number"], job["width"]
        times = {name: f"{job[name]}{epoch}" for name in ("submit", "start", "end")}
        clocks = [moment(rng, job[name], plain=dialect != "jobcomp") for name in ("submit", "start", "end")]
        if dialect == "sacct":
            tres = rng.choice([f"cpu={width},node=1", f"1={width},2=100,4=1", f"billing=1,cpu={width},mem=4G,node=1"])
            cpus = rng.choice([f"{pad}{width}", ""])
            parts.append(sacct(JobID=f"{pad}{n}", Submit=clocks[0], Start=clocks[1], End=clocks[2], Elapsed="", AllocCPUS=cpus,  # noqa: E501
                               AllocTRES=tres, Timelimit=limit(rng, job["limit"])))  # fmt: skip
        elif dialect == "json":
            wrap = rng.choice(
                [lambda value: value, str, lambda value: {"set": True, "infinite": False, "number": value}]
            )
            times_of = {"submission": job["submit"], "start": job["start"], "end": job["end"]}
            parts.append(one({key: wrap(value) for key, value in times_of.items()} | {"limit": wrap(job["limit"]), "elapsed": None},  # noqa: E501
                             job_id=n, tres={"allocated": [{"type": "cpu", "name": "", "count": wrap(width)}]}))  # fmt: skip  # noqa: E501
        elif dialect == "jobcomp":
            parts.append(jobcomp(JobId=n, SubmitTime=clocks[0].strip(), StartTime=clocks[1].strip(), EndTime=clocks[2].strip(),  # noqa: E501
                                 ProcCnt=width, TimeLimit=limit(rng, job["limit"])))  # fmt: skip
        elif dialect == "pbs":
            hosts, more = rng.choice([
                (f"n1/0*{width}", {}), (f"n1/0-{width - 1}" if width > 1 else "n1/0", {}),
                ("n1/7", {"Resource_List__mppwidth": width}), ("n1/7", {"Resource_List__procs": width}),
                ("n1/7", {"total_execution_slots": width}), ("n1/7", {"exec_vnode": f"(n1:ncpus={width})"}),
            ])  # fmt: skip
            asked = rng.choice([str(job["limit"] * 60), f"{job['limit'] // 60}:{job['limit'] % 60:02}:00"])
            parts.append(pbs(f"{n}.f", ctime=times["submit"], start=times["start"], end=times["end"], exec_host=hosts,
                             Resource_List__walltime=asked, **more))  # fmt: skip
        elif dialect == "lsf":
            hosts = rng.choice([f'1 "{width}*n1"', " ".join([str(width), *['"n1"'] * width])])
            parts.append(
                lsf(hosts, job=n, **times, estimate=job["limit"] * 60, name=rng.choice(["x", 'a ""b""', "c d"]))
            )
        elif dialect == "sge":
            milli = rng.choice(["", "000"])
            asked = rng.choice([str(job["limit"] * 60), f"0:{job['limit']}:0"])
            parts.append(sge(job=n, **{name: f"{job[name]}{milli}" for name in times}, slots=width, name=rng.choice(["x", "a:b"]),  # noqa: E501
                             category=f"-l h_rt={asked}"))  # fmt: skip
        elif dialect == "condor":
            parts.append(condor(ClusterId=n, QDate=job["submit"], JobCurrentStartDate=times["start"], CompletionDate=times["end"],  # noqa: E501
                                RequestCpus=width, AllowedJobDuration=job["limit"] * 60))  # fmt: skip
        elif dialect == "gwf":
            values = (n, job["submit"], job["start"] - job["submit"], job["end"] - job["start"], width, -1, -1, width)
            parts.append(gwf(*values, job["limit"] * 60))
        elif dialect == "csv":
            cells = [
                f'{pad}"{n}"{pad}' if pad else str(n),
                *(f'"{clock}"' if "," in clock else clock for clock in clocks),
                f'"{width:,}"',
                limit(rng, job["limit"]),
                "1",
                "COMPLETED",
            ]
            cells[5] = f"{job['limit'] * 60}" if rng.random() < 0.5 else f"{job['limit']} min"
            parts.append(",".join(cells))
    body = {"sacct": text, "json": slurm_json}.get(dialect, lambda *lines: "".join(lines))
    content = csv(*(csv.__defaults__ or ()), *parts) if dialect == "csv" else body(*parts)
    return (
        content.replace("\n", "\r\n") if dialect in ("pbs", "sge", "csv", "sacct") and rng.random() < 0.3 else content
    )


@pytest.mark.parametrize("dialect", ["sacct", "json", "jobcomp", "pbs", "lsf", "sge", "condor", "gwf", "csv"])
def test_jobs_in_random_notations_are_read_back(tmp_path, dialect: str):
    rng = random.Random(f"mangled {dialect}")
    for _ in range(LOGS):
        given = jobs(rng)
        content = written(rng, dialect, given)
        log = read(tmp_path, dialect, content)
        names = ("wait_time", "run_time", "allocated_processors", "requested_time")
        expected = [
            (job["start"] - job["submit"], job["end"] - job["start"], job["width"], job["limit"] * 60) for job in given
        ]
        assert log.fields.select(names).rows() == expected, (content, log.tally)
        assert not log.tally.removed, content


def test_a_workload_of_batsim_comes_back(tmp_path):
    lines = [f"{n} {n * 10} 5 {60 + n}.5 {n} -1 -1 {n} {200 + n} -1 1 1 -1 -1 -1 -1 -1 -1" for n in range(1, 9)]
    (tmp_path / "a.swf").write_text("; MaxProcs: 16\n" + "\n".join(lines) + "\n")
    export(tmp_path / "a.swf", tmp_path / "a.json")
    import_batsim(str(tmp_path / "a.json"), Site()).write(tmp_path / "b.parquet")
    before, after = (clean_log(tmp_path / name) for name in ("a.swf", "b.parquet"))
    names = ("job_id", "submit_time", "run_time", "processors", "estimate")
    assert after.jobs.select(names).equals(before.jobs.select(names))
    assert after.machine.processors == 16
