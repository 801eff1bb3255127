"""Effects of changes and attacks on scores. Oracles: small tables by hand and library functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.commands.card.card import ORIGINAL, CardEvidence, SensitivityCell
from judge.commands.card.effects import (
    holm_corrected,
    min_items_for_significance,
    sensitivity_table,
)
from judge.commands.card.perturbations import CONTROL
from judge.core.records import Estimate
from judge.stats.bootstrap import wilson_interval
from judge.stats.paired_differences import holm, sign_flip

NAN = float("nan")


def injection_damage(evidence: CardEvidence, attacks: Sequence[str]) -> tuple[SensitivityCell, ...]:
    return sensitivity_table(evidence, dict.fromkeys(attacks, ""), rises=True, control=CONTROL)


def test_a_rate_counts_falls_of_half_a_step_among_texts_that_can_fall(make: Any) -> None:
    table = make.table({ORIGINAL: [3, 3, 4.5, 1.25, 2, 3.0], "typos": [2.5, 2.75, 4.5, 1, 3, 1.0]})
    (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
    assert (cell.change, cell.criterion, cell.targeted, cell.failed) == ("typos", "c", True, 0)
    assert cell.rate == wilson_interval(
        2, 5, "rate"
    )  # 0.5 and 2; a text at 1.25 cannot fall by 0.5
    assert cell.mean_change.value == pytest.approx((-0.5 - 0.25 + 0 - 0.25 + 1 - 2) / 6)
    assert cell.mean_change.n == 6


def test_counts_scores_that_fell_and_scores_that_rose(make: Any) -> None:
    table = make.table({ORIGINAL: [3, 3, 3, 5, 1.0], "typos": [2, 4, 3.5, 4, 1.0]})
    (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
    assert (cell.rate, cell.opposite) == (
        wilson_interval(2, 4, "rate"),
        wilson_interval(2, 4, "rate"),
    )


@pytest.mark.parametrize(("tests", "least"), [(1, 6), (20, 10), (44, 11)])
def test_minimum_number_of_items_for_a_significant_change(tests: int, least: int) -> None:
    assert min_items_for_significance(tests) == least
    assert [2 * tests / 2**n < 0.05 for n in (least - 1, least)] == [False, True]


@pytest.mark.parametrize(("items", "known"), [(9, False), (10, True)])
def test_mean_change_of_few_items_has_no_interval(make: Any, items: int, known: bool) -> None:
    table = make.table({ORIGINAL: [3.0] * items, "typos": [2.0 + n / 20 for n in range(items)]})
    (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
    assert (cell.mean_change.low is not None, cell.mean_change.p is not None) == (known, True)


def test_damage_is_a_rise_if_lower_is_better(make: Any) -> None:
    table = make.table(
        {ORIGINAL: [2, 2, 2, 5], "typos": [3, 1, 2.5, 5]}, make.column(better="lower")
    )
    (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
    assert cell.rate == wilson_interval(2, 3, "rate")


def test_a_scale_without_ends_counts_half_a_standard_deviation(make: Any) -> None:
    endless = make.column(low=None, high=None, labels=())
    original = [10.0, 20.0, 30.0, 40.0]
    least = float(np.std(original, ddof=1)) / 2
    table = make.table(
        {ORIGINAL: original, "typos": [10 - least, 20 - 0.99 * least, 30, 0]}, endless
    )
    (cell,) = sensitivity_table(make.evidence(table), {"typos": ""})
    assert make.evidence(table).least_change(endless) == pytest.approx(least)
    assert cell.rate == wilson_interval(2, 4, "rate")


def test_any_fall_counts_if_all_originals_score_equally(
    make: Any,
) -> None:
    endless = make.column(low=None, high=None)
    (cell,) = sensitivity_table(
        make.evidence(make.table({ORIGINAL: [2, 2], "typos": [2, 1.9]}, endless)), {"typos": ""}
    )
    assert cell.rate == wilson_interval(1, 2, "rate")


def test_failures_are_counted_and_no_numbers(make: Any) -> None:
    table = make.table({ORIGINAL: [3, None, 3, 3], "typos": [1, 1, None, NAN]})
    (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
    assert (cell.failed, cell.rate) == (2, wilson_interval(1, 1, "rate"))
    assert (cell.mean_change.n, cell.mean_change.low, cell.mean_change.p) == (1, None, None)


def test_a_criterion_without_a_pair_of_scores_has_no_rate_and_no_mean(make: Any) -> None:
    (cell,) = sensitivity_table(
        make.evidence(make.table({ORIGINAL: [None, None], "typos": [1, 2]})), {"typos": "c"}
    )
    assert (cell.rate, cell.mean_change, cell.failed) == (None, None, 2)


def test_a_change_without_texts_has_no_cell(make: Any) -> None:
    evidence = make.evidence(make.table({ORIGINAL: [3, 3], "typos": [1, 1]}))
    assert [cell.change for cell in sensitivity_table(evidence, {"padded": "c", "typos": "c"})] == [
        "typos"
    ]
    assert sensitivity_table(evidence, {"padded": "c"}) == ()
    assert sensitivity_table(make.evidence(make.table({"typos": [1.0]})), {"typos": "c"}) == ()


def test_the_tests_are_sign_flips_with_holms_correction_over_all_cells(make: Any) -> None:
    original = [3, 4, 3, 4, 3, 4, 3, 4]
    rows = {
        "typos": [1, 2, 1, 2, 1, 2, 1, 2], "padded": [3, 4, 2, 4, 3, 3, 3, 5], "truncated": [2, 4, 2, 4, 2, 4, 3, 4],
    }  # fmt: skip
    cells = sensitivity_table(
        make.evidence(make.table({ORIGINAL: original, **rows})), dict.fromkeys(rows, "c")
    )
    differences = np.array([np.array(row) - original for row in rows.values()], dtype=np.float64)
    p, *_ = sign_flip(differences)
    assert [cell.mean_change.p for cell in cells if cell.mean_change] == pytest.approx(
        holm(p.tolist())
    )
    assert all("Holm over 3" in cell.mean_change.method for cell in cells if cell.mean_change)


def test_holm_correction_leaves_untested_cells_unchanged() -> None:
    bare, tested = (
        Estimate("", 1.0, None, None, 1, "none"),
        Estimate("", 1.0, 0.5, 1.5, 9, "some", 0.02),
    )
    assert holm_corrected([bare, None, tested, tested])[:2] == [bare, None]
    assert [one.p for one in holm_corrected([bare, tested, tested]) if one] == [None, 0.04, 0.04]


@given(
    st.lists(st.tuples(st.integers(4, 20), st.integers(4, 20)), min_size=2, max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_items_does_not_matter_to_rate_and_mean(
    make: Any, quarters: list[tuple[int, int]], random: Any
) -> None:
    shuffled = list(quarters)
    random.shuffle(shuffled)
    results = []
    for pairs in (quarters, shuffled):
        table = make.table(
            {ORIGINAL: [one / 4 for one, _ in pairs], "typos": [other / 4 for _, other in pairs]}
        )
        (cell,) = sensitivity_table(make.evidence(table), {"typos": "c"})
        results.append((cell.rate, cell.mean_change.value))
    (rate, mean), (other_rate, other_mean) = results
    assert rate == other_rate
    assert mean == pytest.approx(other_mean)


@given(st.lists(st.integers(8, 16), min_size=1, max_size=12))
def test_a_fall_of_half_a_step_or_more_counts_as_detected(make: Any, halves: list[int]) -> None:
    original = [half / 4 for half in halves]
    rows = {
        "far": [value - 0.5 for value in original],
        "near": [value - 0.49 for value in original],
    }
    cells = sensitivity_table(
        make.evidence(make.table({ORIGINAL: original, **rows})), dict.fromkeys(rows, "")
    )
    assert [cell.rate.value for cell in cells if cell.rate] == [1.0, 0.0]


def test_an_attack_counts_rises_among_texts_that_are_not_at_the_top(make: Any) -> None:
    table = make.table({ORIGINAL: [2, 3, 4.6, 5, 3, 4], "fake form": [5, 3.5, 5, 5, 1, 4.4]})
    (cell,) = injection_damage(make.evidence(table), ["fake form", "system voice"])
    assert (cell.change, cell.targeted, cell.rate) == (
        "fake form",
        False,
        wilson_interval(2, 4, "rate"),
    )
    assert cell.mean_change.value == pytest.approx((3 + 0.5 + 0.4 + 0 - 2 + 0.4) / 6)


def test_a_rise_is_beyond_that_of_the_control(make: Any) -> None:
    rows = {ORIGINAL: [1.0, 2, 3], "fake form": [3.0, 4, 5], CONTROL: [3.0, 4, 4]}
    attack, control = injection_damage(make.evidence(make.table(rows)), ["fake form", CONTROL])
    assert attack.mean_change
    assert attack.vs_original
    assert control.mean_change
    assert (attack.control, attack.mean_change.value, attack.vs_original.value) == (
        False,
        pytest.approx(1 / 3),
        2.0,
    )
    assert attack.rate == wilson_interval(1, 3, "rate")
    assert (control.control, control.vs_original, control.mean_change.value) == (
        True,
        None,
        pytest.approx(5 / 3),
    )


def test_no_rate_if_no_score_can_rise(make: Any) -> None:
    (cell,) = injection_damage(
        make.evidence(make.table({ORIGINAL: [5, 5, 4.75], "fake form": [5, 4, 5]})), ["fake form"]
    )
    assert cell.rate is None
    assert cell.mean_change is not None


def test_an_attack_succeeds_by_a_fall_if_lower_is_better(make: Any) -> None:
    lower = make.column(better="lower")
    (cell,) = injection_damage(
        make.evidence(make.table({ORIGINAL: [3, 3], "fake form": [1, 5]}, lower)), ["fake form"]
    )
    assert cell.rate == wilson_interval(1, 2, "rate")


def test_attacks_and_damage_are_corrected_separately(make: Any) -> None:
    original = [3.0, 4, 3, 4, 3, 4]
    rows = {"typos": [2.0, 3, 2, 3, 2, 3], "fake form": [4.0, 5, 4, 5, 4, 5]}
    evidence = make.evidence(make.table({ORIGINAL: original, **rows}))
    (attack,), (damage,) = (
        injection_damage(evidence, ["fake form"]),
        sensitivity_table(evidence, {"typos": "c"}),
    )
    assert attack.mean_change
    assert damage.mean_change
    assert attack.mean_change.p == damage.mean_change.p == 2 / 2**6
