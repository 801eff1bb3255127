from __future__ import annotations

from dataclasses import replace

import pytest

from judge.records import Column, Estimate, Sample
from judge.report import Result
from judge.report.view import view
from judge.table import Table


def test_criteria_come_before_metrics(result: Result) -> None:
    assert [c.name for c in view(result).columns] == ["coherence", "一貫性", "rougeL", "length"]


def test_cells_say_what_was_scored_and_which_is_highest(result: Result) -> None:
    cells = view(result).cells
    best = {key for key, cell in cells.items() if cell.best}
    assert best == {
        ("lead", "一貫性"),
        ("システム二", "一貫性"),
        ("システム二", "rougeL"),
    }, "in the other columns the systems were not scored on the same items"
    assert cells["システム二", "coherence"].coverage == "2/3"
    assert cells["lead", "coherence"].coverage == ""
    nothing = cells["evil|<b>*sys*", "一貫性"]
    assert (nothing.mean, nothing.interval, nothing.coverage, nothing.failed) == ("–", "", "0/3", 3)


def test_a_lone_system_is_not_marked() -> None:
    column = Column("m", "metric", "m")
    table = Table((Sample("i", "s", "o"),), (column,), ())
    shown = view(Result(table, {("s", "m"): Estimate("mean", 0.5, None, None, 1, "")}))
    assert not shown.cells["s", "m"].best
    assert shown.caption == "Mean over 1 item."


def test_failures_are_counted_by_stage_and_error_the_commonest_first(result: Result) -> None:
    kinds = view(result).failures
    assert [(k.stage, k.error, k.count, k.columns) for k in kinds] == [
        ("parse", "ParseError", 4, ("一貫性", "coherence")),
        ("metric", "DataError", 2, ("length",)),
    ]


def test_banners_name_the_status_the_notes_and_what_is_missing(result: Result) -> None:
    assert view(result).banners == (
        "This run was interrupted. What had come back is shown; run the same command again to go on.",
        "scripted replies: no model was asked",
        "The server refused or ignored: logprobs (6 answers).",
    )
    cut = replace(result, table=replace(result.table, scores=result.table.scores[1:]), info={"status": "complete"})
    assert view(cut).banners == ("1 value of the table not asked for or not come back.",)


def test_a_caption_names_the_second_method_too(result: Result) -> None:
    key = next(iter(result.estimates))
    other = {**result.estimates, key: replace(result.estimates[key], method="95% percentile bootstrap")}
    assert "95% percentile bootstrap for 1 of 11" in view(replace(result, estimates=other)).caption


@pytest.mark.parametrize(
    ("info", "title"),
    [
        ({"data": {"path": "a\\b\\c.csv"}, "model": "m"}, "c.csv, judged by m"),
        ({"data": {"path": "/x/d.jsonl"}}, "d.jsonl"),
        ({"model": "m"}, "Judge report, judged by m"),
        ({}, "Judge report"),
    ],
)
def test_the_title_names_data_and_model(info: dict[str, object], title: str) -> None:
    assert view(Result(Table((), (), ()), {}, info)).title == title


def test_facts_are_only_those_that_are_known() -> None:
    info = {"provider": "scripted", "started": "yesterday", "language": {"name": "ko"}}
    assert view(Result(Table((), (), ()), {}, info)).facts == (
        ("Texts", "0 texts: 0 items, 0 systems"),
        ("Judge", "scripted"),
        ("Language", "ko"),
        ("Started", "yesterday"),
    )


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, ""),
        ({"requests": {"sent": 1200, "cached": 0, "failed": 2}}, "requests: 1,200 sent, 2 failed"),
        (
            {"usage": {"prompt_tokens": 10, "completion_tokens": 5, "reasoning_tokens": 4}},
            "tokens: 10 in, 5 out (4 reasoning)",
        ),
        ({"cost": {"usd": None, "note": "no list price"}}, "cost: unknown (no list price)"),
        ({"requests": {"sent": 0, "cached": 9}, "cost": {"usd": 0.0}}, "requests: 0 sent, 9 cached · cost: $0.0000"),
    ],
)
def test_usage_is_one_line(info: dict[str, object], expected: str) -> None:
    assert view(Result(Table((), (), ()), {}, info)).usage == expected
