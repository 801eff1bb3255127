from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, pairwise, permutations

import evalica
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binomtest, norm
from scipy.stats import t as student

from judge.core.records import Column, Failure, Provenance, Score
from judge.core.signature import Signature
from judge.stats import strengths as strengths_module
from judge.stats.compared_pairs import tie_label
from judge.stats.pairwise import Ranking, Standing, rankings
from tests.factories import has_line

SINGLE, IDENTICAL = Provenance("single"), Provenance("identical", n=0)
few = settings(max_examples=25)


def _row(
    item: str, first: str, second: str, value: float, provenance: Provenance = SINGLE
) -> Score:
    return Score(item, first, "better", value, provenance, second)


def _failed(item: str, first: str, second: str) -> Failure:
    return Failure(item, first, "better", "parse", "ParseError", "no label", opponent=second)


def _both(item: str, a: str, b: str, shown_first: float, shown_second: float) -> list[Score]:
    """Return the two rows of a pair: the value for `a` shown first, and for `b` shown first."""
    return [_row(item, a, b, shown_first), _row(item, b, a, shown_second)]


def _only(
    rows: list[Score], systems: str, failures: list[Failure] | None = None, **options: object
) -> Ranking:
    (ranking,) = rankings(rows, failures or [], list(systems), ["better"], **options)  # type: ignore[arg-type]
    return ranking


def _by_system(ranking: Ranking) -> dict[str, Standing]:
    return {standing.system: standing for standing in ranking.standings}


def _random(systems: str, n_items: int, seed: int, hard: bool = False) -> list[Score]:
    """Return verdicts of a judge with a position bias on all pairs in both orders."""
    random = np.random.default_rng(seed)
    quality = dict(zip(systems, random.normal(size=len(systems)), strict=True))
    rows = []
    for item in range(n_items):
        for a, b in permutations(systems, 2):
            p = 1 / (1 + math.exp(quality[b] - quality[a] - 0.4 + random.normal()))
            rows.append(_row(f"i{item}", a, b, float(p > 0.5) if hard else p))
    return rows


def _preferences(rows: list[Score]) -> dict[tuple[str, str, str], float]:
    """Return item, a, b and the preference for a, in both directions, from rows in both orders."""
    value = {(r.item, r.system, r.opponent): r.value for r in rows}
    return {(i, a, b): (v + 1 - value[i, b, a]) / 2 for (i, a, b), v in value.items()}


def _logistic(
    preferences: Sequence[tuple[str, str, float, float]], met: set[tuple[str, str]], systems: str
) -> dict[str, float]:
    """Return the strengths that maximise the likelihood of Bradley and Terry, by BFGS.

    A preference is two systems, the probability that the first is better, and a weight. Each pair of systems in `met`
    adds one tie.
    """
    index = {name: k for k, name in enumerate(systems)}
    data = [*preferences, *((a, b, 0.5, 1.0) for a, b in met)]
    first, second = (np.array([index[pair[k]] for pair in data]) for k in (0, 1))
    p, weight = (np.array([pair[k] for pair in data]) for k in (2, 3))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        gap = theta[first] - theta[second]
        residual = weight * (1 / (1 + np.exp(-gap)) - p)
        size = len(systems)
        slope = np.bincount(first, residual, size) - np.bincount(second, residual, size)
        return float((weight * (np.logaddexp(0, gap) - p * gap)).sum()), slope

    strengths = minimize(loss, np.zeros(len(systems)), jac=True, options={"gtol": 1e-7}).x
    return dict(zip(systems, strengths - strengths.mean(), strict=True))


def test_win_rate_of_two_systems_equals_alpacaeval() -> None:
    shown_first, shown_second = [0.9, 0.2, 0.7, 1.0], [0.3, 0.6, 0.5, 0.2]
    rows = [r for k in range(4) for r in _both(f"i{k}", "a", "b", shown_first[k], shown_second[k])]
    standings = _by_system(_only(rows, "ab"))
    # preferences .8, .3, .6, .9
    assert (standings["a"].win_rate, standings["b"].win_rate) == (
        pytest.approx(0.65),
        pytest.approx(0.35),
    )
    a = standings["a"]
    assert (a.wins, a.losses, a.n) == (3, 1, 4)
    # one tie added to 2.6 wins and 1.4 losses
    assert standings["a"].strength == pytest.approx(math.log(3.1 / 1.9) / 2, abs=1e-7)


