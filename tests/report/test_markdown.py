from __future__ import annotations

import re
from dataclasses import replace

import pytest

from judge.records import Failure
from judge.report import Result
from judge.report.markdown import escape, render


def test_golden(result: Result, golden) -> None:
    golden("report.md", render(result))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", "a\\|b"),
        ("<script>", "\\<script\\>"),
        ("**b** _i_ `c`", "\\*\\*b\\*\\* \\_i\\_ \\`c\\`"),
        ("[x](y)", "\\[x\\](y)"),
        ("two\nlines", "two lines"),
        ("back\\slash &amp; 日本語", "back\\\\slash \\&amp; 日本語"),
    ],
)
def test_names_cannot_be_markup(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_every_table_row_has_as_many_cells_as_its_head(result: Result) -> None:
    tables = re.findall(r"(?:^\|.*\n?)+", render(result), re.MULTILINE)
    assert len(tables) == 2
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().split("\n")}) == 1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("a `b` c", "`` doc-1, lead: a `b` c ``"),
        ("``x|y``", "``` doc-1, lead: ``x\\|y`` ```"),
        ("plain", "`doc-1, lead: plain`"),
    ],
)
def test_messages_stay_inside_their_code_span(result: Result, message: str, expected: str) -> None:
    failure = Failure("doc-1", "lead", "length", "parse", "ParseError", message)
    text = render(replace(result, table=replace(result.table, failures=(failure,))))
    assert f"| length | {expected} |" in text


def test_a_clean_run_has_no_failures_section(result: Result) -> None:
    text = render(replace(result, table=replace(result.table, failures=()), info={}))
    assert "Failures" not in text
    assert "requests" not in text
