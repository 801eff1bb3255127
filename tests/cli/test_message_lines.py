"""Messages on a terminal: lines that fit, with options and paths in one piece."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.cli.message_lines import wrapped

WORDS = st.lists(st.text("abc-/.", min_size=1, max_size=30), min_size=1)
PRINT = """
import sys
from judge.cli.terminal import print_message
print_message(sys.argv[1])
"""


@given(WORDS, st.integers(20, 100))
def test_a_message_keeps_its_words_and_no_line_is_too_wide(words: list[str], width: int) -> None:
    lines = wrapped(" ".join(words), width).split("\n")
    assert " ".join(lines).split() == words
    assert all(len(line) <= width for line in lines if " " in line)


@pytest.mark.parametrize(
    "unbroken",
    [
        "--criteria relevance,consistency",
        '--criteria "helpful: Does it help?"',
        "(--map source=article_text)",
        "judge report runs/news",
        "/data/of/the/newspaper/2026.jsonl:17:",
    ],
)
def test_an_option_with_its_value_and_a_path_stay_on_one_line(unbroken: str) -> None:
    message = f"the data has no column for the source, so use {unbroken} to name another one"
    for width in range(40, 90):
        assert any(unbroken in line for line in wrapped(message, width).split("\n"))


def test_a_quotation_that_is_wider_than_a_line_is_broken() -> None:
    lines = wrapped(f'the reply was "{"many words " * 20}"', 40).split("\n")
    assert max(map(len, lines)) <= 40


def test_lines_that_fit_and_the_indentation_stay() -> None:
    message = "two  spaces\n  an indented line that does not fit\n"
    assert wrapped(message, 24) == "two  spaces\n  an indented line that\n    does not fit\n"


def test_wide_letters_count_as_two_cells() -> None:
    assert wrapped("評価する 文章が ない", 12) == "評価する\n文章が ない"


def test_only_a_terminal_gets_broken_lines(tmp_path: Path) -> None:
    message = "a message of many words " * 20
    command = [sys.executable, "-c", PRINT, message.strip()]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert piped.stderr.strip() == message.strip()
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "40"}
    with subprocess.Popen(command, stderr=theirs, env=environment) as child:
        os.close(theirs)
        child.wait()
        shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert shown.split() == message.split()
    assert max(map(len, shown.splitlines())) <= 40