def test_strengths_equal_evalicas_with_one_tie_added_for_each_pair() -> None:
    rows = _random("abcde", 12, seed=3, hard=True)
    xs, ys = [r.system for r in rows], [r.opponent for r in rows]
    winners = [evalica.Winner.X if r.value else evalica.Winner.Y for r in rows]
    weights = [0.5] * len(rows)  # two rows are one pair
    for a, b in combinations("abcde", 2):
        xs.append(a)
        ys.append(b)
        winners.append(evalica.Winner.Draw)
        weights.append(1.0)
    fit = evalica.bradley_terry(xs, ys, winners, weights=weights, tolerance=1e-12, limit=10_000)
    expected = np.log(fit.scores)
    expected -= expected.mean()
    for standing in _only(rows, "abcde").standings:
        assert standing.strength == pytest.approx(expected[standing.system], abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_strengths_equal_a_logistic_regression(seed: int) -> None:
    rows = [r for r in _random("abcd", 8, seed) if {r.system, r.opponent} != {"a", "d"}]
    preferences = [(a, b, p, 1.0) for (_, a, b), p in _preferences(rows).items() if a < b]
    expected = _logistic(preferences, {(a, b) for a, b, *_ in preferences}, "abcd")
    for standing in _only(rows, "abcd").standings:
        assert standing.strength == pytest.approx(expected[standing.system], abs=1e-5)


def test_strengths_are_finite_if_a_system_always_wins() -> None:
    rows = [
        r
        for k in range(20)
        for a, b in combinations("abc", 2)
        for r in _both(f"i{k}", a, b, 1.0, 0.0)
    ]
    ranking = _only(rows, "abc")
    assert [(s.system, s.win_rate) for s in ranking.standings] == [
        ("a", 1.0),
        ("b", 0.5),
        ("c", 0.0),
    ]
    expected = _logistic(
        [(a, b, 1.0, 1.0) for a, b in combinations("abc", 2)] * 20, {*combinations("abc", 2)}, "abc"
    )
    assert [s.strength for s in ranking.standings] == pytest.approx(
        [expected[name] for name in "abc"], abs=1e-5
    )


def test_strengths_converge_along_a_chain_of_sure_winners() -> None:
    names = "abcdefghijkl"
    pairs = list(pairwise(names))
    rows = [r for k in range(100) for a, b in pairs for r in _both(f"i{k}", a, b, 1.0, 0.0)]
    standings = _by_system(_only(rows, names))
    # Each pair is compared only with each other: 100.5 wins to 0.5.
    for a, b in pairs:
        difference = standings[a].strength - standings[b].strength  # type: ignore[operator]
        assert difference == pytest.approx(math.log(201), abs=1e-6)


def _uneven() -> list[Score]:
    """Return verdicts in which b and c meet only on two items, so that the number of pairs differs between items."""
    return [
        r
        for r in _random("abc", 6, seed=5)
        if {r.system, r.opponent} != {"b", "c"} or r.item in ("i0", "i3")
    ]


@pytest.mark.parametrize("wins", [0, 1, 4, 9, 10])
def test_the_interval_of_a_win_rate_is_wilsons_with_students_t(wins: int) -> None:
    rows = [
        r for k in range(10) for r in _both(f"i{k}", "a", "b", float(k < wins), float(k >= wins))
    ]
    standing = _by_system(_only(rows, "ab"))["a"]
    tries = 10 if wins in (0, 10) else 9  # n − 1, as the variance's divisor is
    # scipy divides by 10 and uses z, so z is t for a division by `tries`.
    z = student.ppf(0.975, 9) * math.sqrt(10 / tries)
    expected = binomtest(wins, 10).proportion_ci(
        confidence_level=2 * norm.cdf(z) - 1, method="wilson"
    )
    assert standing.low == pytest.approx(expected.low)
    assert standing.high == pytest.approx(expected.high)


def test_the_interval_of_a_win_rate_uses_the_variance_between_items() -> None:
    standings = _by_system(_only(_uneven(), "abc"))
    preferences = _preferences(_uneven())
    for name in "abc":
        items = [
            [p for (item, a, _), p in preferences.items() if (item, a) == (f"i{k}", name)]
            for k in range(6)
        ]
        rate = standings[name].win_rate
        residuals = [sum(item) - rate * len(item) for item in items]
        variance = 6 / 5 * sum(residual**2 for residual in residuals) / sum(map(len, items)) ** 2
        # Wilson's ends are t standard errors from the rate, with the errors at the ends.
        for end in (standings[name].low, standings[name].high):
            assert end is not None
            error = math.sqrt(variance * end * (1 - end) / (rate * (1 - rate)))
            assert abs(end - rate) == pytest.approx(student.ppf(0.975, 5) * error)


def test_intervals_of_strengths_come_from_the_influence_of_items() -> None:
    standings = _by_system(_only(_uneven(), "abc"))
    preferences = [(item, a, b, p) for (item, a, b), p in _preferences(_uneven()).items() if a < b]

    def fitted(item: str, weight: float) -> dict[str, float]:
        weighted = [(a, b, p, weight if i == item else 1.0) for i, a, b, p in preferences]
        return _logistic(weighted, {*combinations("abc", 2)}, "abc")

    step = 0.02
    pulls = [(fitted(f"i{k}", 1 + step), fitted(f"i{k}", 1 - step)) for k in range(6)]
    for name in "abc":
        variance = 6 / 5 * sum(((up[name] - down[name]) / (2 * step)) ** 2 for up, down in pulls)
        half_width = student.ppf(0.975, 5) * math.sqrt(variance)
        strength = standings[name].strength
        assert strength is not None
        # The added ties pull every strength towards 0, so the interval is extended by as much away from 0.
        ends = [
            strength - (standings[name].strength_low or 0.0),
            (standings[name].strength_high or 0.0) - strength,
        ]
        assert min(ends) == pytest.approx(half_width, rel=1e-3)
        assert ends[strength > 0] == max(ends) < 1.5 * half_width


def test_items_with_equal_verdicts_have_wilsons_interval_over_items() -> None:
    rows = [
        r
        for k in range(8)
        for a, b in combinations("abc", 2)
        for r in _both(f"i{k}", a, b, 1.0, 0.0)
    ]
    a, b, c = (_by_system(_only(rows, "abc"))[name] for name in "abc")
    t = student.ppf(0.975, 7)
    assert (a.low, a.high) == (pytest.approx(8 / (8 + t**2)), 1.0)
    assert (c.low, c.high) == (0.0, pytest.approx(t**2 / (8 + t**2)))
    even = binomtest(4, 8).proportion_ci(confidence_level=2 * norm.cdf(t) - 1, method="wilson")
    assert (b.low, b.high) == (pytest.approx(even.low), pytest.approx(even.high))
    for standing in (a, b, c):
        assert standing.strength is not None
        assert standing.strength_low is not None
        assert standing.strength_low < standing.strength < (standing.strength_high or 0)


def test_a_strength_with_equal_items_has_the_standard_error_of_the_model() -> None:
    rows = [r for k in range(5) for r in _both(f"i{k}", "a", "b", 1.0, 0.0)]
    a = _by_system(_only(rows, "ab"))["a"]
    p = 5.5 / 6  # with the tie
    error = 1 / math.sqrt(6 * p * (1 - p)) / 2  # half of the error of the log-odds
    assert a.strength == pytest.approx(math.log(p / (1 - p)) / 2, abs=1e-6)
    pull = (p - 0.5) / (5 * p * (1 - p)) / 2  # of the added tie: one step of Newton's method
    assert a.strength_high == pytest.approx(
        (a.strength or 0) + student.ppf(0.975, 4) * error + pull, abs=1e-5
    )
    assert a.strength_low == pytest.approx(
        (a.strength or 0) - student.ppf(0.975, 4) * error, abs=1e-5
    )


def test_the_method_names_the_interval() -> None:
    ranking = _only(_random("ab", 5, seed=0), "ab")
    assert "Wilson's score for win rates" in ranking.method
    assert "sandwich errors for strengths" in ranking.method


def test_wins_losses_ties_and_flips_by_hand() -> None:
    rows = [
        *_both("won", "a", "b", 1.0, 0.0),
        *_both("lost", "a", "b", 0.2, 0.9),
        *_both("the first, with unequal strength", "a", "b", 0.6, 0.9),
        *_both("tie", "a", "b", 0.5, 0.5),
        *_both("won: the other order says tie", "a", "b", 1.0, 0.5),
        *_both("always the first", "a", "b", 1.0, 1.0),
        *_both("always the first, by probability", "a", "b", 0.9, 0.9),
        _row("equal", "a", "b", 0.5, IDENTICAL),
        _row("equal", "b", "a", 0.5, IDENTICAL),
    ]
    ranking = _only(rows, "ab")
    a, b = _by_system(ranking)["a"], _by_system(ranking)["b"]
    assert (a.wins, a.losses, a.ties, a.undecided, a.n) == (2, 1, 2, 3, 8)
    assert (b.wins, b.losses, b.ties, b.undecided, b.n) == (1, 2, 2, 3, 8)
    # The pair of equal texts was not judged.
    assert a.flip_rate == b.flip_rate == ranking.flip_rate == 4 / 7
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (8, 0, 0)
    # mean of the first: .5, .55, .75, .5, .75, 1, .9
    assert ranking.position_bias == pytest.approx(4.95 / 7 - 0.5)


@given(st.floats(0, 1), st.integers(1, 4))
@few
def test_opposite_preferences_tie_despite_rounding(value: float, n: int) -> None:
    ranking = _only([r for k in range(n) for r in _both(f"i{k}", "a", "b", value, value)], "ab")
    for standing in ranking.standings:
        assert (standing.ties, standing.undecided) == ((n, 0) if value == 0.5 else (0, n))
        assert standing.win_rate == 0.5


def test_a_pair_without_one_order_is_not_compared() -> None:
    rows = [
        *_both("whole", "a", "b", 0.9, 0.3),
        _row("half", "a", "b", 1.0),
        _row("missing", "b", "a", 1.0),
    ]
    failures = [_failed("half", "b", "a"), _failed("none", "a", "b"), _failed("none", "b", "a")]
    ranking = _only(rows, "ab", failures)
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (1, 3, 3)
    assert _by_system(ranking)["a"].win_rate == pytest.approx(0.8)
    assert ranking.position_bias == pytest.approx(0.1)


def test_a_ranking_of_one_order_counts_pairs_of_one_order() -> None:
    rows = [_row("i0", "a", "b", 0.9), _row("i1", "b", "a", 0.3), _row("i2", "b", "a", 0.5)]
    ranking = _only(rows, "ab", [_failed("i3", "a", "b")], orders=1)
    a = _by_system(ranking)["a"]
    assert a.win_rate == pytest.approx((0.9 + 0.7 + 0.5) / 3)
    assert (a.wins, a.losses, a.ties, a.undecided) == (2, 0, 1, 0)
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (3, 1, 1)
    assert (ranking.flip_rate, a.flip_rate, ranking.position_bias) == (None, None, None)


def test_the_matrix_has_a_cell_for_each_pair_of_systems() -> None:
    rows = [
        *_both("i0", "b", "a", 1.0, 0.0),
        *_both("i1", "a", "b", 0.8, 0.4),
        *_both("i0", "b", "c", 0.9, 0.1),
    ]
    ranking = _only(rows, "abcd")
    assert ranking.systems == ("a", "b", "c", "d")
    assert ranking.n == ((0, 2, 0, 0), (2, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 0))
    rounded = [
        [None if rate is None else round(rate, 12) for rate in row] for row in ranking.win_rate
    ]
    assert rounded == [
        [None, 0.35, None, None],
        [0.65, None, 0.9, None],
        [None, 0.1, None, None],
        [None] * 4,
    ]
    assert [s.system for s in ranking.standings] == ["b", "a", "c"]  # d was never compared


def test_groups_that_never_met_have_no_strengths() -> None:
    rows = [r for k in range(5) for pair in ("ab", "cd") for r in _both(f"i{k}", *pair, 0.8, 0.3)]
    ranking = _only(rows, "abcd")
    assert has_line(ranking.note, "2 groups", "never met", "no strengths")
    for standing in ranking.standings:
        assert standing.strength is None
        assert (standing.strength_low, standing.strength_high) == (None, None)
        assert standing.low is not None
    joined = _only([*rows, *_both("i0", "b", "c", 0.8, 0.3)], "abcd")
    assert joined.note == ""
    assert all(standing.strength is not None for standing in joined.standings)


def test_a_system_with_fewer_than_five_items_has_no_interval() -> None:
    rows = [r for k in range(5) for r in _both(f"i{k}", "a", "b", 0.9, k / 10)]
    rows += [r for k in range(4) for r in _both(f"i{k}", "b", "c", 0.6, k / 10)]
    a, _, c = (_by_system(_only(rows, "abc"))[name] for name in "abc")
    assert (c.low, c.high, c.strength_low, c.strength_high, c.items) == (None, None, None, None, 4)
    assert c.strength is not None
    assert (a.low is not None, a.strength_low is not None, a.items) == (True, True, 5)
    few = _only(rows[:8], "ab")
    assert has_line(few.method, "fewer than 5 items")
    assert {s.low for s in few.standings} == {None}


def test_systems_that_met_different_opponents_are_ordered_by_strength() -> None:
    """`weak` wins 7 of 10 but met only the weakest. `strong` loses 6 of 10 to the best and beats the weakest."""
    met = {
        ("best", "strong"): 6,
        ("strong", "weakest"): 9,
        ("best", "weakest"): 9,
        ("weak", "weakest"): 7,
    }
    rows = []
    for (first, second), wins in met.items():
        n_items = 2 if (first, second) == ("strong", "weakest") else 10
        for k in range(n_items):
            rows += _both(f"i{k}", first, second, float(k < wins), float(k >= wins))
    names = ["best", "strong", "weak", "weakest"]
    unbalanced = _only(rows, names)
    rates = {s.system: s.win_rate for s in unbalanced.standings}
    assert rates["weak"] > rates["strong"]
    assert [s.system for s in unbalanced.standings] == names
    assert unbalanced.by_strength


def test_systems_that_met_the_same_opponents_are_ordered_by_win_rate() -> None:
    rows = [
        r
        for k in range(5)
        for a, b in combinations("abc", 2)
        for r in _both(f"i{k}", a, b, 0.8, 0.3)
    ]
    assert not _only(rows, "abc").by_strength


def test_a_ranking_without_a_compared_pair_has_no_standings() -> None:
    ranking = _only([_row("i0", "a", "b", 1.0)], "ab", [_failed("i0", "b", "a")])
    assert (ranking.standings, ranking.pairs, ranking.incomplete, ranking.failed) == ((), 0, 1, 1)
    assert ranking.win_rate == ((None, None), (None, None))
    assert ranking.note == "No pair was compared."
    assert (ranking.flip_rate, ranking.position_bias) == (None, None)


def test_each_criterion_has_a_separate_ranking() -> None:
    better = _both("i0", "a", "b", 1.0, 0.0)
    clearer = [replace(row, column="clearer", value=1 - row.value) for row in better]
    pointwise = Score("i0", "a", "better", 4.0, SINGLE)
    stranger = _row("i0", "a", "z", 1.0)
    by_clearer, by_better = rankings(
        [*better, *clearer, pointwise, stranger], [], ["a", "b"], ["clearer", "better"]
    )
    assert (by_clearer.column, by_clearer.standings[0].system) == ("clearer", "b")
    assert (by_better.column, by_better.standings[0].system) == ("better", "a")
    assert (by_better.pairs, by_better.incomplete) == (1, 0)


def test_a_fit_that_did_not_converge_has_no_strengths(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _random("abcd", 5, seed=1)
    monkeypatch.setattr(strengths_module, "_LIMIT", 1)
    ranking = _only(rows, "abcd")
    assert has_line(ranking.note, "Bradley-Terry", "not converge", "no strengths")
    assert {s.strength for s in ranking.standings} == {None}
    assert None not in {s.low for s in ranking.standings}


_answers = st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])
_data = st.lists(st.tuples(*[_answers] * 6), min_size=5, max_size=7)
"""Answers for each item to the three pairs of a, b and c, each pair in both orders."""


