"""Where a reply begins after the thinking of its model: blocks such as `<think>…</think>`, and channels."""

from __future__ import annotations

import re

from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.core.messages import advice_on_thinking

OBJECT = re.compile(r"[\s\u200b\ufeff]*+(?:```\w*+\s*+)?+(?=\{)")
"""The beginning of a JSON object, perhaps in a fence: a `<think>` in it is part of a text."""
_LONGEST = 120
"""Characters that are looked at first: most texts that are not blank show it there."""
_TAG = re.compile(r"[<\[◁](/?)(think|thinking|thought|reasoning)[>\]▷]", re.IGNORECASE)
_THINKS = re.compile(r"[<\[◁]")
# The channels of gpt-oss, with their marks (`<|channel|>analysis<|message|>…`), or without, as servers leave them that
# drop special tokens (`analysisMaybe 2.assistantfinal4`).
CHANNEL = re.compile(
    r"\s*+(?:<\|start\|>\s*assistant)?\s*+(?:<\|channel\|>\s*(?:analysis|commentary|final)"
    r"|(?:analysis|commentary|final)\s*<\|message\|>|(?:analysis|commentary)(?=[\s\S]*assistantfinal))"
)
_FINAL = re.compile(
    r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>|\A\s*final\s*<\|message\|>|assistantfinal"
)
CHANNEL_MARK = re.compile(r"<\|(?:channel|message)\|>|assistantfinal")


def reply_start(text: str) -> int:
    """Return where the reply starts, after the thinking at the start. Raises ParseError if nothing is left.

    The first opening tag may be missing, because some prompts end with it; blocks of one name may be nested. An extra
    closing tag makes the end ambiguous and raises ParseError.
    """
    if channel := CHANNEL.match(text):
        return _after_channels(text, channel)
    start = depth = quoted = 0
    prose, name = False, ""
    for tag in _TAG.finditer(text) if _THINKS.search(text) and not OBJECT.match(text) else ():
        if depth and tag[2].lower() != name:
            continue
        name = tag[2].lower()
        if not tag[1]:
            prose = prose or (not depth and not is_blank(text[start : tag.start()]))
            depth, quoted = (depth, quoted + 1) if prose else (depth + 1, quoted)
        elif quoted:
            quoted -= 1
        elif depth or not start:
            depth, prose = max(0, depth - 1), False
            start = start if depth else tag.end()
        else:
            raise ParseError("it cannot be told where the reply's thinking ends", text)
    if depth:
        raise _only_thinking("ended inside its thinking", text)
    if is_blank(text[start:] if start else text):
        if start:
            raise _only_thinking("is empty after its thinking", text)
        raise ParseError("the reply is empty", text)
    return start


def _after_channels(text: str, channel: re.Match[str]) -> int:
    """Return where the last final channel of a reply begins. Raises ParseError if there is none, or nothing in it."""
    finals = list(_FINAL.finditer(text, channel.start()))
    if not finals:
        raise _only_thinking("ended inside its thinking", text)
    start = finals[-1].end()
    if is_blank(_END_MARKS.sub("", text[start:])):
        raise _only_thinking("is empty after its thinking", text)
    return start


_END_MARKS = re.compile(r"<\|\w+\|>")


def check_thinking(before: str, text: str) -> None:
    """Raise ParseError if the part of a reply `before` its score ends inside thinking."""
    if "<" in before and sum(-1 if tag[1] else 1 for tag in _TAG.finditer(before)) > 0:
        raise _only_thinking("ended inside its thinking", text)


def _only_thinking(trouble: str, text: str) -> ParseError:
    return ParseError(f"the reply {trouble}; {advice_on_thinking()}", text)


def is_blank(text: str) -> bool:
    return not fold(text[:_LONGEST]).strip() and not fold(text).strip()
