"""Sentences that answer a what-if: each variant, its change, and the fidelity of the model."""

from collections.abc import Mapping
from typing import Any

from swflow.analysis import verdicts
from swflow.analysis.fidelity import Trust, weaknesses_of
from swflow.analysis.intervals import FEWEST_WEEKS
from swflow.analysis.verdicts import DIRECTIONS, SIZES
from swflow.log.site import SITE
from swflow.phrases import Percent, listed, share_of, unit_of
from swflow.scheduling.fitting_jobs import partitions_named
from swflow.scheduling.option_kinds import Unchecked
from swflow.scheduling.scheduler import LOG
from swflow.studies.answer import TITLES, Question
from swflow.studies.caveats import is_supported, limits_apart
from swflow.studies.hardware import changed_nodes
from swflow.studies.variants import Change, Variant
from swflow.studies.whatif import Row
from swflow.studies.why import limits_in_words

#: Below this share of jobs that wait at all, an answer states how rare waits are.
RARE = 0.1

#: Variants with a sentence each; of more, the best ones have one.
MOST_SENTENCES = 4


# -- sentences


def sentences(question: Question) -> list[str]:
    """Return the answer in sentences: one on each variant, the best ones if there are many."""
    ranked = question.ranked
    lines = [variant_in_words(question, variant) for variant in ranked[:MOST_SENTENCES]]
    if len(ranked) > MOST_SENTENCES:
        lines[0] = f"Of {len(ranked)} variants, the {MOST_SENTENCES} with the shortest mean waits: {lines[0]}"
    if question.answer.reasons and (limits := limits_in_words(question.answer.reasons[question.base.name])):
        lines.append(limits)
    lines += [f"{name} cannot be simulated: {reason}." for name, reason in question.answer.skipped]
    if question.answer.left_out:
        total = question.workload.jobs.height
        lines.append(
            f"{question.answer.left_out:,} of {total:,} jobs do not fit into the smallest machine, cluster or limit. "
            "They are left out now and then, so that these waits are those of a lighter load."
        )
    return lines


def variant_in_words(question: Question, variant: Variant) -> str:
    """Return the change of the mean wait by a variant, other decided measures, and what the variant leaves out."""
    rows = question.rows(variant)
    main = rows["mean_wait_time"]
    subject = _subject(question, variant)
    doubt = _DOUBTS.get(question.answer.trust, "")
    said = [f"{subject}, {doubt}{_change_in_words(main)}"]
    for decided, word in DIRECTIONS.items():
        others = [
            f"the {TITLES[measure]} is {found.size} {word if 'slowdown' not in measure else SIZES[decided]}"
            for measure, row in rows.items()
            if measure != "mean_wait_time"
            and row["verdict_holm"] == decided != main["verdict_holm"]
            and (found := percent(row))
        ]
        said += [f"{_capital(listed(others))}."] if others else []
    more = (achieved_in_words(question, variant), _rare(question, variant, main), _left_alone(question, variant))
    said += [text for text in more if text]
    apart = limits_apart(variant.options)
    if apart and variant.options.get("limits") != question.base.options.get("limits"):
        said.append(f"{_capital(apart)}; together, they would bind more.")
    by_base = question.site.dropped_by(question.base.options)
    dropped = [one for one in question.site.dropped_by(variant.options) if one not in by_base]
    if dropped and variant.scheduler != question.base.scheduler:
        text = f"This scheduler does not simulate {listed(dropped)} of the site"
        other = f"{SITE}-{variant.scheduler}"
        said.append(f"{text}; {other} does." if is_supported(question.site, other) else f"{text}.")
    return " ".join(said)


#: What limits the trust in each sentence.
_DOUBTS = {
    Trust.DIRECTIONS: "in a simulation that does not reproduce this site well, ",
    Trust.PERCENTAGES: "in a simulation that reproduces this site roughly, ",
}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _subject(question: Question, variant: Variant) -> str:
    """Return the changes of a variant as the beginning of a sentence."""
    parts = [_amount_in_words(what, change) for what, change in variant.changes]
    if variant.estimates is not None:
        exact = variant.estimates == 1
        parts.append("perfect estimates" if exact else f"estimates of {variant.estimates:g} times the run times")
    parts += [f"{variant.arrivals:g} times the arrival rate"] if variant.arrivals != 1 else []
    parts += [f"{variant.run_times:g} times the run times"] if variant.run_times != 1 else []
    with_them = f"with {listed(parts)}" if parts else ""
    if variant.scheduler == question.base.scheduler:
        return _capital(with_them)
    return f"Under {variant.scheduler}" + (f" {with_them}" if with_them else "")


