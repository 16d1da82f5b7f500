"""Tests of workload models: the paper's examples, fits to generated data, and the step from file to file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from swflow.cli import main
from swflow.errors import SwflowError
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.header import Header
from swflow.jobs.machine import Machine
from swflow.jobs.randomness import generator, step_generator
from swflow.jobs.table import JOB_COLUMNS, Workload
from swflow.workload.clean import clean_log
from swflow.workload.models.arrivals import (
    SECONDS_A_DAY,
    SECONDS_A_WEEK,
    LogArrivals,
    arrivals_from_dict,
    fit_daily_cycle,
)
from swflow.workload.models.fit_measures import autocorrelation, fit_measures, kolmogorov_smirnov
from swflow.workload.models.lublin import generate_lublin
from swflow.workload.models.minh_wolters import (
    REPEATS,
    class_given_label,
    classify_sizes,
    first_of_repetition,
    fit_locality,
    generate_locality,
    permute_labels,
    repetition_probability,
)
from swflow.workload.models.mixtures import fit_mixture
from swflow.workload.models.pools import as_plain, pools_of
from swflow.workload.models.repetition import repetition_distance, repetition_histogram, repetition_lengths
from swflow.workload.models.song import fit_markov, generate_markov
from swflow.workload.models.zipf import Zipf, fit_zipf
from swflow.workload.steps.model import ARRIVALS, MODELS, fit, generate, read_model, with_measures, write_model

KTH = "KTH-SP2-1996-2.1-cln.swf.gz"


def series_with_locality(jobs=20_000, seed=3):
    """Return run times of four classes with repetitions, and sizes that depend on them."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(rng.integers(0, 4, jobs), rng.integers(1, 6, jobs))[:jobs]
    run_times = np.rint(np.exp(rng.normal(np.array([2.0, 4.5, 7.0, 9.5])[kinds], 0.25)))
    same = rng.random(jobs) < 0.2
    for place in np.flatnonzero(same[1:]) + 1:
        run_times[place] = run_times[place - 1]
    sizes = np.where(rng.random(jobs) < 0.8, np.array([1, 4, 16, 64])[kinds], 2)
    return run_times, sizes


@pytest.fixture(scope="module")
def source():
    """Return a small workload with locality on 64 processors, with some unknown estimates."""
    run_times, sizes = series_with_locality(1500)
    rng = np.random.default_rng(5)
    known = {
        "job_id": np.arange(1, 1501),
        "submit_time": np.sort(rng.integers(0, 20 * SECONDS_A_DAY, 1500)).astype(float),
        "run_time": run_times,
        "processors": sizes,
        "requested_time": np.where(rng.random(1500) < 0.1, np.nan, np.ceil(run_times / 600) * 600),
        "estimate": np.ceil(run_times / 600) * 600,
    }
    jobs = pl.DataFrame(
        {
            name: pl.Series(name, known.get(name, [None] * 1500), nan_to_null=True, strict=False).cast(dtype)
            for name, dtype in JOB_COLUMNS.items()
        }
    )
    return Workload(
        jobs,
        Machine.of(64),
        "toy",
        {"UnixStartTime": ["0"]},
        ({"stage": "clean", "read": 1, "kept": 1, "removed": {}},),
    )


def model(workload, rng, *, jobs=None, **options):
    """Fit a model to a workload, and generate a workload from it with its measures."""
    return with_measures(generate(fit(workload, **options), rng, jobs=jobs), workload)


# -- the paper's examples


def test_repetitions_of_the_paper():
    assert repetition_lengths([2, 2, 2, 3, 1, 1, 4, 5, 5, 5, 5]).tolist() == [3, 1, 2, 1, 4]


def test_permutation_of_the_paper():
    labels = [1, 2, 1, 3, 2, 2, 3, 2, 4, 1, 4]
    assert permute_labels(labels, 4).tolist() == [1, 1, 2, 3, 2, 2, 2, 3, 4, 4, 1]
    assert permute_labels(labels, 1).tolist() == labels


def test_classes_of_the_paper():
    sizes = np.repeat([4, 10, 7, 8], [250, 300, 1, 91])
    assert classify_sizes(sizes)[[0, 250, 550, 551]].tolist() == [9, 9, 1, 8]


