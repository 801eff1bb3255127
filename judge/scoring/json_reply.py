"""Read the JSON objects in a reply with the positions of their values, even if not quite JSON.

Besides JSON, an object may have single or curly quotes, bare keys and values, Python's `True` and
`None`, full-width commas and colons, trailing commas, and comments. Nothing is guessed: an object
that is cut off, or that holds a quotation mark too many, is broken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["words", "number", "literal", "container"]


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value `text[start:end]`, including quotes.

    `words` is the value without them.
    """

    key: str
    kind: Kind
    start: int
    end: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The object `text[start:end]`.

    `strict`: it is JSON. `broken`: reading stopped at `end`, within the object.
    """

    members: tuple[Member, ...]
    start: int
    end: int
    strict: bool
    broken: bool


# One token with the white space and comments before it: `"score"`, `'score'`, `“score”`, `{`, `，`,
# `True`. Runs are possessive, so that no text, however odd, takes more than linear time.
_TOKEN = re.compile(
    r"""(?P<gap>(?:[\s\u200b\ufeff]++|(?://|\#)[^\n]*+)*+)(?:
    (?P<mark>[{}\[\]:,：，])
    |"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"|'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
    |“(?P<curly>[^“”]*+)”|‘(?P<curly_single>[^‘’]*+)’
    |(?P<bare>[^\s{}\[\]:,：，"'“”‘’`]++)|(?P<stray>.?))""",
    re.DOTALL | re.VERBOSE,
)
# `score`, `final_score`
_BARE_KEY = re.compile(r"[^\W\d]\w*+")
# `\n` and `\u00e9` (escapes of JSON, group 1), `\'` (others, group 2), or a bare quotation mark
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.?))|"', re.DOTALL)
# `-4`, `0.75`, `1e3`
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_LITERALS = {"true", "false", "null", "none"}
_CLOSING = {"{": "}", "[": "]"}
_NEXT_EXPECTED = {
    ("value", "{"): "key",
    ("value", "["): "item",
    ("item", "{"): "key",
    ("item", "["): "item",
    ("next", ","): "key",
    ("key", "word"): "colon",
    ("colon", ":"): "value",
    ("value", "word"): "next",
    ("item", "word"): "next",
}
"""What is expected after a token, by what was expected before it and the token's mark."""
_FULL_WIDTH = {"：": ":", "，": ","}
_ARGUMENT_KEYS = {"arguments", "parameters", "input", "args"}
_TOOL_KEYS = {"name", "type", "id", "tool", "function"}


def objects(text: str, start: int) -> list[JsonObject]:
    """Return the objects in `text[start:]` that are not inside another.

    Braces around anything else are skipped. An object whose only value is an object, as in
    `{"result": {…}}`, gets the members of the inner one and is not `strict`. So does the call of a
    tool: `{"name": "submit", "arguments": {…}}`.
    """
    outermost: list[JsonObject] = []
    position = text.find("{", start)
    while position >= 0:
        item = read_object(text, position)
        if not item.broken:
            inner = _only_object(text, item)
            if inner is not None:
                members = read_object(text, inner.start).members
                item = replace(item, members=members, strict=False)
        # A broken object without members is a brace of something else, such as LaTeX.
        if item.members or not item.broken:
            outermost.append(item)
        position = text.find("{", item.end)
    return outermost


def _only_object(text: str, item: JsonObject) -> Member | None:
    """Return the member that holds the only value or a tool's arguments, None if there is none."""
    inner = [member for member in item.members if text[member.start] == "{"]
    if len(inner) != 1:
        return None
    others = [member for member in item.members if member is not inner[0]]
    names_tool = all(member.key.casefold() in _TOOL_KEYS for member in others)
    is_tool_call = inner[0].key.casefold() in _ARGUMENT_KEYS and names_tool
    return inner[0] if is_tool_call or not others else None


def read_object(text: str, start: int) -> JsonObject:
    """Return the object that opens at `start`.

    A broken one has the members that begin before it breaks.
    """
    reader = _ObjectReader(text, start, position=start, value_start=start)
    for token in _TOKEN.finditer(text, start):
        state = reader.take(token)
        if state == "closed":
            members = tuple(reader.members)
            return JsonObject(members, start, token.end(), reader.strict, broken=False)
        if state == "broken":
            break
    end = max(reader.position, start + 1)
    return JsonObject(
        tuple(reader.broken_members()), start, end, strict=False, broken=True
    )


State = Literal["open", "closed", "broken"]


@dataclass(slots=True)
class _ObjectReader:
    """What was read of an object so far, token by token.

    `expected` says what may come next, `before` is the mark of the last token, and `opened` has the
    brackets that are not closed. `key` and `value_start` belong to the current member.
    """

    text: str
    start: int
    position: int
    value_start: int
    members: list[Member] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    expected: str = "value"
    before: str = ""
    key: str = ""
    strict: bool = True

    @property
    def is_outermost(self) -> bool:
        return len(self.opened) == 1

    def take(self, token: re.Match[str]) -> State:
        """Read the next token; say whether the object is still open, closed or broken."""
        kind = token.lastgroup or ""
        self.position = token.end("gap")
        # JSON knows no comments, and only these characters as white space.
        has_foreign_gap = bool(token["gap"].strip(" \t\r\n"))
        if has_foreign_gap or self.text[self.position : token.end()] in _FULL_WIDTH:
            self.strict = False
        mark = "word"
        if kind == "mark":
            character = self.text[self.position]
            mark = _FULL_WIDTH.get(character, character)
        if self.is_outermost and self.expected == "value":
            self.value_start = self.position
        state = self._step(token, kind, mark)
        if state != "broken":
            self.before = mark
        return state

    def _step(self, token: re.Match[str], kind: str, mark: str) -> State:
        if mark in ("}", "]") and self.expected in ("next", "key", "item"):
            if mark == _CLOSING[self.opened.pop()]:
                return self._close(token.end())
            # A closing bracket of the wrong kind. No step allows it here.
            return "broken"
        if kind == "stray" or (self.expected, mark) not in _NEXT_EXPECTED:
            return "broken"
        if mark == "word":
            return self._take_word(token, kind)
        if mark in _CLOSING:
            self.opened.append(mark)
        if mark == "," and self.opened[-1] == "[":
            # After a comma, an object expects a key, and a list another item.
            self.expected = "item"
        else:
            self.expected = _NEXT_EXPECTED[self.expected, mark]
        return "open"

    def _close(self, end: int) -> State:
        if self.before == ",":
            # JSON has no trailing commas, which Python and JavaScript allow.
            self.strict = False
        self.expected = "next"
        if not self.opened:
            return "closed"
        if self.is_outermost:
            container = Member(self.key, "container", self.value_start, end)
            self.members.append(container)
        return "open"

    def _take_word(self, token: re.Match[str], kind: str) -> State:
        is_key = self.expected == "key"
        word = _read_word(token[kind], kind, is_key=is_key)
        if word is None:
            return "broken"
        self.strict = self.strict and word.is_json
        if self.is_outermost and self.expected == "value":
            member_kind: Kind = "words"
            if kind == "bare":
                is_literal = word.text.casefold() in _LITERALS
                member_kind = "literal" if is_literal else "number"
            end = token.end()
            member = Member(self.key, member_kind, self.position, end, word.text)
            self.members.append(member)
        if self.is_outermost and self.expected == "key":
            self.key = word.text
        self.expected = _NEXT_EXPECTED[self.expected, "word"]
        return "open"

    def broken_members(self) -> Sequence[Member]:
        """Return the members of an object that breaks, with the one whose value breaks it."""
        if self.before == ":" or len(self.opened) > 1:
            cut_off = Member(self.key, "container", self.value_start, self.position)
            return [*self.members, cut_off]
        return self.members


@dataclass(frozen=True, slots=True)
class _Word:
    """What a key or value says, and whether JSON would write it so."""

    text: str
    is_json: bool


def _read_word(written: str, kind: str, *, is_key: bool) -> _Word | None:
    """Return what a key or value says, None for a bare key that is no name."""
    if kind != "bare":
        escaped = _ESCAPE.sub(_json_escape, written)
        words = json.loads(f'"{escaped}"', strict=False)
        return _Word(words, is_json=kind == "double" and escaped == written)
    if not is_key:
        is_number = bool(_NUMBER.fullmatch(written))
        is_json = is_number or written in ("true", "false", "null")
        return _Word(written, is_json)
    if _BARE_KEY.fullmatch(written):
        return _Word(written, is_json=False)
    return None


def _json_escape(part: re.Match[str]) -> str:
    """Return an escape or a bare quotation mark as JSON writes it; `\\'` becomes `'`."""
    if part[1]:
        return part[0]
    if part[0] == '"':
        return '\\"'
    return part[2]
