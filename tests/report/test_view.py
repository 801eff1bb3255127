from __future__ import annotations

from dataclasses import replace

from judge.records import Column, Estimate, Sample
from judge.report import Result
from judge.report.about import about
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


def test_banners_say_what_is_missing(result: Result) -> None:
    assert view(result).about.banners == about(result).banners
    cut = replace(result, table=replace(result.table, scores=result.table.scores[1:]), info={"status": "complete"})
    assert view(cut).about.banners == ("1 value of the table missing: not asked for, or without an answer yet.",)


def test_a_caption_names_the_second_method_too(result: Result) -> None:
    key = next(iter(result.estimates))
    other = {**result.estimates, key: replace(result.estimates[key], method="95% percentile bootstrap")}
    assert "95% percentile bootstrap for 1 of 11" in view(replace(result, estimates=other)).caption