# -- the parts


@given(st.lists(st.integers(1, 4), max_size=40), st.integers(1, 8))
def test_permuted_windows_have_the_same_labels_grouped(labels, window):
    permuted = permute_labels(np.array(labels, dtype=int), window)
    for start in range(0, len(labels), window):
        before, after = labels[start : start + window], permuted[start : start + window].tolist()
        assert sorted(before) == sorted(after)
        assert len(repetition_lengths(after)) == len(set(before))
        assert after[0] == before[0]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 8)), min_size=1, max_size=20))
def test_repeated_jobs_come_first_in_their_repetition(pairs):
    lengths = np.array([length for length, _ in pairs])
    repeated = np.array([min(repeat, length - 1) for length, repeat in pairs])
    places = first_of_repetition(lengths, repeated)
    expected, start = [], 0
    for length, repeat in zip(lengths, repeated, strict=True):
        expected += [start if place < repeat else start + place for place in range(length)]
        start += length
    assert places.tolist() == expected


def test_the_probability_counts_repetitions_of_labels_with_a_repeated_run_time():
    labels = np.array([1, 1, 1, 2, 2, 1, 3, 3, 3, 3])
    run_times = np.array([5, 5, 6, 70, 71, 6, 900, 901, 901, 901])
    assert repetition_probability(labels, run_times) == pytest.approx(2 / 4)


def test_the_transition_table_is_a_conditional_probability():
    rng = np.random.default_rng(1)
    labels, sizes = rng.integers(1, 5, 1000), rng.choice([2, 7, 9], 1000)
    classes, table = class_given_label(labels, sizes, 4)
    assert classes.tolist() == [2, 7, 9]
    assert table.sum(axis=1) == pytest.approx(np.ones(4))
    joint = ((labels == 3) & (sizes == 7)).mean() / (labels == 3).mean()
    assert table[2, 1] == pytest.approx(joint)


@pytest.mark.parametrize("exponent", [0.5, 1.5, 3.0])
def test_zipf_fits_find_the_exponent(exponent):
    lengths = Zipf(exponent, 50).sample(100_000, np.random.default_rng(2))
    assert lengths.min() == 1
    assert lengths.max() <= 50
    fitted = fit_zipf(lengths)
    assert fitted.exponent == pytest.approx(exponent, abs=0.03)
    assert fitted.mean == pytest.approx(lengths.mean(), rel=0.02)


def test_the_zipf_fit_maximizes_the_likelihood():
    lengths = np.repeat([1, 2, 3, 7], [60, 20, 12, 1])
    fitted = fit_zipf(lengths)

    def likelihood(exponent):
        return np.log(np.diff(Zipf(exponent, 7).cumulative))[lengths - 1].sum()

    assert likelihood(fitted.exponent) > max(likelihood(fitted.exponent + step) for step in (-0.01, 0.01))


def test_lengths_below_a_limit_have_the_distribution_of_repeated_draws():
    law = Zipf(1.2, 30)
    drawn = law.sample_below(np.full(40_000, 6), np.random.default_rng(1), least=2)
    again = law.sample(400_000, np.random.default_rng(2))
    again = again[(again >= 2) & (again < 6)]
    assert np.bincount(drawn, minlength=6)[2:] / 40_000 == pytest.approx(
        np.bincount(again, minlength=6)[2:] / len(again), abs=0.01
    )
    assert law.sample_below(np.array([1, 2, 3]), np.random.default_rng(1), least=2).tolist() == [0, 0, 2]


def test_zipf_rejects_invalid_lengths():
    for lengths in ([], [0, 1]):
        with pytest.raises(SwflowError, match="zipf: lengths are missing"):
            fit_zipf(np.array(lengths, dtype=int))


