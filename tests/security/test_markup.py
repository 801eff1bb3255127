"""Names and texts in comments and on terminals run, link and mention nothing, and steer no terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.report.document import Details, Document, Paragraph
from judge.report.renderers.markdown import escape, render
from judge.suite.case import Decision
from judge.suite.evaluate import Outcome, Outcomes
from judge.suite.schema import Suite

HOSTILE = "</summary><img src=x onerror=alert(1)><b>"
EXTRAS = st.text(st.sampled_from("ab日é@#1<>&\"'`*_[]()!|~\\/:.wW-= \n\r\t\x1b$"), max_size=40)


def summary(text: str) -> str:
    """Return the title of a folded part of a report."""
    page = render(Document("A report", summary=(Details(text, (Paragraph("text"),)),)))
    return page.partition("<summary>")[2].partition("</summary>")[0]


def test_html_in_a_suite_name_is_escaped() -> None:
    decision = Decision("failed", HOSTILE, HOSTILE)
    verdict = decision.verdict(
        kind="label", name=HOSTILE, line=1, expected=HOSTILE, criterion=HOSTILE
    )
    suites = [Outcome(Suite(Path("a.judge.yaml"), HOSTILE, {}, ()), (verdict,))] * 2
    page = Outcomes(suites).report("markdown")
    assert page.count("<details>") == page.count("</details>") == page.count("<summary>") == 2
    assert not re.search(r"(?<!\\)<(?:img|b)\b", page)


@given(EXTRAS)
def test_a_summary_contains_only_text(text: str) -> None:
    cleaned = summary(text)
    assert not re.search(r"[<>\n\r\x1b]|&(?!amp;|lt;|gt;|#8203;)", cleaned)
    assert not re.search(r"@\w|://|www\.", cleaned, re.IGNORECASE)


@given(EXTRAS)
def test_a_text_in_a_comment_mentions_nobody_and_links_nothing(text: str) -> None:
    escaped = escape(text)
    assert not re.search(r"@\w", escaped)
    assert not re.search(r"(?<!\\)[<>`*\[\]|]", escaped)
    assert "://" not in escaped


@pytest.mark.parametrize(
    "text", ["日@octocat", "foo@evil.example", "mailto:foo@evil.example", "é@me"]
)
def test_mentions_are_escaped_after_any_character(text: str) -> None:
    assert "@&#8203;" in escape(text)
    assert "@&#8203;" in summary(text)


def test_numbers_of_issues_are_not_linked() -> None:
    assert [escape(text) for text in ("#12", "gh-12")] == ["\\#&#8203;12", "gh-&#8203;12"]


CRITERION = """---
title: Steer
scale: [1, 5]
---
{% extends "layouts/pointwise.jinja" %}
{% block criterion %}A\x1b[31m{% endblock %}
"""


COMMANDS = """
import json, sys
from judge.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv[:] = ["judge", *words]
    try:
        main()
    except SystemExit:
        print("END")
"""


def on_a_terminal(folder: Path, commands: Sequence[str]) -> str:
    """Return what commands write to a terminal, standard output and error together."""
    words = json.dumps([command.split() for command in commands])
    terminal, child_end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS, words],
        cwd=folder,
        stdin=child_end,
        stdout=child_end,
        stderr=child_end,
        env={**os.environ, "NO_COLOR": "1"},
    ) as child:
        os.close(child_end)
        output = b""
        while True:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # on Linux: the child has closed its end
                break
            if not part:
                break
            output += part
        child.wait()
    os.close(terminal)
    return output.decode()


@pytest.fixture
def folder_with_terminal_codes(tmp_path: Path) -> Path:
    """Return a folder with a criterion and data that have terminal codes."""
    (tmp_path / "steer.jinja").write_text(CRITERION, "utf-8")
    row = {
        "item": "a",
        "system": "s\x1b[2J",
        "source": "It left.\x1b]0;owned\x07",
        "output": "\x9b2J It did.",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    return tmp_path


@pytest.mark.slow
def test_terminal_codes_in_texts_are_escaped(folder_with_terminal_codes: Path) -> None:
    run = "run rows.jsonl --criteria none --metrics stats --out run"
    commands = [
        "criteria render relevance rows.jsonl",
        "criteria show steer.jinja",
        f"{run} --format csv",
        f"{run} --format json",
        run,
        "run no-\x1b[2Jsuch.jsonl --criteria none --metrics stats",
    ]
    output = on_a_terminal(folder_with_terminal_codes, commands)
    assert all(len(part) > 20 for part in output.split("END")[:-1])
    assert output.count("END") == len(commands)
    assert "Traceback" not in output
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", output), repr(output)


@pytest.mark.slow
def test_a_pipe_gets_the_unchanged_text(folder_with_terminal_codes: Path) -> None:
    words = json.dumps([["criteria", "render", "relevance", "rows.jsonl"]])
    command = [sys.executable, "-c", COMMANDS, words]
    completed = subprocess.run(
        command, cwd=folder_with_terminal_codes, capture_output=True, check=True
    )
    assert b"\x1b]0;owned\x07" in completed.stdout
