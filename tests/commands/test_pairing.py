"""Which texts are compared, in which order, and how a budget is spread."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import ConfigError
from judge.core.records import IDENTICAL, Sample
from judge.criteria import load
from judge.run.pairing import choose_pairs


def texts(items: int, systems: str, *, same: bool = False) -> list[Sample]:
    return [
        Sample(str(i), s, "same" if same else f"{s} on {i}") for i in range(items) for s in systems
    ]


def test_every_pair_is_shown_in_both_orders() -> None:
    pairs = choose_pairs(texts(3, "abc"), orders=2, budget=None, seed=0)
    shown = Counter((a.item, a.system, b.system) for a, b in pairs.compared)
    assert set(shown.values()) == {1}
    assert len(shown) == 3 * 3 * 2  # n · (k choose 2) · 2
    assert all((item, b, a) in shown for item, a, b in shown)
    assert (pairs.possible, pairs.chosen, pairs.alone) == (9, 9, 0)


def test_one_order_is_drawn_by_a_hash_and_the_same_every_time() -> None:
    pairs = choose_pairs(texts(200, "ab"), orders=1, budget=None, seed=0)
    assert pairs == choose_pairs(texts(200, "ab"), orders=1, budget=None, seed=0)
    first = Counter(a.system for a, _ in pairs.compared)
    assert sum(first.values()) == 200
    assert min(first.values()) > 60
    assert pairs != choose_pairs(texts(200, "ab"), orders=1, budget=None, seed=1)


def test_equal_texts_are_ties_without_a_request() -> None:
    pairs = choose_pairs(texts(2, "ab", same=True), orders=2, budget=None, seed=0)
    assert pairs.compared == ()
    ties = list(pairs.ties(["overall"]))
    assert {(t.item, t.system, t.opponent, t.value, t.provenance.method) for t in ties} == {
        (item, a, b, 0.5, IDENTICAL) for item in "01" for a, b in ("ab", "ba")
    }


def test_equal_texts_after_different_messages_are_compared() -> None:
    rows = [
        Sample("1", system, "Yes.", extra={"messages": [{"role": "user", "content": request}]})
        for system, request in (("a", "Is it far?"), ("b", "Is it near?"))
    ]
    pairs = choose_pairs(rows, orders=2, budget=None, seed=0)
    assert pairs.equal == ()
    assert len(pairs.compared) == 2


def test_a_missing_text_leaves_its_pairs_out_and_is_counted() -> None:
    rows = [s for s in texts(3, "abc") if (s.item, s.system) != ("1", "b")]
    pairs = choose_pairs(rows, orders=2, budget=None, seed=0)
    assert (pairs.possible, pairs.alone) == (7, 2)
    assert not any(s.item == "1" and s.system == "b" for pair in pairs.compared for s in pair)


@given(st.integers(1, 40), st.integers(0, 5))
def test_a_budget_is_spread_evenly_over_the_systems(budget: int, seed: int) -> None:
    pairs = choose_pairs(texts(10, "abcd"), orders=2, budget=budget, seed=seed)
    by_systems = Counter(frozenset((a.system, b.system)) for a, b in pairs.compared)
    assert pairs.chosen == min(budget, 60)
    assert len(pairs.compared) == 2 * pairs.chosen
    counts = [
        by_systems[frozenset(pair)]
        for pair in (("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d"))
    ]
    assert max(counts) - min(counts) <= 2


def test_every_criterion_is_asked_of_every_pair() -> None:
    pairs = choose_pairs(texts(1, "ab"), orders=2, budget=None, seed=0)
    judgments = pairs.judgments([load("overall", pairwise=True), load("fluency", pairwise=True)])
    assert [(j.sample.system, j.opponent and j.opponent.system, j.criterion.name) for j in judgments] == [
        ("a", "b", "overall"), ("a", "b", "fluency"), ("b", "a", "overall"), ("b", "a", "fluency"),
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [texts(3, "a"), [Sample("1", "a", "x"), Sample("2", "b", "y")]])
def test_refuses_data_without_pairs(rows: list[Sample]) -> None:
    with pytest.raises(ConfigError, match=r"no item.*two systems"):
        choose_pairs(rows, orders=2, budget=None, seed=0)
