from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.format import one_line
from judge.report.charts.axes import around, even, scale
from judge.report.charts.bars import Bar, Panel, bars, intervals
from judge.report.charts.calibration import Bin, calibration_plot
from judge.report.charts.heat_map import heat_map
from judge.report.charts.histograms import bins, histograms
from judge.report.document import Cell, Chart, Document
from judge.report.renderers import svg
from tests.factories import has_line

SVG = "{http://www.w3.org/2000/svg}"
FIVE = ("1", "2", "3", "4", "5")
SCALE = {label: float(label) for label in FIVE}
HOSTILE = "</svg><script>x</script>\x1b\u202e\uffff\"'"


def _labels(axis: object) -> list[str]:
    return [label for _, label in axis.ticks]  # type: ignore[attr-defined]


def _elements(chart: Chart, tag: str, kind: str = "") -> list[ElementTree.Element]:
    return [
        e
        for e in ElementTree.fromstring(chart.svg).iter(f"{SVG}{tag}")
        if not kind or e.get("class") == kind
    ]


def _words(chart: Chart) -> list[str]:
    return [text.text or "" for text in _elements(chart, "text")]


def _numbers(elements: Sequence[ElementTree.Element], *names: str) -> list[tuple[float, ...]]:
    return [tuple(float(element.get(name) or "nan") for name in names) for element in elements]


def _examples() -> list[Chart]:
    """One chart of every kind."""
    mean = Bar(4.36, 4.2, 4.5, "4.36*", "pegasus: 4.36 [4.20, 4.50], 40 texts", "best")
    names = ("pegasus", "システム二", "evil|<b>*sys*", "a name of more than twenty-eight letters")
    low, r, wide = Bar(2, text="2.00", tone="worse"), Bar(-0.5, -0.7, -0.3, "−0.50"), even(-1, 1, 1)
    cells = [
        [None, Cell("0.50", shade=0.5, title="0.50 [0.30, 0.70], 12 items")],
        [Cell("−0.25", shade=-0.25), None],
    ]
    return [
        intervals("mean", "Relevance ↑", names, [Panel(scale(1, 5), [mean, low, None, mean])]),
        intervals("drivers", "Drivers", ("a", "b"), [Panel(wide, [r, r], "length"), Panel(wide, [None, r], "place")]),
        bars("people", "Judge against people", ("judge", "ROUGE-1"), [Bar(0.8, text="0.80"), r],
             label="Spearman's rho", caption="By system."),
        histograms("scores", "Scores", {"a": [1.0, 4.0, 4.4], "b": []}, SCALE, (1, 5)),
        calibration_plot("curve", "Calibration", [Bin(2, 3, 2.5, 3.5, 8, "2 against 3"), Bin(4, 4, None, None, 2)], (1, 5)),
        heat_map("heat", "Correlations", ("a", "b"), ("a", "b"), cells),
    ]  # fmt: skip


def test_golden(golden) -> None:
    golden("charts.svg", svg.render(Document("Charts", summary=tuple(_examples()))))


def test_a_chart_is_an_image_with_a_description_and_no_code() -> None:
    hostile = [
        intervals(
            HOSTILE,
            HOSTILE,
            [HOSTILE],
            [Panel(scale(0, 1), [Bar(1, text=HOSTILE, note=HOSTILE)], HOSTILE)],
        ),
        bars(HOSTILE, HOSTILE, [HOSTILE], [Bar(1, text=HOSTILE, note=HOSTILE)], caption=HOSTILE),
        histograms(HOSTILE, HOSTILE, {HOSTILE: [1.0]}, {}, (0, 1)),
        calibration_plot(HOSTILE, HOSTILE, [Bin(1, 1, 1, 1, 1, HOSTILE)], (0, 1)),
        heat_map(
            HOSTILE,
            HOSTILE,
            [HOSTILE],
            [HOSTILE],
            [[Cell(HOSTILE, shade=1, title=HOSTILE)]],
            caption=HOSTILE,
        ),
    ]
    for chart in [*_examples(), *hostile]:
        root = ElementTree.fromstring(chart.svg)
        assert (root.get("viewBox"), root.get("role")) == (
            f"0 0 {chart.width} {chart.height}",
            "img",
        )
        assert root.get("aria-label") == f"{one_line(chart.title)}: {chart.alt}".replace(
            "\uffff", "�"
        )
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags <= {"svg", "g", "title", "text", "rect", "line", "circle"}
        assert not {name for element in root.iter() for name in element.attrib} & {
            "style",
            "href",
            "onload",
        }
    assert "evil|<b>*sys*" in _words(_examples()[0])


