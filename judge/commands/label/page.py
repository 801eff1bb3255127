"""Write the page of `judge label` as one HTML file, with the style of a report's page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from judge.report.renderers.html import asset, page_environment, policy_hash

_FOLDER = Path(__file__).parent


def label_page(content: Mapping[str, Any], *, language: str) -> str:
    """Write the page. `language` is that of the texts and the criteria."""
    script = (_FOLDER / "label.js").read_text(encoding="utf-8")
    style = asset("page.css") + (_FOLDER / "label.css").read_text(encoding="utf-8")
    template = page_environment(_FOLDER).get_template("label.html.jinja")
    page: str = template.render(
        content=content,
        language=language,
        style=Markup(style),  # noqa: S704  (our own file)
        style_hash=policy_hash(style),
        script=Markup(script),  # noqa: S704  (our own file)
        script_hash=policy_hash(script),
    )
    return page
