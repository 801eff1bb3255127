from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judge.stats.paired_differences import holm, pairs, sign_flip
from judge.stats.power import ALPHA, Scatter, Spread, scatter, scatter_of_pairs
from judge.stats.system_differences import TOO_FEW, compare
from tests.factories import has_line


@pytest.mark.parametrize("items", [8, 12, 30, 200])
def test_power_of_continuous_differences_is_that_of_students_t_test(items: int) -> None:
    for alpha, effect in product((0.05, 0.05 / 3), (0.3, 0.6, 1.2)):
        critical = stats.t.ppf(1 - alpha / 2, items - 1)
        expected = stats.nct.sf(critical, items - 1, effect * math.sqrt(items))
        assert Spread(items, -2 * effect, 2.0, alpha).power_of() == pytest.approx(
            expected, abs=0.02
        )
    assert Spread(items, 0.0, 1.0).power_of() == pytest.approx(0.05, abs=0.01)


@pytest.mark.parametrize("items", [6, 9, 18, 50, 2000])
def test_the_detectable_difference_is_the_inverse_of_the_needed_items(items: int) -> None:
    for test in ((0.05,), (0.05, 0.2, 1.0), (0.05 / 6, 0.0, 0.5)):
        spread = Spread(items, 0.0, 0.8, *test)
        least = spread.detectable()
        if least is None:
            assert items < 9
            continue
        assert spread.power_of(difference=least) == pytest.approx(0.8, abs=1e-4)
        assert spread.needed(1.0001 * least) == items
    # Five differences with the same sign have a p of .0625, which is too large.
    assert Spread(0, 5.0, 0.1).needed() == 6
    assert Spread(0, 0.5, 1.0).needed() == 34  # G*Power 3.1: a two-sided paired t test of d = 0.5
    assert Spread(0, 5.0, 0.1, ALPHA / 6).needed() == 8


@given(
    effect=st.floats(0.01, 3.0),
    tests=st.integers(1, 190),
    zeros=st.floats(0.0, 0.99),
    step=st.floats(0.0, 0.5),
)
def test_the_needed_items_are_the_fewest_with_the_power(
    effect: float, tests: int, zeros: float, step: float
) -> None:
    spread = Spread(20, effect, 1.0, ALPHA / tests, zeros, step)
    needed = spread.needed()
    assert needed is not None
    assert spread.power_of(needed) >= 0.8
    assert spread.power_of(needed - 1) < 0.8


@given(effect=st.floats(0.01, 4.0), planned=st.floats(0.05, 1.0), zeros=st.floats(0.0, 1.0))
def test_a_small_difference_has_a_sample_size_if_the_observed_one_is_large(
    effect: float, planned: float, zeros: float
) -> None:
    """With an effect of 2.5, a share of zeros of 12% corresponds to more than all items at a mean of 0."""
    at_zero = zeros * math.exp(effect**2 / 2)
    spread = Spread(24, effect, 1.0, ALPHA, at_zero)
    needed = spread.needed(planned)
    assert needed is not None
    assert spread.power_of(needed, planned) >= 0.8
    # The bound is the t test of a normal variable, plus items enough for six nonzero differences.
    normal = Spread(24, effect, 1.0).needed(planned)
    assert normal is not None
    assert needed <= normal + 20 * (1 + planned**2) / planned**2


@given(
    items=st.integers(6, 3_000),
    sd=st.floats(0.01, 30.0),
    tests=st.integers(1, 190),
    zeros=st.floats(0.0, 0.99),
)
def test_the_detectable_difference_reaches_the_power(
    items: int, sd: float, tests: int, zeros: float
) -> None:
    spread = Spread(items, 0.0, sd, ALPHA / tests, zeros)
    least = spread.detectable()
    if least is None:
        assert spread.power_of(difference=1e6 * sd) < 0.8
        return
    assert spread.power_of(difference=least - 1e-6 * sd) < 0.8
    assert spread.power_of(difference=least + 1e-6 * sd) > 0.8


def test_a_power_below_the_error_rate_needs_no_difference() -> None:
    assert Spread(50, 0.0, 1.0).detectable(power=0.01) == 0.0


Make = Callable[..., Any]
Values = dict[str, list[float | None]]
CUTS = (-1.28, -0.52, 0.52, 1.28)