def _rows_of(data: list[tuple[float, ...]], names: str = "abc") -> list[Score]:
    rows = []
    for k, values in enumerate(data):
        answers = zip(combinations(names, 2), values[::2], values[1::2], strict=True)
        for (a, b), a_first, b_first in answers:
            rows += _both(f"i{k}", a, b, a_first, b_first)
    return rows


@given(_data)
@few
def test_win_rates_sum_to_the_number_of_pairs(data: list[tuple[float, ...]]) -> None:
    ranking = _only(_rows_of(data), "abc")
    assert sum(s.win_rate * s.n for s in ranking.standings) == pytest.approx(ranking.pairs)
    assert sum(s.strength or 0.0 for s in ranking.standings) == pytest.approx(0, abs=1e-9)
    for standing in ranking.standings:
        assert standing.wins + standing.losses + standing.ties + standing.undecided == standing.n


@given(_data)
@few
def test_swapping_system_and_opponent_mirrors_the_ranking(data: list[tuple[float, ...]]) -> None:
    rows = _rows_of(data)
    mirrored_rows = [replace(row, system=row.opponent, opponent=row.system) for row in rows]
    ranking, mirrored = _only(rows, "abc"), _only(mirrored_rows, "abc")
    assert ranking.flip_rate == mirrored.flip_rate
    assert ranking.position_bias == mirrored.position_bias
    for name, standing in _by_system(ranking).items():
        mirror = _by_system(mirrored)[name]
        assert (standing.wins, standing.ties) == (mirror.losses, mirror.ties)
        assert standing.undecided == mirror.undecided
        assert standing.win_rate == pytest.approx(1 - mirror.win_rate)
        assert standing.strength == pytest.approx(-mirror.strength, abs=1e-6)  # type: ignore[operator]
        assert standing.low == pytest.approx(1 - mirror.high)  # type: ignore[operator]
        assert standing.strength_high == pytest.approx(-mirror.strength_low, abs=1e-6)  # type: ignore[operator]


