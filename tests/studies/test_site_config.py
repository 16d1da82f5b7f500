"""From the files of a site to an answer: import site, import sacct and whatif --config, without an edit."""

from pathlib import Path

import pytest
import yaml

from helpers.cli import call
from swflow.files.yaml import with_comments
from swflow.log.catalogue import load_catalogue
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.plan import plan_studies
from swflow.studies.site_config import SiteConfig
from swflow.workload.clean import open_workload

CONF = """\
ClusterName=hal
SchedulerParameters=bf_interval=30,bf_window=2880
SelectTypeParameters=CR_Core
PreemptType=preempt/qos
PreemptMode=REQUEUE
PriorityType=priority/multifactor
PriorityWeightAge=100
PriorityWeightFairshare=10
PriorityWeightQOS=50
AccountingStorageEnforce=limits
NodeName=c[1-4] CPUs=4
NodeName=g[1-2] CPUs=4 Gres=gpu:2
PartitionName=cpu Nodes=c[1-4]
PartitionName=gpu Nodes=g[1-2]
PartitionName=debug Nodes=ALL
"""

QOS = """\
Name|Priority|GrpTRES|MaxJobsPU|Preempt
normal|0|||
high|5|cpu=8,gres/gpu=2,gres/gpu:a100=1|3|normal
supporters|9|||normal
"""

ASSOC = """\
Account|ParentName|User|Share|MaxJobs|GrpJobs|GrpTRES
root|||1|||
bio|root||2|||
bio||ada|1|||
bio||bob|1|2||
chem|root||1|||cpu=4
"""

COLUMNS = "JobID|Cluster|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|Elapsed|Timelimit|AllocCPUS|NNodes"


def records(cluster: str = "hal", *more: str) -> str:
    """Return the accounting of 40 jobs, of which one is wider than a limit of today."""
    rows = [COLUMNS]
    for number in range(40):
        hour, minute = divmod(10 * number, 60)
        begin = f"2025-03-10T{hour:02d}:{minute:02d}:"
        qos, width = ("high", 12 if number == 3 else 2) if number % 3 == 0 else ("normal", 4)
        times = f"{begin}00|{begin}00|{begin}05|{begin}35|00:00:30|00:10:00"
        user = "ada" if number % 2 else "eve"
        rows.append(f"{number}|{cluster}|{user}|bio|cpu|{qos}|COMPLETED|{times}|{width}|{max(1, width // 4)}")
    return "\n".join([*rows, *more]) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWFLOW_INTERPRET", "1")
    for name, text in {"slurm.conf": CONF, "qos.txt": QOS, "assoc.txt": ASSOC, "sacct.txt": records()}.items():
        (tmp_path / name).write_text(text)
    assert (
        call("import", "site", "slurm.conf", "--qos", "qos.txt", "--associations", "assoc.txt", "-o", "site.yaml") == 0
    )
    return tmp_path


@pytest.mark.parametrize("log", ["sacct.txt", "my.parquet"])
def test_three_commands_answer_without_an_edit(folder, capfd, log):
    assert call("import", "sacct", "sacct.txt", "-o", "my.parquet") == 0
    capfd.readouterr()
    assert call("whatif", log, "--config", "site.yaml", "--nodes", "cpu=+1") == 0
    out, err = capfd.readouterr()
    assert "machine: 24 processors in 6 nodes, from the config site.yaml" in err.replace("\n  ", " ")
    assert "guessed" not in out + err.partition("machine:")[2]
    text = " ".join(out.split())
    assert "have no effect: user bob; group chem; 2 partitions (debug, gpu); QOS supporters." in text
    assert "The log records no gpus of jobs" in text
    assert "The log records no gpus of jobs, so limits of gpus are not simulated." in text
    assert "not simulated (QOS high: grptres gres/gpu:a100=1)" in text
    assert "1 of 40 jobs do not fit" in text


def test_limits_of_gpus_hold_if_the_log_records_gpus(folder, capfd):
    rows = records().splitlines()
    tres = [f"cpu={number % 3},gres/gpu={1 + number % 2}" for number in range(len(rows))]
    text = "\n".join([f"{rows[0]}|AllocTRES", *(f"{row}|{one}" for row, one in zip(rows[1:], tres, strict=False))])
    (folder / "sacct.txt").write_text(text.replace("|cpu|", "|gpu|") + "\n")
    assert call("whatif", "sacct.txt", "--config", "site.yaml", "--limit", "qos:high:gpus=3,qos:user_gpus=2") == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "limits of gpus" not in said
    assert call("import", "sacct", "sacct.txt", "-o", "my.parquet") == 0
    options, remarks = SiteConfig.read(folder / "site.yaml").options_for(open_workload("my.parquet"))
    assert options["limits"]["qos"]["high"] == {"user_jobs": 3, "processors": 8, "gpus": 2}
    assert not remarks


