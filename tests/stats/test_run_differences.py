"""Two runs side by side: what moved, by hand and by scipy; failures, items, and what cannot be compared."""

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

MADE = Provenance("single")
C = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, criterion="c")
D = Column("d", "criterion", Signature("d@1"), 1.0, 3.0, criterion="d")
M = Column("m", "metric", Signature("m"))
Values = dict[tuple[str, str], list[float | None]]


def table(
    values: Values, *, columns: tuple[Column, ...] = (C,), output: str = "words", failing: str = ""
) -> Table:
    """`values` are by system and column, one for each item; None failed, and is missing where `failing` is another."""
    systems = dict.fromkeys(system for system, _ in values)
    size = max(map(len, values.values()))
    samples = tuple(Sample(f"i{n}", system, output) for n in range(size) for system in systems)
    scores, failures = [], []
    for (system, column), row in values.items():
        for n, value in enumerate(row):
            if value is not None:
                scores.append(Score(f"i{n}", system, column, value, MADE))
            elif failing != "none":
                failures.append(Failure(f"i{n}", system, column, "parse", "ParseError", "no score"))
    return Table(samples, columns, tuple(scores), tuple(failures))


def row(comparison: Runs, system: str, column: str = "c") -> MeanChange:
    return next(one for one in comparison.means if (one.system, one.column) == (system, column))


BEFORE: list[float | None] = [3, 4, 2, 5, 3, 1, 4, 2, 3, 4]
AFTER: list[float | None] = [4, 4, 3, 5, 4, 2, 4, 3, 4, 4]


def test_a_systems_difference_is_paired_by_text() -> None:
    comparison = compare_runs(table({("x", "c"): BEFORE}), table({("x", "c"): AFTER}))
    (one,) = comparison.means
    assert (one.system, one.before, one.after) == ("x", 3.1, 3.7)
    assert (one.up, one.same, one.down) == (6, 4, 0)
    assert (one.estimate.value, one.estimate.n) == (pytest.approx(0.6), 10)
    differences = np.array(AFTER, dtype=float) - np.array(BEFORE, dtype=float)
    exact = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert one.estimate.p == pytest.approx(exact.pvalue) == pytest.approx(2 / 2**6)
    assert one.adjusted == one.estimate.p
    assert one.significant
    expected = mean_differences(differences[None, :])[0]
    assert expected is not None
    assert (one.estimate.low, one.estimate.high) == (expected.low, expected.high)


def test_all_systems_come_first_and_are_the_mean_of_each_item() -> None:
    before = table({("x", "c"): [1, 2, 3], ("y", "c"): [2, 2, None]})
    after = table({("x", "c"): [2, 2, 4], ("y", "c"): [5, 2, 3]})
    comparison = compare_runs(before, after)
    assert [one.system for one in comparison.means] == ["", "x", "y"]
    every = comparison.means[0]
    assert every.estimate.value == pytest.approx(
        (2 + 0 + 1) / 3
    )  # the third item has a difference of x alone
    assert every.estimate.n == 3
    assert (every.before, every.after) == (
        pytest.approx((1.5 + 2 + 3) / 3),
        pytest.approx((3.5 + 2 + 4) / 3),
    )
    assert (every.up, every.same, every.down) == (3, 2, 0)


def test_holm_is_over_all_rows_in_which_anything_differs() -> None:
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
    p = [one.estimate.p for one in tested if one.estimate.p is not None]
    assert [one.adjusted for one in tested] == holm(p)
    assert [row(comparison, "y").adjusted, row(comparison, "x", "m").adjusted] == [1.0, 1.0]
    assert row(comparison, "y").estimate.p == 1.0
    every = [row(comparison, "", "c"), row(comparison, "", "d"), row(comparison, "", "overall")]
    assert [one.adjusted for one in every] == holm([one.estimate.p or 0.0 for one in every])


def test_the_same_run_twice_has_not_moved() -> None:
    data = table({("x", "c"): BEFORE, ("y", "c"): [2.0, *BEFORE[1:]]})
    comparison = compare_runs(data, data)
    assert not any(one.significant or one.up or one.down for one in comparison.means)
    assert (
        comparison.changed_items,
        comparison.appeared,
        comparison.vanished,
        comparison.edited,
    ) == ((), (), (), 0)


def test_only_common_texts_count_and_the_rest_is_named() -> None:
    before = table({("x", "c"): [1, 2, 3, 4], ("old", "c"): [1, 1, 1, 1]}, columns=(C, M))
    after = table({("x", "c"): [1, 2, 4], ("new", "c"): [5, 5, 5]}, columns=(C, D))
    comparison = compare_runs(before, after)
    assert [one.system for one in comparison.means] == ["x"]
    assert (comparison.texts, comparison.items) == (3, 3)
    assert (row(comparison, "x").before, row(comparison, "x").after) == (2.0, pytest.approx(7 / 3))
    first, second = comparison.only
    assert (first.items, first.systems, first.columns) == (("i3",), ("old",), ("m",))
    assert (second.items, second.systems, second.columns) == ((), ("new",), ("d",))


