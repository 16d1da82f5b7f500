"""Slurm's notation of states, durations, memory and trackable resources, as defined in its manual pages."""

import re

import polars as pl

from swflow.columns import once_each, sum_of, whole_numbers

#: Every state in the manual pages of sacct and squeue, with its status in the Standard Workload Format: 1 completed,
#: 0 failed, 5 cancelled; None if the job has not ended.
STATES: dict[str, int | None] = {
    **dict.fromkeys(("COMPLETED", "RESIZING"), 1),
    **dict.fromkeys(
        ("BOOT_FAIL", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
         "RECONFIG_FAIL", "REQUEUED", "SPECIAL_EXIT", "TIMEOUT"),
        0,
    ),
    **dict.fromkeys(("CANCELLED", "REVOKED"), 5),
    **dict.fromkeys(
        ("COMPLETING", "CONFIGURING", "EXPEDITING", "PENDING", "POWER_UP_NODE", "REQUEUE_FED", "REQUEUE_HOLD",
         "RESV_DEL_HOLD", "RUNNING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED", "UPDATE_DB"),
        None,
    ),
}  # fmt: skip

_SHORT = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING", "DL": "DEADLINE",
    "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING",
    "RV": "REVOKED", "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED",
    "TO": "TIMEOUT",
}  # fmt: skip


def state(text: pl.Expr) -> pl.Expr:
    """
    Return the full name of a state without its suffix; unknown states stay unchanged.

    Examples
    --------
    >>> texts = pl.Series(["CANCELLED by 1001", "CANCELLED+", "OUT_OF_ME+", "TO", "ODD"])
    >>> texts.to_frame("s").select(state(pl.col("s"))).to_series().to_list()
    ['CANCELLED', 'CANCELLED', 'OUT_OF_MEMORY', 'TIMEOUT', 'ODD']
    """
    word = text.str.extract(r"^\s*([A-Za-z_]+\+?)", 1).str.to_uppercase()
    cut = {
        f"{name[:width]}+": name
        for name in STATES
        for width in range(6, len(name))
        if sum(other.startswith(name[:width]) for other in STATES) == 1
    }
    return word.replace(_SHORT | cut | {f"{name}+": name for name in STATES})


#: The digits are limited, because a number of 400 digits is infinite.
_DURATION = r"^(?:([0-9]{1,9})-)?([0-9]{1,12})(?::([0-9]{1,12}))?(?::([0-9]{1,12}))?(?:\.([0-9]{1,18}))?$"


def seconds(text: pl.Expr, *, bare: float = 60.0) -> pl.Expr:
    """
    Return a duration in seconds; null for other text.

    Slurm writes ``[days-]hours:minutes:seconds`` and ``minutes:seconds.thousandths``. Its limits can also be
    ``days-hours``, ``days-hours:minutes`` or minutes. ``bare`` is the unit of a bare number, in seconds.

    Examples
    --------
    >>> texts = pl.Series(["2-00:00:00", "01:30:00", "02:03.500", "1-12", "UNLIMITED", "1-02:30", "90"])
    >>> texts.to_frame("s").select(seconds(pl.col("s"))).to_series().to_list()
    [172800.0, 5400.0, 123.5, 129600.0, None, 95400.0, 5400.0]
    """
    return once_each(text, lambda each: _seconds(each, bare))


def _seconds(text: pl.Expr, bare: float) -> pl.Expr:
    parts = text.str.strip_chars().str.extract_groups(_DURATION)
    day, a, b, c, fraction = (parts.struct.field(str(place)).cast(pl.Float64) for place in range(1, 6))
    places = parts.struct.field("5").str.len_chars().fill_null(0).cast(pl.Float64)
    with_days = day * 86400 + a * 3600 + b.fill_null(0) * 60 + c.fill_null(0)
    without = (
        pl.when(c.is_not_null()).then(a * 3600 + b * 60 + c).when(b.is_not_null()).then(a * 60 + b).otherwise(a * bare)
    )
    found = pl.when(day.is_not_null()).then(with_days).otherwise(without) + fraction.fill_null(0) / 10.0**places
    return pl.when(~found.is_in(_NO_SPANS)).then(found)


