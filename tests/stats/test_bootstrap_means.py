from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.stats import bootstrap
from judge.stats.bootstrap import bootstrap_means
from judge.table import Table

METRIC = Provenance("metric")


def _table(values: dict[str, dict[str, list[float | None]]]) -> Table:
    """Values by column, then system; None for a text without a score."""
    columns = tuple(Column(name, "metric", name) for name in values)
    systems = {system: len(row) for column in values.values() for system, row in column.items()}
    samples = tuple(Sample(f"i{k}", system, "text") for system, n in systems.items() for k in range(n))
    scores = tuple(
        Score(f"i{k}", system, column, value, METRIC)
        for column, rows in values.items()
        for system, row in rows.items()
        for k, value in enumerate(row)
        if value is not None
    )
    return Table(samples, columns, scores)


def _data(shape: str) -> np.ndarray:
    random = np.random.default_rng(7)
    shapes = {
        "skewed": random.exponential(size=60),
        "scores": random.integers(1, 6, size=40).astype(float),
        "few": np.array([1.0, 2.0, 2.0, 5.0]),
        "shares": random.beta(2, 9, size=100),
    }
    return shapes[shape]


def _wider(confidence: float, n: int) -> float:
    """The level whose normal quantile is that of `confidence`, times √(n / (n − 1))."""
    z = scipy_stats.norm.ppf((1 + confidence) / 2) * math.sqrt(n / (n - 1))
    return float(2 * scipy_stats.norm.cdf(z) - 1)


@pytest.mark.parametrize("shape", ["skewed", "scores", "few", "shares"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_are_scipys_for_the_same_draws(shape: str, confidence: float) -> None:
    data = _data(shape)
    ours = bootstrap_means(_table({"m": {"s": list(data)}}), confidence=confidence)["s", "m"]
    # scipy is handed our resampled means (rounded, so that equal sums are equal floats) and draws none of its own
    draws = SimpleNamespace(bootstrap_distribution=bootstrap.resampled_means(data[None, :], 2000, 0)[:, 0].round(12))
    theirs = scipy_stats.bootstrap(
        (data,), np.mean, confidence_level=_wider(confidence, len(data)), n_resamples=0, bootstrap_result=draws,
        method="BCa",
    ).confidence_interval  # fmt: skip
    assert (ours.value, ours.n) == (pytest.approx(data.mean(), abs=1e-12), len(data))
    assert (ours.low, ours.high) == (pytest.approx(theirs.low, abs=1e-9), pytest.approx(theirs.high, abs=1e-9))
    assert ours.method == f"{100 * confidence:g}% BCa bootstrap over items, 2000 resamples, seed 0"


@pytest.mark.parametrize("shape", ["skewed", "scores", "shares"])
def test_intervals_are_scipys_within_resampling_error_for_its_own_draws(shape: str) -> None:
    data = _data(shape)
    ours = bootstrap_means(_table({"m": {"s": list(data)}}), n_resamples=20_000)["s", "m"]
    random = np.random.default_rng(1)
    theirs = scipy_stats.bootstrap((data,), np.mean, n_resamples=20_000, method="BCa", rng=random)
    error = 0.15 * theirs.standard_error  # about four times that of the difference between two such quantiles
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=error)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=error)


def _brute(values: list[float | None], n_resamples: int, seed: int) -> list[float]:
    """Resampled means one by one, in plain Python over the same draws."""
    drawn = np.random.default_rng(seed).integers(len(values), size=(n_resamples, len(values)))
    picked = ([values[k] for k in row if values[k] is not None] for row in drawn)
    return [math.fsum(row) / len(row) if row else math.nan for row in picked]


@pytest.mark.parametrize("values", [[1.0, 2.0, None, 5.0, 3.0], [None, None, 4.0, 1.0], [1.0, 2.0, 4.0, 8.0]])
def test_missing_values_are_left_out_of_each_resample(values: list[float | None]) -> None:
    block = np.array([[math.nan if v is None else v for v in values]])
    np.testing.assert_allclose(bootstrap.resampled_means(block, 300, 3)[:, 0], _brute(values, 300, 3), rtol=1e-12)


def test_a_resample_without_any_scored_item_is_left_out() -> None:
    found = bootstrap_means(_table({"m": {"s": [None, None, None, 1.0, 3.0]}}), n_resamples=500)["s", "m"]
    assert (found.value, found.n) == (2.0, 2)
    assert found.low is not None
    assert found.high is not None
    assert 1.0 <= found.low <= 2.0 <= found.high <= 3.0


