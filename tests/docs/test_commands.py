"""Every command and every Python block of the documentation runs, and prints what its page shows.

Each page runs from top to bottom in a folder with copies of `examples/`, `prompts/` and the `runs/` of `make demo`,
without keys and with no network beyond loopback. Its blocks are

- ```console: lines `$ COMMAND`, each followed by its output. Commands exit with 0; with `console exit=1`, the last one
  exits with 1. The output must appear in this order; `…` stands for anything, and white space and rules do not count.
  The terminal has 80 columns.
- ```python: run one after the other in one module. ```pycon: lines `>>> CODE` in this module, with their output.
- `title="FILE"` behind any language: the file is written.

`<!-- not run: REASON -->` before a block skips it; its commands, options and names must exist all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/*.md")),
    ROOT / "judge/commands/init/agent_skill/SKILL.md",
]
PAGES += sorted(ROOT.glob("examples/*/README.md"))
IDS = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=IDS)
@pytest.mark.slow
def test_commands_and_code_of_a_page_run(
    page: Path, harness: ModuleType, make_runner: Callable[[str], Any]
) -> None:
    harness.run_page(page.read_text("utf-8"), make_runner(str(page.relative_to(ROOT))))


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_and_options_in_prose_exist(page: Path, harness: ModuleType) -> None:
    tree = harness.app
    plugin = (ROOT / "judge/pytest_plugin.py").read_text("utf-8")
    parameters = [
        parameter for node in walk(tree) for parameter in node.get_params(click.Context(node))
    ]
    options = {
        option
        for parameter in parameters
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    options |= {"--help", "-h", *(f"--{name}" for name in re.findall(r'"--([\w-]+)"', plugin))}
    wrong = []
    for span in code_spans(page):
        words = span.replace("=", " ").split()
        is_command = words[:1] == ["judge"] and len(words) > 1
        if is_command and re.fullmatch(r"[a-z]+", words[1]) and words[1] not in tree.commands:
            wrong.append(span)
        if words and (words[0] == "judge" or words[0].startswith("--")):
            flags = [word for word in words if re.fullmatch(r"--[a-z][\w-]*", word)]
            wrong += [f"{span}: {flag}" for flag in flags if flag not in options]
    assert wrong == []


def code_spans(page: Path) -> Iterator[str]:
    """Yield the code between backticks in the prose of a page, without its tables."""
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        for child in token.children or ():
            if child.type == "code_inline":
                yield child.content


def walk(node: Any) -> Iterator[Any]:
    """Yield a command and its subcommands."""
    yield node
    for command in getattr(node, "commands", {}).values():
        yield from walk(command)
