"""Pass rates. Oracles: counting, Wilson's interval as an equation, and the mean of a scale from 0 to 1."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.stats.bootstrap import item_means
from judge.stats.derived_columns import pass_table
from judge.stats.system_differences import compare
from judge.table import Table

POLITE = Column(
    "polite", "criterion", Signature("polite@1"), 1.0, 5.0, criterion="polite", pass_at=3.8
)
SOLVED = Column(
    "solved", "criterion", Signature("solved@1"), 0.0, 1.0, criterion="solved", pass_at=1.0
)
SINGLE = Provenance("single")
Values = dict[str, list[float | None]]


def table(column: Column, values: Values) -> Table:
    """Return a table of values by system, one for each item. None is a failure."""
    samples = tuple(
        Sample(f"i{n}", system, "") for system, row in values.items() for n in range(len(row))
    )
    rows = [
        (f"i{n}", system, value) for system, row in values.items() for n, value in enumerate(row)
    ]
    scores = tuple(
        Score(item, system, column.name, value, SINGLE)
        for item, system, value in rows
        if value is not None
    )
    failures = tuple(
        Failure(item, system, column.name, "parse", "ParseError", "no score")
        for item, system, v in rows
        if v is None
    )
    return Table(
        samples, (column, Column("length", "metric", Signature("length"))), scores, failures
    )


@given(st.lists(st.one_of(st.none(), st.floats(1, 5), st.just(3.8)), min_size=1, max_size=40))
def test_a_pass_rate_is_the_share_of_scored_texts_that_reach_the_mark(
    row: list[float | None],
) -> None:
    rates = Result(table(POLITE, {"s": row})).pass_rates
    scored = [value for value in row if value is not None]
    passed = sum(value >= 3.8 - 1e-8 for value in scored)
    if not scored:
        assert rates == {}
        return
    rate: Any = rates["s", "polite"]
    assert (rate.n, rate.value) == (len(scored), pytest.approx(passed / len(scored)))
    if rate.n < 5:
        assert (rate.low, rate.high) == (None, None)
        return
    # Wilson's ends p solve (share − p)² = t² · p · (1 − p) / tries, with n − 1 tries, the divisor of the variance.
    tries = rate.n if passed in (0, rate.n) else rate.n - 1
    t = scipy_stats.t.ppf(0.975, rate.n - 1)
    assert rate.low <= rate.value <= rate.high
    for end in (rate.low, rate.high):
        assert (rate.value - end) ** 2 * tries == pytest.approx(t**2 * end * (1 - end), abs=1e-9)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=30))
def test_pass_rate_of_a_binary_scale_is_the_mean(row: list[float]) -> None:
    data = table(SOLVED, {"s": [*row]})
    assert Result(data).pass_rates == {("s", "solved"): item_means(data)["s", "solved"]}


def test_a_column_without_a_pass_threshold_has_no_pass_rate() -> None:
    data = table(Column("polite", "criterion", Signature("polite@1"), 1.0, 5.0), {"s": [1.0, 5.0]})
    assert Result(data).pass_rates == {}
    assert pass_table(data).columns == ()


def test_two_pass_rates_are_compared_by_mcnemars_test() -> None:
    """The exact sign-flip test of differences of 0 and 1 is the exact McNemar test."""
    first: list[float | None] = [5, 5, 5, 4, 5, 5, 4, 2, 1, 5]
    second: list[float | None] = [1, 2, 3, 2, 3.7, 5, 3, 4, 1, 5]
    (comparison,) = compare(pass_table(table(POLITE, {"a": first, "b": second})))
    (difference,) = comparison.differences
    assert (comparison.column, difference.wins, difference.losses) == ("polite pass rate", 6, 1)
    assert difference.estimate.p == pytest.approx(scipy_stats.binomtest(1, 7).pvalue)
