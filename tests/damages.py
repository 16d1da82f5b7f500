"""Damage files in many ways: bits, numbers, words, lines, lengths, encodings, types, and what is not a file."""

import contextlib
import json
import os
import random
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

#: Invalid numbers, which no field accepts.
NO_NUMBERS = ("1" * 5000, "9" * 400, "inf", "-inf", "nan", "1e400", "0x10", "12abc", "--5", "1e-5e", "٣", "1_0", "½")
#: Numbers that some fields accept.
NUMBERS = (
    "-1", "0", "-8", "1e12", "1e300", "1.5", "-0.0", "9223372036854775807", "9223372036854775808", "4294967295",
    "4294967296", "18446744073709551615", "-9223372036854775808", "1700000000000", "00012", "1e3", "2147483648",
    "99999999",
)  # fmt: skip
WORDS = (
    "\x1b[31m", "\x1b]0;title\x07", "\r", "\x9b2J", "\u202egnp.exe", "\u2028", "a" * 10_000, "null", "true", "[]", "{}",
    "1996-09-31", "2099-01-01T00:00:00", "0000-00-00", "😀", "'", '"', "{", "*a", "&a", "!!python/object:x", "", " ",
    "%s", "../../x", "-", "UNLIMITED", "Unknown", "\\", "\ufeff", "#", ";", "<<: x", "~", "2023-03-06T25:61:61",
    "99999-01-01",
)  # fmt: skip


class Damage(NamedTuple):
    """What was done to a file, and whether it is invalid, so that a changed result needs a note."""

    what: str
    must_note: bool = False


_NAMES = re.compile(rb"^;[ \t]*(?:User|Group|Queue|Partition)s?:.*$", re.MULTILINE)


def damage(file: Path, rng: random.Random) -> Damage:
    """Damage a file in one of many ways."""
    if rng.random() < 0.04 and file.suffix:
        return _no_file(file, rng)
    if file.suffix == ".parquet":
        return _damage_parquet(file, rng)
    if file.suffix == ".json" and rng.random() < 0.5:
        return _damage_json(file, rng)
    content = file.read_bytes()
    kind = rng.choice(
        ["bytes", "number", "number", "no number", "no number", "word", "word", "lines", "long", "encoding"]
    )
    changed, what, must_note = _TEXT_DAMAGES[kind](content, rng)
    file.write_bytes(changed)
    if file.suffix in (".gwf", ".csv"):  # the ids of jobs, in the first column, are names; an empty cell may be "nan"
        must_note &= _first_fields(content) == _first_fields(changed) and what != "no number nan"
    if file.suffix == ".swf":  # lines with names are copied as they are
        must_note &= _NAMES.findall(content) == _NAMES.findall(changed)
    return Damage(what, must_note and file.suffix in (".swf", ".txt", ".gwf", ".csv"))


def _first_fields(content: bytes) -> list[bytes]:
    """Return the first field of each line."""
    return [re.split(rb"[,\t]", line)[0] for line in content.split(b"\n")]


def _no_file(file: Path, rng: random.Random) -> Damage:
    """Replace a file by a folder, a pipe, a device or a broken link."""
    kind = rng.choice(["folder", "fifo", "/dev/zero", "/dev/null", "dangling", "loop", "socket", "unreadable name"])
    file.unlink()
    if kind == "folder":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "socket":
        os.mknod(file, stat.S_IFSOCK | 0o600)
    elif kind in ("dangling", "unreadable name"):
        file.symlink_to("nothing\x1b[31m" if kind != "dangling" else "nothing")
    else:
        file.symlink_to(file.name if kind == "loop" else kind)
    return Damage(kind)


