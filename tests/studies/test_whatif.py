"""Test what-if questions: combinations, their effects, manually computed differences, and bad input."""

import gzip
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import yaml

from helpers.cli import call
from swflow.errors import SwflowError
from swflow.files.query import query
from swflow.jobs.earlier import as_recorded_until_begin
from swflow.jobs.machine import Machine
from swflow.jobs.table import Workload
from swflow.log.imported import read_log
from swflow.phrases import share_of
from swflow.scheduling.named import read_scheduler
from swflow.scheduling.scheduler import Scheduler
from swflow.scheduling.simulate import simulate
from swflow.studies.answer import Question
from swflow.studies.answer_tables import tables
from swflow.studies.caveats import caveats
from swflow.studies.group_waits import compared, waits_of
from swflow.studies.hardware import hardware_of
from swflow.studies.runs import run
from swflow.studies.sentences import sentences
from swflow.studies.site_scheduler import SiteModel
from swflow.studies.variants import Variant, read_processors, variants
from swflow.studies.whatif import MEASURES, applied, ask

WEEK = 604800.0


def test_all_measures_of_the_base_stand_beside_the_recorded_ones():
    """The second job of each week waits for 2 h in the log, and for 1 h in the simulation."""
    one = workload()
    log = replace(one, jobs=one.jobs.with_columns(wait_time=2 * pl.col("wait_time")))
    chosen = variants({"easy": {"backfill": "easy"}})
    (table, *_) = tables(Question(SiteModel(log), chosen, ask(log, chosen)))
    cells = {row[0].partition(",")[0]: row[1:] for row in table.rows}
    assert cells["mean wait"] == ["60.0", "30.0"] and cells["p95 wait"] == ["120.0", "60.0"]
    assert cells["mean bounded slowdown"] == ["2.0", "1.5"] and cells["AWRT"] == ["120.0", "90.0"]
    assert all(recorded for recorded, _ in list(cells.values())[:-1])


def workload(weeks: int = 8) -> Workload:
    """Return a log of 2 jobs per week on 4 processors; the second job waits 1 h for the first."""
    rows = [
        {"job_id": 2 * week + place + 1, "submit_time": week * WEEK, "run_time": 3600.0, "processors": 4,
         "estimate": 7200.0, "requested_time": 7200.0, "wait_time": 3600.0 * place, "user_id": place}
        for week in range(weeks) for place in (0, 1)
    ]  # fmt: skip
    return Workload(pl.DataFrame(rows), Machine.of(4), "log")


def found(answer, variant: str, measure: str) -> dict:
    """Return one row of an answer."""
    return answer.table.filter((pl.col("variant") == variant) & (pl.col("measure") == measure)).row(0, named=True)


def test_differences_equal_manual_results():
    chosen = variants({"fcfs": {}}, processors=["+100%"], run_times=[2.0])
    answer = ask(workload(), chosen)
    base = found(answer, "fcfs", "mean_wait_time")
    assert (base["value"], base["difference"], base["verdict"]) == (1800, 0, "base")
    more = found(answer, "fcfs, processors +100%", "mean_wait_time")
    assert (more["processors"], more["value"], more["low"], more["high"]) == (8, 0, -1800, -1800)
    assert more["verdict"] == "variant is better"
    longer = found(answer, "fcfs, run times × 2", "mean_wait_time")
    assert (longer["difference"], longer["verdict"]) == (1800, "base is better")
    assert found(answer, "fcfs, run times × 2", "p95_wait_time")["value"] == 7200
    assert answer.fidelity["wait_distance"] == 0
    ranking, others = tables(Question(SiteModel(workload()), chosen, answer))
    assert ranking.columns[1:3] == ["mean wait, min", "change"]
    assert [row[0] for row in ranking.rows] == [
        "recorded", "fcfs", "fcfs, processors +100%", "fcfs, processors +100%, run times × 2", "fcfs, run times × 2",
    ]  # fmt: skip
    assert ranking.rows[0][1:] == ["30.0", "", "", "", "", share_of(answer.recorded["utilization"])]
    assert ranking.rows[2][1:5] == ["0.0", "−100 %", "−100 to −100 %", "better"]
    assert others.columns[1] == "p95 wait, min"
    assert others.rows[0] == ["recorded", *others.rows[1][1:]]


