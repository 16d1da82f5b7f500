"""
Measure what the tests find: mutation testing of swflow's modules and of a plain simulator.

    python benchmarks/mutants.py conformance
    python benchmarks/mutants.py src/swflow/analysis --sample 40 --seed 1 [--minutes 8] [--nets unit laws]

A mutant is the source with one small defect: another comparison, operator, constant, or a statement less. The tests
kill a mutant if they fail on it, or do not end in time. `conformance` measures which mutants of a textbook simulator
the command `swflow conformance` sees.

Neither mutmut nor cosmic-ray can be used: both start a process per mutant that imports all libraries and, because the
kernels change, compiles them for minutes. Here kernels run as plain Python (``SWFLOW_INTERPRET=1``), and each mutant is
a fork of a process that has already imported the libraries. The fork replaces the source of one module in memory, so
no file changes, and runs only the tests that `mutants.yaml` lists for the module. That file also explains mutants
that no test can kill.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
NOTES = yaml.safe_load((ROOT / "benchmarks/mutants.yaml").read_text())

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}  # fmt: skip
OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"),
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "left": "right", "right": "left"}
NAMES |= {"floor": "ceil", "ceil": "floor"}

KILLED, TIMEOUT, SURVIVED = "killed", "timeout", "survived"


@dataclass(frozen=True)
class Mutant:
    """A file with one replaced piece of text."""

    path: Path
    line: int
    before: str
    after: str
    source: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}\n    - {self.before}\n    + {self.after}"


def mutants(path: Path, sample: int | None = None, draw: random.Random | None = None) -> list[Mutant]:
    """Return all mutants of a file in the order of its lines, or a sample of them."""
    text = path.read_text()
    source, lines = text.encode(), text.splitlines()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(line: int, column: int) -> int:
        return starts[line - 1] + column

    def span(node: Any) -> tuple[int, int]:
        return offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)

    found = {}
    edits = sorted(set(_edits(ast.parse(text), source, span)))
    if sample is not None and draw is not None and sample < len(edits):
        edits = draw.sample(edits, sample)
    for start, end, new in edits:
        changed = (source[:start] + new.encode() + source[end:]).decode()
        try:
            ast.parse(changed)
        except SyntaxError:
            continue
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1)
        new_lines = changed.splitlines()
        last_new = last + len(new_lines) - len(lines)
        before, after = (" ".join(map(str.strip, part)) for part in (lines[first:last], new_lines[first:last_new]))
        if before != after:
            found[start, changed] = Mutant(path, first + 1, before, after, changed)
    return [found[key] for key in sorted(found)]


def _edits(tree: ast.AST, source: bytes, span: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the replacements: the first and the last byte of the replaced text, and the new text."""

    def between(left: ast.AST, right: ast.AST, old: str, new: str) -> Iterator[tuple[int, int, str]]:
        """Replace an operator between two operands."""
        start, end = span(left)[1], span(right)[0]
        at = source.find(old.encode(), start, end)
        if at >= 0:
            yield at, at + len(old), new

    for node in _nodes(tree):
        start, end = span(node) if hasattr(node, "lineno") else (0, 0)
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rest):
                for one, right, op in zip([left, *rest], rest, ops, strict=False):
                    yield from between(one, right, *COMPARISONS[type(op)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                yield from between(left, right, *OPERATORS[type(op)])
            case ast.AugAssign(target=left, op=op, value=right) if type(op) in OPERATORS:
                was, new = OPERATORS[type(op)]
                yield from between(left, right, f"{was}=", f"{new}=")
                yield from between(left, right, f"{was}=", "=")
            case ast.BoolOp(op=op, values=values):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                for left, right in itertools.pairwise(values):
                    yield from between(left, right, *words)
            case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
                if not isinstance(operand, ast.Constant):
                    yield start, end, source[slice(*span(operand))].decode()
            case ast.Constant(value=bool(value)):
                yield start, end, str(not value)
            case ast.Constant(value=int(value) | float(value)):
                yield start, end, str(value + 1)
                if isinstance(value, float) and value not in (0, 1):
                    yield start, end, str(value * 1.5)
            case ast.Constant(value=str(value)) if value in NAMES:
                yield start, end, repr(NAMES[value])
            case ast.Name(id=name) if name in NAMES:
                yield start, end, NAMES[name]
            case ast.Attribute(attr=name) if name in NAMES:
                yield end - len(name), end, NAMES[name]
            case ast.Break():
                yield start, end, "continue"
            case ast.Continue():
                yield start, end, "break"
            case ast.Raise() | ast.Expr(value=ast.Call() | ast.YieldFrom()):
                yield start, end, "pass"
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute(), *_]):
                yield start, end, "pass"
            case ast.Return(value=ast.expr()) if not isinstance(node.value, ast.Constant):
                yield start, end, "return None"
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            first, last = span(node.test)
            yield first, last, f"(not ({source[first:last].decode()}))"


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that are executed, without annotations, messages and the scripts of modules."""
    skipped: list[Any] = []
    match tree:
        case ast.JoinedStr():
            return
        case ast.Raise(exc=ast.Name(id="NotImplementedError")):
            return  # the body of an operation that every machine replaces
        case ast.Raise():
            skipped = [tree.exc, tree.cause]
        case ast.AnnAssign():
            skipped = [tree.annotation, tree.target]
        case ast.arg():
            skipped = [tree.annotation]
        case ast.keyword(arg="strict"):
            return  # a check that lengths are equal, which they are
        case ast.FunctionDef():
            skipped = [tree.returns, *tree.decorator_list]
        case ast.ClassDef():
            skipped = list(tree.decorator_list)
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return
    yield tree
    for child in ast.iter_child_nodes(tree):
        if not any(child is one for one in skipped):
            yield from _nodes(child)


# -- tests in a fork


class MutatedModule(importlib.abc.MetaPathFinder):
    """Import one module from the source of a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        relative = mutant.path.relative_to(ROOT / "src").with_suffix("")
        parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        self.name, self.mutant = ".".join(parts), mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module with the mutant's code."""
        if name != self.name:
            return None
        mutant = self.mutant

        class Loader(importlib.machinery.SourceFileLoader):
            def get_code(self, fullname: str) -> Any:
                return compile(mutant.source, str(mutant.path), "exec", dont_inherit=True)

        loader = Loader(name, str(mutant.path))
        return importlib.util.spec_from_file_location(name, mutant.path, loader=loader)


