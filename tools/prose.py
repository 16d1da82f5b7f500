"""
Check wording, spelling, line width and tables of the project's prose.

`python tools/prose.py [PATH …]` checks documentation, docstrings, comments and texts in strings, HTML and JavaScript of
the paths (default: the whole repository) and exits with 1 if it finds a problem. `--count` prints the number per file.
The phrases are in tools/prose.txt. "prose: ignore" on a line skips it.
"""

import argparse
import ast
import io
import itertools
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PHRASES = Path(__file__).with_name("prose.txt")
IGNORE = "prose: ignore"
SUFFIXES = (".md", ".rst", ".py", ".smk", ".yaml", ".yml", ".html", ".js", ".css")
#: Files whose text is data: phrases and quotations.
EXEMPT = ("tools/prose.txt", "tools/prose.py", "tests/test_prose.py", "CHANGELOG.md")
#: Widest line of Markdown prose; a line with a single sentence may be wider, up to `SENTENCE`. README.md has its own.
WIDTH, SENTENCE, README = 100, 180, 120
#: Words of the field, and names, that codespell does not know.
WORDS = "ake,ans,eazy,fo,hist,laf,mis,nd,notin,numer,ot,requestor,ser,te"

#: A string is a text if it has two words in a row and is no SQL and no option of a command.
TEXT = re.compile(r"[A-Za-z][a-z']* [a-z]")
CODE = re.compile(r"\b(SELECT|FROM|CREATE|INSERT|JOIN|WHERE|ORDER BY|CASE|UNION)\b|^\s*-|^[\w.]+ -")

Problem = tuple[int, str]


