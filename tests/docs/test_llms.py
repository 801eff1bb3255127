"""docs/llms.txt is written from docs/README.md and README.md: JUDGE_GOLDEN=write pytest tests/docs/test_llms.py.

Its format is that of https://llmstxt.org: a title, a summary as a quotation, notes, and sections with links to pages and
a line about each. The section `Optional` lists the pages that an agent may leave out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "llms.txt"
OPTIONAL = "Maintainers"
"""The section of the index that agents may leave out."""
NOTES = """\
- The skill for agents says which command does what, with five worked jobs, exit codes, formats and what never to do:
  `judge init --skill -` prints it, `judge init --skill .claude/skills` installs it.
- `judge COMMAND --help-all` lists all options of a command. `--json` prints the report for programs.
- Every command and every Python block on these pages runs in a test.
"""


def summary() -> str:
    """Return the first sentence of README.md."""
    text = (ROOT / "README.md").read_text("utf-8")
    paragraph = text.split("\n\n")[1]
    return " ".join(paragraph.split()).replace("`", "")


def sections() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield the sections of the index of the pages, with title, file and description of each page."""
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    for heading, lines in re.findall(r"^\*\*(.+)\*\*\n\n((?:- .+\n)+)", index, re.MULTILINE):
        pages = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", lines, re.MULTILINE)
        assert len(pages) == lines.count("\n"), f"docs/README.md: not a page below {heading}"
        yield heading, pages


def llms_txt() -> str:
    """Return the whole file."""
    blocks = ["# judge", f"> {summary()}", NOTES.strip()]
    optional: list[str] = []
    for heading, pages in sections():
        lines = [f"- [{title}]({file}): {text}" for title, file, text in pages]
        if heading == OPTIONAL:
            optional = lines
        else:
            blocks += [f"## {heading}", "\n".join(lines)]
    more_pages = [
        "- [Skill for agents](../judge/commands/init/agent_skill/SKILL.md): commands, worked jobs, exit codes, formats",
        "- [All options](../judge/commands/init/agent_skill/references/options.md): every option of every command",
        "- [Examples](../examples/README.md): projects that run offline",
    ]
    blocks += ["## Skill and examples", "\n".join(more_pages), "## Optional", "\n".join(optional)]
    return "\n\n".join(blocks) + "\n"


def test_the_file_for_language_models_is_written_from_the_index_of_the_pages() -> None:
    if os.environ.get("JUDGE_GOLDEN") == "write":
        PAGE.write_text(llms_txt(), encoding="utf-8")
    assert PAGE.read_text("utf-8") == llms_txt()


def test_the_file_for_language_models_links_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([^)]+)\)", PAGE.read_text("utf-8")))
    pages = {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"}
    assert pages - linked == set()
    assert [link for link in linked if not (PAGE.parent / link).exists()] == []


def test_the_file_for_language_models_has_the_parts_of_the_convention_in_order() -> None:
    title, quotation, *blocks = PAGE.read_text("utf-8").strip().split("\n\n")
    assert title == "# judge"
    assert quotation.startswith("> ")
    headings = [block for block in blocks if block.startswith("#")]
    assert all(re.fullmatch(r"## [^\n]+", heading) for heading in headings)
    assert headings[-1] == "## Optional"
    for heading, next_block in pairwise(blocks):
        if heading.startswith("## "):
            lines = next_block.splitlines()
            assert all(re.fullmatch(r"- \[.+\]\(.+\): .+", line) for line in lines), heading
