"""Test the answer to a what-if: partitions of the site, sentences and the page."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import swflow
from helpers.cli import call
from helpers.forecasts import recorded_site
from helpers.site_log import PARTITIONS, easy, site_log
from swflow.analysis import verdicts
from swflow.analysis.fidelity import Trust, trust_of
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.table import SWF_FIELDS, Workload
from swflow.log.imported import write_log
from swflow.log.importers.records import COUNTED_FEATURES, Site
from swflow.log.importers.sacct import import_sacct
from swflow.log.site import CLUSTERS, partitions_of, site_options
from swflow.scheduling.named import KNOWN
from swflow.scheduling.scheduler import Scheduler
from swflow.studies.answer import Question
from swflow.studies.answer_tables import tables
from swflow.studies.caveats import caveats, next_steps
from swflow.studies.changed_policies import with_policies
from swflow.studies.sentences import fidelity_in_words, options_in_words, sentences, variant_in_words
from swflow.studies.site_scheduler import SiteModel
from swflow.studies.variants import variants
from swflow.studies.whatif import COLUMNS, Answer, ask
from swflow.workload.clean import open_workload

pytestmark = pytest.mark.compiled  # simulates weeks of a site

SITE_LOG = site_log()


@pytest.fixture
def accounting(tmp_path, monkeypatch):
    """Write accounting records of a site with three partitions to the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sacct.txt").write_text(SITE_LOG.text)
    return tmp_path


def said(capfd) -> str:
    """Return the standard output of a command as one line."""
    return " ".join(capfd.readouterr().out.split())


@pytest.mark.slow
def test_three_partitions_are_not_pooled_and_the_base_reproduces_the_record(accounting, capfd):
    """Pooled, the mean wait would be 11 min instead of the recorded 508 min."""
    assert call("whatif", "sacct.txt", "-o", "a.csv") == 0
    answer = said(capfd)
    minutes = f"{SITE_LOG.mean_wait / 60:,.1f}"
    assert f"Under site, the simulated mean wait is {minutes} min; the recorded one is {minutes} min." in answer
    assert "its minutes can be trusted" in answer
    assert re.search(r"mean wait, min +508\.\d +508\.\d", answer)
    mean = pl.read_csv("a.csv").row(by_predicate=pl.col("measure") == "mean_wait_time", named=True)
    assert mean["value"] == pytest.approx(SITE_LOG.mean_wait, rel=0.02)
    assert mean["processors"] == sum(PARTITIONS.values())
    for name, processors in PARTITIONS.items():
        assert re.search(rf"Partition sizes \(guessed: peak use[^.]*{name} {processors}", answer)
    assert "requested GPUs" not in answer  # they are scheduled
    assert re.search(
        r"Resources \(guessed: peak use[^.]*gpu gpus \d+\. State them with --machine-resource gpu:gpus=N", answer
    )
    assert "2 queues or QOS" in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "partitions"),
    [(7, {"cpu": 3840, "fat": 512, "gpu": 256}), (8, {"main": 3840, "bigmem": 512, "gpu": 96, "debug": 64})],
)
def test_a_site_with_thousands_of_processors_is_reproduced_without_options(tmp_path, capfd, seed, partitions):
    log = site_log(1000, 6, 0.6, seed, partitions)
    (tmp_path / "sacct.txt").write_text(log.text)
    assert call("whatif", str(tmp_path / "sacct.txt"), "-o", str(tmp_path / "a.csv")) == 0
    answer = said(capfd)
    mean = pl.read_csv(tmp_path / "a.csv").row(by_predicate=pl.col("measure") == "mean_wait_time", named=True)
    assert mean["value"] == pytest.approx(log.mean_wait, rel=0.02)
    sizes = answer.partition("Partition sizes")[2].partition("State them")[0]
    assert all(f"{name} " in sizes for name in partitions)
    assert re.search(r"Resources \(guessed: peak use[^.]*gpu gpus \d+\.", answer)


