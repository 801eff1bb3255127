"""The questions and answers behind QAGS, in every report that shows them."""

from __future__ import annotations

import json

import pytest

from judge.records import Column, Failure, Provenance, Sample, Score
from judge.report import Result
from judge.report.working import asked, workings
from judge.stats.resample import means
from judge.table import Table

LINES = [
    ["boat", "The ____ came late.", "boat", "boat", {"f1": 1.0}],
    ["<b>Monday</b>", "It came on ____.", "", "Monday", {"f1": 0.0}],
    ["bus", "A ____ waited.", "", "", {}],
]
RAW = json.dumps({"qags": LINES})


@pytest.fixture
def result() -> Result:
    samples = (Sample("1", "a", "The boat came."), Sample("1", "b", "So."))
    scores = (Score("1", "a", "qags_f1", 0.5, Provenance("metric", n=2, raw=RAW)),)
    failures = (Failure("1", "b", "qags_f1", "metric", "NothingAsked", "nothing was answered", RAW),)
    table = Table(samples, (Column("qags_f1", "metric", "qags_f1|judge 1", low=0.0, high=1.0),), scores, failures)
    return Result(table, means(table))


def test_lines_are_read_and_gaps_are_said(result: Result) -> None:
    first, second, third = asked(result.table.scores[0])
    assert first.cells == ("boat", "The ____ came late.", "boat", "boat", "f1 1.00")
    assert (second.from_source, second.similarity) == ("–", "f1 0.00")
    assert third.similarity == "left out"
    assert asked(None) == asked(Score("1", "a", "c", 1.0, Provenance("single", raw="4"))) == ()


def test_a_long_question_is_shown_around_its_gap(result: Result) -> None:
    question = "word " * 20 + "____ " + "word " * 20
    score = Score("1", "a", "c", 1.0, Provenance("metric", raw=json.dumps({"qags": [["x", question, "", "", {}]]})))
    (line,) = asked(score)
    assert line.question == question
    assert line.brief == "…" + ("word " * 6) + "____" + (" word" * 6) + "…"


def test_every_output_has_its_heading(result: Result) -> None:
    (one, lines), (other, again) = workings(result)
    assert one == "1, a: qags_f1 0.500"
    assert other == "1, b: NothingAsked: nothing was answered"
    assert lines == again
    assert len(lines) == 3


def test_the_page_shows_them_as_text(result: Result) -> None:
    page = result.report("html")
    assert page.count("3 questions asked") == 2
    assert "&lt;b&gt;Monday&lt;/b&gt;" in page
    assert "<b>Monday</b>" not in page
    assert "{&#34;qags" not in page
    assert '{"qags' not in page
