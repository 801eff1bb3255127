"""YAML that people write: its values and the lines they stand on, and one error for all that can be wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import yaml


class Malformed(ValueError):
    """A problem of a YAML text, such as `not YAML: found unexpected end of stream`; `line` counts from 1."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


class Twice(Malformed):
    """A key that occurs a second time, on `line`."""


class Keys(NamedTuple):
    """Keys and values, and the line of each key."""

    values: dict[Any, Any]
    lines: dict[str, int]


def values(text: str | bytes) -> Any:
    """Return the value of a YAML text, None if it is empty. Raises Malformed."""
    return construct(tree(text))


def keys(text: str) -> Keys | None:
    """Parse a mapping with the lines of its keys; None if the text is anything else. Raises Malformed or Twice."""
    node = tree(text)
    pairs = [*node.value] if isinstance(node, yaml.MappingNode) else []
    mapping = construct(node)
    if not isinstance(mapping, dict):
        return None
    lines: dict[str, int] = {}
    for key, _ in pairs:
        name, line = str(key.value), key.start_mark.line + 1
        if name in lines:
            raise Twice(f"{name} stands here for the second time", line)
        lines[name] = line
    return Keys(mapping, lines)


def tree(text: str | bytes) -> yaml.Node | None:
    """Parse a text to YAML nodes, None if it has none. Raises Malformed."""
    with _guarded():
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        return node


def construct(node: yaml.Node | None) -> Any:
    """Return the value of a node tree, with merged keys (`<<`) resolved. Raises Malformed."""
    with _guarded():
        return None if node is None else yaml.SafeLoader("").construct_document(node)


@contextmanager
def _guarded() -> Iterator[None]:
    """Raise Malformed for PyYAML's own errors, and for those that it lets through from explicit tags and dates."""
    try:
        yield
    except RecursionError as error:
        raise Malformed("nested too deeply") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or error
        raise Malformed(f"not YAML: {problem}", mark.line + 1 if mark else None) from error
