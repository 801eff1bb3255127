"""The charts, matrices and drivers of a result, as blocks of its report."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from judge.core.format import number
from judge.core.records import Estimate
from judge.report.document import Block, Chart, Details, Document, Paragraph, Section, Table
from judge.report.renderers import markdown
from judge.report.views.charts import (
    distribution_blocks,
    matrix_chart,
    means_charts,
    metric_chart,
    ranking_charts,
)
from judge.report.views.drivers import drivers_blocks
from judge.report.views.matrices import correlation_blocks, difference_blocks
from judge.report.views.ranking import win_rate_matrix
from judge.results.result import Result
from judge.stats.correlation_matrix import Matrix
from judge.stats.ranks import Rank
from judge.stats.score_drivers import Driver, Drivers
from judge.stats.system_differences import Comparison, Difference
from tests.factories import has_line

Ends = tuple[float, float | None, float | None]


def _words(chart: Chart) -> list[str]:
    return [
        e.text or ""
        for e in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def _tips(chart: Chart) -> list[str]:
    return [
        e.text or ""
        for e in ElementTree.fromstring(chart.svg).iter("{http://www.w3.org/2000/svg}title")
    ]


def _cells(chart: Chart) -> dict[str, str]:
    """Return the colour of each cell of a matrix by its tooltip."""
    pairs = re.findall(
        r'<title>([^<]*)</title>(?:<rect class="([\w-]+)"[^>]*>)?<text class="value"', chart.svg
    )
    return dict(pairs)


# Metrics against the judge


def test_the_chart_of_metrics_states_its_items_and_leaves_out_few(tested: Result) -> None:
    """Regression: a metric correlated by 1.00 with the judge, on 4 items."""
    sizes = ((9, 8, 4), (8, 9, 4), (4, 4, 9))
    values = ((1.0, -0.5, 1.0), (-0.5, 1.0, 0.0), (1.0, 0.0, 1.0))
    low = ((None, -0.75, None), (-0.75, None, None), (None, None, None))
    high = ((None, -0.25, None), (-0.25, None, None), (None, None, None))
    few = "few"
    (delta,) = (column for column in tested.table.columns if column.name == "delta")
    table = replace(tested.table, columns=(*tested.table.columns, replace(delta, name=few)))
    matrix = Matrix("within-items", "spearman", ("fluency", "delta", few), values, low, high, sizes)
    (chart,) = metric_chart(replace(tested, table=table, matrices=(matrix,)))
    assert has_line(chart.title, "fluency", "8 items")
    words = _words(chart)
    assert any("−0.50" in word for word in words)
    assert few not in words
    # With two texts per item, a correlation within items is 1 or −1.
    pairs = tuple(sample for sample in table.samples if sample.system != "poor")
    two = replace(tested, table=replace(table, samples=pairs), matrices=(matrix,))
    assert list(metric_chart(two)) == []


# Means, distributions and rankings


def test_every_column_has_a_chart_named_like_it(result: Result, panel: Result) -> None:
    charts = list(means_charts(result))
    assert [(chart.name, chart.title) for chart in charts] == [
        ("coherence", "coherence ↑"),
        ("一貫性", "一貫性 ↑"),
        ("rougeL", "ROUGE-L ↑"),
        ("length", "length ↑"),
    ]
    assert [chart.title for chart in means_charts(panel)][:3] == [
        "fluency, panel mean ↑",
        "fluency, a ↑",
        "fluency, org/b ↑",
    ]
    assert charts[1].alt == "lead 2.00; システム二 2.00; evil|<b>*sys* –"
    assert "システム二: 4.62 [4.50, 4.75], 2 items" in _tips(charts[0])


def test_charts_of_means_and_ranks_name_what_their_axes_measure(
    tested: Result, ranking: Result
) -> None:
    """A figure for a paper has no title."""
    of_means = next(chart for chart in means_charts(tested) if chart.name == "fluency")
    win_rates, strengths = ranking_charts(ranking.rankings[0], "overall")
    assert ">fluency</text>" in of_means.svg
    assert ">win rate (%)</text>" in win_rates.svg
    assert ">strength (log-odds)</text>" in strengths.svg


def test_the_best_system_is_marked_and_worse_ones_are_orange(tested: Result) -> None:
    charts = {chart.name: chart for chart in means_charts(tested)}
    assert charts["fluency"].alt == "good 4.00*; =fair 2.50; poor 2.00"
    caption = "* significantly best · orange: significantly worse than good"
    assert charts["fluency"].caption == caption
    assert re.findall(r'class="bar ?(\w*)"', charts["fluency"].svg) == ["best", "worse", "worse"]
    assert re.findall(r'class="bar ?(\w*)"', charts["overall"].svg) == ["", "", "worse"]
    assert charts["style"].caption == ""


def test_a_share_is_in_per_cent(result: Result) -> None:
    column = replace(
        result.table.columns[1], labels=("fail", "pass"), values=(0.0, 1.0), low=0.0, high=1.0
    )
    table = replace(result.table, columns=(column,), scores=(), failures=())
    estimates = {("lead", "coherence"): Estimate("mean", 0.64, 0.51, 0.75, 50, "")}
    (chart,) = means_charts(Result(table, estimates))
    assert chart.alt == "lead 64%; システム二 –; evil|<b>*sys* –"
    assert _tips(chart) == ["lead: 64% [51, 75], 50 items"]


def test_criteria_have_distributions(result: Result) -> None:
    columns = tuple(replace(c, values=tuple(map(float, c.labels))) for c in result.table.columns)
    charts = list(
        distribution_blocks(replace(result, table=replace(result.table, columns=columns)))
    )
    assert [chart.name for chart in charts] == ["scores-coherence", "scores-一貫性"]
    assert charts[1].alt == "lead 1 × 1, 1 × 2, 1 × 3; システム二 3 × 2; evil|<b>*sys*"


def test_a_ranking_has_win_rates_and_strengths(ranking: Result) -> None:
    charts = list(ranking_charts(ranking.rankings[0], "overall"))
    assert [chart.name for chart in charts] == ["win-rate-overall", "strength-overall"]
    assert charts[0].alt == "システム二 61.0%; lead 55.8%; evil|<b>*sys* 32.0%"
    assert [tip for tip in _tips(charts[0]) if tip.startswith("lead")] == [
        "lead: 55.8% [37.5, 70.0], 6 pairs"
    ]


def test_a_matrix_has_the_shades_of_its_table(ranking: Result) -> None:
    chart = matrix_chart(win_rate_matrix(ranking.rankings[0]), "Win rates")
    cells = _cells(chart)
    assert (chart.name, len(cells)) == ("win-rates-overall", 6)
    for tip, colour in cells.items():
        share = float(re.findall(r"([\d.]+)%", tip)[0])
        assert colour == ("heat-good" if share > 50 else "heat-bad" if share < 50 else "")


# Differences and correlations


def _tables(result: Result) -> dict[str, Table]:
    blocks = [b for block in difference_blocks(result) for b in getattr(block, "blocks", [block])]
    return {
        block.name.removeprefix("differences-"): block
        for block in blocks
        if isinstance(block, Table)
    }


def test_every_difference_has_its_interval_test_and_counts(tested: Result) -> None:
    tables = _tables(tested)
    assert [*tables] == ["overall", "fluency", "style", "delta"]
    for comparison in tested.comparisons:
        rows = tables[comparison.column].rows
        assert [row[0].text for row in rows] == [
            f"{d.system} − {d.other}" for d in comparison.differences
        ]
        assert [bool(row[1].mark) for row in rows] == [d.apart for d in comparison.differences]
    first = tables["overall"].rows[0]
    assert (first[1].text, first[1].note) == ("+0.219", "[0.004, 0.433]")
    first = tables["fluency"].rows[0]
    assert [first[1].mark, *(cell.text for cell in first[4:])] == ["*", "12", "0", "0"]
    assert re.search(r"Detectable difference: \d\.\d\d \(80% power\)\.", tables["fluency"].key)
    folded = [block.title for block in difference_blocks(tested) if isinstance(block, Details)]
    assert folded == ["Differences in metrics"]


def test_an_interval_that_contradicts_its_test_is_explained(tested: Result) -> None:
    """Regression: "no significant difference" stood beside [0.11, 1.89], and a star beside [−0.01, 1.64]."""
    comparison = next(c for c in tested.comparisons if c.column == "fluency")
    first = comparison.differences[0]
    assert first.estimate.low is not None

    def key(p: float, low: float) -> str:
        estimate = replace(first.estimate, low=low, high=2.0)
        difference = replace(first, estimate=estimate, adjusted=p)
        changed = replace(comparison, differences=(difference,))
        return _tables(replace(tested, comparisons=(changed,)))["fluency"].key

    assert has_line(key(p=0.125, low=0.11), "pair alone", "p decides")
    assert not has_line(key(p=0.01, low=0.11), "p decides")
    assert not has_line(key(p=0.125, low=-0.11), "p decides")
    assert has_line(key(p=0.04, low=-0.11), "pair alone", "p decides")


def test_differences_of_shares_are_in_percentage_points(tested: Result) -> None:
    columns = tuple(
        replace(c, low=0.0, high=1.0, labels=("no", "yes"), values=(0.0, 1.0))
        if c.name == "fluency"
        else c
        for c in tested.table.columns
    )
    estimate = Estimate("difference", 0.125, 0.05, 0.2, 12, "", 0.01)
    difference = Difference("good", "poor", estimate, 0.01, 0.5, 8, 2, 2)
    ranks = (Rank("good", 1, 1, 1), Rank("poor", 2, 2, 2))
    comparison = Comparison("fluency", (difference,), ranks, ("good",), 0.1)
    shares = replace(
        tested, table=replace(tested.table, columns=columns), comparisons=(comparison,)
    )
    table = _tables(shares)["fluency"]
    assert table.caption.startswith("fluency (percentage points)")
    assert "Detectable difference: 10 (80% power)" in table.key
    assert (table.rows[0][1].text, table.rows[0][1].note) == ("+12", "[5, 20]")


def test_table_of_many_systems_shows_pairs_with_the_best(tested: Result) -> None:
    names = [f"s{k}" for k in range(9)]
    estimate = Estimate("difference", 1.0, 0.5, 1.5, 12, "", 0.01)
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    differences = tuple(Difference(a, b, estimate, None, 0.5, 8, 2, 2) for a, b in pairs)
    ranks = tuple(Rank(name, k + 1, 1, 9) for k, name in enumerate(names))
    many = replace(tested, comparisons=(Comparison("fluency", differences, ranks),))
    table = _tables(many)["fluency"]
    assert [row[0].text for row in table.rows] == [f"s0 − s{k}" for k in range(1, 9)]
    assert "pairs with the first system" in table.caption


def test_nothing_is_shown_if_nothing_was_compared(result: Result) -> None:
    assert list(difference_blocks(result)) == []
    assert list(correlation_blocks(result)) == []


def test_every_level_has_its_correlations(tested: Result) -> None:
    charts = list(correlation_blocks(tested))
    assert [chart.name for chart in charts] == [
        "correlations-within-items",
        "correlations-all-texts",
        "correlations-systems",
    ]
    spearman = {
        matrix.level: matrix for matrix in tested.matrices if matrix.coefficient == "spearman"
    }
    for chart in charts:
        matrix = spearman[chart.name.partition("-")[2]]  # type: ignore[index]
        values = [v for i, row in enumerate(matrix.values) for k, v in enumerate(row) if i != k]
        shown = [word for word in _words(chart) if re.fullmatch(r"−?\d\.\d\d|–", word)]
        assert shown == ["–" if value is None else number(value, 2) for value in values]


def test_a_correlation_has_its_interval_and_sign(tested: Result) -> None:
    ends = ((None, -0.75), (-0.75, None)), ((None, -0.25), (-0.25, None))
    size = ((9, 8), (8, 9))
    matrix = Matrix(
        "within-items",
        "spearman",
        ("fluency", "delta"),
        ((1.0, -0.5), (-0.5, 1.0)),
        *ends,
        size,
        note="one left out",
    )
    (chart,) = correlation_blocks(replace(tested, matrices=(matrix,)))
    assert _cells(chart) == {"−0.50 [−0.75, −0.25], 8 items": "heat-bad"}
    assert chart.svg.count('fill-opacity="0.3"') == 2
    assert chart.caption.endswith("One left out.")
    empty = replace(matrix, values=((1.0, None), (None, 1.0)))
    assert list(correlation_blocks(replace(tested, matrices=(empty,)))) == []


# Drivers


def _estimate(value: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate("R2", value, low, high, 48, "as it was made")


def _drivers(
    column: str, together: Ends, *, people: bool = False, within: bool = True, **r: Ends
) -> Drivers:
    each = tuple(
        Driver(name, _estimate(*ends), _estimate(ends[0] ** 2)) for name, ends in r.items()
    )
    return Drivers(column, people, within, 48, 12, each, _estimate(*together), 0.0833)


JUDGED = _drivers(
    "coherence",
    (0.341, 0.252, 0.428),
    length=(0.52, 0.4, 0.61),
    copying=(-0.1, -0.25, 0.05),
    position=(0.004, -0.1, 0.1),
)
RATED = _drivers(
    "coherence",
    (0.09, 0.02, 0.17),
    people=True,
    length=(0.25, 0.1, 0.4),
    copying=(-0.2, -0.4, -0.03),
)
SAME = Drivers("一貫性", False, False, 12, 12, note="all scores equal")


@pytest.fixture
def driven(result: Result) -> Result:
    """Return a result with two criteria: one depends on length and has ratings, one is constant."""
    return replace(result, drivers=(JUDGED, SAME, RATED))


def _blocks(result: Result) -> tuple[Paragraph, Chart, Table]:
    about, chart, table = drivers_blocks(result)
    assert isinstance(about, Paragraph)
    assert isinstance(chart, Chart)
    assert isinstance(table, Table)
    return about, chart, table


def test_drivers_are_a_chart_and_a_table(driven: Result) -> None:
    about, chart, _ = _blocks(driven)
    assert "no proof of bias" in about.text
    assert chart.alt.startswith(
        "coherence length +0.52; coherence, people length +0.25; coherence copying −0.10;"
    )
    section = Section("drivers", "Drivers", lambda: drivers_blocks(driven))
    rows = re.findall(
        r"^\|.*$",
        markdown.render(Document("T", sections=(section,))).replace("\\", ""),
        re.MULTILINE,
    )
    assert [re.sub(" (within items|pooled)", "", row) for row in rows] == [
        "| scores | explained | by chance | length | copying | position | texts |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| coherence | 34% [25, 43] | 8.3% | +0.52 [0.40, 0.61] | −0.10 [−0.25, 0.05] | 0.00 [−0.10, 0.10] | 48 |",
        "| coherence, people | 9% [2, 17] | 8.3% | +0.25 [0.10, 0.40] | −0.20 [−0.40, −0.03] | – | 48 |",
        "| 一貫性 all scores equal | – | – | – | – | – | 12 |",
    ]


def test_the_axis_of_drivers_holds_them_all(driven: Result) -> None:
    wide, close = driven, replace(driven, drivers=(RATED, replace(RATED, people=False)))
    assert {"−1", "0", "1"} <= {*_words(_blocks(wide)[1])}
    assert {"−0.5", "0.0", "0.5"} <= {*_words(_blocks(close)[1])}


def test_chart_texts_name_the_comparison(driven: Result) -> None:
    mixed = _blocks(replace(driven, drivers=(replace(JUDGED, within=False), RATED)))[2]
    assert [row[-1].note for row in mixed.rows] == ["pooled", "within items"]


@pytest.mark.parametrize("drivers", [(), (SAME,), (SAME, replace(RATED, column="一貫性"))])
def test_nothing_is_shown_if_no_judges_drivers_are_known(
    result: Result, drivers: tuple[Drivers, ...]
) -> None:
    blocks: list[Block] = list(drivers_blocks(replace(result, drivers=drivers)))
    assert blocks == []
