"""A run with --calibrate first shows means on people's scale, next to the judge's own means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import judge
from judge.report.views.board import build_leaderboard
from judge.report.views.calibrated_finding import calibrated_finding
from judge.report.views.finding import finding
from tests.factories import has_line

N_ITEMS = 60
N_RATED = 30


def run(
    biases: Mapping[str, float],
    qualities: Mapping[str, float],
    *,
    criteria: tuple[str, ...] = ("helpful",),
    **options: Any,
) -> judge.Result:
    """Return a run of a judge with a bias for each system. People rate some items."""
    random = np.random.default_rng(0)
    rows = []
    for item in range(N_ITEMS):
        for system, quality in qualities.items():
            row: dict[str, Any] = {"item": str(item), "system": system}
            for criterion in criteria:
                rating = float(np.clip(np.round(quality + random.normal(0, 0.6)), 1, 5))
                score = float(np.clip(rating + biases[system] + random.normal(0, 0.4), 1, 5))
                row[criterion] = score
                if item < N_RATED:
                    row[f"rating.{criterion}"] = rating
            rows.append(row)
    return judge.evaluate(rows, judge_columns=criteria, scale="1-5", calibrate=True, **options)


@pytest.fixture(scope="module")
def biased() -> judge.Result:
    """Return a run in which the judge ranks b first and people rank a first."""
    return run({"a": -0.9, "b": 0.9, "c": 0}, {"a": 3.8, "b": 3.1, "c": 2.0})


def test_the_best_system_is_that_of_people_and_the_judges_own_is_named(
    biased: judge.Result,
) -> None:
    headline, *others = finding(biased)
    assert has_line(headline, "people's scale", "a beats both")
    assert "b trails a by" in others[0]
    assert has_line(others[0], f"{N_RATED} rated items", f"{N_ITEMS - N_RATED}")
    assert has_line(others[-1], "judge's own mean", "b first")


def test_ranks_and_order_are_on_peoples_scale(biased: judge.Result) -> None:
    board = build_leaderboard(biased)
    assert board.systems == ("a", "b", "c")
    (calibrated,) = biased.calibrated
    assert [rank.system for rank in calibrated.ranks] == ["a", "b", "c"]
    raw = biased.estimates
    assert raw["b", "helpful"].value > raw["a", "helpful"].value


def test_the_raw_means_stay_beside(biased: judge.Result) -> None:
    board = build_leaderboard(biased)
    on_scale, raw = (column.name for column in board.columns)
    assert raw == "helpful"
    (calibrated,) = biased.calibrated
    for mean in calibrated.means:
        row = board.rows[mean.system, on_scale]
        assert (row.mean, row.low, row.high) == (
            mean.estimate.value,
            mean.estimate.low,
            mean.estimate.high,
        )
        own = board.rows[mean.system, raw]
        assert own.mean == biased.estimates[mean.system, raw].value


def test_the_console_has_both_columns(biased: judge.Result) -> None:
    report = biased.report("console")
    assert "helpful  judge" in report
    assert "(30/60)" not in report


def test_equal_systems_do_not_differ_significantly() -> None:
    result = run({"a": 0, "b": 0.8}, {"a": 3.0, "b": 3.0})
    headline, *_ = finding(result)
    assert has_line(headline, "people's scale", "no system differs significantly")


def test_the_overall_score_is_calibrated_from_ratings_of_all_criteria() -> None:
    result = run({"a": -0.9, "b": 0.9}, {"a": 3.8, "b": 3.1}, criteria=("helpful", "polite"))
    total, *criteria = result.calibrated
    assert total.column == "overall"
    assert [each.column for each in criteria] == ["helpful", "polite"]
    by_name = {each.column: {m.system: m.people.value for m in each.means} for each in criteria}
    for mean in total.means:
        ratings = [by_name[name][mean.system] for name in ("helpful", "polite")]
        expected = sum((rating - 1) / 4 for rating in ratings) / 2
        assert mean.people.value == pytest.approx(expected)
    headline, *_ = finding(result)
    assert has_line(headline, "people's scale", "a beats b")
    assert " on " not in headline.removeprefix("On people's scale")


def test_differences_from_one_system_are_named() -> None:
    result = run({"a": 0, "b": 0, "c": 0}, {"a": 4.5, "b": 3.0, "c": 3.0}, against="b")
    headline, *_ = finding(result)
    assert has_line(headline, "people's scale", "a differs significantly from b")


def test_without_calibration_nothing_is_on_peoples_scale() -> None:
    result = run({"a": 0, "b": 0}, {"a": 4.0, "b": 3.0})
    assert "people's scale" in result.report("console")
    rows = [
        {"item": str(n), "system": s, "helpful": 3 + (s == "a"), "rating.helpful": 3}
        for n in range(20)
        for s in "ab"
    ]
    plain = judge.evaluate(rows, judge_columns="helpful", scale="1-5")
    assert "people's scale" not in plain.report("console")


def test_a_leader_without_significant_lead_does_not_hide_other_differences(
    biased: judge.Result,
) -> None:
    (calibrated,) = biased.calibrated
    behind_only = tuple(
        each if {each.system, each.other} == {"b", "c"} else replace(each, adjusted=0.9)
        for each in calibrated.differences
    )
    changed = replace(calibrated, differences=behind_only, best=("a", "b", "c"))
    headline, *_ = calibrated_finding(biased, changed)
    assert has_line(headline, "people's scale", "no system", "significantly best", "1 pair")


def test_a_tie_of_the_judges_own_means_is_no_other_leader() -> None:
    rows = [
        {
            "item": str(n),
            "system": s,
            "helpful": 3 + n % 2,
            "rating.helpful": 4 - (s == "b") - n % 2,
        }
        for n in range(20)
        for s in "ba"
    ]
    result = judge.evaluate(rows, judge_columns="helpful", scale="1-5", calibrate=True)
    assert not any("own mean" in sentence for sentence in finding(result))
