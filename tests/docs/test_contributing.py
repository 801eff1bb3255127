"""CONTRIBUTING.md names every package, and the page on extending judge has a section for each kind."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_contributing_names_every_package_and_module() -> None:
    listed = set(re.findall(r"`(judge/[a-z_]+(?:/|\.py))`", TEXT))
    packages = {f"judge/{path.parent.name}/" for path in (ROOT / "judge").glob("*/__init__.py")}
    modules = {
        f"judge/{path.name}"
        for path in (ROOT / "judge").glob("*.py")
        if not path.name.startswith("__")
    }
    assert packages | modules <= listed


def test_the_table_of_extensions_links_to_every_section() -> None:
    page = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)$", page, re.MULTILINE)
    linked = re.findall(r"^\| \[[^]]+\]\(#([\w-]+)\)", page, re.MULTILINE)
    assert sorted(linked) == sorted(section.lower().replace(" ", "-") for section in sections)
