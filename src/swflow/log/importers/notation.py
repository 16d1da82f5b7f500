"""Read values as exports write them: placeholders, values of Slurm that are none, times, numbers and durations."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import polars as pl

from swflow.columns import numbers
from swflow.log.importers.slurm import seconds
from swflow.values import LATEST

#: Texts that stand for an unknown value, in lower case.
PLACEHOLDERS = (
    "", "unknown", "none", "n/a", "na", "nan", "nat", "null", "(null)", "nil", "invalid", "undefined", "-", "--", "?",
    r"\n", "#n/a", "<na>", "n.a.", "not set", "not_set",
)  # fmt: skip

#: Slurm's NO_VAL and INFINITE of 32 and 64 bits, and the latter as floats and with a sign.
NO_VALUES = (2.0**32 - 2, 2.0**32 - 1, 2.0**64, 2.0**63)

#: NO_VAL and INFINITE of 16 bits, which only counts smaller than a machine's processors can be.
NO_VALUES_16 = (2.0**16 - 2, 2.0**16 - 1)

#: The note on them, by column.
NO_VALUE = "NO_VAL or INFINITE of Slurm (unknown)"

#: Characters around a value: quotes and blanks.
_AROUND = " \t\r\n\v\f\"'\u00a0\ufeff"


def filled(text: pl.Expr) -> pl.Expr:
    """
    Return texts without surrounding blanks and quotes; placeholders become null.

    Examples
    --------
    >>> texts = pl.Series([" a ", "'b'", "None", "NaN", "-", ""])
    >>> texts.to_frame("t").select(filled(pl.col("t"))).to_series().to_list()
    ['a', 'b', None, None, None, None]
    """
    bare = text.cast(pl.String).str.strip_chars(_AROUND)
    return pl.when(~bare.str.to_lowercase().is_in(PLACEHOLDERS)).then(bare)


def is_no_value(number: pl.Expr, *, small: bool = False) -> pl.Expr:
    """Return whether numbers are NO_VAL or INFINITE of Slurm; ``small`` includes those of 16 bits."""
    value = number.cast(pl.Float64, strict=False)
    known = (*NO_VALUES, *(NO_VALUES_16 if small else ()))
    return value.is_in(known) | (value.is_finite() & value.is_between(2.0**63, 2.0**65))


_CLOCK = (
    r"^(\d{4})[-/.](\d\d?)[-/.](\d\d?)(?:[T _]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,9})\d*)?)?)?"
    r"(?:\s*([AaPp])\.?[Mm]\.?)?\s*(?:(Z|z|UTC|GMT)|([+-])(\d\d):?(\d\d)?(?::\d\d)?)?$"
)

#: A time without marks between its parts, as in 20240108T080000Z.
_COMPACT = r"^(\d{4})(\d\d)(\d\d)[T ](\d\d):?(\d\d):?(\d\d)"

#: A date that begins with its day, as in 8.1.2024; other marks than points do not show this.
_POINTS = r"^(\d\d?)\.(\d\d?)\.(\d{4})\b"

#: The name of a time zone after its offset, as in ``+01:00[Europe/Berlin]`` and ``+0100 CET``.
_NAME_AFTER_OFFSET = r"([+-]\d\d:?\d\d)(?:\[[\w/+-]+\]| [A-Z]{3,5})$"

#: Texts that stand for no time: 0, NO_VAL and INFINITE as a number, and these as moments of any time zone.
_NO_TIME = (
    r"^(?:[+-]?0+(?:\.0*)?|0000-00-00.*|-1|-2|4294967294|4294967295|1844674407370955161[45]|922337203685477580[78]|"
    r"(?:1969-12-31|1970-01-01|2106-02-0[678])(?:[T ].*)?)$"
)


def times(text: pl.Expr) -> pl.Expr:
    """
    Return texts of times; those that stand for no time become null.

    Examples
    --------
    >>> texts = pl.Series(["2024-01-08T08:00:00", "0", "4294967294", "2106-02-07T06:28:14", "1970-01-01T00:00:00"])
    >>> texts.to_frame("t").select(times(pl.col("t"))).to_series().to_list()
    ['2024-01-08T08:00:00', None, None, None, None]
    """
    bare = filled(text)
    return pl.when(~bare.str.contains(_NO_TIME)).then(bare)


def moments(text: pl.Series, time_zone: str, *, zero: bool = False) -> tuple[pl.Series, pl.Series]:
    """
    Return texts of times in Unix seconds: the first and the last moment that the clock can mean.

    A time is year, month and day, perhaps with a time after a T or blanks, a fraction of a second, and an offset from
    UTC (Z, +01:00, +0100, or an abbreviation such as CET that means one zone or is one of the time zone); a date with
    the name of its month; or a number of seconds, milliseconds, microseconds or nanoseconds since 1970. Times without
    an offset are those of the time zone. Other texts are null, see also `times`. With ``zero``, 0 is a time.

    Examples
    --------
    >>> texts = ["2023-02-21T14:10:00+0100", "2023-02-21 13:10:00.5Z", "2023-02-21T14:10", "1676985000000", "None"]
    >>> moments(pl.Series(texts), "Europe/Stockholm")[0].to_list()
    [1676985000.0, 1676985000.5, 1676985000.0, 1676985000.0, None]
    >>> texts = ["Tue Feb 21 14:10:00 CET 2023", "21-Feb-2023 13:10 UTC", "Feb 21, 2023 14:10", "2023-02-21 21:10 CST"]
    >>> moments(pl.Series(texts), "Europe/Stockholm")[0].to_list()
    [1676985000.0, 1676985000.0, 1676985000.0, None]
    >>> moments(pl.Series(texts), "Asia/Shanghai")[0].to_list()[3]  # there, CST is China Standard Time
    1676985000.0
    """
    known = times(pl.col("text"))
    known = (
        pl.when(pl.col("text").str.contains(r"^\s*0+(\.0*)?\s*$")).then(pl.lit("0")).otherwise(known) if zero else known
    )
    text = text.to_frame("text").select(known).to_series()
    clock = text.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False, time_unit="ms")
    first, last = local_moments(clock, time_zone)
    if clock.null_count() > text.null_count():
        text = _with_marks(text)
        rest = text.set(clock.is_not_null(), None)
        rest = rest.set(rest.str.contains(_GROUPED).fill_null(False), None).fill_null(
            rest.str.replace_all(_GROUP_MARKS, "")
        )
        rest = rest.str.replace(r"^(\d{4,}),(\d+)$|^(\d+),(\d\d?)$", "${1}${3}.${2}${4}")  # a decimal comma
        plain = rest.to_frame("text").select(epoch(pl.col("text"))).to_series()
        earlier, later = _spelled(rest.set(plain.is_not_null(), None), time_zone)
        first, last = (one.fill_null(plain).fill_null(other) for one, other in ((first, earlier), (last, later)))
    return first, last


#: Dates of digits only, without and with a time. The latter have 12 or 14 digits, and a Unix time has 10 or 13.
_DATE = r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_DIGITS = rf"^{_DATE}(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d)?$"


def _with_marks(text: pl.Series) -> pl.Series:
    """
    Return times with marks between the parts of those that have digits only; dates only if all times are dates.

    Examples
    --------
    >>> columns = ["20240108080000", "202401080800", "1704700800"], ["20240108", None], ["20240108", "0"]
    >>> [_with_marks(pl.Series(column)).to_list() for column in columns]
    [['2024-01-08T08:00:00', '2024-01-08T08:00:00', '1704700800'], ['2024-01-08', None], ['20240108', '0']]
    """
    clock = text.str.replace(r"^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?$", "${1}-${2}-${3}T${4}:${5}:${6}")
    clock = clock.str.replace(r":$", ":00")
    text = clock.zip_with(text.str.contains(_DIGITS).fill_null(False), text)
    if text.null_count() < len(text) and text.str.contains(rf"^{_DATE}$").all():
        return text.str.replace(r"^(\d{4})(\d\d)(\d\d)$", "${1}-${2}-${3}")
    return text


def epoch(text: pl.Expr) -> pl.Expr:
    """Return numbers as Unix seconds; beyond the calendar they are milliseconds, microseconds or nanoseconds."""
    value = numbers(text, 1e20)
    value = pl.when(~is_no_value(value)).then(value)
    unit = pl.lit(1.0)
    for power in (1, 2, 3):
        unit = pl.when(value > LATEST * 1000.0 ** (power - 1)).then(1000.0**power).otherwise(unit)
    return value / unit


def _spelled(text: pl.Series, time_zone: str) -> tuple[pl.Series, pl.Series]:
    """Return times in any of the notations of `moments` that are no numbers."""
    if text.null_count() == len(text):
        nothing = pl.Series([None] * len(text), dtype=pl.Float64)
        return nothing, nothing
    text = text.str.replace(_COMPACT, "${1}-${2}-${3}T${4}:${5}:${6}").str.replace(_POINTS, "${3}-${2}-${1}")
    text = text.str.replace(_NAME_AFTER_OFFSET, "${1}")
    if text.str.contains("[A-Za-z]{3}").any():
        text = _in_digits(text, time_zone)
    parts = text.to_frame("text").select(pl.col("text").str.extract_groups(_CLOCK).alias("parts")).unnest("parts")
    number = {place: pl.col(str(place)).cast(pl.Int64, strict=False) for place in (4, 11, 12)}
    half = pl.col("8").str.to_uppercase()  # 12 AM is midnight
    hour = pl.when(half.is_null()).then(number[4]).otherwise(number[4] % 12 + 12 * (half == "P").cast(pl.Int64))
    hour = pl.when(half.is_null() | number[4].is_between(1, 12)).then(hour).otherwise(99)
    clock = pl.concat_str(
        *(pl.col(str(place)).str.zfill(2) for place in (1, 2, 3)),
        *(part.fill_null("00").str.zfill(2) for part in (hour.cast(pl.String), pl.col("5"), pl.col("6"))),
    ).str.to_datetime("%Y%m%d%H%M%S", strict=False, time_unit="ms")
    fraction = pl.concat_str(pl.lit("0."), pl.col("7")).cast(pl.Float64, strict=False).fill_null(0.0)
    offset = number[11] * 3600 + number[12].fill_null(0) * 60
    offset = pl.when(pl.col("9").is_not_null()).then(0).when(pl.col("10") == "-").then(-offset).otherwise(offset)
    table = parts.select(clock=clock, fraction=fraction, offset=offset)
    exact = table.select(pl.col("clock").dt.epoch("ms") / 1000 - pl.col("offset")).to_series()
    found = [exact.fill_null(one) + table["fraction"] for one in local_moments(table["clock"], time_zone)]
    return found[0], found[1]


_MONTHS = {
    "jan": "01", "feb": "02", "mar": "03", "apr": "04", "may": "05", "jun": "06", "jul": "07", "aug": "08", "sep": "09",
    "oct": "10", "nov": "11", "dec": "12",
}  # fmt: skip

#: Dates with names of months: ``Mon Jan  8 08:00:00 CET 2024``, ``Mon, 08-Jan-2024 08:00:00``, ``Jan 8, 2024 08:00``.
_WEEKDAY = r"(?i)^(?:[a-z]{3},? +)?"
_CTIME = rf"{_WEEKDAY}([a-z]{{3}})[a-z]* +(\d\d?) +(\d\d?:\d\d(?::\d\d)?)( +[a-z]{{2,5}}| +[+-]\d{{4}})? +(\d{{4}})$"
_DAY_FIRST = rf"{_WEEKDAY}(\d\d?)[ /-]([a-z]{{3}})[a-z]*[ /-](\d{{4}})(?:[ T,:]+(\d\d?:.*))?$"
_MONTH_FIRST = rf"{_WEEKDAY}([a-z]{{3}})[a-z]* +(\d\d?),? +(\d{{4}})(?:[ T,]+(\d\d?:.*))?$"
_ZONE = r"(?i)([\d.] ?|[ap]\.?m\.? )([a-z]{3,5})$"

#: Hours ahead of UTC of abbreviations that mean one zone; others are read if the log's zone has them.
_ZONES = {
    "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9, "KST": 9,
    "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13, "EDT": -4, "EST": -5, "CDT": -5, "MDT": -6, "PDT": -7, "PST": -8,
    "AKST": -9, "AKDT": -8, "HST": -10, "BRT": -3, "WAT": 1, "CAT": 2, "SAST": 2, "EAT": 3, "PKT": 5, "WIB": 7,
    "HKT": 8, "SGT": 8, "AWST": 8,
}  # fmt: skip


@lru_cache(maxsize=16)
def _offsets(time_zone: str) -> dict[str, str]:
    """Return the offsets of abbreviations of zones, such as +0100 for CET; those of the log's own zone come first."""
    found = {name: f"{hours:+03}00" for name, hours in _ZONES.items()}
    for year in range(1990, datetime.now(UTC).year + 1):
        for month in (1, 7):
            moment = datetime(year, month, 1, tzinfo=ZoneInfo(time_zone))
            found[moment.strftime("%Z")] = moment.strftime("%z")[:5]
    return {name: offset for name, offset in found.items() if name.isalpha()}