@pytest.mark.slow
def test_priorities_of_qos_are_not_omitted_without_a_word(accounting, capfd):
    """Without the priorities, the mean wait would be 62 % of the recorded one."""
    log = site_log(600, 6, seed=3, preferred="normal")
    (accounting / "qos.txt").write_text(log.text)
    assert call("whatif", "qos.txt") == 0
    answer = said(capfd)
    assert re.search(
        r"2 queues or QOS \(long 5\d % of the jobs, limits up to [\d.]+ h, mean wait [\d.]+ h; normal", answer
    )
    assert "have no priorities and no limits on running jobs under site" in answer
    assert (
        "Next: Test whether priorities of queues or QOS explain the difference to the record: swflow whatif qos.txt "
        "--scheduler site " in answer
    )
    assert call("whatif", "qos.txt", "--scheduler", "site-qos") == 0
    answer = said(capfd)
    assert "Under site-qos, " in answer and "its minutes can be trusted" in answer
    assert "queues or QOS" not in answer
    assert call("import", "sacct", "qos.txt", "-o", "qos.parquet") == 0
    assert re.search(r"normal +[89]\d\d +\d+ % +[\d.]+ h +[\d.]+ h", capfd.readouterr().out)
    assert call("init", "demo", "--log", "qos.txt") == 0
    path = accounting / "demo/config/config.yaml"
    lines = path.read_text().splitlines()
    (suggested,) = (line for line in lines if line.startswith("  # site-qos: "))
    config = yaml.safe_load("\n".join(line.replace("# site-qos", "site-qos") for line in lines))
    options = config["schedulers"]["site-qos"]
    assert options["priority"] == {"qos": 1, "qos_factors": {"normal": 2, "long": 1}}, suggested
    assert Scheduler.of("site-qos", options).queues


def test_equal_qos_suggest_no_priorities(accounting, capfd):
    assert call("whatif", "sacct.txt", "--scheduler", "site-qos") == 1
    assert "the recorded waits show no priorities" in capfd.readouterr().err


def test_the_answer_names_a_pool_and_does_not_trust_its_minutes(accounting, capfd):
    assert call("whatif", "sacct.txt", "--scheduler", "easy") == 0
    answer = said(capfd)
    assert "Under easy, the simulated mean wait is 11." in answer
    assert "trust only whether a change is better or worse" in answer
    assert "3 partitions are simulated as one pool under easy" in answer
    assert "Next: Simulate the site with the 3 partitions and gpus: swflow whatif sacct.txt --scheduler site" in answer
    assert f"{SITE_LOG.gpu_jobs:,} jobs requested GPUs (partition gpu {SITE_LOG.gpu_jobs:,}), which are not" in answer


def test_a_pooled_variant_of_partitions_is_described_as_two_changes(accounting, capfd):
    assert call("whatif", "sacct.txt", "--scheduler", "site", "--scheduler", "conservative") == 0
    answer = said(capfd)
    assert "This scheduler does not simulate the 3 partitions and gpus of the site; site-conservative does." in answer


def test_one_partition_gets_larger(accounting, capfd):
    options = ["--processors", "gpu=+25%", "--partition", "gpu=128", "--partition", "cpu=512", "--partition", "fat=256"]
    options += ["--machine-resource", "gpu:gpus=25"]
    assert call("whatif", "sacct.txt", *options) == 0
    answer = said(capfd)
    assert "The partitions have" not in answer
    assert re.search(r"processors +896 +928 +\+4 %", answer)
    assert re.search(r"gpus +25 +31 +\+24 %", answer)  # a share of the nodes
    assert re.search(
        r"With 25 % more processors in partition gpu, the mean wait is 420\.\d instead of 508\.\d min, −17 % "
        r"\(95 % interval −\d+ to [+−]\d+ %\): cannot tell, because the weeks depend", answer,
    )  # fmt: skip
    assert re.search(r"gpu +2,000 +295\.\d +295\.\d +31\.\d +−89 %", answer)
    assert re.search(r"cpu +2,000 +744\.\d +744\.\d +744\.\d +0 %", answer)
    assert "guessed" not in answer


def test_partitions_that_share_nodes_are_limits_in_one_pool(accounting, capfd):
    assert call("whatif", "sacct.txt", "--machine-processors", "600") == 0
    answer = said(capfd)
    assert "at most 128 processors in partition gpu, " in answer and "The partitions have" not in answer
    assert "3 partitions share nodes (their peaks add up to more than the machine)" in answer
    suggested = shlex.split(answer.partition("Ask a question: ")[2])[1:]
    assert "site-sjf" in suggested and call(*suggested, "--machine-processors", "600") == 0
    capfd.readouterr()
    schedulers = ("--scheduler", "site", "--scheduler", "conservative", "--scheduler", "sjf")
    assert call("whatif", "sacct.txt", "--machine-processors", "600", *schedulers) == 0
    answer = said(capfd)
    assert "site-sjf does." in answer and "site-conservative" not in answer


