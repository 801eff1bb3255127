"""Blank what a reply quotes, so that nothing in it can be read."""

from __future__ import annotations

import re

MASK = "\ufffc"
"""What stands for every quoted character: no letter, no space, no mark of any grammar."""
# The closing marks of each opening one. In some languages they are the other way around: »so«,
# „so“.
_CLOSES = {
    '"': '"', "“": "”“", "”": "”", "„": "“”„", "«": "»", "»": "«", "‹": "›", "›": "‹",
    "「": "」", "『": "』", "《": "》",
    "〝": "〞〟", "❝": "❞", "‟": "”",
    "<q>": "</q>", "<blockquote>": "</blockquote>", "&quot;": "&quot;", "&ldquo;": "&rdquo;", "``": "''",
}  # fmt: skip
# After a digit or letter, a straight mark is no opening: it may be inches.
_OPENING = re.compile(
    r"""(?<![0-9A-Za-z])"|[“”„«»‹›「『《〝❝‟]|<q>|<blockquote>|&quot;|&ldquo;|(?<!`)``(?!`)""",
    re.IGNORECASE,
)
# 'so', ‘so’: not the apostrophe of "it's", "the readers' view" or "'90s". Both ends are in one
# line.
_SINGLE = re.compile(
    r"(?<![\w'’])(?:'(?!\s)(?!(?:s|t|re|ll|d|ve|m|90s)\b)|‘)(?:[^'‘’\n]|['’](?=\w))*(?:['’](?!\w)|\n|\Z)"
)
_CODE = re.compile(r"`[^`\n]*`")
_LINE = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_WHOLE_FENCE = re.compile(r"\s*```\w*\n?((?:(?!```).)*)```\s*\Z", re.DOTALL)


def mask_quotations(text: str) -> str:
    """Return a folded text of the same length without what is in quotation marks, quoted lines,
    code or a fence.

    A quotation that nothing closes runs to the end. A fence around the whole text quotes nothing.
    """
    if whole := _WHOLE_FENCE.match(text):
        head = text[: whole.start(1)]
        text = " " * len(head) + whole[1] + " " * (len(text) - whole.end(1))
    else:
        text = _FENCE.sub(_blank, text)
    text = _LINE.sub(_blank, text)
    text = _mask_pairs(text)
    text = _SINGLE.sub(_blank, text)
    return _CODE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    """Blank a match, but not its line breaks: lines stay lines."""
    return re.sub(r"[^\n]", MASK, match[0])


def _mask_pairs(text: str) -> str:
    parts: list[str] = []
    done = 0
    while opening := _OPENING.search(text, done):
        closers = _CLOSES[opening[0].casefold()]
        if len(opening[0]) > 1:
            end = text.find(closers, opening.end())
            end = end + len(closers) if end >= 0 else len(text)
        else:
            end = _closing(text, opening.end(), opening[0], closers)
        parts.append(text[done : opening.start()])
        parts.append(re.sub(r"[^\n]", MASK, text[opening.start() : end]))
        done = end
    return "".join(parts) + text[done:]


def _closing(text: str, start: int, opening: str, closers: str) -> int:
    """Return where the quotation that opens right before `start` ends; quotations of its kind may
    be inside it."""
    depth = 1
    marks = re.compile(f"[{re.escape(opening + closers)}]")
    for mark in marks.finditer(text, start):
        depth += 1 if mark[0] == opening and opening not in closers else -1
        if not depth:
            return mark.end()
    return len(text)
