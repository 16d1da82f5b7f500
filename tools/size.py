"""Print the size of every package of swflow: all lines, and lines of code without docstrings, comments and blanks.

python tools/size.py [FOLDER]
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]

_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Return the number of lines with code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def main() -> None:
    """Print the sizes."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "src/swflow"
    total: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for path in sorted(folder.rglob("*.py")):
        package = path.relative_to(folder).parts[0] if path.parent != folder else "(top)"
        text = path.read_text()
        for name in (package, "total"):
            total[name] += len(text.splitlines())
            code[name] += code_lines(text)
    print(f"{'package':15}{'lines':>8}{'code':>8}")
    for name in [*sorted(total.keys() - {"total"}), "total"]:
        print(f"{name:15}{total[name]:8,}{code[name]:8,}")


if __name__ == "__main__":
    main()
