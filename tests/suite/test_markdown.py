"""Outcomes for a pull request: a golden file, nothing that runs or links, and no more than a comment holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from markdown_it import MarkdownIt

from judge.report.renderers.markdown import LIMIT
from judge.report.renderers.suite import render_markdown
from judge.suite.evaluate import Outcome

PARSER = MarkdownIt("commonmark").enable("table")


def test_golden(outcomes: list[Outcome], golden: Any) -> None:
    golden("summary.md", render_markdown(outcomes))


def test_what_is_met_is_folded_away(outcomes: list[Outcome]) -> None:
    assert render_markdown(outcomes[1:2]).startswith("## ✓ judge test\n\n**1 case met.**\n\n<details>")


def test_nothing_in_a_name_or_reply_becomes_markup(outcomes: list[Outcome]) -> None:
    page = PARSER.render(render_markdown(outcomes))
    assert "<script" not in page
    assert "<strong>b</strong>" not in page
    assert "\x1b" not in page
    assert "+```&lt;script&gt;" in page  # the diff, in its fence


def test_every_fold_that_is_opened_is_closed(outcomes: list[Outcome]) -> None:
    many = tuple(replace(outcomes[0].verdicts[k % 8], name=f"case {k}") for k in range(9))
    for number in (1, 30, 200):
        page = render_markdown([replace(outcomes[0], verdicts=many * 20) for _ in range(number)])
        assert page.count("<details>") == page.count("</details>")
        assert len(page) <= LIMIT
        assert ("The rest is in" in page) == (number > 1)


def test_a_table_of_many_cases_says_what_it_leaves_out(outcomes: list[Outcome]) -> None:
    verdicts = outcomes[0].verdicts[:1] * 1_000
    page = render_markdown([replace(outcomes[0], verdicts=verdicts, comparison=None)])
    assert "more rows." in page
    assert len(page) <= LIMIT
