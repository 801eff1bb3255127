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

from judge.core.format import escape_controls, one_line, plural
from judge.report import document as blocks
from judge.report.document import Document
from judge.report.format import is_rtl, isolate
from judge.report.renderers import csv
from judge.text.languages import DEFAULT_LANGUAGE, LANGUAGES, detect_language_or_none, html_language

ASSETS = Path(__file__).parents[1] / "html"
_LOOK_AT, _LATIN = (
    400,
    "A-Za-zÀ-ɏ",
)  # characters of a text that tell its language, and letters of an alphabet
_HALVES = (blocks.Excerpts, blocks.Chart)  # side by side in the summary


def render(document: Document) -> str:
    """Write the page: the finding and the summary on its first screen, then the sections."""
    script = asset("page.js") + asset("items.js")
    page: str = (
        page_environment()
        .get_template("page.html.jinja")
        .render(
            document=document,
            style=Markup(asset("page.css") + asset("items.css")),  # noqa: S704  (our own file)
            script=Markup(script),  # noqa: S704  (our own file)
            script_hash=policy_hash(script),
            table_data="data:text/csv;charset=utf-8," + quote(csv.render(document))
            if document.records
            else "",
        )
    )
    return page


def fragment(document: Document) -> str:
    """Write the finding, the notices, the summary's tables and what failed, without a script or a
    stylesheet."""
    return str(page_environment().get_template("fragment.html.jinja").render(document=document))


def policy_hash(content: str) -> str:
    """Return the hash by which a content security policy names a script or a style."""
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


@cache
def page_environment(folder: Path = ASSETS) -> Environment:
    """Return the environment of the templates in a folder: every value that they write is escaped."""
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    environment.policies["json.dumps_function"] = lambda value, **_: json.dumps(
        _cleaned(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    environment.filters |= {
        "count": plural,
        "heads": _heads,
        "kind": lambda block: type(block).__name__,
        "language": _language,
        "line": lambda text, limit=0: Markup(escape(isolate(one_line(text, limit)))),  # noqa: S704  (escaped)
        "names": _names,
        "percent": lambda share: f"{100 * share:.4g}%",
        "prose": lambda text: text if is_rtl(text) else _names(text),
        "rows_of_blocks": _rows_of_blocks,
        "svg": Markup,
    }
    return environment


def _cleaned(value: Any) -> Any:
    """Escape the controls of every text in a value that a template writes; its own markup stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape_controls(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(inner) for name, inner in value.items()}
    return [_cleaned(inner) for inner in value] if isinstance(value, list | tuple) else value


def _names(text: str) -> Markup:
    """Return the text with a <bdi> around names of a right-to-left script."""
    return Markup(isolate(str(escape(escape_controls(text))), "<bdi>", "</bdi>"))  # noqa: S704  (escaped)


def _language(text: str, usual: str) -> str:
    """Return the code of a text's language, "" if it is not known; `usual` is that of most texts.

    Traditional Chinese is `zh-Hant`, by which browsers choose the forms of its characters.
    """
    start = text[:_LOOK_AT]
    code = detect_language_or_none(start)
    if not code or code == DEFAULT_LANGUAGE:
        code = _usual_language(start, usual)
    return html_language(code, start)


def _usual_language(start: str, usual: str) -> str:
    """Return `usual` if most letters of a text are of its script, else ""."""
    script = re.compile(f"[{(usual in LANGUAGES and LANGUAGES[usual].letters) or _LATIN}]")
    return usual if 2 * len(script.findall(start)) > sum(map(str.isalpha, start)) else ""


def _rows_of_blocks(summary: Sequence[blocks.Block]) -> Iterator[tuple[bool, list[blocks.Block]]]:
    """Yield the blocks of a summary: those that stand side by side together, any other alone."""
    for half, group in groupby(summary, key=lambda block: isinstance(block, _HALVES)):
        if half:
            yield True, list(group)
        else:
            yield from ((False, [block]) for block in group)


def _heads(columns: Sequence[blocks.Column]) -> list[tuple[str, list[tuple[int, blocks.Column]]]]:
    """Return the headings above the columns, each with its columns and their places; a column
    without one is alone."""
    places = groupby(
        enumerate(columns), key=lambda place: (place[1].group, -1 if place[1].group else place[0])
    )
    return [(group, list(members)) for (group, _), members in places]


@cache
def asset(name: str) -> str:
    """Return a style or script of the report's page, which other pages may share."""
    return (ASSETS / name).read_text(encoding="utf-8")
