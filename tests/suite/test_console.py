"""Outcomes for a terminal: a golden file at 80 columns, narrow and wide ones, and hostile text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.cells import cell_len

from judge.report.renderers.suite import render_console
from judge.suite.evaluate import Outcome


def test_golden(outcomes: list[Outcome], golden: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden("console.txt", render_console(outcomes))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_row_is_wider_than_the_terminal(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(cell_len, render_console(outcomes).split("\n"))) <= width


def test_colour_is_codes_around_the_same_text(outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    plain, coloured = render_console(outcomes), render_console(outcomes, colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [row.rstrip() for row in stripped.split("\n")] == plain.split("\n")


def test_of_one_suite_the_sentence_stands_once(outcomes: list[Outcome]) -> None:
    assert render_console(outcomes[1:2]).count("1 case met.") == 1
