"""The harness detects errors in a page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.factories import has_line


def page(text: str) -> str:
    """Return a page whose fences are written as three apostrophes."""
    return textwrap.dedent(text).replace("'''", "```")


PAGE = page("""
    '''yaml title="my.run.yaml"
    data: data.jsonl
    '''

    <!-- not run: needs a key -->
    '''console exit=1
    $ judge run data.jsonl \\
        --model gpt-5.4-mini
    output
    $ judge doctor metrics   # all of them
    '''
    """)


def test_blocks_have_the_attributes_of_their_fences(harness: ModuleType) -> None:
    file, console = harness.blocks(PAGE)
    assert (file.title, file.text) == ("my.run.yaml", "data: data.jsonl\n")
    assert (console.exit, console.not_run) == (1, "needs a key")


def test_commands_have_their_documented_output(harness: ModuleType) -> None:
    _, console = harness.blocks(PAGE)
    first, second = harness.commands(console)
    assert first == ("judge run data.jsonl --model gpt-5.4-mini", "output\n")
    assert second == ("judge doctor metrics   # all of them", "")


@pytest.mark.parametrize(
    ("documented", "printed", "part"),
    [
        ("a b\n…\nd", "a\n b c ─── d e", ""), ("took … s", "took 2.1 s", ""), ("b a", "a b", "b a"),
        ("d … a", "a b c d", "a"), ("0.91", "0.92", "0.91"), ("", "anything", ""),
    ],
)  # fmt: skip
def test_the_missing_part_is_the_first_documented_one_that_is_not_printed(
    documented: str, printed: str, part: str, harness: ModuleType
) -> None:
    assert harness.missing_part(documented, printed) == part


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("judge run data.jsonl --model NAME", ""), ("judge run data.jsonl --modle NAME", "No such option"),
        ("judge run", "Missing argument"), ("judge criteria frobnicate", "no command judge criteria frobnicate"),
        ("judge rank data.jsonl --orders many", "valid int"), ("judge report runs/first --format csv | head", ""),
        ("make demo", ""), ("make coffee", "no target coffee"), ("pip install .", ""),
    ],
)  # fmt: skip
def test_commands_that_are_not_run_are_parsed(
    command: str, message: str, harness: ModuleType
) -> None:
    error = harness.parser_error(command)
    assert message in error
    assert bool(message) == bool(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'''console\n$ judge criteria show nothing\n'''", "exited with 2, not 0"),
        ("'''console exit=1\n$ judge criteria list\n'''", "exited with 0, not 1"),
        ("'''console\n$ judge criteria list\nsarcasm\n'''", "does not print"),
        ("'''console\n$ judge criteria list | grep sarcasm\n'''", "exited with 1, not 0"),
        ("'''console\n$ pip install everything\n'''", "not started from a test"),
        ("'''console\njudge criteria list\n'''", "without a line that begins with"),
        (
            "<!-- not run: why -->\n'''console\n$ judge run data.jsonl --sped 3\n'''",
            "No such option",
        ),
        ("'''\njudge criteria list\n'''", "a command outside a console block"),
        ("'''python\nimport judge\njudge.evaluat\n'''", "no judge.evaluat"),
        ("'''python\nfrom judge.metrics import rogue\n'''", "no judge.metrics.rogue"),
        ("'''python\nassert 1 + 1 == 3, 'wrong'\n'''", "wrong"),
        ("'''pycon\n>>> 1 + 1\n3\n'''", "Got:"),
        ("'''pycon\n1 + 1\n'''", "without a line that begins with"),
        ("'''yaml title=\"../out.yaml\"\na: 1\n'''", "is outside the folder"),
    ],
)
def test_an_error_in_a_page_fails(
    text: str, message: str, harness: ModuleType, make_runner: Callable[[str], Any]
) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        harness.run_page(page(text), make_runner("a page"))


def test_a_command_with_a_pipe_connects_only_to_loopback(
    make_runner: Callable[[str], Any],
) -> None:
    connect = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    code, printed = make_runner("a page").run(f'python -c "{connect}" | cat')
    assert code == 0
    assert has_line(printed, "documentation reaches", "('192.0.2.1', 80)")
