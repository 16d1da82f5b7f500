"""
YAML: swflow's own files, and texts of users.

The C library parses ten times faster than Python. It ends the process if a text is too deeply nested. Therefore, the
levels of a user's text are counted before its content is created.
"""

import os
import re
from collections.abc import Hashable
from typing import Any

import yaml

from swflow.errors import SwflowError
from swflow.files.reading import LEVELS, read_text
from swflow.values import Limit

#: The loader of plain values; in Python where PyYAML was built without the library.
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Limit of the values of a text in which every alias (``*name``) counts with all that it stands for.
VALUES = Limit(2_000_000, "values, with aliases written out")


def parse_yaml(text: str) -> Any:
    """Return the content of one of swflow's own YAML texts."""
    return yaml.load(text, SafeLoader)


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Return the content of a user's YAML file; see `parse_user_yaml`."""
    return parse_user_yaml(read_text(path), str(path))


def parse_user_yaml(text: str, where: str) -> Any:
    """
    Return the content of a user's YAML text; raise an error with the line of its first mistake.

    Mistakes are also keys that a mapping has twice, dates and numbers that do not exist, deep nesting, and aliases that
    stand for millions of values. ``where`` is the file or option, for error messages.

    Examples
    --------
    >>> parse_user_yaml("{a: 1, a: 2}", "my.yaml")
    Traceback (most recent call last):
    swflow.errors.SwflowError: my.yaml:1: invalid YAML (a is given twice)
    """
    try:
        _check_size(text, where)
        return yaml.load(text, _UniqueKeys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f":{mark.line + 1}" if mark and not where.startswith("--") else ""  # an option is one line
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        if "nest" in str(problem):  # PyYAML and libyaml have limits of their own
            raise SwflowError(f"{where}{line}: invalid YAML (too deeply nested)") from None
        raise SwflowError(f"{where}{line}: invalid YAML ({' '.join(str(problem).split())[:200]})") from None
    except RecursionError:
        raise SwflowError(f"{where}: invalid YAML (too deeply nested)") from None


def _check_size(text: str, where: str) -> None:
    """Raise an error for deep nesting, and for aliases that stand for too many values."""
    sizes: dict[str, int] = {}  # the values that each anchor stands for
    open_parts: list[tuple[str | None, int]] = []  # the anchors of the collections around an event, and values before
    values = 0
    for event in yaml.parse(text, SafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_parts.pop()
            if anchor is not None:
                sizes[anchor] = values - before
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_alias = isinstance(event, yaml.AliasEvent)
        values += sizes.get(event.anchor or "", 0) if is_alias else 1
        VALUES.require(values, where)
        if isinstance(event, yaml.CollectionStartEvent):
            open_parts.append((event.anchor, values - 1))
            if len(open_parts) > LEVELS:
                raise _mistake("too deeply nested", event)
        elif event.anchor is not None and not is_alias:
            sizes[event.anchor] = 1
        elif is_alias and any(anchor == event.anchor for anchor, _ in open_parts):
            raise _mistake(f"*{event.anchor} contains itself", event)


class _UniqueKeys(SafeLoader):
    """A YAML loader that raises an error with a line for a duplicate key, and for a date or number that is invalid."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = (key_node.tag, key_node.value) if isinstance(key_node, yaml.ScalarNode) else None
            if key in seen and key_node.tag != "tag:yaml.org,2002:merge":
                raise _mistake(f"{key_node.value} is given twice", key_node)
            seen.add(key)
        return dict(super().construct_mapping(node, deep))

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            found = super().construct_object(node, deep)
            if isinstance(found, int) and found.bit_length() > 4096:  # 0xfff…, which no text could show
                raise OverflowError("a number that is too long")
            return found
        except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:  # 1996-09-31, 5,000 digits
            text = node.value if isinstance(node, yaml.ScalarNode) else ""
            problem = f"{text[:40]}: {error}" if len(text) <= 40 else f"{text[:40]}…: not a valid value"
            raise _mistake(problem, node) from None


def _mistake(problem: str, place: Any) -> yaml.MarkedYAMLError:
    """Return the error for a mistake at an event or a node."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


#: A line of YAML: what it states, and a comment that no quote contains.
_LINE = re.compile(r"""^((?:[^#'"]|"[^"]*"|'[^']*'|(?<=\S)#)*?)(\s*(?:(?<=\s)|^)#.*)?$""")


def with_comments(text: str, commented: str) -> str:
    r"""
    Return a text of YAML with the comments of another one; those whose line it does not have are at the end.

    Examples
    --------
    >>> print(with_comments("a: 1\nb: 3\n", "# first\na: 1 # one\nb: 2 # two\n"), end="")
    # first
    a: 1 # one
    b: 3
    # two
    """
    before: dict[str, list[str]] = {}
    beside: dict[str, list[str]] = {}
    waiting = list[str]()
    for line in commented.splitlines():
        found = _LINE.match(line)
        content, comment = (found[1].rstrip(), (found[2] or "").strip()) if found else (line.rstrip(), "")
        if not content:
            waiting += [line] if comment else []
            continue
        if waiting:
            before.setdefault(content, []).extend(waiting)
            waiting = []
        if comment:
            beside.setdefault(content, []).append(comment)
    lines = list[str]()
    for line in text.splitlines():
        lines += before.pop(line.rstrip(), [])
        here = beside.get(line.rstrip(), [])
        lines.append(f"{line} {here.pop(0)}" if here else line)
    left = [comment for several in (*before.values(), *beside.values()) for comment in several]
    return "\n".join([*lines, *left, *waiting]) + "\n"
