"""A card as one self-contained page without a script."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from judge.audit.card import Card
from judge.report.format import line
from judge.report.renderers import html
from judge.report.views.audit import layout

TEMPLATES = Path(__file__).parents[1] / "templates"


def render(card: Card) -> str:
    """The page: no network, no script; readable in the dark and on paper."""
    own = (TEMPLATES / "card.css").read_text(encoding="utf-8")
    style = Markup(html.source("report.css") + own)  # noqa: S704  (our own files)
    page: str = _environment().get_template("card.html.jinja").render(shown=layout(card), style=style)
    return page


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader([TEMPLATES, html.TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["line"] = line
    return found
