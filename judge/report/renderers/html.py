"""Render a Document as one self-contained HTML page, or its summary as a fragment for notebooks.

The page needs no network and is complete without JavaScript. Every value that a template writes
passes `escape_controls` and Jinja's autoescape, and stands only in element content or quoted
attributes. The content security policy names the page's own script by its hash, so that no other
script can run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from judge.core.failure_kinds import failure_kind
from judge.core.format import escape_controls, one_line, plural
from judge.core.line_breaks import pieces
from judge.core.messages import full_report
from judge.report import document as blocks
from judge.report.document import Document
from judge.report.format import is_rtl, isolate
from judge.report.renderers import csv
from judge.report.renderers.csv import with_byte_order_mark
from judge.text.languages import (
    DEFAULT_LANGUAGE,
    LANGUAGES,
    detect_language_or_none,
    html_language,
)

ASSETS = Path(__file__).parents[1] / "html"
_MAX_START = 400  # characters of a text; they are enough to detect its language
_LATIN = "A-Za-zÀ-ɏ"  # for a language with an alphabet, whose letters `LANGUAGES` does not list
_LONGEST_WORD = 24  # letters of a word in a table that is not broken
_HALVES = (blocks.Excerpts, blocks.Chart)  # side by side in the summary
_MAX_CSV = 4_000_000  # characters of the rows that the page carries for its button


def render(document: Document) -> str:
    """Write the page: the finding and the summary on its first screen, then the sections."""
    style = asset("page.css") + asset("items.css")
    script = asset("page.js") + asset("items.js")
    template = page_environment().get_template("page.html.jinja")
    table_data = _table_data(document)
    # The page is the whole report.
    next_commands = [text for text in document.next if full_report() not in text]
    page: str = template.render(
        document=document,
        style=Markup(style),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        script_hash=policy_hash(script),
        table_data=table_data,
        next_commands=next_commands,
    )
    return page


def _table_data(document: Document) -> str:
    """Return the address of the document's CSV.

    It has a row per text, or if that is too long, the records.
    """
    if not document.records:
        return ""
    text = csv.render(document, wide=True)
    if len(text) > _MAX_CSV:
        text = csv.render(document)
    return "data:text/csv;charset=utf-8," + quote(with_byte_order_mark(text))


def fragment(document: Document) -> str:
    """Write the finding, the notices, the summary's tables and the failures for a notebook.

    The fragment has neither a script nor a stylesheet.
    """
    template = page_environment().get_template("fragment.html.jinja")
    return str(template.render(document=document))


def policy_hash(content: str) -> str:
    """Return the hash by which a content security policy names a script or a style."""
    digest = hashlib.sha256(content.encode()).digest()
    return base64.b64encode(digest).decode()


@cache
def page_environment(folder: Path = ASSETS) -> Environment:
    """Return the environment of the templates in a folder; it escapes every value they write."""
    loader = FileSystemLoader(folder)
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    # For the filter `tojson`, by which the templates write data for the page's script.
    environment.policies["json.dumps_function"] = _compact_json
    environment.filters |= {
        "breakable": _breakable,
        "count": plural,
        "failure_kind": failure_kind,
        "heads": _heads,
        "kind": lambda block: type(block).__name__,
        "language": _language,
        "line": _line,
        "names": _names,
        "percent": lambda share: f"{100 * share:.4g}%",
        "prose": lambda text: text if is_rtl(text) else _names(text),
        "rows_of_blocks": _rows_of_blocks,
        "svg": Markup,
    }
    return environment


def _compact_json(value: Any, **_options: Any) -> str:
    """Return JSON without blanks; Jinja's options for `json.dumps` do not count."""
    return json.dumps(
        _cleaned(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _cleaned(value: Any) -> Any:
    """Escape the controls of every text in a value that a template writes; its own markup stays."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, Mapping):
        return {key: _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value


def _line(text: str, limit: int = 0) -> Markup:
    """Return the text on one line for an attribute, with marks around right-to-left names."""
    isolated = isolate(one_line(text, limit))
    return Markup(escape(isolated))  # noqa: S704  (escaped)


def _names(text: str) -> Markup:
    """Return the text with a <bdi> around names of a right-to-left script."""
    printable = escape_controls(text)
    isolated = isolate(str(escape(printable)), "<bdi>", "</bdi>")
    return Markup(isolated)  # noqa: S704  (escaped)


def _breakable(text: str) -> Markup:
    """Return a name of a table that may be broken between its words only."""
    if isolate(text) != text:  # a tag inside a right-to-left name would divide it
        return _names(text)
    written = ""
    for piece in pieces(escape_controls(text)):
        # After a space or a hyphen, the browser breaks a line itself.
        if written and not written.endswith((" ", "-")):
            written += "<wbr>"
        starts = range(0, len(piece), _LONGEST_WORD)
        parts = []
        for part_start in starts:
            part = escape(piece[part_start : part_start + _LONGEST_WORD])
            parts.append(str(part))
        written += "<wbr>".join(parts)
    return Markup(written)  # noqa: S704  (escaped)


def _language(text: str, usual: str) -> str:
    """Return the code of a text's language, "" if it is not known.

    `usual` is the code of most texts' language.

    Traditional Chinese is `zh-Hant`, by which browsers choose the forms of its characters.
    """
    beginning = text[:_MAX_START]
    code = detect_language_or_none(beginning)
    if not code or code == DEFAULT_LANGUAGE:
        # The words of a language that judge does not know count as English.
        code = _usual_language(beginning, usual)
    return html_language(code, beginning)


def _usual_language(beginning: str, usual: str) -> str:
    """Return `usual` if most letters of a text are of its script, else ""."""
    letters = _LATIN
    if usual in LANGUAGES:
        letters = LANGUAGES[usual].letters or _LATIN
    # A class of characters, such as `[가-힣]` for Korean.
    of_script = len(re.findall(f"[{letters}]", beginning))
    all_letters = sum(map(str.isalpha, beginning))
    return usual if 2 * of_script > all_letters else ""


def _rows_of_blocks(
    summary: Sequence[blocks.Block],
) -> Iterator[tuple[bool, list[blocks.Block]]]:
    """Yield the rows of a summary: neighbouring halves in one row, any other block alone.

    The first value says whether the row is one of halves.
    """
    neighbours = groupby(summary, key=lambda block: isinstance(block, _HALVES))
    for are_halves, group in neighbours:
        if are_halves:
            yield True, list(group)
            continue
        for block in group:
            yield False, [block]


def _heads(
    columns: Sequence[blocks.Column],
) -> list[tuple[str, list[tuple[int, blocks.Column]]]]:
    """Return the headings above the columns, each with its columns and their indices.

    A column without a heading is alone.
    """
    headings: list[tuple[str, list[tuple[int, blocks.Column]]]] = []
    for index, column in enumerate(columns):
        if column.group and headings and headings[-1][0] == column.group:
            headings[-1][1].append((index, column))
        else:
            headings.append((column.group, [(index, column)]))
    return headings


@cache
def asset(file_name: str) -> str:
    """Return a style or script of the report's page, which other pages may share."""
    return (ASSETS / file_name).read_text(encoding="utf-8")