def _in_digits(text: pl.Series, time_zone: str) -> pl.Series:
    """Return times with months as numbers and zones as offsets; texts without such are unchanged."""
    table = text.str.strip_chars().to_frame("text")
    month = rf"{_WEEKDAY}(?:\d\d?[ /-])?([a-z]{{3}})[a-z]*[ /-]+\d"
    number = pl.col("text").str.extract(month).str.to_lowercase().replace_strict(_MONTHS, default=None)
    plain = pl.col("text").str.replace(_CTIME, "${5}-MONTH-${2} ${3}${4}")
    plain = plain.str.replace(_DAY_FIRST, "${3}-MONTH-${1} ${4}").str.replace(_MONTH_FIRST, "${3}-MONTH-${2} ${4}")
    plain = plain.str.replace("MONTH", number, literal=True).str.strip_chars()
    table = table.select(text=pl.when(number.is_null()).then("text").otherwise(plain))
    zone = pl.col("text").str.extract(_ZONE, 2).str.to_uppercase()
    offset = zone.replace_strict(_offsets(time_zone), default=None, return_dtype=pl.String)
    bare = pl.col("text").str.replace(_ZONE, "${1}")
    return table.select(pl.when(offset.is_null()).then("text").otherwise(pl.concat_str(bare, offset))).to_series()


