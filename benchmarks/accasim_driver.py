"""
Run AccaSim (PyPI: accasim) on a log, with one processor per node; `peers.py` runs this script with AccaSim's Python.

    python benchmarks/accasim_driver.py kth.swf 100 easy > starts.txt
"""

import collections
import collections.abc
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

for _name in ("Mapping", "MutableMapping", "Iterable", "Sequence"):
    if not hasattr(collections, _name):  # AccaSim 1.1 expects them where Python had them until 3.9
        setattr(collections, _name, getattr(collections.abc, _name))

from accasim.base.allocator_class import FirstFit  # noqa: E402
from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut  # noqa: E402
from accasim.base.simulator_class import Simulator  # noqa: E402


def main(log: str, processors: int, policy: str) -> None:
    """Simulate, and print the number and start time of each job, one per line, in seconds of the log's clock."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    log = str(Path(log).resolve())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        system = {
            "groups": {"node": {"core": 1}},
            "resources": {"node": processors},
            "equivalence": {"processor": {"core": 1}},
            "start_time": 0,
        }
        Path("system.json").write_text(json.dumps(system))
        dispatcher = (EASYBackfilling if policy == "easy" else FirstInFirstOut)(FirstFit())
        simulator = Simulator(
            log, "system.json", dispatcher, statistics_output=False, show_statistics=False,
            RESULTS_FOLDER_NAME=str(Path("out").resolve()), LOG_LEVEL="ERROR",
        )  # fmt: skip
        began = time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            simulator.start_simulation()
        print("simulation:", time.process_time() - began, file=sys.stderr)
        for line in next(Path("out").glob("sched-*")).read_text().splitlines():
            job, _, start = line.split("__")
            began = time.mktime(time.strptime(start.split(";")[0], "%Y-%m-%d %H:%M:%S")) if start[0].isdigit() else -1
            print(job.split(";")[0], began)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
