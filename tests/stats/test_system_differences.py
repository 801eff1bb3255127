from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats import panels
from judge.stats import system_differences as module
from judge.stats.paired_differences import holm
from judge.stats.power import Spread
from judge.stats.system_differences import Comparison, compare
from judge.table import Table
from tests.factories import has_line

METRIC = Provenance("metric")
Make = Callable[..., Any]
Values = dict[str, list[float | None]]


@pytest.fixture
def only(metric_table: Callable[..., Table]) -> Callable[..., Comparison]:
    """Return a function that compares the systems of a table with one column."""

    def compared(values: Values, **fields: Any) -> Comparison:
        (comparison,) = compare(metric_table({"m": values}, **fields), n_resamples=400)
        return comparison

    return compared


def _scores(shifts: dict[str, float], n: int, seed: int = 0) -> Values:
    random = np.random.default_rng(seed)
    item = random.normal(size=n)
    return {
        name: np.clip(np.round(3 + shift + item + random.normal(0, 0.7, n)), 1, 5).tolist()
        for name, shift in shifts.items()
    }


def test_pairs_of_systems_are_sorted_with_described_estimates(metric_table: Make) -> None:
    values = _scores({"b": 0.0, "c": -0.9, "a": 0.4}, 40, seed=1)
    (comparison,) = compare(metric_table({"m": values}))
    assert [(d.system, d.other) for d in comparison.differences] == [
        ("a", "b"),
        ("a", "c"),
        ("b", "c"),
    ]
    assert [r.system for r in comparison.ranks] == ["a", "b", "c"]
    assert [r.rank for r in comparison.ranks] == [1, 2, 3]
    raw = []
    for d in comparison.differences:
        better, worse = np.array(values[d.system]), np.array(values[d.other])
        assert d.estimate.value == pytest.approx(better.mean() - worse.mean())
        assert d.wins == (better > worse).sum()
        assert d.ties == (better == worse).sum()
        assert d.losses == (better < worse).sum()
        u = scipy_stats.mannwhitneyu(better, worse).statistic
        assert d.delta == pytest.approx(2 * u / (40 * 40) - 1)  # delta is U, on −1 to 1
        assert d.estimate.low is not None
        assert d.estimate.high is not None
        assert d.estimate.low < d.estimate.value < d.estimate.high
        raw.append(d.estimate.p)
    assert [d.adjusted for d in comparison.differences] == holm([p for p in raw if p is not None])
    sds = [np.std(np.subtract(values[a], values[b]), ddof=1) for a, b in combinations("abc", 2)]
    assert comparison.detectable == pytest.approx(
        Spread(40, 0.0, float(np.median(sds)), 0.05 / 3).detectable(), rel=0.1
    )
    assert (comparison.column, comparison.note) == ("m", "")


def test_p_equals_scipy_for_few_items(only: Make) -> None:
    values = _scores({"a": 0.6, "b": 0.0}, 9, seed=3)
    (difference,) = only(values).differences
    expected = scipy_stats.permutation_test(
        (values["a"], values["b"]),
        lambda x, y: np.mean(np.subtract(x, y)),
        permutation_type="samples",
        n_resamples=np.inf,
    )
    assert difference.estimate.p == pytest.approx(expected.pvalue)
    assert difference.estimate.described.endswith("p: sign-flip permutation test, exact")


def test_systems_without_a_significant_difference_from_the_first_are_best(only: Make) -> None:
    comparison = only(_scores({"low": -1.5, "good": 0.0, "same": 0.05}, 80))
    assert set(comparison.best) == {"good", "same"}
    apart = {(d.system, d.other): d.apart for d in comparison.differences}
    assert apart == {
        (comparison.best[0], comparison.best[1]): False,
        (comparison.best[0], "low"): True,
        (comparison.best[1], "low"): True,
    }
    alone = only(_scores({"low": -1.5, "good": 0.0, "poor": -1.0}, 80))
    assert alone.best == ("good",)