def test_everything_stays_inside() -> None:
    for chart in _examples():
        turned = {
            id(text) for g in _elements(chart, "g") if g.get("transform") for text in g.iter()
        }
        for text in ElementTree.fromstring(chart.svg).iter(f"{SVG}text"):
            if float(text.get("x") or 0) or id(text) not in turned:
                assert 0 <= float(text.get("x") or 0) <= chart.width
                assert 0 <= float(text.get("y") or 0) <= chart.height
        for x, y, width, height in _numbers(_elements(chart, "rect"), "x", "y", "width", "height"):
            assert 0 <= x <= x + width <= chart.width
            assert 0 <= y <= y + height <= chart.height


def test_a_long_name_is_cut_and_whole_in_a_tooltip() -> None:
    names = ["a name of more than twenty-eight letters", "長い名前" * 9]
    chart = intervals("n", "T", names, [Panel(scale(0, 1), [None] * 2)])
    assert _words(chart)[:2] == ["a name of more than twenty-…", "長い名前長い名前長い名前長…"]
    assert [title.text for title in _elements(chart, "title")] == names


@pytest.mark.parametrize(
    ("ends", "labels"),
    [
        ((1, 5), list(FIVE)),
        ((0, 1), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ((0, 100), ["0", "20", "40", "60", "80", "100"]),
        ((1, 100), ["1", "21", "41", "61", "81"]),
    ],
)
def test_ticks_of_a_scale(ends: tuple[float, float], labels: list[str]) -> None:
    assert _labels(scale(*ends)) == labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ((0.31, 0.2, 0.42), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]),
        ((-0.3, -0.7, 0.2), ["−0.8", "−0.6", "−0.4", "−0.2", "0.0", "0.2"]),
        ((0.0,), ["0.0", "0.2"]),
        ((), ["0.0", "0.2"]),
        ((0.00012,), ["0.00000", "0.00005", "0.00010", "0.00015"]),
    ],
)
def test_an_axis_around_values_contains_0_and_all_of_them(
    values: tuple[float, ...], labels: list[str]
) -> None:
    assert _labels(around(values)) == labels


