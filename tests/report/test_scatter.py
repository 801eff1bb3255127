from __future__ import annotations

import re

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.report.charts import MOST, scatters
from judge.report.renderers.html import render
from judge.results.result import Result
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row
from judge.table import Table

LABELS = ("1", "2", "3", "4", "5")


def rated(texts: int, people: float = 3.0) -> Result:
    """So many texts, of which people rated all but the first, and the judge scored all but the last."""
    samples = tuple(
        Sample(f"i{k}", "s", "o", human={"fluency": people if k % 2 else 5.0} if k else {}) for k in range(texts)
    )
    scores = tuple(Score(f"i{k}", "s", "fluency", 1.0 + k % 5, Provenance("single")) for k in range(texts - 1))
    table = Table(samples, (Column("fluency", "criterion", "f", 1.0, 5.0, LABELS),), scores)
    rho = Estimate("spearman", 0.4, 0.3, 0.5, texts - 2, "")
    row = Row("m", "judge", "f", Correlation(texts - 2, {("item", "spearman"): rho}, {"document": "one system alone"}))
    return Result(table, rated=(Rated("fluency", texts - 1, (row,), (), None, "", {}),))


def points(path: str) -> list[tuple[int, int]]:
    x = y = 0
    found = []
    for dx, dy in re.findall(r"m(-?\d+) (-?\d+)h0", path):
        x, y = x + int(dx), y + int(dy)
        found.append((x, y))
    return found


def test_every_text_that_both_rated_is_a_point_near_its_place() -> None:
    (one,) = scatters(rated(12))
    found = points(one.path)
    places = sorted((250 * (k % 5), 500 if k % 2 else 0) for k in range(1, 11))
    assert len(found) == 10
    for x, y in found:
        assert any(abs(x - across) <= 28 and abs(y - up) <= 28 for across, up in places)
        assert 0 <= x <= 1000
        assert 0 <= y <= 1000
    assert len(set(found)) == 10, "equal ones are moved apart"
    assert one.title == "fluency, m"
    assert (
        one.told
        == "Spearman 0.40 [0.30, 0.50] over all texts. 10 texts, each moved a little so that equal ones are seen."
    )


def test_of_many_texts_some_are_drawn_and_that_is_said() -> None:
    (one,) = scatters(rated(3002))
    assert len(points(one.path)) == MOST
    assert "1,600 of 3,000 texts, each" in one.told
    assert len(one.path) < 25_000


def test_ratings_on_another_scale_have_their_own_axis() -> None:
    (one,) = scatters(rated(12, people=80.0))
    assert (one.up.low, one.up.high) == (5.0, 80.0)
    assert (one.across.low, one.across.high) == (1.0, 5.0)


def test_the_page_has_the_chart_with_its_words() -> None:
    page = render(rated(12))
    assert "aria-label=\"fluency, m: judge's scores against people's ratings. Spearman 0.40" in page


def test_there_is_none_without_ratings(result: Result) -> None:
    assert scatters(result) == ()