def test_one_variant_is_a_table_of_now_and_then():
    chosen = variants({"fcfs": {}}, processors=["+100%"])
    (table,) = tables(Question(SiteModel(workload()), chosen, ask(workload(), chosen)))
    assert table.columns == ["", "recorded", "now", "then", "change", "95 % interval", "verdict"]
    assert table.rows[0] == ["mean wait, min", "30.0", "30.0", "0.0", "−100 %", "−100 to −100 %", "better"]
    assert ["processors", "", "4", "8", "+100 %", "", ""] in table.rows
    unknown = replace(workload(), jobs=workload().jobs.drop("wait_time"))
    (table,) = tables(Question(SiteModel(unknown), chosen, ask(unknown, chosen)))
    assert table.columns == ["", "now", "then", "change", "95 % interval", "verdict"]
    assert table.rows[-1] == ["processors", "4", "8", "+100 %", "", ""]


def test_jobs_submitted_before_the_record_begins_are_not_measured():
    """Of a log of 8 weeks, one job was submitted ten weeks earlier, and ended when the others were submitted."""
    log = workload(8)
    later = log.jobs.with_columns(job_id=pl.col("job_id") + 1, submit_time=pl.col("submit_time") + 10 * WEEK)
    first = later.head(1).with_columns(job_id=pl.lit(1, pl.Int64), submit_time=0.0, wait_time=10 * WEEK - 3600)
    whole = replace(log, jobs=pl.concat([first, later]))
    chosen = variants({"fcfs": {}}, processors=["+100%"])
    question, plain = Question(SiteModel(whole), chosen, ask(whole, chosen)), ask(log, chosen)
    answer = question.answer
    assert (answer.earlier, plain.earlier) == (1, 0)
    columns = ("jobs", "value", "base", "low", "high", "weeks", "verdict")
    assert answer.table.select(columns).equals(plain.table.select(columns))
    assert max(abs(answer.table["utilization"] - plain.table["utilization"])) < 1e-9
    assert answer.fidelity == plain.fidelity
    assert any(text.startswith("1 jobs were submitted before any recorded job ended") for text in caveats(question))
    grown = ask(whole, variants({"fcfs": {}}, arrivals=[2.0]))
    assert set(grown.table["jobs"]) == {16}


def test_jobs_from_before_the_record_start_as_recorded_until_it_begins():
    """
    Three jobs are weeks older than all others: one ran on the whole machine, and two waited for its end.

    On an empty machine, each of them would start when it is submitted, and no later job would wait.
    """
    day = 86400.0
    rows = [(1, 0.0, 47 * day, 50.5 * day, 8)]
    rows += [(2, 20 * day, 50.5 * day, 50.5 * day + 300, 8), (3, 49 * day, 50.5 * day + 300, 50.5 * day + 600, 8)]
    submitted = [(job, 50 * day + (job - 4) * 7200.0) for job in range(4, 1000)]
    starts = [(job, at, max(at, 50.5 * day + 600)) for job, at in submitted]
    rows += [(job, at, start, start + 60, 1) for job, at, start in starts]
    names = ["job_id", "submit_time", "start", "end", "processors"]
    jobs = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        wait_time=pl.col("start") - pl.col("submit_time"), run_time=pl.col("end") - pl.col("start"),
        estimate=pl.col("end") - pl.col("start"), requested_time=pl.col("end") - pl.col("start"),
    )  # fmt: skip
    log = Workload(jobs.drop("start", "end"), Machine.of(8), "log")
    answer = ask(log, variants({"fcfs": {}}, processors=["+100%"]))
    assert answer.earlier == 9  # also those that were submitted in the 12 h before the first end
    held = replace(log, jobs=as_recorded_until_begin(log.jobs))
    assert simulate(held, Scheduler()).sort("job_id")["start_time"].to_list() == jobs["start"].to_list()
    assert simulate(log, Scheduler()).sort("job_id")["wait_time"].sum() == 0


