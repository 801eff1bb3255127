"""Prediction-powered estimates. Oracles: the paper's algorithm, closed forms, and coverage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import Floats
from judge.stats.calibration import MIN_RATED_ITEMS, Calibrated, calibrate
from judge.stats.paired_differences import holm
from judge.stats.powered_mean import Powered, powered
from judge.table import Table
from tests.factories import has_line, lines_hold

SINGLE = Provenance("single")
COLUMN = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, criterion="c")


def drawn(
    seed: int = 0, rated: int = 40, others: int = 400, r: float = 0.8
) -> tuple[Floats, Floats, Floats]:
    """Return ratings, and a judge's scores of rated and unrated items on a different scale."""
    random = np.random.default_rng(seed)
    hidden = random.normal(size=rated + others)
    ratings = np.clip(np.round(3 + hidden), 1, 5)
    scores = 20 + 7 * (r * hidden + (1 - r**2) ** 0.5 * random.normal(size=len(hidden)))
    return ratings[:rated], scores[:rated], scores[rated:]


def paper(y: Floats, f: Floats, more: Floats) -> tuple[float, float, float, float]:
    """Return the paper's λ, estimate of a mean, and the two parts of its variance, with the divisors n and N."""
    n, big = len(y), len(more)
    lam = np.cov(y, f)[0, 1] / ((1 + n / big) * np.var(np.concatenate([f, more]), ddof=1))
    rectifier = [y[i] - lam * f[i] for i in range(n)]
    value = sum(rectifier) / n + lam * sum(more) / big
    return lam, value, float(np.var(rectifier)) / n, lam**2 * float(np.var(more)) / big


def test_the_estimate_equals_the_papers_except_for_the_divisors() -> None:
    y, f, more = drawn()
    n, big = len(y), len(more)
    lam, value, rectified, imputed = paper(y, f, more)
    result = powered(y, f, more, name="difference")
    assert result.weight == pytest.approx(lam * f.std(ddof=1) / y.std(ddof=1))
    assert result.estimate.value == pytest.approx(value)
    parts = rectified * n / (n - 2), imputed * big / (big - 1)
    free = sum(parts) ** 2 / (parts[0] ** 2 / (n - 2) + parts[1] ** 2 / (big - 1))
    expected = stats.t(free, value, sum(parts) ** 0.5)
    assert (result.estimate.low, result.estimate.high) == pytest.approx(expected.interval(0.95))
    assert result.estimate.p == pytest.approx(2 * stats.t.sf(abs(value) / sum(parts) ** 0.5, free))
    assert result.judged == big


def test_zero_weight_gives_the_classical_interval() -> None:
    y, f, more = drawn()
    result = powered(y, f, more, weight=0.0, name="difference")
    expected = stats.ttest_1samp(y, 0.0)
    assert (result.estimate.low, result.estimate.high) == pytest.approx(
        expected.confidence_interval(0.95)
    )
    assert result.estimate.p == pytest.approx(expected.pvalue)
    assert result.estimate == result.people


def test_full_weight_on_perfect_scores_gives_their_mean() -> None:
    y, _, more = drawn()
    more = more / 7
    estimate = powered(y, y.copy(), more, weight=1.0, name="difference").estimate
    assert estimate.value == pytest.approx(more.mean())
    expected = stats.ttest_1samp(more, 0.0).confidence_interval(0.95)
    assert (estimate.low, estimate.high) == pytest.approx(expected)


def test_perfect_scores_are_worth_a_rating_for_each_item() -> None:
    y, _, _ = drawn(rated=100, others=400)
    every = np.tile(y, 5)
    result = powered(y, every[:100], every[100:], name="difference")
    assert result.weight == pytest.approx(400 / 500, rel=0.02)  # 1 / (1 + n/N)
    assert result.effective_ratings == pytest.approx(500, rel=0.03)