def _bytes(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    kind = rng.choice(["flip", "cut", "drop", "double", "noise", "nul", "empty"])
    place, length = rng.randrange(len(content)), rng.choice([1, 5, 200])
    data = bytearray(content)
    if kind == "flip":
        for _ in range(rng.choice([1, 3, 50])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del data[place:]
    elif kind == "drop":
        del data[place : place + length]
    elif kind == "double":
        data[place:place] = data[place : place + length]
    elif kind == "noise":
        data[place:place] = rng.randbytes(length)
    elif kind == "nul":
        data[place:place] = b"\0" * length
    else:
        data = bytearray(rng.choice([b"", b"\n", b" \n\n", b"\xff\xfe"]))
    return bytes(data), kind, False


def _replaced(content: bytes, pattern: bytes, new: str, rng: random.Random) -> bytes:
    """Replace one match of a pattern."""
    found = list(re.finditer(pattern, content))
    if not found:
        return content + new.encode("utf-8", "surrogateescape")
    match = rng.choice(found)
    return content[: match.start()] + new.encode("utf-8", "surrogateescape") + content[match.end() :]


def _number(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    new = rng.choice(NUMBERS)
    return _replaced(content, rb"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w.])", new, rng), f"number {new}", False


def _no_number(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    new = rng.choice(NO_NUMBERS)
    changed = _replaced(content, rb"(?<![\w.:(\-])[0-9]+(?:\.[0-9]+)?(?![\w.:\-])", new, rng)
    return changed, f"no number {new[:12]}", True


def _word(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    new = rng.choice(WORDS)
    return (
        _replaced(content, rng.choice([rb"[A-Za-z][\w-]*", rb"[^\s|,;:=]+", rb"[|,;:= ]"]), new, rng),
        f"word {new[:12]!r}",
        False,
    )


def _lines(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    kind = rng.choice(["drop", "double", "shuffle", "many", "reverse", "join", "header only", "crlf", "cr"])
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    if kind == "drop":
        del lines[place]
    elif kind == "double":
        lines.insert(place, lines[place])
    elif kind == "shuffle":
        rng.shuffle(lines)
    elif kind == "many":
        lines[place:place] = [lines[place]] * 3000
    elif kind == "reverse":
        lines.reverse()
    elif kind == "join":
        lines[place : place + 2] = [b"".join(lines[place : place + 2])]
    elif kind == "header only":
        lines = lines[:1]
    else:
        return content.replace(b"\n", b"\r\n" if kind == "crlf" else b"\r"), kind, False
    return b"\n".join(lines), f"{kind} lines", False


def _long(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    kind = rng.choice(["separators", "brackets", "spaces", "one line", "ranges", "letters", "backslashes", "aliases"])
    new = {
        "separators": rng.choice([b"|", b",", b"\t", b";", b":", b"=", b"&", b"+"]) * 200_000,
        "brackets": rng.choice([b"[", b"{", b"(", b"- ", b"[{"]) * 50_000,
        "spaces": b" " * 500_000,
        "one line": b"x=1 " * 100_000,
        "ranges": b"n[0-99999][0-99999]",
        "letters": b"a" * 1_000_000,
        "backslashes": b"\\\n" * 50_000,
        "aliases": b"\na0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (n + 1, n + 1, b",".join([b"*a%d" % n] * 9)) for n in range(9)),
    }[kind]
    found = [match.start() for match in re.finditer(rb"\b|\n", content)] or [0]
    place = rng.choice(found)
    if kind == "ranges":
        return re.sub(rb"n\[[^ ]*\]|g1", new, content, count=1), kind, False
    return content[:place] + new + content[place:], f"long {kind}", False


def _encoding(content: bytes, rng: random.Random) -> tuple[bytes, str, bool]:
    text = content.decode("utf-8", "replace")
    kind = rng.choice(["utf-16", "utf-8-sig", "latin-1", "cp037", "gzip", "surrogates"])
    if kind == "gzip":
        import gzip

        return gzip.compress(content), kind, False
    if kind == "latin-1":
        return text.replace("e", "é", 3).encode("latin-1", "replace"), kind, False
    if kind == "surrogates":
        return content.replace(b"a", b"\xed\xa0\x80", 2), kind, False
    return text.encode(kind, "replace"), kind, False


_TEXT_DAMAGES: dict[str, Callable[[bytes, random.Random], tuple[bytes, str, bool]]] = {
    "bytes": _bytes, "number": _number, "no number": _no_number, "word": _word, "lines": _lines, "long": _long,
    "encoding": _encoding,
}  # fmt: skip

_VALUES: list[Any] = [
    None, True, -1, 0, 1.5, 1e300, 2**63 - 1, 2**63, 2**64, 10**400, "", "x", "1" * 5000, "\x1b[31m", "nan", [], {},
    [1], [[]], {"set": True}, {"set": True, "number": "x"}, {"infinite": True}, float("inf"), float("nan"), "\ud800",
    1700000000000, ["a", 1], {"number": 2**70, "set": True}, "a\nb",
]  # fmt: skip


def _damage_json(file: Path, rng: random.Random) -> Damage:
    """Replace, drop or rename one value of a JSON file."""
    content = json.loads(file.read_text())
    content, what = _changed(content, rng)
    file.write_text(json.dumps(content), errors="surrogatepass")
    return Damage(what)


def _changed(content: Any, rng: random.Random) -> tuple[Any, str]:
    """Change one value of a structure of lists and mappings."""
    places: list[tuple[Any, Any]] = []

    def visit(part: Any) -> None:
        for key in part if isinstance(part, dict) else range(len(part)):
            places.append((part, key))
            if isinstance(part[key], dict | list):
                visit(part[key])

    visit(content)
    if not places or rng.random() < 0.02:
        return rng.choice(_VALUES), "the whole"
    part, key = rng.choice(places)
    if rng.random() < 0.2:
        del part[key]
        return content, f"without {key}"
    value = part[key] = rng.choice(_VALUES)
    return content, f"{key}: {str(value)[:12] if not isinstance(value, int) or value < 2**64 else 'long'!r}"


def _damage_parquet(file: Path, rng: random.Random) -> Damage:
    """Damage the metadata, a column or the bytes of a Parquet file."""
    import polars as pl

    if rng.random() < 0.15:
        changed, what, _ = _bytes(file.read_bytes(), rng)
        file.write_bytes(changed)
        return Damage(what)
    about = {key: text for key, text in pl.read_parquet_metadata(file).items() if key != "ARROW:schema"}
    table = pl.read_parquet(file)
    if about and rng.random() < 0.5:
        if rng.random() < 0.1:
            what, about["swflow"] = (
                "no JSON",
                rng.choice(["", "{", "[" * 100_000, "null", "[]", '{"kind": "workload"}']),
            )
        else:
            content, what = _changed(json.loads(about["swflow"]), rng)
            about["swflow"] = json.dumps(content)
        table.write_parquet(file, metadata=about)
        return Damage(f"metadata {what}")
    name = rng.choice(table.columns)
    kind = rng.choice(
        ["drop", "text", "null", "value", "rename", "control", "float", "list", "no row", "double", "bool", "unsigned"]
    )
    if kind == "drop":
        table = table.drop(name)
    elif kind == "rename" or kind == "control":
        table = table.rename({name: "x" if kind == "rename" else f"{name}\x1b[31m\n"})
    elif kind == "null":
        table = table.with_columns(pl.lit(None).alias(name))
    elif kind == "no row":
        table = table.clear()
    elif kind == "double":
        table = pl.concat([table, table])
    elif kind == "list":
        table = table.with_columns(pl.concat_list(name).alias(name))
    elif kind == "value":
        value = rng.choice([-1, 0, 2**31, 2**62, -(2**62), 1e300, float("inf"), float("nan"), -1e15, 1e13])
        with contextlib.suppress(Exception):
            values = table[name].to_list()
            values[rng.randrange(len(values))] = value
            column = pl.Series(name, values, strict=False)
            table = table if column.dtype == pl.Object else table.with_columns(column)  # no file can contain objects
    else:
        types: dict[str, Any] = {"text": pl.String, "float": pl.Float32, "bool": pl.Boolean, "unsigned": pl.UInt64}
        with contextlib.suppress(pl.exceptions.PolarsError):
            table = table.with_columns(pl.col(name).cast(types[kind], strict=False))
    table.write_parquet(file, metadata=about)
    return Damage(f"{name} {kind}")