def test_rare_waits_and_the_weeks_that_change_are_stated():
    """Only in one of 12 weeks does a job wait, so that the interval contains 0."""
    log = workload(12)
    alone = pl.when(pl.col("job_id") % 2 == 0).then(pl.col("submit_time") + 7200).otherwise("submit_time")
    jobs = log.jobs.with_columns(submit_time=pl.when(pl.col("job_id") > 2).then(alone).otherwise("submit_time"))
    log = Workload(jobs, log.machine, "log")
    chosen = variants({"fcfs": {}}, processors=["+100%"])
    (said,) = sentences(Question(SiteModel(log), chosen, ask(log, chosen)))
    assert (
        "Waits are rare: 4.2 % of the jobs wait at all now, 0 % then; the mean wait is shorter in 1 and longer in none "
        "of 12 weeks." in said
    )


def test_a_scheduler_that_cannot_simulate_the_log_is_skipped_with_its_reason():
    """One array with a limit of running tasks stopped the whole answer."""
    log = workload()
    log = Workload(log.jobs.with_columns(array_id=1, array_limit=1), log.machine, "log")
    chosen = variants(
        {"easy": {"backfill": "easy"}, "conservative": {"backfill": "conservative"}, "sjf": {"order": "sjf"}}
    )
    answer = ask(log, chosen)
    assert answer.table["variant"].unique(maintain_order=True).to_list() == ["easy", "sjf"]
    lines = sentences(Question(SiteModel(log), chosen, answer))
    assert lines[-1] == "conservative cannot be simulated: log: column array_limit: needs backfill none, easy or slurm."
    with pytest.raises(SwflowError, match=r"whatif: conservative: .*array_limit"):
        ask(log, chosen[:2])
    with pytest.raises(SwflowError, match="ordr"):
        ask(log, variants({"easy": {}, "sjf": {"ordr": "sjf"}}))


def test_jobs_beyond_a_limit_are_excluded_instead_of_an_error():
    log = workload()
    jobs = log.jobs.with_columns(processors=pl.when(pl.col("job_id") == 1).then(4).otherwise(2))
    schedulers = {"easy": {"backfill": "easy"}, "capped": {"backfill": "easy", "limits": {"user": {"processors": 2}}}}
    assert ask(Workload(jobs, log.machine, "log"), variants(schedulers)).left_out == 1


def test_mean_waits_of_users_and_classes_are_compared():
    log = workload()
    chosen = variants({"fcfs": {}}, processors=["+100%"])
    answer = ask(log, chosen, by=["user", "class"])
    groups = answer.groups.filter(variant="fcfs, processors +100%")
    assert groups.drop("low", "high", "verdict").rows() == [
        ("fcfs, processors +100%", "user", "0", 8, 0, 0),
        ("fcfs, processors +100%", "user", "1", 8, 0, 3600),
        ("fcfs, processors +100%", "class", "narrow, short", 16, 0, 1800),
    ]
    # Every second job waits for an hour in each of the weeks.
    assert groups["verdict"].to_list() == ["equal", "variant is better", "variant is better"]
    assert groups.select("low", "high").rows()[1:] == [(-3600, -3600), (-1800, -1800)]
    with pytest.raises(SwflowError, match="--by: unknown group 'users'; did you mean 'user'"):
        ask(log, chosen, by=["users"])


def test_groups_without_jobs_under_the_base_are_not_compared():
    """The recorded schedule omits jobs without a wait, so that a user may have jobs under the variant only."""
    log = workload()
    jobs = log.jobs.with_columns(
        user_id=pl.when(pl.col("job_id") == 1).then(5).otherwise("user_id"),
        wait_time=pl.when(pl.col("job_id") == 1).then(None).otherwise("wait_time"),
    )
    schedulers = {"log": {"order": "log"}, "easy": {"backfill": "easy"}}
    answer = ask(replace(log, jobs=jobs), variants(schedulers), by=["user"])
    assert sorted(answer.groups.filter(variant="easy")["name"]) == ["0", "1"]


def test_groups_have_verdicts_beside_their_waits_under_each_of_several_variants():
    log = workload()
    chosen = variants({"fcfs": {}}, processors=["+100%", "+200%"])
    answer = ask(log, chosen, by=["user"])
    table = tables(Question(SiteModel(log), chosen, answer))[-1]
    assert table.columns[0] == "user"
    assert [row[-2:] for row in table.rows] == [["0.0 equal", "0.0 equal"], ["0.0 shorter", "0.0 shorter"]]
    assert not any(word in cell for row in table.rows for cell in row[:-2] for word in ("equal", "shorter"))