@given(_data, st.permutations("abc"), st.randoms(use_true_random=False))
@few
def test_names_and_order_of_rows_and_systems_do_not_matter(data, names, random) -> None:  # type: ignore[no-untyped-def]
    standings = _by_system(_only(_rows_of(data), "abc"))
    rows = _rows_of(data, "".join(names))
    random.shuffle(rows)
    renamed_standings = _by_system(_only(rows, "abc"))
    exact = ("n", "wins", "losses", "ties", "flip_rate")
    numbers = ("win_rate", "low", "high", "strength", "strength_low", "strength_high")
    for name, new_name in zip("abc", names, strict=True):
        standing, renamed = standings[name], renamed_standings[new_name]
        for field in exact:
            assert getattr(standing, field) == getattr(renamed, field)
        for field in numbers:
            assert getattr(standing, field) == pytest.approx(getattr(renamed, field), abs=1e-6)


@given(_data)
@few
def test_balanced_strengths_are_ordered_by_win_rate(
    data: list[tuple[float, ...]],
) -> None:
    standings = _only(_rows_of(data), "abc").standings
    for higher, lower in combinations(standings, 2):
        assert higher.strength >= lower.strength - 1e-7  # type: ignore[operator]


def test_a_tie_with_a_rounding_error_is_a_tie() -> None:
    rows = [
        Score("i", a, "c", 0.5000000000000001, Provenance("samples"), b) for a, b in ("xy", "yx")
    ]
    (ranking,) = rankings(rows, (), ["x", "y"], ["c"])
    assert (ranking.flip_rate, [s.ties for s in ranking.standings]) == (0.0, [1, 1])


