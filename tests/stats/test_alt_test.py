"""The alternative annotator test. Oracles: the paper's procedure, and changes that must not affect it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_1samp

from judge.core.errors import ConfigError
from judge.stats.alt_test import AltTest, alt_test, check_epsilon
from judge.stats.bootstrap import Floats
from tests.factories import has_line

NAMES = ("anna", "ben", "cleo", "dora")


def scores(
    seed: int, items: int, texts: int = 1, raters: int = 3, judge: float = 0.8, missing: float = 0.0
) -> Floats:
    """Return scores 1–5 of the raters and then the judge, with error `judge`. Some ratings are missing."""
    random = np.random.default_rng(seed)
    errors = np.array([0.6] * raters + [judge])[:, None, None]
    quality = random.normal(size=(items, texts)) + errors * random.normal(
        size=(raters + 1, items, texts)
    )
    values = 1.0 + np.searchsorted([-1.2, -0.4, 0.4, 1.2], quality)
    values[:-1][random.random(values[:-1].shape) < missing] = np.nan
    return values


def outcome(all_scores: Floats, epsilon: float = 0.2) -> AltTest:
    return alt_test(all_scores[-1], all_scores[:-1], NAMES[: len(all_scores) - 1], epsilon)


def distance(value: float, others: list[float]) -> float:
    """Return the root mean squared difference from the others' scores."""
    return float(np.sqrt(np.mean([(value - score) ** 2 for score in others])))


def errors(value: float, others: list[float]) -> float:
    """Return the share of the others' scores that are different."""
    return float(np.mean([value != score for score in others]))


def as_published(
    all_scores: Floats, epsilon: float, score: Callable[[float, list[float]], float]
) -> dict[str, Any]:
    """Compute the paper's algorithm 1 for one text per item: p, ρ of the judge, and the raters it beats."""
    *raters, judge = all_scores[:, :, 0].tolist()
    p, rho = [], []
    for index, rater in enumerate(raters):
        differences, judge_wins = [], []
        for text, value in enumerate(rater):
            rest = [r[text] for k, r in enumerate(raters) if k != index and not np.isnan(r[text])]
            if np.isnan(value) or not rest:
                continue
            machine, person = -score(judge[text], rest), -score(value, rest)
            judge_wins.append(float(machine >= person))
            differences.append(float(person >= machine) - judge_wins[-1])
        p.append(float(ttest_1samp(differences, epsilon, alternative="less").pvalue))
        rho.append(float(np.mean(judge_wins)))
    return {"p": p, "rho": rho, "won": (false_discovery_control(p, method="by") <= 0.05).tolist()}


@pytest.mark.parametrize("raters", [3, 4])
@pytest.mark.parametrize("judge", [0.5, 0.8, 1.4])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_alt_test_equals_the_paper_with_one_text_per_item(
    raters: int, judge: float, missing: float
) -> None:
    for seed in range(5):
        data = scores(seed, 60, raters=raters, judge=judge, missing=missing)
        result, published = outcome(data), as_published(data, 0.2, distance)
        assert [each.p for each in result.raters] == pytest.approx(published["p"], abs=1e-12)
        assert [each.won for each in result.raters] == published["won"]
        assert result.winning_rate == np.mean(published["won"])
        assert result.advantage == pytest.approx(np.mean(published["rho"]))
        assert result.passed == (np.mean(published["won"]) >= 0.5)


def test_two_labels_are_compared_by_accuracy() -> None:
    data = (scores(1, 80, judge=1.2) > 2).astype(float)
    published = as_published(data, 0.2, errors)
    assert [each.judge for each in outcome(data).raters] == pytest.approx(
        published["rho"], abs=1e-12
    )


def test_copies_of_a_text_add_no_evidence() -> None:
    data = scores(2, 50)
    once, copied = outcome(data), outcome(np.repeat(data, 4, axis=2))
    assert [each.p for each in copied.raters] == pytest.approx(
        [each.p for each in once.raters], abs=1e-12
    )
    assert [each.texts for each in copied.raters] == [200] * 3


@given(st.integers(0, 500), st.permutations(range(4)), st.sampled_from([0.0, 0.1, 0.2]))
def test_the_order_of_raters_and_texts_does_not_count(
    seed: int, order: list[int], epsilon: float
) -> None:
    data = scores(seed, 16, texts=2, raters=4, missing=0.1)
    shuffled = np.concatenate([data[:-1][order], data[-1:]])[:, ::-1, ::-1]
    once, second = outcome(data, epsilon), outcome(shuffled, epsilon)
    assert (second.winning_rate, second.passed) == (once.winning_rate, once.passed)
    assert second.advantage == pytest.approx(once.advantage, abs=1e-12)


