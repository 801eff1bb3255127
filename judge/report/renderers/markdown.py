"""Render a Document as GitHub-flavoured Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch

from judge.core.format import escape_controls, one_line, plural
from judge.report import document as blocks
from judge.report.document import Document

LIMIT = 60_000
"""The most characters of a report; a comment on GitHub holds 65,536."""
_TABLE, _LIST = 25_000, 12_000  # characters of one table and of one list, so that the next blocks have room
_MAX_COLUMNS = 24  # of a table
_NAME, _CELL, _TEXT = 80, 300, 3_000  # characters of a name, a cell, a paragraph
_REST = "The rest is in the HTML report."

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean something here.
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&$]|(?<=:)/(?=/)|(?<=(?i:www))\.)")
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:[\s-]|$)|=))")  # a list, a rule, a heading's line
# GitHub links people, addresses and issues after Markdown is done: only a character without width keeps it from that.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)

_Piece = Callable[[int], str]
"""Writes a block in at most this many characters, or nothing if it cannot be shortened to that."""


def render(document: Document) -> str:
    """Write the finding, the summary and the sections, in at most `LIMIT` characters."""
    pieces = [_text(f"## {escape(document.title, 200)}")]
    if document.finding:
        headline, *details = document.finding
        pieces.append(_text(" ".join([f"**{escape(headline)}**", *map(escape, details)])))
    pieces += [_text(f"> {escape(notice, 500)}") for notice in document.notices[:20]]
    if document.about:
        pieces.append(_text(escape(" · ".join(document.about))))
    for block in document.summary:
        pieces += _pieces(block)
    for section in sorted(document.sections, key=lambda section: section.folded):
        if section.folded:
            pieces += _pieces(blocks.Details(section.title, section.blocks))
        elif inner := [piece for block in section.blocks for piece in _pieces(block)]:
            pieces += [_text(f"### {escape(section.title, 200)}"), *inner]
    return _fit(pieces, LIMIT)


def escape(text: str, limit: int = _TEXT) -> str:
    """Return the text on one line, without anything that Markdown, HTML or GitHub reads as markup, link or mention."""
    literal = _BLOCK.sub(r"\1\\", _SPECIAL.sub(r"\\\1", one_line(text, limit)))
    return _LINKED.sub(r"\g<0>&#8203;", literal)


def _fit(pieces: Iterable[_Piece], room: int) -> str:
    """Join the pieces; from the first that does not fit into `room` characters on, write only where the rest is."""
    page = ""
    for piece in pieces:
        gap = "\n" if page else ""
        text = piece(room - len(page) - len(gap) - len(_REST) - 3)
        if not text:
            return f"{page}{gap}{_REST}\n"
        page += f"{gap}{text}\n"
    return page


def _text(text: str) -> _Piece:
    return lambda room: text if len(text) <= room else ""


def _list(lines: Iterable[str]) -> list[_Piece]:
    """Return a list that loses lines at the end if it is too long, and says so."""
    items = [f"- {line}" for line in lines]

    def piece(room: int) -> str:
        shown, size = 0, 60  # for the note
        while shown < len(items) and (size := size + len(items[shown]) + 1) <= min(room, _LIST):
            shown += 1
        if not shown:
            return ""
        note = f"\n\n… {plural(len(items) - shown, 'more line')}. {_REST}" if shown < len(items) else ""
        return "\n".join(items[:shown]) + note

    return [piece] if items else []


@singledispatch
def _pieces(block: blocks.Block) -> list[_Piece]:
    """Return the pieces of a block; a block that Markdown cannot show has none."""
    return []


@_pieces.register
def _(block: blocks.Heading) -> list[_Piece]:
    return [_text(f"{'#' * (block.level + 1)} {escape(block.text, 200)}")]


@_pieces.register
def _(block: blocks.Paragraph) -> list[_Piece]:
    return [_text(text)] if (text := escape(block.text)) else []


@_pieces.register
def _(block: blocks.Notice) -> list[_Piece]:
    return [_text(f"> {escape(block.text, 500)}")]


@_pieces.register
def _(block: blocks.Facts) -> list[_Piece]:
    return _list(f"{escape(name, _NAME)}: {escape(text, 500)}" for name, text in block.pairs)


@_pieces.register
def _(block: blocks.Tiles) -> list[_Piece]:
    return [_text(" · ".join(f"**{escape(tile.value)}** {escape(tile.label)}" for tile in block.tiles))]


@_pieces.register
def _(block: blocks.Bullets) -> list[_Piece]:
    return _list(map(escape, block.items))


@_pieces.register
def _(block: blocks.Code) -> list[_Piece]:
    return [_text(_fenced(block.text, block.language))]


@_pieces.register
def _(block: blocks.Diff) -> list[_Piece]:
    return [_text(_fenced("\n".join(block.lines), "diff"))] if block.lines else []


@_pieces.register
def _(block: blocks.Excerpts) -> list[_Piece]:
    lines = []
    for e in block.excerpts:
        name = " ".join(escape(part, _NAME) for part in (e.item, e.system, e.column) if part)
        more = (e.note, f"Text: {e.text}") if e.text else ()
        why = " · ".join(escape(text, _CELL) for text in (e.reason, *more) if text)
        lines.append(f"{name} **{escape(e.score)}**" + (f": {why}" if why else ""))
    return [*([_text(f"{escape(block.label)}:")] if block.label else []), *_list(lines)]


@_pieces.register
def _(block: blocks.Details) -> list[_Piece]:
    if any(isinstance(child, blocks.Code) for child in block.blocks):
        return []  # prompts fill a comment; the page has them
    title = html.escape(one_line(block.title, 2 * _NAME), quote=False)
    title = _ADDRESS.sub(r"\g<0>&#8203;", _LINKED.sub(r"\g<0>&#8203;", title))
    head, foot = f"<details>\n<summary>{title}</summary>\n\n", "\n</details>"
    inner = [piece for child in block.blocks for piece in _pieces(child)]

    def piece(room: int) -> str:
        room -= len(head) + len(foot)
        return head + _fit(inner, room) + foot if room > 200 else ""

    return [piece] if inner else []


@_pieces.register
def _(block: blocks.Table) -> list[_Piece]:
    """Write a table that loses columns and rows if it is too large, and says so."""
    block = block if block.short else block.tall
    columns = block.columns[:_MAX_COLUMNS]
    heads = [
        escape(", ".join(filter(None, (column.group, column.head))), _NAME) + blocks.ARROWS[column.better]
        for column in columns
    ]
    rule = ["---:" if column.numeric and place else "---" for place, column in enumerate(columns)]
    rows = [heads, rule, *([_cell(cell, short=block.short) for cell in row[:_MAX_COLUMNS]] for row in block.rows)]
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]

    def table(room: int) -> str:
        shown, size = 0, 100  # for the note
        while shown < len(lines) and (size := size + len(lines[shown]) + 1) <= min(room, _TABLE):
            shown += 1
        if shown < min(3, len(lines)):
            return ""
        missing = [(len(block.columns) - len(columns), "column"), (len(lines) - shown, "row")]
        note = " and ".join(plural(n, f"more {noun}") for n, noun in missing if n)
        return "\n".join(lines[:shown]) + (f"\n\n… {note}. {_REST}" if note else "")

    notes = [_text(escape(text)) for text in (block.caption, block.key) if text]
    return [table, *notes]


def _cell(cell: blocks.Cell, *, short: bool) -> str:
    text = escape(cell.text, _CELL)
    if cell.tone in ("strong", "good") and text:
        text = f"**{text}**"
    return " ".join(filter(None, (text + escape(cell.mark), "" if short else escape(cell.note, _CELL))))


def _fenced(text: str, language: str) -> str:
    """Return a code block with a fence that is longer than any in the text."""
    text = escape_controls(text)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return f"{fence}{language}\n{text}\n{fence}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table of plain texts, for documents that are not reports."""
    document = blocks.Table(
        tuple(blocks.Column(head, numeric=False) for head in heads),
        tuple(tuple(blocks.Cell(text) for text in row) for row in rows),
    )
    return "\n".join(piece(LIMIT) for piece in _pieces(document))
