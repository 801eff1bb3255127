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
    """Return a folded text of the same length with its quotations blanked.

    These are texts in quotation marks, quoted lines, code and fences.

    A quotation that nothing closes runs to the end. A fence around the whole text quotes nothing.
    """
    if whole := _WHOLE_FENCE.match(text):
        # Blanks, so that every position in the text stays the same.
        before = " " * whole.start(1)
        after = " " * (len(text) - whole.end(1))
        text = before + whole[1] + after
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
        closers = _CLOSES[opening[0].casefold()]
        if len(opening[0]) > 1:
            closing = text.find(closers, opening.end())
            end = closing + len(closers) if closing >= 0 else len(text)
        else:
            end = _closing(text, opening.end(), opening[0], closers)
        parts.append(text[position : opening.start()])
        parts.append(_masked(text[opening.start() : end]))
        position = end
        opening = _OPENING.search(text, position)
    parts.append(text[position:])
    return "".join(parts)


def _closing(text: str, start: int, opening: str, closers: str) -> int:
    """Return where the quotation that opens right before `start` ends.

    Quotations of its kind may be inside it.
    """
    depth = 1
    marks = re.compile(f"[{re.escape(opening + closers)}]")
    for mark in marks.finditer(text, start):
        # A mark that also closes, such as a straight one, never opens a quotation inside this one.
        opens = mark[0] == opening and opening not in closers
        depth += 1 if opens else -1
        if not depth:
            return mark.end()
    return len(text)
