from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.analyze import analyze
from judge.stats.bootstrap import Bootstrap, Floats
from judge.stats.score_drivers import NAMES, Drivers, TextFeatures, drivers
from judge.table import Table, Text
from tests.factories import has_line

SINGLE = Provenance("single")
COLUMN = Column("c", "criterion", Signature("c@1"), 1.0, 5.0, criterion="c")
Rows = list[list[float | None]]


def _run(
    sizes: list[int], values: Floats | Rows, human: Floats | None = None
) -> tuple[Table, dict[Text, TextFeatures]]:
    """Return a table and the features of its texts. `sizes` are the numbers of texts of the items.

    A row of `values` is a text's score, or None for a failure, and its features. `human` are the texts' ratings.
    """
    rows = values.tolist() if isinstance(values, np.ndarray) else values
    texts = [
        (f"i{item}", f"s{system}") for item, size in enumerate(sizes) for system in range(size)
    ]
    samples, scores = [], []
    for index, (text, row) in enumerate(zip(texts, rows, strict=True)):
        ratings = {} if human is None else {"c": float(human[index])}
        samples.append(Sample(*text, "words", human=ratings))
        if row[0] is not None:
            scores.append(Score(*text, "c", row[0], SINGLE))
    features = {text: TextFeatures(*row[1:]) for text, row in zip(texts, rows, strict=True)}
    return Table(tuple(samples), (COLUMN,), tuple(scores)), features


def _values(sizes: list[int], seed: int = 0) -> Floats:
    """Return scores and features. The scores depend on the item's difficulty and a little on the features.

    The features are correlated.
    """
    random = np.random.default_rng(seed)
    features = random.normal(size=(sum(sizes), 3))
    features[:, 1] += 0.7 * features[:, 0]
    difficulty = np.repeat(random.normal(0, 3, len(sizes)), sizes)
    noise = random.normal(size=len(features))
    scores = features @ [0.5, -0.3, 0.1] + noise + difficulty
    return np.column_stack([scores, features])


def _centred(values: Floats, groups: list[int]) -> Floats:
    parts = np.split(values, np.cumsum(groups)[:-1])
    return np.concatenate([part - part.mean(axis=0) for part in parts])


def _share(y: Floats, x: Floats) -> float:
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(1 - residual @ residual / (y @ y))


def _only(results: tuple[Drivers, ...]) -> Drivers:
    (result,) = results
    return result


def _known(estimate: Estimate | None) -> Estimate:
    assert estimate is not None
    return estimate


@given(st.lists(st.integers(2, 6), min_size=5, max_size=12), st.integers(0, 99))
def test_the_explained_share_within_items_is_least_squares_with_item_dummies(
    sizes: list[int], seed: int
) -> None:
    values = _values(sizes, seed)
    result = _only(drivers(*_run(sizes, values), Bootstrap(5)))
    y, x = values[:, 0], values[:, 1:]
    dummies = np.repeat(np.eye(len(sizes)), sizes, axis=0)

    def squared_residuals(z: Floats) -> float:
        return float(((y - z @ np.linalg.lstsq(z, y, rcond=None)[0]) ** 2).sum())

    of_dummies = squared_residuals(dummies)
    of_all = squared_residuals(np.hstack([dummies, x]))
    assert (result.within, result.note) == (True, "")
    assert (result.texts, result.items) == (sum(sizes), len(sizes))
    assert _known(result.together).value == pytest.approx(1 - of_all / of_dummies, abs=1e-9)
    centred = _centred(values, sizes)
    assert tuple(driver.name for driver in result.each) == NAMES
    for column, driver in enumerate(result.each, 1):
        r = pearsonr(centred[:, 0], centred[:, column]).statistic
        share = _share(centred[:, 0], centred[:, [column]])
        assert driver.correlation.value == pytest.approx(r, abs=1e-9)
        assert driver.explained.value == pytest.approx(share, abs=1e-9)


@given(st.integers(10, 40), st.integers(0, 99))
def test_the_pooled_share_is_least_squares_with_a_constant(size: int, seed: int) -> None:
    values = _values([1] * size, seed)
    result = _only(drivers(*_run([1] * size, values), Bootstrap(5)))
    centred = values - values.mean(axis=0)
    assert not result.within
    assert _known(result.together).value == pytest.approx(
        _share(centred[:, 0], centred[:, 1:]), abs=1e-9
    )
    for column, driver in enumerate(result.each, 1):
        r = pearsonr(values[:, 0], values[:, column]).statistic
        assert driver.correlation.value == pytest.approx(r, abs=1e-9)


def test_the_difficulty_of_an_item_does_not_count() -> None:
    sizes = [4] * 20
    values = _values(sizes)
    shifted = values + np.repeat(np.random.default_rng(1).normal(0, 50, (20, 4)), sizes, axis=0)
    expected, together = (
        _known(_only(drivers(*_run(sizes, v), Bootstrap(50))).together) for v in (values, shifted)
    )
    assert together.value == pytest.approx(expected.value, abs=1e-6)
    assert together.low == pytest.approx(expected.low, abs=1e-6)