def local_moments(times: pl.Series, time_zone: str) -> tuple[pl.Series, pl.Series]:
    """
    Return Unix times of local times: the earlier and the later one, which differ in the hour that a clock repeats.

    Local times that do not exist (a skipped hour) are null.

    Examples
    --------
    >>> from datetime import datetime
    >>> clock = pl.Series([datetime(2023, 10, 29, 2, 30), datetime(2023, 3, 26, 2, 30)])
    >>> [times.to_list() for times in local_moments(clock, "Europe/Stockholm")]
    [[1698539400.0, None], [1698543000.0, None]]
    """
    first, second = (
        times.dt.replace_time_zone(time_zone, ambiguous=which, non_existent="null").dt.epoch("ms") / 1000
        for which in ("earliest", "latest")
    )
    return first, second


#: Marks between groups of digits; in India, groups but the last one have two digits.
_GROUP_MARKS = r"[, _'\x{a0}\x{2009}\x{202f}\x{2019}]"
_GROUPED = rf"^[+-]?\d{{1,3}}(?:{_GROUP_MARKS}\d{{2,3}})*{_GROUP_MARKS}\d{{3}}(?:\.\d+)?$"
_GROUPED_BY_POINTS = r"^[+-]?\d{1,3}(?:\.\d{3})+(?:,\d+)?$"
_DECIMAL_COMMA = r"^[+-]?[\d.]+,\d+$"