@given(st.floats(0.001, 1000), st.floats(-100, 100), st.integers(0, 50))
def test_the_judges_scale_does_not_matter(factor: float, shift: float, seed: int) -> None:
    y, f, more = drawn(seed)
    result = powered(y, f, more)
    rescaled = powered(y, factor * f + shift, factor * more + shift)
    assert result.weight == pytest.approx(rescaled.weight, abs=1e-6)
    for name in ("value", "low", "high"):
        expected = getattr(result.estimate, name)
        assert getattr(rescaled.estimate, name) == pytest.approx(expected, abs=1e-6)


def test_a_judge_with_a_negative_correlation_has_weight_0() -> None:
    y, f, more = drawn()
    result = powered(y, -f, -more)
    assert (result.weight, result.estimate) == (0.0, result.people)


ALMOST = np.array([0.3, 0.1 + 0.2])
"""Two values that differ only by a rounding error."""


@pytest.mark.parametrize("weight", [None, 1.0])
@pytest.mark.parametrize("same", [np.full(2, 0.1), np.zeros(2), ALMOST])
def test_a_constant_judge_does_not_change_the_estimate(same: Any, weight: float | None) -> None:
    y, f, more = drawn()
    result = powered(y, np.resize(same, len(f)), np.resize(same, len(more)), weight=weight)
    assert (result.weight, result.estimate) == (0.0, result.people)
    assert powered(y, np.resize(same, len(f)), more, weight=weight).weight == 0.0
    assert powered(y, f, np.empty(0), weight=weight).weight == 0.0


@pytest.mark.parametrize("same", [np.full(2, 5.0), np.zeros(2), ALMOST])
def test_equal_ratings_have_no_interval(same: Any) -> None:
    _, f, more = drawn()
    result = powered(np.resize(same, len(f)), f, more)
    assert result.estimate.value == pytest.approx(same[0])
    assert (result.estimate.low, result.estimate.high) == (None, None)
    assert result.effective_ratings is None
    assert has_line(result.estimate.method, "all ratings are equal", "no interval")


def test_one_unrated_item_has_a_small_weight_and_an_interval() -> None:
    y, f, more = drawn()
    result = powered(y, f, more[:1])
    assert 0 < result.weight < 0.1
    assert result.estimate.low < result.estimate.value < result.estimate.high  # type: ignore[operator]


def test_an_interval_of_width_0_has_no_effective_ratings() -> None:
    result = powered(*drawn())
    narrow = replace(result, estimate=replace(result.estimate, low=4.0, high=4.0))
    assert narrow.effective_ratings is None


def test_the_interval_of_a_skewed_mean_is_halls() -> None:
    """The interval's ends are where Hall's cubic transform of the studentised mean is ±t."""
    y = np.array([5.0] * 20 + [4.0] * 6 + [2.0] * 3 + [1.0])
    estimate = powered(y, y.copy(), np.empty(0)).estimate
    n, error, g = len(y), y.std(ddof=1) / len(y) ** 0.5, stats.skew(y, bias=False)
    for end, sign in ((estimate.low, 1), (estimate.high, -1)):
        assert end is not None
        t = (y.mean() - end) / error
        cubic = t + g * t**2 / (3 * n**0.5) + g**2 * t**3 / (27 * n) + g / (6 * n**0.5)
        assert cubic == pytest.approx(sign * stats.t(n - 1).ppf(0.975))


@pytest.mark.parametrize("name", ["mean", "difference"])
def test_intervals_cover_at_their_level_and_are_narrower(name: str) -> None:
    """The mean is 3 by symmetry. Three standard errors of a share of .95 in 300 runs are .038."""
    n_covering, n_narrower = 0, 0
    for seed in range(300):
        result = powered(*drawn(seed + 10, rated=30, others=470), name=name)
        assert result.estimate.low is not None
        assert result.estimate.high is not None
        assert result.people.low is not None
        assert result.people.high is not None
        n_covering += result.estimate.low <= 3.0 <= result.estimate.high
        width = result.estimate.high - result.estimate.low
        n_narrower += width < result.people.high - result.people.low
    assert 0.95 - 0.038 <= n_covering / 300 <= 0.95 + 0.038
    assert n_narrower > 290


