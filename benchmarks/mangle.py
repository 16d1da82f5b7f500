"""
Damage thousands of files, and run every command that takes them; see `tests/mangle.py`.

    python benchmarks/mangle.py --seed 1 --cases 20000
    python tests/mangle.py --seed 1 --case 123 --keep /tmp/case   # repeat one case, and keep its files

20,000 cases take about an hour on two processors. The exit status is 1 if there is a violation.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import mangle

if __name__ == "__main__":
    if not {"--cases", "--case"} & {*sys.argv}:
        sys.argv += ["--cases", "20000"]
    if "--workers" not in sys.argv:
        sys.argv += ["--workers", str(os.cpu_count() or 1)]
    mangle.main()
