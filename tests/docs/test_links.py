"""The pages of the documentation lead somewhere: files and headings are there, and the index names every page."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"), *sorted(ROOT.glob(".github/*.md")), *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]  # fmt: skip


def inline(page: Path) -> list[tuple[Token, Token]]:
    """Each piece of a page's text with the token before it, which says whether it is a heading."""
    tokens = MarkdownIt().enable("table").parse(page.read_text("utf-8"))
    return [(before, token) for before, token in pairwise(tokens) if token.type == "inline"]


def links(page: Path) -> list[str]:
    """Where a page's links and pictures lead, but for the web."""
    children = [child for _, token in inline(page) for child in token.children or ()]
    found = [str(child.attrGet("href") or child.attrGet("src") or "") for child in children]
    return [link for link in found if link and not re.match(r"[a-z]+:", link)]


def headings(page: Path) -> set[str]:
    """The names under which GitHub reaches a page's headings."""
    told = [token.content.replace("`", "") for before, token in inline(page) if before.type == "heading_open"]
    names = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in told]
    return {f"{name}-{names[:n].count(name)}" if name in names[:n] else name for n, name in enumerate(names)}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = []
    for link in links(page):
        name, _, heading = unquote(link).partition("#")
        target = (page.parent / name).resolve() if name else page
        there = target.exists() and target.is_relative_to(ROOT)
        if not there or (heading and target.suffix == ".md" and heading not in headings(target)):
            wrong.append(link)
    assert wrong == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs/README.md"
    named = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = {page for page in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/adding/*.md")) if page != index}
    assert sorted(page.name for page in pages - named) == []


def test_a_heading_is_named_as_on_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "# Speed (`run`): why?\n\n## Ways\n\n## Ways\n\n[a](#ways-1), ![b](c.png), <https://x.org>\n"
    page.write_text(text, "utf-8")
    assert headings(page) == {"speed-run-why", "ways", "ways-1"}
    assert links(page) == ["#ways-1", "c.png"]