def test_lower_values_may_be_better(only: Make) -> None:
    values = _scores({"a": 0.0, "b": -1.2}, 60)
    higher_is_better, lower_is_better = only(values), only(values, better="lower")
    (expected,), (difference,) = higher_is_better.differences, lower_is_better.differences
    assert (higher_is_better.best, lower_is_better.best) == (("a",), ("b",))
    assert (expected.system, difference.system) == ("a", "b")
    assert difference.estimate.value == pytest.approx(-expected.estimate.value)
    assert difference.estimate.value < 0
    assert (difference.wins, difference.losses) == (expected.wins, expected.losses)
    assert difference.delta == pytest.approx(-(expected.delta or 0))
    assert [(r.system, r.rank, r.low, r.high) for r in lower_is_better.ranks] == [
        ("b", 1, 1, 1),
        ("a", 2, 2, 2),
    ]


def test_columns_without_a_direction_or_of_all_texts_are_not_compared(metric_table: Make) -> None:
    table = metric_table(
        {"m": {"a": [1.0, 2.0], "b": [2.0, 3.0]}, "all": {"a": [None], "b": [None]}}
    )
    length = Column("length", "metric", Signature("length"), better="")
    corpus_value = Score("", "a", "all", 0.5, METRIC)
    length_of_text = Score("i0", "a", "length", 3.0, METRIC)
    with_more = Table(
        table.samples,
        (*table.columns, length),
        (*table.scores, corpus_value, length_of_text),
    )
    assert [comparison.column for comparison in compare(with_more, n_resamples=20)] == ["m"]


def test_rank_intervals_follow_from_the_tests(only: Make) -> None:
    comparison = only(_scores({"a": 0.0, "b": 0.1, "c": 0.25, "d": -0.8, "e": -1.6}, 60, seed=5))
    better = {
        name: {d.system for d in comparison.differences if d.other == name and d.apart}
        for name in "abcde"
    }
    worse = {
        name: {d.other for d in comparison.differences if d.system == name and d.apart}
        for name in "abcde"
    }
    assert {len(names) for names in better.values()} > {0, 4}
    assert [(r.low, r.high) for r in comparison.ranks] == [
        (1 + len(better[r.system]), 5 - len(worse[r.system])) for r in comparison.ranks
    ]
    assert [(r.system, r.low, r.high) for r in comparison.ranks if r.low == r.high] == [
        ("d", 4, 4),
        ("e", 5, 5),
    ]


def test_rank_intervals_of_few_items_cover_the_true_ranks(only: Make) -> None:
    """At least 97 % of the intervals of five different systems cover. With a bootstrap over items, 80–85 % did."""
    random = np.random.default_rng(8)
    shifts = {"a": 0.2, "b": 0.15, "c": 0.1, "d": 0.05, "e": 0.0}
    covers = []
    for _ in range(40):
        comparison = only(_scores(shifts, 10, seed=int(random.integers(1 << 30))))
        covers += [r.low <= 1 + "abcde".index(r.system) <= r.high for r in comparison.ranks]
    assert np.mean(covers) >= 0.97


def test_the_tolerance_of_ties_does_not_depend_on_a_distant_system(only: Make) -> None:
    comparison = only({"a": [1e-4] * 6, "b": [2e-4] * 6, "c": [1e9] * 6, "d": [1e-4 + 1e-13] * 6})
    assert {r.system: r.rank for r in comparison.ranks} == {"c": 1, "b": 2, "a": 3, "d": 3}


def test_a_small_difference_of_large_values_is_ranked(only: Make) -> None:
    random = np.random.default_rng(0)
    base = 1e6 + random.normal(size=200)
    comparison = only({"a": base.tolist(), "b": (base + 0.01).tolist()})
    assert [(r.system, r.rank, r.low, r.high) for r in comparison.ranks] == [
        ("b", 1, 1, 1),
        ("a", 2, 2, 2),
    ]


def test_a_single_system_has_a_rank_and_no_differences(only: Make) -> None:
    comparison = only({"a": [1.0, 2.0, 3.0]})
    assert (comparison.differences, comparison.best, comparison.detectable) == ((), (), None)
    assert [(r.system, r.rank, r.low, r.high) for r in comparison.ranks] == [("a", 1, 1, 1)]
    assert comparison.note == "only one system has values"
    assert only({"a": [1.0, 2.0], "b": [None, None]}).note == comparison.note


