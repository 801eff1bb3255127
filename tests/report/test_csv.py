from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.core.records import Column, Estimate, Sample
from judge.report.renderers.csv import HEADER, inert, render
from judge.results.result import Result
from judge.table import Table


def test_golden(result: Result, golden) -> None:
    golden("report.csv", render(result))


def test_every_system_and_column_has_a_row_in_full_precision(result: Result) -> None:
    header, *rows = csv.reader(StringIO(render(result)))
    assert tuple(header) == HEADER
    assert len(rows) == 3 * 4
    found = {(row[0], row[1]): row for row in rows}
    for key, estimate in result.estimates.items():
        assert float(found[key][3]) == estimate.value
        assert found[key][6] == str(estimate.n)
    assert found["evil|<b>*sys*", "一貫性"][3:9] == ["", "", "", "0", "3", "3"]


def test_ranks_and_marks_are_the_comparisons(tested: Result, result: Result) -> None:
    found = {(row[0], row[1]): row[10:] for row in csv.reader(StringIO(render(tested)))}
    for one in tested.comparisons:
        for rank in one.ranks:
            mark = "" if rank.system not in one.best else "best" if len(one.best) == 1 else "same"
            places = [str(place) for place in (rank.rank, rank.low, rank.high)]
            assert found[inert(rank.system), one.column] == [*places, mark]
    bare = replace(result, comparisons=())
    assert {cells[-1] for cells in found.values()} == {"mark", "best", "same", ""}
    assert all(row[10:] == [""] * 4 for row in list(csv.reader(StringIO(render(bare))))[1:])


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ('=HYPERLINK("http://x")', '\'=HYPERLINK("http://x")'),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\tx", "'\tx"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        (" =1", "' =1"),
        ("＝1", "'＝1"),
        ("'=1", "''=1"),
        ("'s", "'s"),
        ("a=1", "a=1"),
        ("", ""),
        ("日本語", "日本語"),
    ],
)
def test_a_text_is_no_formula(text: str, cell: str) -> None:
    assert inert(text) == cell


@given(st.text("='+-@ a\t\r\n", max_size=6))
@example("")
def test_what_was_put_before_a_text_can_be_taken_away(text: str) -> None:
    cell = inert(text)
    assert cell[:1] not in set("=+-@\t\r\n") - {""}
    assert text in (cell, cell[1:])
    if cell != text:
        assert inert(cell) != cell, "so that a cell that needs no more is known to be as it was"


def test_names_are_made_inert_and_numbers_are_not() -> None:
    sample, column = Sample("i", "=cmd|'/c calc'!A0", "x"), Column("-delta", "metric", '+sig, "q"\n')
    below = {(sample.system, column.name): Estimate("mean", -0.5, -1.5, 0.25, 1, "m")}
    (_, row) = csv.reader(StringIO(render(Result(Table((sample,), (column,), ()), below))))
    assert row[:6] == ["'=cmd|'/c calc'!A0", "'-delta", "metric", "-0.5", "-1.5", "0.25"]
    assert row[9] == '\'+sig, "q"\n'


def test_names_in_a_ranking_are_made_inert_too(ranking: Result) -> None:
    (of,) = ranking.rankings
    standings = tuple(replace(one, system=f"={one.system}") for one in of.standings)
    _, *rows = csv.reader(StringIO(render(replace(ranking, rankings=(replace(of, standings=standings),)))))
    assert [row[0] for row in rows] == [f"'={one.system}" for one in of.standings]
    assert any(float(cell) < 0 for row in rows for cell in row[5:8] if cell)