def test_the_same_items_are_drawn_for_every_system_and_column() -> None:
    random = np.random.default_rng(0)
    one = random.random((1, 30))
    draws = bootstrap.resampled_means(np.concatenate([one, one + 2, 10 * one]), 200, 5).T
    np.testing.assert_allclose(draws[1], draws[0] + 2, rtol=1e-12)
    np.testing.assert_allclose(draws[2], 10 * draws[0], rtol=1e-12)


def test_chunks_and_blocks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(2)
    values = {c: {s: [*random.random(20), None] for s in "xy"} for c in "abc"}
    whole = bootstrap_means(_table(values), n_resamples=300)
    monkeypatch.setattr(bootstrap, "_MAX_DRAWN", 64)
    monkeypatch.setattr(bootstrap, "_MAX_VALUES", 1)
    parts = bootstrap_means(_table(values), n_resamples=300)
    assert parts.keys() == whole.keys()
    for key, estimate in whole.items():
        assert (parts[key].low, parts[key].high) == pytest.approx((estimate.low, estimate.high), rel=1e-12)


def test_the_seed_decides_the_draws() -> None:
    table = _table({"m": {"s": list(np.random.default_rng(1).random(25))}})
    assert bootstrap_means(table, seed=4) == bootstrap_means(table, seed=4)
    assert bootstrap_means(table, seed=4)["s", "m"].low != bootstrap_means(table, seed=5)["s", "m"].low


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(11)
    rows = {f"s{k}": list(random.normal(0.5, 1.0, size=40)) for k in range(400)}
    found = bootstrap_means(_table({"m": rows}), n_resamples=1000).values()
    covered = sum(e.low <= 0.5 <= e.high for e in found if e.low is not None and e.high is not None)
    assert 0.90 <= covered / 400 <= 0.98


def test_one_item_has_no_interval() -> None:
    found = bootstrap_means(_table({"m": {"s": [None, 2.5, None]}}))["s", "m"]
    assert (found.value, found.low, found.high, found.n) == (2.5, None, None, 1)
    assert found.method == "one item: too few for an interval"


def test_equal_values_have_an_interval_without_width() -> None:
    found = bootstrap_means(_table({"m": {"s": [0.1] * 30}}))["s", "m"]
    assert (found.value, found.low, found.high, found.n) == (0.1, 0.1, 0.1, 30)


def test_a_column_without_scores_has_no_estimate() -> None:
    found = bootstrap_means(
        _table({"m": {"s": [1.0, 2.0], "t": [None, None]}, "k": {"s": [None, None]}}), n_resamples=50
    )
    assert list(found) == [("s", "m")]
    assert bootstrap_means(Table((), (), ())) == {}


@pytest.mark.parametrize(
    ("values", "drawn", "confidence"),
    [
        ([0.0, 1.0], [0.75] * 100, 0.9),  # every resample above the mean: no finite bias correction
        ([0.0] * 30 + [1.0], [0.0] * 9999 + [1.0], 0.999),  # acceleration of about 1/6, bias of about 3.7
    ],
)
def test_the_percentile_interval_steps_in_where_bca_is_undefined(
    values: list[float], drawn: list[float], confidence: float
) -> None:
    method, low, high = bootstrap.bca_tails(np.array(values), np.array(drawn), confidence)
    n = len(values)
    tail = scipy_stats.norm.cdf(math.sqrt(n / (n - 1)) * scipy_stats.norm.ppf((1 - confidence) / 2))
    assert (method, low, high) == ("percentile", pytest.approx(tail), pytest.approx(1 - tail))
    assert bootstrap.bca_tails(np.array([0.0] * 30 + [1.0]), np.array([0.0] * 9999 + [1.0]), 0.9)[0] == "BCa"


def test_a_value_of_all_texts_is_its_own_estimate() -> None:
    samples = tuple(Sample(i, "s", "o") for i in "12")
    made = Provenance("metric", low=0.3, high=0.6, n=2, note="95% percentile bootstrap")
    scores = (Score("1", "s", "m", 1.0, Provenance("metric")), Score("", "s", "all", 0.5, made))
    found = bootstrap_means(Table(samples, (Column("all", "metric", "all"), Column("m", "metric", "m")), scores))
    assert found["s", "all"] == Estimate("whole", 0.5, 0.3, 0.6, 2, "95% percentile bootstrap")
    assert found["s", "m"].n == 1