def test_winners_and_losers_are_counted_by_verdicts_that_are_corrected_for_the_groups():
    """Of many groups, some gain by chance."""
    generator = np.random.default_rng(5)
    users = 60
    table = pl.DataFrame({
        "job_id": range(users * 30), "submit_time": [WEEK * week + user for week in range(30) for user in range(users)],
        "user_id": [user for _ in range(30) for user in range(users)],
    })  # fmt: skip
    base = table.with_columns(wait_time=pl.Series(generator.exponential(100, table.height)))
    shift = pl.when(pl.col("user_id") == 7).then(0.02).otherwise(1.0)
    then = base.with_columns(wait_time=shift * pl.Series(generator.exponential(100, table.height)))
    grouped = table.select("job_id", by=pl.lit("user"), name=pl.col("user_id").cast(pl.String))
    found = compared("then", waits_of(then, grouped), waits_of(base, grouped))
    alone = ((found["low"] > 0) | (found["high"] < 0)).sum()
    decided = found.filter(pl.col("verdict").is_in(["variant is better", "base is better"]))
    assert decided["name"].to_list() == ["7"]
    assert alone > 1


def test_few_weeks_give_no_interval_and_equal_schedulers_are_equal():
    few = found(
        ask(workload(2), variants({"fcfs": {}}, processors=["+100%"])), "fcfs, processors +100%", "mean_wait_time"
    )
    assert (few["difference"], few["low"], few["verdict"]) == (-1800, None, "cannot tell: too few weeks")
    answer = ask(workload(), variants({"fcfs": {}, "easy": {"backfill": "easy"}}))
    assert found(answer, "easy", "mean_wait_time")["verdict"] == "equal"


def test_verdicts_are_corrected_for_the_variants_of_one_answer():
    """Ranking any number of variants finds a better one by chance."""
    log, generator = workload(12), np.random.default_rng(3)
    jobs = log.jobs.with_columns(
        run_time=pl.Series(generator.uniform(60, 7000, 24)),
        submit_time=pl.col("submit_time") + pl.Series(generator.uniform(0, 3000, 24)),
    )
    log = Workload(jobs.with_columns(estimate=pl.col("run_time")).sort("submit_time"), log.machine, "log")
    for factors, expected in (([1.3], "base is better"), ([1.1, 1.2, 1.3, 1.5], "not distinguishable")):
        table = ask(log, variants({"fcfs": {}}, arrivals=factors)).table.filter(pl.col("measure") == "mean_wait_time")
        assert table["verdict"].to_list() == ["base", *["base is better"] * len(factors)]
        assert table["verdict_holm"].to_list() == ["base", *[expected] * len(factors)]


def test_awrt_is_weighted_by_the_areas_of_each_run():
    """The second job of a week starts on one processor instead of four, and then has a third of its area."""
    shapes = [
        [{"processors": 3, "run_time": 3600.0}],
        [{"processors": 4, "run_time": 3600.0}, {"processors": 1, "run_time": 5000.0}],
    ] * 8
    log = workload()
    columns = {"shapes": pl.Series(shapes), "processors": pl.Series([3, 4] * 8)}
    log = Workload(log.jobs.with_columns(**columns), log.machine, "log")
    schedulers = {"easy": {"backfill": "easy"}, "start": {"backfill": "easy", "shapes": "start"}}
    answer = ask(log, variants(schedulers))
    for name, options in schedulers.items():
        expected = run(log, Scheduler.of(name, options)).metrics
        for measure in MEASURES:
            assert found(answer, name, measure)["value"] == pytest.approx(expected[measure], rel=1e-12)
    assert found(answer, "start", "awrt")["base"] == found(answer, "easy", "awrt")["value"]
    areas = 3 * 3600, 5000
    assert found(answer, "start", "awrt")["value"] == pytest.approx((3600 * areas[0] + 5000 * areas[1]) / sum(areas))


