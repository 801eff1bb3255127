"""Exact agreement of a judge with people's mean rating. Oracle: counting labels that are rounded by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.rated_criteria import flat, read
from judge.stats.bootstrap import Bootstrap, mean_estimate
from judge.stats.human_agreement import Row, people
from judge.stats.rated_columns import column_from_metric
from judge.table import Table

COLUMN = Column(
    "polite",
    "criterion",
    Signature("s"),
    1.0,
    5.0,
    ("1", "2", "3", "4", "5"),
    values=(1, 2, 3, 4, 5),
    criterion="polite",
)


def exact(pairs: list[tuple[float, float]], column: Column = COLUMN) -> Estimate | None:
    """Return the exact agreement of pairs of a judge's score and people's mean, one pair for each item."""
    return row(pairs, column).exact


def row(pairs: list[tuple[float, float]], column: Column = COLUMN) -> Row:
    """Return the judge's row for pairs of its score and people's mean, one pair for each item."""
    samples = tuple(
        Sample(f"i{n}", "x", f"text {n}", human={"polite": mean})
        for n, (_, mean) in enumerate(pairs)
    )
    scores = [
        Score(f"i{n}", "x", "polite", score, Provenance("single"))
        for n, (score, _) in enumerate(pairs)
    ]
    table = Table(samples, (), ())
    judged = replace(column_from_metric(column, scores, "small-judge"), criterion="polite")
    (rated,) = people(table, [judged], Bootstrap(n_resamples=20), measure=False)
    assert read(flat(rated)).judges[0].exact == rated.judges[0].exact
    return rated.judges[0]


PAIRS = st.lists(
    st.tuples(st.sampled_from([1.0, 2.4, 2.5, 4.0, 5.0]), st.sampled_from([1.0, 2.5, 3.0, 4.4])),
    min_size=1,
    max_size=12,
)


@given(PAIRS)
def test_exact_agreement_is_the_share_of_texts_with_the_same_label(
    pairs: list[tuple[float, float]],
) -> None:
    # 2.5 is as near to 2 as to 3, and each counts half.
    labels = {
        1.0: (1, 1),
        2.4: (2, 2),
        2.5: (2, 3),
        3.0: (3, 3),
        4.0: (4, 4),
        4.4: (4, 4),
        5.0: (5, 5),
    }
    same = [
        np.mean([a == b for a, b in zip(labels[score], labels[mean], strict=True)])
        for score, mean in pairs
    ]
    estimate = exact(pairs)
    assert estimate is not None
    assert (estimate.value, estimate.n) == (pytest.approx(sum(same) / len(same)), len(pairs))


@given(PAIRS)
def test_kappa_and_exact_agreement_are_the_same_on_the_reversed_scale(
    pairs: list[tuple[float, float]],
) -> None:
    """Regression: means halfway were rounded up, so a strict judge agreed less than a lenient one."""
    reversed_pairs = [(6 - score, 6 - mean) for score, mean in pairs]
    one_way = row(pairs)
    other_way = row(reversed_pairs)
    kappa = one_way.agreement.estimates.get("kappa_quadratic")
    other_kappa = other_way.agreement.estimates.get("kappa_quadratic")
    assert (kappa is None) == (other_kappa is None)
    if kappa is not None and other_kappa is not None:
        assert kappa.value == pytest.approx(other_kappa.value)
    assert one_way.exact is not None
    assert other_way.exact is not None
    assert one_way.exact.value == pytest.approx(other_way.exact.value)


def test_the_interval_is_that_of_a_share_of_independent_items() -> None:
    pairs = [(3.0, 3.0)] * 14 + [(3.0, 4.0)] * 6
    expected = mean_estimate(np.array([1.0] * 14 + [0.0] * 6), 0.0, 1.0)
    estimate = exact(pairs)
    assert estimate is not None
    assert (estimate.low, estimate.high) == (
        pytest.approx(expected.low, abs=0.01),
        pytest.approx(expected.high, abs=0.01),
    )


def test_a_scale_without_labels_has_no_exact_agreement() -> None:
    continuous = replace(COLUMN, labels=(), values=())
    assert exact([(3.0, 3.0), (4.0, 2.0)], continuous) is None
