from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import IDENTICAL, Failure, Provenance, Score
from judge.report.views.item_scores import Pair, compared
from judge.results.result import Result
from judge.stats.pairwise import rankings

LABELS = {"c": "c"}


def _row(first: str, second: str, value: float, method: str = "single") -> Score:
    return Score("i", first, "c", value, Provenance(method), second)


def _pairs(*rows: Score | Failure, orders: int = 2) -> tuple[Pair, ...]:
    (found,) = compared(rows, LABELS, ["a", "b", "d"], orders)
    return found.pairs


def test_both_orders_are_put_together_by_the_systems_order() -> None:
    (pair,) = _pairs(_row("b", "a", 0.9), _row("a", "b", 0.2))
    one, other = pair.verdicts
    assert one is not None
    assert other is not None
    assert (pair.first, pair.second, pair.preference, pair.flipped) == ("a", "b", pytest.approx(0.15), False)
    assert (one.first, one.preferred, one.strength) == ("a", "b", "0.80")
    assert (other.first, other.preferred, other.strength) == ("b", "b", "0.90")


@pytest.mark.parametrize(
    ("values", "flipped", "value"),
    [((0.7, 0.6), True, 0.55), ((0.5, 0.5), False, 0.5), ((0.5, 0.9), True, 0.3), ((0.8, 0.2), False, 0.8)],
)
def test_a_flip_is_a_verdict_that_changed(values: tuple[float, float], flipped: bool, value: float) -> None:
    (pair,) = _pairs(_row("a", "b", values[0]), _row("b", "a", values[1]))
    assert (pair.flipped, pair.preference) == (flipped, pytest.approx(value))


def test_a_tie_prefers_nobody() -> None:
    (pair,) = _pairs(_row("a", "b", 0.5), orders=1)
    assert pair.verdicts[0] is not None
    assert (pair.verdicts[0].preferred, pair.verdicts[1], pair.preference) == ("", None, 0.5)


def test_a_pair_that_lacks_an_answer_has_no_value() -> None:
    failed = Failure("i", "b", "c", "parse", "ParseError", "no answer", "Neither.", "a")
    (pair,) = _pairs(_row("a", "b", 1.0), failed)
    assert (pair.preference, pair.flipped) == (None, False)
    assert pair.verdicts[1] is not None
    assert pair.verdicts[1].finding.failure == failed


def test_identical_texts_are_marked_and_never_flip() -> None:
    (pair,) = _pairs(_row("a", "b", 0.5, IDENTICAL), _row("b", "a", 0.5, IDENTICAL))
    assert (pair.identical, pair.flipped, pair.preference) == (True, False, 0.5)


def test_pairs_stand_in_the_systems_order() -> None:
    found = _pairs(_row("b", "d", 1.0), _row("d", "a", 1.0), _row("a", "b", 1.0))
    assert [(pair.first, pair.second) for pair in found] == [("a", "b"), ("a", "d"), ("b", "d")]


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])] * 2), min_size=1, max_size=8))
def test_flips_are_those_the_statistics_count(values: list[tuple[float, float]]) -> None:
    rows = [
        Score(str(k), *names, Provenance("single"), rival)  # type: ignore[call-arg]
        for k, (one, other) in enumerate(values)
        for *names, rival in (("a", "c", one, "b"), ("b", "c", other, "a"))
    ]
    (ranking,) = rankings(rows, (), ["a", "b"], ["c"])
    flips = [compared(rows[2 * k : 2 * k + 2], LABELS, ["a", "b"], 2)[0].flips for k in range(len(values))]
    assert ranking.flip_rate == pytest.approx(sum(flips) / len(values))


def test_the_mean_preferences_make_the_win_rate(ranking: Result) -> None:
    (of,) = ranking.rankings
    systems = list(ranking.table.systems)
    values = []
    for item in ranking.table.items:
        rows = [row for row in ranking.table.rows() if row.item == item]
        (found,) = compared(rows, {"overall": "overall"}, systems, 2)
        values += [p.preference for p in found.pairs if (p.first, p.second) == ("lead", "システム二")]
    assert of.win_rate[systems.index("lead")][systems.index("システム二")] == pytest.approx(sum(values) / len(values))


def test_a_systems_preference_is_the_mean_over_its_complete_pairs() -> None:
    rows = (_row("a", "b", 1.0), _row("b", "a", 0.5), _row("a", "d", 0.0), _row("d", "a", 1.0), _row("b", "d", 1.0))
    (found,) = compared(rows, LABELS, ["a", "b", "d"], 2)
    assert [found.preference(system) for system in ("a", "b", "d")] == [0.375, 0.25, 1.0]
    assert found.preference("nobody") is None
