"""
Count the words of the documentation, and check the limits of its length and of its sentences.

`python tools/words.py` prints a table with one row per page and exits with 1 if a limit is exceeded.
Prose includes headings and excludes code, tables and comments. Short sentences have at most seven words.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Most words of all pages, and fewest words of prose in the tutorials.
TOTAL, TUTORIALS = 36_000, 3_500
#: Fewest connectives per 1,000 words of prose, and largest share of short sentences.
CONNECTIVES, SHORT = 6.0, 0.18
#: Largest share of short sentences in one page.
PAGE_SHORT = 0.25
#: Most words of a short sentence.
FEW = 7
CONNECTIVE = re.compile(r"\b(because|therefore|however|instead|for example)\b", re.IGNORECASE)
WORD = re.compile(r"\S*\w\S*")


@dataclass
class Count:
    """Words, connectives and sentences of a page."""

    prose: int = 0
    tables: int = 0
    code: int = 0
    connectives: int = 0
    sentences: list[int] = field(default_factory=list)

    @property
    def words(self) -> int:
        """Return the number of all words."""
        return self.prose + self.tables + self.code

    @property
    def rate(self) -> float:
        """Return the connectives per 1,000 words of prose."""
        return 1000 * self.connectives / self.prose if self.prose else 0.0

    @property
    def short(self) -> float:
        """Return the share of short sentences."""
        return sum(size <= FEW for size in self.sentences) / len(self.sentences) if self.sentences else 0.0

    def __add__(self, other: "Count") -> "Count":
        """Return the sum of two pages."""
        return Count(
            self.prose + other.prose,
            self.tables + other.tables,
            self.code + other.code,
            self.connectives + other.connectives,
            self.sentences + other.sentences,
        )


def count(text: str) -> Count:
    """Count the words of a page in Markdown."""
    found, paragraph = Count(), [""]
    fenced = False
    for line in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).splitlines():
        if re.match(r"\s*`{3,}", line):
            fenced = not fenced
        elif fenced:
            found.code += len(WORD.findall(line))
        elif line.startswith("|"):
            found.tables += len(WORD.findall(line))
        elif line.startswith("#") or not line.strip():
            found.prose += len(WORD.findall(line))
            paragraph.append("")
        elif item := re.match(r"\s*([-*]|\d+\.)\s+(.*)", line):
            paragraph.append(item[2])
        else:
            paragraph[-1] += " " + line
    for part in paragraph:
        plain = re.sub(r"<[^>]*>|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|[*\[\]]", "", part).strip()
        found.prose += len(WORD.findall(plain))
        found.connectives += len(CONNECTIVE.findall(plain))
        # A heading of a list or an item without a period is no sentence, and an initial ends none.
        for sentence in re.split(r"(?<=[.!?])(?<!\b[A-Z]\.)[)\"]?\s+(?=[A-Z0-9`*(])", plain):
            if sentence.rstrip(')"').endswith((".", "!", "?")):
                found.sentences.append(len(WORD.findall(sentence)))
    return found


def pages() -> dict[str, Count]:
    """Return the counts of each page."""
    paths = sorted((ROOT / "docs").rglob("*.md"))
    return {str(path.relative_to(ROOT / "docs")): count(path.read_text(encoding="utf-8")) for path in paths}


def problems(counts: dict[str, Count]) -> list[str]:
    """Return the limits that the pages exceed."""
    every = sum(counts.values(), Count())
    taught = sum(value.prose for name, value in counts.items() if name.startswith("tutorials/"))
    found = []
    if every.words > TOTAL:
        found.append(f"docs: {every.words:,} words; at most {TOTAL:,}")
    if taught < TUTORIALS:
        found.append(f"docs/tutorials: {taught:,} words of prose; at least {TUTORIALS:,}")
    if every.rate < CONNECTIVES:
        found.append(f"docs: {every.rate:.1f} connectives per 1,000 words of prose; at least {CONNECTIVES:g}")
    if every.short > SHORT:
        found.append(f"docs: {every.short:.0%} of the sentences have at most {FEW} words; at most {SHORT:.0%}")
    for name, value in counts.items():
        if value.short > PAGE_SHORT:
            found.append(
                f"docs/{name}: {value.short:.0%} of the sentences have at most {FEW} words; at most {PAGE_SHORT:.0%}"
            )
    return found


def main() -> int:
    """Print the table of all pages and the limits that they exceed."""
    counts = pages()
    rows = [*counts.items(), ("all", sum(counts.values(), Count()))]
    print(f"{'page':40} {'words':>6} {'prose':>6} {'tables':>6} {'code':>6} {'connectives':>11} {'short':>6}")
    for name, value in rows:
        numbers = f"{value.words:6} {value.prose:6} {value.tables:6} {value.code:6}"
        print(f"{name:40} {numbers} {value.rate:11.1f} {value.short:6.0%}")
    found = problems(counts)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