def test_errors_of_strengths_are_whites_with_the_added_ties_in_the_information() -> None:
    random = np.random.default_rng(3)
    rows = []
    for k in range(7):
        for a, b in combinations("abc", 2):
            a_first, b_first = random.integers(0, 3, size=2) / 2
            rows += _both(f"i{k}", a, b, float(a_first), float(b_first))
    pairs = [
        (item, "abc".index(a), "abc".index(b), p)
        for (item, a, b), p in _preferences(rows).items()
        if a < b
    ]
    ranking = _by_system(_only(rows, "abc"))
    strengths = np.array([ranking[name].strength for name in "abc"])
    cells = list(combinations(range(3), 2))
    sides = {(a, b): np.eye(3)[a] - np.eye(3)[b] for a, b in cells}
    expected = {(a, b): 1 / (1 + math.exp(strengths[b] - strengths[a])) for a, b in cells}
    information = np.zeros((3, 3))
    for cell in cells:
        n_pairs = 1 + sum((a, b) == cell for _, a, b, _ in pairs)  # with the added tie
        variance = expected[cell] * (1 - expected[cell])
        information += n_pairs * variance * np.outer(sides[cell], sides[cell])
    inverse = np.linalg.pinv(information)
    by_item = {item: np.zeros(3) for item, *_ in pairs}
    for item, a, b, p in pairs:
        by_item[item] += (p - expected[a, b]) * sides[a, b]
    meat = 7 / 6 * sum(np.outer(pull, pull) for pull in by_item.values())
    errors = np.sqrt(np.diag(inverse @ meat @ inverse))
    for name, error in zip("abc", errors, strict=True):
        standing = ranking[name]
        assert standing.strength is not None
        ends = (
            standing.strength - (standing.strength_low or 0.0),
            (standing.strength_high or 0.0) - standing.strength,
        )
        assert min(ends) == pytest.approx(student.ppf(0.975, 6) * error, rel=1e-6)


