"""Read the JSON objects in a reply with the places of their values, even if they are not quite JSON.

Besides JSON, an object may have single or curly quotes, bare keys and values, Python's `True` and `None`, full-width
commas and colons, trailing commas, and comments. Nothing is guessed: an object that is cut off, or that holds a
quotation mark too many, is broken.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["words", "number", "literal", "container"]


@dataclass(frozen=True, slots=True)
class Member:
    """A key of an object and its value `text[start:end]`, quotes included; `words` has what is inside them."""

    key: str
    kind: Kind
    start: int
    end: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The object `text[start:end]`. `strict`: it is JSON. `broken`: reading stopped at `end`, within the object."""

    members: tuple[Member, ...]
    start: int
    end: int
    strict: bool
    broken: bool


# Runs are possessive, so that no text, however odd, takes more than linear time.
_TOKEN = re.compile(
    r"""(?P<gap>(?:[\s\u200b\ufeff]++|(?://|\#)[^\n]*+)*+)(?:
    (?P<mark>[{}\[\]:,：，])
    |"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"|'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
    |“(?P<curly>[^“”]*+)”|‘(?P<curly_single>[^‘’]*+)’
    |(?P<bare>[^\s{}\[\]:,：，"'“”‘’`]++)|(?P<stray>.?))""",
    re.DOTALL | re.VERBOSE,
)
_BARE_KEY = re.compile(r"[^\W\d]\w*+")
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|(.?))|"', re.DOTALL)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?")
_LITERALS = {"true", "false", "null", "none"}
_CLOSING = {"{": "}", "[": "]"}
_STEPS = {
    ("value", "{"): "key", ("value", "["): "item", ("item", "{"): "key", ("item", "["): "item", ("next", ","): "key",
    ("key", "word"): "colon", ("colon", ":"): "value", ("value", "word"): "next", ("item", "word"): "next",
}  # fmt: skip
"""What is expected after a token, by what was expected before it."""


def objects(text: str, start: int) -> list[JsonObject]:
    """Return the objects in `text[start:]` that are not inside another. Braces around anything else are skipped.

    An object whose only value is an object, as in `{"result": {…}}`, has the members of that, and is not `strict`. So
    has the call of a tool: `{"name": "submit", "arguments": {…}}`.
    """
    result = []
    while (start := text.find("{", start)) >= 0:
        item = read_object(text, start)
        if not item.broken and (inner := _only_object(text, item)) is not None:
            item = replace(item, members=read_object(text, inner.start).members, strict=False)
        result += [item] * (bool(item.members) or not item.broken)
        start = item.end
    return result


def _only_object(text: str, item: JsonObject) -> Member | None:
    """Return the member that holds the only value, or the arguments of a called tool; None if there is none."""
    objects = [member for member in item.members if text[member.start] == "{"]
    if len(objects) != 1:
        return None
    others = [member for member in item.members if member is not objects[0]]
    is_call = objects[0].key.casefold() in _ARGUMENTS and all(
        member.key.casefold() in _TOOL for member in others
    )
    return objects[0] if is_call or not others else None


_ARGUMENTS = {"arguments", "parameters", "input", "args"}
_TOOL = {"name", "type", "id", "tool", "function"}


def read_object(text: str, start: int) -> JsonObject:
    """Return the object that opens at `start`; a broken one has the members that begin before it breaks."""
    members: list[Member] = []
    opened: list[str] = []
    expected, before, key, value, at, strict = "value", "", "", start, start, True
    for token in _TOKEN.finditer(text, start):
        kind, at, end = token.lastgroup or "", token.end("gap"), token.end()
        strict = strict and not token["gap"].strip(" \t\r\n") and text[at:end] not in ("：", "，")
        mark = {"：": ":", "，": ","}.get(text[at], text[at]) if kind == "mark" else "word"
        outermost = len(opened) == 1
        if outermost and expected == "value":
            value = at
        if (
            mark in ("}", "]")
            and expected in ("next", "key", "item")
            and mark == _CLOSING[opened.pop()]
        ):
            strict, expected = strict and before != ",", "next"
            if not opened:
                return JsonObject(tuple(members), start, end, strict, broken=False)
            if len(opened) == 1:
                members.append(Member(key, "container", value, end))
        elif kind == "stray" or (expected, mark) not in _STEPS:
            break
        elif mark == "word":
            words, plain = _words(token[kind], kind, expected == "key")
            if words is None:
                break
            strict = strict and plain
            if outermost and expected == "value":
                bare: Kind = "literal" if words.casefold() in _LITERALS else "number"
                members.append(Member(key, bare if kind == "bare" else "words", at, end, words))
            key = words if outermost and expected == "key" else key
            expected = _STEPS[expected, mark]
        else:
            opened += [mark] * (mark in _CLOSING)
            expected = "item" if mark == "," and opened[-1] == "[" else _STEPS[expected, mark]
        before = mark
    if before == ":" or len(opened) > 1:
        members.append(Member(key, "container", value, at))
    return JsonObject(tuple(members), start, max(at, start + 1), strict=False, broken=True)


def _words(written: str, kind: str, is_key: bool) -> tuple[str | None, bool]:
    """Return what a key or value says, None for a bare key that is no name, and whether JSON would have it so."""
    if kind == "bare":
        if is_key:
            return written if _BARE_KEY.fullmatch(written) else None, False
        return written, bool(_NUMBER.fullmatch(written)) or written in ("true", "false", "null")
    escaped = _ESCAPE.sub(
        lambda part: part[0] if part[1] else '\\"' if part[0] == '"' else part[2], written
    )
    return json.loads(f'"{escaped}"', strict=False), kind == "double" and escaped == written
