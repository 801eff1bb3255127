from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge.core.records import Column, Estimate, Sample
from judge.core.signature import Signature
from judge.report.renderers.csv import escape
from judge.results.result import Result
from judge.table import Table


def test_golden(result: Result, golden) -> None:
    golden("report.csv", result.report("csv"))


def test_every_system_and_column_has_a_row_in_full_precision(result: Result) -> None:
    header, *rows = csv.reader(StringIO(result.report("csv")))
    assert header[:9] == ["system", "column", "kind", "mean", "low", "high", "n", "total", "failed"]
    assert len(rows) == 3 * 4
    row_by_key = {(row[0], row[1]): row for row in rows}
    for key, estimate in result.estimates.items():
        assert float(row_by_key[key][3]) == estimate.value
        assert row_by_key[key][6] == str(estimate.n)
    assert row_by_key["evil|<b>*sys*", "一貫性"][3:9] == ["", "", "", "0", "3", "3"]


def test_ranks_and_marks_are_the_comparisons(tested: Result, result: Result) -> None:
    cells_by_key = {
        (row[0], row[1]): row[10:] for row in csv.reader(StringIO(tested.report("csv")))
    }
    for one in tested.comparisons:
        for rank in one.ranks:
            mark = "" if rank.system not in one.best else "best" if len(one.best) == 1 else "same"
            places = [str(place) for place in (rank.rank, rank.low, rank.high)]
            assert cells_by_key[escape(rank.system), one.column] == [*places, mark]
    bare = replace(result, comparisons=())
    assert {cells[-1] for cells in cells_by_key.values()} == {"mark", "best", "same", ""}
    assert all(row[10:] == [""] * 4 for row in list(csv.reader(StringIO(bare.report("csv"))))[1:])


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
        ("\x0b=1", "'\x0b=1"),
        ("\x00=1", "'\x00=1"),
        ("\x85=1", "'\x85=1"),
        ("\u2028@A", "'\u2028@A"),
        ("\u200b\ufeff-1", "'\u200b\ufeff-1"),
        ("\xa0 +1", "'\xa0 +1"),
        ("﹦1", "'﹦1"),
        ("'s", "'s"),
        ("a=1", "a=1"),
        ("", ""),
        ("日本語", "日本語"),
    ],
)
def test_csv_cells_are_not_formulas(text: str, cell: str) -> None:
    assert escape(text) == cell


@given(st.text("='+-@ a\t\r\n", max_size=6))
@example("")
def test_csv_formula_escape_is_reversible(text: str) -> None:
    cell = escape(text)
    assert cell[:1] not in set("=+-@\t\r\n") - {""}
    assert text in (cell, cell[1:])
    if cell != text:
        assert escape(cell) != cell, "so that a cell that needs no more is known to be as it was"


@given(st.text("=+-@'a\",; \t\r\n\x00\x0b\x0c\x1b\x7f\x85\xa0\u200b\u2028\ufeff", max_size=8))
@example("\r=1+1")
def test_a_name_is_one_inert_cell_for_every_separator_and_line_end(name: str) -> None:
    sample, column = Sample("i", name or "s", "x"), Column(f"{name}c", "metric", Signature("s"))
    result = Result(
        Table((sample,), (column,), ()),
        {(sample.system, column.name): Estimate("mean", 1, 0, 2, 1, "m")},
    )
    for wide in (False, True):
        text = result.report("csv", wide=wide)
        rows = list(csv.reader(StringIO(text, newline="")))
        assert len(rows) == 2
        assert escape(sample.system) in rows[1]
        assert escape(column.name) in rows[0] + rows[1]
        # Outside quotes, only commas and line feeds end a cell or a line.
        bare = "".join(text.split('"')[::2])
        assert bare.replace("\n", "").isprintable()
        for cell in bare.replace("\n", ",").split(","):
            assert not cell.strip().startswith(("=", "+", "@"))


def test_names_are_made_inert_and_numbers_are_not() -> None:
    sample, column = (
        Sample("i", "=cmd|'/c calc'!A0", "x"),
        Column("-delta", "metric", Signature('+sig, "q"\n')),
    )
    below = {(sample.system, column.name): Estimate("mean", -0.5, -1.5, 0.25, 1, "m")}
    (_, row) = csv.reader(StringIO(Result(Table((sample,), (column,), ()), below).report("csv")))
    assert row[:6] == ["'=cmd|'/c calc'!A0", "'-delta", "metric", "-0.5", "-1.5", "0.25"]
    assert row[9] == '\'+sig, "q"\n'


def test_wide_rows_have_every_score_with_its_reason_and_the_failures(result: Result) -> None:
    rows = {
        (row["item"], row["system"]): row
        for row in csv.DictReader(StringIO(result.report("csv", wide=True)))
    }
    assert len(rows) == len(result.table.samples)
    for score in result.table.scores:
        row = rows[score.item, score.system]
        assert float(row[score.column]) == score.value
        if score.provenance.reason:
            assert row[f"{score.column}_reason"] == score.provenance.reason
    for failure in result.table.failures:
        assert (
            f"{failure.column}: {failure.error}" in rows[failure.item, failure.system]["failures"]
        )


@pytest.mark.parametrize("wide", [False, True])
def test_an_empty_result_has_its_header(result: Result, wide: bool) -> None:
    empty = replace(result, table=Table((), result.table.columns, ()), estimates={})
    header = next(csv.reader(StringIO(result.report("csv", wide=wide))))
    rows = list(csv.reader(StringIO(empty.report("csv", wide=wide))))
    # Without a text there are no sources, no reasons and no ratings.
    absent = [name for name in header if name == "source" or name.endswith(("_reason", "_rating"))]
    assert rows == [[name for name in header if name not in absent]]


def test_an_empty_ranking_has_its_header(ranking: Result) -> None:
    empty = replace(ranking, rankings=(replace(ranking.rankings[0], standings=()),))
    header, *_ = ranking.report("csv").splitlines()
    assert empty.report("csv").splitlines() == [header]


def test_names_in_a_ranking_are_made_inert_too(ranking: Result) -> None:
    (of,) = ranking.rankings
    standings = tuple(replace(one, system=f"={one.system}") for one in of.standings)
    systems = tuple(f"={name}" for name in of.systems)
    renamed = replace(of, standings=standings, systems=systems, groups=(systems,))
    _, *rows = csv.reader(StringIO(replace(ranking, rankings=(renamed,)).report("csv")))
    assert [row[0] for row in rows] == [f"'={one.system}" for one in of.standings]
    assert any(float(cell) < 0 for row in rows for cell in row[5:8] if cell)