# Calibration of a table


def table(
    rated: int = 20,
    items: int = 60,
    systems: tuple[str, ...] = ("x", "y"),
    columns: tuple[Column, ...] = (COLUMN,),
) -> Table:
    """Return a table in which the first items are rated, the judge is .5 too high or low, and y is worse by 1."""
    random = np.random.default_rng(3)
    samples, scores = [], []
    for n in range(items):
        item = random.normal()
        for index, system in enumerate(systems):
            rating = float(np.clip(np.round(3.5 - index + item + 0.4 * random.normal()), 1, 5))
            human = {"c": rating} if n < rated else {}
            samples.append(Sample(f"i{n}", system, "", human=human))
            score = rating + 0.5 + 0.3 * random.normal()
            scores += [Score(f"i{n}", system, column.name, score, SINGLE) for column in columns]
    return Table(tuple(samples), columns, tuple(scores))


def only(results: tuple[Calibrated, ...]) -> Calibrated:
    (result,) = results
    return result


def test_means_and_differences_of_a_table() -> None:
    data = table()
    result = only(calibrate(data))
    assert (result.column, result.note) == ("c", "")
    assert [each.system for each in result.means] == ["x", "y"]
    values = data.matrix("c")
    people = np.array(
        [
            [s.human.get("c", np.nan) for s in data.samples if s.system == name]
            for name in ("x", "y")
        ]
    )
    expected = powered(people[0, :20], values[0, :20], values[0, 20:])
    assert result.means[0].estimate == expected.estimate
    assert (result.means[0].estimate.n, result.means[0].judged) == (20, 40)
    (difference,) = result.differences
    expected = powered(
        *(people[0] - people[1])[None, :20],
        *np.split(values[0] - values[1], [20]),
        name="difference",
    )
    assert (difference.system, difference.other) == ("x", "y")
    assert difference.estimate == expected.estimate
    assert difference.apart


def test_the_bias_of_the_judge_is_removed() -> None:
    data = table(rated=30, items=300)
    result = only(calibrate(data))
    for mean, scores in zip(result.means, data.matrix("c"), strict=True):
        assert scores.mean() - mean.estimate.value == pytest.approx(0.5, abs=0.1)
        assert has_line(mean.estimate.method, "95% t interval", "PPI++", "judge's weight")
        assert mean.estimate.method.endswith(", 270 more items judged")


def test_a_calibrated_mean_of_few_items_leads_only_if_it_beats_the_others() -> None:
    data = table(rated=20, items=60, systems=("few", "all"))
    # `few` has scores for the first 20 items only, and on them people rate both systems alike.
    ratings = {s.item: s.human for s in data.samples if s.system == "all"}
    samples = tuple(replace(s, human=ratings[s.item]) for s in data.samples)
    scores = tuple(
        replace(score, value=score.value + (1.0 if int(score.item[1:]) < 20 else -1.0))
        for score in data.scores
        if score.system == "all" or int(score.item[1:]) < 20
    )
    result = only(calibrate(Table(samples, data.columns, scores)))
    assert [each.system for each in result.means] == ["few", "all"]
    assert result.partly_scored == ("few",)
    assert result.best == ("all", "few")


def test_several_differences_have_holms_correction() -> None:
    result = only(calibrate(table(systems=("x", "y", "z"))))
    assert [(each.system, each.other) for each in result.differences] == [
        ("x", "y"),
        ("x", "z"),
        ("y", "z"),
    ]
    p = [each.estimate.p for each in result.differences if each.estimate.p is not None]
    assert [each.adjusted for each in result.differences] == holm(p)


