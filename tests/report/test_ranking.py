from __future__ import annotations

import csv
import json
import re
from dataclasses import fields, replace
from io import StringIO

import pytest
from rich.cells import cell_len

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.report.renderers.console import render as console
from judge.report.renderers.html import summary
from judge.report.views.ranking import build_ranking
from judge.results.result import Result, load
from judge.stats.pairwise import Standing, rankings
from judge.table import Table

FORMATS = {"console": "txt", "markdown": "md", "html": "html", "json": "json", "csv": "csv"}


@pytest.mark.parametrize("format", FORMATS)
def test_golden(ranking: Result, golden, monkeypatch: pytest.MonkeyPatch, format: str) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(f"ranking.{FORMATS[format]}", ranking.report(format))


def _ranked(systems: int, items: int = 2, orders: int = 2, criteria: tuple[str, ...] = ("overall",)) -> Result:
    """System k loses every comparison against the systems before it."""
    names = [f"system-{k}" for k in range(systems)]
    samples = tuple(Sample(f"i{i}", name, f"text {name}") for i in range(items) for name in names)
    scores = tuple(
        Score(f"i{i}", one, column, float(place < at), Provenance("single"), other)
        for i in range(items)
        for place, one in enumerate(names)
        for at, other in enumerate(names)
        for column in criteria
        if place != at and (orders == 2 or place < at)
    )
    columns = tuple(Column(name, "criterion", name, 0.0, 1.0, ("A", "B")) for name in criteria)
    table = Table(samples, columns, scores)
    found = rankings(scores, (), names, criteria, orders=orders)  # type: ignore[arg-type]
    return Result(table, {}, {"plan": {"orders": orders}}, rankings=found)


def test_places_are_the_standings_as_text(ranking: Result) -> None:
    (contest,) = build_ranking(ranking).contests
    first, second, third = contest.places
    assert (first.system, first.win_rate, first.interval) == ("システム二", "61.0%", "[50.0, 75.0]")
    assert (first.strength, first.strength_interval) == ("0.31", "[−0.10, 0.80]")
    assert (first.record, first.undecided, first.n, first.flips) == ("2-1-1", "(1 undecided)", "5", "40.0%")
    assert (second.record, second.undecided) == ("3-1-2", "")
    assert (third.interval, third.strength, third.strength_interval) == ("", "−0.45", "")


def test_matrix_and_places_have_one_order(ranking: Result) -> None:
    (contest,) = build_ranking(ranking).contests
    place = {system: k for k, system in enumerate(contest.systems)}
    of = contest.ranking
    for a, row in zip(of.systems, of.win_rate, strict=True):
        for b, rate in zip(of.systems, row, strict=True):
            met = contest.matrix[place[a]][place[b]]
            assert met.share == rate
            assert met.text == ("" if rate is None else f"{100 * rate:.1f}")
    assert contest.matrix[place["lead"]][place["システム二"]].title == "lead against システム二: 40.0% of 3 pairs"


def test_what_was_compared_is_told_in_sentences(ranking: Result) -> None:
    (contest,) = build_ranking(ranking).contests
    assert contest.sentences == (
        "8 pairs of texts compared.",
        "In 1 of them the texts are identical: a tie, about which no judge was asked.",
        "1 pair left out for lack of an answer.",
        "1 judgment failed.",
        "Of the 7 pairs shown both ways round, the verdict changed with the order in 28.6% (flip rate).",
        "The text shown first got 57.9% of the preference; without position bias it gets 50%.",
    )
    (alone,) = build_ranking(_ranked(3, orders=1)).contests
    assert alone.sentences[1:] == (
        "Each pair was shown in one order only: what the order does to the verdict is not known.",
    )


def test_systems_that_were_never_compared_stand_last_without_numbers() -> None:
    result = _ranked(3)
    rows = tuple(s for s in result.table.scores if "system-2" not in (s.system, s.rival))
    found = rankings(rows, (), result.table.systems, ["overall"])
    (contest,) = build_ranking(replace(result, rankings=found)).contests
    last = contest.places[-1]
    assert (last.system, last.win_rate, last.interval, last.record, last.n) == ("system-2", "–", "", "–", "0")
    assert [met.text for met in contest.matrix[-1]] == ["–", "–", ""]
    for format in FORMATS:
        assert replace(result, rankings=found).report(format)


