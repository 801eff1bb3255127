"""Render a Document as GitHub-flavoured Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from functools import singledispatch
from itertools import accumulate

from judge.core.format import escape_controls, one_line, plural
from judge.report import document as blocks
from judge.report.document import Document

LIMIT = 60_000
"""The most characters of a report; a comment on GitHub holds 65,536."""
# The most characters of a block, so that the next blocks have room.
_TABLE = 15_000
_LIST = 8_000
_FOLDED = 20_000
# The most characters of a name, of a cell, and of any other text.
_NAME = 80
_CELL = 300
_TEXT = 3_000
_MAX_COLUMNS = 24  # of a table
_REST = "The rest is in the HTML report."

# A backslash makes any ASCII punctuation literal (CommonMark 2.4); these are the ones that can mean
# something here: `*bold*`, `https://`, `www.`
_SPECIAL = re.compile(r"([\\`*_\[\]|~#<>&$]|(?<=:)/(?=/)|(?<=(?i:www))\.)")
# What makes a line a list, a rule or a heading: `1. `, `- `, `---`, `===`. Group 1 is what precedes
# the character to escape: the `1` of `1. `, otherwise nothing.
_BLOCK = re.compile(r"^(\d{1,9}(?=[.)](?:\s|$))|(?=[-+](?:[\s-]|$)|=))")
# `@name`, `#12`, `GH-12`: GitHub links people and issues after Markdown is done, so a backslash
# does not help. Only a character without width, after the match, prevents the link.
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
# The `:` of `https://` and the `www` of `www.example.org`
_ADDRESS = re.compile(r":(?=//)|\bwww(?=\.)", re.IGNORECASE)
_NO_LINK = r"\g<0>&#8203;"  # the match, and a space without width


def render(document: Document) -> str:
    """Write the finding, the summary and the sections, in at most `LIMIT` characters."""
    texts = [f"## {escape(document.title, 200)}"]
    if document.finding:
        headline, *details = document.finding
        bold_headline = _bold(escape(headline))
        sentences = [escape(sentence) for sentence in details]
        finding = " ".join([bold_headline, *sentences])
        texts.append(finding)
    texts += map(_notice, document.notices[:20])
    texts += [escape(remark, 500) for remark in document.remarks[:20]]
    about = " · ".join(document.about)
    texts.append(escape(about))
    texts += map(_text, document.summary)
    # Folded sections come last: if the report is too long, they are what is cut.
    for section in sorted(document.sections, key=lambda section: section.folded):
        texts += _section(section)
    return _join(texts, LIMIT)


def _section(section: blocks.Section) -> list[str]:
    """Return the texts of a section; none if Markdown can show none of its blocks."""
    if section.folded:
        details_block = blocks.Details(section.title, section.blocks)
        return [_text(details_block)]
    texts_of_blocks = map(_text, section.blocks)
    texts = list(filter(None, texts_of_blocks))
    if not texts:
        return []
    heading = escape(section.title, 200)
    return [f"### {heading}", *texts]


def _notice(text: str) -> str:
    """Return a notice as a quotation that keeps its lines: the last one often says what to do."""
    lines = [escape(line, 500) for line in text.split("\n")]
    # A backslash keeps the end of a line.
    quoted = "\\\n> ".join(lines)
    return f"> {quoted}"


def escape(text: str, limit: int = _TEXT) -> str:
    """Return the text on one line, without anything that is read as markup, link or mention.

    Markdown, HTML and GitHub read it.
    """
    without_marks = _SPECIAL.sub(r"\\\1", one_line(text, limit))
    literal = _BLOCK.sub(r"\1\\", without_marks)
    return _LINKED.sub(_NO_LINK, literal)


def _bold(text: str) -> str:
    return f"**{text}**"


def _join(texts: Iterable[str], room: int) -> str:
    """Join the texts, as long as they fit into `room` characters.

    The first text that does not fit is replaced by a line that says where to read the rest.
    """
    # Up to two texts are added: this one and `_REST`, each with an empty line and a line's end.
    n_line_ends = 4
    page = ""
    for text in filter(None, texts):
        gap = "\n" if page else ""
        if len(page) + len(text) + len(_REST) + n_line_ends > room:
            return f"{page}{gap}{_REST}\n"
        page += f"{gap}{text}\n"
    return page


def _fitting(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines that fit into `room` characters."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= room]


def _list(lines: Iterable[str]) -> str:
    """Write a list that loses lines at the end if it is too long, and says so."""
    items = [f"- {line}" for line in lines]
    fitting = _fitting(items, _LIST)
    text = "\n".join(fitting)
    n_missing = len(items) - len(fitting)
    if not n_missing:
        return text
    missing = plural(n_missing, "more line")
    return f"{text}\n\n… {missing}. {_REST}"


@singledispatch
def _text(block: blocks.Block) -> str:
    """Write a block; "" if Markdown cannot show it."""
    return ""


@_text.register
def _(block: blocks.Heading) -> str:
    marks = "#" * (block.level + 1)
    heading = escape(block.text, 200)
    return f"{marks} {heading}"


@_text.register
def _(block: blocks.Paragraph) -> str:
    return escape(block.text)


@_text.register
def _(block: blocks.Notice) -> str:
    return _notice(block.text)


@_text.register
def _(block: blocks.Facts) -> str:
    lines = []
    for name, text in block.pairs:
        escaped_name = escape(name, _NAME)
        escaped_text = escape(text, 500)
        lines.append(f"{escaped_name}: {escaped_text}")
    return _list(lines)


@_text.register
def _(block: blocks.Bullets) -> str:
    items = []
    for item in block.items:
        lines = map(escape, item.split("\n"))
        # A backslash keeps the end of a line.
        items.append("\\\n  ".join(lines))
    return _list(items)


@_text.register
def _(block: blocks.Code) -> str:
    return _fenced(block.text, block.language)


@_text.register
def _(block: blocks.Diff) -> str:
    if not block.lines:
        return ""
    text = "\n".join(block.lines)
    return _fenced(text, "diff")


@_text.register
def _(block: blocks.Excerpts) -> str:
    lines = []
    for excerpt in block.excerpts:
        names = filter(None, (excerpt.item, excerpt.system, excerpt.column))
        name = " ".join(escape(part, _NAME) for part in names)
        # The note is about the text.
        texts = [excerpt.reason]
        if excerpt.text:
            texts += [excerpt.note, f"Text: {excerpt.text}"]
        explanations = [escape(text, _CELL) for text in filter(None, texts)]
        score = _bold(escape(excerpt.score))
        line = f"{name} {score}"
        if explanations:
            explanation = " · ".join(explanations)
            line = f"{line}: {explanation}"
        lines.append(line)
    if block.rest:
        lines.append(block.rest)
    text = _list(lines)
    if not block.label:
        return text
    label = escape(block.label)
    return f"{label}:\n\n{text}"


@_text.register
def _(block: blocks.Details) -> str:
    if any(isinstance(child, blocks.Code) for child in block.blocks):
        return ""  # prompts fill a comment; the page has them
    inner = _join(map(_text, block.blocks), _FOLDED)
    if not inner:
        return ""
    # In HTML, a backslash escapes nothing.
    title = html.escape(one_line(block.title, 2 * _NAME), quote=False)
    title = _LINKED.sub(_NO_LINK, title)
    title = _ADDRESS.sub(_NO_LINK, title)
    return f"<details>\n<summary>{title}</summary>\n\n{inner}\n</details>"


@_text.register
def _(block: blocks.Table) -> str:
    """Write a table that loses columns and rows if it is too large, and says so."""
    if not block.short:
        block = block.tall
    columns = block.columns[:_MAX_COLUMNS]
    heads = []
    rule = []
    for index, column in enumerate(columns):
        parts = (column.group, column.head)
        title = ", ".join(filter(None, parts))
        head = escape(title, _NAME)
        heads.append(head + blocks.ARROWS[column.better])
        # The first column names the rows, even if by numbers.
        is_right_aligned = column.numeric and index > 0
        rule.append("---:" if is_right_aligned else "---")
    lines = [_row(heads), _row(rule)]
    for row in block.rows:
        cells = [_cell(cell, short=block.short) for cell in row[:_MAX_COLUMNS]]
        lines.append(_row(cells))
    fitting = _fitting(lines, _TABLE)
    note = _note_on_missing(
        n_columns=len(block.columns) - len(columns),
        n_rows=len(lines) - len(fitting),
    )
    texts = [
        "\n".join(fitting),
        note,
        escape(block.caption),
        escape(block.whole_key),
    ]
    return "\n\n".join(filter(None, texts))


def _row(cells: Sequence[str]) -> str:
    line = " | ".join(cells)
    return f"| {line} |"


def _note_on_missing(*, n_columns: int, n_rows: int) -> str:
    """Say how many columns and rows a table has lost; "" if it is whole."""
    missing = []
    if n_columns:
        missing.append(plural(n_columns, "more column"))
    if n_rows:
        missing.append(plural(n_rows, "more row"))
    if not missing:
        return ""
    counts = " and ".join(missing)
    return f"… {counts}. {_REST}"


def _cell(cell: blocks.Cell, *, short: bool) -> str:
    """Write a cell; in a `short` table, its small text is the shorter one."""
    text = escape(cell.text, _CELL)
    if cell.tone in ("strong", "good") and text:
        text = _bold(text)
    text += escape(cell.mark)
    small_text = cell.counted if short else cell.small_text
    parts = (text, escape(small_text, _CELL))
    return " ".join(filter(None, parts))


def _fenced(text: str, language: str) -> str:
    """Return a code block with a fence that is longer than any in the text."""
    text = escape_controls(text)
    # CommonMark ends a block at a fence that is at least as long as the first one.
    runs = re.findall("`+", text)
    longest_run = max(map(len, runs), default=0)
    fence = "`" * max(3, longest_run + 1)
    return f"{fence}{language}\n{text}\n{fence}"
