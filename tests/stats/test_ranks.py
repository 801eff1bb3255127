from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from judge.stats.ranks import shared_ranks

SYSTEMS = ("a", "b", "c", "d", "e")
PAIRS = [frozenset(pair) for pair in combinations(SYSTEMS, 2)]


def apart(*pairs: str) -> set[frozenset[str]]:
    return {frozenset(pair) for pair in pairs}


def test_the_rank_after_a_shared_one_counts_all_systems_before() -> None:
    assert shared_ranks("abc", apart("ac")) == {"a": 1, "b": 1, "c": 3}
    assert shared_ranks("abcd", apart("ab", "ac", "ad")) == {"a": 1, "b": 2, "c": 2, "d": 2}
    assert shared_ranks("abc", apart("ab", "ac", "bc")) == {"a": 1, "b": 2, "c": 3}


@given(st.sets(st.sampled_from(PAIRS)))
def test_ranks_follow_the_means_and_only_systems_without_a_difference_share_one(
    different: set[frozenset[str]],
) -> None:
    ranks = shared_ranks(SYSTEMS, different)
    assert list(ranks) == list(SYSTEMS)
    values = list(ranks.values())
    assert values == sorted(values)
    for system, rank in ranks.items():
        n_before = sum(other_rank < rank for other_rank in values)
        assert rank == n_before + 1
        for other, other_rank in ranks.items():
            if rank == other_rank:
                assert frozenset((system, other)) not in different
