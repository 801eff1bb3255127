"""The table of raters. Oracles: scipy, numpy, and sums by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from judge.core.records import Sample
from judge.data.ratings import Rating, Ratings, join_ratings
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap
from judge.stats.correlation import minus_one_rater
from judge.stats.raters import raters, votes_of

FEW = Bootstrap(n_resamples=100)


def texts(items: int = 12, systems: int = 2) -> list[Sample]:
    return [Sample(f"i{k}", f"s{n}", "text") for k in range(items) for n in range(systems)]


def rated(name: str, values: list[float], **fields: object) -> list[Rating]:
    rows = [
        Rating(s.item, s.system, name, "tone", value)
        for s, value in zip(texts(), values, strict=False)
    ]
    return [replace(row, **fields) for row in rows]  # type: ignore[arg-type]


def sheet(*parts: list[Rating]) -> Ratings:
    return Ratings(tuple(row for part in parts for row in part))


def joined(ratings: Ratings) -> list[Sample]:
    return join_ratings(texts(), ratings.single)


RANDOM = np.random.default_rng(7)
TRUE = RANDOM.normal(3, 1, 24)
THREE = {
    name: np.clip(np.round(TRUE + RANDOM.normal(shift, 0.7, 24)), 1, 5).tolist()
    for name, shift in (("anna", 0.0), ("ben", 0.5), ("cleo", -0.5))
}
SHEET = sheet(*(rated(name, values) for name, values in THREE.items()))


def test_each_rater_is_compared_with_the_mean_of_the_others() -> None:
    table = raters(joined(SHEET), "tone", FEW)
    assert [rater.rater for rater in table] == list(THREE)
    for rater in table:
        ratings = np.array(THREE[rater.rater])
        others = np.mean([values for name, values in THREE.items() if name != rater.rater], axis=0)
        votes = np.stack([ratings, others]).reshape(2, 12, 2)
        assert rater.spearman is not None
        assert rater.alpha is not None
        assert (rater.ratings, rater.mean) == (24, pytest.approx(ratings.mean()))
        assert rater.spearman.value == pytest.approx(spearmanr(ratings, others).statistic)
        assert rater.alpha == agree(votes, ("alpha_interval",), FEW).estimates["alpha_interval"]
        assert rater.repeated == 0


def test_raters_of_many_systems_are_compared_within_items_like_the_judges() -> None:
    """Regression: one rater had 0.56 within items beside 0.57 and 0.57 over all texts."""
    ratings = {name: np.array(values).reshape(6, 4) for name, values in THREE.items()}
    samples = [
        Sample(
            f"i{item}",
            f"s{system}",
            "text",
            human={"tone": float(np.mean([rows[item, system] for rows in ratings.values()]))},
            ratings={"tone": tuple(rows[item, system] for rows in ratings.values())},
            raters={"tone": tuple(ratings)},
        )
        for item in range(6)
        for system in range(4)
    ]
    table = raters(samples, "tone", FEW)
    for rater in table:
        others = np.mean([rows for name, rows in ratings.items() if name != rater.rater], axis=0)
        by_item = [
            spearmanr(item_ratings, item_means).statistic
            for item_ratings, item_means in zip(ratings[rater.rater], others, strict=True)
            if len(set(item_ratings)) > 1 and len(set(item_means)) > 1
        ]
        assert rater.spearman is not None
        assert rater.spearman.value == pytest.approx(np.mean(by_item))
        assert rater.spearman.n == len(by_item)


def test_texts_without_a_rating_by_both_raters_are_excluded() -> None:
    some = sheet(rated("anna", THREE["anna"]), rated("ben", THREE["ben"][:10]))
    anna, ben = raters(joined(some), "tone", FEW)
    assert (anna.ratings, ben.ratings) == (24, 10)
    assert anna.spearman is not None
    assert anna.spearman.value == pytest.approx(
        spearmanr(THREE["anna"][:10], THREE["ben"][:10]).statistic
    )
    assert anna.spearman == ben.spearman


def test_a_single_rater_has_no_comparison() -> None:
    (anna,) = raters(joined(sheet(rated("anna", THREE["anna"]))), "tone", FEW)
    assert (anna.ratings, anna.spearman, anna.alpha) == (24, None, None)


def test_two_texts_have_no_correlation() -> None:
    two = sheet(rated("anna", [1.0, 2.0]), rated("ben", [2.0, 3.0]))
    assert [rater.spearman for rater in raters(joined(two), "tone", FEW)] == [None, None]


def test_constant_raters_have_no_correlation() -> None:
    anna, ben = raters(
        joined(sheet(rated("anna", [5.0] * 24), rated("ben", [4.0] * 24))), "tone", FEW
    )
    assert (anna.spearman, anna.mean, ben.mean) == (None, 5.0, 4.0)


def test_raters_without_names_are_numbered() -> None:
    samples = [replace(s, ratings={"tone": (3.0, None, 4.0)}, human={"tone": 3.5}) for s in texts()]
    assert votes_of(samples, "tone").names == ("rater 1", "rater 2", "rater 3")
    assert [rater.rater for rater in raters(samples, "tone", FEW)] == ["rater 1", "rater 3"]
    assert raters([Sample("i", "s", "text", human={"tone": 3.0})], "tone", FEW) == ()


def test_consistency_counts_texts_that_were_rated_twice() -> None:
    repeated = rated(
        "anna", [*THREE["anna"][:3], *(value + 1 for value in THREE["anna"][3:5])], repeat=True
    )
    (anna, ben, _) = raters(joined(SHEET), "tone", FEW, sheet(list(SHEET.single), repeated))
    assert (anna.repeated, anna.same, ben.repeated) == (5, 3, 0)


def test_repeated_ratings_of_other_texts_and_criteria_do_not_count() -> None:
    ratings = rated("anna", THREE["anna"])
    of_depth = [replace(row, criterion="depth", repeat=True) for row in ratings]
    of_unknown_item = [replace(ratings[0], item="unknown", repeat=True)]
    all_ratings = sheet(list(SHEET.single), of_depth, of_unknown_item)
    (anna, *_) = raters(joined(SHEET), "tone", FEW, all_ratings)
    assert (anna.repeated, anna.ratings) == (0, 24)


def test_repeated_ratings_count_for_a_variant_of_the_criterion() -> None:
    """The ratings are of `tone`, and the judge's criterion is `tone_5`."""
    ratings = sheet(rated("anna", THREE["anna"]), rated("anna", THREE["anna"][:5], repeat=True))
    samples = [
        replace(s, ratings={"tone_5": s.ratings["tone"]}, raters={"tone_5": ("anna",)})
        for s in joined(ratings)
    ]
    assert [rater.repeated for rater in raters(samples, "tone_5", FEW, ratings)] == [5]


