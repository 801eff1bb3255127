from __future__ import annotations

import math

import numpy as np
import pytest

from judge.core.records import Column, Provenance, Sample, Score
from judge.stats.power import ALPHA, Scatter, detectable, min_items, needed, power_of, scatter, spreads
from judge.stats.system_differences import TOO_FEW, compare
from judge.table import Table

Z = 1.959963985 + 0.841621234
"""The normal quantiles of .975 and .8."""
Z_OF_3 = 2.393979800 + 0.841621234
"""Those of 1 − .05 / 3 / 2 and .8."""


def test_the_closed_forms() -> None:
    assert detectable(0.8, 50) == pytest.approx(Z * 0.8 / math.sqrt(50))
    assert needed(0.8, 0.1) == math.ceil((Z * 8) ** 2) == 503
    assert needed(1.0, 0.5) == 32  # as the tables for an effect of a half have it, before Student's t
    assert needed(1.0, -0.5) == 32
    assert needed(0.1, 5.0) == 6  # of five, all one way, p is .0625
    assert detectable(1.0, 100, power=0.9) == pytest.approx((1.959963985 + 1.281551566) / 10)
    assert power_of(0.8, 50, detectable(0.8, 50)) == pytest.approx(0.8, abs=1e-6)
    assert power_of(1.0, 30, 0.0) == pytest.approx(0.05)


@pytest.mark.parametrize(("n", "difference"), [(60, 0.25), (200, 0.2)])
def test_the_power_is_how_often_a_simulated_test_finds_the_difference(n: int, difference: float) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(difference, 1.0, size=(4_000, n))
    z = rows.mean(axis=1) / rows.std(axis=1, ddof=1) * math.sqrt(n)
    assert float((np.abs(z) > 1.959964).mean()) == pytest.approx(power_of(1.0, n, difference), abs=0.03)


def test_spreads_are_numpys_of_what_is_there() -> None:
    rows = np.array([[1.0, 2.0, 4.0, math.nan], [3.0, math.nan, math.nan, math.nan], [2.0, 2.0, 2.0, 2.0]])
    number, sd = spreads(rows)
    assert number.tolist() == [3, 1, 4]
    assert sd[0] == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert math.isnan(sd[1])
    assert sd[2] == 0


def _table(values: dict[str, list[float | None]]) -> Table:
    samples = tuple(Sample(f"i{k}", system, "") for system, row in values.items() for k in range(len(row)))
    scores = tuple(
        Score(f"i{k}", system, "m", value, Provenance("metric"))
        for system, row in values.items()
        for k, value in enumerate(row)
        if value is not None
    )
    return Table(samples, (Column("m", "metric", "m"),), scores)


def _scatter(values: dict[str, list[float | None]]) -> Scatter:
    table = _table(values)
    (found,) = scatter(table, table.columns)
    return found


def test_the_median_pair_and_the_worst() -> None:
    a, b, c = [1, 2, 3, 4, 3, 2, 1], [1, 2, 3, 5, 3, 2, 1], [4, 1, None, 0, 2, 2, 1]
    found = _scatter({"a": a, "b": b, "c": c})
    of = [[x - y for x, y in zip(*two, strict=True) if None not in (x, y)] for two in ((a, b), (a, c), (b, c))]
    sds = sorted(np.std(d, ddof=1) for d in of)
    assert [pair.sd for pair in found.pairs] == pytest.approx(sds)
    assert sorted(pair.items for pair in found.pairs) == [6, 6, 7]
    assert (found.note, found.tests, found.least) == ("", 3, 7)
    assert (found.median.sd, found.worst.sd) == pytest.approx((sds[1], sds[2]))
    assert found.worst.detectable(100) == pytest.approx((Z_OF_3 * sds[2]) / 10)
    assert found.worst.detectable(6) is None
    assert found.median.needed(0.5) == math.ceil((Z_OF_3 * sds[1] / 0.5) ** 2)
    assert found.worst.needed() == needed(sds[2], found.worst.mean, alpha=0.05 / 3)