@pytest.mark.parametrize(
    ("items", "systems", "shift"),
    [(6, 2, 2.0), (9, 2, 1.2), (18, 2, 0.85), (50, 2, 0.4), (9, 5, 2.0), (18, 5, 1.1)],
)
def test_simulated_power_reaches_the_promised_power(items: int, systems: int, shift: float) -> None:
    """Scores are from 1 to 5. The first system is better by `shift`, and the others are equal."""

    def differences(repetitions: int, items: int) -> Any:
        random = np.random.default_rng(items)
        hidden = random.normal(size=(repetitions, 1, items)) + random.normal(
            size=(repetitions, systems, items)
        )
        hidden[:, 0] += shift * math.sqrt(2)
        values = np.searchsorted(CUTS, hidden.ravel() / math.sqrt(2)).reshape(hidden.shape)
        first, second = zip(*pairs(range(systems)), strict=True)
        return (values[:, first] - values[:, second]).astype(float)

    pilot = differences(1, 5_000)[0, :1]
    (spread,) = scatter_of_pairs("c", "ab", [(0, 1)], pilot, systems=systems).pairs
    drawn = differences(1_500, items)
    p = sign_flip(drawn.reshape(-1, items), n_resamples=2_000).p.reshape(len(drawn), -1)
    delivered = np.mean([holm(each)[0] < ALPHA for each in p])
    assert delivered == pytest.approx(spread.power_of(items), abs=0.12)
    assert spread.power_of(items) <= delivered + 0.05


@pytest.fixture
def scatter_of(metric_table: Make) -> Callable[[Values], Scatter]:
    """Return a function that computes the scatter of a table with one column."""

    def scattered(values: Values) -> Scatter:
        table = metric_table({"m": values})
        (result,) = scatter(table, table.columns)
        return result

    return scattered


def test_the_median_and_the_worst_pair_by_hand(scatter_of: Make) -> None:
    a, b, c = [1, 2, 3, 4, 3, 2, 1], [1, 2, 3, 5, 3, 2, 1], [4, 1, None, 0, 2, 2, 1]
    result = scatter_of({"a": a, "b": b, "c": c})
    differences = [
        [x - y for x, y in zip(*pair, strict=True) if None not in (x, y)]
        for pair in ((a, b), (a, c), (b, c))
    ]
    sds = sorted(np.std(row, ddof=1) for row in differences)
    assert [pair.sd for pair in result.pairs] == pytest.approx(sds)
    assert sorted(pair.items for pair in result.pairs) == [6, 6, 7]
    assert (result.note, result.tests, result.least) == ("", 3, 7)
    assert (result.median.sd, result.worst.sd) == pytest.approx((sds[1], sds[2]))
    assert result.worst.detectable(6) is None
    assert [pair.step for pair in result.pairs] == [1.0] * 3
    equal = [pair.zeros * math.exp(-((pair.mean / pair.sd) ** 2) / 2) for pair in result.pairs]
    assert sorted(equal) == pytest.approx([2 / 6, 2 / 6, 6 / 7])
    assert result.worst.level == 0.05 / 3


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([None, 0.2, 1.0]), st.integers(6, 40))
def test_the_hardest_pair_needs_the_most_items(
    seed: int, difference: float | None, items: int
) -> None:
    """The values have labels, ties and gaps. The oracle is the maximum over all pairs."""
    random = np.random.default_rng(seed)
    values = random.integers(1, 4, (5, 40)) * random.choice([0, 1], (5, 40), p=[0.7, 0.3]) * 1.0
    values[4] = random.normal(size=40)
    values[random.random(values.shape) < 0.2] = np.nan
    compared = pairs(range(5))
    rows = np.stack([values[a] - values[b] for a, b in compared])
    result = scatter_of_pairs("m", "abcde", compared, rows, systems=5)

    def need(pair: Spread) -> float:
        least = pair.detectable(items) if difference is None else pair.needed(difference)
        return math.inf if least is None else least

    assert need(result.hardest(difference, items)) == max(map(need, result.pairs))


def test_a_pair_with_many_equal_scores_may_need_most_items(scatter_of: Make) -> None:
    """The pair with the largest standard deviation differs in every item, and the other pair in few."""
    steady = [1.0, -1.0, 0.9, -0.9, 1.1, -1.1] * 2
    rare = [0.0] * 8 + [1.7, -1.7, 1.6, -1.6]
    (pair,) = scatter_of({"a": [0.0] * 12, "b": rare}).pairs
    (wide,) = scatter_of({"a": [0.0] * 12, "b": steady}).pairs
    both = Scatter("m", 2, tuple(sorted((pair, wide), key=lambda each: each.sd)))
    assert both.worst is wide
    assert both.hardest(items=12) is pair


