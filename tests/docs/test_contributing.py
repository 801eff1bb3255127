"""CONTRIBUTING.md names every package and every page on adding something, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_package_is_listed() -> None:
    listed = set(re.findall(r"`(judge/[a-z_]+(?:/|\.py))`", TEXT))
    packages = {f"judge/{path.parent.name}/" for path in (ROOT / "judge").glob("*/__init__.py")}
    modules = {
        f"judge/{path.name}"
        for path in (ROOT / "judge").glob("*.py")
        if not path.name.startswith("__")
    }
    assert packages | modules <= listed


def test_every_named_file_exists() -> None:
    named = {
        name
        for name in re.findall(r"`((?:judge|prompts|tests|docs)/[^`]*)`", TEXT)
        if "<" not in name
    }
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_on_adding_is_linked() -> None:
    assert set(re.findall(r"docs/adding/(\w+)\.md", TEXT)) == {
        path.stem for path in (ROOT / "docs/adding").glob("*.md")
    }