def test_mixtures_find_their_components_in_any_order_of_jobs():
    rng = np.random.default_rng(7)
    kinds = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    run_times = np.rint(np.exp(rng.normal(np.array([3.0, 6.0, 9.0])[kinds], 0.3)))
    mixture = fit_mixture(run_times, components=6)
    assert mixture.components == 3
    assert mixture.means == pytest.approx([3.0, 6.0, 9.0], abs=0.05)
    assert mixture.weights == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    assert (mixture.classify(run_times) == kinds + 1).mean() > 0.999
    again = fit_mixture(rng.permutation(run_times), components=6)
    assert as_plain(again) == as_plain(mixture)


def test_mixtures_support_equal_run_times_and_run_times_of_zero():
    rng = np.random.default_rng(8)
    run_times = np.concatenate([np.zeros(300), np.full(100, 3600.0), np.rint(rng.lognormal(5, 1, 1600))])
    mixture = fit_mixture(run_times, components=8)
    labels = mixture.classify(run_times)
    assert len(np.unique(labels)) == mixture.components
    drawn = mixture.sample(labels, np.random.default_rng(1))
    assert kolmogorov_smirnov(drawn, run_times) < 0.05
    assert (drawn == 0).any()
    assert drawn.max() <= run_times.max()
    assert fit_mixture(np.full(10, 60.0)).components == 1


def test_pools_draw_with_the_frequencies_of_their_class():
    keys = np.repeat(["a", "b"], [4, 2])
    pools = pools_of(keys, np.array([1.0, 1.0, 1.0, 9.0, np.nan, 5.0]))
    drawn = pools.draw(np.full(20_000, "a"), np.random.default_rng(1))
    assert (drawn == 9).mean() == pytest.approx(0.25, abs=0.01)
    assert np.isnan(pools.draw(np.full(20_000, "b"), np.random.default_rng(1))).mean() == pytest.approx(0.5, abs=0.02)
    long = pools.draw(np.full(100, "a"), np.random.default_rng(1), least=np.full(100, 2.0))
    assert set(long.tolist()) == {9.0}


# -- the models


@pytest.mark.slow
def test_run_times_have_locality_and_sizes_depend_on_them():
    run_times, sizes = series_with_locality()
    fitted, keys = fit_locality(run_times, sizes, components=6)
    assert fitted.run_times.components == 4
    assert len(keys) == len(run_times)
    distances = {}
    for repeats in ("fitted", "at-least-two", "printed", None):
        made = [generate_locality(fitted, 20_000, np.random.default_rng(seed), repeats=repeats) for seed in range(5)]
        measures = [fit_measures(*pair[:2], run_times, sizes) for pair in made]
        distances[repeats] = np.median([measure["repetition_distance"][0] for measure in measures])
        if repeats != "printed":
            assert np.median([abs(measure["squashed_area_difference"][0]) for measure in measures]) < 5
            assert np.median([measure["correlation"][0] for measure in measures]) == pytest.approx(
                measures[0]["correlation"][1], abs=0.03
            )
            assert max(measure["run_time_ks"][0] for measure in measures) < 0.05
    assert distances["fitted"] < 0.5 * distances[None]
    assert distances["fitted"] < distances["at-least-two"] < distances["printed"]


def test_every_pair_of_labels_that_is_generated_is_in_the_log():
    run_times, sizes = series_with_locality()
    fitted, keys = fit_locality(run_times, sizes, components=6)
    _, processors, made = generate_locality(fitted, 20_000, np.random.default_rng(1))
    assert set(made) <= set(keys)
    log = set(zip(keys, sizes.tolist(), strict=True))
    assert set(zip(made, processors.tolist(), strict=True)) <= log


def test_a_share_p_of_the_repetitions_of_labels_has_a_repeated_run_time():
    run_times, sizes = series_with_locality()
    fitted, _ = fit_locality(run_times, sizes, components=6)
    assert 0.1 < fitted.repetition_probability < 0.9
    rare = replace(fitted, repetition_probability=0.05, label_repetitions=Zipf(1.0, 8), value_repetitions=Zipf(1.0, 5))
    wide = replace(rare, run_times=replace(fitted.run_times, means=fitted.run_times.means + 12, longest=1e12))
    made, _, keys = generate_locality(wide, 40_000, np.random.default_rng(4))
    labels = np.array([int(key.split(",")[0]) for key in keys])
    found = len(repetition_lengths(made)) - len(made)
    assert found < 0
    repetitions = 40_000 / wide.label_repetitions.mean
    with_repeat = (repetition_lengths(made) > 1).sum()
    assert with_repeat / repetitions == pytest.approx(0.05, rel=0.1)
    assert repetition_probability(labels, made) < 0.08  # neighbouring repetitions of one label count as one there