@pytest.mark.parametrize(("limited", "absent"), [("lab", "group art;"), ("art", "group art;")])
def test_limits_of_accounts_without_jobs_of_their_own_are_kept(folder, capfd, limited: str, absent: str):
    """Account lab has the jobs of bio below it; art has none, and its limit is the only one of an account."""
    rows = ["Account|ParentName|User|Share|GrpJobs", "root|||1|", "lab|root||1|", "bio|lab||1|", "art|root||1|"]
    Path("assoc.txt").write_text("\n".join(row + "1" * row.startswith(limited) for row in rows) + "\n")
    Path("slurm.conf").write_text(CONF.replace("PriorityWeightFairshare=10\n", ""))
    command = ("import", "site", "slurm.conf", "--qos", "qos.txt", "--associations", "assoc.txt", "-o", "new.yaml")
    assert call(*command) == 0
    assert call("import", "sacct", "sacct.txt", "-o", "my.parquet") == 0
    site = SiteConfig.read(Path("new.yaml"))
    options, _ = site.options_for(site.on_machine(open_workload("my.parquet")))
    assert options["limits"]["group"] == {limited: {"jobs": 1}}
    assert options["accounts"] == {"lab": {}, "bio": {"parent": "lab"}, "art": {}}
    capfd.readouterr()
    assert call("whatif", "my.parquet", "--config", "new.yaml", "--nodes", "cpu=+1") == 0
    assert absent in " ".join(capfd.readouterr().out.split())


def test_another_cluster_is_one_line(folder, capfd):
    (folder / "sacct.txt").write_text(records("deep-thought"))
    assert call("whatif", "sacct.txt", "--config", "site.yaml", "--nodes", "+1") == 0
    assert "The log is of cluster deep-thought, and site.yaml describes hal" in " ".join(capfd.readouterr().out.split())
    other = records().replace("|cpu|", "|batch|").replace("|bio|", "|lab|").replace("|ada|", "|zoe|")
    (folder / "sacct.txt").write_text(other)
    assert call("whatif", "sacct.txt", "--config", "site.yaml", "--nodes", "+1") == 1
    message = capfd.readouterr().err.splitlines()[-1]
    assert "no user 'bob'" in message or "has no " in message or "every job" in message


def test_runs_of_preempted_jobs_are_joined_if_the_site_preempts(folder, capfd):
    row = "90|hal|ada|bio|cpu|normal|{}|2025-03-10T09:00:00|2025-03-10T09:00:00|{}|{}|00:01:00|00:10:00|4|1"
    preempted = row.format("PREEMPTED", "2025-03-10T09:00:05", "2025-03-10T09:01:05")
    again = row.format("COMPLETED", "2025-03-10T09:05:05", "2025-03-10T09:06:05")
    (folder / "sacct.txt").write_text(records("hal", preempted, again))
    assert call("whatif", "sacct.txt", "--config", "site.yaml", "--nodes", "+1") == 0
    assert "preempted runs of jobs that ran again" in capfd.readouterr().err.replace("\n  ", " ")


def test_a_log_with_fewer_columns_is_simulated_without_what_needs_them(folder, capfd):
    lines = [line.split("|") for line in records().splitlines()]
    (folder / "sacct.txt").write_text("".join("|".join([*cells[:3], *cells[6:]]) + "\n" for cells in lines))
    assert call("whatif", "sacct.txt", "--config", "site.yaml", "--nodes", "+1") == 0
    text = " ".join(capfd.readouterr().out.split())
    for word in ("account", "partition", "QOS"):
        assert f"The log does not record the {word} of jobs" in text


def test_a_project_of_a_site_asks_questions_about_it(folder, capfd):
    assert call("init", "cluster", "--log", "sacct.txt", "--site", "site.yaml") == 0
    assert "1 jobs are left out: they need more than site.yaml has" in capfd.readouterr().err
    config = yaml.safe_load((folder / "cluster/config/config.yaml").read_text())
    catalogue = load_catalogue([folder / "cluster" / path for path in config["catalogue"]])
    plan = plan_studies(config, catalogue)
    assert plan.runs["sacct"] == ["log", "site", "site-sjf"]
    assert plan.whatifs == {("nodes", "sacct"): {"schedulers": ["site", "site-sjf"], "nodes": ["+10%"]}}
    log = open_workload(folder / "cluster/config/imported.parquet", catalogue["sacct"].processors)
    for name, options in config["schedulers"].items():
        assert simulate(log, Scheduler.of(name, options)).height == 39
    assert call("init", "other", "--site", "site.yaml") == 1
    assert "--site: no log; expected --log" in capfd.readouterr().err


def test_comments_of_a_config_stay_where_their_lines_do():
    head = "# The site.\nschedulers:\n  site: # mine\n    # in seconds\n    half_life: 5\n"
    text = f"{head}    order: sjf  # quick\n# no x=1 '#'\n"
    found = with_comments("schedulers:\n  site:\n    half_life: 5\n    order: fcfs\n    limits: {}\n", text)
    assert found == f"{head}    order: fcfs\n    limits: {{}}\n# quick\n# no x=1 '#'\n"
    assert yaml.safe_load(found)["schedulers"]["site"]["order"] == "fcfs"
    quoted = "a: 'x # y' # z\nb: p#q\n"
    assert with_comments("a: 'x # y'\nb: p#q\n", quoted) == quoted
