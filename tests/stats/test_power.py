from __future__ import annotations

import math

import numpy as np
import pytest

from judge.records import Column, Provenance, Sample, Score
from judge.stats.power import Scatter, chance, detectable, needed, scatter, spreads
from judge.table import Table

Z = 1.959963985 + 0.841621234
"""The normal quantiles of .975 and .8."""


def test_the_closed_forms() -> None:
    assert detectable(0.8, 50) == pytest.approx(Z * 0.8 / math.sqrt(50))
    assert needed(0.8, 0.1) == math.ceil((Z * 8) ** 2) == 503
    assert needed(1.0, 0.5) == 32  # as the tables for an effect of a half have it, before Student's t
    assert needed(1.0, -0.5) == 32
    assert needed(0.1, 5.0) == 6  # of five, all one way, p is .0625
    assert detectable(1.0, 100, power=0.9) == pytest.approx((1.959963985 + 1.281551566) / 10)
    assert chance(0.8, 50, detectable(0.8, 50)) == pytest.approx(0.8, abs=1e-6)
    assert chance(1.0, 30, 0.0) == pytest.approx(0.05)


@pytest.mark.parametrize(("n", "difference"), [(60, 0.25), (200, 0.2)])
def test_the_power_is_how_often_a_simulated_test_finds_the_difference(n: int, difference: float) -> None:
    random = np.random.default_rng(1)
    rows = random.normal(difference, 1.0, size=(4_000, n))
    z = rows.mean(axis=1) / rows.std(axis=1, ddof=1) * math.sqrt(n)
    assert float((np.abs(z) > 1.959964).mean()) == pytest.approx(chance(1.0, n, difference), abs=0.03)


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
    found = _scatter({"a": [1, 2, 3, 4], "b": [1, 2, 3, 5], "c": [4, 1, None, 0]})
    sds = sorted(np.std(d, ddof=1) for d in ([0, 0, 0, -1], [3, -1, -4], [3, -1, -5]))
    assert sorted(found.sd) == pytest.approx(sds)
    assert sorted(found.items) == [3, 3, 4]
    assert found.spread() == pytest.approx((sds[1], sds[2]))
    assert found.detectable(100) == pytest.approx((Z * sds[1] / 10, Z * sds[2] / 10))
    assert found.detectable() is None  # three and four items
    assert found.needed(0.5) == (needed(sds[1], 0.5), needed(sds[2], 0.5))


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"a": [None, None]}, "no text has a value"),
        ({"a": [1.0, 2.0], "b": [None, None]}, "one system has values: nothing to compare it with"),
        ({"a": [1.0, None, 2.0], "b": [2.0, 3.0, None]}, "no two systems share two items"),
        (
            {"a": [1.0, 2.0], "b": [2.0, 3.0]},
            "between any two systems the difference is the same in every item that they share",
        ),
    ],
)
def test_why_nothing_can_be_said(values: dict[str, list[float | None]], why: str) -> None:
    assert _scatter(values) == Scatter("m", note=why)