def test_a_ranking_of_nothing_has_every_report() -> None:
    failed = Failure("i", "a", "overall", "request", "Refused", "no", rival="b")
    table = Table((Sample("i", "a", "x"), Sample("i", "b", "y")), (Column("overall", "criterion", ""),), (), (failed,))
    found = rankings((), (failed,), table.systems, ["overall"])
    result = Result(table, {}, {}, rankings=found)
    for format in FORMATS:
        assert ("No pair was compared." in result.report(format)) == (format != "csv")


def test_a_panels_ranking_comes_before_its_judges() -> None:
    names = ("overall", "overall/a", "overall/b")
    result = _ranked(2, criteria=names)
    columns = tuple(replace(c, criterion="overall", judge=c.name[8:]) for c in result.table.columns[::-1])
    shown = build_ranking(replace(result, table=replace(result.table, columns=columns)))
    assert [contest.label for contest in shown.contests] == ["overall, panel mean", "overall, b", "overall, a"]


@pytest.mark.parametrize("width", [40, 60, 80, 132])
@pytest.mark.parametrize("systems", [2, 6, 12])
def test_the_console_keeps_to_its_width(width: int, systems: int) -> None:
    text = console(_ranked(systems), width=width)
    assert max(cell_len(row) for row in text.split("\n")) <= width
    assert text.count("100.0%") == 2  # in the verdict and in the table


def test_long_names_give_way_before_the_table_is_cut(ranking: Result) -> None:
    result = _ranked(3)
    long = {name: f"{name} with a name of thirty-odd letters" for name in result.table.systems}
    samples = tuple(replace(s, system=long[s.system]) for s in result.table.samples)
    scores = tuple(replace(s, system=long[s.system], rival=long[s.rival]) for s in result.table.scores)
    found = rankings(scores, (), list(long.values()), ["overall"])
    text = console(Result(Table(samples, result.table.columns, scores), {}, {}, rankings=found), width=80)
    assert sum("win rate" in row and "flips" in row for row in text.split("\n")) == 1


@pytest.mark.parametrize(("systems", "shown"), [(2, False), (3, True), (12, True), (13, False)])
def test_the_console_shows_the_matrix_of_three_to_twelve_systems(systems: int, shown: bool) -> None:
    text = console(_ranked(systems), width=200)
    assert ("row against column" in text) == shown
    assert ("are in the HTML report" in text) == (systems > 12)


def test_json_holds_every_number(ranking: Result) -> None:
    found = json.loads(ranking.report("json"), parse_constant=pytest.fail)
    assert list(found) == ["schema", "verdict", "systems", "rankings", "failures", "info"]
    (of,) = ranking.rankings
    assert [Standing(**row) for row in found["systems"]] == list(of.standings)
    (ranking,) = found["rankings"]
    assert ranking["systems"] == list(of.systems)
    assert ranking["win_rate"] == [list(row) for row in of.win_rate]
    assert ranking["n"] == [list(row) for row in of.n]
    for name in ("column", "pairs", "incomplete", "failed", "flip_rate", "position_bias", "method", "note"):
        assert ranking[name] == getattr(of, name)


def test_csv_has_a_row_per_standing(ranking: Result) -> None:
    header, *rows = csv.reader(StringIO(ranking.report("csv")))
    assert header == [field.name for field in fields(Standing)] + ["signature"]
    (of,) = ranking.rankings
    for row, standing in zip(rows, of.standings, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells.pop("signature") == ranking.table.columns[0].signature
        assert cells == {name: "" if (v := getattr(standing, name)) is None else str(v) for name in cells}


def test_markdown_tables_are_whole(ranking: Result) -> None:
    tables = re.findall(r"(?:^\|.*\n?)+", ranking.report("markdown"), re.MULTILINE)
    assert len(tables) == 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.strip().split("\n")}) == 1


def test_notebooks_show_the_standings(ranking: Result) -> None:
    text = summary(ranking)
    assert "61.0%" in text
    assert "evil|&lt;b&gt;*sys*" in text
    assert "<script" not in text


def test_a_stored_ranking_is_shown_as_it_was(ranking: Result, tmp_path) -> None:
    ranking.save(tmp_path)
    for format in FORMATS:
        assert load(tmp_path).report(format) == ranking.report(format)
