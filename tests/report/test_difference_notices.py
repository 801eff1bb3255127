"""Notices next to a difference. Oracle: the same table with pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.difference_notices import few_items_notice
from judge.results.result import Result
from judge.results.run_info import JudgeInfo, RunInfo
from judge.stats.analyze import analyze
from judge.stats.system_differences import compare
from tests.factories import has_line

QUALITY = Column("quality", "criterion", Signature("q@1"), 1.0, 5.0)


def result_of(scores: pd.DataFrame) -> tuple[Result, Any]:
    """Return a result of items × systems, and the comparison of its systems."""
    samples = [Sample(item, name, "text") for item in scores.index for name in scores.columns]
    rows = [
        Score(item, name, "quality", float(scores.loc[item, name]), Provenance("single"))
        for item in scores.index
        for name in scores.columns
        if not np.isnan(scores.loc[item, name])
    ]
    table = analyze(samples, (QUALITY,), rows).table
    (comparison,) = compare(table)
    return Result(table, info=RunInfo(judges={"m": JudgeInfo()})), comparison


def carried(first: pd.Series[float], second: pd.Series[float]) -> int:
    """Return how many items (at most 3 and a quarter) make up more than half of the difference, or 0."""
    by_item = (first - second).dropna()
    towards = by_item * np.sign(by_item.sum())
    shares = towards.nlargest(3).cumsum() / towards.sum()
    enough = [
        n for n, share in enumerate(shares, 1) if share > 0.5 + 1e-9 and 4 * n <= len(by_item)
    ]
    return enough[0] if enough else 0


def test_names_two_items_that_carry_a_lead() -> None:
    first = [3.2] * 8 + [5.0, 5.0]
    items = [f"i{k}" for k in range(10)]
    result, comparison = result_of(pd.DataFrame({"a": first, "b": [3.0] * 10}, index=items))
    notice = few_items_notice(result, comparison)
    assert has_line(notice, "2 of 10 items", "i8, i9", "71.4%", "a and b", "quality")


@pytest.mark.parametrize("others", [0.26, 0.5])
def test_a_catastrophe_that_no_item_has_is_not_noticed(others: float) -> None:
    items = [f"i{k}" for k in range(8)]
    result, comparison = result_of(pd.DataFrame({"a": 3 + others, "b": 3.0}, index=items))
    assert comparison.differences[0].apart
    assert few_items_notice(result, comparison) == ""


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_notice_is_given_if_and_only_if_few_items_carry_a_significant_difference(
    data: st.DataObject,
) -> None:
    n = data.draw(st.integers(6, 20))
    systems = ["a", "b", "c"][: data.draw(st.integers(2, 3))]
    steps = st.sampled_from([0.0, 0.1, 0.2, 0.2, 0.3, 2.0])
    columns = {"a": [3.0] * n}
    for name in systems[1:]:
        columns[name] = [3 - step for step in data.draw(st.lists(steps, min_size=n, max_size=n))]
    scores = pd.DataFrame(columns, index=[f"i{k}" for k in range(n)])
    if data.draw(st.booleans()):
        scores.loc["i0", "b"] = np.nan
    result, comparison = result_of(scores)
    numbers = [
        number
        for difference in comparison.differences
        if difference.adjusted is not None and difference.adjusted < 0.05
        if (number := carried(scores[difference.system], scores[difference.other]))
    ]
    notice = few_items_notice(result, comparison)
    assert bool(notice) == bool(numbers)
    if numbers:
        assert notice.startswith(f"{min(numbers)} of ")
