from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.derived_columns import OVERALL, Overall, overall
from judge.table import Table

SINGLE = Provenance("single")
CLEAR = Column("clear", "criterion", Signature("clear"), 1.0, 5.0, criterion="clear")
RIGHT = Column("right", "criterion", Signature("right"), 0.0, 1.0, criterion="right", weight=3.0)
WRONG = Column(
    "wrong",
    "criterion",
    Signature("wrong"),
    0.0,
    10.0,
    criterion="wrong",
    better="lower",
    weight=2.0,
)


def _table(columns: tuple[Column, ...], *rows: tuple[float | None, ...]) -> Table:
    """Return a table of one system's texts, each with its values in the order of the columns."""
    samples = tuple(Sample(f"i{k}", "s", "") for k in range(len(rows)))
    scores = tuple(
        Score(f"i{k}", "s", column.name, value, SINGLE)
        for k, row in enumerate(rows)
        for column, value in zip(columns, row, strict=True)
        if value is not None
    )
    return Table(samples, columns, scores)


def _values(table: Table) -> list[float]:
    return [score.value for score in table.column_scores(OVERALL)]


def test_overall_is_the_weighted_mean_of_values_from_0_for_worst_to_1_for_best() -> None:
    result = overall(
        _table((CLEAR, RIGHT, WRONG), (4.0, 1.0, 2.0), (1.0, 0.0, 10.0), (5.0, 1.0, 0.0))
    )
    assert result is not None
    summary, table = result.summary, result.table
    assert summary == Overall(
        {"clear": pytest.approx(1 / 6), "right": 0.5, "wrong": pytest.approx(1 / 3)}, 3, 3
    )
    assert _values(table) == pytest.approx([0.75 / 6 + 1.0 / 2 + 0.8 / 3, 0.0, 1.0])
    (column,) = table.columns
    assert (column.name, column.low, column.high, column.better) == ("overall", 0.0, 1.0, "higher")
    assert str(column.signature) == "overall|0.1667 clear + 0.5 right + 0.3333 wrong|0–1"


def test_a_text_counts_if_it_has_every_criterion() -> None:
    result = overall(_table((CLEAR, RIGHT), (4.0, 1.0), (None, 1.0), (3.0, None)))
    assert result is not None
    assert (result.summary.n, result.summary.of) == (1, 3)
    assert [score.item for score in result.table.scores] == ["i0"]
    assert len(result.table.samples) == 3  # all samples, so that resamples draw the same items
    no_complete_text = overall(_table((CLEAR, RIGHT), (None, 1.0), (3.0, None)))
    assert no_complete_text is not None
    assert (no_complete_text.summary.n, no_complete_text.table.scores) == (0, ())


@pytest.mark.parametrize(
    "columns",
    [
        (CLEAR,),
        (CLEAR, Column("rougeL", "metric", Signature("rougeL"), 0.0, 1.0)),
        (CLEAR, replace(RIGHT, weight=0.0)),
        (CLEAR, replace(RIGHT, judge="x")),
        (CLEAR, replace(RIGHT, low=None, high=None)),
        (CLEAR, replace(RIGHT, low=1.0)),
        (CLEAR, RIGHT, Column("overall", "criterion", Signature("overall"), 0.0, 1.0)),
    ],
)
def test_overall_is_none_without_two_weighted_criteria_on_scales(
    columns: tuple[Column, ...],
) -> None:
    assert overall(_table(columns, (1.0,) * len(columns))) is None


def test_comparisons_have_no_overall() -> None:
    table = _table((CLEAR, RIGHT), (4.0, 1.0))
    comparison = Score("i0", "s", "clear", 1.0, SINGLE, "t")
    assert overall(replace(table, scores=(comparison,))) is None
    failed_comparison = Failure("i0", "s", "clear", "parse", "E", "m", opponent="t")
    assert overall(replace(table, failures=(failed_comparison,))) is None


def test_overall_uses_the_mean_of_a_panel() -> None:
    judges = tuple(replace(CLEAR, name=f"clear/{name}", judge=name) for name in "xy")
    result = overall(_table((CLEAR, *judges, RIGHT), (3.0, 1.0, 5.0, 1.0)))
    assert result is not None
    assert list(result.summary.weights) == ["clear", "right"]
    assert _values(result.table) == pytest.approx([0.25 * 0.5 + 0.75])


def test_overall_has_a_value_for_each_text_of_several_systems() -> None:
    samples = tuple(Sample(i, s, "") for i in "12" for s in "ab")
    rng = np.random.default_rng(0)
    values = {(s.item, s.system): rng.random(2) for s in samples}
    scores = tuple(
        Score(*key, column.name, float(value), SINGLE)
        for key, pair in values.items()
        for column, value in zip((CLEAR, RIGHT), pair * (4.0, 1.0) + (1.0, 0.0), strict=True)
    )
    result = overall(Table(samples, (CLEAR, RIGHT), scores))
    assert result is not None
    assert {(s.item, s.system): s.value for s in result.table.scores} == {
        key: pytest.approx(0.25 * pair[0] + 0.75 * pair[1]) for key, pair in values.items()
    }
