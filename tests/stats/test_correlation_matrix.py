"""Correlations between the columns of a table. Oracles: the correlation of two columns, and scipy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import COEFFICIENTS, LEVELS
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.correlation_matrix import MOST, Matrix, matrices
from judge.table import Table
from tests.factories import has_line

SINGLE = Provenance("single")
NAN = np.nan


def table(values: Any, columns: Any = None) -> Table:
    """Return a table from values (columns × items × systems); NaN is a missing score."""
    number, items, systems = np.shape(values)
    columns = columns or [Column(f"c{c}", "metric", Signature(f"c{c}")) for c in range(number)]
    samples = tuple(Sample(f"i{i}", f"s{s}", "text") for i in range(items) for s in range(systems))
    scores = tuple(
        Score(f"i{i}", f"s{s}", columns[c].name, float(value), SINGLE)
        for (c, i, s), value in np.ndenumerate(values)
        if value == value
    )
    return Table(samples, tuple(columns), scores)


def data(columns: int = 4, items: int = 30, systems: int = 5, missing: float = 0.0) -> Any:
    random = np.random.default_rng(3)
    quality = random.normal(size=(items, systems))
    values = quality + random.normal(size=(columns, items, systems))
    values[0] = np.round(values[0])
    values[random.random(values.shape) < missing] = NAN
    return values


def matrix_of(results: tuple[Matrix, ...], level: str, coefficient: str = "spearman") -> Matrix:
    for matrix in results:
        if (matrix.level, matrix.coefficient) == (level, coefficient):
            return matrix
    raise AssertionError(f"no matrix of {level}, {coefficient}")


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_matrix_entries_equal_pairwise_correlations(missing: float) -> None:
    values = data(missing=missing)
    results = matrices(table(values), Bootstrap(60, 5))
    assert [(matrix.level, matrix.coefficient) for matrix in results] == [
        (a, b) for a in LEVELS for b in COEFFICIENTS
    ]
    for row, column in ((0, 1), (2, 3), (3, 1)):
        pair = CorrelationWithRatings(values[column], Bootstrap(60, 5)).correlate(values[row])
        for matrix in results:
            expected = pair.estimates[matrix.level, matrix.coefficient]
            assert matrix.values[row][column] == pytest.approx(expected.value)
            assert matrix.low[row][column] == pytest.approx(expected.low)
            assert matrix.high[column][row] == pytest.approx(expected.high)
            assert matrix.n[row][column] == expected.n
            interval = (
                "95% Wilson interval with Student's t over items"
                if matrix.level == "within-items"
                else Bootstrap(60, 5)
            )
            assert matrix.method.endswith(f"; {interval}")


def test_systems_with_equal_sums_are_tied() -> None:
    thirds = np.array([[5, 10, 8, 13, 12], [12, 10, 7, 6, 8], [10, 7, 4, 4, 3]])
    assert thirds.sum(axis=0).tolist() == [27, 27, 19, 23, 23]
    matrix = matrix_of(
        matrices(table([thirds / 3, np.tile(np.arange(5.0), (3, 1))]), Bootstrap(5)), "systems"
    )
    assert matrix.values[0][1] == pytest.approx(
        stats.spearmanr(thirds.sum(axis=0), range(5)).statistic
    )


def test_a_matrix_is_symmetric_with_1_on_the_diagonal() -> None:
    for matrix in matrices(table(data(missing=0.1)), Bootstrap(20)):
        for name in ("values", "low", "high", "n"):
            cells = np.array(getattr(matrix, name), dtype=float)
            assert np.array_equal(cells, cells.T, equal_nan=True)
        assert np.diagonal(matrix.values) == pytest.approx(1.0)
        assert {matrix.low[k][k] for k in range(4)} == {None}
        assert matrix.note == ""


def test_spearman_of_many_texts_equals_scipy_with_a_linear_interval() -> None:
    values = data(columns=2, items=120, systems=6)
    matrix = matrix_of(matrices(table(values), Bootstrap(300)), "all-texts")
    assert matrix.n[0][1] == 720
    assert matrix.values[0][1] == pytest.approx(
        stats.spearmanr(values[0].ravel(), values[1].ravel()).statistic
    )
    pair = CorrelationWithRatings(values[1], Bootstrap(300)).correlate(values[0])
    ranked_again = pair.estimates["all-texts", "spearman"]
    assert matrix.low[0][1] == pytest.approx(ranked_again.low, abs=0.01)
    assert matrix.high[0][1] == pytest.approx(ranked_again.high, abs=0.01)


def test_criteria_come_first_and_only_24_columns_are_included() -> None:
    values = data(columns=MOST + 3, items=4)
    columns = [Column(f"m{k}", "metric", Signature("m")) for k in range(MOST)]
    columns[3:3] = [
        Column("tone@a", "criterion", Signature("a"), criterion="tone", judge="a"),
        Column("tone@b", "criterion", Signature("b"), criterion="tone", judge="b"),
        Column("tone", "criterion", Signature("mean"), criterion="tone"),
    ]
    results = matrices(table(values, columns), Bootstrap(5))
    assert results[0].names[:4] == ("tone", "tone@a", "tone@b", "m0")
    assert len(results[0].names) == MOST
    assert has_line(results[0].note, "first 24 of 27 columns", "criteria before metrics")


@pytest.mark.parametrize(
    ("shape", "document", "item", "system"),
    [
        (
            (2, 1, 1),
            "there are fewer than 2 systems",
            "there are fewer than 3 texts",
            "fewer than 3 systems",
        ),
        ((2, 1, 4), "", "", ""),
        ((2, 10, 1), "there are fewer than 2 systems", "", "there are fewer than 3 systems"),
        ((2, 10, 2), "", "", "there are fewer than 3 systems"),
    ],
)
def test_missing_values_have_a_reason(
    shape: tuple[int, ...], document: str, item: str, system: str
) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    results = matrices(table(values), Bootstrap(20))
    for level, note in (("within-items", document), ("all-texts", item), ("systems", system)):
        matrix = matrix_of(results, level)
        assert matrix.note.endswith(note)
        assert bool(matrix.note) == bool(note)
        assert (matrix.values[0][1] is None) == bool(note)
        # Correlations within one item, and of the means of systems, have no interval.
        bounded = not note and shape[1] > 1 and level != "systems"
        assert (matrix.low[0][1] is not None) == bounded


def test_a_constant_column_has_no_value_and_is_named() -> None:
    values = data(columns=3)
    values[1] = 2.0
    values[2] = values[2].mean(axis=1, keepdims=True)  # the same for all systems of an item
    results = matrices(table(values), Bootstrap(20))
    assert has_line(matrix_of(results, "within-items").note, "all values are equal", "c1, c2")
    assert matrix_of(results, "all-texts").note == "all values are equal: c1"
    few = data(columns=2)
    few[0, 4:] = 2.0
    assert (
        matrix_of(matrices(table(few), Bootstrap(20)), "within-items").low[0][1] is None
    )  # 4 items vary
    assert matrix_of(results, "all-texts").values[0][1] is None
    assert matrix_of(results, "all-texts").values[0][2] is not None


def test_columns_that_share_no_text_have_no_value() -> None:
    values = data(columns=2, items=8)
    values[0, :4], values[1, 4:] = NAN, NAN
    for matrix in matrices(table(values), Bootstrap(20)):
        assert (matrix.values[0][1], matrix.n[0][1], matrix.values[0][0]) == (
            None,
            0,
            pytest.approx(1.0),
        )


def test_kendall_is_skipped_for_very_many_systems() -> None:
    results = matrices(table(data(columns=2, items=3, systems=400)), Bootstrap(20))
    assert has_line(
        matrix_of(results, "within-items", "kendall").note, "tau-b", "more than 64 systems"
    )
    assert matrix_of(results, "systems", "kendall").values[0][1] is None
    assert all(matrix_of(results, level, "spearman").values[0][1] is not None for level in LEVELS)
    assert matrix_of(results, "all-texts", "kendall").values[0][1] is not None


def test_corpus_values_and_comparisons_have_no_matrix() -> None:
    two_columns = table(data(columns=2, items=4))
    first_column = [score for score in two_columns.scores if score.column == "c0"]
    corpus_value = Score("", "s0", "c1", 0.5, SINGLE)
    assert matrices(replace(two_columns, scores=(*first_column, corpus_value))) == ()
    comparison = Score("i0", "s0", "c0", 1.0, SINGLE, opponent="s1")
    assert matrices(replace(two_columns, scores=(comparison,))) == ()


def test_a_single_column_has_no_matrix() -> None:
    assert matrices(table(data(columns=1))) == ()
