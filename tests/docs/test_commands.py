"""Every command and every Python block of the documentation runs, and prints what its page says it prints.

A page is run from its top in a folder of its own that holds copies of `examples/`, `prompts/` and what `make demo`
leaves in a fresh clone, without keys and with no network but loopback. Of its blocks

- ```console: lines `$ COMMAND`, each followed by what it prints. Commands leave with 0; `console exit=1` says of the
  last one that it leaves with 1. What is shown has to be printed in this order; `…` stands for anything, and white
  space and rules do not count. A terminal is 120 columns wide.
- ```python: run one after the other in one module; ```pycon: lines `>>> CODE` in it too, and what they print.
- `title="FILE"` behind any language: the file is written.
- no language (pages older than this form): the lines that begin with `judge` are run, their output is not compared.

`<!-- not run: REASON -->` before a block, and RULES below, leave a block or a command out; that its commands, options
and names exist is looked up all the same.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/adding/*.md"))]
PAGES += sorted(ROOT.glob("examples/*/README.md"))
IDS = [str(page.relative_to(ROOT)) for page in PAGES]

# Of commands in blocks without a language.
ASKING = r"judge (run|rank|test|audit|validate|criteria (diff|steps)) .*--model "
NOT_RUN = {
    ASKING + r"(gpt-|anthropic/|my-model|NAME)": "asks a model",
    r"judge .*\b(politeness|relevance|new)\.jinja": "a criterion of the reader's",
    r"judge run data\.jsonl --replay calls\.jsonl": "a recording of the reader's",
    r"judge init --suite summaries\.jsonl": "begins with people's ratings, which the example has not",
    r"judge .*--metrics bertscore": "needs the extra bertscore",
    r"judge .*--workers 4": "starts four processes, which takes longer than all the rest",
}
EXITS = {
    r"judge (run|audit) .*--model heuristic": 1,  # it abstains on some texts
}
PYTHON_NOT_RUN = frozenset({("README.md", "result = judge.evaluate(")})  # asks a model
# What older pages take for granted: files of the reader's, and names in Python.
STAND_INS = dict.fromkeys(["README.md", "docs/audit.md", "docs/metrics.md"], ("data.jsonl", "summaries.jsonl"))
TEXTS: dict[str, Any] = {"outputs": ["A tram ran.", "A bus."], "references": ["The tram ran.", "The bus."]}
NAMES = {"README.md": TEXTS, "docs/metrics.md": {**TEXTS, "sources": TEXTS["references"]}}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_a_page_does_what_it_says(page: Path, harness: ModuleType, make_ground: Callable[[str], Any]) -> None:
    name = str(page.relative_to(ROOT))
    ground = make_ground(name)
    for file in STAND_INS.get(name, ()):
        shutil.copy(ROOT / "examples/compare_systems/data.jsonl", ground.folder / file)
    ground.names.update(NAMES.get(name, {}))
    harness.run_page(page.read_text("utf-8"), ground, harness.Rules(NOT_RUN, EXITS, PYTHON_NOT_RUN))


def test_every_rule_about_what_is_not_run_is_needed(harness: ModuleType) -> None:
    every = [(name, block) for name in IDS for block in harness.blocks((ROOT / name).read_text("utf-8"))]
    written = [
        harness.bare(command)
        for _, block in every
        if not block.language and not block.left_out
        for command, _ in harness.commands(block)
    ]
    assert [rule for rule in {**NOT_RUN, **EXITS} if not any(re.match(rule, command) for command in written)] == []
    assert [
        rule for rule in PYTHON_NOT_RUN if not any(rule[0] == name and rule[1] in b.text for name, b in every)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_commands_and_options_in_prose_exist(page: Path, harness: ModuleType) -> None:
    tree = harness.command_tree()
    plugin = (ROOT / "judge/pytest_plugin.py").read_text("utf-8")
    options = {
        option for node in walk(tree) for parameter in node.get_params(typer.Context(node)) for option in parameter.opts
    }
    options |= {"--help", "-h", *(f"--{name}" for name in re.findall(r'"--([\w-]+)"', plugin))}
    wrong = []
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        for span in (child.content for child in token.children or () if child.type == "code_inline"):
            words = span.replace("=", " ").split()
            if words[:1] == ["judge"] and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
                wrong += [span] * (words[1] not in tree.commands)
            if words and (words[0] == "judge" or words[0].startswith("--")):
                wrong += [f"{span}: {w}" for w in words if re.fullmatch(r"--[a-z][\w-]*", w) and w not in options]
    assert wrong == []


def walk(node: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield node
    for one in getattr(node, "commands", {}).values():
        yield from walk(one)