def test_ticks_of_a_narrow_panel_do_not_touch() -> None:
    axis = even(-1.0, 0.2, 0.2)
    panels = [Panel(axis, [Bar(-0.5)]) for _ in range(2)]
    ticks = re.findall(
        r'class="tick" x="([0-9.]+)"[^>]*>([^<]*)<', intervals("c", "C", ["a"], panels).svg
    )
    for (left, first), (right, second) in pairwise(ticks):
        # A digit is 6 px wide at 11 px, and a space of 3 px keeps two labels apart.
        width = 6 * (len(first) + len(second)) / 2
        assert float(right) - float(left) > width + 3
    assert [label for _, label in ticks] == 2 * ["−0.8", "−0.4", "0.0"]


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda v: v == 0 or abs(v) > 1e-6), min_size=1, max_size=5)
)
def test_an_axis_has_its_values_between_a_few_even_ticks(values: list[float]) -> None:
    axis = around(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(*values, 0.0)
    assert max(*values, 0.0) <= axis.high + slack
    assert 2 <= len(set(_labels(axis))) == len(axis.ticks) <= 12


def test_a_bar_starts_at_0_or_at_the_scales_low_end() -> None:
    full = intervals("n", "T", ["a"], [Panel(scale(1, 5), [Bar(5, 3, 5)])])
    half = intervals("n", "T", ["a"], [Panel(scale(1, 5), [Bar(3)])])
    ((left, width),) = _numbers(_elements(full, "rect"), "x", "width")
    assert _numbers(_elements(half, "rect"), "x", "width") == [(left, width / 2)]
    span, *_ = _numbers(_elements(full, "line", "ci"), "x1", "x2")
    assert span == (left + width / 2, left + width)
    both = bars("n", "T", ["up", "down"], [Bar(1, text="1"), Bar(-1, text="−1")])
    (up, wide), (down, same) = _numbers(_elements(both, "rect"), "x", "width")
    assert (down + same, wide) == (up, same)
    assert [e.text for e in _elements(both, "text", "tick")] == [
        "−1.0",
        "−0.5",
        "0.0",
        "0.5",
        "1.0",
    ]


def test_the_axis_of_bars_says_what_it_measures() -> None:
    bar = Bar(0.5, text="0.50")
    labelled = bars("n", "T", ["up"], [bar], label="Spearman's rho")
    assert "Spearman's rho" in _words(labelled)
    assert labelled.height > bars("n", "T", ["up"], [bar]).height


def test_a_bar_of_length_0_without_an_interval_is_a_dot() -> None:
    chart = intervals("n", "T", ["a"], [Panel(scale(0, 1), [Bar(0.0)])])
    assert len(_elements(chart, "circle", "dot")) == 1


def test_the_best_is_bold_and_colours_are_classes() -> None:
    chart, *_ = _examples()
    assert [e.text for e in _elements(chart, "text") if e.get("font-weight")] == [
        "pegasus", "a name of more than twenty-…", "4.36*", "4.36*",
    ]  # fmt: skip
    assert [e.get("class") for e in _elements(chart, "rect")] == [
        "bar best",
        "bar worse",
        "bar best",
    ]
    assert chart.alt.startswith("pegasus 4.36*; システム二 2.00; evil|<b>*sys* –;")


def test_scores_fall_into_the_bin_of_the_nearest_label() -> None:
    chart = histograms("n", "T", {"s": [1.0, 1.4, 1.5, 4.49, 4.5, 5.0], "t": []}, SCALE, (1, 5))
    tips = [title.text for title in _elements(chart, "title")]
    assert tips[:5] == [
        "1: 2 of 6 scores",
        "2: 1 of 6 scores",
        "3: 0 of 6 scores",
        "4: 1 of 6 scores",
        "5: 2 of 6 scores",
    ]
    assert [height for (height,) in _numbers(_elements(chart, "rect"), "height")] == [
        60,
        30,
        0,
        30,
        60,
    ] + [0] * 5


@given(st.lists(st.floats(1, 5), max_size=30))
def test_every_score_is_in_one_bin(values: list[float]) -> None:
    chart = histograms("n", "T", {"s": values}, SCALE, (1, 5))
    counts = [title.text.split()[1] for title in _elements(chart, "title") if title.text]
    assert sum(map(int, counts)) == len(values)


def test_a_histogram_says_that_scores_between_levels_count_at_the_nearest() -> None:
    scale = {"1": 1.0, "2": 2.0, "3": 3.0}
    exact = histograms("x", "t", {"a": [1.0, 3.0]}, scale, (1.0, 3.0))
    between = histograms("x", "t", {"a": [1.0, 2.5]}, scale, (1.0, 3.0))
    assert "nearest" not in exact.caption
    assert "nearest" in between.caption


def test_a_scale_of_words_has_a_bin_per_word() -> None:
    chart = histograms("n", "T", {"s": [0.0, 0.4, 1.0]}, {"pass": 1.0, "fail": 0.0}, (0, 1))
    assert [title.text for title in _elements(chart, "title")] == [
        "fail: 2 of 3 scores",
        "pass: 1 of 3 scores",
    ]


def test_a_scale_of_many_or_unknown_values_has_ten_bins() -> None:
    assert bins({str(k): k for k in range(101)}, (0, 100), []).labels[:2] == [
        "0–10",
        "10–20",
    ]
    edges = bins({}, (None, None), [2.0, 12.0, 12.0]).edges
    assert (edges[0], edges[-1]) == (3.0, 11.0)


@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_score_on_an_edge_of_a_bin_counts_in_the_upper_one(tenths: int) -> None:
    counts = bins({}, (0, 1), []).count([tenths / 10])
    assert counts.index(1) == tenths


def test_calibration_points_grow_with_their_number_of_texts() -> None:
    *_, chart, _ = _examples()
    (first, _), (second, _) = _numbers(_elements(chart, "circle"), "r", "cx")
    assert first == 7
    assert second == 3.5
    assert len(_elements(chart, "line", "ci")) == 1


def test_cells_are_shaded_by_their_distance_from_0() -> None:
    *_, chart = _examples()
    assert [(e.get("class"), e.get("fill-opacity")) for e in _elements(chart, "rect")] == [
        ("heat-good", "0.3"),
        ("heat-bad", "0.15"),
    ]
    assert [title.text for title in _elements(chart, "title")] == ["0.50 [0.30, 0.70], 12 items"]


def test_long_headings_become_numbers() -> None:
    names = ("a heading that is long", "b")
    words = _words(heat_map("n", "T", names, names, [[None, Cell("1")], [Cell("2"), None]]))
    assert words == ["1", "2", "1 a heading that is long", "1", "2 b", "2"]


def test_only_the_first_hundred_rows_are_drawn() -> None:
    names = [f"s{k}" for k in range(3_000)]
    drawn = [
        intervals("n", "T", names, [Panel(scale(0, 1), [Bar(1)] * 3_000)], caption="C."),
        histograms("n", "T", {name: [1.0] for name in names}, {}, (0, 1)),
        heat_map("n", "T", names, ["s0"], [[Cell("1", shade=1)]] * 3_000, caption="C."),
    ]
    for chart, rows in zip(drawn, ("3,000 rows", "3,000 systems", "3,000 rows"), strict=True):
        assert has_line([chart.caption], "first 100", rows)
    assert all(chart.height < 4_000 for chart in drawn)
