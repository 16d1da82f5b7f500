"""Compare every Parquet file of two results folders column by column: names, types, nulls and values.

    python benchmarks/compare_results.py BEFORE AFTER [--renamed OLD=NEW …] [--only 'runs/*'] [--most 50]

Values are equal if they are the same to the last bit; NaN equals NaN, and null equals null. A file or column that one
folder lacks, another type, another number of rows, and unequal values are differences. Each file with a difference has
one line per column, then a table counts them by folder and column. The exit status is 1 if there is any.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

#: Columns that were renamed on purpose: the old name to the new one.
RENAMED = {"lookahead": "reservations"}


def difference(old: pl.Series, new: pl.Series) -> tuple[str, float] | None:
    """Return how two columns of equal length differ, and the largest difference of their numbers; None if equal."""
    if old.dtype != new.dtype:
        return f"type {old.dtype} became {new.dtype}", 0.0
    unequal = ~old.eq_missing(new)
    if not unequal.any():
        return None
    largest = 0.0
    rows, nulls = int(unequal.sum()), new.null_count() - old.null_count()
    first = int(unequal.arg_max() or 0)
    text = f"{rows:,} of {len(old):,} values, the first in row {first}: {old[first]!r} became {new[first]!r}"
    if old.dtype.is_numeric():
        largest = float((new.cast(pl.Float64) - old.cast(pl.Float64)).abs().fill_nan(None).max() or 0.0)
        text += f"; largest difference {largest:.3g}"
    return text + (f"; {nulls:+,} nulls" if nulls else ""), largest


def differences(before: Path, after: Path, renamed: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Yield each column in which two files differ, how, and by how much; an empty name stands for all columns."""
    old, new = (pl.read_parquet(path, glob=False) for path in (before, after))
    old = old.rename({name: renamed[name] for name in old.columns if name in renamed and name not in new.columns})
    for name in [name for name in old.columns if name not in new.columns]:
        yield name, "the column is missing afterwards", 0.0
    for name in [name for name in new.columns if name not in old.columns]:
        yield name, "the column is new", 0.0
    if old.height != new.height:
        yield "", f"{old.height:,} rows became {new.height:,}", 0.0
        return
    for name in [name for name in old.columns if name in new.columns]:
        found = difference(old[name], new[name])
        if found:
            yield name, *found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="a column renamed on purpose")
    parser.add_argument("--only", default="*", help="a pattern of the paths inside the folders (default: all)")
    parser.add_argument("--most", type=int, default=50, help="lines per folder and column (default: 50)")
    options = parser.parse_args()
    renamed = RENAMED | dict(text.split("=", 1) for text in options.renamed)
    files = [
        {str(path.relative_to(folder)) for path in folder.rglob("*.parquet") if not path.name.startswith(".")}
        for folder in (options.before, options.after)
    ]
    before, after = ({name for name in names if fnmatch(name, options.only)} for names in files)
    if not before & after:
        sys.exit(f"{options.before}, {options.after}: no Parquet file in both; expected two results folders")
    counts: Counter[tuple[str, str]] = Counter()
    largest: dict[tuple[str, str], float] = {}
    equal = 0
    for name in sorted(before & after):
        folder = name.partition("/")[0]
        found = list(differences(options.before / name, options.after / name, renamed))
        equal += not found
        for column, text, by in found:
            place = (folder, column or "(rows)")
            counts[place] += 1
            largest[place] = max(largest.get(place, 0.0), by)
            if counts[place] <= options.most:
                print(f"{name}: {column + ': ' if column else ''}{text}", flush=True)
    for where, names in (("before", before - after), ("after", after - before)):
        for folder, count in sorted(Counter(name.partition("/")[0] for name in names).items()):
            print(f"only {where}: {count:,} files of {folder}, such as {min(n for n in names if n.startswith(folder))}")
    print(f"{equal:,} of {len(before & after):,} files in both folders are equal")
    for (folder, column), count in sorted(counts.items()):
        print(f"| {folder} | {column} | {count:,} files | largest difference {largest[folder, column]:.3g} |")
    sys.exit(1 if counts or before ^ after else 0)


if __name__ == "__main__":
    main()
