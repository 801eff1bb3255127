"""How two runs go with people's ratings, on the same texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from judge.core.records import Sample
from judge.stats.correlation import change_in_agreement, matrix

RATINGS = ((1, 2, 3), (3, 1, 2), (2, 3, 1), (1, 3, 2), (3, 2, 1), (2, 1, 3))
RATED = [
    Sample(f"i{n}", system, "Text.", human={"kind": float(grade)})
    for n, row in enumerate(RATINGS)
    for system, grade in zip("xyz", row, strict=True)
]
AFTER = {(s.item, s.system): s.human["kind"] for s in RATED}
BEFORE = {key: value if key[0] in ("i0", "i3", "i4") else -value for key, value in AFTER.items()}


def test_values_stand_by_item_and_system() -> None:
    found = matrix(RATED[:4], {("i0", "y"): 2.0, ("i1", "x"): None, ("i9", "x"): 5.0})
    np.testing.assert_array_equal(found, [[np.nan, 2.0, np.nan], [np.nan, np.nan, np.nan]])


def test_by_level_on_the_texts_of_both() -> None:
    before = {key: value for key, value in BEFORE.items() if key != ("i0", "x")}
    change = change_in_agreement(RATED, "kind", before, AFTER)
    found = change.shifts
    assert (list(found), change.lacking) == (["document", "item", "system"], "")
    both = [(before[key], AFTER[key]) for key in before]
    assert found["item"].before.value == pytest.approx(spearmanr(*zip(*both, strict=True)).statistic)
    assert (found["item"].before.n, found["item"].after.value) == (17, pytest.approx(1.0))
    document = found["document"]
    assert (document.before.value, document.after.value) == (pytest.approx(0.0), pytest.approx(1.0))
    assert document.change is not None
    assert document.change.value == pytest.approx(1.0)
    assert document.change.p == pytest.approx(0.25)  # three items turned, none the other way: 2 / 2³
    assert list(change_in_agreement(RATED, "kind", before, AFTER, levels=("item",)).shifts) == ["item"]


def test_the_seed_is_that_of_the_resamples() -> None:
    one, same, other = (
        change_in_agreement(RATED, "kind", BEFORE, AFTER, levels=("item",), seed=seed).shifts["item"].change
        for seed in (1, 1, 2)
    )
    assert one == same != other


def test_what_is_undefined_says_why() -> None:
    change = change_in_agreement(RATED, "kind", dict.fromkeys(AFTER, 3.0), AFTER)
    assert (change.shifts, change.lacking) == ({}, "all values are equal")