def gpu_site(tmp_path, gpus: int = 6):
    """Write a log of one partition whose record is a schedule by its GPUs: 6 GPUs, and more processors than needed."""
    generator = np.random.default_rng(3)
    count = 400
    submit = np.sort(generator.integers(0, 8 * 604800, count))
    need = generator.integers(1, 5, count)
    run = generator.integers(3600, 40 * 3600, count)
    start = easy(submit, run, run, need, gpus, np.zeros(count))
    rows = {"job_id": range(1, count + 1), "submit_time": submit, "wait_time": start - submit, "run_time": run,
            "allocated_processors": [1] * count, "requested_time": run, "gpus": need}  # fmt: skip
    fields = pl.DataFrame({name: [-1] * count for name in SWF_FIELDS} | rows).cast(SWF_FIELDS)
    log = tmp_path / "gpus.parquet"
    write_log(log, fields, {"MaxProcs": ["64"]}, [])
    return log, float((start - submit).mean())


def test_a_site_with_gpus_is_reproduced_by_their_number_and_not_by_processors(tmp_path, capfd):
    """Pooled against vector against record, where GPUs are what jobs wait for."""
    log, wait = gpu_site(tmp_path)
    table = tmp_path / "a.csv"
    options = ["--scheduler", "site", "--scheduler", "easy", "--resource", "gpus=+50%"]
    assert call("whatif", str(log), *options[:4], "-o", str(table)) == 0
    answer = said(capfd)
    assert "its minutes can be trusted" in answer
    assert "400 jobs requested GPUs, which are not scheduled under easy" in answer
    assert "Resources (guessed: peak use, which may be too few): gpus 6." in answer
    means = pl.read_csv(table).filter(pl.col("measure") == "mean_wait_time")["value"].to_list()
    assert means == [pytest.approx(wait), 0]
    assert call("whatif", str(log), *options[:2], *options[4:], "--machine-resource", "gpus=6") == 0
    answer = said(capfd)
    assert "With 50 % more gpus, the mean wait is " in answer
    assert "guessed" not in answer
    assert call("whatif", str(log), *options[:2], "--resource", "gpus=4") == 0
    assert call("whatif", str(log), "--scheduler", "easy", "--resource", "gpus=+50%") != 0
    assert "--resource gpus=+50%: easy does not schedule gpus; use --scheduler site" in capfd.readouterr().err
    assert call("whatif", str(log), "--resource", "gpu") != 0
    assert "--resource: 'gpu'; expected NAME=UNITS, or a change such as gpus=+20%" in capfd.readouterr().err
    assert call("whatif", str(log), "--resource", "gpu=+20%") != 0
    assert "site does not schedule gpu; did you mean 'gpus'" in capfd.readouterr().err


def test_a_project_of_a_site_with_gpus_schedules_them(tmp_path, capfd):
    log, _ = gpu_site(tmp_path)
    assert call("init", str(tmp_path / "demo"), "--log", str(log)) == 0
    assert "scheduler site: also schedules gpus 6 (guessed: peak use)" in capfd.readouterr().err
    text = (tmp_path / "demo/config/config.yaml").read_text()
    assert "resources: {gpus: 6}  # guessed: peak use" in text
    for options in yaml.safe_load(text)["schedulers"].values():
        assert Scheduler(**options).resources == {"gpus": 6}
    assert call("init", str(tmp_path / "other"), "--log", str(log), "--machine-resource", "gpus=8") == 0
    assert "also schedules gpus 8; state" in capfd.readouterr().err
    assert call("init", str(tmp_path / "third"), "--log", str(log), "--machine-resource", "gpu=8") != 0
    assert "--machine-resource gpu=8: no job demands it; did you mean 'gpus'" in capfd.readouterr().err