def test_windows_raise_the_autocorrelation():
    run_times, sizes = series_with_locality()
    fitted, _ = fit_locality(run_times, sizes, components=6)
    lags = [
        autocorrelation(generate_locality(fitted, 8000, np.random.default_rng(1), window=window)[0], 1)
        for window in (1, 16)
    ]
    assert lags[1] > lags[0] + 0.1


def test_markov_chains_preserve_transitions_and_the_dependence_of_run_times_on_sizes():
    run_times, sizes = series_with_locality()
    fitted, _ = fit_markov(run_times, sizes)
    made, processors, _ = generate_markov(fitted, 40_000, np.random.default_rng(1))
    assert set(np.unique(processors)) <= set(np.unique(sizes))
    assert autocorrelation(np.log2(processors), 1) == pytest.approx(autocorrelation(np.log2(sizes), 1), abs=0.06)
    assert np.corrcoef(np.log(made), np.log(processors))[0, 1] == pytest.approx(
        np.corrcoef(np.log(run_times), np.log(sizes))[0, 1], abs=0.05
    )
    assert made.min() >= run_times.min()
    assert made.max() <= run_times.max()


def test_arrivals_of_the_log_repeat_after_whole_weeks():
    arrivals = LogArrivals(np.array([100.0, 200.0, 100.0 + SECONDS_A_WEEK]))
    drawn = arrivals.sample(7, np.random.default_rng(1))
    assert (drawn[3:6] - drawn[:3]).tolist() == [2 * SECONDS_A_WEEK] * 3
    assert (np.diff(drawn) >= 0).all()
    assert arrivals_from_dict(json.loads(json.dumps(arrivals.to_dict()))).sample(3, None).tolist() == drawn[:3].tolist()