def test_an_interval_of_few_weeks_is_not_stated_without_a_word():
    """On KTH-SP2, where few weeks contain most of the difference, 84 % of 95 % intervals of AWRT hold the truth."""
    jobs = workload(24).jobs
    late = pl.col("submit_time") == 9 * WEEK
    alike, uneven = (
        Workload(jobs.with_columns(run_time=pl.col("run_time") * factor), Machine.of(4), "log")
        for factor in (1 + pl.col("job_id") % 5, pl.when(late).then(50).otherwise(1))
    )
    few, many = (ask(log, variants({"fcfs": {}}, processors=["+100%"])) for log in (uneven, alike))
    assert many.uneven == ()
    assert ("fcfs, processors +100%", "mean_wait_time") in few.uneven
    question = Question(SiteModel(uneven), variants({"fcfs": {}}, processors=["+100%"]), few)
    assert any("Few weeks contain most of the difference of fcfs, processors +100% (mean wait" in one
               for one in caveats(question))  # fmt: skip


def test_the_arrival_factor_does_not_move_jobs_to_other_weeks():
    answer = ask(workload(), variants({"fcfs": {}}, arrivals=[4.0]))
    assert found(answer, "fcfs, arrivals × 4", "mean_wait_time")["weeks"] == 8


def test_a_variant_changes_only_the_named_properties():
    log = workload()
    for options, column, expected in (
        ({"arrivals": [2.0]}, "submit_time", WEEK / 2),
        ({"run_times": [0.5]}, "run_time", 1800),
        ({"estimates": ["perfect"]}, "estimate", 3600),
        ({"estimates": ["3"]}, "estimate", 10800),
    ):
        changed = applied(log, variants({"fcfs": {}}, **options)[1])
        assert changed.jobs[column][2] == expected
        assert changed.jobs["job_id"].to_list() == log.jobs["job_id"].to_list()


def test_factors_change_think_times_and_the_run_times_of_shapes():
    shapes = [[{"processors": 1, "run_time": 60.0}, {"processors": 2, "run_time": 40.0}]]
    jobs = pl.DataFrame({
        "job_id": [1], "submit_time": [0.0], "run_time": [60.0], "estimate": [60.0], "processors": [1],
        "think_time": [30.0], "shapes": shapes,
    })  # fmt: skip
    changed = applied(Workload(jobs, Machine.of(4), "tiny"), Variant("m", {}, arrivals=2.0, run_times=3.0)).jobs
    assert changed["think_time"].to_list() == [15.0]
    assert [shape["run_time"] for shape in changed["shapes"][0]] == [180.0, 120.0]


def test_jobs_too_wide_for_a_smaller_machine_are_excluded():
    log = workload()
    narrow = log.jobs.with_columns(processors=pl.when(pl.col("job_id") == 1).then(4).otherwise(2))
    answer = ask(Workload(narrow, log.machine, "log"), variants({"fcfs": {}}, processors=["-50%"]))
    assert answer.left_out == 1
    assert set(answer.table["jobs"]) == {15}


def test_dependencies_on_excluded_jobs_are_left_out():
    log = workload()
    jobs = log.jobs.with_columns(
        processors=pl.when(pl.col("job_id") == 1).then(4).otherwise(2),
        depends_on=pl.when(pl.col("job_id") == 2).then(pl.concat_list(pl.lit(1, pl.Int64))),
    )
    answer = ask(Workload(jobs, log.machine, "log"), variants({"fcfs": {}}, processors=["-50%"]))
    assert set(answer.table["jobs"]) == {15}


def test_machines_keep_their_nodes():
    machine = Machine(100, 25, {"memory": 5.0})
    assert sized(machine, "+20%") == Machine(120, 30, {"memory": 5.0})
    assert sized(machine, "104").nodes == 26
    assert sized(machine, "+8").nodes == 27


def sized(machine: Machine, processors: str, **options) -> Machine:
    """Return a machine of another size."""
    return hardware_of(Variant("m", options, read_processors(processors)), replace(workload(), machine=machine))[1]


def test_machines_keep_their_resources():
    """Two jobs need more than all GPUs, so that more processors do not shorten the waits."""
    log = workload()
    machine = Machine(4, 4, resources={"gpus": 2})
    log = Workload(log.jobs.with_columns(processors=1, gpus=2), machine, "log")
    assert sized(machine, "+50%").resources == {"gpus": 2}
    answer = ask(log, variants({"easy": {"backfill": "easy"}}, processors=["+50%", "6"]))
    for name in ("easy", "easy, processors +50%", "easy, processors 6"):
        assert found(answer, name, "mean_wait_time")["value"] == 1800