def amounts(text: pl.Series, *, are_whole: bool = False) -> pl.Series:
    """
    Return texts of numbers as floats, with decimal commas and grouped thousands; null for others.

    Other numbers of the column decide what a mark before three digits is. A comma groups thousands, as in 1,024, unless
    one has another comma. A point is decimal, as in 1.024, unless all numbers with points have groups of three digits,
    and one has several groups or a decimal comma, or, with ``are_whole``, would have a fraction.

    Examples
    --------
    >>> columns = ["1,024", " 2.5 "], ["1,024", "2,5"], ["1.024,5", "7"], ["1.024", "2,5"]
    >>> [amounts(pl.Series(column)).to_list() for column in columns]
    [[1024.0, 2.5], [1.024, 2.5], [1024.5, 7.0], [1024.0, 2.5]]
    >>> [amounts(pl.Series(column), are_whole=True).to_list() for column in (["1.024", "16"], ["1.5", "2.048"])]
    [[1024.0, 16.0], [1.5, 2.048]]
    """
    bare = text.to_frame("t").select(filled(pl.col("t"))).to_series()
    value = bare.cast(pl.Float64, strict=False)
    pointed = bare.filter(bare.str.contains(r"^[+-]?\d*\.\d"))
    odd = bare.set(value.is_not_null(), None)
    if odd.null_count() == len(odd) and not (are_whole and len(pointed)):
        return value
    is_grouped = odd.str.contains(_GROUPED)
    has_comma = odd.str.contains(_DECIMAL_COMMA) & ~is_grouped
    fractions = pointed.cast(pl.Float64, strict=False) if are_whole else pl.Series([], dtype=pl.Float64)
    has_groups = pointed.str.contains(r"\.\d{3}[.,]").any() or (fractions != fractions.floor()).any()
    if (has_comma.any() or has_groups) and pointed.str.contains(_GROUPED_BY_POINTS).all():
        bare = bare.str.replace_all(".", "", literal=True)
        value = bare.cast(pl.Float64, strict=False)
    if has_comma.any():
        plain = bare.str.replace(",", ".", literal=True).set(
            ~bare.str.contains(r"^[+-]?\d+,\d+$").fill_null(False), None
        )
    else:
        plain = odd.str.replace_all(_GROUP_MARKS, "").set(~is_grouped.fill_null(False), None)
    return value.fill_null(plain.cast(pl.Float64, strict=False))


