#!/usr/bin/env bash
# Adds swflow to the environment of swflow.yaml, which has only what swflow needs: the package that Snakemake imports, and
# its command. Snakemake runs this script in the new environment.
set -euo pipefail

packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
scripts=$(python -c 'import sysconfig; print(sysconfig.get_path("scripts"))')
python - "$SWFLOW_PACKAGE" "$packages" <<'END'
import sys
from pathlib import Path

package, packages = map(Path, sys.argv[1:])
if (package.parents[1] / "pyproject.toml").is_file():  # a clone, in whose src is nothing else
    (packages / "swflow.pth").write_text(f"{package.parent}\n")
else:
    (packages / package.name).symlink_to(package)
END
cat > "$scripts/swflow" <<END
#!$(command -v python)
from swflow.cli import main

main()
END
chmod +x "$scripts/swflow"
