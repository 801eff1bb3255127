"""Find where a reply begins after its model's thinking: `<think>…</think>` blocks and channels."""

from __future__ import annotations

import re
from dataclasses import dataclass

from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.core.messages import advice_on_thinking

# `{"score": 4}`, perhaps after "```json".
OBJECT = re.compile(r"[\s\u200b\ufeff]*+(?:```\w*+\s*+)?+(?=\{)")
"""The beginning of a JSON object, perhaps in a fence: a `<think>` in it is part of a text."""
# Characters that `is_blank` looks at first. Most texts that are not blank show it there, and
# folding a long text takes time.
_FIRST_LOOK = 120
# `<think>`, `</thinking>`, `<seed:think>`, `[THINK]`, `◁/think▷`
_TAG = re.compile(
    r"[<\[◁](/?)(?:[a-z]{1,9}:)?(think|thinking|thought|reasoning)[>\]▷]", re.IGNORECASE
)
_TAG_OPENING = re.compile(r"[<\[◁]")
# The channels of gpt-oss, with their marks (`<|channel|>analysis<|message|>…`), or as servers leave
# them that drop special tokens (`analysisMaybe 2.assistantfinal4`).
CHANNEL = re.compile(
    r"\s*+(?:<\|start\|>\s*assistant)?\s*+(?:<\|channel\|>\s*(?:analysis|commentary|final)"
    r"|(?:analysis|commentary|final)\s*<\|message\|>"
    r"|(?:analysis|commentary)(?=[\s\S]*assistantfinal))"
)
# `<|channel|>final<|message|>`, `<|channel|>final <|constrain|>json<|message|>`, `assistantfinal`
_FINAL = re.compile(
    r"<\|channel\|>\s*final\b[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>"
    r"|\A\s*final\s*<\|message\|>|assistantfinal"
)
# A mark of channels anywhere in a text.
CHANNEL_MARK = re.compile(r"<\|(?:channel|message)\|>|assistantfinal")
# What GLM writes before its answer: `<|begin_of_box|>4<|end_of_box|>`
_BOX = re.compile(r"\s*+<\|begin_of_box\|>")
# `<|end|>`, `<|return|>`
_END_MARKS = re.compile(r"<\|\w+\|>")


def reply_start(text: str) -> int:
    """Return where the reply starts, after the thinking at the start and the mark of a box.

    The first opening tag may be missing, because some prompts end with it. Blocks of one name may
    be nested. Raises ParseError if nothing is left, and for an extra closing tag, because it makes
    the end of the thinking ambiguous.
    """
    channel = CHANNEL.match(text)
    if channel:
        return _after_channels(text, channel)
    start = 0
    # Most replies have no tags. Looking for an opening character is quicker than for a whole tag.
    if _TAG_OPENING.search(text) and not OBJECT.match(text):
        start = _after_blocks(text)
    if is_blank(text[start:]):
        if start:
            raise _only_thinking("is empty after its thinking", text)
        raise ParseError("the reply is empty", text)
    return _inside_box(text, start)


@dataclass(slots=True)
class _Blocks:
    """The thinking blocks of a reply, read tag by tag.

    `start` is the position after the last block at the start of the reply. `depth` counts the open
    tags of thinking. `mentioned` counts the open tags that come after other text: from `in_prose`
    on, tags are words that the reply mentions. `in_heading`: the thinking began with a tag that may
    be a heading.
    """

    text: str
    start: int = 0
    depth: int = 0
    mentioned: int = 0
    in_prose: bool = False
    name: str = ""
    in_heading: bool = False

    def open(self, tag: re.Match[str]) -> None:
        if not self.depth:
            # Thinking begins where nothing but the blocks before it was written.
            text_before = self.text[self.start : tag.start()]
            if not is_blank(text_before):
                self.in_prose = True
        if self.in_prose:
            self.mentioned += 1
        else:
            if not self.depth:
                self.in_heading = _may_be_heading(tag)
            self.depth += 1

    def close(self, tag: re.Match[str]) -> None:
        if self.mentioned:
            self.mentioned -= 1
        elif self.depth or not self.start:
            # The first block may lack its opening tag: `depth` is 0 then, and what looked like
            # prose was thinking.
            self.depth = max(0, self.depth - 1)
            self.in_prose = False
            if not self.depth:
                self.start = tag.end()
        else:
            problem = "judge cannot determine where the reply's thinking ends"
            raise ParseError(problem, self.text)


def _may_be_heading(tag: re.Match[str]) -> bool:
    """Return whether a tag may be a heading, such as `[Reasoning]`.

    Of the tags in square brackets, only Mistral's `[THINK]` always is thinking.
    """
    return tag[0].startswith("[") and tag[2].lower() != "think"


def _after_blocks(text: str) -> int:
    """Return the position after the thinking blocks that a reply starts with."""
    blocks = _Blocks(text)
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        # Inside a block of one name, tags of other names are part of the thinking.
        if blocks.depth and name != blocks.name:
            continue
        blocks.name = name
        if tag[1]:
            blocks.close(tag)
        else:
            blocks.open(tag)
    # Thinking may be cut off, but a heading has no end.
    if blocks.depth and not blocks.in_heading:
        raise _only_thinking("ended inside its thinking", text)
    return blocks.start


def _after_channels(text: str, channel: re.Match[str]) -> int:
    """Return where the text of a reply's last final channel begins.

    `channel` is the match of its first channel. Raises ParseError if no channel is final, or the
    last one is empty.
    """
    finals = list(_FINAL.finditer(text, channel.start()))
    if not finals:
        raise _only_thinking("ended inside its thinking", text)
    start = finals[-1].end()
    answer = _END_MARKS.sub("", text[start:])
    if is_blank(answer):
        raise _only_thinking("is empty after its thinking", text)
    return start


def _inside_box(text: str, start: int) -> int:
    """Return where the content of a box begins if the reply is one box, else `start`."""
    box = _BOX.match(text, start)
    if box is None or _BOX.search(text, box.end()):
        return start
    content = _END_MARKS.sub("", text[box.end() :])
    if is_blank(content):
        raise ParseError("the reply is empty", text)
    return box.end()


def check_thinking(before: str, text: str) -> None:
    """Raise ParseError if the part of a reply `before` its score ends inside thinking."""
    if not _TAG_OPENING.search(before):
        return
    depth = 0
    for tag in _TAG.finditer(before):
        if not _may_be_heading(tag):
            depth += -1 if tag[1] else 1
    if depth > 0:
        raise _only_thinking("ended inside its thinking", text)


def _only_thinking(trouble: str, text: str) -> ParseError:
    return ParseError(f"the reply {trouble}; {advice_on_thinking()}", text)


def is_blank(text: str) -> bool:
    """Return whether a text has nothing but white space and invisible characters."""
    begins_blank = not fold(text[:_FIRST_LOOK]).strip()
    return begins_blank and not fold(text).strip()
