"""Draw docs/heatmap.png, the picture of the README: waits under two schedulers (`python docs/picture.py`)."""

from pathlib import Path

from generate import project

from swflow.figures import draw
from swflow.figures.pictures import to_png

#: Pixels per inch; the file stays below 200 kB.
RESOLUTION = 100
WIDTH, HEIGHT = 300, 190


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


if __name__ == "__main__":
    Path(__file__).with_name("heatmap.png").write_bytes(picture())