def test_the_daily_cycle_has_the_days_and_the_rate_of_the_log():
    rng = np.random.default_rng(1)
    seconds = np.sort(rng.integers(0, 60 * SECONDS_A_DAY, 200_000)).astype(float)
    hour = seconds % SECONDS_A_DAY / 3600
    busy = seconds[rng.random(200_000) < np.where((hour >= 9) & (hour < 17), 0.5, 0.1)]
    cycle = fit_daily_cycle(busy, Header())
    assert cycle.gap_shape == pytest.approx(1, abs=0.1)
    drawn = cycle.sample(len(busy), np.random.default_rng(2))
    assert (np.diff(drawn) >= 0).all()
    assert drawn[-1] == pytest.approx(busy[-1], rel=0.05)
    work = [
        ((times % SECONDS_A_DAY // 3600 >= 9) & (times % SECONDS_A_DAY // 3600 < 17)).mean() for times in (busy, drawn)
    ]
    assert work[1] == pytest.approx(work[0], abs=0.02)


def test_the_cycle_uses_the_local_time_of_the_site():
    header = {"UnixStartTime": ["0"], "TimeZoneString": ["US/Pacific"]}  # a Wednesday, 16:00 local time
    cycle = fit_daily_cycle(np.arange(0, 7 * 86400.0, 86400.0), Header(header))
    assert int(cycle.half_hours.argmax()) == 32
    assert cycle.clock == 2 * SECONDS_A_DAY + 16 * 3600


def test_measures_of_a_workload_against_itself_are_zero():
    run_times, sizes = series_with_locality(500)
    for name, (value, source) in fit_measures(run_times, sizes, run_times, sizes).items():
        assert value == source, name


def test_distances_of_repetitions():
    assert repetition_histogram([1, 1, 2, 2, 3]) == {1: 1, 2: 2}
    assert repetition_distance([1, 1, 1, 1], [1, 2, 3, 4]) == 2.0
    assert repetition_distance([1, 1, 2, 3], [5, 6, 7, 7]) == 0.0


# -- the step


@pytest.mark.parametrize("kind", MODELS)
def test_a_fitted_model_is_a_file_that_generates_the_same_bytes(source, tmp_path, kind):
    for arrivals in ("log", "daily-cycle"):
        fitted = fit(source, model=kind, arrivals=arrivals, components=5)
        write_model(fitted, tmp_path / "one.json")
        again = read_model(tmp_path / "one.json")
        write_model(again, tmp_path / "two.json")
        assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
        for name, maker in (("a", fitted), ("b", again)):
            write_workload(generate(maker, generator(1, "toy", "x")), tmp_path / f"{name}.parquet")
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
        other = generate(again, generator(2, "toy", "x"))
        assert not other.jobs.equals(read_workload(tmp_path / "a.parquet").jobs)


@pytest.mark.parametrize("kind", MODELS)
def test_synthetic_workloads_can_be_scheduled(source, kind):
    synthetic = model(source, np.random.default_rng(1), model=kind, components=5, jobs=2000, arrivals="daily-cycle")
    jobs = synthetic.jobs
    assert jobs.columns == list(JOB_COLUMNS)
    assert jobs["job_id"].to_list() == list(range(1, 2001))
    assert jobs["submit_time"].is_sorted()
    assert jobs["processors"].is_between(1, 64).all()
    assert (jobs["run_time"] % 1 == 0).all()
    assert (jobs["estimate"] >= jobs["run_time"]).all()
    assert 0.05 < jobs["requested_time"].null_count() / 2000 < 0.15
    assert synthetic.history[-1]["fit"]["jobs"] == [2000.0, 1500.0]
    assert synthetic.history[0] == source.history[0]


def test_arrivals_are_those_of_the_log_by_default(source):
    same = model(source, np.random.default_rng(1), model="song")
    assert same.jobs["submit_time"].to_list() == source.jobs["submit_time"].to_list()
    process = model(source, np.random.default_rng(1), model="song", arrivals="daily-cycle")
    assert process.jobs["submit_time"].to_list() != source.jobs["submit_time"].to_list()


@pytest.mark.parametrize("kind", ["resample", "repetition"])
def test_resampling_keeps_whole_jobs(source, kind):
    columns = ["run_time", "processors", "requested_time"]
    made = model(source, np.random.default_rng(1), model=kind).jobs.select(columns)
    assert made.join(source.jobs.select(columns), on=columns, how="anti", nulls_equal=True).is_empty()


@pytest.mark.parametrize("kind", [*MODELS])
def test_jobs_that_were_cancelled_in_the_queue_are_not_modelled(source, kind):
    """They have a run time of 0, and are no jobs that run."""
    is_left = pl.col("job_id") % 4 == 0
    left = pl.when(is_left).then(60.0)
    jobs = source.jobs.with_columns(
        cancelled_after=left, run_time=pl.when(is_left).then(0.0).otherwise(pl.col("run_time") + 1)
    )
    kept = replace(source, jobs=jobs.filter(~is_left))
    all_of_them, ran = (
        with_measures(generate(fit(one, model=kind), np.random.default_rng(1)), one)
        for one in (replace(source, jobs=jobs), kept)
    )
    assert all_of_them.jobs.equals(ran.jobs)
    assert all_of_them.history[-1] == ran.history[-1]
    assert all_of_them.history[-2]["removed"] == {"cancelled-in-queue": jobs.height - kept.jobs.height}


def test_the_generator_of_a_step_depends_on_the_last_suffix():
    def first(output):
        return step_generator(1, "A", output, "model").random()

    assert first("x/A+b+c.parquet") == first("y/Q+c.parquet") == generator(1, "A", "c").random()
    assert first("kth.parquet") == generator(1, "A", "model").random()
    assert first("A+c@1.parquet") != first("A+c@2.parquet")
    assert first("A+scaled-1.5.parquet") == generator(1, "A", "scaled-1.5").random()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "minh"}, "model: model: unknown value 'minh'"),
        ({"arrivals": "poisson"}, "model: arrivals: unknown value 'poisson'"),
        ({"repeats": "some"}, "model: repeats: unknown value 'some'"),
        ({"components": 0}, "model: components: 0; expected at least 1"),
        ({"window": 0}, "model: window: 0; expected at least 1"),
        ({"model": "song", "jobs": 0}, "model: jobs: 0; expected at least 1"),
    ],
)
def test_wrong_options_are_errors(source, options, words):
    with pytest.raises(SwflowError, match=words):
        model(source, np.random.default_rng(1), **options)


