"""YAML that people write: its values and their lines, and one error for all mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import yaml

from judge.core import merge_conflicts
from judge.core.format import MAX_DIGITS
from judge.core.merge_conflicts import conflict_line
from judge.core.normalization import whole

MOST_REPEATED = 100_000
"""Values that aliases (`*name`) and merged keys (`<<`) may repeat in a file."""


class Malformed(ValueError):
    """A problem of a YAML text, such as `not YAML: found unexpected end of stream`.

    `line` counts from 1.
    """

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
    """Parse a mapping with the lines of its keys; None if the text is anything else.

    Raises Malformed or Twice.
    """
    node = tree(text)
    # Copied, because `construct` resolves merged keys in the node itself.
    pairs = [*node.value] if isinstance(node, yaml.MappingNode) else []
    mapping = construct(node)
    if not isinstance(mapping, dict):
        return None
    lines = {}
    for key_node, _ in pairs:
        key = str(key_node.value)
        lines[key] = key_node.start_mark.line + 1
    return Keys(mapping, lines)


def nodes(text: str, top_level_key: str) -> tuple[yaml.Node | None, yaml.Node | None]:
    """Return the nodes of a top-level key and of its value, None if there is no such key.

    Raises Malformed.
    """
    for key_node, value_node in getattr(tree(text), "value", ()):
        if key_node.value == top_level_key:
            return key_node, value_node
    return None, None


def tree(text: str | bytes) -> yaml.Node | None:
    """Parse a text to YAML nodes, None if it has none.

    Raises Malformed, also if aliases repeat too much, or Twice.
    """
    with _guarded(text):
        node: yaml.Node | None = yaml.compose(text, Loader=Loader)
        if node is None:
            return None
        size_by_id: dict[int, int] = {}
        # The size counts an alias each time, `size_by_id` has every node once.
        size = _size(node, size_by_id)
        n_repeated = size - len(size_by_id)
        if n_repeated > MOST_REPEATED:
            raise Malformed(
                f"aliases (*) that repeat more than {MOST_REPEATED:,} values"
            )
        return node


def _size(node: yaml.Node, size_by_id: dict[int, int]) -> int:
    """Count a node and the nodes below it. An alias counts each time that it occurs.

    `size_by_id` has the counts so far by the node's id, 0 for a node that is being counted. Raises
    Twice for a repeated key, Malformed for an alias inside its own value.
    """
    known_size = size_by_id.get(id(node))
    if known_size == 0:
        line = node.start_mark.line + 1
        raise Malformed("an alias (*) inside the value that it repeats", line)
    if known_size is not None:
        return known_size
    size_by_id[id(node)] = 0
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
    size = 1
    entries = node.value if isinstance(node, yaml.CollectionNode) else ()
    for entry in entries:
        # An entry of a mapping is a key and a value.
        inner_nodes = entry if isinstance(entry, tuple) else (entry,)
        for inner_node in inner_nodes:
            size += _size(inner_node, size_by_id)
    size_by_id[id(node)] = size
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[tuple[str, str]] = set()
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            continue
        # 1 and "1" are different keys, with different tags.
        tagged_key = (key_node.tag, key_node.value)
        with suppress(ValueError):
            # 1 and 1.0 are the same key.
            if key_node.tag in (_INTEGER, _FLOAT):
                number = float(key_node.value)
                tagged_key = (_FLOAT, str(number))
        if tagged_key in seen:
            line = key_node.start_mark.line + 1
            raise Twice(f"{key_node.value} appears a second time", line)
        seen.add(tagged_key)


def construct(node: yaml.Node | None) -> Any:
    """Return the value of a node tree, with merged keys (`<<`) resolved. Raises Malformed."""
    if node is None:
        return None
    with _guarded():
        return Loader("").construct_document(node)


_INTEGER = "tag:yaml.org,2002:int"
_FLOAT = "tag:yaml.org,2002:float"
_BLANKS = "\0 \t\r\n\x85\u2028\u2029"
_BLANKS_OR_BRACKETS = f"{_BLANKS},[]{{}}"


class Loader(yaml.SafeLoader):
    """PyYAML's loader, which reads `?` inside brackets as YAML 1.2 does.

    PyYAML refuses `{question: Where is it?}` and reads `[?x]` as a key, as in YAML 1.1. Every error
    has a line, also if Python raises it for an explicit tag, a date or a number.
    """

    def check_key(self) -> bool:
        """Return whether the `?` here marks a key: `{? a : 1}` does, `[?a]` does not."""
        ends = _BLANKS_OR_BRACKETS if self.flow_level else _BLANKS
        return self.peek(1) in ends

    def check_plain(self) -> bool:
        """Return whether a text without quotes starts here, in brackets also one with `?`."""
        if self.flow_level and self.peek() == "?":
            return self.peek(1) not in _BLANKS_OR_BRACKETS
        return bool(super().check_plain())

    def scan_plain(self) -> yaml.tokens.ScalarToken:
        """Read a text without quotes.

        Inside brackets PyYAML would end it at a `?`, so that sign is hidden from it.
        """
        if not self.flow_level:
            return super().scan_plain()
        peek = self.peek

        def peek_past_marks(index: int = 0) -> str:
            """Hide the sign from PyYAML; the text itself is taken unchanged."""
            character = peek(index)
            return "x" if character == "?" else character

        vars(self)["peek"] = peek_past_marks
        try:
            return super().scan_plain()
        finally:
            del vars(self)["peek"]

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            is_integer = node.tag == _INTEGER
            if is_integer and len(node.value) > MAX_DIGITS:
                raise ValueError(f"a number of more than {MAX_DIGITS} digits")
            value = super().construct_object(node, deep)
            if node.tag in (_INTEGER, _FLOAT):
                _check_number(node.value, value)
        except (ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise yaml.constructor.ConstructorError(
                problem=str(error), problem_mark=node.start_mark
            ) from error
        # "\ud800", a lone surrogate, is legal YAML.
        return whole(value) if isinstance(value, str) else value


def _check_number(written: str, value: float) -> None:
    """Raise ValueError for a number that YAML 1.1 reads in another base than people write.

    `010` is 8, `1:30` is 90 and `05_0` is 40. Hexadecimal numbers are meant, and .inf is no digit.
    """
    if ":" not in written:
        digits = written.lstrip("+-").replace("_", "")
        if not digits.startswith("0") or not digits.isdecimal():
            return
        is_octal = int(digits) != abs(value)
        if not is_octal:
            return
    raise ValueError(
        f"{written} means {value} in YAML; write {value}, or put {written} in quotes"
    )


def _advice(problem: str, error: yaml.MarkedYAMLError, text: str | bytes) -> str:
    """Say which character has to be in quotes, if one is the likely cause of the problem."""
    if "mapping values" in problem or "got ':'" in problem:
        return "; put text that holds : in quotes"
    # {item: Ticket #, output: Reply}: the rest of the line is a comment, so the brace stays open.
    if "flow" in (error.context or "") and error.context_mark and error.problem_mark:
        content = text if isinstance(text, str) else text.decode(errors="replace")
        first_line = error.context_mark.line
        last_line = error.problem_mark.line
        open_lines = content.splitlines()[first_line : last_line + 1]
        if any(" #" in line for line in open_lines):
            return "; if # belongs to a text, put the text in quotes"
    return ""


@contextmanager
def _guarded(text: str | bytes = "") -> Iterator[None]:
    """Raise Malformed for PyYAML's own errors, and for a text that it cannot decode."""
    try:
        yield
    except RecursionError as error:
        raise Malformed("nested too deeply") from error
    except yaml.MarkedYAMLError as error:
        line = conflict_line(text)
        if line is not None:
            raise Malformed(merge_conflicts.ADVICE, line) from error
        mark = error.problem_mark
        line = mark.line + 1 if mark else None
        problem = error.problem or str(error)
        hint = _advice(problem, error, text)
        raise Malformed(f"not YAML: {problem}{hint}", line) from error
    except yaml.YAMLError as error:
        # A reader's error has a position and no mark.
        problem, *_ = str(error).splitlines()
        position = getattr(error, "position", 0)
        line = len(text[: position + 1].splitlines())
        raise Malformed(f"not YAML: {problem}", line) from error