def test_the_sizes_of_the_log_are_not_those_of_another_machine(accounting):
    log = import_sacct("sacct.txt", Site())
    write_log("log.parquet", log.fields, log.header, log.history)
    workload = open_workload("log.parquet")
    assert len(SiteModel.of(workload).partitions) == 3
    scaled = replace(workload, history=(*workload.history, {"stage": "scale"}))
    site = SiteModel.of(scaled)
    assert (site.partitions, site.options, site.guessed_resources) == ([], {"order": "fcfs", "backfill": "easy"}, {})
    partitions = SiteModel.of(scaled, {"cpu": 64, "fat": 32, "gpu": 16}).partitions
    assert [one.processors for one in partitions] == [16, 32, 64]


def test_a_project_simulates_the_partitions(accounting, capfd):
    assert call("init", "demo", "--log", "sacct.txt", "--partition", "cpu=600") == 0
    assert "cpu 600" in capfd.readouterr().err
    config = yaml.safe_load((accounting / "demo/config/config.yaml").read_text())
    sizes = {one["partition"]: one["processors"] for one in config["schedulers"]["site"][CLUSTERS]}
    assert sizes == PARTITIONS | {"cpu": 600}
    assert config["schedulers"]["site-conservative"][CLUSTERS] == config["schedulers"]["site"][CLUSTERS]
    assert config["studies"]["backfilling"]["runs"][0]["schedulers"][:2] == ["log", "site"]
    kept = open_workload(accounting / "demo/config/imported.parquet")
    assert {one.name: one.processors for one in partitions_of(kept.jobs, kept.header)} == sizes


def test_import_prints_partitions_with_their_limits_and_marks_guesses(accounting, capfd):
    assert call("import", "sacct", "sacct.txt", "-o", "site.swf.gz", "--partition", "cpu=600") == 0
    out, err = capfd.readouterr()
    assert re.search(r"fat +2,000 +256 \(guessed: peak use\) +0 +[\d.]+ h +[\d.]+ h", out)
    assert re.search(r"cpu +2,000 +600 +0 ", out)
    assert "machine: 896 processors (guessed: peak use" in err
    assert call("check", "site.swf.gz") == 0  # the marks survive in a text file
    out, err = capfd.readouterr()
    assert "unknown-machine" in out and "(guessed)" in err
    kept = open_workload("site.swf.gz")
    assert [(one.processors, one.is_guessed) for one in partitions_of(kept.jobs, kept.header)] == [
        (128, True),
        (256, True),
        (600, False),
    ]


def test_the_page_is_complete(accounting):
    options = ["--scheduler", "site", "--scheduler", "site-sjf"]
    for name in ("a.html", "b.html"):
        assert call("whatif", "sacct.txt", *options, "-o", name) == 0
    page = (accounting / "a.html").read_text()
    for words in ("Under site, the simulated mean wait", "site-sjf", "p95 wait, h",
                  "<dt>95 % interval</dt>", "swflow", "order sjf, backfill easy", "Partition sizes"):  # fmt: skip
        assert words in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert re.search(r"log <code>[0-9a-f]{32}</code>", page)


def test_the_page_has_the_colours_and_fonts_of_the_report():
    """The page does not import the report's package, so that an edit there does not rerun every what-if."""
    package = Path(swflow.__file__).parent
    page, report = (
        re.findall(r"(--[\w-]+): ([^;]+);", (package / name).read_text())
        for name in ("studies/answer.html", "report/site/report.css")
    )
    named = {name for name, _ in page}
    assert page == [(name, value) for name, value in report if name in named][: len(page)]


# -- sentences from given figures