#: NO_VAL and INFINITE of 32 bits in seconds and minutes, which are no durations.
_NO_SPANS = [(2.0**32 - less) * unit for less in (1, 2) for unit in (1.0, 60.0)]


def duration(text: str) -> float | None:
    """Return the duration of one text in seconds, as `seconds`."""
    found: float | None = pl.select(seconds(pl.lit(text))).item()
    return found


def counts(text: pl.Series, most: int) -> pl.Series:
    """
    Return numbers of processors or nodes, which can end in K (1,024), M or G, or in .0; null beyond ``most``.

    Examples
    --------
    >>> counts(pl.Series(["8", "2.5K", "1K", "8.0", "8.5", ""]), 10**6).to_list()
    [8, 2560, 1024, 8, None, None]
    """
    plain = text.to_frame("t").select(whole_numbers(pl.col("t"), most)).to_series()
    odd = text.set(plain.is_not_null(), None)
    if not odd.str.contains(r"[\dKMG]").any():  # most logs have whole numbers only, and regular expressions are slow
        return plain
    parts = odd.str.strip_chars().str.extract_groups(r"^([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMG]?)$").struct
    factor = parts.field("2").replace_strict({"": 1, "K": 2**10, "M": 2**20, "G": 2**30}, default=None)
    value = parts.field("1").cast(pl.Float64) * factor
    found = value.set(value != value.floor(), None).to_frame("v").select(whole_numbers(pl.col("v"), most)).to_series()
    return plain.fill_null(found)


_UNITS = {"": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4, "E": 1024.0**5}


def kilobytes(text: pl.Expr, *, unit: str) -> pl.Expr:
    """
    Return an amount of memory in KB. The text is a number with K, M, G, T, P or E; ``unit`` applies to a bare number.

    Examples
    --------
    >>> texts = pl.Series(["4000M", "1.5G", "12K", "0", "", "2048"])
    >>> texts.to_frame("s").select(kilobytes(pl.col("s"), unit="M")).to_series().to_list()
    [4096000.0, 1572864.0, 12.0, 0.0, None, 2097152.0]
    """
    return once_each(text, lambda each: _kilobytes(each, unit))


def _kilobytes(text: pl.Expr, unit: str) -> pl.Expr:
    parts = text.str.strip_chars().str.extract_groups(_MEMORY)
    letter, ending = parts.struct.field("2").str.to_uppercase(), parts.struct.field("3").str.to_lowercase()
    is_bare = (letter == "") & (ending != "")  # bytes or words, whatever the unit is
    factor = letter.replace_strict(_UNITS | {"": _UNITS[unit]}, default=None, return_dtype=pl.Float64)
    factor = pl.when(is_bare).then(_UNITS[""]).otherwise(factor) * pl.when(ending == "w").then(8.0).otherwise(1.0)
    found = parts.struct.field("1").str.replace(",", ".", literal=True).cast(pl.Float64) * factor
    return pl.when(found < _MOST_MEMORY).then(found)


#: Amounts of memory; PBS ends them with b (bytes) or w (words of 8 bytes), Slurm with c (per CPU) or n (per node).
_MEMORY = r"^([0-9]{1,20}(?:[.,][0-9]{1,18})?)\s*([KMGTPEkmgtpe]?)(?:i?([BbWw]))?[cn]?$"

#: Larger amounts of memory are INFINITE of 64 bits, KB.
_MOST_MEMORY = 2.0**53