def verdict_of(mutant: Mutant | None, net: dict[str, Any], seconds: float) -> tuple[str, float]:
    """
    Run the tests of a net in a fork; return the verdict and the seconds of processor time that it took.

    The limit counts processor time, so that a busy machine kills no mutant.
    """
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
        _run(mutant, net)
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            took = used.ru_utime + used.ru_stime
            break
        if time.monotonic() - began > 60 + 20 * seconds:  # it waits for something
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return TIMEOUT, time.monotonic() - began
        time.sleep(0.02)
    if os.WIFSIGNALED(status):
        return TIMEOUT, took
    return SURVIVED if status == 0 else KILLED, took


def _run(mutant: Mutant | None, net: dict[str, Any]) -> None:
    """Run pytest in this process, on a mutant of a module, and end the process."""
    status = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        if net.get("interpret", True):
            os.environ["SWFLOW_INTERPRET"] = "1"
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        os.environ["SWFLOW_RANDOM_CASES"] = str(net.get("cases", 12))
        if mutant is not None:
            finder = MutatedModule(mutant)
            sys.meta_path.insert(0, finder)
            importlib.import_module(finder.name)  # before pytest, which reads files on its command line itself
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.chdir(ROOT)
        import pytest
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.generate]
        settings.register_profile("mutants", phases=phases, database=None, derandomize=True, deadline=None)
        settings.load_profile("mutants")
        with tempfile.TemporaryDirectory() as folder:
            options = ["-oaddopts=--doctest-modules -m 'not slow and not archive'", "-x", "-q", "--assert=plain"]
            options.append(f"--basetemp={folder}/pytest")
            options += [f"-pno:{plugin}" for plugin in ("cacheprovider", "unraisableexception", "threadexception")]
            status = int(pytest.main([*options, *net["tests"]]))
    finally:
        os._exit(status)


#: What most tests import; it is imported once, before the forks.
LIBRARIES = (
    "_pytest.doctest", "_pytest.unittest", "duckdb", "hypothesis", "numba", "numpy", "ot.lp", "polars", "pytest",
    "scipy.optimize", "scipy.stats", "typer", "yaml",
)  # fmt: skip