def question(rows: dict[str, dict], fidelity: dict | None = None, options: dict | None = None) -> Question:
    """Return a question with these rows of the mean wait, one per variant; the first is the base."""
    filled = [
        {"variant": name, "measure": measure, "jobs": 9, "weeks": 8, "utilization": 0.5, "processors": 4}
        | {"value": 600.0, "base": 600.0, "difference": 0.0, "verdict": "base"}
        | {"verdict_holm": row.get("verdict", "base")}
        | row
        for name, row in rows.items()
        for measure in ("mean_wait_time", "p95_wait_time", "mean_bounded_slowdown", "awrt")
    ]
    workload = Workload(pl.DataFrame({"job_id": [1], "processors": [1]}), Machine.of(4), "log")
    chosen = variants({name: (options or {}) for name in rows})
    trust = Trust.RECORD if (options or {}).get("order") == "log" else trust_of(fidelity)
    return Question(SiteModel(workload), chosen, Answer(pl.DataFrame(filled, COLUMNS), fidelity, 0, trust=trust))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"value": 540.0, "difference": -60.0, "low": -90.0, "high": -30.0, "verdict": "variant is better"},
         "Under b, the mean wait is 10 % (95 % interval 5 to 15 %) shorter: 9.0 instead of 10.0 min."),
        ({"value": 660.0, "difference": 60.0, "low": 30.0, "high": 90.0, "verdict": "base is better"},
         "Under b, the mean wait is 10 % (95 % interval 5 to 15 %) longer: 11.0 instead of 10.0 min."),
        ({"value": 660.0, "difference": 60.0, "low": -30.0, "high": 150.0, "verdict": "not distinguishable"},
         "Under b, the mean wait is 11.0 instead of 10.0 min, +10 % (95 % interval −5 to +25 %): not distinguishable."),
        ({"value": 660.0, "difference": 60.0, "low": 6.0, "high": 120.0, "verdict": "base is better",
          "verdict_holm": "not distinguishable"},
         "Under b, the mean wait is 11.0 instead of 10.0 min, +10 % (95 % interval +1 to +20 %): not distinguishable "
         "after the correction for the number of variants."),
        ({"value": 660.0, "difference": 60.0, "low": -300.0, "high": 900.0, "verdict": "cannot tell: dependent weeks"},
         "Under b, the mean wait is 11.0 instead of 10.0 min, +10 % (95 % interval −50 to +150 %): cannot tell, "
         "because the weeks depend on each other."),
        ({"verdict": "equal"}, "Under b, the mean wait stays the same, 10.0 min."),
        ({"value": 660.0, "difference": 60.0, "weeks": 2, "verdict": "cannot tell: too few weeks"},
         "Under b, the mean wait is 11.0 instead of 10.0 min (+10 %); a verdict needs 8 weeks, and the log has 2."),
    ],
)  # fmt: skip
def test_a_sentence_states_direction_percent_interval_and_verdict(row, words):
    asked = question({"a": {}, "b": row})
    assert variant_in_words(asked, asked.variants[1]).startswith(words)


@pytest.mark.parametrize(
    ("simulated", "distance", "words"),
    [(600.0, 0.01, "its minutes can be trusted"), (700.0, 0.1, "so trust percentages more than minutes"),
     (258.0, 0.1, "Under a, the simulated mean wait is 4.3 min; the recorded one is 10.0 min. The simulation does not "
      "reproduce this site well, so trust only whether a change is better or worse. It differs most in the mean wait "
      "and the distribution of the waits. 50 % of the jobs"),
     (600.0, 0.5, "the Kolmogorov-Smirnov distance between simulated and recorded waits is 0.50 (0: identical).")],
)  # fmt: skip
def test_the_fidelity_of_the_base_determines_what_can_be_trusted(simulated, distance, words):
    found = {"jobs": 9, "simulated_mean_wait_time": simulated, "recorded_mean_wait_time": 600.0, "started_alike": 0.5,
             "wait_distance": distance}  # fmt: skip
    assert words in fidelity_in_words(question({"a": {}}, found))


def test_the_record_as_base_is_described_as_the_record():
    text = fidelity_in_words(question({"log": {}, "easy": {}}, None, {"order": "log"}))
    assert text.startswith("The base is the recorded schedule")
    assert "The log records no waits" in fidelity_in_words(question({"easy": {}}))


def test_a_mean_wait_of_a_second_is_not_called_wrong():
    """Clocks count seconds: 0 s instead of 1 s is no difference, and minutes would show 0.0 against 0.0."""
    found = {"jobs": 9, "simulated_mean_wait_time": 0.2, "recorded_mean_wait_time": 1.1, "started_alike": 1.0,
             "wait_distance": 0.04}  # fmt: skip
    text = fidelity_in_words(question({"a": {}}, found))
    assert text.startswith("Under a, the simulated mean wait is 0.2 s; the recorded one is 1.1 s.")
    assert "its minutes can be trusted" in text


def test_slurm_multifactor_by_name_backfills_and_options_are_shown():
    assert options_in_words(KNOWN["slurm-multifactor"]) == "order slurm-multifactor, backfill easy"
    site = {
        "order": "fcfs",
        "backfill": "easy",
        "dispatch": "partition",
        CLUSTERS: [{"partition": "a", "processors": 4}],
    }
    model = SiteModel(Workload(pl.DataFrame({"job_id": [1]}), Machine.of(4), "log"), options=site)
    words = "order sjf, backfill easy, clusters a 4 processors"  # the site's backfilling stays
    assert options_in_words(model.scheduler("site-sjf")[1]) == words