def phrases() -> list[tuple[re.Pattern[str], str]]:
    """Return the phrases to report, each with its suggestion."""
    found = []
    for line in PHRASES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pattern, _, suggestion = line.rpartition(" => ")
            found.append((re.compile(pattern, re.IGNORECASE), suggestion))
    return found


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of prose in a file: its number and text."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _python(text)
    elif path.suffix in (".md", ".rst"):
        yield from _markdown(text)
    elif path.suffix in (".html", ".js", ".css"):
        yield from _web(text, path.suffix)
    elif path.suffix == ".smk" or path.name == "Snakefile":
        yield from ((n, line.partition("#")[2]) for n, line in enumerate(text.splitlines(), 1) if "#" in line)
    else:  # YAML: without keys and single words of lists, which are names
        yield from (
            (n, re.sub(r"^\s*(- )?[\w.-]+:|^\s*- [\w-]+$|`[^`]*`|[\w+-]*-[\w-]+", "", line))
            for n, line in enumerate(text.splitlines(), 1)
        )


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside of code blocks, without inline code and addresses."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*`{3,}", line):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`|\]\([^)]*\)|<https?:[^>]*>", " ", line)


def _python(text: str) -> Iterator[tuple[int, str]]:
    """Yield comments, docstrings and texts in other strings."""
    above = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            number = token.start[0]
            # A line that continues a comment has no "#", which marks the beginning of a sentence.
            yield number, token.string.lstrip("#: ") if token.line.lstrip().startswith("#") and above else token.string
            above = number if token.line.lstrip().startswith("#") else 0
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            above = 0
    docstrings = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                docstrings.add(first.value)
                lines = text.splitlines()[first.lineno - 1 : first.end_lineno]
                yield from enumerate(lines, first.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings:
            yield from _texts(node.lineno, node.value)


def _texts(first: int, value: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a string if it is a text, without inline code."""
    if TEXT.search(value) and not CODE.search(value):
        yield from ((first + place, re.sub(r"`[^`]*`", " ", line)) for place, line in enumerate(value.splitlines()))


def _web(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Yield comments and texts of HTML, JavaScript or CSS, without tags and code."""
    kinds = [r"/\*.*?\*/"]
    if suffix == ".js":
        kinds += [r"(?<!:)//[^\n]*", r"`[^`\n]*`", r'"[^"\n]*"', r"'[^'\n]*'"]
    if suffix == ".html":
        text = re.sub(r"\{[{%].*?[%}]\}", lambda code: re.sub(r"[^\n]", " ", code[0]), text, flags=re.DOTALL)
        kinds += [r"<!--.*?-->", r">[^<>{}]+<"]
    for match in re.finditer("|".join(kinds), text, re.DOTALL):
        plain = re.sub(r"<[^>]*>|\$\{[^}]*\}", " ", match[0])
        if TEXT.search(plain):
            yield from enumerate(plain.splitlines(), text.count("\n", 0, match.start()) + 1)


def wording(path: Path, wanted: list[tuple[re.Pattern[str], str]]) -> list[Problem]:
    """Return the phrases of `tools/prose.txt` in a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = set()
    for number, text in prose(path):
        if number <= len(lines) and IGNORE in lines[number - 1]:
            continue
        for pattern, suggestion in wanted:
            if match := pattern.search(text):
                found.add((number, f'"{match[0]}": write {suggestion}'))
    return sorted(found)


def widths(path: Path) -> list[Problem]:
    """Return the lines of Markdown that are too wide; code, tables and lines that cannot be broken are exempt."""
    if path.suffix != ".md":
        return []
    found, fenced = [], False
    for number, whole in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = re.sub(r"(?<=.)<!--.*?-->", "", whole)  # comments within a line are not shown
        if re.match(r"\s*`{3,}", line):
            fenced = not fenced
        elif fenced or line.startswith(("|", "#", "<!--", "![")) or IGNORE in line or len(line.split()) < 4:
            continue
        elif path.name == "README.md" and path.parent == ROOT:
            if len(line) > README:
                found.append((number, f"{len(line)} characters; at most {README}"))
        elif len(line) > SENTENCE or (len(line) > WIDTH and re.search(r"[.!?:] +\S|\w$", line)):
            found.append((number, f"{len(line)} characters; at most {WIDTH}, or one sentence per line"))
    return found


def tables(path: Path) -> list[Problem]:
    """Return the lines of Markdown that would become a row of the table above them."""
    if path.suffix != ".md":
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        (number, "text in a table: put an empty line before it")
        for number, (above, line) in enumerate(itertools.pairwise(lines), 2)
        if above.startswith("|") and line.strip() and not line.startswith("|")
    ]


def spelling(paths: list[Path]) -> list[tuple[Path, Problem]]:
    """Return what codespell finds, if it is installed."""
    try:
        command = [sys.executable, "-m", "codespell_lib", "--ignore-words-list", WORDS, *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return []
    if "No module named" in done.stderr:
        print("prose: codespell is not installed; spelling is not checked", file=sys.stderr)
    matches = re.findall(r"^(.+?):(\d+): (.+ ==> .+)$", done.stdout, re.MULTILINE)
    found = [(Path(name), (int(number), text)) for name, number, text in matches]
    return [(path, problem) for path, problem in found if IGNORE not in _line(path, problem[0])]


def _line(path: Path, number: int) -> str:
    return path.read_text(encoding="utf-8").splitlines()[number - 1]


def files(paths: list[str]) -> list[Path]:
    """Return the files to check: those of git below the paths."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *(paths or ["."])],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    kept = (ROOT / name for name in listed if name not in EXEMPT and "/vendor/" not in name)
    return [path for path in kept if path.is_file() and (path.suffix in SUFFIXES or path.name == "Snakefile")]


def check(paths: list[Path]) -> dict[Path, list[Problem]]:
    """Return the problems of each file."""
    wanted = phrases()
    found = {path: wording(path, wanted) + widths(path) + tables(path) for path in paths}
    for path, problem in spelling(paths) if paths else []:
        found[path].append(problem)
    return {path: sorted(problems) for path, problems in found.items() if problems}


def main() -> int:
    """Run the check on the command line."""
    parser = argparse.ArgumentParser(
        description="Check wording, spelling, line width and tables of the project's prose."
    )
    parser.add_argument("paths", nargs="*", help="Files or folders (default: the whole repository).")
    parser.add_argument("--count", action="store_true", help="Print the number of problems per file.")
    options = parser.parse_args()
    found = check(files(options.paths))
    if options.count:
        for path, number in Counter({path: len(problems) for path, problems in found.items()}).most_common():
            print(f"{number:5} {path.relative_to(ROOT)}")
    else:
        for path, problems in found.items():
            for line, text in problems:
                print(f"{path.relative_to(ROOT)}:{line}: {text}")
    total = sum(map(len, found.values()))
    print(f"{total} problems in {len(found)} files" if total else "no problems", file=sys.stderr)
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
