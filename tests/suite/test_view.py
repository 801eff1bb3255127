"""Outcomes laid out: the sentence that comes first, and what is cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.report.views.suite import changed, suite_summary, suite_view, totals
from judge.results.comparison import Change
from judge.suite.evaluate import Outcome
from judge.suite.expectations.case import Verdict

PASSED = Verdict("a", 1, "score_range", "c", "passed", True, "≥ 4", "4.5")


def test_what_needs_attention_is_said_first(outcomes: list[Outcome]) -> None:
    told = (
        "3 of 6 cases not met: 1 failed, 1 undecided, 1 without a score. 1 limit not kept: failures. "
        "Worse than the baseline: relevance."
    )
    assert suite_summary(outcomes[:1]) == told
    assert suite_summary(outcomes[1:2]) == "1 case met."
    assert suite_summary(outcomes[2:]) == "The suite could not be run."
    assert totals(outcomes) == f"3 suites: 1 suite could not be run. {told.replace('of 6', 'of 7')}"


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ([PASSED, PASSED], "All 2 cases met."),
        ([PASSED, replace(PASSED, kind="drift", status="undecided")], "All 2 cases met, 1 of them undecided."),
        ([PASSED, replace(PASSED, name="cost", kind="limit", status="error", met=False)], "1 limit not kept: cost."),
        ([replace(PASSED, kind="baseline", status="error", met=False)], "Not comparable with the baseline: c."),
    ],
)
def test_the_sentence_counts_what_is_not_met(outcomes: list[Outcome], verdicts: list[Verdict], told: str) -> None:
    assert suite_summary([replace(outcomes[0], verdicts=tuple(verdicts))]).endswith(told)


def test_flaky_cases_are_named_the_likeliest_first(outcomes: list[Outcome]) -> None:
    assert suite_view(outcomes[0]).flaky == "the bridge is relevant (65%), the bridge is a 4 (35%)"
    many = tuple(replace(PASSED, name=f"c{k}", flaky=0.1) for k in range(12))
    assert suite_view(replace(outcomes[0], verdicts=many)).flaky.endswith("c7 (10%) and 4 more")


def test_an_undecided_case_that_counts_as_met_says_so(outcomes: list[Outcome]) -> None:
    verdict = replace(PASSED, status="undecided", said="not told apart from 4")
    (row,) = suite_view(replace(outcomes[0], verdicts=(verdict,))).rows
    assert (row.mark, row.reason) == ("?", "not told apart from 4 (counts as met)")


def test_a_path_below_this_folder_is_written_from_here(
    outcomes: list[Outcome], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = replace(outcomes[0].suite, path=tmp_path / "x" / "a.judge.yaml")
    assert suite_view(replace(outcomes[0], suite=suite)).path == "x/a.judge.yaml"
    assert suite_view(replace(outcomes[0], suite=replace(suite, path=tmp_path.parent / "b.yaml"))).path.startswith("/")


def test_a_long_diff_is_cut_and_says_so() -> None:
    lines = changed(Change("prompt", "a", "b", (), tuple(f"+{k}\x1b" for k in range(300))))
    assert len(lines) == 201
    assert (lines[0], lines[-1]) == ("+0\\x1b", "… 100 more lines")