def _amount_in_words(what: str, change: Change) -> str:
    """
    Return a change of the machine as text.

    Examples
    --------
    >>> from swflow.studies.variants import read_nodes, read_processors, read_resource
    >>> _amount_in_words("nodes", *read_nodes("gpu=+1"))
    '1 more node in partition gpu'
    >>> _amount_in_words("processors", *read_processors("-25%"))
    '25 % fewer processors'
    >>> _amount_in_words("resource", *read_resource("gpus=512"))
    '512 gpus'
    """
    amount, name = change.amount, change.resource or what
    where = f" in partition {change.partition}" if change.partition else ""
    if amount.kind == "number":
        return f"{amount.value:,.0f} {name}{where}"
    name = "node" if name == "nodes" and amount.kind == "difference" and abs(amount.value) == 1 else name
    size = f"{abs(100 * amount.value):g} %" if amount.kind == "share" else f"{abs(amount.value):,.0f}"
    return f"{size} {'more' if amount.value >= 0 else 'fewer'} {name}{where}"


#: The largest difference between a requested and an achieved change that is not stated.
_NEGLIGIBLE = 0.005


def achieved_in_words(question: Question, variant: Variant) -> str:
    """Return which nodes a change adds or removes, and the achieved change if it is not the one that was requested."""
    said = []
    groups = changed_nodes(variant, question.workload)
    for group, count in groups:
        units = "".join(f" and {size:,} {name}" for name, size in (group.get("resources") or {}).items())
        served = partitions_named(group)
        where = f" for {'+'.join(served)}" * bool(served)
        size = f"{abs(count):,} node{'s' * (abs(count) > 1)} of {group['processors']:,} processors{units}{where}"
        said.append(f"{size} {'are' if abs(count) > 1 else 'is'} {'added' if count > 0 else 'removed'}")
    text = f"{_capital('; '.join(said))}." if said else ""
    shares = [change for what, change in variant.changes if change.amount.kind == "share" and not change.resource]
    if len(shares) != 1 or shares[0].partition:
        if shares and variant.options.get("nodes") and not groups:
            text = "No node is added or removed, because the requested share is less than half a node."
        return text
    before, after = (question.rows(one)["mean_wait_time"]["processors"] for one in (question.base, variant))
    achieved, asked = after / before - 1, shares[0].amount.value
    if abs(achieved - asked) <= _NEGLIGIBLE:
        return text
    change = f"{100 * achieved:+.2g} % instead of {100 * asked:+g} %"
    return f"{text} In whole nodes, the processors change by {change}.".strip()


def percent(row: Row) -> Percent | None:
    """Return the change of a row in percent of its base; None if that is 0."""
    return Percent.of(row["base"], row["difference"], row["low"], row["high"])


def _change_in_words(row: Row) -> str:
    """Return the change of the mean wait as the rest of a sentence."""
    unit = unit_of(row["base"], row["value"])
    values = f"{unit.number(row['value'])} instead of {unit.of(row['base'])}"
    found = percent(row)
    match row["verdict_holm"]:
        case verdicts.BETTER | verdicts.WORSE as decided:
            return f"the mean wait is {f'{found.size} {DIRECTIONS[decided]}: ' if found else ''}{values}."
        case verdicts.NOT_DISTINGUISHABLE:
            change = f", {found.signed}" if found else ""
            after = " after the correction for the number of variants" * (row["verdict"] != row["verdict_holm"])
            return f"the mean wait is {values}{change}: not distinguishable{after}."
        case verdicts.DEPENDENT_WEEKS:
            change = f", {found.signed}" if found else ""
            return f"the mean wait is {values}{change}: cannot tell, because the weeks depend on each other."
        case verdicts.SATURATED:
            change = f", {found.signed}" if found else ""
            return f"the mean wait is {values}{change}: cannot tell, because the queue grows over the whole log."
        case verdicts.EQUAL:
            return f"the mean wait stays the same, {unit.of(row['base'])}."
    change = f" ({found.change})" if found else ""
    weeks = f"a verdict needs {FEWEST_WEEKS} weeks, and the log has {row['weeks']}"
    return f"the mean wait is {values}{change}; {weeks}."


def _rare(question: Question, variant: Variant, row: Row) -> str:
    """Return how many jobs wait at all, and in how many weeks their mean wait changes, if that is worth knowing."""
    found = question.answer.waiting.get(variant.name)
    if found is None or row["verdict_holm"] == verdicts.EQUAL:
        return ""
    if found.base_share >= RARE and row["verdict_holm"] not in (verdicts.NOT_DISTINGUISHABLE, verdicts.DEPENDENT_WEEKS):
        return ""
    rare = "Waits are rare: " * (found.base_share < RARE)
    return (
        f"{rare}{share_of(found.base_share)} of the jobs wait at all now, {share_of(found.share)} then; the mean wait "
        f"is shorter in {found.shorter or 'none'} and longer in {found.longer or 'none'} of {found.weeks} weeks."
    )