def test_a_variant_changes_shapes_and_think_times():
    shapes = [[{"processors": 4, "run_time": 3600.0}]] * 16
    log = workload()
    log = Workload(log.jobs.with_columns(shapes=pl.Series(shapes), think_time=60.0), log.machine, "log")
    answer = ask(log, variants({"start": {"shapes": "start"}}, run_times=[2.0]))
    assert found(answer, "start, run times × 2", "mean_wait_time")["difference"] == 1800
    _, faster = variants({"start": {}}, arrivals=[2.0])
    assert applied(log, faster).jobs["think_time"][0] == 30


@pytest.mark.slow
def test_jobs_that_wait_for_others_stay_in_their_weeks():
    """All jobs are submitted in one week, but each becomes eligible only 3 days after the end of the one before."""
    log = workload()
    after = pl.Series([None, *([number] for number in range(1, 16))])
    jobs = log.jobs.with_columns(submit_time=0.0, depends_on=after, think_time=WEEK * 3 / 7)
    answer = ask(Workload(jobs, log.machine, "log"), variants({"fcfs": {}}))
    assert found(answer, "fcfs", "mean_wait_time")["weeks"] == 1


def test_one_partition_or_all_get_larger():
    clusters = [{"partition": "cpu", "processors": 10}, {"partition": ["gpu", "debug"], "processors": 5}]
    site = {"dispatch": "partition", "clusters": clusters}

    def sizes(processors: str) -> list[int]:
        change = read_processors(processors) if processors else ()
        options, machine = hardware_of(Variant("site", site, change), replace(workload(), machine=Machine.of(15)))
        assert machine.processors == sum(one["processors"] for one in options["clusters"])
        return [one["processors"] for one in options["clusters"]]

    assert [sizes(text) for text in ("", "+20%", "cpu=+20%", "debug=50")] == [[10, 5], [12, 6], [12, 5], [10, 50]]
    assert clusters[0]["processors"] == 10
    limited = {"limits": {"partition": {"cpu": {"processors": 8}, "gpu": {"processors": 8}}}}
    variant = Variant("site", limited, read_processors("gpu=12"))
    options, machine = hardware_of(variant, replace(workload(), machine=Machine.of(10)))
    assert (options["limits"]["partition"]["gpu"], machine.processors) == ({"processors": 12}, 14)
    with pytest.raises(SwflowError, match="site has no partition 'cpus'; did you mean 'cpu'"):
        sizes("cpus=+20%")


def test_combinations_and_names():
    changes = {"processors": ["+10%"], "estimates": ["perfect"], "arrivals": [1.1], "run_times": [0.9]}
    chosen = variants({"a": {}, "b": {}}, **changes)
    assert len(chosen) == 32
    assert len({variant.name for variant in chosen}) == 32
    assert read_scheduler("sjf")[1] == {"order": "sjf", "backfill": "easy"}
    with pytest.raises(SwflowError, match="did you mean 'easy'"):
        read_scheduler("eazy")


@pytest.fixture
def log(tmp_path, monkeypatch):
    """Write a log of 8 weeks to the current folder."""
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{2 * week + place + 1} {int(week * WEEK)} {3600 * place} 3600 4 -1 -1 4 7200 -1 1 {place} 1 1 1 1 -1 -1"
        for week in range(8) for place in (0, 1)
    ]  # fmt: skip
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(lines) + "\n")
    return tmp_path


def test_the_commands(log, capfd):
    outputs = [part for name in ("a.html", "a.csv", "a.parquet") for part in ("-o", name)]
    options = ["--scheduler", "fcfs", "--scheduler", "<b>: {order: sjf}", "--processors", "+100%"]
    assert call("whatif", "log.swf", *options, *outputs) == 0
    out, _ = capfd.readouterr()
    answer = " ".join(out.split())
    assert "Under fcfs, the simulated mean wait is 30.0 min; the recorded one is 30.0 min." in answer
    assert (
        "With 100 % more processors, the mean wait is 100 % (95 % interval 100 to 100 %) shorter: 0.0 instead" in answer
    )
    page = (log / "a.html").read_text()
    assert "&lt;b&gt;, processors +100%" in page
    assert "<b>" not in page
    assert pl.read_csv(log / "a.csv").height == pl.read_parquet(log / "a.parquet").height == 16
    assert call("fidelity", "log.swf", "--scheduler", "fcfs", "--scheduler", "sjf") == 0
    out, err = capfd.readouterr()
    assert out.split().count("1800") == 4
    assert "16 jobs with a recorded wait" in err