def resource(text: pl.Expr, name: str) -> pl.Expr:
    """
    Return the text of one trackable resource in a list such as ``billing=4,cpu=4,gres/gpu=2,mem=16G,node=1``.

    Examples
    --------
    >>> pl.Series(["cpu=4,gres/gpu:a100=2,gres/gpu=2"]).to_frame("t").select(resource(pl.col("t"), "gres/gpu")).item()
    '2'
    """
    return text.str.extract(rf"(?:^|,){name}=([^,]+)", 1)


def has_odd_amounts(text: pl.Expr) -> pl.Expr:
    """
    Return whether a list of trackable resources has an amount other than a number, or one that no machine has.

    Memory has units and is not considered.

    Examples
    --------
    >>> texts = pl.Series(["cpu=4,mem=1.50G,gres/gpu:a100=2", "cpu=4,node=1x", "cpu=-4,mem=1G", "gres/gpu=", ""])
    >>> texts.to_frame("t").select(has_odd_amounts(pl.col("t"))).to_series().to_list()
    [False, True, True, True, False]
    """
    return text.str.contains(_ODD_AMOUNT)


_ODD_AMOUNT = r"(?:^|,)(?:cpu|node|gres/gpu[^=,]*|license/[^=,]+)=(?:[0-9]{0,10}[^0-9,]|,|$|[0-9]{11})"


def gpus(text: pl.Expr) -> pl.Expr:
    """
    Return the number of GPUs in a list of trackable resources: the total, or without it the sum over the types.

    Examples
    --------
    >>> texts = pl.Series(["cpu=4,gres/gpu:a100=2,gres/gpu=2", "gres/gpu:a100=2,gres/gpu:v100=1", "cpu=4"])
    >>> texts.to_frame("t").select(gpus(pl.col("t"))).to_series().to_list()
    [2, 3, None]
    """
    of_types = text.str.extract_all(r"(?:^|,)gres/gpu:[^=,]+=[0-9]+")
    counts = of_types.list.eval(pl.element().str.extract(r"([0-9]+)$", 1))
    return pl.coalesce(whole_numbers(resource(text, "gres/gpu")), sum_of(counts))


def gpus_of_gres(text: pl.Expr) -> pl.Expr:
    """
    Return the number of GPUs in a list of generic resources, of a node or as old versions of Slurm record them.

    Examples
    --------
    >>> texts = pl.Series(["gpu:2", "gpu:tesla:4(S:0-1),gpu:k80:1", "mic:1,gpu:a100", "mic:1", "gres/gpu:a100=2"])
    >>> texts.to_frame("t").select(gpus_of_gres(pl.col("t"))).to_series().to_list()
    [2, 5, 1, None, 2]
    """
    counts = text.str.extract_all(r"(?:^|,)(?:gres[:/])?gpu\b[^,(]*").list.eval(
        pl.element().str.extract(r"[:=]([0-9]+)$", 1).fill_null("1")
    )
    return sum_of(counts)


def requested_gpus(text: pl.Expr, nodes: pl.Expr) -> pl.Expr:
    """
    Return the number of GPUs of a request of generic resources, which is for each node unless it says PER_JOB.

    Requests for each socket or task are unknown.

    Examples
    --------
    >>> texts = ["PER_NODE:gpu:2", "gres:gpu:v100:4", "PER_JOB:gpu:3", "hbm:0,gpu:P100:2(IDX:1,3)", "PER_TASK:gpu:1"]
    >>> pl.Series(texts).to_frame("t").select(requested_gpus(pl.col("t"), pl.lit(2))).to_series().to_list()
    [4, 8, 3, 4, None]
    """
    bare = text.str.replace_all(r"\([^)]*\)", "").str.replace_all(r"gres[:/]", "")
    scope = bare.str.to_uppercase().str.extract(r"\b(PER_[A-Z]+)", 1)
    count = gpus_of_gres(bare.str.replace_all(r"(?i)per_[a-z]+:", ""))
    per_node = scope.is_null() | (scope == "PER_NODE")
    return pl.when(per_node).then(count * nodes).when(scope == "PER_JOB").then(count)