def test_a_judge_driven_by_length_is_detected() -> None:
    random = np.random.default_rng(5)
    sizes = [8] * 300
    features = random.normal(size=(2400, 3))
    score = features[:, 0] + random.normal(size=2400) + np.repeat(random.normal(0, 2, 300), 8)
    result = _only(drivers(*_run(sizes, np.column_stack([score, features]))))
    together, (length, copying, _) = _known(result.together), result.each
    assert together.value == pytest.approx(0.5, abs=0.03)
    assert together.low is not None
    assert together.high is not None
    assert together.low < 0.5 < together.high
    assert length.correlation.value == pytest.approx(np.sqrt(0.5), abs=0.03)
    assert length.explained.value == pytest.approx(0.5, abs=0.03)
    assert copying.correlation.value == pytest.approx(0, abs=0.06)


@pytest.mark.parametrize("size", [1, 4])
def test_the_interval_is_the_percentile_interval_of_resampled_items(size: int) -> None:
    sizes = [size] * 15
    values = _values(sizes, 3)
    result = _only(drivers(*_run(sizes, values), Bootstrap(80, 7, 0.8)))
    r, shares = [], []
    for drawn in np.random.default_rng(7).integers(15, size=(80, 15)):
        parts = [values[size * item : size * (item + 1)] for item in drawn]
        sample = np.concatenate([part - part.mean(axis=0) for part in parts] if size > 1 else parts)
        sample = sample - sample.mean(axis=0)
        r.append(pearsonr(sample[:, 0], sample[:, 2]).statistic)
        shares.append(_share(sample[:, 0], sample[:, 1:]))
    bootstrap = Bootstrap(confidence=0.8)
    copying, together = result.each[1].correlation, _known(result.together)
    assert (copying.low, copying.high) == pytest.approx(bootstrap.interval(np.array(r), 15))
    bias = np.mean(shares) - together.value
    low, high = bootstrap.interval(np.array(shares), 15) - bias
    assert (together.low, together.high) == pytest.approx((max(0.0, low), high))
    level = "within items" if size > 1 else "pooled"
    assert has_line(together.method, "R² of length, copying, position", level)
    assert has_line(together.method, "80%", "bootstrap over items", "80 resamples", "seed 7")


def test_a_resample_with_a_constant_driver_has_a_share_and_no_correlation() -> None:
    sizes = [4] * 10
    values = _values(sizes)
    values[4:, 1] = 2.0
    result = _only(drivers(*_run(sizes, values), Bootstrap(80, 3)))
    r, shares = [], []
    for drawn in np.random.default_rng(3).integers(10, size=(80, 10)):
        sample = _centred(
            np.concatenate([values[4 * item : 4 * item + 4] for item in drawn]), sizes
        )
        if 0 in drawn:  # the only item in which the driver varies
            r.append(pearsonr(sample[:, 0], sample[:, 1]).statistic)
        shares.append(_share(sample[:, 0], sample[:, 1:]))
    length, together = result.each[0].correlation, _known(result.together)
    assert 0 < len(r) < 80
    assert (length.low, length.high) == pytest.approx(Bootstrap().interval(np.array(r), 10))
    low, high = Bootstrap().interval(np.array(shares), 10) - (np.mean(shares) - together.value)
    assert (together.low, together.high) == pytest.approx((max(0.0, low), min(1.0, high)))


@pytest.mark.slow
def test_chance_is_the_mean_explained_by_random_features() -> None:
    random = np.random.default_rng(2)
    results = [
        _only(drivers(*_run([4] * 6, random.normal(size=(24, 4))), Bootstrap(2)))
        for _ in range(300)
    ]
    assert results[0].chance == 3 / (24 - 6)
    shares = [_known(result.together).value for result in results]
    assert np.mean(shares) == pytest.approx(3 / 18, abs=0.015)
    pooled = [
        _only(drivers(*_run([1] * 24, random.normal(size=(24, 4))), Bootstrap(2)))
        for _ in range(300)
    ]
    assert pooled[0].chance == 3 / 23
    shares = [_known(result.together).value for result in pooled]
    assert np.mean(shares) == pytest.approx(3 / 23, abs=0.015)


def test_items_of_one_text_are_excluded_if_most_items_have_several() -> None:
    sizes = [4, 1, 4, 1, 4, 1]
    values = _values(sizes)
    result = _only(drivers(*_run(sizes, values), Bootstrap(5)))
    assert (result.within, result.texts, result.items) == (True, 12, 3)
    centred = _centred(values, sizes)
    assert _known(result.together).value == pytest.approx(_share(centred[:, 0], centred[:, 1:]))


def test_texts_are_pooled_if_most_items_have_one_text() -> None:
    sizes = [2] + [1] * 12
    result = _only(drivers(*_run(sizes, _values(sizes)), Bootstrap(5)))
    assert (result.within, result.texts, result.items) == (False, 14, 13)