def doubtful_points(text: pl.Expr) -> pl.Expr:
    """
    Return which numbers can have a decimal point or grouped thousands, as 2.048, if no other number decides it.

    Examples
    --------
    >>> columns = ["2.048", "16"], ["2.048", "2.5"], ["2.048", "0.512"], ["2.048", "1,5"]
    >>> [pl.Series(column).to_frame("t").select(doubtful_points(pl.col("t")).any()).item() for column in columns]
    [True, False, False, False]
    """
    is_doubtful = text.str.contains(r"^\s*[+-]?[1-9]\d{0,2}\.\d{3}\s*$")
    return is_doubtful & ~(text.str.contains("[.,]") & ~is_doubtful).any()


_UNIT_OF_TIME = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "mins": 60.0,
    "minute": 60.0, "minutes": 60.0, "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0, "w": 604800.0, "week": 604800.0, "weeks": 604800.0,
}  # fmt: skip


def spans(text: pl.Series) -> pl.Series:
    """
    Return durations with colons, days or units in seconds; null for others, and for bare numbers.

    Examples
    --------
    >>> spans(pl.Series(["01:30:00", "1-12", "2 days, 1:00:00", "90 min", "1h 30m", "PT2H", "7", "2 x"])).to_list()
    [5400.0, 129600.0, 176400.0, 5400.0, 5400.0, 7200.0, None, None]
    >>> spans(pl.Series(["1d 02:00:00", "1+02:00:00", "1:02:00:00", "1 w"])).to_list()
    [93600.0, 93600.0, 93600.0, 604800.0]
    """
    bare = text.to_frame("t").select(filled(pl.col("t"))).to_series()
    bare = bare.str.replace(r"(?i)^(\d+)\s*(?:d|days?,?|\+)\s*\+?(\d+:)", "${1}-${2}")
    bare = bare.str.replace(r"^(\d+):(\d+:\d+:\d+)", "${1}-${2}")
    plain = bare.str.replace(r"^P(\d+D)?T?((?:[\d.]+[HMS])*)$", "${1}${2}").str.to_lowercase()  # ISO 8601
    parts = plain.str.extract_all(r"\d+(?:\.\d+)?\s*[a-z]+")
    each = pl.element().str.extract(r"^([\d.]+)", 1).cast(pl.Float64, strict=False) * pl.element().str.extract(
        r"([a-z]+)$", 1
    ).replace_strict(_UNIT_OF_TIME, default=None, return_dtype=pl.Float64)
    is_valid = plain.str.contains(r"^(?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*)+$")
    values = parts.list.eval(each)
    is_valid &= ~parts.list.eval(each.is_null().cast(pl.Int64)).list.sum().fill_null(1).cast(pl.Boolean)
    of_units = values.list.sum().set(~is_valid.fill_null(False), None)
    spelled = bare.to_frame("t").select(pl.when(pl.col("t").str.contains(r"\d[:-]\d")).then(seconds(pl.col("t"))))
    return of_units.fill_null(spelled.to_series())


def tasks(text: str, most: int) -> tuple[list[int], bool]:
    """
    Return the tasks of an array's notation such as ``[3-20:4,30%2]``, and whether these are all.

    Examples
    --------
    >>> tasks("[3-20:4,30%2]", 10), tasks("[1,3,...]", 10), tasks("[0-99]", 10)
    (([3, 7, 11, 15, 19, 30], True), ([1, 3], False), ([], False))
    """
    found: list[int] = []
    is_whole = True
    for part in text.strip("[] ").partition("%")[0].split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?\s*", part)
        if match is None:
            is_whole = False
            continue
        numbers_of = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1) or 1)
        if len(found) + len(numbers_of) > most:
            return [], False
        found.extend(numbers_of)
    return found, is_whole
