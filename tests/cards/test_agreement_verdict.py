"""The sentence on agreement with people quotes the statistic that decides, with its interval."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

import judge
from judge.commands.card.number_text import written_estimate
from judge.core.records import Estimate

Pair = tuple[int, int]
"""A judge's score and a person's rating."""


def _reversed_within_items(item: int, system: int) -> Pair:
    """Return pairs that agree between the items, and are opposed within each of them."""
    level = 1 + item % 3
    return level + system, level + 2 - system


def _opposed_by_chance(item: int, system: int) -> Pair:
    """Return pairs whose kappa is below 0, but whose correlation within items may be 0."""
    draws = random.Random(27)
    pairs = [(draws.randint(1, 5), draws.randint(1, 5)) for _ in range(72)]
    return pairs[3 * item + system]


def _agreeing(item: int, system: int) -> Pair:
    level = 1 + (item + 2 * system) % 5
    return level, level


def _card(pair: Callable[[int, int], Pair]) -> judge.JudgeCard:
    rows = []
    for item in range(24):
        for system in range(3):
            score, rating = pair(item, system)
            rows.append({"item": item, "system": f"s{system}", "good": score, "human": rating})
    result = judge.evaluate(rows, judge_columns="good", scale="1-5", cache=False)
    return judge.card(result)


@pytest.mark.parametrize(
    ("pair", "statistic"),
    [(_reversed_within_items, "Spearman"), (_opposed_by_chance, "kappa")],
)
def test_a_judge_against_people_is_named_with_an_interval_below_0(
    pair: Callable[[int, int], Pair],
    statistic: str,
) -> None:
    (verdict,) = _card(pair).criteria
    assert verdict.level == "not good enough"
    quoted = re.search(rf"{statistic} (\S+) \[(\S+), (\S+)\]", verdict.reason)
    assert quoted is not None
    value, low, high = (float(number.replace("−", "-")) for number in quoted.groups())
    assert low <= value <= high < 0


def test_the_correlation_of_a_card_has_its_interval() -> None:
    report = _card(_agreeing).report(full=True)
    assert re.search(r"Spearman 1\.00 \[0\.\d\d, 1\.00\]", report)


def test_the_key_of_a_card_names_alpha_if_the_scores_are_continuous() -> None:
    rows = [
        {"item": item, "system": system, "good": 7 * (item % 9) + 3, "human": 6 * (item % 9)}
        for item in range(24)
        for system in "ab"
    ]
    result = judge.evaluate(rows, judge_columns="good", scale="0-100", cache=False)
    report = judge.card(result).report()
    assert "Agreement is alpha" in report
    assert "kappa" not in report


@pytest.mark.parametrize(
    ("high", "shown"), [(-0.004, "[−0.536, −0.004]"), (-0.12, "[−0.54, −0.12]")]
)
def test_a_coefficient_below_0_has_no_interval_that_seems_to_reach_0(
    high: float,
    shown: str,
) -> None:
    estimate = Estimate("alpha", -0.258, low=-0.536, high=high, n=42, method="bootstrap")
    assert written_estimate(estimate, "alpha", None)[1] == shown
