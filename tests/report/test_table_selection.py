"""Columns of a table, chosen by name. Oracle: the cells themselves."""

from __future__ import annotations

import pytest

from judge.core.errors import ConfigError
from judge.report.document import STAR, Cell, Column, Table, table
from judge.report.table_selection import with_columns

SCORES = table(
    ("system", "overall", "ROUGE-1", Column("best", better="higher"), Column("", numeric=False)),
    (("a", 1, 2, 3, "x"), ("b, c", 4, 5, 6, "y")),
)
PANEL = table(
    ("", Column("mean", group="tone"), Column("mean", group="fluency"), "n"), (("a", 1, 2, 3),)
)


def _texts(table: Table) -> list[list[str]]:
    heads = [column.head for column in table.columns]
    return [heads, *([cell.text for cell in row] for row in table.rows)]


def test_columns_are_in_the_order_of_their_names() -> None:
    assert _texts(with_columns(SCORES, ["ROUGE-1,overall"])) == [
        ["system", "ROUGE-1", "overall"],
        ["a", "2", "1"],
        ["b, c", "5", "4"],
    ]


def test_case_and_hyphens_do_not_matter() -> None:
    assert _texts(with_columns(SCORES, ["rouge1"]))[0] == ["system", "ROUGE-1"]


def test_a_metric_is_named_by_its_column_or_by_its_heading() -> None:
    metrics = table(("system", "BERTScore", "corpus BLEU"), (("a", 1, 2),))
    for names in ("bertscore_f1,bleu_corpus", "BERTScore,corpus BLEU"):
        assert _texts(with_columns(metrics, [names])) == _texts(metrics)
        turned = _texts(with_columns(metrics.turned, [names]))
        assert [row[1:] for row in turned] == [["BERTScore", "corpus BLEU"], ["1", "2"]]


def test_a_column_without_heading_comes_with_the_one_before_it() -> None:
    assert _texts(with_columns(SCORES, ["best"])) == [
        ["system", "best", ""],
        ["a", "3", "x"],
        ["b, c", "6", "y"],
    ]


def test_names_of_rows_turn_the_table() -> None:
    """A name may have a comma."""
    assert _texts(with_columns(SCORES, ["b, c", "a"])) == [
        ["", "b, c", "a"],
        ["overall", "4", "1"],
        ["ROUGE-1", "5", "2"],
        ["best ↑", "6", "3"],
        ["", "y", "x"],
    ]


def test_of_two_columns_of_text_the_second_names_the_rows() -> None:
    """It turns a leaderboard by its systems and not by their ranks."""
    heads = ("", Column("", numeric=False), Column("fluency", better="higher"))
    board = table(heads, (("1", "a", 5), ("2=", "b", 4), ("2=", "c", 3)))
    assert _texts(with_columns(board, ["c,a"])) == [
        ["", "c", "a"],
        ["", "2=", "1"],
        ["fluency ↑", "3", "5"],
    ]


def test_rows_that_share_a_second_name_have_both_names() -> None:
    pairs = table(("", Column("", numeric=False), "p"), (("a", "c", 1), ("b", "c", 2)))
    assert _texts(with_columns(pairs, ["b c"])) == [["", "b c"], ["p", "2"]]


def test_only_the_columns_that_are_shown_are_explained() -> None:
    columns = [Column("rank", about=("Ranks.",)), Column("x", about=("* best", "x: y"))]
    explained = table(("system", *columns), (("a", 1, 2),), "Key.")
    assert explained.whole_key == "Key. Ranks. * best · x: y"
    assert with_columns(explained, ["rank"]).whole_key == "Key. Ranks."
    assert with_columns(explained, ["a"]).whole_key == explained.whole_key


def test_equal_headings_are_named_with_their_group() -> None:
    assert _texts(with_columns(PANEL, ["fluency mean", "n"])) == [
        ["", "mean", "n"],
        ["a", "2", "3"],
    ]


def test_chosen_columns_are_not_turned_again() -> None:
    heads = [f"c{number}" for number in range(12)]
    wide = table(("", *heads), (("a", *range(12)),))
    assert len(wide.tall.columns) == 2
    assert with_columns(wide, heads).tall.columns == with_columns(wide, heads).columns


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("overal", "'overal'; did you mean 'overall'"),
        ("foo", "known: overall, ROUGE-1, best"),
        ("overall,a", "'a' is a row"),
        ("overall,overall", "'overall' is named twice"),
        (" ,", "no column is named"),
    ],
)
def test_names_that_choose_nothing_are_refused(names: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_columns(SCORES, [names])
    assert str(refused.value).startswith("--columns: ")
    assert message in str(refused.value)


def test_a_turned_leaderboard_names_its_ranks() -> None:
    heads = (Column("", name="rank"), Column("", numeric=False), "fluency")
    board = table(heads, (("1", "a", 5), ("2=", "b", 4)))
    assert _texts(with_columns(board, ["a"]))[1:] == [["rank", "1"], ["fluency", "5"]]


def test_the_star_is_explained_where_a_cell_has_it() -> None:
    best = Cell("5", mark=STAR)
    scores = table(("system", "tone", "fluency"), (("a", best, 3), ("b", 4, 2)), star="* best")
    assert with_columns(scores, ["tone"]).whole_key == "* best"
    assert with_columns(scores, ["fluency"]).whole_key == ""
    assert with_columns(scores, ["a"]).whole_key == "* best"
    assert with_columns(scores, ["b"]).whole_key == ""
