"""A change is split into the judge's and the system's part. Oracles: scipy's t tests, and sums by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.judge_shift import split_change
from judge.stats.run_differences import MeanChange, Runs, compare_runs
from judge.table import Table

FIRST = slice(0, 1)
RANDOM = np.random.default_rng(0)
MOVED, SHIFT = RANDOM.normal(0.6, 0.5, 12).round(6), RANDOM.normal(0.3, 0.4, 12).round(6)
NONE = np.full(12, np.nan)


def changed(rows: int, columns: int, which: Any = slice(None)) -> Any:
    """Mark these texts of the first system as changed."""
    cells = np.zeros((rows, columns), dtype=bool)
    cells[0, which] = True
    return cells


def test_anchors_about_the_same_items_are_paired() -> None:
    split = split_change(np.array([MOVED, SHIFT, SHIFT, SHIFT]), changed(4, 12), FIRST)
    assert split is not None
    expected = stats.ttest_rel(MOVED, SHIFT)
    low, high = expected.confidence_interval()
    assert (split.system.value, split.judge.value) == pytest.approx(
        ((MOVED - SHIFT).mean(), SHIFT.mean())
    )
    assert (split.system.low, split.system.high, split.system.p) == pytest.approx(
        (low, high, expected.pvalue)
    )


def test_anchors_about_other_items_add_their_variance() -> None:
    anchors = np.concatenate([NONE, SHIFT])
    split = split_change(
        np.array([np.concatenate([MOVED, NONE]), *[anchors] * 3]), changed(4, 24), FIRST
    )
    assert split is not None
    expected = stats.ttest_ind(MOVED, SHIFT, equal_var=False)
    error = np.sqrt(MOVED.var(ddof=1) / 12 + SHIFT.var(ddof=1) / 12)
    half = stats.t.ppf(0.975, int(expected.df)) * error
    assert split.system.value == pytest.approx(MOVED.mean() - SHIFT.mean())
    assert split.system.low == pytest.approx(split.system.value - half)


def test_the_variance_of_the_shift_between_systems_counts() -> None:
    """Three systems predict the shift of a fourth."""
    shifts = [np.full(12, shift) for shift in (0.1, 0.3, 0.5)]
    split = split_change(np.array([np.full(12, 0.9), *shifts]), changed(4, 12), FIRST)
    assert split is not None
    half = stats.t.ppf(0.975, 2) * np.sqrt(np.var([0.1, 0.3, 0.5], ddof=1) * (1 + 1 / 3))
    assert (split.system.value, split.system.low, split.system.high) == pytest.approx(
        (0.6, 0.6 - half, 0.6 + half)
    )
    assert (split.judge.value, split.judge.low, split.judge.high) == pytest.approx(
        (0.3, 0.3 - half, 0.3 + half)
    )


def test_fewer_than_three_other_systems_give_no_interval() -> None:
    split = split_change(np.array([MOVED, SHIFT, SHIFT]), changed(3, 12), FIRST)
    assert split is not None
    assert split.system.value == pytest.approx((MOVED - SHIFT).mean())
    assert (split.system.low, split.system.p, split.judge.low) == (None, None, None)
    assert "fewer than 3 other systems" in split.system.method


def test_anchors_of_the_same_system_take_precedence() -> None:
    changes = np.concatenate([MOVED, SHIFT])
    split = split_change(np.array([changes, np.full(24, 2.0)]), changed(2, 24, slice(12)), FIRST)
    assert split is not None
    # half of the items changed
    assert split.system.value == pytest.approx((MOVED.mean() - SHIFT.mean()) / 2)
    assert split.judge.value == pytest.approx(SHIFT.mean())
    assert split.system.p is not None


def test_the_interval_with_anchors_of_the_same_system_covers_at_its_level() -> None:
    random = np.random.default_rng(0)
    n_covering = 0
    for _ in range(600):
        row = random.normal(0.4, 0.5, 40)
        row[:15] += random.normal(0.3, 0.3, 15)
        split = split_change(row[None], changed(1, 40, slice(15)), FIRST)
        assert split is not None
        assert split.system.low is not None
        assert split.system.high is not None
        n_covering += split.system.low <= 0.3 * 15 / 40 <= split.system.high
    assert 0.93 <= n_covering / 600 <= 0.99


@pytest.mark.parametrize("n_anchors", [0, 4])
def test_a_change_with_too_few_anchors_is_not_split(n_anchors: int) -> None:
    anchors = np.where(np.arange(12) < n_anchors, SHIFT, np.nan)
    assert split_change(np.array([MOVED, anchors]), changed(2, 12), FIRST) is None


@pytest.mark.parametrize(
    ("n_changed", "has_interval", "has_p"), [(4, False, False), (5, True, False), (6, True, True)]
)
def test_few_changed_texts_are_not_tested(
    n_changed: int, *, has_interval: bool, has_p: bool
) -> None:
    changes = np.concatenate([MOVED[:n_changed], SHIFT])
    split = split_change(changes[None], changed(1, len(changes), slice(n_changed)), FIRST)
    assert split is not None
    assert (split.system.low is not None, split.system.p is not None) == (has_interval, has_p)


@pytest.mark.parametrize(("difference", "p"), [(1.0, 2 / 2**12), (0.5, 1.0)])
def test_equal_differences_have_no_interval_and_the_p_of_sign_flips(
    difference: float, p: float
) -> None:
    split = split_change(
        np.array([np.full(12, difference), *[np.full(12, 0.5)] * 3]), changed(4, 12), FIRST
    )
    assert split is not None
    assert (split.system.value, split.system.low, split.system.p) == (difference - 0.5, None, p)


@given(st.integers(0, 10_000))
def test_the_parts_sum_to_the_change_of_any_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    differences = np.where(random.random((4, 15)) < 0.2, np.nan, random.normal(size=(4, 15)))
    marked = random.random((4, 15)) < 0.5
    for rows in (FIRST, slice(1, 3), slice(None)):
        split = split_change(differences, marked, rows)
        if split is not None and not np.isnan(differences[rows]).all():
            per_item = [
                column[~np.isnan(column)].mean()
                for column in differences[rows].T
                if not np.isnan(column).all()
            ]
            assert split.judge.value + split.system.value == pytest.approx(
                float(np.mean(per_item)), abs=1e-8
            )
            for part in (split.judge, split.system):
                assert part.low is None or part.low <= part.value


# Comparisons of two runs

C = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, criterion="c")
Values = dict[str, list[float]]


def table(values: Values, texts: dict[str, str] | None = None, column: Column = C) -> Table:
    """Return a score of each system for each item, with the given texts."""
    cells = [
        (f"i{n}", system, value) for system, row in values.items() for n, value in enumerate(row)
    ]
    samples = tuple(
        Sample(item, system, (texts or {}).get(system, "words"), "source")
        for item, system, _ in cells
    )
    scores = tuple(
        Score(item, system, column.name, value, Provenance("single"))
        for item, system, value in cells
    )
    return Table(samples, (column,), scores)


def row(runs: Runs, system: str) -> MeanChange:
    return next(each for each in runs.means if each.system == system)


LOW = [2.0, 3.0, 1.0, 2.0, 3.0, 2.0, 1.0, 3.0]
SYSTEMS = ("a", "b", "c", "new")
BEFORE = dict.fromkeys(SYSTEMS, LOW)
HIGHER = [value + (0.5, 1.0)[n % 2] for n, value in enumerate(LOW)]


def test_a_shift_of_all_texts_is_due_to_the_judge() -> None:
    runs = compare_runs(
        table(BEFORE), table(dict.fromkeys(SYSTEMS, HIGHER), {"new": "other words"})
    )
    new, unchanged = row(runs, "new"), row(runs, "a")
    assert (new.judge, new.system_change) != (None, None)
    assert new.system_change is not None
    assert new.judge is not None
    assert (new.estimate.value, new.judge.value, new.system_change.value) == (0.75, 0.75, 0.0)
    assert new.significant
    assert not new.system_changed
    assert (unchanged.judge, unchanged.system_change) == (unchanged.estimate, None)
    assert (runs.anchors, runs.edited) == (8, 8)


def test_the_rest_of_a_larger_change_is_due_to_the_system() -> None:
    better = [value + (0.5, 1.5)[n % 4 > 1] for n, value in enumerate(HIGHER)]
    after = dict.fromkeys(SYSTEMS, HIGHER) | {"new": better}
    new = row(compare_runs(table(BEFORE), table(after, {"new": "other words"})), "new")
    assert new.system_change is not None
    assert new.system_change.value == pytest.approx(1.0)
    assert new.system_changed


def test_changes_on_equal_texts_are_due_to_the_judge() -> None:
    runs = compare_runs(table(BEFORE), table(dict.fromkeys(SYSTEMS, HIGHER)))
    assert all(each.judge == each.estimate and each.system_change is None for each in runs.means)
    assert not any(each.system_changed for each in runs.means)


def test_changes_are_not_split_if_all_texts_differ() -> None:
    runs = compare_runs(
        table(BEFORE), table(BEFORE | {"new": HIGHER}, dict.fromkeys(SYSTEMS, "other words"))
    )
    assert all((each.judge, each.system_change) == (None, None) for each in runs.means)
    assert runs.anchors == 0


def test_a_change_without_a_judge_shift_is_due_to_the_system() -> None:
    new = row(
        compare_runs(table(BEFORE), table(BEFORE | {"new": HIGHER}, {"new": "other words"})), "new"
    )
    assert new.system_change == new.estimate
    assert new.system_changed
    assert new.judge is not None
    assert new.judge.value == 0.0


def test_changes_of_metrics_are_not_split() -> None:
    metric = Column("c", "metric", Signature("c"))
    runs = compare_runs(
        table(BEFORE, column=metric), table(dict.fromkeys(SYSTEMS, HIGHER), {"new": "x"}, metric)
    )
    assert all((each.judge, each.system_change) == (None, None) for each in runs.means)


def test_a_changed_source_is_a_changed_text() -> None:
    after = table(dict.fromkeys(SYSTEMS, HIGHER))
    samples = tuple(replace(s, source="another") if s.system == "new" else s for s in after.samples)
    runs = compare_runs(table(BEFORE), replace(after, samples=samples))
    assert row(runs, "new").system_change is not None


def test_the_order_of_generations_does_not_change_a_text() -> None:
    def generated(first: str, second: str) -> Table:
        samples = tuple(
            Sample(f"i{n} ({generation})", "x", text, cluster=f"i{n}")
            for n in range(8)
            for generation, text in enumerate((first, second), 1)
        )
        scores = tuple(
            Score(s.item, "x", "c", 1.0 + n % 3 + (first == "b"), Provenance("single"))
            for n, s in enumerate(samples)
        )
        return Table(samples, (C,), scores)

    assert row(compare_runs(generated("a", "b"), generated("b", "a")), "x").system_change is None
    assert row(compare_runs(generated("a", "b"), generated("b", "c")), "x").judge is None