def test_win_rates_against_one_system_have_the_p_of_the_sign_test() -> None:
    """If each item is won or lost, the sign-flip test is the binomial test. Holm doubles the smaller of two p."""
    wins = {"a": 11, "c": 8}
    rows = [
        row
        for system, number in wins.items()
        for k in range(12)
        for row in _both(f"i{k}", system, "b", float(k < number), float(k >= number))
    ]
    ranking = _only(rows, "abc", against="b")
    p = {system: binomtest(number, 12).pvalue for system, number in wins.items()}
    by_system = _by_system(ranking)
    assert by_system["a"].p == pytest.approx(2 * p["a"])
    assert by_system["c"].p == pytest.approx(p["c"])
    assert by_system["b"].p is None
    assert {name: s.apart for name, s in by_system.items()} == {"a": 1, "b": 0, "c": 0}
    assert ranking.against == "b"
    assert {s.p for s in _only(rows, "abc").standings} == {None}


def test_a_pair_whose_likeliest_label_is_the_tie_is_tied() -> None:
    """Regression: a judge that said tie with 80% in every pair had a winner of every pair."""
    leaning = Provenance("logprobs", argmax="C")
    win = Provenance("logprobs", argmax="A")
    rows = [
        _row("same lean", "a", "b", 0.51, leaning),
        _row("same lean", "b", "a", 0.49, leaning),
        _row("lean with the order", "a", "b", 0.53, leaning),
        _row("lean with the order", "b", "a", 0.51, leaning),
        _row("a win in one order", "a", "b", 0.9, win),
        _row("a win in one order", "b", "a", 0.49, leaning),
    ]
    ranking = _only(rows, "ab", tie_labels={"better": "C"})
    a = _by_system(ranking)["a"]
    assert (a.wins, a.losses, a.ties, a.undecided) == (1, 0, 2, 0)
    assert ranking.flip_rate == pytest.approx(1 / 3)
    unlabelled = _by_system(_only(rows, "ab"))["a"]
    assert (unlabelled.wins, unlabelled.ties, unlabelled.undecided) == (2, 0, 1)
    assert a.win_rate == unlabelled.win_rate


@pytest.mark.parametrize(
    ("labels", "values", "label"),
    [
        (("A", "B", "C"), (1.0, 0.0, 0.5), "C"),
        (("A", "B"), (1.0, 0.0), None),
        (("A", "B", "C", "D"), (1.0, 0.0, 0.5, 0.5), None),
        ((), (), None),
    ],
)
def test_the_label_of_a_tie_is_the_only_one_that_counts_half(
    labels: tuple[str, ...], values: tuple[float, ...], label: str | None
) -> None:
    column = Column("better", "criterion", Signature("x"), 0.0, 1.0, labels, values=values)
    assert tie_label(column) == label