def test_unknown_run_times_and_invalid_files_are_errors(source, tmp_path):
    unknown = source.with_jobs(source.jobs.with_columns(run_time=pl.lit(None, dtype=pl.Float64)), {"stage": "test"})
    with pytest.raises(SwflowError, match="toy: 1,500 jobs have no run time"):
        fit(unknown)
    file = tmp_path / "m.json"
    write_model(fit(source, model="song"), file)
    whole = json.loads(file.read_text())
    del whole["arrivals"]["gaps"]
    for content, words in (
        ("{", "not a fitted model"), ("[]", "not a fitted model"), ("{}", "not a fitted model"),
        (json.dumps(whole), "incomplete fitted model"), (json.dumps(whole | {"model": "x"}), "incomplete"),
    ):  # fmt: skip
        file.write_text(content)
        with pytest.raises(SwflowError, match=words) as error:
            read_model(file)
        assert "\n" not in str(error.value)


def test_the_schema_lists_the_choices():
    schema = yaml.safe_load((Path(__file__).parents[2] / "workflow/schemas/config.schema.yaml").read_text())
    choices = schema["$defs"]["model"]["properties"]
    assert choices["model"]["enum"] == list(MODELS)
    assert choices["arrivals"]["enum"] == list(ARRIVALS)
    assert choices["repeats"]["enum"] == list(REPEATS)


def call(*arguments):
    """Run a command in this process and return its exit status."""
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code or 0