def named_tres(text: pl.Expr) -> pl.Expr:
    """
    Return trackable resources with names instead of the numbers of the database, and without values that are none.

    Examples
    --------
    >>> texts = pl.Series(["1=4,2=16000,4=1", "cpu=4,gres/gpu=4294967294,node=1"])
    >>> texts.to_frame("t").select(named_tres(pl.col("t"))).to_series().to_list()
    ['cpu=4,mem=16000,node=1', 'cpu=4,node=1']
    """
    for number, name in (("1", "cpu"), ("2", "mem"), ("4", "node"), ("5", "billing")):
        text = text.str.replace(rf"(^|,){number}=", f"${{1}}{name}=")
    return text.str.replace_all(rf"(?:^|,)[^=,]+=(?:{NO_VALUE_TEXTS})\b[A-Z]?", "").str.strip_chars_start(",")


#: NO_VAL and INFINITE of 32 and 64 bits, as a regular expression.
NO_VALUE_TEXTS = "4294967294|4294967295|1844674407370955161[45]|922337203685477580[78]"


def licenses(text: pl.Expr) -> pl.Expr:
    """
    Return the number of licenses in a list of trackable resources, or in the column Licenses of sacct.

    Licenses of all products are added. Null if the text has none.

    Examples
    --------
    >>> texts = pl.Series(["cpu=4,license/matlab=2,license/ansys@one=1", "cpu=4", "matlab:3,ansys", None])
    >>> texts.to_frame("t").select(licenses(pl.col("t"))).to_series().to_list()
    [3, None, 4, None]
    """
    of_tres = text.str.extract_all(r"(?:^|,)license/[^=,]+=[0-9]+")
    product = r"[A-Za-z_][\w.@-]*(?:[:*=][0-9]+)?"
    is_list = text.str.contains(rf"^{product}(?:[,;|]{product})*$") & ~text.str.contains(
        r"(?:^|,)(?:cpu|node|mem|billing)="
    )
    products = pl.when(is_list).then(text.str.replace_all(";", ",").str.split(by=",")).otherwise(of_tres)
    return sum_of(products.list.eval(pl.element().str.extract(r"[=:*]([0-9]+)$", 1).fill_null("1")))


_DEPENDENCY = re.compile(r"(?:--dependency[= ]|(?:^|\s)-d *=?)[\"']?((?:after|singleton|expand)\S*?)[\"']?(?:\s|$)")

#: The kinds of dependencies that end with a predecessor; its exit status is not considered.
_AT_END = ("afterok", "afterany", "afternotok", "afterburstbuffer", "aftercorr")


def predecessors(submit_line: str, task: str | None = None) -> tuple[list[str], bool]:
    """
    Return the predecessors in a command line of sbatch, and whether it has dependencies that are not modelled.

    ``after`` (the start of a job), ``singleton``, ``expand`` and alternatives (``?``) are not modelled. ``task`` is the
    number of the task in its array, for ``aftercorr``.

    Examples
    --------
    >>> predecessors("sbatch --dependency=afterok:12:13_4,afterany:15 run.sh")
    (['12', '13_4', '15'], False)
    >>> predecessors("sbatch -d aftercorr:12 --array=0-9 run.sh", "3")
    (['12_3'], False)
    >>> predecessors("sbatch --dependency=singleton run.sh")
    ([], True)
    """
    match = _DEPENDENCY.search(submit_line)
    if match is None:
        return [], False
    if "?" in match[1]:
        return [], True
    found, others = [], False
    for part in match[1].split(","):
        kind, *ids = part.split(":")
        if kind not in _AT_END or not ids:
            others = True
            continue
        for one in ids:
            number = re.match(r"[0-9]+(?:_(?:[0-9]+|\*))?", one)
            if number is None:
                others = True
            elif kind == "aftercorr" and task is not None and "_" not in number[0]:
                found.append(f"{number[0]}_{task}")
            else:
                found.append(number[0])
    return list(dict.fromkeys(found)), others
