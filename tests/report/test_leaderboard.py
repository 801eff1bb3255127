from __future__ import annotations

from dataclasses import replace

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.report.views.leaderboard import build_leaderboard
from judge.report.views.provenance import build_provenance
from judge.results.result import Result
from judge.stats.bootstrap import bootstrap_means
from judge.stats.system_differences import compare
from judge.table import Table


def test_criteria_come_before_metrics(result: Result) -> None:
    assert [c.name for c in build_leaderboard(result).columns] == ["coherence", "一貫性", "rougeL", "length"]


def test_cells_say_what_was_scored(result: Result) -> None:
    cells = build_leaderboard(result).cells
    assert cells["システム二", "coherence"].coverage == "2/3"
    assert cells["lead", "coherence"].coverage == ""
    nothing = cells["evil|<b>*sys*", "一貫性"]
    assert (nothing.mean, nothing.interval, nothing.coverage, nothing.failed) == ("–", "", "0/3", 3)


def test_nothing_is_marked_where_nothing_was_tested(result: Result) -> None:
    shown = build_leaderboard(result)
    assert {cell.mark for cell in shown.cells.values()} == {""}
    assert "told apart" not in shown.caption
    assert (shown.verdict, shown.lead, shown.ranks, shown.ranked) == ("", "", {}, "")
    assert shown.systems == result.table.systems


def test_the_overall_score_comes_first_and_orders_the_systems(tested: Result) -> None:
    shown = build_leaderboard(tested)
    assert [column.name for column in shown.columns] == ["overall", "fluency", "style", "delta"]
    assert "overall" not in {column.name for column in shown.of_texts}
    assert (shown.lead, shown.systems) == ("overall", ("good", "=fair", "poor"))
    assert shown.cells["good", "overall"].estimate == tested.estimates["good", "overall"]
    (of,) = [one for one in tested.comparisons if one.column == "overall"]
    for rank in of.ranks:
        assert shown.ranks[rank.system] == rank
        assert rank.interval == (f"{rank.low}–{rank.high}" if rank.low < rank.high else "")


def test_the_marks_are_those_of_the_comparisons(tested: Result) -> None:
    shown = build_leaderboard(tested)
    for one in tested.comparisons:
        marks = {system: shown.cells[system, one.column].mark for system in shown.systems}
        assert marks == {s: ("*" if one.best == (s,) else "≈" if s in one.best else "") for s in shown.systems}
    assert {cell.mark for cell in shown.cells.values()} == {"*", "≈", ""}
    assert "↑ higher, ↓ lower is better. * best of" in shown.caption


def test_a_system_without_a_rank_comes_last(tested: Result) -> None:
    samples = (Sample("i0", "unscored", "o"), *tested.table.samples)
    shown = build_leaderboard(replace(tested, table=replace(tested.table, samples=samples)))
    assert shown.systems == ("good", "=fair", "poor", "unscored")
    assert "unscored" not in shown.ranks


def test_a_lone_system_is_not_marked() -> None:
    column = Column("m", "metric", "m")
    table = Table((Sample("i", "s", "o"),), (column,), ())
    shown = build_leaderboard(Result(table, {("s", "m"): Estimate("mean", 0.5, None, None, 1, "")}))
    assert not shown.cells["s", "m"].best
    assert shown.caption == "Mean over 1 item. ↑ higher is better."


def test_banners_say_what_is_missing(result: Result) -> None:
    assert build_leaderboard(result).about.banners == build_provenance(result).banners
    cut = replace(result, table=replace(result.table, scores=result.table.scores[1:]), info={"status": "complete"})
    assert build_leaderboard(cut).about.banners == (
        "1 value of the table missing: not asked for, or without an answer yet.",
    )


def test_a_caption_names_the_second_method_too(result: Result) -> None:
    key = next(iter(result.estimates))
    other = {**result.estimates, key: replace(result.estimates[key], method="95% percentile bootstrap")}
    assert "95% percentile bootstrap for 1 of 11" in build_leaderboard(replace(result, estimates=other)).caption


def wholes(*n: int) -> Result:
    """Two systems with an error rate by text and a value of all their texts together, `n` of them."""
    samples = tuple(Sample(i, s, "o") for s in ("a", "b") for i in ("1", "2"))
    columns = (Column("ter", "metric", "ter", better="lower"), Column("all", "metric", "all", low=0.0, high=1.0))
    scores = [Score(x.item, x.system, "ter", {"a": 40.0, "b": 20.0}[x.system], Provenance("metric")) for x in samples]
    scores += [Score("", s, "all", v, Provenance("metric", n=k)) for s, v, k in zip("ab", (0.25, 0.5), n, strict=True)]
    table = Table(samples, columns, tuple(scores))
    return Result(table, bootstrap_means(table))


def test_the_lowest_is_the_best_where_that_is_the_good_end() -> None:
    texts = [Sample(str(k), s, "o") for k in range(12) for s in ("a", "b")]
    column = Column("ter", "metric", "ter", better="lower")
    scores = tuple(
        Score(x.item, x.system, "ter", {"a": 40.0, "b": 20.0}[x.system] + int(x.item), Provenance("metric"))
        for x in texts
    )
    table = Table(tuple(texts), (column,), scores)
    shown = build_leaderboard(Result(table, bootstrap_means(table), comparisons=compare(table)))
    assert {key for key, cell in shown.cells.items() if cell.best} == {("b", "ter")}
    assert shown.systems == ("b", "a")
    assert "↓ lower is better. * best of its column" in shown.caption
    assert shown.verdict.startswith("b is best on ter: 25.50 against 45.50 for a")
    neither = replace(table, columns=(replace(column, better=""),))
    assert not any(
        c.mark
        for c in build_leaderboard(
            Result(neither, bootstrap_means(neither), comparisons=compare(neither))
        ).cells.values()
    )


def test_columns_without_a_mark_are_explained(tested: Result) -> None:
    table = tested.table
    columns = (*table.columns, Column("words", "metric", "words", better=""), Column("same", "metric", "same"))
    added = tuple(
        Score(s.item, s.system, name, 1.0, Provenance("metric")) for s in table.samples for name in ("words", "same")
    )
    more = replace(table, columns=columns, scores=(*table.scores, *added))
    shown = build_leaderboard(
        replace(tested, table=more, estimates=bootstrap_means(more), comparisons=compare(more), overall=None)
    )
    assert "Without an arrow neither end is, and nothing is marked." in shown.caption
    assert "No mark in same: all values are equal." in shown.caption
    assert "No mark" not in build_leaderboard(tested).caption
    assert "neither" not in build_leaderboard(tested).caption


def test_values_of_all_texts_are_told_and_not_marked() -> None:
    shown = build_leaderboard(wholes(2, 2))
    assert shown.cells["a", "all"].mean == "0.250"
    assert shown.cells["a", "all"].interval == shown.cells["a", "all"].coverage == ""
    assert "Values of all 2 texts of a system together: all." in shown.caption
    assert [column.name for column in shown.of_texts] == ["ter"]
    page = wholes(2, 2).report("html")
    assert "lowest ter first" in page
    assert "lowest all first" not in page
    assert not any("missing" in banner for banner in shown.about.banners)
    assert not any(cell.mark for cell in shown.cells.values())
    unequal = build_leaderboard(wholes(2, 1))
    assert unequal.cells["b", "all"].coverage == "1/2"