@pytest.mark.parametrize("systems", range(2, 8))
def test_fewest_items_for_a_significant_difference(
    systems: int, metric_table: Make, scatter_of: Make
) -> None:
    """With one item fewer, the comparison of a run notes that no difference can be significant."""
    fewest = scatter_of(
        {f"s{k}": [k + n % 2 * k / 9 for n in range(9)] for k in range(systems)}
    ).least

    def note(items: int) -> str:
        table = metric_table(
            {"m": {f"s{k}": [k + n % 2 * k / 9 for n in range(items)] for k in range(systems)}}
        )
        (comparison,) = compare(table, n_resamples=200)
        return comparison.note

    assert TOO_FEW in note(fewest - 1)
    assert TOO_FEW not in note(fewest)


def test_one_pair_is_corrected_for_the_tests_of_all_pairs(metric_table: Make) -> None:
    a, b, c = [1.0, 2, 3, 4, 3, 2, 1], [1.0, 2, 3, 5, 3, 2, 1], [4.0, 1, None, 0, 2, 2, 1]
    table = metric_table({"m": {"a": a, "b": b, "c": c, "d": [None] * 7}})
    (result,) = scatter(table, table.columns, ("b", "a"))
    (pair,) = result.pairs
    assert (pair.systems, pair.items, result.tests) == (("b", "a"), 7, 3)
    assert pair.mean == pytest.approx(1 / 7)


def test_a_pair_without_a_scatter_has_a_reason(metric_table: Make) -> None:
    table = metric_table(
        {
            "m": {
                "a": [1.0, 2] * 3,
                "b": [2.0, 3] * 3,
                "c": [1.0, 1, 2, None, None, None],
                "d": [None] * 6,
            }
        }
    )
    reasons = {
        "b": ("differences are the same",),
        "c": ("more than 3 items", "at least 6"),
        "d": ("no two systems", "at least 6"),
    }
    for system, facts in reasons.items():
        (result,) = scatter(table, table.columns, ("a", system))
        assert result.pairs == ()
        assert has_line(result.note, *facts)


def test_too_many_systems_are_not_tested(scatter_of: Make) -> None:
    result = scatter_of({f"s{k}": [float(k * n % 7) for n in range(8)] for k in range(101)})
    assert (result.pairs, result.tests) == ((), 0)
    assert has_line(result.note, "more than 100 systems", "too many")


def test_pairs_that_share_too_few_items_are_excluded(scatter_of: Make) -> None:
    wave = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 5.0]
    result = scatter_of({"a": wave, "b": wave[::-1], "c": [9.0, 1.0, 5.0, None, None, None, None]})
    (pair,) = result.pairs
    assert (pair.systems, pair.items) == (("a", "b"), 7)
    assert pair.sd == pytest.approx(np.std(np.subtract(wave, wave[::-1]), ddof=1))
    assert has_line(result.note, "2 pairs", "left out", "fewer than 6 items")
    nine = [*wave, 3.0, 1.0]
    result = scatter_of(
        {"a": nine, "b": [*nine[::-1][:6], *[None] * 3], "c": [*[None] * 3, 4.0, *wave[2:]]}
    )
    assert has_line(result.note, "1 pair", "left out", "fewer than 6 items")


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ({"a": [None, None]}, ("no text has a value",)),
        ({"a": [1.0, 2.0], "b": [None, None]}, ("only one system has values",)),
        (
            {"a": [1.0, None], "b": [None, 3.0]},
            ("no two systems", "at least 6"),
        ),
        (
            {"a": [1.0, 2.0, 5.0], "b": [2.0, 3.0, 1.0], "c": [1.0, None, None]},
            ("more than 3 items", "at least 6"),
        ),
        (
            {"a": [1.0, 2.0] * 3, "b": [2.0, 3.0] * 3},
            ("differences are the same",),
        ),
        (
            {"a": [1.0, 2.0] * 3, "b": [2.0, 3.0] * 3, "c": [1.0, 3.0]},
            ("differences are the same", "2 pairs", "left out", "fewer than 6 items"),
        ),
    ],
)
def test_an_undefined_scatter_has_a_reason(
    values: dict[str, list[float | None]], facts: tuple[str, ...], scatter_of: Make
) -> None:
    known = sum(any(value is not None for value in row) for row in values.values())
    scatter = scatter_of(values)
    assert scatter == Scatter("m", known, note=scatter.note)
    assert has_line(scatter.note, *facts)