def test_generations_of_an_item_are_rated_as_one() -> None:
    alone = joined(SHEET)
    twice = [replace(s, item=f"{s.item} ({n})", cluster=s.item) for s in alone for n in (1, 2)]
    for once, both in zip(raters(alone, "tone", FEW), raters(twice, "tone", FEW), strict=True):
        assert once.spearman is not None
        assert both.spearman is not None
        assert (both.mean, both.spearman.value) == (
            pytest.approx(once.mean),
            pytest.approx(once.spearman.value),
        )


# A judge minus one rater

VOTES = np.stack([np.array(values).reshape(12, 2) for values in THREE.values()])


def minus_rater_by_hand(judge: np.ndarray, votes: np.ndarray) -> float:
    """Return the mean over raters of the judge's Spearman minus the rater's, over all texts."""
    differences = []
    for index, rater in enumerate(votes):
        others = np.delete(votes, index, axis=0).mean(axis=0).ravel()
        of_rater = spearmanr(rater.ravel(), others).statistic
        differences.append(spearmanr(judge.ravel(), others).statistic - of_rater)
    return float(np.mean(differences))


def test_a_judge_minus_one_rater_over_all_texts_equals_scipy() -> None:
    judge = RANDOM.normal(3, 1, (24, 1))
    votes = VOTES.reshape(3, 24, 1)  # one text per item: nothing within items
    difference = minus_one_rater(judge, votes, FEW)
    assert difference is not None
    assert difference.value == pytest.approx(minus_rater_by_hand(judge, votes))
    assert difference.n == 24


def test_a_judge_minus_one_rater_within_items_is_a_mean_over_items() -> None:
    judge = RANDOM.normal(3, 1, (12, 6))
    votes = RANDOM.normal(3, 1, (3, 12, 6))
    by_item = [minus_rater_by_hand(judge[item], votes[:, item]) for item in range(12)]
    difference = minus_one_rater(judge, votes, FEW)
    assert difference is not None
    assert difference.value == pytest.approx(np.mean(by_item))
    assert difference.n == 12


def test_a_judge_minus_one_rater_over_all_texts_may_be_asked_for() -> None:
    judge = RANDOM.normal(3, 1, (12, 2))
    difference = minus_one_rater(judge, VOTES.reshape(3, 12, 2), FEW, "all-texts")
    assert difference is not None
    assert difference.value == pytest.approx(minus_rater_by_hand(judge, VOTES.reshape(3, 12, 2)))
    assert difference.n == 24


def test_the_mean_of_raters_is_better_than_a_single_rater() -> None:
    mean = VOTES.mean(axis=0)
    difference = minus_one_rater(mean, VOTES, FEW)
    assert difference is not None
    assert difference.value > 0


def test_a_judge_minus_one_rater_needs_two_raters() -> None:
    judge = VOTES.mean(axis=0)
    assert minus_one_rater(judge, VOTES[:1], FEW) is None
    assert minus_one_rater(judge, np.empty((0, 12, 2)), FEW) is None
