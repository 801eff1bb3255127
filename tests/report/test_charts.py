from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import Column, Estimate
from judge.report import charts

FIVE = Column("c", "criterion", "", 1.0, 5.0, ("1", "2", "3", "4", "5"))
SHARE = Column("m", "metric", "", 0.0, 1.0)


def _estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate("mean", value, low, high, 9, "")


def _labels(axis: charts.Axis) -> list[str]:
    return [tick.label for tick in axis.ticks]


def test_a_criterions_axis_is_its_scale() -> None:
    axis = charts.axis(FIVE, [_estimate(3.2, 3.0, 3.4)])
    assert [(t.at, t.label) for t in axis.ticks] == [(0, "1"), (25, "2"), (50, "3"), (75, "4"), (100, "5")]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.0, 1.0, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.0, 100.0, ["0", "20", "40", "60", "80", "100"]),
        (1.0, 10.0, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        (1.0, 100.0, ["1", "21", "41", "61", "81"]),
    ],
)
def test_ticks_of_other_scales(low: float, high: float, labels: list[str]) -> None:
    assert _labels(charts.axis(Column("c", "criterion", "", low, high), [])) == labels


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((0.31, 0.2, 0.42), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ((33.0, 15.0, 48.7), ["0", "10", "20", "30", "40", "50"]),
        ((-0.3, -0.7, 0.2), ["−0.8", "−0.6", "−0.4", "−0.2", "0.0", "0.2"]),
        ((0.0, 0.0, 0.0), ["0.0", "0.2"]),
        ((0.00012, None, None), ["0.00000", "0.00005", "0.00010", "0.00015"]),
    ],
)
def test_a_metrics_axis_holds_zero_and_every_end(
    ends: tuple[float, float | None, float | None], labels: list[str]
) -> None:
    assert _labels(charts.axis(SHARE, [_estimate(*ends)])) == labels


@given(st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=5))
def test_an_axis_holds_its_values_between_a_few_even_ticks(values: list[float]) -> None:
    axis = charts.axis(SHARE, [_estimate(v) for v in values])
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(*values, 0.0)
    assert max(*values, 0.0) <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 12
    assert (axis.ticks[0].at, axis.ticks[-1].at) == (0, 100)
    assert len(set(_labels(axis))) == len(axis.ticks)


def test_a_bar_starts_at_zero_or_at_the_scales_low_end() -> None:
    assert charts.bar(charts.axis(FIVE, []), _estimate(3.0, 2.0, 4.0), "t") == charts.Bar(0, 50, 50, 25, 75, "t")
    wide = charts.Axis(-1.0, 1.0, ())
    assert charts.bar(wide, _estimate(-0.5), "t") == charts.Bar(25, 25, 25, None, None, "t")
    assert charts.bar(wide, _estimate(0.5, 0.0, 2.0), "t") == charts.Bar(50, 25, 75, 50, 100, "t")


def test_scores_fall_to_the_nearest_label() -> None:
    bins = charts.histograms(FIVE, {"s": [1.0, 1.4, 1.5, 4.49, 4.5, 5.0], "t": []})
    assert [(b.label, b.count, b.height) for b in bins["s"]] == [
        ("1", 2, 100.0), ("2", 1, 50.0), ("3", 0, 0.0), ("4", 1, 50.0), ("5", 2, 100.0),
    ]  # fmt: skip
    assert bins["s"][0].title == "1: 2 of 6 scores"
    assert [b.count for b in bins["t"]] == [0] * 5


def test_a_scale_of_words_or_many_labels_has_ten_bins() -> None:
    words = Column("c", "criterion", "", 0.0, 1.0, ("fail", "pass"))
    bins = charts.histograms(words, {"s": [0.0, 0.05, 0.95, 1.0]})["s"]
    assert [b.count for b in bins] == [2, 0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert (bins[0].label, bins[-1].label) == ("0.000–0.100", "0.900–1.000")
    many = Column("c", "criterion", "", 0.0, 100.0, tuple(map(str, range(101))))
    assert [b.label for b in charts.histograms(many, {"s": []})["s"]][:2] == ["0.00–10.00", "10.00–20.00"]


def test_a_criterion_without_ends_takes_them_from_the_scores() -> None:
    bins = charts.histograms(Column("c", "criterion", ""), {"s": [2.0, 12.0, 12.0]})["s"]
    assert [b.count for b in bins] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 2]


def test_labels_written_from_high_to_low_are_binned_in_order() -> None:
    turned = Column("c", "criterion", "", 1.0, 3.0, ("3", "2", "1"))
    assert [(b.label, b.count) for b in charts.histograms(turned, {"s": [1.0, 1.2, 3.0]})["s"]] == [
        ("1", 2),
        ("2", 0),
        ("3", 1),
    ]


@given(st.lists(st.floats(1, 5), max_size=30))
def test_every_score_is_in_one_bin(values: list[float]) -> None:
    assert sum(b.count for b in charts.histograms(FIVE, {"s": values})["s"]) == len(values)


def test_a_spark_has_a_bar_per_label_seen() -> None:
    path, words = charts.spark({"4": 0.6, "5": 0.199, "1": 0.001}, ("1", "2", "3", "4", "5"))
    assert path == "M4 20V19M28 20V5M36 20V15"
    assert words == "1: <1%, 4: 75%, 5: 25%"
    assert charts.spark({"yes": 1.0}, ()) == ("M4 20V0", "yes: 100%")
    assert charts.spark({"yes": 0.0}, ("yes",)) == ("", "")
