"""Changes between two runs: means, failures and items. Oracles: scipy, and sums by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.paired_differences import holm, mean_differences
from judge.stats.run_differences import MeanChange, Runs, compare_runs
from judge.table import Table
from tests.factories import has_line

SINGLE = Provenance("single")
C = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, criterion="c")
D = Column("d", "criterion", Signature("d@1"), 1.0, 3.0, criterion="d")
M = Column("m", "metric", Signature("m"))
Values = dict[tuple[str, str], list[float | None]]


def table(
    values: Values, *, columns: tuple[Column, ...] = (C,), output: str = "words", failing: str = ""
) -> Table:
    """Return a table of values by system and column, one for each item.

    None is a failed judgment, or no judgment if `failing` is "none".
    """
    systems = dict.fromkeys(system for system, _ in values)
    size = max(map(len, values.values()))
    samples = tuple(Sample(f"i{n}", system, output) for n in range(size) for system in systems)
    scores, failures = [], []
    for (system, column), row in values.items():
        for n, value in enumerate(row):
            if value is not None:
                scores.append(Score(f"i{n}", system, column, value, SINGLE))
            elif failing != "none":
                failures.append(Failure(f"i{n}", system, column, "parse", "ParseError", "no score"))
    return Table(samples, columns, tuple(scores), tuple(failures))


def row(comparison: Runs, system: str, column: str = "c") -> MeanChange:
    return next(each for each in comparison.means if (each.system, each.column) == (system, column))


BEFORE: list[float | None] = [3, 4, 2, 5, 3, 1, 4, 2, 3, 4]
AFTER: list[float | None] = [4, 4, 3, 5, 4, 2, 4, 3, 4, 4]


def test_a_systems_difference_is_paired_by_text() -> None:
    comparison = compare_runs(table({("x", "c"): BEFORE}), table({("x", "c"): AFTER}))
    (change,) = comparison.means
    assert (change.system, change.before, change.after) == ("x", 3.1, 3.7)
    assert (change.up, change.same, change.down) == (6, 4, 0)
    assert (change.estimate.value, change.estimate.n) == (pytest.approx(0.6), 10)
    differences = np.array(AFTER, dtype=float) - np.array(BEFORE, dtype=float)
    exact = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert change.estimate.p == pytest.approx(exact.pvalue) == pytest.approx(2 / 2**6)
    assert change.adjusted == change.estimate.p
    assert change.significant
    expected = mean_differences(differences[None, :])[0]
    assert expected is not None
    assert (change.estimate.low, change.estimate.high) == (expected.low, expected.high)


def test_the_change_of_all_systems_comes_first_and_is_a_mean_over_items() -> None:
    before = table({("x", "c"): [1, 2, 3], ("y", "c"): [2, 2, None]})
    after = table({("x", "c"): [2, 2, 4], ("y", "c"): [5, 2, 3]})
    comparison = compare_runs(before, after)
    assert [each.system for each in comparison.means] == ["", "x", "y"]
    all_systems = comparison.means[0]
    # Only system x has a difference on the third item.
    assert all_systems.estimate.value == pytest.approx((2 + 0 + 1) / 3)
    assert all_systems.estimate.n == 3
    assert all_systems.before == pytest.approx((1.5 + 2 + 3) / 3)
    assert all_systems.after == pytest.approx((3.5 + 2 + 4) / 3)
    assert (all_systems.up, all_systems.same, all_systems.down) == (3, 2, 0)


def test_holms_correction_is_over_all_rows_with_a_difference() -> None:
    columns = (C, D, M)
    random = np.random.default_rng(0)
    values = {
        (s, c.name): random.integers(1, 4, 20).astype(float).tolist()
        for s in ("x", "y")
        for c in columns
    }
    after = dict(values)
    after["x", "c"] = [v + 1 for v in values["x", "c"]]
    after["y", "d"] = [v + (n % 3 == 0) for n, v in enumerate(values["y", "d"])]
    comparison = compare_runs(table(values, columns=columns), table(after, columns=columns))
    tested = [
        row(comparison, "x"),
        row(comparison, "y", "d"),
        row(comparison, "x", "overall"),
        row(comparison, "y", "overall"),
    ]
    p = [each.estimate.p for each in tested if each.estimate.p is not None]
    assert [each.adjusted for each in tested] == holm(p)
    assert [row(comparison, "y").adjusted, row(comparison, "x", "m").adjusted] == [1.0, 1.0]
    assert row(comparison, "y").estimate.p == 1.0
    all_systems = [row(comparison, "", name) for name in ("c", "d", "overall")]
    assert [change.adjusted for change in all_systems] == holm(
        [change.estimate.p or 0.0 for change in all_systems]
    )


def test_two_equal_runs_have_no_changes() -> None:
    data = table({("x", "c"): BEFORE, ("y", "c"): [2.0, *BEFORE[1:]]})
    comparison = compare_runs(data, data)
    assert not any(change.significant for change in comparison.means)
    assert not any(change.up or change.down for change in comparison.means)
    assert (comparison.changed_items, comparison.edited) == ((), 0)
    assert (comparison.appeared, comparison.vanished) == ((), ())


def test_only_common_texts_are_compared_and_the_rest_is_listed() -> None:
    before = table({("x", "c"): [1, 2, 3, 4], ("old", "c"): [1, 1, 1, 1]}, columns=(C, M))
    after = table({("x", "c"): [1, 2, 4], ("new", "c"): [5, 5, 5]}, columns=(C, D))
    comparison = compare_runs(before, after)
    assert [each.system for each in comparison.means] == ["x"]
    assert (comparison.texts, comparison.items) == (3, 3)
    assert (row(comparison, "x").before, row(comparison, "x").after) == (2.0, pytest.approx(7 / 3))
    first, second = comparison.only
    assert (first.items, first.systems, first.columns) == (("i3",), ("old",), ("m",))
    assert (second.items, second.systems, second.columns) == ((), ("new",), ("d",))


def test_runs_without_a_common_text_have_no_changes() -> None:
    comparison = compare_runs(table({("x", "c"): [1, 2]}), table({("y", "c"): [1, 2]}))
    assert (comparison.texts, comparison.means, comparison.changed_items) == (0, (), ())


def test_new_and_resolved_failures_are_listed() -> None:
    before = table({("x", "c"): [1, None, None, 4]})
    after = table({("x", "c"): [None, 2, None, 4]})
    comparison = compare_runs(before, after)
    assert [each.item for each in comparison.appeared] == ["i0"]
    assert [each.item for each in comparison.vanished] == ["i1"]
    assert comparison.unanswered == (0, 0)
    assert row(comparison, "x").estimate.n == 1


def test_a_failure_of_a_panel_is_not_a_new_failure() -> None:
    before = table({("x", "c"): [1, 2]})
    failure = Failure("i0", "x", "c", "panel", "IncompletePanel", "no score by a")
    after = replace(before, scores=before.scores[1:], failures=(failure,))
    assert compare_runs(before, after).appeared == ()


def test_unrequested_judgments_are_counted() -> None:
    before = table({("x", "c"): [1, 2, None]}, failing="none")
    after = table({("x", "c"): [1, None, 3]}, failing="none")
    assert compare_runs(before, after).unanswered == (1, 1)


def test_one_item_has_a_difference_and_no_test() -> None:
    comparison = compare_runs(table({("x", "c"): [1]}), table({("x", "c"): [3]}))
    (change,) = comparison.means
    assert (change.estimate.value, change.estimate.low) == (2.0, None)
    assert (change.estimate.p, change.adjusted) == (None, None)
    assert not change.significant


def test_columns_with_different_scales_are_not_compared() -> None:
    wide = replace(C, high=10.0)
    comparison = compare_runs(
        table({("x", "c"): [1, 2]}), table({("x", "c"): [1, 9]}, columns=(wide,))
    )
    assert comparison.means == ()
    ((column, reason),) = comparison.incomparable
    assert column == "c"
    assert has_line(reason, "scale", "1–5", "1–10")
    free = replace(C, low=None, high=None)
    comparison = compare_runs(
        table({("x", "c"): [1, 2]}), table({("x", "c"): [1, 9]}, columns=(free,))
    )
    ((column, reason),) = comparison.incomparable
    assert column == "c"
    assert has_line(reason, "scale", "1–5", "open")


def test_overall_is_compared_if_its_criteria_and_weights_are_equal() -> None:
    values: Values = {("x", "c"): [1, 3, 5], ("x", "d"): [1, 2, 3]}
    before = table(values, columns=(C, D))
    after = table({**values, ("x", "d"): [3, 3, 3]}, columns=(C, D))
    change = row(compare_runs(before, after), "x", "overall")
    assert (change.before, change.after) == (pytest.approx(0.5), pytest.approx(0.75))
    reweighted = table(values, columns=(replace(C, weight=3.0), D))
    comparison = compare_runs(before, reweighted)
    assert comparison.incomparable == (("overall", "its criteria or weights differ"),)


@pytest.mark.parametrize("changed", [{"high": 10.0}, {"better": "lower"}])
def test_overall_is_not_compared_if_one_of_its_criteria_is_not(changed: dict[str, Any]) -> None:
    values: Values = {("x", "c"): [1, 3, 5], ("x", "d"): [1, 2, 3]}
    before = table(values, columns=(C, D))
    after = table(values, columns=(C, replace(D, **changed)))
    comparison = compare_runs(before, after)
    assert [name for name, _ in comparison.incomparable] == ["d", "overall"]
    assert {mean.column for mean in comparison.means} == {"c"}


def with_corpus_value(value: float, n: int = 2) -> Table:
    """Return a table in which column m has one value of all texts."""
    data = table({("x", "c"): [1, 2]}, columns=(C, M))
    return replace(
        data, scores=(*data.scores, Score("", "x", "m", value, Provenance("metric", n=n)))
    )


def test_a_value_of_all_texts_has_no_test() -> None:
    change = row(compare_runs(with_corpus_value(30.0), with_corpus_value(32.5)), "x", "m")
    assert (change.before, change.after) == (30.0, 32.5)
    assert (change.estimate.value, change.estimate.n) == (2.5, 2)
    assert (change.estimate.low, change.estimate.p, change.adjusted) == (None, None, None)
    texts = table({("x", "c"): [1, 2], ("x", "m"): [3, 4]}, columns=(C, M))
    ((column, reason),) = compare_runs(with_corpus_value(30.0), texts).incomparable
    assert column == "m"
    assert has_line(reason, "per text", "per system")


def test_new_and_resolved_failures_of_a_value_of_all_texts_are_listed() -> None:
    scored = with_corpus_value(30.0)
    texts_alone = tuple(score for score in scored.scores if score.item)
    failure = Failure("", "x", "m", "metric", "TooFewTexts", "too few texts")
    failed = replace(scored, scores=texts_alone, failures=(failure,))
    assert compare_runs(scored, failed).appeared == (failure,)
    assert compare_runs(failed, scored).vanished == (failure,)


def test_a_value_of_all_texts_of_an_unshared_system_is_not_missing() -> None:
    shared = table({("x", "c"): [1, 2]}, columns=(C, M))
    of_shared = Score("", "x", "m", 30.0, Provenance("metric", n=2))
    of_unshared = replace(of_shared, system="old")
    after = replace(shared, scores=(*shared.scores, of_shared))
    before = table({("x", "c"): [1, 2], ("old", "c"): [1, 2]}, columns=(C, M))
    before = replace(before, scores=(*before.scores, of_shared, of_unshared))
    assert compare_runs(before, after).unanswered == (0, 0)


def test_the_most_changed_items_are_ordered_by_shares_of_the_scales() -> None:
    before = table({("x", "c"): [1, 1, 1], ("x", "d"): [1, 1, 1]}, columns=(C, D))
    after = table({("x", "c"): [1, 3, 5], ("x", "d"): [1, 3, 1]}, columns=(C, D))
    first, second = compare_runs(before, after).changed_items
    assert (first.item, first.size) == ("i1", 1.0)
    assert [(s.column, s.before, s.after, s.share) for s in first.shifts] == [
        ("d", 1, 3, 1.0),
        ("c", 1, 3, 0.5),
    ]
    assert (second.item, second.size, len(second.shifts)) == ("i2", 1.0, 1)


def test_changes_of_items_exclude_the_judges_of_a_panel() -> None:
    judge = Column("c/a", "criterion", Signature("a"), 1.0, 5.0, criterion="c", judge="a")
    values: Values = {("x", "c"): [1, 1], ("x", "c/a"): [1, 1]}
    before = table(values, columns=(C, judge))
    after = table({**values, ("x", "c/a"): [5, 1]}, columns=(C, judge))
    comparison = compare_runs(before, after)
    assert comparison.changed_items == ()
    assert row(comparison, "x", "c/a").up == 1


def test_a_constant_column_has_no_changed_items() -> None:
    constant = table({("x", "m"): [7.0, 7.0]}, columns=(M,))
    assert compare_runs(constant, constant).changed_items == ()


def test_edited_texts_are_counted() -> None:
    comparison = compare_runs(
        table({("x", "c"): [1, 2]}), table({("x", "c"): [1, 2]}, output="other words")
    )
    assert comparison.edited == 2


def test_the_same_seed_gives_the_same_comparison() -> None:
    random = np.random.default_rng(1)
    before, after = (table({("x", "c"): random.uniform(1, 5, 40).tolist()}) for _ in range(2))
    comparison = compare_runs(before, after, seed=4)
    assert comparison == compare_runs(before, after, seed=4)
    assert comparison.means[0].estimate.test.endswith("10000 flips, seed 4")
