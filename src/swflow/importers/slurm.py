"""What Slurm writes: states, durations, memory, trackable resources; as its manual pages define them."""

import polars as pl

#: Every state of the manual page of sacct and squeue, and what it means in the Standard Workload Format: 1 completed,
#: 0 failed, 5 cancelled; None if the job has not ended.
STATES: dict[str, int | None] = {
    "BOOT_FAIL": 0,
    "CANCELLED": 5,
    "COMPLETED": 1,
    "COMPLETING": None,
    "CONFIGURING": None,
    "DEADLINE": 0,
    "EXPEDITING": None,
    "FAILED": 0,
    "LAUNCH_FAILED": 0,
    "NODE_FAIL": 0,
    "OUT_OF_MEMORY": 0,
    "PENDING": None,
    "POWER_UP_NODE": None,
    "PREEMPTED": 0,
    "RECONFIG_FAIL": 0,
    "REQUEUED": 0,
    "REQUEUE_FED": None,
    "REQUEUE_HOLD": None,
    "RESIZING": 1,
    "RESV_DEL_HOLD": None,
    "REVOKED": 5,
    "RUNNING": None,
    "SIGNALING": None,
    "SPECIAL_EXIT": 0,
    "STAGE_OUT": None,
    "STOPPED": None,
    "SUSPENDED": None,
    "TIMEOUT": 0,
    "UPDATE_DB": None,
}

_SHORT = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING", "CG": "COMPLETING", "DL": "DEADLINE",
    "F": "FAILED", "NF": "NODE_FAIL", "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RQ": "REQUEUED", "RS": "RESIZING",
    "RV": "REVOKED", "S": "SUSPENDED", "SE": "SPECIAL_EXIT", "SI": "SIGNALING", "SO": "STAGE_OUT", "ST": "STOPPED",
    "TO": "TIMEOUT",
}  # fmt: skip


def state(text: pl.Expr) -> pl.Expr:
    """
    Return the state without what follows it, spelt in full; as it stands if Slurm does not know it.

    Examples
    --------
    >>> texts = pl.Series(["CANCELLED by 1001", "COMPLETED", "OUT_OF_ME+", "TO", "ODD"])
    >>> texts.to_frame("s").select(state(pl.col("s"))).to_series().to_list()
    ['CANCELLED', 'COMPLETED', 'OUT_OF_MEMORY', 'TIMEOUT', 'ODD']
    """
    word = text.str.extract(r"^\s*([A-Za-z_]+\+?)", 1).str.to_uppercase()
    cut = {
        f"{name[:width]}+": name
        for name in STATES
        for width in range(6, len(name))
        if sum(other.startswith(name[:width]) for other in STATES) == 1
    }
    return word.replace(_SHORT | cut)


def seconds(text: pl.Expr) -> pl.Expr:
    """
    Return a duration in seconds; null where it is none.

    Slurm writes ``[days-]hours:minutes:seconds`` and ``minutes:seconds.thousandths``, and its limits may be
    ``days-hours``, ``days-hours:minutes`` or plain minutes.

    Examples
    --------
    >>> texts = pl.Series(["2-00:00:00", "01:30:00", "02:03.500", "1-12", "UNLIMITED", "1-02:30", "90"])
    >>> texts.to_frame("s").select(seconds(pl.col("s"))).to_series().to_list()
    [172800.0, 5400.0, 123.5, 129600.0, None, 95400.0, 5400.0]
    """
    parts = text.str.strip_chars().str.extract_groups(r"^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?(?:\.(\d+))?$")
    day, a, b, c, fraction = (parts.struct.field(str(place)).cast(pl.Float64) for place in range(1, 6))
    places = parts.struct.field("5").str.len_chars().fill_null(0).cast(pl.Float64)
    with_days = day * 86400 + a * 3600 + b.fill_null(0) * 60 + c.fill_null(0)
    without = (
        pl.when(c.is_not_null()).then(a * 3600 + b * 60 + c).when(b.is_not_null()).then(a * 60 + b).otherwise(a * 60)
    )
    return pl.when(day.is_not_null()).then(with_days).otherwise(without) + fraction.fill_null(0) / 10.0**places


_UNITS = {"": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4, "E": 1024.0**5}


def kilobytes(text: pl.Expr, *, unit: str) -> pl.Expr:
    """
    Return an amount of memory in KB: a number with K, M, G, T, P or E; ``unit`` is that of a bare number.

    Examples
    --------
    >>> texts = pl.Series(["4000M", "1.5G", "12K", "0", "", "2048"])
    >>> texts.to_frame("s").select(kilobytes(pl.col("s"), unit="M")).to_series().to_list()
    [4096000.0, 1572864.0, 12.0, 0.0, None, 2097152.0]
    """
    parts = text.str.strip_chars().str.extract_groups(r"^(\d+(?:\.\d+)?)([KMGTPEkmgtpe]?)[Bb]?[cn]?$")
    letter = parts.struct.field("2").str.to_uppercase()
    factor = letter.replace_strict(_UNITS | {"": _UNITS[unit]}, default=None, return_dtype=pl.Float64)
    return parts.struct.field("1").cast(pl.Float64) * factor


def resource(text: pl.Expr, name: str) -> pl.Expr:
    """
    Return the text of one trackable resource of a list such as ``billing=4,cpu=4,gres/gpu=2,mem=16G,node=1``.

    Examples
    --------
    >>> pl.Series(["cpu=4,gres/gpu:a100=2,gres/gpu=2"]).to_frame("t").select(resource(pl.col("t"), "gres/gpu")).item()
    '2'
    """
    return text.str.extract(rf"(?:^|,){name}=([^,]+)", 1)
