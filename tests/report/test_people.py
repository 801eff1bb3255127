"""The page's section on judges against people: where the points of a curve are, and that all of it is inert text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from jsonschema import Draft202012Validator

import judge
from judge.core.records import Estimate
from judge.report.renderers.json import schema
from judge.report.views.validation import curve_note, people
from judge.results.result import Result, load
from judge.stats.agreement import Agreement
from judge.stats.calibration import Bin, Calibration
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row

EVIL = '<script>alert(1)</script>"'


def estimate(value: float, low: float | None = None, high: float | None = None, n: int = 8) -> Estimate:
    return Estimate("e", value, low, high, n, "how; 95% percentile bootstrap over items, 10 resamples, seed 0")


def rated(*bins: Bin) -> Rated:
    correlation = Correlation(8, {("document", "spearman"): estimate(0.5, 0.25, 0.75)}, {})
    curve = Calibration(1.0, 5.0, bins, estimate(0.2, 0.1, 0.3), estimate(-0.5, -1.0, 0.0))
    agreement = Agreement({"alpha_interval": estimate(0.4)})
    own = Row(f"small {EVIL}", "judge", "signature", correlation, agreement, curve)
    floor = Row("length", "floor", "words", correlation)
    return Rated(f"relevance {EVIL}", 8, (own,), (floor,), None, f"no annotators {EVIL}", {})


def shown(result: Result, *bins: Bin) -> Result:
    return replace(result, rated=(rated(*bins),))


def test_points_are_the_means_on_equal_axes(result: Result) -> None:
    first = Bin(1.0, 1.5, 1.0, estimate(2.0, 1.5, 2.5, n=2))
    second = Bin(3.5, 4.5, 4.0, estimate(5.0, n=8))
    (only,) = people(shown(result, first, second))
    (curve,) = only.curves
    points = [(p.x, p.y, p.low, p.high, p.radius) for p in curve.points]
    assert points == [(0.0, 75.0, 87.5, 62.5, 3.5), (75.0, 0.0, None, None, 7.0)]
    assert curve.points[0].title == "judge 1.00, people 2.00, 2 texts"
    assert curve.summary == "Error 20.0% [10.0, 30.0] of the scale; on average 0.50 [0.00, 1.00] points below people."
    assert [tick.label for tick in curve.axis.ticks] == ["1", "2", "3", "4", "5"]
    assert curve_note(result) == ""


def test_the_page_has_it_and_its_names_are_inert(result: Result) -> None:
    page = shown(result, Bin(1.0, 1.5, 1.0, estimate(2.0, 1.5, 2.5))).report("html")
    section = page.partition('<section id="people">')[2].partition("</section>")[0]
    assert '<a href="#people">Against people</a>' in page
    assert "Calibration of small &lt;script&gt;" in section
    assert "No ceiling for relevance &lt;script&gt;" in section
    assert "<script" not in section
    assert section.count("<figure") == section.count("<circle") == 1
    assert 'aria-label="small &lt;script&gt;alert(1)&lt;/script&gt;&#34;: judge 1.00, people 2.00, 8 texts"' in section


def test_without_ratings_there_is_no_section(result: Result) -> None:
    page = result.report("html")
    assert 'id="people"' not in page
    assert "#people" not in page


def test_a_run_with_ratings_shows_it_again_after_loading(tmp_path: Path) -> None:
    rows = [
        {
            "item": f"i{n}",
            "system": s,
            "source": "A bridge.",
            "output": f"{s} text {n}",
            "human": {"relevance": r + n % 2},
        }
        for n in range(4)
        for s, r in (("x", 4), ("y", 2), ("z", 1))
    ]
    provider = judge.ScriptedProvider(lambda request: "5" if "x text" in str(request.messages) else "2")
    made = judge.evaluate(rows, ["relevance"], model=provider, cache=False, metrics=[], out=tmp_path)
    assert [one.criterion for one in made.rated] == ["relevance"]
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "relevance: 12 texts rated by people" in page
    assert load(tmp_path).report("html") == page
    document = json.loads(made.report("json"))
    Draft202012Validator(schema()).validate(document)
    assert document["rated"] == json.loads((tmp_path / "run.json").read_text("utf-8"))["rated"]
    assert [row["kind"] for row in document["rated"][0]["rows"]] == ["judge", "floor", "floor"]
