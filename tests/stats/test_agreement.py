from __future__ import annotations

import evalica
import numpy as np
import pandas as pd
import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.agreement import alpha
from judge.stats.bootstrap import Bootstrap
from judge.table import Table
from tests.factories import has_line

SINGLE = Provenance("single")
Ratings = list[list[float | None]]

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units, missing values.
PUBLISHED: Ratings = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def _table(ratings: Ratings, systems: int = 1) -> tuple[Table, list[str]]:
    """Return a table of judges × units, and the columns' names. None is a failed judgment.

    The units are the systems of item 0, then those of item 1, and so on.
    """
    units = [(f"i{k // systems}", f"s{k % systems}") for k in range(len(ratings[0]))]
    names = [f"c@{judge}" for judge in range(len(ratings))]
    scores = tuple(
        Score(item, system, name, float(value), SINGLE)
        for name, row in zip(names, ratings, strict=True)
        for (item, system), value in zip(units, row, strict=True)
        if value is not None
    )
    samples = tuple(Sample(item, system, "text") for item, system in units)
    columns = tuple(Column(name, "criterion", Signature(name)) for name in names)
    return Table(samples, columns, scores), names


def test_alpha_of_the_published_example() -> None:
    estimate = alpha(*_table(PUBLISHED))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.849, abs=5e-4)
    assert estimate.n == 11  # unit 12 has one value
    assert has_line(estimate.method, "Krippendorff's alpha", "interval distance", "4 judges")
    assert has_line(
        estimate.method, "95%", "percentile bootstrap over items", "1000 resamples", "seed 0"
    )
    assert has_line(estimate.method, "2 added texts")


def test_the_interval_resamples_whole_items_without_and_with_added_texts() -> None:
    random = np.random.default_rng(4)
    truth = random.normal(3, 1, size=(1, 30))
    ratings = np.clip(np.round(truth + random.normal(0, 0.6, size=(2, 30))), 1, 5)
    ratings[0, 3] = np.nan
    table, names = _table(
        [[None if np.isnan(v) else v for v in row] for row in ratings.tolist()], systems=3
    )
    estimate = alpha(table, names, Bootstrap(60, 7, 0.8))
    used = pd.Series(np.delete(ratings, 3, axis=1).ravel())
    commonest = used.value_counts().sort_index().idxmax()
    less_common = used[used != commonest]
    central = min(less_common.unique(), key=lambda label: abs(label - less_common.mean()))
    added = {
        "none": np.empty((2, 0)),
        "disagreement": np.array([[central, commonest], [commonest, central]]),
        "consensus": np.full((2, 2), central),
    }
    # items in the order of their names, i0 to i9, with three units each
    by_item = np.split(ratings, 10, axis=1)
    drawn = np.random.default_rng(7).integers(10, size=(60, 10))
    intervals = {}
    for name, texts in added.items():
        alphas = []
        for row in drawn:
            resample = pd.DataFrame(np.hstack([*(by_item[k] for k in row), texts]))
            alphas.append(evalica.alpha(resample, "interval").alpha)
        intervals[name] = Bootstrap(confidence=0.8).interval(np.array(alphas), 10).tolist()
    assert estimate is not None
    assert estimate.low == pytest.approx(min(low for low, _ in intervals.values()))
    assert estimate.high == pytest.approx(max(high for _, high in intervals.values()))
    assert intervals["disagreement"][0] < intervals["none"][0]


def test_a_resample_without_variation_is_excluded() -> None:
    estimate = alpha(*_table([[1] * 9 + [2], [1] * 10]), Bootstrap(400))
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    # A resample of equal units has no alpha. With two added texts that both judges rate 2, the upper end is 1.
    assert -1 < estimate.low < estimate.value
    assert estimate.high > 0.9


@pytest.mark.parametrize(
    "ratings",
    [
        [[1, 2, 3, 4]],  # one judge
        [[1, None, 3], [None, 2, 1]],  # one text with two values
        [[1, None], [None, 2]],  # no text with two values
        [[None, None], [None, None]],
        [[4, 4, 4], [4, 4, 4]],  # no variation
        [[0.1] * 3, [0.1] * 3],
        [[4, 4, 5], [4, 4, None]],  # no variation in the texts with two values
    ],
)
def test_undefined_alpha_is_none(ratings: Ratings) -> None:
    assert alpha(*_table(ratings)) is None


def test_one_item_has_no_interval() -> None:
    estimate = alpha(*_table([[1, 2, 4], [1, 3, 4]], systems=3))
    assert estimate is not None
    assert estimate.value == pytest.approx(
        evalica.alpha(pd.DataFrame([[1, 2, 4], [1, 3, 4]]), "interval").alpha
    )
    assert (estimate.low, estimate.high, estimate.n) == (None, None, 3)
    assert has_line(estimate.method, "interval distance", "2 judges", "1 item", "too few")


def test_comparisons_are_separate_units_without_equal_texts() -> None:
    samples = tuple(Sample(item, system, "text") for item in ("i0", "i1") for system in "ab")
    rows = [
        ("i0", "a", "b", 1.0, 1.0),
        ("i0", "b", "a", 0.0, 1.0),
        ("i1", "a", "b", 1.0, 1.0),
        ("i1", "b", "a", 0.0, 0.0),
    ]
    scores = [
        Score(item, system, f"c@{judge}", values[judge], SINGLE, opponent)
        for item, system, opponent, *values in rows
        for judge in (0, 1)
    ]
    ties = [
        Score("i2", "a", f"c@{judge}", 0.5, Provenance("identical", n=0), opponent="b")
        for judge in (0, 1)
    ]
    columns = tuple(Column(name, "criterion", Signature(name)) for name in ("c@0", "c@1"))
    estimate = alpha(Table(samples, columns, (*scores, *ties)), ["c@0", "c@1"])
    assert estimate is not None
    expected = evalica.alpha(pd.DataFrame([[1, 0, 1, 0], [1, 1, 1, 0]]), "interval").alpha
    assert (estimate.value, estimate.n) == (pytest.approx(expected), 4)


def test_scores_that_differ_by_rounding_are_equal() -> None:
    assert alpha(*_table([[3.9999999999999996] * 4, [4.0] * 4])) is None
