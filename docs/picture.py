"""Makes docs/heatmap.png, the picture of the README (`python docs/picture.py`): waits under two schedulers."""

from pathlib import Path
from typing import Any

import vl_convert
from generate import project

from swflow.figures import draw

#: Pixels an inch; what is drawn stays below 200 kB.
RESOLUTION = 100
WIDTH, HEIGHT = 300, 190


def picture() -> bytes:
    """Return the picture, as PNG."""
    spec = draw(
        kind="heatmap",
        runs=["example/fcfs", "example/easy"],
        database=project() / "results/swflow.duckdb",
    )
    first, *_, waits, legend = spec["vconcat"]
    names = ("first come, first served", "the same with EASY backfilling")
    for panel, titled, name in zip(waits["hconcat"], first["hconcat"], names, strict=True):
        panel["title"] = titled["title"] | {"text": name}
        panel |= {"width": WIDTH, "height": HEIGHT}
    spec["title"]["text"] = "2,000 jobs on 128 processors: how long each waited, by the load that it met"
    spec["vconcat"] = [waits, legend]
    version = ".".join(spec["$schema"].rpartition("/v")[2].split(".")[:2])
    content: Any = vl_convert.vegalite_to_png(spec, vl_version=version, ppi=RESOLUTION)
    return bytes(content)


if __name__ == "__main__":
    Path(__file__).with_name("heatmap.png").write_bytes(picture())