@pytest.mark.slow
def test_an_answer_is_loaded_and_reported_with_or_without_runs(log, capfd):
    options = ["--scheduler", "fcfs", "--processors", "+100%", "--study", "nodes"]
    assert call("whatif", "log.swf", *options, "-o", "a.parquet") == 0
    assert call("simulate", "log.swf", "--backfill", "easy", "-o", "easy.parquet") == 0
    text = (
        "SELECT study, workload, variant, processors, base, value, difference, low, verdict FROM whatifs "
        "WHERE measure = 'mean_wait_time' ORDER BY rowid"
    )
    for files in (["a.parquet"], ["a.parquet", "easy.parquet"], ["easy.parquet", "a.parquet"]):
        assert call("load", *files, "--database", "d.duckdb") == 0
        assert query(log / "d.duckdb", text)[1] == [
            ("nodes", "log", "fcfs", 4, 1800, 1800, 0, None, "base"),
            ("nodes", "log", "fcfs, processors +100%", 8, 1800, 0, -1800, -1800, "variant is better"),
        ]
    content = {"logs": ["log"], "runs": [], "whatif": [{"workloads": ["{log}"], "schedulers": ["fcfs"]}]}
    (log / "c.yaml").write_text(yaml.safe_dump({"schedulers": {"fcfs": {}}, "studies": {"nodes": content}}))
    assert call("report", "--database", "d.duckdb", "-o", "report", "--studies", "c.yaml", "--no-draw") == 0
    page, overview = (
        (log / f"report/{name}.html").read_text().replace("\u00a0", " ") for name in ("studies/nodes", "index")
    )
    words = "fcfs with processors +100% shortens the mean wait on log by 100 % (95 % interval 100 %) compared with fcfs"
    assert words in page and words in overview


SACCT = "JobID|User|Partition|State|Submit|Start|End|Timelimit|AllocCPUS\n" + "".join(
    f"{job}|{'ada' if job % 2 else 'bob'}|main|COMPLETED|2024-01-{1 + 7 * (job // 8):02d}T00:00:0{job % 8}"
    f"|2024-01-{1 + 7 * (job // 8):02d}T0{job % 8}:00:08|2024-01-{1 + 7 * (job // 8):02d}T0{job % 8}:59:08|02:00:00|4\n"
    for job in range(32)
)


@pytest.mark.parametrize("packed", [False, True])
def test_slurm_accounting_is_accepted_as_a_log(log, capfd, packed):
    path = log / ("jobs.txt.gz" if packed else "jobs.txt")
    path.write_bytes(gzip.compress(SACCT.encode()) if packed else SACCT.encode())
    fair = "fair: {order: slurm-multifactor, priority: {fair_share: 1}, limits: {user: {bob: {jobs: 1}}}}"
    assert call("whatif", path.name, "--scheduler", "fcfs", "--scheduler", fair, "--machine-processors", "4") == 0
    out, err = capfd.readouterr()
    assert "fair" in out
    assert f"{path.name}: 32 jobs of 32 records of sacct; left out: none" in err
    assert "jobs: 32 of 32 jobs kept" in err
    assert call("check", path.name, "--processors", "2") == 0
    assert "wider-than-machine" in capfd.readouterr().out
    assert call("fidelity", path.name, "--scheduler", "fcfs") == 0
    capfd.readouterr()
    assert call("init", "cluster", "--log", path.name, "--processors", "4") == 0
    entry = yaml.safe_load((log / "cluster/config/my-logs.yaml").read_text())["jobs"]
    kept, _ = read_log(log / "cluster" / entry["path"])
    assert kept.header["User"] == ["1 bob", "2 ada"]
    assert kept.header["MaxProcs"] == ["4"]