def _left_alone(question: Question, variant: Variant) -> str:
    """Return the resources that a change of the processors does not change, and how to change them."""
    change = next((one for one in variant.processors if one.amount.kind != "share"), None)
    if change is None:
        return ""
    names = question.site.resources
    clusters = variant.options.get("clusters") or ()
    if change.partition and clusters:
        own = [one for one in clusters if change.partition in partitions_named(one)]
        names = [name for name in names if any(name in (one.get("resources") or {}) for one in own)]
    names = [name for name in names if name not in question.site.dropped_by(variant.options) and name != "licenses"]
    if not names:
        return ""
    example = f"{change.partition}=+2" if change.partition else "+2"
    return f"The {listed(names)} of the machine stay as they are; --nodes {example} adds whole nodes."


def fidelity_in_words(question: Question) -> str:
    """Return how well the base reproduces the record, and which results can therefore be trusted."""
    name, found = question.base.name, question.answer.fidelity
    if question.answer.trust is Trust.RECORD:
        return "The base is the recorded schedule: each change compares a simulation with the record."
    if found is None or question.answer.trust is Trust.UNKNOWN:
        return f"The log records no waits, so it is unknown how well {name} reproduces the site."
    simulated, recorded = found["simulated_mean_wait_time"] or 0.0, found["recorded_mean_wait_time"] or 0.0
    unit = unit_of(simulated, recorded)
    weaknesses = weaknesses_of(found, question.answer.parts)
    weak = f" It differs most in {listed(weaknesses)}." if weaknesses else ""
    start_delay = found.get("start_delay") or 0.0
    delay = f"; waits up to the start delay of {start_delay:.0f} s count as equal" * (start_delay > 1)
    every = " with the jobs that are left out above" * bool(question.answer.left_out)
    return (
        f"Under {name}{every}, the simulated mean wait is {unit.of(simulated)}; the recorded one is "
        f"{unit.of(recorded)}. "
        f"{_TRUST[question.answer.trust]}{weak} {100 * (found['started_alike'] or 0.0):.0f} % of the jobs start within "
        "a minute of the recorded start, and the Kolmogorov-Smirnov distance between simulated and recorded waits is "
        f"{found['wait_distance'] or 0.0:.2f} (0: identical{delay})."
    )


_TRUST = {
    Trust.MINUTES: "The simulation reproduces this site, so its minutes can be trusted.",
    Trust.PERCENTAGES: "The simulation reproduces this site roughly, so trust percentages more than minutes.",
    Trust.DIRECTIONS: "The simulation does not reproduce this site well, so trust only whether a change is better or "
    "worse.",
}


# -- schedulers as text

#: The options that the text of a scheduler always has.
_ALWAYS: Unchecked = {"order": "fcfs", "backfill": "none"}


def schedulers_in_words(question: Question) -> list[str]:
    """
    Return a line per scheduler with its options, such as ``easy: order fcfs, backfill easy``.

    A scheduler that has most options of the base is described by those in which it differs.
    """
    base = question.base.options
    found = []
    for name, options in question.schedulers.items():
        different = {key: value for key, value in options.items() if base.get(key) != value}
        dropped = [key for key in base if key not in options]
        if options is base or len(different) + len(dropped) > len(options) / 2:
            found.append(f"{name}: {options_in_words(options)}")
            continue
        text = options_in_words(_changed_in(base, different), {})
        # A part of an option that the scheduler lacks has no text.
        said = [text] if text else [f"without some {key.replace('_', ' ')}" for key in different]
        said += [f"without {', '.join(key.replace('_', ' ') for key in dropped)}"] if dropped else []
        found.append(f"{name}: as {question.base.name}, but {', '.join(said)}")
    return found


def _changed_in(base: Unchecked, options: Unchecked) -> dict[str, Any]:
    """Return the entries of a mapping that differ from those of a base, at every depth."""
    found: dict[str, Any] = {}
    for key, value in options.items():
        before = base.get(key)
        if before != value:
            is_nested = isinstance(before, Mapping) and isinstance(value, Mapping)
            found[key] = _changed_in(before or {}, value) if is_nested else value
    return found


#: Accounts, partitions or QOS, and groups of nodes, that the text of options names. More, and users, are counted.
_MOST_NAMED, _MOST_NODES = 3, 6