def test_a_log_without_recorded_waits_or_with_one_partition_is_one_machine(tmp_path):
    text = "JobID|Partition|State|Submit|Start|End|AllocCPUS\n1|cpu|COMPLETED|2024-01-01T00:00|2024-01-01T00:10|"
    path = tmp_path / "few.txt"
    path.write_text(text + "2024-01-01T01:00|4\n")
    log = import_sacct(str(path), Site())
    assert site_options(log.partitions) == {"order": "fcfs", "backfill": "easy"}
    silent = log.fields.with_columns(wait_time=None)
    assert partitions_of(silent, Header()) == []


def test_a_guessed_machine_is_marked_and_a_next_step_shows_how_to_state_it(accounting):
    path = accounting / "one.txt"
    path.write_text(SITE_LOG.text.replace("|fat|", "|gpu|").replace("|cpu|", "|gpu|"))
    log = import_sacct(str(path), Site())
    write_log("one.parquet", log.fields, log.header, log.history)
    workload = open_workload("one.parquet")
    site = SiteModel.of(workload)
    chosen = variants({"site": site.options})
    asked = Question(site, chosen, ask(workload, chosen), "one.txt")
    assert any(
        line.startswith("Machine size (guessed: peak use, which may be too few): 896") for line in caveats(asked)
    )
    assert any("swflow fidelity one.txt" in step for step in next_steps(asked))


def test_jobs_that_need_too_many_gpus_are_not_called_wide(tmp_path, capfd):
    log, _ = gpu_site(tmp_path)
    assert call("whatif", str(log), "--resource", "gpus=3") == 0
    answer = said(capfd)
    assert re.search(r"\d+ of 400 jobs do not fit into the smallest machine, cluster or limit\.", answer)
    assert "its minutes can be trusted" in answer  # stated for the base with all jobs
    assert "wider" not in answer
    assert call("whatif", str(log), "--resource", "gpus=0") == 1
    assert "wider than 64 processors or needs more of another resource" in capfd.readouterr().err


def test_the_recorded_row_is_of_the_jobs_that_are_compared():
    """With a limit that left out jobs, the recorded mean wait was that of all jobs, and stood beside others of some."""
    workload = recorded_site(600)
    site = SiteModel.of(workload)
    schedulers = with_policies({"site": site.options}, limit=["user:processors=16"])
    chosen = variants(schedulers)
    asked = Question(site, chosen, ask(workload, chosen))
    kept = workload.jobs.filter(pl.col("processors") <= 16)
    assert 0 < asked.answer.left_out == workload.jobs.height - kept.height
    of_kept, of_all = kept["wait_time"].mean(), workload.jobs["wait_time"].mean()
    assert asked.recorded == pytest.approx(of_kept) and of_all > 1.05 * of_kept
    (row,) = [row for row in tables(asked)[0].rows if row[0].startswith("mean wait")]
    unit = {"mean wait, h": 3600, "mean wait, min": 60, "mean wait, s": 1}[row[0]]
    assert float(row[1]) == pytest.approx(of_kept / unit, abs=0.06)
    words = fidelity_in_words(asked)
    assert words.startswith("Under site with the jobs that are left out above, the simulated mean wait is ")
    assert asked.answer.fidelity["recorded_mean_wait_time"] == pytest.approx(of_all)


def test_notes_of_the_import_are_about_the_jobs_of_the_whole_log():
    """A part of the log may have none of its jobs in reservations, and a model has none of its jobs."""
    jobs = pl.DataFrame({
        "job_id": [1, 2, 3], "submit_time": [0.0, 1.0, 2.0], "run_time": [9.0, 8.0, 7.0], "processors": [1, 1, 1],
        "estimate": [9.0, 9.0, 9.0],
    })  # fmt: skip
    notes = {"jobs in advance reservations": 2, "jobs with GPUs": 1, COUNTED_FEATURES: 2}
    imported = {"stage": "import", "read": 3, "kept": 3, "removed": {}, "notes": notes}
    words = {}
    for kept, stage in ((3, "clean"), (2, "select"), (3, "model")):
        part = Workload(jobs.head(kept), Machine.of(2), "log", history=(imported, {"stage": stage}))
        chosen = variants({"easy": {"backfill": "easy"}})
        words[stage] = " ".join(caveats(Question(SiteModel.of(part), chosen, ask(part, chosen))))
    assert "2 jobs ran in advance reservations" in words["clean"]
    assert "2 jobs of the whole log ran in advance reservations" in words["select"]
    assert "2 jobs of the whole log have constraints with brackets or counts, which are not" in words["select"]
    assert "reservations" not in words["model"] and "GPUs" not in words["model"]