def test_one_item_has_differences_without_tests(only: Make) -> None:
    comparison = only({"a": [1.0], "b": [3.0], "c": [2.0]})
    assert [(d.system, d.other, d.estimate.value, d.wins) for d in comparison.differences] == [
        ("b", "c", 1.0, 1),
        ("b", "a", 2.0, 1),
        ("c", "a", 1.0, 1),
    ]
    for d in comparison.differences:
        assert (d.adjusted, d.estimate.p, d.estimate.low) == (None, None, None)
        assert not d.apart
    assert [(r.rank, r.low, r.high) for r in comparison.ranks] == [(1, 1, 3), (2, 1, 3), (3, 1, 3)]
    assert (comparison.best, comparison.detectable) == ((), None)
    assert has_line(comparison.note, "one item", "too few")


def test_a_constant_column_has_no_best_system(only: Make) -> None:
    comparison = only({"a": [2.0] * 20, "b": [2.0] * 20})
    (difference,) = comparison.differences
    assert (difference.estimate.value, difference.adjusted) == (0.0, 1.0)
    assert (difference.estimate.low, difference.estimate.high) == (None, None)
    assert (difference.wins, difference.ties, difference.losses) == (0, 20, 0)
    assert difference.delta == 0.0
    assert [(r.rank, r.low, r.high) for r in comparison.ranks] == [(1, 1, 2), (1, 1, 2)]
    assert (comparison.best, comparison.detectable) == ((), None)
    assert comparison.note == "all values are equal"


def test_equal_systems_have_no_significant_difference(only: Make) -> None:
    row = _scores({"a": 0.0}, 20)["a"]
    comparison = only({"a": row, "b": list(row)})
    assert comparison.best == ("a", "b")
    assert comparison.note == ""
    assert [(r.rank, r.low, r.high) for r in comparison.ranks] == [(1, 1, 2), (1, 1, 2)]


def test_a_column_without_values_has_a_reason() -> None:
    samples = (Sample("i", "a", "x"), Sample("i", "b", "y"))
    failures = tuple(Failure("i", name, "c", "parse", "ParseError", "no score") for name in "ab")
    comparisons = compare(
        Table(samples, (Column("c", "criterion", Signature("c"), 1.0, 5.0),), (), failures)
    )
    assert comparisons == (Comparison("c", note="no text has a value"),)
    assert compare(Table((), (), ())) == ()
    assert compare(Table((), (Column("c", "criterion", Signature("c")),), ())) == (
        Comparison("c", note="no text has a value"),
    )


def test_systems_with_different_items_are_compared_on_shared_items(only: Make) -> None:
    a: list[float | None] = [1.0, 2.0, 3.0, None, None, 5.0, 4.0]
    b: list[float | None] = [2.0, 2.0, None, 4.0, None, 4.0, 1.0]
    c: list[float | None] = [None, None, None, None, 1.0, None, None]
    comparison = only({"a": a, "b": b, "c": c})
    (difference,) = comparison.differences
    assert (difference.system, difference.other) == ("a", "b")
    assert (difference.estimate.n, difference.estimate.value) == (4, 0.75)
    assert (difference.wins, difference.ties, difference.losses) == (2, 1, 1)
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    counted = sum((x > y) - (x < y) for x, _ in pairs for _, y in pairs) / 16
    assert difference.delta == pytest.approx(counted)
    assert comparison.best == ("a", "b", "c")  # no test shows that c is worse
    assert has_line(comparison.note, "different items", "shared ones", "2 of 3 pairs", "no item")
    assert has_line(comparison.note, "too few items", "significant difference")


def test_systems_that_share_no_item_are_not_compared(only: Make) -> None:
    comparison = only({"a": [1.0, 2.0, None, None], "b": [None, None, 3.0, 4.0]})
    assert comparison.best == ()
    assert has_line(comparison.note, "no two systems share")


@pytest.mark.parametrize("systems", ["ab", "abc"])
def test_one_shared_item_is_the_reason_for_no_comparison(systems: str, only: Make) -> None:
    values: Values = {system: [3.0, None, None, None] for system in systems}
    for position, system in enumerate(systems, 1):
        values[system][position] = float(position)
    comparison = only(values)
    assert comparison.best == ()
    assert "one item" in comparison.note
    assert "different items" not in comparison.note