@pytest.mark.parametrize("systems", range(2, 8))
def test_the_fewest_items_are_those_with_which_a_run_can_tell_systems_apart(systems: int) -> None:
    """One item fewer, and the run's own comparison says that it is too few whatever they score."""
    fewest = _scatter({f"s{k}": [k + n % 2 * k / 9 for n in range(9)] for k in range(systems)}).least

    def note(items: int) -> str:
        table = _table({f"s{k}": [k + n % 2 * k / 9 for n in range(items)] for k in range(systems)})
        (found,) = compare(table, n_flips=200)
        return found.note

    assert TOO_FEW in note(fewest - 1)
    assert TOO_FEW not in note(fewest)


def test_one_pair_of_several_is_corrected_for_all_of_them() -> None:
    a, b, c = [1.0, 2, 3, 4, 3, 2, 1], [1.0, 2, 3, 5, 3, 2, 1], [4.0, 1, None, 0, 2, 2, 1]
    table = _table({"a": a, "b": b, "c": c, "d": [None] * 7})
    (found,) = scatter(table, table.columns, ("b", "a"))
    (pair,) = found.pairs
    assert (pair.systems, pair.items, found.tests) == (("b", "a"), 7, 3)
    assert pair.mean == pytest.approx(1 / 7)
    assert pair.needed() == math.ceil((Z_OF_3 * pair.sd * 7) ** 2)
    (none,) = scatter(table, table.columns, ("a", "d"))
    assert (none.pairs, none.note) == ((), "d has no value")
    same = _table({"a": [1.0, 2] * 3, "b": [2.0, 3] * 3, "c": [1.0, 1, 2]})
    notes = [scatter(same, same.columns, pair)[0].note for pair in (("a", "b"), ("a", "c"))]
    assert notes[0] == "the difference is the same in all shared items"
    assert notes[1] == "the two share 3 items; at least 6 are needed"


def test_the_least_items() -> None:
    assert [min_items(ALPHA / tests) for tests in (1, 3, 6, 120)] == [6, 7, 8, 13]
    assert needed(0.1, 5.0, alpha=ALPHA / 6) == 8


def test_so_many_systems_are_not_tested() -> None:
    found = _scatter({f"s{k}": [float(k * n % 7) for n in range(8)] for k in range(101)})
    assert (found.pairs, found.tests, found.note) == ((), 0, "more than 100 systems: too many to test")


def test_pairs_that_share_too_few_items_are_left_out() -> None:
    wave = [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 5.0]
    found = _scatter({"a": wave, "b": wave[::-1], "c": [9.0, 1.0, 5.0, None, None, None, None]})
    (pair,) = found.pairs
    assert (pair.systems, pair.items) == (("a", "b"), 7)
    assert pair.sd == pytest.approx(np.std(np.subtract(wave, wave[::-1]), ddof=1))
    assert found.note == "2 pairs of systems are left out, with fewer than 6 items in common"
    nine = [*wave, 3.0, 1.0]
    one = _scatter({"a": nine, "b": [*nine[::-1][:6], *[None] * 3], "c": [*[None] * 3, 4.0, *wave[2:]]})
    assert one.note == "1 pair of systems is left out, with fewer than 6 items in common"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"a": [None, None]}, "no text has a value"),
        ({"a": [1.0, 2.0], "b": [None, None]}, "only one system has values"),
        (
            {"a": [1.0, None], "b": [None, 3.0]},
            "no two systems share an item; at least 6 are needed",
        ),
        (
            {"a": [1.0, 2.0, 5.0], "b": [2.0, 3.0, 1.0], "c": [1.0, None, None]},
            "no two systems share more than 3; at least 6 are needed",
        ),
        (
            {"a": [1.0, 2.0] * 3, "b": [2.0, 3.0] * 3},
            "the differences are the same in all shared items",
        ),
        (
            {"a": [1.0, 2.0] * 3, "b": [2.0, 3.0] * 3, "c": [1.0, 3.0]},
            "the differences are the same in all shared items; "
            "2 pairs of systems are left out, with fewer than 6 items in common",
        ),
    ],
)
def test_why_nothing_can_be_said(values: dict[str, list[float | None]], why: str) -> None:
    known = sum(any(value is not None for value in row) for row in values.values())
    assert _scatter(values) == Scatter("m", known, note=why)
