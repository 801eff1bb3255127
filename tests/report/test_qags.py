"""The questions and answers behind QAGS, in every report that shows them."""

from __future__ import annotations

import json

import pytest

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.item_scores import QagsQuestion, qags_table, question_table
from judge.results.result import Result
from judge.stats.bootstrap import item_means
from judge.table import Table

LINES = [
    ["boat", "The ____ came late.", "boat", "boat", {"f1": 1.0}, ""],
    ["<b>Monday</b>", "It came on ____.", "", "Monday", {"f1": 0.0}, ""],
    ["bus", "A ____ waited.", "", "", {}, "answered by neither"],
    ["tram", "", "", "", {}, "Refused: no \x1b[31mmoney"],
]
RAW = json.dumps({"qags": LINES})
COLUMN = Column("qags_f1", "metric", Signature("qags_f1", "judge 1"), low=0.0, high=1.0)


@pytest.fixture
def result() -> Result:
    samples = (Sample("1", "a", "The boat came."), Sample("1", "b", "So."))
    scores = (Score("1", "a", "qags_f1", 0.5, Provenance("metric", n=2, raw=RAW)),)
    failures = (
        Failure("1", "b", "qags_f1", "metric", "NothingAsked", "nothing was answered", RAW),
    )
    table = Table(samples, (COLUMN,), scores, failures)
    return Result(table, item_means(table))


def lines(raw: str, column: Column = COLUMN) -> tuple[QagsQuestion, ...]:
    return qags_table(column, Score("1", "a", column.name, 1.0, Provenance("metric", raw=raw)))


def test_qags_lines_are_read_and_gaps_are_noted() -> None:
    first, second, third, fourth = lines(RAW)
    assert first == QagsQuestion("boat", "The ____ came late.", "boat", "boat", {"f1": 1.0})
    assert (second.from_source, second.similarity) == ("–", {"f1": 0.0})
    assert (third.similarity, third.left_out) == ({}, "answered by neither")
    assert fourth.left_out == "Refused: no \x1b[31mmoney"
    assert (
        qags_table(COLUMN, None)
        == qags_table(COLUMN, Score("1", "a", "qags_f1", 1.0, Provenance("metric")))
        == ()
    )


def test_a_run_from_before_reasons_were_kept_is_read() -> None:
    first, second = lines(json.dumps({"qags": [one[:5] for one in (LINES[0], LINES[2])]}))
    assert (first.similarity, second.similarity, second.left_out) == ({"f1": 1.0}, {}, "")


def test_a_table_has_a_column_per_similarity_or_the_reason() -> None:
    table = question_table(lines(RAW), "q")
    assert [column.head for column in table.columns] == [
        "theme",
        "question",
        "from source",
        "from output",
        "f1",
    ]
    assert [[cell.text for cell in row] for row in table.rows][1:] == [
        ["<b>Monday</b>", "It came on ____.", "–", "Monday", "0.00"],
        ["bus", "A ____ waited.", "–", "–", "not counted: answered by neither"],
        ["tram", "", "–", "–", "not counted: Refused: no \\x1b[31mmoney"],
    ]
    two = question_table(
        [
            QagsQuestion("x", "Which?", "y", "z", {"f1": 0.5, "bertscore": -0.1}),
            QagsQuestion("x", "", "", "", {}),
        ],
        "",
    )
    assert [column.head for column in two.columns][4:] == ["f1", "bertscore"]
    assert [[cell.text for cell in row[4:]] for row in two.rows] == [
        ["0.50", "−0.10"],
        ["not counted: no reason recorded", "–"],
    ]


@pytest.mark.parametrize(
    "raw",
    [
        '{"qags": 4}',
        '{"qags": [4]}',
        '{"qags": ["abcde"]}',
        '{"qags": [["a", "b", "c", "d"]]}',
        '{"qags": [["a", "b", "c", "d", {"f1": "high"}]]}',
        '{"qags": [["a", "b", "c", 4, {}, ""]]}',
        '{"qags": [["a", "b", "c", "d", {}, "", ""]]}',
        '{"qags": {"a": 1}}',
        '{"other": []}',
        '["qags"]',
        "4",
        '{"qags',
        "[" * 50_000,
    ],
)
def test_a_broken_working_says_nothing(raw: str) -> None:
    assert lines(raw) == ()


def test_ignores_details_qags_did_not_write() -> None:
    assert lines(RAW, Column("fluency", "criterion", Signature("fluency", "m"))) == ()
    assert lines(RAW, Column("qags_f1", "criterion", Signature("qags_f1", "m"))) == ()
    assert lines(RAW, Column("rougeL", "metric", Signature("rougeL"))) == ()


def test_a_judge_s_reply_cannot_forge_a_working_or_break_the_page() -> None:
    columns = (
        Column(
            "fluency",
            "criterion",
            Signature("fluency", "m"),
            low=1.0,
            high=5.0,
            labels=("1", "2", "3", "4", "5"),
        ),
    )
    for raw in (RAW, '{"qags": 4}'):
        scores = (Score("1", "a", "fluency", 4.0, Provenance("single", argmax="4", raw=raw)),)
        table = Table((Sample("1", "a", "The boat came."),), columns, scores)
        assert "questions asked" not in Result(table, item_means(table)).report("html")


def test_the_page_shows_them_as_text(result: Result) -> None:
    page = result.report("html")
    assert page.count("<summary>4 questions</summary>") == 2
    assert "not counted: answered by neither" in page
    assert "&lt;b&gt;Monday&lt;/b&gt;" in page
    assert "<b>Monday</b>" not in page
    assert "{&#34;qags" not in page
    assert '{"qags' not in page
