"""The command `forecast`: when jobs will start."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from swflow.cli.app import app
from swflow.cli.imports import as_log
from swflow.cli.options import MachineSize, Outputs
from swflow.cli.terminal import as_plain, check_ending, finish_progress, print_table, say, tracked
from swflow.errors import SwflowError, suggest

METHODS = ("past", "simulation", "best")


@app.command()
def forecast(
    log: Path,
    processors: int | None = None,
    time_limit: str | None = None,
    partition: str | None = None,
    user: str | None = None,
    at: str | None = None,
    queue: Path | None = None,
    evaluate: Annotated[bool, Option("--evaluate")] = False,
    weeks: float = 4,
    method: str = "best",
    scheduler: str | None = None,
    machine: MachineSize = None,
    output: Outputs = None,
    as_json: Annotated[bool, Option("--json")] = False,
    prometheus: Annotated[bool, Option("--prometheus")] = False,
    study: str | None = None,
) -> None:
    """
    Forecast when jobs will start: 90 % intervals, whose coverage is checked on past weeks, and chances.

    Without --processors, the jobs that wait at the moment are forecast; held jobs have no forecast.

    The models learn from the log up to the moment and are cached, so that further forecasts take less than 2 s.
    --evaluate walks forward through the last weeks of the log, and compares every forecast with the start that
    followed; its .parquet can be loaded (table forecasts).

    Examples: `swflow forecast site.parquet --processors 64 --time-limit 12h`,
    `swflow forecast site.parquet --queue squeue.json -o forecast.html`, `swflow forecast site.parquet --evaluate`

    Options
    -------
    log: A log (.swf, .swf.gz, .parquet, the output of sacct -P), or a table of polls (.parquet).
    processors: Forecast a job of this number of processors.
    time_limit: Its time limit: 12h, 90min, 2d or 1-12:00:00.
    partition: Its partition or queue (default: the one with the most jobs).
    user: Its user, by name or number (default: a new user).
    at: The moment: a time such as 2024-06-01T12:00, or seconds of the log (default: the log's end).
    queue: The jobs that wait and run now: squeue --json, or squeue -o '%i|%u|%a|%P|%C|%l|%V|%S|%T|%r|%q|%E'.
    evaluate: Evaluate forecasts of past weeks instead.
    weeks: The weeks that --evaluate forecasts.
    method: past: from past waits. simulation: from simulated futures. best: the better one in past weeks.
    scheduler: The site's scheduler for simulations: a name or 'name: {options}' (default: easy).
    as_json: Print JSON; forecast.schema.json describes it.
    prometheus: Print metrics in the text format of Prometheus.
    study: The study that an evaluation belongs to in the database.
    """
    endings = (".json", ".csv", ".parquet") if evaluate else (".html", ".json", ".csv", ".parquet", ".prom")
    for path in output or ():
        check_ending(path, *endings)
    if as_json and prometheus:
        raise SwflowError("--json and --prometheus: expected one of them")
    if method not in METHODS:
        raise SwflowError(f"--method: {method!r}; expected one of {', '.join(METHODS)}{suggest(method, METHODS)}")
    if scheduler is not None and method == "past":
        raise SwflowError("--scheduler: no effect with --method past; expected simulation or best")
    if evaluate:
        given = {"--processors": processors, "--time-limit": time_limit, "--partition": partition, "--user": user,
                 "--queue": queue, "--at": at, "--prometheus": prometheus or None}  # fmt: skip
        named = next((name for name, value in given.items() if value is not None), None)
        if named:
            raise SwflowError(f"{named}: no effect with --evaluate; give one of them")
        _evaluate(log, machine, weeks, output or [], as_json, study, method, scheduler)
        return
    from swflow.forecast import forecaster as fitting
    from swflow.forecast.squeue import read_squeue
    from swflow.forecast.stored import cached
    from swflow.forecast.words import as_of, coverage, sentences
    from swflow.values import WEEK

    limit = _limit_of_job(processors, time_limit, partition, user)
    queued = None if queue is None else read_squeue(queue)

    def make() -> fitting.Forecaster:
        with as_log(log, machine) as source:
            moment = _moment(source, at)
            cases, state = fitting.read_cases(source, machine, moment)
            state["name"] = str(log)
            _check(fitting.Forecaster.unfitted(**state), processors, limit, partition, queued, str(queue))
            span = state["now"] - fitting.CALIBRATED * WEEK, state["now"]
            fitting.require_weeks(cases, state["now"], state["name"])
            simulator = _simulator(source, machine, method, scheduler, cases, span)
            return fitting.fit(cases, progress=partial(tracked, "fit"), method=method, simulator=simulator, **state)

    found = cached(log, make, machine, at, method, scheduler)
    if queued is not None:
        for note in found.set_queue(queued, str(queue)):
            say(note)
    if processors is not None and limit is not None:
        request = found.describe(processors, limit, partition, user)
        note = found.describe_user(user)
        forecasts = found.of_requests([request], user or "")
        lines = sentences(found, forecasts[0])
        if note:
            say(note)
    else:
        forecasts = found.of_waiting()
        lines = [coverage(found)]
    if moment := as_of(found):
        lines.append(f"As of {moment}.")
    finish_progress()
    _print(found, forecasts, lines, as_json, prometheus)
    for path in output or ():
        _write_forecasts(found, forecasts, path)


def _limit_of_job(
    processors: int | None, time_limit: str | None, partition: str | None, user: str | None
) -> float | None:
    """Return the time limit (s) of the job that options describe, None if there is none."""
    from swflow.forecast.words import parse_limit

    if (processors is None) != (time_limit is None):
        raise SwflowError("--processors and --time-limit describe a job together; expected both or neither")
    if processors is None and (partition is not None or user is not None):
        name = "--user" if partition is None else "--partition"
        raise SwflowError(f"{name}: describes a job; expected it with --processors and --time-limit")
    return None if time_limit is None else parse_limit(time_limit)


def _check(
    known: Any, processors: int | None, limit: float | None, partition: str | None, queued: Any, queue: str
) -> None:
    """Check a job and a queue against a log before models are fitted to it."""
    from swflow.forecast.queue_state import queue_state

    if processors is not None and limit is not None:
        known.describe(processors, limit, partition, None)
    if queued is not None:
        queue_state(known, queued, queue)


def _print(found: Any, forecasts: Any, lines: list[str], as_json: bool, prometheus: bool) -> None:
    """Print forecasts as JSON, as metrics, or as text."""
    from swflow.forecast.documents import json_text, prometheus_text

    if as_json:
        typer.echo(json_text(found, forecasts))
    elif prometheus:
        typer.echo(prometheus_text(found, forecasts), nl=False)
    else:
        if forecasts and forecasts[0].job is None:
            pass  # the sentences have it
        else:
            _print_forecasts(found, forecasts)
        for line in lines:
            typer.echo(line)


def _write_forecasts(found: Any, forecasts: Any, path: Path) -> None:
    """Write forecasts to a file, by its ending."""
    from swflow.files.atomic import write_text
    from swflow.forecast.documents import json_text, prometheus_text
    from swflow.forecast.words import table

    if path.suffix == ".html":
        from swflow.forecast.page import write_page

        write_page(found, path)
    elif path.suffix in (".json", ".prom"):
        write_text(path, json_text(found, forecasts) if path.suffix == ".json" else prometheus_text(found, forecasts))
    else:
        _write(table(found, forecasts), path)
    say(f"{path}: written")


def _print_forecasts(found: Any, forecasts: Any) -> None:
    """Print the forecasts of waiting jobs; of each job array, those of its first and last task."""
    from swflow.forecast.chances import shown
    from swflow.phrases import span

    if not forecasts:
        typer.echo("No job waits at this moment.")
        return
    rows = []
    listed, left_out = _without_middle_tasks(forecasts)
    for one in listed:
        start = "" if math.isnan(one.median) else span(one.median)
        within = "" if math.isnan(one.median) else f"{span(one.low)} to {span(one.high)}"
        chances = ", ".join(
            f"{label.removeprefix('within ')} {text}" for label, text in shown(one.chances, found.times)
        )
        rows.append((str(one.job), f"{one.processors:,}", span(one.limit), one.partition, one.user, span(one.waited),
                     start, within, chances, one.condition))  # fmt: skip
    columns = ["job", "processors", "limit", "partition", "user", "waited", "starts in", "90 % within",
               "chance of a start", "condition"]  # fmt: skip
    kept = [place for place in range(len(columns)) if place < 8 or any(row[place] for row in rows)]
    print_table([columns[place] for place in kept], [tuple(row[place] for place in kept) for row in rows])
    if left_out:
        typer.echo(f"Array tasks between the first and the last one of each array: {left_out:,} (-o FILE has all).")


def _without_middle_tasks(forecasts: Any) -> tuple[list[Any], int]:
    """Return the forecasts without those of tasks between the first and last one of an array, and their number."""
    arrays = [str(one.job).partition("_")[0] if "_" in str(one.job) else None for one in forecasts]
    first = {array: place for place, array in reversed(list(enumerate(arrays)))}
    last = {array: place for place, array in enumerate(arrays)}
    listed = [
        one for place, (one, array) in enumerate(zip(forecasts, arrays, strict=True))
        if array is None or place in (first[array], last[array])
    ]  # fmt: skip
    return listed, len(forecasts) - len(listed)


def _moment(source: Path, at: str | None) -> float | None:
    """Return the seconds of a moment in a log; None for its end."""
    if at is None:
        return None
    try:
        return float(at)
    except ValueError:
        pass
    from swflow.forecast.polls import is_polls
    from swflow.jobs.header import Header
    from swflow.values import day_or_moment

    moment = day_or_moment(at, "--at")
    if is_polls(source):
        return Header({"UnixStartTime": ["0"]}).seconds_since_start(moment)
    from swflow.workload.clean import open_workload

    return open_workload(source).header.seconds_since_start(moment)


def _simulator(
    source: Path, machine: int | None, method: str, scheduler: str | None, cases: Any, span: tuple[float, float]
) -> Any:
    """Return the simulator of a log, or None if it is not needed, or if ``best`` has to do without it."""
    from swflow.forecast.polls import is_polls

    if method == "past" or (method == "best" and scheduler is None and is_polls(source)):
        return None
    from swflow.scheduling.named import read_scheduler
    from swflow.scheduling.scheduler import Scheduler

    named, options = read_scheduler(scheduler or "easy")
    chosen = Scheduler.of(named, options)
    try:
        if is_polls(source):
            raise SwflowError(f"{source.name}: a table of polls has no state to simulate from; expected a log")
        from swflow.forecast.forecaster import open_recorded
        from swflow.forecast.simulation import simulator_of

        return simulator_of(open_recorded(source, machine), chosen, cases, *span)
    except SwflowError as error:
        if method == "simulation" or scheduler is not None:
            raise
        say(f"No simulation: {error}")
        return None


def _evaluate(
    log: Path,
    machine: int | None,
    weeks: float,
    output: list[Path],
    as_json: bool,
    study: str | None,
    method: str,
    scheduler: str | None,
) -> None:
    """Evaluate forecasts of the last weeks of a log, and print and write their scores."""
    from swflow.files.tables import write_table
    from swflow.forecast.evaluation import WARM_UP, chance_scores, last_weeks, summary, walk_forward
    from swflow.forecast.forecaster import read_cases
    from swflow.values import WEEK

    if not 0 < weeks <= 1000:
        raise SwflowError(f"--weeks: {weeks:g}; expected a number above 0")
    with as_log(log, machine) as source:
        cases, state = read_cases(source, machine)
        name = state["name"]
        begin, end = last_weeks(cases, weeks, name)
        simulator = _simulator(source, machine, method, scheduler, cases, (begin - WARM_UP * WEEK, end))
    found = walk_forward(cases, begin, end, progress=partial(tracked, "evaluate"), method=method, simulator=simulator)
    scores, chances = summary(found), chance_scores({name: one for name, one in found.items() if name != "classes"})
    finish_progress()
    if simulator is not None:
        every = ((cases.asked >= begin) & (cases.asked < end)).sum()
        say(f"{found['classes'].cases.asked.size:,} of {every:,} forecasts are compared, those that are simulated.")
    if as_json:
        listed = [as_plain(row) for row in chances.iter_rows(named=True)]
        typer.echo(_json(scores, {"log": name, "weeks": weeks, "chances": listed}))
    else:
        _print_scores(scores, f"Forecasts of the last {weeks:g} weeks of {name}")
        _print_chances(chances)
    for path in output:
        if path.suffix == ".parquet":
            write_table(scores, path, {"kind": "forecast", "study": study, "workload": name})
        else:
            _write(scores, path)
        say(f"{path}: written")


def _print_scores(scores: Any, title: str) -> None:
    """Print the scores of forecasts, in all and by groups."""
    columns = ["method", "forecasts", "coverage", "95 % interval", "width", "pinball", "score", "squared error"]
    for dimension in ("all", "partition", "size", "waited"):
        part = scores.filter(scores["dimension"] == dimension)
        if part["group"].n_unique() < 2 and dimension != "all":
            continue
        typer.echo(f"By {dimension}" if dimension != "all" else title)
        print_table([*([dimension] if dimension != "all" else []), *columns], [
            (*([row["group"]] if dimension != "all" else []), row["method"], f"{row['jobs']:,}", *_shown(row))
            for row in part.iter_rows(named=True)
        ])  # fmt: skip
    typer.echo("Width, pinball loss and score are in powers of ten: with a width of 1, the upper end is ten times the")
    typer.echo("lower one. Score: width plus 20 times the distance of a miss. Smaller is better.")


def _print_chances(chances: Any) -> None:
    """Print how the chances of a start agree with what followed."""
    from swflow.phrases import span

    rows = []
    for (method, within), some in chances.group_by("method", "within", maintain_order=True):
        count = some["jobs"].sum()
        chance, started, brier = ((some[name] * some["jobs"]).sum() / count for name in ("chance", "started", "brier"))
        error = ((some["chance"] - some["started"]).abs() * some["jobs"]).sum() / count
        shares = (f"{100 * value:.1f} %" for value in (chance, started, error))
        rows.append((f"within {span(within)}", method, f"{count:,}", *shares, f"{brier:.3f}"))
    if rows:
        typer.echo("Chances of a start")
        print_table(
            ["start", "method", "forecasts", "mean chance", "started", "calibration error", "Brier score"], rows
        )


def _shown(row: Mapping[str, Any]) -> tuple[str, ...]:
    if row["coverage"] is None:  # no outcome is known
        return ("",) * 6
    low, high = row["coverage_low"], row["coverage_high"]
    interval = "" if low is None else f"{100 * low:.1f} to {100 * high:.1f} %"
    rest = (f"{row[name]:.3f}" for name in ("width", "pinball", "score", "squared_error"))
    return f"{100 * row['coverage']:.1f} %", interval, *rest


def _json(rows: Any, about: Mapping[str, Any]) -> str:
    import json

    listed = [as_plain(row) for row in rows.iter_rows(named=True)]
    return json.dumps({**as_plain(about), "rows": listed}, indent=1)


def _write(rows: Any, path: Path) -> None:
    """Write a table of scores as JSON, or a table as CSV or Parquet."""
    from swflow.files.atomic import atomic_path, write_text

    if path.suffix == ".parquet":
        with atomic_path(path) as temporary:
            rows.write_parquet(temporary)
    else:
        write_text(path, _json(rows, {}) if path.suffix == ".json" else rows.write_csv())