def nets_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the tests of a module by net, from its own entry or that of its folder, those of survivors last."""
    name = path.relative_to(ROOT).as_posix()
    known = [prefix for prefix in NOTES["nets"] if name.startswith(prefix)]
    if not known:
        raise SystemExit(f"{name}: no tests in mutants.yaml")
    found = NOTES["nets"][max(known, key=len)]
    found = dict(sorted(found.items(), key=lambda net: bool(net[1].get("survivors"))))
    examples = {"interpret": next(iter(found.values())).get("interpret", True), "tests": [name]}
    return {"examples": examples, **found} if ">>>" in path.read_text() else found


def explained(mutant: Mutant) -> bool:
    """
    Return whether `mutants.yaml` explains a mutant: its line, any mutant of the line, or a pattern of changes.

    An entry with ``below`` is for a line below that one, because there are others alike.
    """
    name, change = mutant.path.relative_to(ROOT).as_posix(), f"{mutant.before} -> {mutant.after}"
    notes = [entry for entry in NOTES["explained"] if (entry["file"], entry["before"]) == (name, mutant.before)]
    above = mutant.source.splitlines()[mutant.line - 2].strip()
    notes = [entry for entry in notes if entry.get("below", above) == above]
    if any("after" not in entry or mutant.after in entry["after"] for entry in notes):
        return True
    rules = (rule for rule in NOTES["rules"] if name.startswith(rule["files"]))
    return any(re.fullmatch(f".*{rule['change']}.*", change) for rule in rules)


def test_modules(arguments: argparse.Namespace) -> int:
    """Sample mutants of modules, and print what survives and a table."""
    for name in LIBRARIES:
        importlib.import_module(name)
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    draw, until = random.Random(arguments.seed), time.monotonic() + 60 * arguments.minutes
    files = [
        path for place in arguments.places for path in ([place] if place.is_file() else sorted(place.rglob("*.py")))
    ]
    work = [mutant for path in files for mutant in mutants(path.resolve(), arguments.sample, draw)]
    draw.shuffle(work)
    limits: dict[str, float] = {}
    counts: dict[str, Counter[str]] = {}
    for mutant in work:
        if time.monotonic() > until:
            print("the time is over")
            break
        counted = counts.setdefault(mutant.path.relative_to(ROOT).as_posix(), Counter())
        counted["made"] += 1
        if explained(mutant):
            counted["explained"] += 1
            continue
        killers = []
        for title, net in nets_of(mutant.path).items():
            skipped = killers and (arguments.first or net.get("survivors"))
            if skipped or (arguments.nets and title not in arguments.nets):
                continue
            key = str(net)
            if key not in limits:
                verdict, took = verdict_of(None, net, 600)
                if verdict != SURVIVED:
                    raise SystemExit(f"{title}: {verdict} without a mutant: {net}")
                limits[key] = 5 + 2 * took
                print(f"{title}: {took:.0f} s: {net}", flush=True)
            if verdict_of(mutant, net, limits[key])[0] != SURVIVED:
                killers.append(title)
        counted.update(killers)
        counted["killed"] += bool(killers)
        print(f"killed by {', '.join(killers)}: {mutant}" if killers else f"survived: {mutant}", flush=True)
    print_counts(counts)
    return 0


def print_counts(counts: dict[str, Counter[str]]) -> None:
    """Print a table of the counts by module, with a row of sums."""
    fixed = ("made", "killed", "explained")
    nets = list(dict.fromkeys(net for counted in counts.values() for net in counted if net not in fixed))
    print("| module | made | killed | " + "".join(f"by {net} | " for net in nets) + "explained | surviving |")
    print("|---|" + "---:|" * (len(nets) + 4))
    for name, counted in [*sorted(counts.items()), ("all", sum(counts.values(), Counter[str]()))]:
        left = counted["made"] - counted["killed"] - counted["explained"]
        cells = [counted["made"], counted["killed"], *(counted[net] for net in nets), counted["explained"], left]
        print(f"| {name} | " + " | ".join(map(str, cells)) + " |")


# -- the conformance suite


def test_conformance(_: argparse.Namespace) -> int:
    """Print which mutants of two textbook simulators the conformance suite does not see."""
    sys.path.insert(0, str(ROOT / "src"))
    from swflow.conformance.judge import judge_case
    from swflow.conformance.suite import cases_of

    missed = 0
    for name, policies in NOTES["simulators"].items():
        suite, counts, path = cases_of(policies), Counter[str](), ROOT / name
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "mutant.py"
            for mutant in mutants(path):
                if "defect" in mutant.before:
                    continue  # the code of deliberate defects, which is not part of the simulator
                program.write_text(mutant.source)
                command = f"{sys.executable} -S -E {program} {{log}} {{processors}} {{policy}}"
                seen = any(judge_case(command, case, 2.0).is_wrong for case in suite)
                kind = "seen" if seen else "explained" if explained(mutant) else "not seen"
                counts[kind] += 1
                if kind == "not seen":
                    print(f"not seen: {mutant}", flush=True)
        made = counts.total()
        print(f"{name}: {made} mutants, {counts['seen']} seen ({counts['seen'] / made:.1%}), ", end="")
        print(f"{counts['explained']} explained, {counts['not seen']} not seen", flush=True)
        missed += counts["not seen"]
    return 1 if missed else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, help="modules or folders, or the word conformance")
    parser.add_argument("--sample", type=int, help="this many mutants per module (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=8.0, help="stop after this time (default: 8)")
    parser.add_argument("--nets", nargs="+", help="only these nets: examples, unit, random, laws, conformance, fuzz")
    parser.add_argument("--first", action="store_true", help="stop at the first net that kills a mutant")
    arguments = parser.parse_args()
    for entry in NOTES["explained"]:
        if entry["before"] not in map(str.strip, (ROOT / entry["file"]).read_text().splitlines()):
            print(f"mutants.yaml: {entry['file']} has no line {entry['before']!r} anymore; remove its explanation")
    return (test_conformance if arguments.places == [Path("conformance")] else test_modules)(arguments)


if __name__ == "__main__":
    sys.exit(main())
