"""Blank what a reply quotes, so that nothing in it can be read."""

from __future__ import annotations

import re

MASK = "\ufffc"
"""Replaces every quoted character. It is no letter, no space and no mark of any grammar."""
# The closing marks of each opening one. In some languages they are reversed: »so«, „so“.
_CLOSES = {
    '"': '"', "“": "”“", "”": "”", "„": "“”„", "«": "»", "»": "«", "‹": "›", "›": "‹",
    "「": "」", "『": "』", "《": "》",
    "〝": "〞〟", "❝": "❞", "‟": "”",
    "<q>": "</q>", "<blockquote>": "</blockquote>", "&quot;": "&quot;", "&ldquo;": "&rdquo;",
    "``": "''",
}  # fmt: skip
# "so, «so, <q>so. After a digit or letter, a straight mark is no opening: it may be inches.
_OPENING = re.compile(
    r"""(?<![0-9A-Za-z])"|[“”„«»‹›「『《〝❝‟]|<q>|<blockquote>|&quot;|&ldquo;|(?<!`)``(?!`)""",
    re.IGNORECASE,
)
# 'so', ‘so’: not the apostrophe of "it's", "the readers' view" or "'90s". Both ends are in one
# line.
_SINGLE = re.compile(
    r"(?<![\w'’])(?:'(?!\s)(?!(?:s|t|re|ll|d|ve|m|90s)\b)|‘)"
    r"(?:[^'‘’\n]|['’](?=\w))*(?:['’](?!\w)|\n|\Z)"
)
# `4`
_CODE = re.compile(r"`[^`\n]*`")
# > The text says 4.
_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
# ```json … ```
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# The same around all of a reply
_WHOLE_FENCE = re.compile(r"\s*```\w*\n?((?:(?!```).)*)```\s*\Z", re.DOTALL)


def mask_quotations(text: str) -> str:
    """Return the text with its quotations blanked: in quotation marks, lines, code and fences.

    `text` is folded. The result has the same length, so that positions stay the same. A quotation
    that nothing closes runs to the end. A fence around the whole text quotes nothing.
    """
    whole_fence = _WHOLE_FENCE.match(text)
    if whole_fence:
        # The two marks of the fence become blanks.
        before = " " * whole_fence.start(1)
        after = " " * (len(text) - whole_fence.end(1))
        text = before + whole_fence[1] + after
    else:
        text = _FENCE.sub(_blank, text)
    text = _LINE.sub(_blank, text)
    text = _mask_pairs(text)
    text = _SINGLE.sub(_blank, text)
    return _CODE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return _masked(match[0])


def _masked(text: str) -> str:
    """Blank a text, but not its line breaks: lines stay lines."""
    return re.sub(r"[^\n]", MASK, text)


def _mask_pairs(text: str) -> str:
    """Blank quotations in double marks, angle marks, East Asian brackets and HTML."""
    parts: list[str] = []
    position = 0
    opening = _OPENING.search(text)
    while opening:
        opening_mark = opening[0]
        closers = _CLOSES[opening_mark.casefold()]
        if len(opening_mark) > 1:
            end = _end_of_tag(text, opening.end(), closers)
        else:
            end = _closing(text, opening.end(), opening_mark, closers)
        unquoted = text[position : opening.start()]
        quotation = text[opening.start() : end]
        parts.append(unquoted)
        parts.append(_masked(quotation))
        position = end
        opening = _OPENING.search(text, position)
    parts.append(text[position:])
    return "".join(parts)


def _end_of_tag(text: str, start: int, closer: str) -> int:
    """Return the end of the first mark such as `</q>` from `start` on, or of the text."""
    closing = text.find(closer, start)
    if closing < 0:
        return len(text)
    return closing + len(closer)


def _closing(text: str, start: int, opening: str, closers: str) -> int:
    """Return where the quotation that opens right before `start` ends.

    Quotations of its kind may be inside it.
    """
    depth = 1
    marks = re.compile(f"[{re.escape(opening + closers)}]")
    for mark in marks.finditer(text, start):
        # A mark that also closes, such as a straight one, never opens a quotation inside this one.
        opens = mark[0] == opening and opening not in closers
        if opens:
            depth += 1
        else:
            depth -= 1
        if depth == 0:
            return mark.end()
    return len(text)
