"""Pictures of figures: identical files, whatever fonts the machine has."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import swflow.figures

FONTS = Path(swflow.figures.__file__).with_name("fonts")

#: Draw a chart with the letters and signs of the figures, and print the digests of its SVG and PNG.
SCRIPT = """
import hashlib
import altair as alt
from swflow.figures.parts import FigureData, finished_figure
from swflow.figures.pictures import to_png, to_svg
data = FigureData()
words = "easy − fcfs: ≥ 1 d, 1–10 min …"
chart = alt.Chart(data.add([{"x": 1, "y": words}])).mark_bar().encode(x=alt.X("x:Q", title="AVATAR"), y="y:N")
spec = finished_figure(data, [chart], "KTH-SP2: waits", "A caption.")
print(*(hashlib.sha256(part).hexdigest() for part in (to_svg(spec).encode(), to_png(spec))))
"""


def renamed(font: bytes, family: str) -> bytes:
    """Return a TrueType font under another family name, as a regular weight."""
    tables: dict[bytes, bytes] = {}
    for place in range(struct.unpack(">H", font[4:6])[0]):
        tag, _, offset, length = struct.unpack(">4sLLL", font[12 + 16 * place : 28 + 16 * place])
        tables[tag] = font[offset : offset + length]
    names = {1: family, 2: "Regular", 4: family, 6: family.replace(" ", "")}
    texts = {number: name.encode("utf-16-be") for number, name in names.items()}
    records, at = b"", 0
    for number, text in texts.items():
        records += struct.pack(">6H", 3, 1, 0x409, number, len(text), at)
        at += len(text)
    tables[b"name"] = struct.pack(">3H", 0, len(texts), 6 + len(records)) + records + b"".join(texts.values())
    tables[b"OS/2"] = tables[b"OS/2"][:4] + struct.pack(">H", 400) + tables[b"OS/2"][6:]
    head, body = font[:12], b""
    for tag, content in sorted(tables.items()):
        head += struct.pack(">4sLLL", tag, 0, 12 + 16 * len(tables) + len(body), len(content))
        body += content + b"\0" * (-len(content) % 4)
    return head + body


def digests(folder: Path) -> list[str]:
    """Draw where a folder has the only fonts of the machine."""
    (folder / "fonts.conf").write_text(f"<fontconfig><dir>{folder}</dir></fontconfig>")
    return subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"FONTCONFIG_FILE": str(folder / "fonts.conf")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()


@pytest.mark.slow
def test_figures_differ_between_machines_with_different_fonts(tmp_path):
    # A machine's own Liberation Sans used to take the place of the one in vl-convert.
    (tmp_path / "none").mkdir()
    (tmp_path / "others").mkdir()
    bold = (FONTS / "SwflowSans-Bold.ttf").read_bytes()
    for family in ("Liberation Sans", "Arial", "Helvetica", "sans-serif"):
        (tmp_path / "others" / f"{family}.ttf").write_bytes(renamed(bold, family))
    assert digests(tmp_path / "none") == digests(tmp_path / "others")


def test_a_figure_has_the_same_bytes_after_others_of_the_same_process():
    import altair as alt

    from swflow.figures.parts import FigureData, finished_figure
    from swflow.figures.pictures import to_svg

    def drawn(title: str) -> str:
        data = FigureData()
        rows = data.add([{"x": 1, "y": 2, "z": 3.0}, {"x": 2, "y": 3, "z": 4.0}])
        chart = alt.Chart(rows).mark_rect(clip=True).encode(x="x:Q", y="y:Q", color="z:Q")
        return to_svg(finished_figure(data, [chart], title, "A caption."))

    first, _ = drawn("A"), drawn("B")
    assert "clip" in first and "gradient" in first
    assert drawn("A") == first


def test_the_font_has_the_signs_of_the_figures():
    characters = set().union(*(path.read_text() for path in Path(swflow.figures.__file__).parent.rglob("*.py"))) - {
        "\n"
    }
    for weight in ("Regular", "Bold"):
        font = (FONTS / f"SwflowSans-{weight}.ttf").read_bytes()
        assert not {sign for sign in characters if not has_glyph(font, ord(sign))}
    assert not has_glyph(font, ord("漢"))


def has_glyph(font: bytes, code: int) -> bool:
    """Return whether the Unicode table (format 4) of a TrueType font has a character."""
    for place in range(struct.unpack(">H", font[4:6])[0]):
        tag, _, offset, _ = struct.unpack(">4sLLL", font[12 + 16 * place : 28 + 16 * place])
        if tag == b"cmap":
            break
    count = struct.unpack(">H", font[offset + 2 : offset + 4])[0]
    for place in range(count):
        platform, encoding, at = struct.unpack(">HHL", font[offset + 4 + 8 * place : offset + 12 + 8 * place])
        if (platform, encoding) == (3, 1):
            table = font[offset + at :]
            half = struct.unpack(">H", table[6:8])[0] // 2
            ends = struct.unpack(f">{half}H", table[14 : 14 + 2 * half])
            starts = struct.unpack(f">{half}H", table[16 + 2 * half : 16 + 4 * half])
            return any(start <= code <= end for start, end in zip(starts, ends, strict=True))
    raise AssertionError("no Unicode table")
