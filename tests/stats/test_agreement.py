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

# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C: 4 observers, 12 units, values missing.
PUBLISHED: Ratings = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def _table(ratings: Ratings, systems: int = 1) -> tuple[Table, list[str]]:
    """Judges × units, the units being item 0's systems, then item 1's and so on; None where a judgment failed."""
    units = [(f"i{k // systems}", f"s{k % systems}") for k in range(len(ratings[0]))]
    names = [f"c@{judge}" for judge in range(len(ratings))]
    scores = tuple(
        Score(item, system, name, float(value), SINGLE)
        for name, row in zip(names, ratings, strict=True)
        for (item, system), value in zip(units, row, strict=True)
        if value is not None
    )
    samples = tuple(Sample(item, system, "text") for item, system in units)
    return Table(
        samples, tuple(Column(name, "criterion", Signature(name)) for name in names), scores
    ), names


def test_the_published_example() -> None:
    estimate = alpha(*_table(PUBLISHED))
    assert estimate is not None
    assert estimate.value == pytest.approx(0.849, abs=5e-4)
    assert estimate.n == 11  # the twelfth has one value
    assert has_line(estimate.method, "Krippendorff's alpha", "interval distance", "4 judges")
    assert has_line(
        estimate.method, "95%", "percentile bootstrap over items", "1000 resamples", "seed 0"
    )
    assert has_line(estimate.method, "2 added texts")


def test_the_interval_is_over_items_drawn_whole_without_and_with_added_texts() -> None:
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
    others = used[used != commonest]
    other = min(others.unique(), key=lambda label: abs(label - others.mean()))
    added = {
        "none": np.empty((2, 0)),
        "disagreement": np.array([[other, commonest], [commonest, other]]),
        "consensus": np.full((2, 2), other),
    }
    # in the order of their names, i0 to i9, of three units each
    by_item = np.split(ratings, 10, axis=1)
    drawn = np.random.default_rng(7).integers(10, size=(60, 10))
    intervals = {}
    for name, texts in added.items():
        theirs = [
            evalica.alpha(
                pd.DataFrame(np.hstack([*(by_item[k] for k in row), texts])), "interval"
            ).alpha
            for row in drawn
        ]
        intervals[name] = Bootstrap(confidence=0.8).interval(np.array(theirs), 10).tolist()
    assert estimate is not None
    assert estimate.low == pytest.approx(min(low for low, _ in intervals.values()))
    assert estimate.high == pytest.approx(max(high for _, high in intervals.values()))
    assert intervals["disagreement"][0] < intervals["none"][0]


def test_a_resample_without_variation_is_left_out() -> None:
    estimate = alpha(*_table([[1] * 9 + [2], [1] * 10]), Bootstrap(400))
    assert estimate is not None
    assert estimate.low is not None
    assert estimate.high is not None
    # draws of equal units alone have no alpha; two added texts of which both rate 2 leave one end at 1
    assert -1 < estimate.low < estimate.value
    assert estimate.high > 0.9


@pytest.mark.parametrize(
    "ratings",
    [
        [[1, 2, 3, 4]],  # one judge
        [[1, None, 3], [None, 2, 1]],  # one text with two values
        [[1, None], [None, 2]],  # none
        [[None, None], [None, None]],
        [[4, 4, 4], [4, 4, 4]],  # no variation
        [[0.1] * 3, [0.1] * 3],
        [[4, 4, 5], [4, 4, None]],  # none in what can be paired
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
        Score(i, s, f"c@{j}", v[j], SINGLE, opponent) for i, s, opponent, *v in rows for j in (0, 1)
    ]
    ties = [
        Score("i2", *ends, Provenance("identical", n=0), opponent="b")
        for ends in (("a", "c@0", 0.5), ("a", "c@1", 0.5))
    ]
    columns = tuple(Column(name, "criterion", Signature(name)) for name in ("c@0", "c@1"))
    estimate = alpha(Table(samples, columns, (*scores, *ties)), ["c@0", "c@1"])
    assert estimate is not None
    theirs = evalica.alpha(pd.DataFrame([[1, 0, 1, 0], [1, 1, 1, 0]]), "interval").alpha
    assert (estimate.value, estimate.n) == (pytest.approx(theirs), 4)


def test_scores_that_differ_by_rounding_are_equal() -> None:
    assert alpha(*_table([[3.9999999999999996] * 4, [4.0] * 4])) is None