def test_accounting_without_jobs_is_one_line(log, capfd):
    (log / "empty.txt").write_text(SACCT.splitlines()[0] + "\n")
    assert call("whatif", "empty.txt", "--scheduler", "easy") == 1
    assert "empty.txt: the file contains no job" in capfd.readouterr().err
    assert call("init", "cluster", "--log", "empty.txt") == 1
    assert not (log / "cluster").exists()


@pytest.mark.parametrize("header", ["JobID|State|Elapsed", "User|State|Submit|Start", "JobID,State,Elapsed"])
def test_few_columns_of_sacct_are_not_a_line_of_swf_with_one_field(log, capfd, header):
    (log / "few.txt").write_text(f"{header}\n1{header[5]}COMPLETED{header[5]}01:00:00\n")
    assert call("whatif", "few.txt", "--scheduler", "easy") == 1
    error = capfd.readouterr().err
    assert "few.txt:1: no " in error
    assert "fields instead of 18" not in error


def test_metrics_of_several_schedulers_are_printed_side_by_side(log, capfd):
    assert call("simulate", "log.swf", "--scheduler", "fcfs", "--scheduler", "best: {order: ljf, backfill: easy}") == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].split() == ["metric", "fcfs", "best"]
    assert next(line.split() for line in lines if line.startswith(" mean_wait_time")) == [
        "mean_wait_time",
        "1800",
        "1800",
    ]
    assert not list(log.glob("**/*.parquet"))
    assert call("simulate", "log.swf", "--scheduler", "fcfs", "--scheduler", 'b={"order": "sjf"}', "-o", "runs") == 0
    assert "b" in capfd.readouterr().out.splitlines()[0].split()
    assert {path.name for path in (log / "runs").glob("*.parquet")} == {"fcfs.parquet", "b.parquet"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            [
                "whatif",
                "log.swf",
                "--scheduler",
                "a: {clusters: [{processors: 4}, {processors: 4}]}",
                "--processors",
                "6",
            ],
            "--processors 6: a has 2 clusters; expected one of them, such as PARTITION=6",
        ),
        (["whatif", "log.swf", "--scheduler", "eazy"], "--scheduler 'eazy': "),
        (["whatif", "log.swf", "--processors", "cpu=+20%"], "--processors cpu=+20%: site has no partitions"),
        (["whatif", "log.swf", "--partition", "cpu"], "--partition 'cpu': expected PARTITION=PROCESSORS"),
        (["whatif", "log.swf", "--machine-resource", "gpus"], "--machine-resource 'gpus': expected NAME=UNITS"),
        (["whatif", "log.swf", "--partition", "cpu=4"], "--partition: the log has no partition 'cpu'"),
        (["whatif", "log.swf", "--scheduler", "a: {ordr: sjf}"], "ordr"),
        (["whatif", "log.swf", "--scheduler", "easy", "--scheduler", "easy"], "easy: duplicate name"),
        (["whatif", "log.swf", "--scheduler", "easy", "--processors", "many"], "--processors: 'many'"),
        (["whatif", "log.swf", "--scheduler", "easy", "--processors", "-100%"], "0 processors; expected at least 1"),
        (["whatif", "log.swf", "--scheduler", "easy", "--processors", "2"], "every job is wider than 2 processors"),
        (["whatif", "log.swf", "--scheduler", "easy", "--estimates", "good"], "--estimates: 'good'"),
        (["whatif", "log.swf", "--scheduler", "easy", "--arrivals", "0"], "expected a factor from 0.01"),
        (["whatif", "log.swf", "--scheduler", "easy", "--run-times", "nan"], "--run-times: nan; expected a factor"),
        (["whatif", "log.swf", "--scheduler", "easy", "-o", "a.txt"], "a.txt: unknown ending"),
        (["whatif", "nothing.swf", "--scheduler", "easy"], "nothing.swf: no such file"),
        (["fidelity", "silent.swf"], "silent.swf: no recorded wait times"),
    ],
)
def test_bad_input_is_one_line(log, capfd, arguments, words):
    (log / "silent.swf").write_text("; MaxProcs: 4\n1 0 -1 60 4 -1 -1 4 90 -1 1 1 1 1 1 1 -1 -1\n")
    assert call(*arguments) == 1
    error = capfd.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("swflow: ")
    assert words in error