def test_the_command_fits_generates_and_does_both(source, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    write_workload(source, "toy.parquet")
    assert call("model", "toy.parquet", "-o", "toy+song.parquet", "--model", "song", "--save-fit", "song.json") == 0
    assert "1,500 jobs by song, fitted to 1,500 of toy; squashed area" in capfd.readouterr().err
    assert call("model", "--fitted", "song.json", "-o", "a/toy+song.parquet") == 0
    assert call("model", "--fitted", "song.json", "-o", "b/x+song.parquet") == 0
    assert call("model", "--fitted", "song.json", "-o", "b/toy+song@2.parquet") == 0
    assert (tmp_path / "a/toy+song.parquet").read_bytes() == (tmp_path / "b/x+song.parquet").read_bytes()
    jobs = [read_workload(path).jobs for path in ("toy+song.parquet", "a/toy+song.parquet", "b/toy+song@2.parquet")]
    assert jobs[0].equals(jobs[1])
    assert not jobs[0].equals(jobs[2])
    assert call("model", "--fitted", "song.json", "-o", "s.swf.gz", "--jobs", 10) == 0
    assert call("simulate", "s.swf.gz", "--backfill", "easy") == 0
    capfd.readouterr()
    for arguments, words in (
        (["toy.parquet"], "model: no output"),
        (["-o", "x.parquet"], "expected a workload to fit to"),
        (["--fitted", "toy.parquet", "-o", "x.parquet"], "toy.parquet: not a fitted model"),
        (["--fitted", "no.json", "-o", "x.parquet"], "no.json: no such file"),
    ):
        assert call("model", *arguments) == 1
        assert words in capfd.readouterr().err


def test_the_database_has_the_fit_next_to_published_values(tmp_path, monkeypatch):
    import duckdb

    from swflow.database.load import load

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    fields = generate_lublin(300, 100, rng)
    from swflow.workload.clean import clean

    log = clean(fields, Machine.of(100), name="KTH-SP2")
    write_workload(log, "KTH-SP2.parquet")
    areas = []
    for replicate in (1, 2, 3):
        name = f"KTH-SP2+song-like@{replicate}.parquet"
        assert call("model", "KTH-SP2.parquet", "-o", name, "--model", "song") == 0
        areas.append(read_workload(name).history[-1]["fit"]["squashed_area_difference"][0])
        assert call("simulate", name, "--backfill", "easy", "-o", f"run{replicate}.parquet") == 0
    load([f"run{replicate}.parquet" for replicate in (1, 2, 3)], "d.duckdb")
    with duckdb.connect("d.duckdb", read_only=True) as connection:
        recipes = connection.execute(
            "SELECT DISTINCT recipe, source, model FROM model_fit JOIN workloads USING (workload)"
        ).fetchall()
        ours = connection.execute(
            "SELECT reading, ours FROM readings WHERE paper = 'Minh 2009' AND \"table\" = 'Table 2'"
        ).fetchall()
        jobs = connection.execute(
            "SELECT ours FROM reproduction WHERE \"table\" = 'Table 1' AND row = 'KTH' AND figure = 'jobs'"
        ).fetchall()
    assert recipes == [("KTH-SP2+song-like", "KTH-SP2", "song")]
    assert ours == [("swflow's model after Song et al.", pytest.approx(np.median(areas)))]
    assert jobs == [(300.0,)]


# -- real logs


@pytest.mark.archive
def test_kth_agrees_with_the_paper(traces):
    log = clean_log(traces / KTH, name="KTH-SP2", processors=100)
    fitted = fit(log)
    measures = [
        with_measures(generate(fitted, generator(1, "KTH-SP2", f"minh-wolters@{seed}")), log).history[-1]["fit"]
        for seed in range(1, 21)
    ]
    assert measures[0]["correlation"][1] == pytest.approx(0.011, abs=0.01)
    assert np.median([abs(found["squashed_area_difference"][0]) for found in measures]) < 5
    assert np.median([found["correlation"][0] for found in measures]) == pytest.approx(0.011, abs=0.03)
    assert max(found["run_time_ks"][0] for found in measures) < 0.05
    assert max(found["processors_ks"][0] for found in measures) < 0.05
    former = fit_locality(*(log.jobs[name].to_numpy() for name in ("run_time", "processors")))[0]
    old = generate_locality(former, log.jobs.height, np.random.default_rng(1), repeats=None)[0]
    distance = repetition_distance(old, log.jobs["run_time"].to_numpy())
    assert np.median([found["repetition_distance"][0] for found in measures]) < distance


@pytest.mark.archive
@pytest.mark.parametrize(
    ("file", "period", "drop", "jobs", "correlation"),
    [
        ("LANL-CM5-1994-4.1-cln.swf.gz", ("1996-01-01T00:00Z", "1996-10-01T00:00Z"), [], 37517, 0.180),
        ("LLNL-Atlas-2006-2.1-cln.swf.gz", ("2007-02-01T00:00Z", "2007-05-31T00:00Z"), ["no-processors"], 23928, 0.034),
    ],
)
def test_periods_of_the_paper(traces, file, period, drop, jobs, correlation):
    from swflow.values import day_or_moment

    since, until = (day_or_moment(moment, "period") for moment in period)
    log = clean_log(traces / file, since=since, until=until, drop=drop)
    assert log.jobs.height == jobs
    found = np.corrcoef(log.jobs["run_time"].to_numpy(), log.jobs["processors"].to_numpy())[0, 1]
    assert found == pytest.approx(correlation, abs=0.001)
    allocated = log.jobs.filter(pl.col("allocated_processors") > 0).height
    assert allocated == {37517: 37517, 23928: 23911}[jobs]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 10**5), st.integers(1, 64)), min_size=2, max_size=30), st.integers(1, 60))
def test_a_small_log_can_be_modeled(pairs, jobs):
    run_times, sizes = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    made = generate_markov(fit_markov(run_times, sizes.astype(int))[0], jobs, np.random.default_rng(1))
    local = generate_locality(
        fit_locality(run_times, sizes.astype(int), components=3)[0], jobs, np.random.default_rng(1), window=4
    )
    for made_times, made_sizes, _ in (made, local):
        assert len(made_times) == len(made_sizes) == jobs
        assert set(made_sizes) <= set(sizes.astype(int))
        assert run_times.min() <= made_times.min()
        assert made_times.max() <= run_times.max()
