"""Selection of the candidate with the best agreement with people."""

import numpy as np
import pytest

from judge.core.errors import DataError
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import LEVELS, within
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.selection import select

FEW = Bootstrap(n_resamples=300)


def judged(skills, items, systems=8, seed=0):
    """Return ratings and scores of candidates. A higher skill follows the ratings more closely."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=(items, systems))
    noise = random.normal(size=(len(skills), items, systems))
    skill = np.array(skills)[:, None, None]
    scores = skill * quality + np.sqrt(1 - skill**2) * noise
    return np.round(scores * 1.2 + 3).clip(1, 5), np.round(
        (quality + random.normal(size=quality.shape) / 2) * 3
    ) / 3


@pytest.mark.parametrize("level", LEVELS)
def test_values_are_the_correlations_of_validate(level):
    values, ratings = judged([0.5, 0.7], 60)
    selection = select(values, ratings, level)
    against = CorrelationWithRatings(ratings, FEW)
    expected = [against.correlate(column).estimates[level, "spearman"].value for column in values]
    assert selection.values == pytest.approx(expected, abs=1e-9)
    assert selection.chosen == 1


@pytest.mark.parametrize("level", LEVELS)
def test_a_failure_counts_against_a_candidate(level):
    """A judge that fails on difficult texts is not better than a judge that scores them."""
    values, ratings = judged([0.75, 0.7], 60)
    wrong = np.abs(values[1] - values[1].mean() - (ratings - ratings.mean())) > 0.7
    failed = np.stack([np.zeros_like(wrong), wrong])
    values[failed] = np.nan
    selection = select(values, ratings, level, failed=failed)
    dropped = select(values, ratings, level)
    assert dropped.chosen == 1  # if the failed texts were ignored
    assert selection.values[1] < dropped.values[1]


def test_all_failed_texts_of_an_item_count_as_no_agreement():
    values, ratings = judged([0.9, 0.9], 10)
    failed = np.zeros(values.shape, dtype=bool)
    failed[1, :5] = True
    selection = select(values, ratings, failed=failed)
    rest = within(values[1, 5:], ratings[5:], "spearman").sum() / 10
    assert selection.values[1] == pytest.approx(rest, abs=1e-9)


def test_texts_missing_for_a_candidate_are_ignored():
    values, ratings = judged([0.5, 0.7], 20)
    values[0, 10:] = np.nan
    assert select(values, ratings) == select(values[:, :10], ratings[:10])


def test_too_few_items_are_an_error_with_the_number_needed():
    with pytest.raises(DataError, match=r"at least 5 items .*there are 4"):
        select(*judged([0.5, 0.6], 4))
    with pytest.raises(DataError, match=r"level systems .*at least 50"):
        select(*judged([0.5, 0.6], 20), "systems")


def test_a_candidate_without_a_correlation_is_never_chosen():
    values, ratings = judged([0.5, 0.4], 30)
    values[0] = 3.0
    selection = select(values, ratings, "all-texts")
    assert (selection.chosen, selection.values[0]) == (1, None)
    with pytest.raises(DataError, match="values are all equal"):
        select(values[:1], ratings, "all-texts")
    with pytest.raises(DataError, match="people's ratings are all equal"):
        select(values[1:], np.full_like(ratings, 3.0), "all-texts")


@pytest.mark.parametrize(
    ("level", "kind"),
    [("within-items", "items whose ratings differ.*"), ("all-texts", "rated items")],
)
def test_the_error_names_candidates_without_values_and_not_the_ratings(level, kind):
    values, ratings = judged([0.5, 0.6], 20)
    values[0, 3:] = np.nan
    with pytest.raises(
        DataError,
        match=f"at least 5 {kind}; .*20, of which 3 .*every candidate",
    ):
        select(values, ratings, level)
    values[:] = np.nan
    with pytest.raises(DataError, match=f"{kind}; .*20, of which 0"):
        select(values, ratings, level)
    with pytest.raises(DataError, match=f"5 {kind}; .* 1$"):
        select(*judged([0.5, 0.6], 1), level)


def test_the_first_of_equal_candidates_is_chosen():
    values, ratings = judged([0.6], 30)
    assert select(np.concatenate([values, values]), ratings).chosen == 0