def test_nothing_in_common() -> None:
    comparison = compare_runs(table({("x", "c"): [1, 2]}), table({("y", "c"): [1, 2]}))
    assert (comparison.texts, comparison.means, comparison.changed_items) == (0, (), ())


def test_failures_that_appeared_and_vanished() -> None:
    before = table({("x", "c"): [1, None, None, 4]})
    after = table({("x", "c"): [None, 2, None, 4]})
    comparison = compare_runs(before, after)
    assert [one.item for one in comparison.appeared] == ["i0"]
    assert [one.item for one in comparison.vanished] == ["i1"]
    assert comparison.unanswered == (0, 0)
    assert row(comparison, "x").estimate.n == 1


def test_a_panels_failures_follow_from_its_judges() -> None:
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
    (one,) = comparison.means
    assert (
        one.estimate.value,
        one.estimate.low,
        one.estimate.p,
        one.adjusted,
        one.significant,
    ) == (
        2.0,
        None,
        None,
        None,
        False,
    )


def test_another_scale_is_not_compared() -> None:
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


def test_the_weighted_overall_is_compared_if_it_is_the_same() -> None:
    values: Values = {("x", "c"): [1, 3, 5], ("x", "d"): [1, 2, 3]}
    before, after = (
        table(values, columns=(C, D)),
        table({**values, ("x", "d"): [3, 3, 3]}, columns=(C, D)),
    )
    one = row(compare_runs(before, after), "x", "overall")
    assert (one.before, one.after) == (pytest.approx(0.5), pytest.approx(0.75))
    heavy = table(values, columns=(replace(C, weight=3.0), D))
    comparison = compare_runs(before, heavy)
    assert comparison.incomparable == (("overall", "its criteria or weights differ"),)


def whole(value: float, n: int = 2) -> Table:
    data = table({("x", "c"): [1, 2]}, columns=(C, M))
    return replace(
        data, scores=(*data.scores, Score("", "x", "m", value, Provenance("metric", n=n)))
    )


def test_a_value_of_all_texts_together_has_no_test() -> None:
    one = row(compare_runs(whole(30.0), whole(32.5)), "x", "m")
    assert (one.before, one.after, one.estimate.value, one.estimate.n) == (30.0, 32.5, 2.5, 2)
    assert (one.estimate.low, one.estimate.p, one.adjusted) == (None, None, None)
    texts = table({("x", "c"): [1, 2], ("x", "m"): [3, 4]}, columns=(C, M))
    ((column, reason),) = compare_runs(whole(30.0), texts).incomparable
    assert column == "m"
    assert has_line(reason, "per text", "per system")


def test_items_that_moved_furthest_by_shares_of_their_scales() -> None:
    before = table({("x", "c"): [1, 1, 1], ("x", "d"): [1, 1, 1]}, columns=(C, D))
    after = table({("x", "c"): [1, 3, 5], ("x", "d"): [1, 3, 1]}, columns=(C, D))
    first, second = compare_runs(before, after).changed_items
    assert (first.item, first.size) == ("i1", 1.0)
    assert [(s.column, s.before, s.after, s.share) for s in first.shifts] == [
        ("d", 1, 3, 1.0),
        ("c", 1, 3, 0.5),
    ]
    assert (second.item, second.size, len(second.shifts)) == ("i2", 1.0, 1)


def test_a_panels_judges_do_not_count_twice_among_the_items() -> None:
    judge = Column("c/a", "criterion", Signature("a"), 1.0, 5.0, criterion="c", judge="a")
    values: Values = {("x", "c"): [1, 1], ("x", "c/a"): [1, 1]}
    before = table(values, columns=(C, judge))
    after = table({**values, ("x", "c/a"): [5, 1]}, columns=(C, judge))
    comparison = compare_runs(before, after)
    assert comparison.changed_items == ()
    assert row(comparison, "x", "c/a").up == 1


def test_a_column_that_never_varies_has_no_share() -> None:
    before, after = ({("x", "m"): [7.0, 7.0]} for _ in range(2))
    assert compare_runs(table(before, columns=(M,)), table(after, columns=(M,))).changed_items == ()


def test_edited_texts_are_counted() -> None:
    comparison = compare_runs(
        table({("x", "c"): [1, 2]}), table({("x", "c"): [1, 2]}, output="other words")
    )
    assert comparison.edited == 2


def test_the_same_seed_gives_the_same() -> None:
    random = np.random.default_rng(1)
    sides: list[Any] = [
        table({("x", "c"): random.integers(1, 6, 40).astype(float).tolist()}) for _ in range(2)
    ]
    assert compare_runs(*sides, seed=4) == compare_runs(*sides, seed=4)
    assert compare_runs(*sides, seed=4).means[0].estimate.test.endswith("10000 flips, seed 4")