def options_in_words(options: Unchecked, defaults: Unchecked = _ALWAYS) -> str:
    """
    Return a scheduler's options as text; order and backfilling are always named. Accounts and their users are counted.

    Examples
    --------
    >>> options_in_words({"order": "sjf"})
    'order sjf, backfill none'
    >>> options_in_words({"dispatch": "partition", "clusters": [{"partition": "cpu", "processors": 64}]})
    'order fcfs, backfill none, clusters cpu 64 processors'
    >>> nodes = [{"count": 2, "processors": 4, "partition": ["a", "b"], "resources": {"gpus": 2}, "features": ["ib"]}]
    >>> options_in_words({"backfill": "slurm", "nodes": nodes})
    'order fcfs, backfill slurm, 2 nodes of 4 processors and 2 gpus with ib for a+b'
    >>> options_in_words({"limits": {"partition": {"cpu": {"processors": 64}}, "user": {"jobs": 2}}})
    'order fcfs, backfill none, at most 64 processors in partition cpu, at most 2 jobs of each user'
    >>> options_in_words({"priority": {"whole_points": True}, "preemption": {"qos": {"high": ["low", "free"]}}})
    'order fcfs, backfill none, priority whole_points on, preemption qos high low+free'
    """
    if options.get("order") == LOG:
        return "the recorded schedule"
    shown = dict(defaults) | dict(options)
    accounts = shown.pop("accounts", None) or {}
    clusters, nodes = shown.pop("clusters", None) or (), shown.pop("nodes", None) or ()
    if clusters and shown.get("dispatch") == "partition":
        del shown["dispatch"]
    resources = _units_in_words(shown.pop("resources", None))
    limits = _limits_in_words(shown.pop("limits", None))
    parts = [f"{name.replace('_', ' ')} {_value_in_words(value)}" for name, value in shown.items() if value is not None]
    parts += [f"resources {resources}"] if resources else []
    if accounts:
        users = {user for one in accounts.values() for user in one.get("users") or ()}
        parts.append(f"{len(accounts):,} accounts{f' with {len(users):,} users' if users else ''}")
    parts += limits
    sizes = [f"{'+'.join(partitions_named(one))} {one['processors']:,}".strip() for one in clusters]
    if sizes:
        parts.append(f"clusters {', '.join(sizes)} processors")
    parts += [
        f"{one['count']:,} nodes of {one['processors']:,} processors"
        f"{' and ' * bool(one.get('resources'))}{_units_in_words(one.get('resources'))}"
        f"{' with ' * bool(one.get('features'))}{'+'.join(one.get('features', ()))}"
        f"{' for ' * bool(partitions_named(one))}{'+'.join(partitions_named(one))}"
        for one in nodes[:_MOST_NODES]
    ]
    parts += [f"{len(nodes) - _MOST_NODES:,} more groups of nodes"] if len(nodes) > _MOST_NODES else []
    for one in clusters:
        units = _units_in_words(one.get("resources"))
        parts += [f"{'+'.join(partitions_named(one)) or 'a cluster'} has {units}"] if units else []
    return ", ".join(parts)


def _value_in_words(value: Any) -> str:
    if isinstance(value, Mapping):
        return " and ".join(f"{name} {_value_in_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return "+".join(map(_value_in_words, value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _limits_in_words(limits: Mapping[str, Unchecked] | None) -> list[str]:
    found = []
    for kind, of_kind in (limits or {}).items():
        named = [name for name, limit in of_kind.items() if isinstance(limit, Mapping)]
        is_counted = len(named) > _MOST_NAMED or (kind == "user" and bool(named))
        if is_counted:
            found.append(f"limits of {len(named):,} named {kind}{'s' * (kind != 'qos' and len(named) != 1)}")
        for name, limit in of_kind.items():
            if name in named and is_counted:
                continue
            if isinstance(limit, Mapping):
                found += [
                    f"limits of {len(most):,} users in {kind} {name}"
                    if isinstance(most, Mapping)
                    else f"at most {_quantity_in_words(what, most)} in {kind} {name}"
                    for what, most in limit.items()
                ]
            else:
                place = "in" if name.startswith("user_") else "of"
                found.append(f"at most {_quantity_in_words(name, limit)} {place} each {kind}")
    return found


def _quantity_in_words(name: str, most: int) -> str:
    """
    Return a limited quantity as words.

    Examples
    --------
    >>> [_quantity_in_words(name, most) for name, most in (("user_gpus", 1), ("jobs", 2), ("processor_minutes", 9000))]
    ['1 GPU of each user', '2 jobs', '9,000 processor-minutes']
    """
    quantity = name.removeprefix("user_")
    words = {"gpus": "GPUs", "memory": "MB of memory", "processor_minutes": "processor-minutes"}
    limited = words.get(quantity, quantity)
    limited = limited.removesuffix("s") if most == 1 else limited
    return f"{most:,} {limited}" + " of each user" * (quantity != name)


def _units_in_words(resources: Mapping[str, int | None] | None) -> str:
    """Return units of resources as text, such as ``64 gpus and 20 nodes``."""
    return " and ".join(f"{units:,} {name}" for name, units in (resources or {}).items() if units is not None)