@given(st.integers(0, 500), st.sampled_from([0.5, 2.0, 10.0]), st.integers(-7, 7))
def test_the_unit_of_the_scale_does_not_count(seed: int, factor: float, shift: int) -> None:
    data = scores(seed, 32)
    assert outcome(data * factor + shift).raters == outcome(data).raters


@given(st.integers(0, 500))
def test_a_larger_epsilon_never_fails_a_judge(seed: int) -> None:
    data = scores(seed, 12, texts=3)
    rates = [outcome(data, epsilon).winning_rate or 0.0 for epsilon in (0.0, 0.1, 0.2, 0.4)]
    assert rates == sorted(rates)


def test_a_judge_that_copies_a_rater_ties_with_the_rater() -> None:
    data = scores(3, 60)
    data[-1] = data[0]
    anna = outcome(data).raters[0]
    assert (anna.judge, anna.person, anna.won) == (1.0, 1.0, True)
    assert outcome(data, 0.0).raters[0].p == 1.0  # no better than the rater


def test_a_random_judge_does_not_pass() -> None:
    for seed in range(20):
        data = scores(seed, 60)
        data[-1] = np.random.default_rng(seed + 1_000).integers(1, 6, size=data[-1].shape)
        assert outcome(data).winning_rate == 0.0


def test_a_judge_wins_against_constant_raters_only_with_their_rating() -> None:
    data = np.full((4, 40, 1), 5.0)
    assert outcome(data).winning_rate == 1.0
    data[-1] = 1.0
    assert (outcome(data).winning_rate, outcome(data).advantage) == (0.0, 0.0)


def test_few_items_without_a_difference_are_weak_evidence() -> None:
    """If the judge loses on 10% of items, 10 items show no loss by chance in .9^10 = 35% of cases."""
    data = np.full((4, 10, 4), 1.0)
    p = [each.p for each in outcome(data, 0.1).raters]
    assert all(each is not None and each > 0.01 for each in p)


@pytest.mark.parametrize(
    ("raters", "items", "texts", "facts"),
    [
        (1, 60, 1, ("the ratings have 1",)),
        (2, 60, 1, ("the ratings have 2",)),
        (3, 29, 1, ("30 texts of 10 items", "3 raters, none has that")),
        (3, 9, 4, ("30 texts of 10 items", "3 raters, none has that")),
    ],
)
def test_alt_test_needs_enough_data(
    raters: int, items: int, texts: int, facts: tuple[str, ...]
) -> None:
    result = outcome(scores(0, items, texts, raters))
    assert (result.passed, result.winning_rate, result.advantage) == (None, None, None)
    assert has_line(result.reason, "needs 3 raters", *facts)


def test_a_rater_with_few_texts_is_not_tested() -> None:
    data = scores(5, 60, raters=4)
    data[3, 20:] = np.nan
    result = outcome(data)
    assert [each.p is None for each in result.raters] == [False, False, False, True]
    assert result.winning_rate in (0.0, 1 / 3, 2 / 3, 1.0)
    alone = outcome(np.stack([*data[:3], data[-1]])[:, 20:])
    assert [each.texts for each in result.raters] == [60, 60, 60, 20]
    assert [each.texts for each in alone.raters] == [40] * 3


def test_texts_without_a_score_are_excluded() -> None:
    data = scores(6, 80)
    data[-1, :30] = np.nan
    assert outcome(data) == outcome(data[:, 30:])


def test_a_judge_worse_by_epsilon_rarely_passes() -> None:
    """The true rate is at most 5%. In 300 runs, 24 (8%) would be 2.4 standard errors more."""
    worse = 1.3
    sides = outcome(scores(0, 20_000, judge=worse)).raters
    epsilon = float(np.mean([each.person - each.judge for each in sides]))
    passed = sum(
        bool(outcome(scores(seed, 40, judge=worse), epsilon).passed) for seed in range(1, 301)
    )
    assert 0.1 < epsilon < 0.3
    assert passed <= 24


def test_epsilon_outside_0_to_1_is_an_error() -> None:
    assert check_epsilon(0.0) == 0.0
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(ConfigError, match="epsilon"):
            check_epsilon(wrong)