def test_a_system_with_the_highest_mean_is_not_best_if_worse_on_shared_items(only: Make) -> None:
    easy, hard = [5.0] * 40, [1.0, 2.0] * 20
    comparison = only({"a": [*easy, *hard], "b": [*[None] * 40, *(x + 1 for x in hard)]})
    (difference,) = comparison.differences
    assert (difference.system, difference.estimate.value) == ("a", -1.0)
    assert difference.apart
    assert comparison.best == ("b",)
    assert [(r.system, r.rank, r.low, r.high) for r in comparison.ranks] == [
        ("a", 1, 2, 2),
        ("b", 2, 1, 1),
    ]


@pytest.mark.parametrize(("n", "few"), [(5, True), (6, False)])
def test_a_note_warns_if_too_few_items_allow_no_significance(n: int, few: bool, only: Make) -> None:
    comparison = only({"a": [2.0 + k for k in range(n)], "b": [1.0] * n})
    # the smallest possible two-sided p
    assert comparison.differences[0].estimate.p == 2 / 2**n
    assert comparison.best == (("a", "b") if few else ("a",))
    assert has_line(comparison.note, "too few items", "significant difference") is few
    assert bool(comparison.note) is few


@pytest.mark.slow
def test_a_thousand_systems_are_compared_only_with_the_best(metric_table: Make) -> None:
    random = np.random.default_rng(0)
    item = random.normal(size=24)
    values = {
        f"s{k}": np.round(2 + (k % 500) / 200 + item + random.normal(0, 0.3, 24), 2).tolist()
        for k in range(1_000)
    }
    (comparison,) = compare(metric_table({"m": values}), n_resamples=300)
    first = comparison.ranks[0].system
    assert len(comparison.differences) == 999
    assert {d.system for d in comparison.differences} == {first}
    assert [d.other for d in comparison.differences] == [r.system for r in comparison.ranks[1:]]
    assert has_line(comparison.note, "more than 30 systems", "best one only")
    assert has_line(comparison.note, "more than 100 systems", "too many")
    assert comparison.best == ()
    assert comparison.ranks[0].low == 1
    assert all(r.low <= r.rank <= 1_000 and 1 <= r.low <= r.high <= 1_000 for r in comparison.ranks)


def test_the_best_of_sixty_systems_is_better_than_the_worst_twenty(only: Make) -> None:
    random = np.random.default_rng(0)
    item = random.normal(size=24)
    comparison = only(
        {f"s{k}": (2 + k / 20 + item + random.normal(0, 0.3, 24)).tolist() for k in range(60)}
    )
    assert comparison.ranks[0].system in comparison.best
    assert not {f"s{k}" for k in range(20)} & set(comparison.best)


def test_the_number_of_columns_per_block_does_not_change_the_results(
    monkeypatch: pytest.MonkeyPatch, metric_table: Make
) -> None:
    table = metric_table(
        {name: _scores({"a": 0.0, "b": 0.4}, 25, seed) for seed, name in enumerate("xyz")}
    )
    whole = compare(table, n_resamples=200)
    monkeypatch.setattr(module, "_MAX_DIFFERENCES", 1)
    assert compare(table, n_resamples=200) == whole
    assert [comparison.column for comparison in whole] == ["x", "y", "z"]


def test_p_depends_only_on_the_seed(metric_table: Make) -> None:
    random = np.random.default_rng(0)
    values = {name: random.normal(size=40).tolist() for name in "ab"}
    table = metric_table({"m": values})
    assert compare(table, seed=1) == compare(table, seed=1)
    first, second = (
        compare(table, seed=seed, n_resamples=99)[0].differences[0].estimate for seed in (1, 2)
    )
    assert first.p != second.p
    assert "seed 1" in first.test


def test_the_mean_and_each_judge_of_a_panel_are_separate_columns() -> None:
    columns = [
        Column(f"c/{j}", "criterion", Signature(j), 1.0, 5.0, criterion="c", judge=j) for j in "xy"
    ]
    values = {j: _scores({"a": 0.0, "b": -1.0}, 30, seed) for seed, j in enumerate("xy")}
    rows = [
        Score(f"i{k}", system, f"c/{j}", value, Provenance("single"))
        for j, systems in values.items()
        for system, row in systems.items()
        for k, value in enumerate(row)
        if value is not None
    ]
    means = [row for row in panels.panel_rows(columns, rows) if isinstance(row, Score)]
    samples = tuple(Sample(f"i{k}", system, "") for system in "ab" for k in range(30))
    comparisons = compare(
        Table(samples, (panels.panel_column(columns), *columns), (*means, *rows)), n_resamples=200
    )
    assert [comparison.column for comparison in comparisons] == ["c", "c/x", "c/y"]
    of_mean, of_x, of_y = (comparison.differences[0].estimate.value for comparison in comparisons)
    assert of_mean == pytest.approx((of_x + of_y) / 2)


