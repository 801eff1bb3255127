"""Links lead to files and headings that exist, every page can be found, and pages are short."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"), *sorted(ROOT.glob(".github/*.md")), *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/**/*.md")), *sorted(ROOT.glob("benchmarks/**/*.md")),
]  # fmt: skip


def inline(page: Path) -> list[tuple[Token, Token]]:
    """Return each text token after the token before it, which tells whether the text is a heading."""
    tokens = MarkdownIt().enable("table").parse(page.read_text("utf-8"))
    return [(before, token) for before, token in pairwise(tokens) if token.type == "inline"]


def links(page: Path) -> list[str]:
    """Return the targets of links and pictures, without web addresses."""
    children = [child for _, token in inline(page) for child in token.children or ()]
    targets = [str(child.attrGet("href") or child.attrGet("src") or "") for child in children]
    return [link for link in targets if link and not re.match(r"[a-z]+:", link)]


def headings(page: Path) -> set[str]:
    """Return GitHub's anchors of a page's headings."""
    texts = [
        token.content.replace("`", "")
        for before, token in inline(page)
        if before.type == "heading_open"
    ]
    names = [re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts]
    return {
        f"{name}-{names[:index].count(name)}" if name in names[:index] else name
        for index, name in enumerate(names)
    }


def test_links_point_to_existing_files_and_headings() -> None:
    wrong = []
    anchors = cache(headings)
    for page in PAGES:
        for link in links(page):
            name, _, heading = unquote(link).partition("#")
            target = (page.parent / name).resolve() if name else page
            exists = target.exists() and target.is_relative_to(ROOT)
            if exists and heading and target.suffix == ".md":
                exists = heading in anchors(target)
            if not exists:
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []


def test_the_index_links_to_every_page() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    pages = set(ROOT.glob("docs/*.md")) - {index}
    assert sorted(page.name for page in pages - linked) == []


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in links(page):
            target = (page.parent / unquote(link).partition("#")[0]).resolve()
            if target.suffix == ".md" and target.is_file():
                waiting.append(target)
    orphans = set(PAGES) - reached
    # GitHub shows these pages without a link.
    shown_by_github = {page for page in orphans if page.parent.name == ".github"}
    assert sorted(str(page.relative_to(ROOT)) for page in orphans - shown_by_github) == []


def prose_words(text: str) -> int:
    """Return the number of words outside code blocks."""
    return len(re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE).split())


def test_pages_are_short() -> None:
    words = {page.name: prose_words(page.read_text("utf-8")) for page in ROOT.glob("docs/*.md")}
    del words["reference.md"]  # written from the docstrings
    assert {name: count for name, count in words.items() if count > 2500} == {}
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 1200


def test_headings_have_the_anchors_of_github(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Speed (`run`): why?\n\n## Ways\n\n## Ways\n", "utf-8")
    assert headings(page) == {"speed-run-why", "ways", "ways-1"}


def test_links_are_those_within_the_repository(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](#ways-1), ![b](c.png), <https://x.org>\n", "utf-8")
    assert links(page) == ["#ways-1", "c.png"]
