"""Convert the columns of sacct from text to numbers: ids, times, spans, processors, resources, memory."""

import polars as pl

from swflow.columns import numbers, whole_numbers
from swflow.log.importers import slurm
from swflow.log.importers.notation import NO_VALUE, filled, is_no_value, moments, tasks, times
from swflow.log.importers.records import Site, Tally
from swflow.log.recognise import USED
from swflow.values import MOST_PROCESSORS

JOB_ID = r"([0-9]{1,18})(?:_([0-9]{1,18}|\[[^\]|]*\]?))?(?:\+([0-9]{1,9}))?"
STEP = r"\.(.+)"


def jobs_of(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Return the typed allocations among records in the columns of sacct, with the memory of their steps."""
    table = table.with_columns(pl.lit("").alias(used) for used in USED if used not in table.columns)
    table = _without_no_values(table, tally)
    table = _each_task(_identified(table, tally), tally)
    steps = table.filter(pl.col("step").is_not_null())
    tally.note(steps, "steps, which are not jobs", pl.lit(True))
    table = _timed(_typed(table.filter(pl.col("step").is_null()), tally), site, tally)
    if "step_memory" in table.columns:  # JSON has steps within jobs
        return table
    of_none = steps.join(table, on=["cluster", "jobid"], how="anti", nulls_equal=True)
    tally.note(of_none, "steps of jobs that are not in the file (left out)", pl.lit(True))
    return table.join(
        _used_by_steps(steps, tally), on=["cluster", "jobid"], how="left", maintain_order="left", nulls_equal=True
    )


#: The columns of numbers, and of trackable resources.
_NUMBERS = (
    "uid", "gid", "elapsedraw", "timelimit", "timelimitraw", "reqcpus", "alloccpus", "allocnodes", "reqmem", "maxrss",
    "averss", "ntasks", "suspended", "totalcpu", "elapsed",
)  # fmt: skip
_TRES = ("alloctres", "reqtres")


def _without_no_values(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Remove the texts of NO_VAL and INFINITE from numbers and trackable resources, and count them."""
    is_none = rf"^\s*(?:{slurm.NO_VALUE_TEXTS})(?:\.0+)?[KMGTPEBcn]*\s*$"
    for name in (*_NUMBERS, *_TRES):
        if name in _TRES:
            changed = slurm.named_tres(pl.col(name))
            where = pl.col(name).str.contains(rf"=(?:{slurm.NO_VALUE_TEXTS})\b")
        else:
            where = pl.col(name).str.contains(is_none)
            changed = pl.when(where).then(pl.lit("")).otherwise(name)
        tally.note(table, f"{name}: {NO_VALUE}", where)
        table = table.with_columns(changed.alias(name))
    return table


def _identified(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Split ids into job, task of an array, component, and step."""
    shape = rf"^{JOB_ID}(?:{STEP})?$"
    table = tally.drop(table, "no job id", ~pl.col("jobid").str.contains(shape))
    parts = pl.col("jobid").str.extract_groups(shape)
    return table.with_columns(
        step=parts.struct.field("4"),
        component=whole_numbers(parts.struct.field("3")),
        task=parts.struct.field("2"),
        jobid=pl.col("jobid").str.extract(rf"^({JOB_ID})", 1),
        cluster=_filled("cluster").str.split(",").list.first(),
    )


#: Limit of the tasks of one array: Slurm's largest MaxArraySize.
_MOST_TASKS = 4_000_001


def _each_task(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Replace the one record of tasks that were cancelled before they started, such as 100_[3-20], by one for each."""
    whole = table.filter(pl.col("task").str.starts_with("[") & pl.col("step").is_null())
    if whole.is_empty():
        return table
    found = [tasks(text, _MOST_TASKS) for text in whole["task"]]
    tally.note(whole, "arrays whose list of tasks is cut off", pl.lit(pl.Series([not all_ for _, all_ in found])))
    lists = pl.Series("numbers", [numbers for numbers, _ in found], dtype=pl.List(pl.Int64))
    each = whole.with_columns(lists).filter(pl.col("numbers").list.len() > 0).explode("numbers")
    tally.note(each, "tasks of arrays in one record, each a job", pl.lit(True))
    each = each.with_columns(
        task=pl.col("numbers").cast(pl.String),
        jobid=pl.concat_str(pl.col("jobid").str.extract(r"^(\d+)_", 1), pl.lit("_"), pl.col("numbers").cast(pl.String)),
        submitline=pl.col("submitline").fill_null(""),
    ).drop("numbers")
    kept = table.filter(~pl.col("line").is_in(each["line"].implode()))
    return pl.concat([kept, each]).sort("line", maintain_order=True)


def _filled(name: str) -> pl.Expr:
    """Return a text; placeholders such as Unknown become null."""
    return filled(pl.col(name)).alias(name)


#: The limits that are no time, in lower case.
_LIMITS = {"unlimited": "unlimited", "infinite": "unlimited", "partition_limit": "partition"}


def _typed(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Convert the text of allocations to numbers: spans, processors, resources, memory; and name their texts."""
    texts = table
    table = _counted(table, tally)
    limit = pl.coalesce(_filled("timelimit"), _filled("timelimitraw"))
    kind = limit.str.to_lowercase().replace_strict(_LIMITS, default=None, return_dtype=pl.String)
    table = table.with_columns(
        state=slurm.state(pl.col("state")),
        elapsed=pl.coalesce(numbers(pl.col("elapsedraw")), slurm.seconds(pl.col("elapsed"))),
        suspended_time=slurm.seconds(pl.col("suspended")),
        submitted=_filled("submitline"),
        reserved=_filled("reservation").is_not_null(),
        constraint=_filled("constraints"),
        limit=slurm.seconds(limit),
        limit_kind=kind,
        cpu_time=slurm.seconds(pl.col("totalcpu")),
        user_name=pl.coalesce(_filled("user"), _filled("uid")),
        unix_group=pl.coalesce(_filled("group"), _filled("gid")),
        account=_filled("account"),
        queue=_filled("qos"),
        partition=_filled("partition"),
        executable=_filled("jobname"),
    )
    for what, text, value in (
        ("Elapsed", pl.coalesce(_filled("elapsedraw"), _filled("elapsed")), "elapsed"),
        ("Suspended", pl.col("suspended"), "suspended_time"),
        ("Timelimit", pl.when(kind.is_null()).then(limit), "limit"),
        ("TotalCPU", pl.col("totalcpu"), "cpu_time"),
    ):
        tally.unreadable(texts, what, text, table[value])
    without = table.filter(limit.is_null())
    if 0 < len(without) < len(table):
        tally.add("jobs without a Timelimit", len(without), int(without["line"][0]))
    return _with_memory(table, texts, tally)


def _counted(table: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Add the numbers of processors, nodes, GPUs and licenses."""
    texts = table
    for name, column, text in (("allocated", "alloccpus", "alloctres"), ("requested", "reqcpus", "reqtres")):
        stated = whole_numbers(slurm.resource(pl.col(text), "cpu"), MOST_PROCESSORS)
        value = pl.lit(slurm.counts(table[column], MOST_PROCESSORS))
        # Of 16 bits, they can also be numbers of processors.
        doubtful = is_no_value(value, small=True) & stated.is_not_null()
        value = pl.coalesce(pl.when(~doubtful).then(value), stated)
        table = table.with_columns(pl.when(value > 0).then(value).alias(name))
    nodes = pl.lit(slurm.counts(table["allocnodes"], MOST_PROCESSORS))
    processors = pl.coalesce("allocated", "requested")
    nodes = pl.when(~(is_no_value(nodes, small=True) & (nodes > processors))).then(nodes)
    stated_nodes = table.select(nodes=nodes)["nodes"]
    nodes = pl.coalesce(nodes, whole_numbers(slurm.resource(pl.col("alloctres"), "node"), MOST_PROCESSORS))
    tres = pl.col("alloctres"), pl.col("reqtres")
    table = table.with_columns(
        nodes=nodes,
        requested_nodes=whole_numbers(slurm.resource(pl.col("reqtres"), "node"), MOST_PROCESSORS),
        licensed=_filled("licenses").is_not_null() | pl.col("alloctres").str.contains(r"(^|,)license/"),
        licenses=pl.coalesce(map(slurm.licenses, (*tres, _filled("licenses")))),
    ).with_columns(
        gpus=pl.coalesce(
            *map(slurm.gpus, tres),
            slurm.gpus_of_gres(pl.col("allocgres")),
            slurm.requested_gpus(pl.col("reqgres"), pl.coalesce("nodes", "requested_nodes", 1)),
        )
    )
    for what, text, values in (
        ("AllocCPUS", "alloccpus", table["allocated"]),
        ("ReqCPUS", "reqcpus", table["requested"]),
        ("NNodes", "allocnodes", stated_nodes),
    ):
        tally.unreadable(texts, what, pl.col(text), values)
    numbered = pl.concat_str(*tres, separator=",").str.contains(r"(?:^|,)1[0-9]{3}=")
    tally.note(table, "resources that only have a number (left out)", numbered)
    of_gpus = pl.col("reqgres").str.to_lowercase().str.contains(r"\bgpu\b")
    tally.note(table, "unreadable number of GPUs in ReqGRES (left out)", of_gpus & pl.col("gpus").is_null())
    return table


def _with_memory(table: pl.DataFrame, texts: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Add the requested memory per processor, KB, and that of the whole job, MB."""
    table = table.with_columns(
        alloc_mem=slurm.kilobytes(slurm.resource(pl.col("alloctres"), "mem"), unit="M"),
        req_mem=slurm.kilobytes(slurm.resource(pl.col("reqtres"), "mem"), unit="M"),
    )
    for what, name, value in (("AllocTRES", "alloctres", "alloc_mem"), ("ReqTRES", "reqtres", "req_mem")):
        tally.note(texts, f"unreadable number in {what} (left out)", slurm.has_odd_amounts(pl.col(name)))
        tally.unreadable(texts, f"memory in {what}", slurm.resource(pl.col(name), "mem"), table[value])
    memory = pl.col("reqmem").str.strip_chars()
    processors_of = pl.coalesce("allocated", "requested")
    amount = slurm.kilobytes(memory, unit="M")
    per_processor = (
        pl.when(memory.str.ends_with("c"))
        .then(amount)
        .when(memory.str.ends_with("n"))
        .then(amount * pl.col("nodes") / processors_of)
        .otherwise(amount / processors_of)
    )
    tally.unreadable(texts, "ReqMem", memory, table.select(amount).to_series())
    tally.note(table, "ReqMem per node without a number of nodes (left out)", (amount > 0) & per_processor.is_null())
    requested = pl.when(per_processor > 0).then(per_processor)
    return table.with_columns(
        requested_memory=requested, memory=pl.coalesce("alloc_mem", "req_mem", requested * processors_of) / 1024
    )


def _timed(table: pl.DataFrame, site: Site, tally: Tally) -> pl.DataFrame:
    """Convert local times to Unix seconds; in an hour that the clock repeats, choose the times that fit Elapsed."""
    for name in ("submit", "start", "end"):
        text = table.select(times(pl.col(name))).to_series()
        first, second = moments(text, site.time_zone)
        table = table.with_columns(first.alias(f"{name}_0"), second.alias(f"{name}_1"))
        odd = pl.lit(text.is_not_null() & first.is_null())
        table = tally.drop(table, f"{name} that is not a time, or does not exist in {site.time_zone}", odd)
    twofold = pl.any_horizontal(pl.col(f"{name}_0") != pl.col(f"{name}_1") for name in ("submit", "start", "end"))
    tally.note(table, "times of an hour that the clock showed twice", twofold)
    span = pl.col("elapsed").fill_null(0) + pl.col("suspended_time").fill_null(0)
    # If several fit equally, prefer a start (an end, if the job never started) after the submission.
    misfits = {
        (a, b): (pl.col(f"end_{b}") - pl.coalesce(f"start_{a}", f"end_{a}") - span).abs().fill_null(0)
        + pl.when(pl.coalesce(f"start_{a}", f"end_{a}") < pl.col("submit_0")).then(1).otherwise(0)
        for a, b in ((0, 0), (1, 1), (0, 1))  # an end is not before its start
    }
    best = pl.min_horizontal(*misfits.values())
    start, end = pl.col("start_0"), pl.col("end_0")
    for (a, b), misfit in reversed(misfits.items()):
        start = pl.when(misfit == best).then(pl.col(f"start_{a}")).otherwise(start)
        end = pl.when(misfit == best).then(pl.col(f"end_{b}")).otherwise(end)
    table = table.with_columns(start=start, end=end)
    submit = (
        pl.when(pl.col("submit_1") <= pl.coalesce("start", "end"))
        .then(pl.col("submit_1"))
        .otherwise(pl.col("submit_0"))
    )
    text = table.select(times(pl.col("eligible"))).to_series()
    first, second = moments(text, site.time_zone)  # the first that is not before the submission
    tally.unreadable(table, "Eligible", times(pl.col("eligible")), first)
    return table.with_columns(submit=submit).with_columns(
        eligible=pl.when(first >= pl.col("submit")).then(first).otherwise(second)
    )


def _used_by_steps(steps: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """Return the memory of the step of each job that used most, over all tasks, KB."""
    values = steps.select(
        AveRSS=slurm.kilobytes(pl.col("averss"), unit=""),
        MaxRSS=slurm.kilobytes(pl.col("maxrss"), unit=""),
        NTasks=whole_numbers(pl.col("ntasks"), MOST_PROCESSORS),
    )
    for what in values.columns:
        tally.unreadable(steps, what, pl.col(what.lower()), values[what])
    used = pl.coalesce("AveRSS", "MaxRSS") * pl.col("NTasks").fill_null(1)
    of_steps = steps.select("cluster", "jobid").with_columns(values)
    return of_steps.group_by("cluster", "jobid").agg(step_memory=used.max())
