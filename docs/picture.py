"""
Draw the pictures of the README: docs/heatmap.png, waits under two schedulers, and docs/report.png, the overview.

    python docs/picture.py [results/report/index.html]

The overview is a screenshot of the given report by Chromium; without a report, it stays as it is.
"""

import subprocess
import sys
from pathlib import Path

from generate import project

from swflow.figures import draw
from swflow.figures.pictures import to_png

#: Pixels per inch; the file stays below 200 kB.
RESOLUTION = 100
WIDTH, HEIGHT = 300, 190

#: Pixels of the overview: up to the end of its findings.
OVERVIEW = 1200, 800


def picture() -> bytes:
    """Return the picture as PNG."""
    spec = draw(
        kind="heatmap",
        runs=["example/fcfs", "example/easy"],
        database=project() / "results/swflow.duckdb",
    )
    first, *_, waits, legend = spec["vconcat"]
    names = ("first come, first served", "EASY backfilling")
    for panel, titled, name in zip(waits["hconcat"], first["hconcat"], names, strict=True):
        panel["title"] = titled["title"] | {"text": name}
        panel |= {"width": WIDTH, "height": HEIGHT}
    spec["title"]["text"] = "14,000 jobs on 128 processors: wait time by load"
    spec["vconcat"] = [waits, legend]
    return to_png(spec, RESOLUTION)


def screenshot(report: Path, output: Path) -> None:
    """Write the top of a report's overview as PNG."""
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    size = f"--window-size={OVERVIEW[0]},{OVERVIEW[1]}"
    subprocess.run([*browser, size, f"--screenshot={output}", report.resolve().as_uri()], check=True)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:2]):
        screenshot(path, Path(__file__).with_name("report.png"))
    Path(__file__).with_name("heatmap.png").write_bytes(picture())