def test_perfectly_correlated_features_explain_a_share_once() -> None:
    values = _values([5] * 6)
    values[:, 2] = 3 * values[:, 1] + 1
    values[:, 3] = -values[:, 1]
    result = _only(drivers(*_run([5] * 6, values), Bootstrap(50)))
    length, copying, position = result.each
    assert _known(result.together).value == pytest.approx(length.explained.value)
    assert _known(result.together).low == pytest.approx(length.explained.low)
    assert copying.correlation.value == pytest.approx(length.correlation.value)
    assert position.correlation.value == pytest.approx(-length.correlation.value)


def test_length_is_the_only_driver_of_texts_without_sources() -> None:
    rows = [[*row[:2], None, None] for row in _values([4] * 5).tolist()]
    result = _only(drivers(*_run([4] * 5, rows), Bootstrap(50)))
    (length,) = result.each
    assert (length.name, result.chance, result.texts) == ("length", 1 / 15, 20)
    assert has_line(result.note, "without copying and position", "half of the texts")
    assert _known(result.together).value == pytest.approx(length.correlation.value**2)
    assert _known(result.together).low == pytest.approx(length.explained.low)


def test_texts_without_one_of_the_drivers_are_excluded() -> None:
    values = _values([4] * 5)
    rows: Rows = values.tolist()
    rows[0][3] = rows[7][0] = None
    result = _only(drivers(*_run([4] * 5, rows), Bootstrap(5)))
    assert (result.texts, result.note) == (18, "")
    centred = _centred(np.delete(values, (0, 7), axis=0), [3, 3, 4, 4, 4])
    assert _known(result.together).value == pytest.approx(_share(centred[:, 0], centred[:, 1:]))


def test_a_driver_that_does_not_vary_within_items_is_excluded() -> None:
    values = _values([4] * 5)
    values[:, 1] = np.repeat(range(5), 4)
    result = _only(drivers(*_run([4] * 5, values), Bootstrap(5)))
    assert [driver.name for driver in result.each] == ["copying", "position"]
    assert result.note == "without length: the same everywhere"
    assert result.chance == 2 / 15


@pytest.mark.parametrize(
    ("sizes", "scores", "note"),
    [
        ([3] * 3, None, "fewer than 10 texts"),
        ([], None, "fewer than 10 texts"),
        ([3] * 4, [0.1 + 0.2, 0.3, 0.3] * 4, "all scores equal within their items"),
        ([1] * 12, [4.0] * 12, "all scores equal"),
    ],
)
def test_too_little_data_has_a_reason(
    sizes: list[int], scores: list[float] | None, note: str
) -> None:
    values = _values(sizes) if sizes else np.empty((0, 4))
    if scores is not None:
        values[:, 0] = scores
    result = _only(drivers(*_run(sizes, values)))
    assert (result.each, result.together, result.chance, result.note) == ((), None, None, note)
    assert result.texts == sum(sizes)


@pytest.mark.parametrize(
    ("sizes", "has_interval"), [([12], False), ([4] * 9, False), ([4] * 10, True)]
)
def test_fewer_than_10_items_have_no_interval(sizes: list[int], has_interval: bool) -> None:
    together = _known(_only(drivers(*_run(sizes, _values(sizes)))).together)
    assert (together.low is not None) == has_interval
    assert (together.high is not None) == has_interval
    too_few = has_line(together.method, "within items", f"{len(sizes)} items", "too few")
    assert too_few is not has_interval


def test_drivers_of_ratings_are_analyzed_like_those_of_the_judge() -> None:
    values, ratings = _values([4] * 5), _values([4] * 5, 8)[:, 0]
    table, features = _run([4] * 5, values, ratings)
    by_judge, by_people = drivers(table, features, Bootstrap(5))
    assert (by_judge.column, by_judge.people) == ("c", False)
    assert (by_people.column, by_people.people) == ("c", True)
    rated, _ = _run([4] * 5, np.column_stack([ratings, values[:, 1:]]))
    assert replace(by_people, people=False) == _only(drivers(rated, features, Bootstrap(5)))


def test_each_judge_of_a_panel_and_the_mean_have_separate_drivers() -> None:
    values, ratings = _values([4] * 5), _values([4] * 5, 8)[:, 0]
    table, features = _run([4] * 5, values, ratings)
    columns = [replace(COLUMN, name=f"c/{name}", judge=name) for name in "ab"]
    rows = [
        replace(s, column=column.name, value=s.value + len(s.item))
        for s in table.scores
        for column in columns
    ]
    all_columns = [replace(COLUMN, name="c"), *columns]
    results = analyze(table.samples, all_columns, rows, looks=features).drivers
    assert [(result.column, result.people) for result in results] == [
        ("c", False),
        ("c/a", False),
        ("c/b", False),
        ("c", True),
    ]
    assert results[0].together == results[1].together
    assert analyze(table.samples, columns, rows).drivers == ()
    assert analyze(table.samples, columns, rows, orders=2, looks=features).drivers == ()
