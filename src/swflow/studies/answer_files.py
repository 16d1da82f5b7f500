"""The files of an answer: JSON, Parquet and a page."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import polars as pl

from swflow.files.atomic import write_text
from swflow.files.tables import write_table
from swflow.phrases import Unit, unit_of
from swflow.studies.answer import Question
from swflow.studies.answer_tables import now_and_then, tables, units_in
from swflow.studies.caveats import caveats, next_steps
from swflow.studies.sentences import MOST_SENTENCES, fidelity_in_words, options_in_words, sentences, variant_in_words
from swflow.studies.whatif import BASE

DEFINITIONS: dict[str, str] = {
    "now, then": "Now is the base: the first scheduler, on the recorded machine and jobs. Then is the variant. Both "
    "are simulated.",
    "mean wait": "The mean time from the moment at which a job may start (its submission, the time of --begin, or the "
    "end of the jobs on which it depends) to its start, over all jobs.",
    "p95 wait": "95 % of the jobs wait no longer than this.",
    "mean bounded slowdown": "The mean of (wait + run time) / run time, at least 1; shorter run times count as 10 s.",
    "AWRT": "Area-weighted response time: the mean time from eligibility to the end, each job weighted by its "
    "processors times its run time.",
    "95 % interval": "The confidence interval of the change, over the log's weeks.",
    "not distinguishable": "The interval contains 0: the log is too short to tell whether the change is better or "
    "worse.",
    "shorter, longer, open": "The mean wait of a group of jobs is shorter or longer, or cannot be decided, corrected "
    "for the number of groups.",
    "utilization": "The share of the machine's processors that jobs use, from the first submission to the last end.",
}


# -- files


def write_answer(
    question: Question, path: str | os.PathLike[str], *, study: str | None = None, command: str = "", digest: str = ""
) -> None:
    """
    Write an answer: ``.parquet`` or ``.csv`` (a row per variant and measure), ``.json`` (everything), ``.html``.

    A ``.parquet`` can be loaded into a database; the names of the workload and of the study go with it. ``command`` and
    ``digest``, the digest of the log, are for the page.
    """
    table, title = question.answer.table, f"What if: {question.workload.name}"
    match Path(path).suffix:
        case ".parquet":
            about = {"kind": "whatif", "title": title, "workload": question.workload.name, "study": study}
            write_table(table, path, about)
        case ".csv":
            write_text(path, table.write_csv())
        case ".json":
            write_text(path, as_json(question) + "\n")
        case _:
            write_text(path, page(question, title, command, digest))


#: The columns of a row that depend on the measure.
_OF_MEASURE = ("value", "base", "difference", "low", "high", "weeks", "verdict", "verdict_holm")


def as_json(question: Question) -> str:
    """Return an answer as JSON: the sentences, and the values of every variant, times in seconds."""
    answer = question.answer
    variants = []
    for variant in question.variants:
        rows = question.rows(variant)
        main = rows["mean_wait_time"]
        waiting = answer.waiting.get(variant.name)
        groups = answer.groups.filter(pl.col("variant") == variant.name).drop("variant")
        variants.append({
            "variant": variant.name,
            "sentence": None if main["verdict_holm"] == BASE else variant_in_words(question, variant),
            "scheduler": {"name": variant.scheduler, "options": dict(variant.options)},
            "processors": main["processors"], "resources": units_in(main), "utilization": main["utilization"],
            "measures": {
                measure: {key: value for key, value in row.items() if key in _OF_MEASURE}
                for measure, row in rows.items()
            },
            "waiting": asdict(waiting) if waiting else None, "reasons": answer.reasons.get(variant.name),
            "groups": groups.to_dicts(),
        })  # fmt: skip
    content = {
        "workload": question.workload.name, "jobs": int(answer.table["jobs"][0]), "base": question.base.name,
        "trust": answer.trust, "fidelity": answer.fidelity, "fidelity_in_words": fidelity_in_words(question),
        "variants": variants, "skipped": [{"variant": name, "reason": reason} for name, reason in answer.skipped],
        "caveats": [*caveats(question), *question.doubts], "next": next_steps(question),
    }  # fmt: skip
    return json.dumps(content, indent=1, default=str)


def page(question: Question, title: str, command: str = "", digest: str = "") -> str:
    """Return a self-contained HTML page without scripts: answer, tables, figure, definitions."""
    import jinja2

    from swflow.version import __version__

    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(Path(__file__).with_name("answer.html").read_text(encoding="utf-8"))
    found = tables(question)
    unit, bars = _bars(question)
    if len(question.variants) > 2:
        found += [now_and_then(question, variant) for variant in question.ranked[:MOST_SENTENCES]]
    return template.render(
        title=title,
        jobs=question.answer.table["jobs"][0],
        sentences=sentences(question),
        fidelity=fidelity_in_words(question),
        caveats=[*caveats(question), *question.doubts],
        steps=next_steps(question),
        schedulers=[(name, options_in_words(options)) for name, options in question.schedulers.items()],
        bars=bars,
        unit=unit.name,
        tables=found,
        wide=("jobs", "processors", "utilization"),
        definitions=DEFINITIONS,
        command=command,
        version=__version__,
        digest=digest,
    )


class Bar(NamedTuple):
    """A bar of the figure; ``width``, ``low`` and ``span`` of the interval are in percent of the longest."""

    name: str
    kind: str
    text: str
    width: str
    low: str | None
    span: str | None


def _bars(question: Question) -> tuple[Unit, list[Bar]]:
    values: list[tuple[str, str, float, float | None, float | None]] = []
    if question.recorded is not None:
        values.append(("recorded", "recorded", question.recorded, None, None))
    for variant in (question.base, *question.ranked):
        row = question.row(variant)
        low, high = (None if end is None else row["base"] + end for end in (row["low"], row["high"]))
        values.append((row["variant"], "simulated", row["value"], low, high))
    most = max(one for *_, value, _, high in values for one in (value, high) if one is not None)
    unit, bars = unit_of(*(value for _, _, value, _, _ in values)), []
    for name, kind, value, low, high in values:
        width = f"{100 * value / most if most > 0 else 0:.2f}"
        interval: tuple[str | None, str | None] = None, None
        if low is not None and high is not None and most > 0:
            interval = f"{100 * max(low, 0) / most:.2f}", f"{100 * (high - max(low, 0)) / most:.2f}"
        bars.append(Bar(name, kind, unit.number(value), width, *interval))
    return unit, bars
