from __future__ import annotations

from dataclasses import replace

from judge.records import Column, Estimate, Provenance, Sample, Score
from judge.report import Result
from judge.report.about import about
from judge.report.view import view
from judge.stats.resample import means
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


def wholes(*n: int) -> Result:
    """Two systems with an error rate by text and a value of all their texts together, `n` of them."""
    samples = tuple(Sample(i, s, "o") for s in ("a", "b") for i in ("1", "2"))
    columns = (Column("ter", "metric", "ter", better="lower"), Column("all", "metric", "all", low=0.0, high=1.0))
    scores = [Score(x.item, x.system, "ter", {"a": 40.0, "b": 20.0}[x.system], Provenance("metric")) for x in samples]
    scores += [Score("", s, "all", v, Provenance("metric", n=k)) for s, v, k in zip("ab", (0.25, 0.5), n, strict=True)]
    table = Table(samples, columns, tuple(scores))
    return Result(table, means(table))


def test_the_lowest_is_marked_where_that_is_the_good_end() -> None:
    shown = view(wholes(2, 2))
    assert {key for key, cell in shown.cells.items() if cell.best} == {("b", "ter"), ("b", "all")}
    assert "* highest of its column, of ter the lowest." in shown.caption
    neither = wholes(2, 2)
    columns = tuple(replace(column, better="") for column in neither.table.columns)
    assert not any(c.best for c in view(replace(neither, table=replace(neither.table, columns=columns))).cells.values())


def test_values_of_all_texts_are_compared_at_equal_number_only() -> None:
    shown = view(wholes(2, 2))
    assert shown.cells["a", "all"].mean == "0.250"
    assert shown.cells["a", "all"].interval == shown.cells["a", "all"].coverage == ""
    assert "Values of all 2 texts of a system together: all." in shown.caption
    assert [column.name for column in shown.of_texts] == ["ter"]
    page = wholes(2, 2).report("html")
    assert "lowest ter first" in page
    assert "lowest all first" not in page
    assert not any("missing" in banner for banner in shown.about.banners)
    unequal = view(wholes(2, 1))
    assert not unequal.cells["b", "all"].best
    assert unequal.cells["b", "all"].coverage == "1/2"