def test_limits_of_users_in_each_partition_alone_are_named():
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [9.0, 8.0], "processors": [1, 1],
        "estimate": [9.0, 9.0], "partition_id": [1, 2], "user_id": [1, 1],
    })  # fmt: skip
    log = Workload(jobs, Machine.of(2), "log", header={"Partition": ["1 cpu", "2 gpu"]})
    site = {"backfill": "easy", "dispatch": "partition", "clusters": [
        {"partition": "cpu", "processors": 1}, {"partition": "gpu", "processors": 1},
    ]}  # fmt: skip
    limited = site | {"limits": {"user": {"jobs": 1}}}
    one = {"backfill": "easy", "limits": {"user": {"jobs": 1}}}
    for schedulers, names in (({"site": site, "few": limited}, "few"), ({"site": site, "one": one}, "")):
        chosen = variants(schedulers)
        question = Question(SiteModel.of(log), chosen, ask(log, chosen))
        found = " ".join(caveats(question))
        said = f"the limits of users hold in each of the partitions cpu and gpu alone under {names},"
        assert (said in found) == bool(names)
        assert ("together, they would bind more" in " ".join(sentences(question))) == bool(names)


@pytest.mark.slow
def test_constraints_are_not_simulated_without_nodes():
    jobs = pl.DataFrame({
        "job_id": [1, 2], "submit_time": [0.0, 1.0], "run_time": [9.0, 8.0], "processors": [1, 1],
        "estimate": [9.0, 9.0], "constraint_id": [None, 1],
    })  # fmt: skip
    log = Workload(jobs, Machine.of(2), "log", header={"Constraint": ["1 ib"]})
    on_nodes = {"backfill": "slurm", "nodes": [{"count": 2, "processors": 1, "features": ["ib"]}]}
    for schedulers, words in (
        ({"easy": {"backfill": "easy"}}, "1 jobs have constraints on their nodes, which are not simulated."),
        (
            {"easy": {"backfill": "easy"}, "on": on_nodes},
            "1 jobs have constraints on their nodes, which are not simulated under easy.",
        ),
        ({"on": on_nodes}, ""),
    ):
        chosen = variants(schedulers)
        found = " ".join(caveats(Question(SiteModel.of(log), chosen, ask(log, chosen))))
        assert words in found and ("constraints" in found) == bool(words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dependent", "later"])
def test_waits_of_jobs_that_become_eligible_later_are_compared_alike(tmp_path, monkeypatch, capfd, kind):
    """Jobs that depend on others, or that begin a day after their submission, wait from when they may start."""
    monkeypatch.chdir(tmp_path)
    log = site_log(1000, 6, partitions={"cpu": 512, "fat": 256}, **{kind: 0.4})
    Path("sacct.txt").write_text(log.text)
    assert call("whatif", "sacct.txt", "-o", "a.csv") == 0
    assert "its minutes can be trusted" in said(capfd)
    mean = pl.read_csv("a.csv").row(by_predicate=pl.col("measure") == "mean_wait_time", named=True)
    assert mean["value"] == pytest.approx(log.mean_wait, rel=0.02)
    assert call("fidelity", "sacct.txt") == 0
    first = capfd.readouterr().out.splitlines()[2].split()
    assert first[0] == "site" and float(first[1].replace(",", "")) == pytest.approx(log.mean_wait, rel=0.02)


def test_simulate_names_what_it_ignores_of_a_site_and_asks_to_import_accounting(accounting, capfd):
    """Without partitions and GPUs, the mean wait is 11 min instead of 508 min."""
    assert call("simulate", "sacct.txt") == 1 == call("clean", "sacct.txt", "-o", "cleaned.parquet")
    error = capfd.readouterr().err
    assert "sacct.txt: Slurm accounting (sacct -P) (its header has alloccpus, " in error
    assert "not a log; read it with: swflow import sacct sacct.txt -o sacct.parquet" in error
    assert call("import", "sacct", "sacct.txt", "-o", "site.parquet") == 0
    capfd.readouterr()
    for options in ([], ["--scheduler", "easy", "--scheduler", "sjf"]):
        assert call("simulate", "site.parquet", *options) == 0
        assert (
            f"note: its 3 partitions are simulated as one machine and the GPUs of {SITE_LOG.gpu_jobs:,} jobs are not "
            "scheduled; swflow whatif site.parquet --scheduler site simulates them" in capfd.readouterr().err
        )


@pytest.mark.parametrize("words", ["whatif", "simulate", "check", "clean -o bare.parquet"])
def test_accounting_without_a_header_is_not_read_as_a_log(accounting, capfd, words):
    Path("bare.txt").write_text(SITE_LOG.text.partition("\n")[2])
    assert call(*words.split(), "bare.txt") == 1
    error = capfd.readouterr().err
    assert "bare.txt: Slurm accounting without a header (it has columns between | without a header), not a log" in error
    assert "read it with: swflow import sacct bare.txt -o bare.parquet --format JobID,User," in error


def test_an_answer_as_json_has_everything(accounting, capfd):
    options = ["--nodes", "gpu=+2", "--by", "qos"]
    text = SITE_LOG.text.replace("|AllocTRES", "|NNodes|AllocTRES").replace("|cpu=", "|1|cpu=")
    Path("nodes.txt").write_text(text)
    assert call("whatif", "nodes.txt", "--json", *options, "-o", "a.json", "-o", "a.csv") == 0
    printed = capfd.readouterr().out
    assert printed == Path("a.json").read_text()
    answer = json.loads(printed)
    assert (answer["base"], answer["trust"]) == ("site", "minutes")
    now, then = answer["variants"]
    assert then["variant"] == "site, nodes gpu=+2"
    assert then["processors"] - now["processors"] == 2 * 128  # 128: the widest job on a node
    assert then["resources"]["gpus"] - now["resources"]["gpus"] == 2 * 8
    assert then["measures"]["mean_wait_time"]["verdict"] in (
        "variant is better",
        verdicts.NOT_DISTINGUISHABLE,
        *verdicts.CANNOT_TELL,
    )
    assert then["sentence"].startswith("With 2 more nodes in partition gpu, the mean wait is ")
    assert {group["by"] for group in then["groups"]} == {"partition", "qos"}
    assert any("A node of gpu has 128 processors and 8 gpus: the most per node of any job." in one
               for one in answer["caveats"])  # fmt: skip
    table = pl.read_csv("a.csv")
    assert set(table["trust"]) == {"minutes"}
    assert table["resources"].unique(maintain_order=True).to_list() == ["gpus=25", "gpus=41"]


def test_one_array_with_a_limit_stops_neither_fidelity_nor_a_new_project(accounting, capfd):
    """Conservative backfilling does not support limits of arrays, which stopped both commands."""
    lines = SITE_LOG.text.splitlines()
    lines[1] = lines[1].replace("1000|", "1000_1|", 1).replace("sbatch ", "sbatch --array=1-2%1 ")
    Path("array.txt").write_text("\n".join(lines) + "\n")
    assert call("fidelity", "array.txt") == 0
    out, err = capfd.readouterr()
    assert "site-fcfs" in out and " site " in out and "conservative" not in out
    assert "site-conservative cannot be simulated: array: column array_limit: needs backfill none, easy or slurm" in err
    assert call("whatif", "array.txt") == 0
    suggested = shlex.split(said(capfd).partition("Ask a question: ")[2])[1:]
    assert "site-sjf" in suggested
    assert call("init", "demo", "--log", "array.txt") == 0
    config = yaml.safe_load(Path("demo/config/config.yaml").read_text())
    assert "site-conservative" not in config["schedulers"] and "site-sjbf" in config["schedulers"]


def test_a_machine_of_another_size_than_its_partitions_is_named(accounting, capfd):
    """The first line had the processors of the log, and the table the larger sum of the partitions' peaks."""
    assert call("whatif", "sacct.txt", "--partition", "cpu=600") == 0
    answer = said(capfd)
    assert "The partitions have 984 processors together, and the machine of the log has 896" in answer
