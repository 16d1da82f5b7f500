"""Laws of steps, files and studies: what cleaning, selecting, scaling, exporting and asking must preserve."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from laws import draw_log, draw_options, law, part, run, starts, with_jobs
from swflow.files.tables import read_workload, write_workload
from swflow.jobs.table import JOB_COLUMNS, SWF_FIELDS, Workload
from swflow.log.swf import parse_swf, read_swf, run_as_swf, write_swf
from swflow.studies.variants import variants
from swflow.studies.whatif import ask
from swflow.workload.clean import clean, clean_log
from swflow.workload.export import export
from swflow.workload.steps.intensify import intensify
from swflow.workload.steps.memory import memory
from swflow.workload.steps.scale import scale
from swflow.workload.steps.select import select


def draw_lines(rng: random.Random) -> pl.DataFrame:
    """Draw the fields of a log, with unknown values and jobs that cleaning removes."""
    jobs = draw_log(rng).jobs
    table = jobs.select(pl.col(name).fill_null(-1).cast(kind) for name, kind in SWF_FIELDS.items())
    unknown = pl.int_range(pl.len()) % rng.randint(2, 9) == 0
    names = rng.sample(["allocated_processors", "requested_time", "wait_time", "run_time", "user_id"], 3)
    return table.with_columns(
        pl.when(unknown).then(pl.lit(-1).cast(SWF_FIELDS[name])).otherwise(name).alias(name) for name in names
    )


def cleaned(fields: pl.DataFrame, workload: Workload, **options: Any) -> Workload | None:
    """Return a cleaned log, or None if no job remains."""
    from swflow.errors import SwflowError

    try:
        return clean(fields, workload.machine, name="drawn", **options)
    except SwflowError as error:
        assert "jobs were removed" in str(error)
        return None


@law()
def clean_is_idempotent(rng: random.Random) -> bool:
    """clean(export(clean(log))) = clean(log)."""
    first = cleaned(draw_lines(rng), draw_log(rng))
    if first is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        write_workload(first, Path(folder) / "drawn.parquet")
        export(Path(folder) / "drawn.parquet", Path(folder) / "drawn.swf")
        second = clean_log(Path(folder) / "drawn.swf", name="drawn")
    assert second.jobs.equals(first.jobs)
    assert second.machine == first.machine
    return True


@law()
def clean_ignores_the_order_of_lines(rng: random.Random) -> None:
    """clean(permuted lines) = clean(lines)."""
    lines, log = draw_lines(rng), draw_log(rng)
    first = cleaned(lines, log)
    second = cleaned(lines.sample(fraction=1.0, shuffle=True, seed=rng.randint(0, 999)), log)
    assert (first is None) == (second is None)
    assert first is None or second is None or first.jobs.equals(second.jobs)


@law()
def clean_counts_every_line(rng: random.Random) -> bool:
    """Lines read = kept + sum of the removed jobs."""
    lines = draw_lines(rng)
    first = cleaned(lines, draw_log(rng))
    if first is None:
        return False
    entry = first.history[0]
    assert entry["read"] == lines.height == first.jobs.height + sum(entry["removed"].values())
    return True


@law()
def swf_round_trip(rng: random.Random) -> None:
    """read(write(lines)) = lines, gzipped or not."""
    lines = draw_lines(rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / rng.choice(["drawn.swf", "drawn.swf.gz"])
        write_swf(path, lines, {"MaxProcs": ["8"]})
        found = read_swf(path)
    assert found.fields.equals(lines) and found.header["MaxProcs"] == ["8"]


@law()
def swf_of_parts(rng: random.Random) -> bool:
    """parse(a + b) = parse(a) + parse(b)."""
    lines = draw_lines(rng)
    if lines.height < 2:
        return False
    cut = rng.randint(1, lines.height - 1)
    with tempfile.TemporaryDirectory() as folder:
        texts = []
        for table in (lines[:cut], lines[cut:]):
            write_swf(Path(folder) / "drawn.swf", table)
            texts.append((Path(folder) / "drawn.swf").read_bytes())
    parts = [parse_swf(text, "part").fields for text in texts]
    assert parse_swf(b"".join(texts), "whole").fields.equals(pl.concat(parts))
    return True


@law()
def workload_round_trip(rng: random.Random) -> None:
    """read(write(workload)) = workload, with its machine and history."""
    log = select(draw_log(rng), where="job_id > 0")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.parquet"
        write_workload(log, path)
        found = read_workload(path)
    assert found.jobs.equals(log.jobs) and found.machine == log.machine
    assert list(found.history) == list(log.history)


@law()
def exported_run(rng: random.Random) -> None:
    """S(import(export(S)); order log) = S: the waits in an exported run give the same start times."""
    log = draw_log(rng)
    found = run(log, draw_options(rng))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.swf"
        write_swf(path, run_as_swf(log.jobs, found), {"MaxProcs": [str(log.machine.processors)]})
        again = clean_log(path, name="drawn")
    replayed = run(again, {"order": "log"})
    names = ["job_id", "submit_time", "start_time", "end_time", "processors", "run_time"]
    assert replayed.select(names).equals(found.select(names))


@law()
def selections_commute(rng: random.Random) -> None:
    """select(a, select(b, log)) = select(b, select(a, log)) = select(a and b, log)."""
    log = draw_log(rng)
    a, b = f"processors <= {rng.randint(1, 12)}", f"run_time > {rng.randint(0, 30)}"
    if log.jobs.filter((pl.col("processors") <= int(a.split()[-1])) & (pl.col("run_time") > int(b.split()[-1]))).height:
        both = select(log, where=f"{a} and {b}").jobs
        assert select(select(log, where=a), where=b).jobs.equals(both)
        assert select(select(log, where=b), where=a).jobs.equals(both)


@law()
def selection_is_a_partition(rng: random.Random) -> None:
    """n(select(a)) + n(select(not a)) = n(log), select(true) = log, and select(a, select(a)) = select(a)."""
    log = draw_log(rng)
    condition = rng.choice(
        [f"processors <= {rng.randint(1, 12)}", f"user_id == {rng.randint(1, 4)}", "job_id % 2 == 0"]
    )
    assert select(log, where="job_id >= 0").jobs.equals(log.jobs)
    parts = []
    for where in (condition, f"not ({condition})"):
        kept = log.jobs.filter(_kept(log, where))
        if kept.height:
            chosen = select(log, where=where)
            assert select(chosen, where=where).jobs.equals(chosen.jobs)
            parts.append(chosen.jobs)
    assert pl.concat(parts).sort("job_id").equals(log.jobs.sort("job_id"))


def _kept(log: Workload, where: str) -> pl.Expr:
    from swflow.jobs.conditions import condition

    return condition(where, log.jobs.schema, "law")


@law()
def selected_and_simulated(rng: random.Random) -> None:
    """simulate(select(partition p, log)) = simulate(log; clusters by partition) at the jobs of p."""
    log, options = draw_log(rng), draw_options(rng)
    size = log.machine.processors
    clusters = [{"processors": size, "partition": number} for number in (1, 2)]
    whole = replace(log, machine=type(log.machine).of(2 * size))
    found = starts(whole, options | {"clusters": clusters, "dispatch": "partition"})
    for number in (1, 2):
        chosen = part(log, pl.col("partition_id") == number)
        if chosen.jobs.height:
            alone = starts(select(log, where=f"partition_id == {number}"), options)
            assert alone == {job: found[job] for job in chosen.jobs["job_id"]}


@law()
def factor_one(rng: random.Random) -> None:
    """scale(log, its own size) = intensify(log, 1) = log."""
    log = draw_log(rng)
    generator = np.random.default_rng(rng.randint(0, 999))
    variant = rng.choice(["integer", "precise-size", "precise"])
    scaled = scale(log, log.machine.processors, d=rng.choice([0, 50, 100]), variant=variant, generator=generator)
    names = list(JOB_COLUMNS)
    assert scaled.jobs.select(names).equals(log.jobs.select(names)) and scaled.machine == log.machine
    same = intensify(log, 1.0, by=rng.choice(["arrivals", "run-times"]))
    assert same.jobs.drop("wait_time").equals(log.jobs.drop("wait_time"))


@law()
def factors_multiply(rng: random.Random) -> None:
    """intensify(a, intensify(b, log)) = intensify(a b, log) for powers of two."""
    log, by = draw_log(rng), rng.choice(["arrivals", "run-times"])
    a, b = rng.choice([0.5, 2.0, 4.0]), rng.choice([0.25, 2.0])
    assert intensify(intensify(log, b, by=by), a, by=by).jobs.equals(intensify(log, a * b, by=by).jobs)


@law()
def arrivals_and_run_times(rng: random.Random) -> None:
    """S(arrivals x f) = S(run times x f) / f from the first submission: only the ratio of both matters."""
    log, options, factor = draw_log(rng, status=1), draw_options(rng), rng.choice([2.0, 4.0])
    log = with_jobs(log, pl.col("run_time") * 8, pl.col("estimate") * 8, pl.col("requested_time") * 8)
    first = float(log.jobs["submit_time"].min())  # type: ignore[arg-type]
    dense, long = intensify(log, factor), intensify(log, factor, by="run-times")
    expected = {job: (start - first) / factor + first for job, start in starts(long, options).items()}
    assert starts(dense, options) == expected


@law()
def demands_of_parts(rng: random.Random) -> None:
    """memory(select(log)) = select(memory(log)): a job's demand depends on its id and the seed only."""
    log, seed = draw_log(rng), rng.randint(1, 9)
    kept = pl.col("job_id") % rng.randint(1, 3) == 0
    whole = memory(log, seed=seed, step="memory-high").jobs.filter(kept)
    if whole.height:
        assert memory(part(log, kept), seed=seed, step="memory-high").jobs.equals(whole)