def test_pairwise_scores_have_no_system_comparison() -> None:
    samples = (Sample("i", "a", "x"), Sample("i", "b", "y"))
    column = Column("overall", "criterion", Signature("overall"), 0.0, 1.0)
    won = Score("i", "a", "overall", 1.0, Provenance("single"), "b")
    lost = Failure("i", "b", "overall", "parse", "ParseError", "no label", opponent="a")
    assert compare(Table(samples, (column,), (won,), (lost,))) == ()
    assert compare(Table(samples, (column,), (), (lost,))) == ()


def test_numbers_are_never_nan(only: Make) -> None:
    values = _scores({"a": 0.0, "b": 0.3, "c": 0.1}, 12)
    values["c"] = [None] * 11 + [3.0]
    comparison = only(values)
    numbers = [
        n
        for d in comparison.differences
        for n in (d.estimate.value, d.estimate.p, d.adjusted, d.delta)
    ]
    assert all(n is None or math.isfinite(n) for n in numbers)
    assert [
        (d.estimate.n, d.adjusted is None)
        for d in comparison.differences
        if "c" in (d.system, d.other)
    ] == [(1, True)] * 2


@pytest.mark.slow
def test_equal_systems_rarely_have_a_significant_difference(only: Make) -> None:
    """With 20 equal systems and 50 items, about 5 % of columns or fewer should have a significant difference."""
    random = np.random.default_rng(7)
    n_false_positives = 0
    for _ in range(40):
        values = random.normal(size=(20, 50))
        comparison = only({f"s{k}": row.tolist() for k, row in enumerate(values)})
        n_false_positives += any(difference.apart for difference in comparison.differences)
    assert n_false_positives <= 5


def test_against_one_system_only_its_pairs_are_tested_and_corrected(metric_table: Make) -> None:
    values = _scores({"b": 0.0, "d": 0.1, "c": -0.9, "a": 0.4}, 40, seed=1)
    table = metric_table({"m": values})
    (all_pairs,), (against_b,) = compare(table), compare(table, against="b")
    assert [(d.system, d.other) for d in against_b.differences] == [
        ("a", "b"),
        ("d", "b"),
        ("c", "b"),
    ]
    by_pair = {frozenset((d.system, d.other)): d.estimate for d in all_pairs.differences}
    for d in against_b.differences:
        expected = by_pair[frozenset((d.system, d.other))]
        assert abs(d.estimate.value) == pytest.approx(abs(expected.value))
        assert d.estimate.p == expected.p
    assert [d.adjusted for d in against_b.differences] == holm(
        [d.estimate.p for d in against_b.differences]
    )
    assert [d.apart for d in against_b.differences] == [True, False, True]
    assert (against_b.against, against_b.best) == ("b", ())
    # the other systems are not compared with each other
    assert {r.system: (r.low, r.high) for r in against_b.ranks} == {
        "a": (1, 3),
        "d": (1, 4),
        "b": (2, 3),
        "c": (2, 4),
    }


def test_against_a_system_without_values_nothing_is_compared(metric_table: Make) -> None:
    table = metric_table({"m": {"a": [1.0, 2.0], "b": [2.0, 4.0], "c": [None, None]}})
    for absent in ("c", "d"):
        (comparison,) = compare(table, against=absent)
        assert comparison.differences == ()
        assert has_line(comparison.note, absent, "no value")


def test_against_one_system_any_number_of_systems_is_tested(metric_table: Make) -> None:
    random = np.random.default_rng(0)
    values: Values = {f"s{k}": random.normal(size=14).tolist() for k in range(120)}
    values["s7"] = [value - 9 for value in random.normal(size=14).tolist()]
    (comparison,) = compare(metric_table({"m": values}), against="s7")
    assert len(comparison.differences) == 119
    assert (all(d.apart for d in comparison.differences), comparison.note) == (True, "")