def test_an_item_rated_for_only_one_of_two_systems_counts_as_judged() -> None:
    data = table()
    samples = tuple(
        Sample(s.item, s.system, "", human={} if (s.item, s.system) == ("i0", "y") else s.human)
        for s in data.samples
    )
    result = only(calibrate(Table(samples, data.columns, data.scores)))
    assert [(each.estimate.n, each.judged) for each in result.means] == [(20, 40), (19, 41)]
    assert (result.differences[0].estimate.n, result.differences[0].judged) == (19, 41)


@pytest.mark.parametrize(
    ("data", "means", "facts"),
    [
        (
            table(rated=MIN_RATED_ITEMS - 1),
            0,
            (f"fewer than {MIN_RATED_ITEMS} rated items", "x, y"),
        ),
        (table(rated=60), 2, ("every judged item is rated",)),
        (table(rated=20, systems=("x",)), 1, ()),
    ],
)
def test_missing_estimates_have_a_reason(data: Table, means: int, facts: tuple[str, ...]) -> None:
    result = only(calibrate(data))
    assert len(result.means) == means
    assert lines_hold(result.note.splitlines(), [facts] if facts else [])
    assert all(each.adjusted is not None for each in result.differences)


def test_systems_rated_on_different_items_have_no_difference() -> None:
    data = table(rated=40)
    side = {"x": range(20), "y": range(20, 40)}
    samples = tuple(
        Sample(s.item, s.system, "", human=s.human if int(s.item[1:]) in side[s.system] else {})
        for s in data.samples
    )
    result = only(calibrate(Table(samples, data.columns, data.scores)))
    assert (len(result.means), result.differences) == (2, ())
    assert has_line(result.note, "pairs of systems", f"fewer than {MIN_RATED_ITEMS} items", "1")


def test_a_note_warns_if_rated_items_were_not_drawn_at_random() -> None:
    data = table(rated=60)
    rated_items = sorted(
        {s.item for s in data.samples}, key=lambda item: -data.matrix("c")[:, int(item[1:])].mean()
    )[:20]
    samples = tuple(
        Sample(s.item, s.system, "", human=s.human if s.item in rated_items else {})
        for s in data.samples
    )
    result = only(calibrate(Table(samples, data.columns, data.scores)))
    assert has_line(result.note, "rated and other items differently", "at random")


@pytest.mark.parametrize("systems", [("x", "y"), ("x", "y", "z")])
def test_rated_items_drawn_at_random_have_no_note(systems: tuple[str, ...]) -> None:
    result = only(calibrate(table(rated=24, systems=systems)))
    assert result.note == ""


def test_calibration_uses_only_the_panel_mean() -> None:
    columns = (
        COLUMN,
        Column("c/a", "criterion", Signature("a"), 1.0, 5.0, criterion="c", judge="a"),
        Column("d", "criterion", Signature("d@1"), 1.0, 5.0, criterion="d"),
        Column("rouge", "metric", Signature("rouge"), criterion="c"),
    )
    assert [each.column for each in calibrate(table(columns=columns))] == ["c"]


def test_many_systems_are_compared_only_with_the_best() -> None:
    names = tuple(f"s{n:02}" for n in range(32))
    result = only(calibrate(table(rated=12, items=20, systems=names)))
    assert {each.system for each in result.differences} == {result.means[0].system}
    assert len(result.differences) == 31
    assert has_line(result.note, "more than 30 systems", "best one only")


def test_a_calibrated_difference_is_significant_by_the_adjusted_p() -> None:
    fields: dict[str, Any] = {"weight": 0.5, "judged": 9}
    result = powered(*drawn())
    assert Powered(result.estimate, result.people, **fields).apart is False
    assert Powered(result.estimate, result.people, **fields, adjusted=0.05).apart is False
    assert Powered(result.estimate, result.people, **fields, adjusted=0.04).apart is True


def test_a_good_judge_is_worth_more_ratings_than_there_are() -> None:
    result = powered(*drawn())
    assert result.effective_ratings is not None
    assert result.effective_ratings > result.estimate.n