@law(0.25)
def whatif_without_a_change(rng: random.Random) -> None:
    """whatif(log, base, base under another name) = no difference."""
    log, options = draw_log(rng), draw_options(rng)
    answer = ask(log, variants({"base": options, "same": options}))
    assert answer.table["value"].equals(answer.table["base"].alias("value"))
    assert set(answer.table["difference"]) == {0.0}
    assert set(answer.table.filter(pl.col("variant") == "same")["verdict"]) == {"equal"}
    assert answer.left_out == 0


@law(0.25)
def whatif_is_a_simulation(rng: random.Random) -> None:
    """whatif(log; scheduler) = metrics(simulate(log, scheduler)), with the changes applied to the log beforehand."""
    from swflow.analysis.metrics import metrics

    log = draw_log(rng)
    base, other = draw_options(rng), draw_options(rng)
    answer = ask(log, variants({"base": base, "other": other}, arrivals=(2.0,)))
    for name, options in (("base", base), ("other", other), ("base, arrivals × 2", base)):
        workload = intensify(log, 2.0) if "arrivals" in name else log
        figures = metrics(run(workload, options), log.machine.processors)
        for measure, value in answer.table.filter(variant=name).select("measure", "value").rows():
            assert abs(value - figures[measure]) <= 1e-9 * max(1, abs(value)), (name, measure)


@law(0.02)
def order_of_loading(rng: random.Random) -> None:
    """load(a, b) = load(b, a) = load(a) then load(b): the tables do not depend on the order of the runs."""
    import duckdb

    from swflow.database.load import load
    from swflow.scheduling.scheduler import Scheduler
    from swflow.studies.runs import describe_run, write_run
    from swflow.studies.runs import run as simulated

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = []
        log = draw_log(rng)
        write_workload(log, folder / "drawn.parquet")
        for number in (1, 2):
            files.append(folder / f"{number}.parquet")
            scheduler = Scheduler.of(f"s{number}", draw_options(rng))
            about = describe_run(folder / "drawn.parquet", log, f"s{number}", scheduler)
            write_run(simulated(log, scheduler), files[-1], about)
        contents = []
        for place, order in enumerate([files, files[::-1]]):
            database = folder / f"{place}.duckdb"
            load(order, database)
            with duckdb.connect(str(database), read_only=True) as connection:
                tables = ["outcomes", "metrics", "heatmaps", "correlations", "bubbles", "comparisons", "bounds"]
                contents.append(
                    {
                        table: sorted(map(str, connection.execute(f"SELECT * FROM {table}").fetchall()))
                        for table in tables
                    }
                )
        assert contents[0] == contents[1]
