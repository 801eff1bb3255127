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

from judge.core.records import Failure, Provenance, Score
from judge.stats import strengths as strengths_module
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
    """Strengths that maximise the likelihood of Bradley and Terry with one tie for each of `met`, by BFGS.

    Preferences are two systems, that for the first, and the weight.
    """
    at = {name: k for k, name in enumerate(systems)}
    data = [*preferences, *((a, b, 0.5, 1.0) for a, b in met)]
    one, other = (np.array([at[pair[k]] for pair in data]) for k in (0, 1))
    p, weight = (np.array([pair[k] for pair in data]) for k in (2, 3))

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        gap = theta[one] - theta[other]
        residual = weight * (1 / (1 + np.exp(-gap)) - p)
        size = len(systems)
        slope = np.bincount(one, residual, size) - np.bincount(other, residual, size)
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
    assert (standings["a"].wins, standings["a"].losses, standings["a"].n) == (3, 1, 4)
    # one tie added to 2.6 wins and 1.4 losses
    assert standings["a"].strength == pytest.approx(math.log(3.1 / 1.9) / 2, abs=1e-7)


def test_strengths_are_evalicas_on_wins_and_losses_with_the_ties_added() -> None:
    rows = _random("abcde", 12, seed=3, hard=True)
    xs, ys = [r.system for r in rows], [r.opponent for r in rows]
    winners = [evalica.Winner.X if r.value else evalica.Winner.Y for r in rows]
    weights = [0.5] * len(rows)  # two rows are one pair
    for a, b in combinations("abcde", 2):
        xs, ys, winners, weights = (
            [*xs, a],
            [*ys, b],
            [*winners, evalica.Winner.Draw],
            [*weights, 1.0],
        )
    theirs = np.log(
        evalica.bradley_terry(
            xs, ys, winners, weights=weights, tolerance=1e-12, limit=10_000
        ).scores
    )
    for standing in _only(rows, "abcde").standings:
        assert standing.strength == pytest.approx(theirs[standing.system] - theirs.mean(), abs=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_strengths_equal_a_logistic_regression(seed: int) -> None:
    rows = [r for r in _random("abcd", 8, seed) if {r.system, r.opponent} != {"a", "d"}]
    preferences = [(a, b, p, 1.0) for (_, a, b), p in _preferences(rows).items() if a < b]
    theirs = _logistic(preferences, {(a, b) for a, b, *_ in preferences}, "abcd")
    for standing in _only(rows, "abcd").standings:
        assert standing.strength == pytest.approx(theirs[standing.system], abs=1e-5)


def test_strengths_exist_where_a_system_wins_every_time() -> None:
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
    theirs = _logistic(
        [(a, b, 1.0, 1.0) for a, b in combinations("abc", 2)] * 20, {*combinations("abc", 2)}, "abc"
    )
    assert [s.strength for s in ranking.standings] == pytest.approx(
        [theirs[name] for name in "abc"], abs=1e-5
    )


def test_strengths_converge_along_a_chain_of_sure_winners() -> None:
    names = "abcdefghijkl"
    pairs = list(pairwise(names))
    rows = [r for k in range(100) for a, b in pairs for r in _both(f"i{k}", a, b, 1.0, 0.0)]
    standings = _by_system(_only(rows, names))
    for a, b in pairs:  # a tree: every edge is one comparison, 100.5 to 0.5
        assert standings[a].strength - standings[b].strength == pytest.approx(
            math.log(201), abs=1e-6
        )  # type: ignore[operator]


def _uneven() -> list[Score]:
    """b and c do not meet on every item, so that the number of pairs differs between items."""
    return [
        r
        for r in _random("abc", 6, seed=5)
        if {r.system, r.opponent} != {"b", "c"} or r.item in ("i0", "i3")
    ]


@pytest.mark.parametrize("wins", [0, 1, 4, 9, 10])
def test_win_rate_interval_is_wilsons_with_students_t(wins: int) -> None:
    rows = [
        r for k in range(10) for r in _both(f"i{k}", "a", "b", float(k < wins), float(k >= wins))
    ]
    standing = _by_system(_only(rows, "ab"))["a"]
    tries = 10 if wins in (0, 10) else 9  # n − 1, as the variance's divisor is
    z = student.ppf(0.975, 9) * math.sqrt(10 / tries)  # of which scipy's makes what tries make of t
    theirs = binomtest(wins, 10).proportion_ci(
        confidence_level=2 * norm.cdf(z) - 1, method="wilson"
    )
    assert (standing.low, standing.high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_items_with_several_pairs_count_as_many_tries_as_they_scatter_like() -> None:
    standings = _by_system(_only(_uneven(), "abc"))
    preferences = _preferences(_uneven())
    for name in "abc":
        items = [
            [p for (item, a, _), p in preferences.items() if (item, a) == (f"i{k}", name)]
            for k in range(6)
        ]
        rate = standings[name].win_rate
        away = [sum(one) - rate * len(one) for one in items]
        variance = 6 / 5 * sum(each**2 for each in away) / sum(map(len, items)) ** 2
        for end in (
            standings[name].low,
            standings[name].high,
        ):  # Wilson: the rates that are t of their own errors away
            assert end is not None
            error = math.sqrt(variance * end * (1 - end) / (rate * (1 - rate)))
            assert abs(end - rate) == pytest.approx(student.ppf(0.975, 5) * error)


def test_strength_intervals_come_from_item_influence() -> None:
    standings = _by_system(_only(_uneven(), "abc"))
    preferences = [(item, a, b, p) for (item, a, b), p in _preferences(_uneven()).items() if a < b]

    def fitted(item: str, weight: float) -> dict[str, float]:
        weighed = [(a, b, p, weight if of == item else 1.0) for of, a, b, p in preferences]
        return _logistic(weighed, {*combinations("abc", 2)}, "abc")

    step = 0.02
    pulls = [(fitted(f"i{k}", 1 + step), fitted(f"i{k}", 1 - step)) for k in range(6)]
    for name in "abc":
        variance = 6 / 5 * sum(((up[name] - down[name]) / (2 * step)) ** 2 for up, down in pulls)
        away = student.ppf(0.975, 5) * math.sqrt(variance)
        strength = standings[name].strength
        assert strength is not None
        # The ties pull every strength towards 0: the outer end is further away by as much.
        ends = [
            strength - (standings[name].strength_low or 0.0),
            (standings[name].strength_high or 0.0) - strength,
        ]
        assert min(ends) == pytest.approx(away, rel=1e-3)
        assert ends[strength > 0] == max(ends) < 1.5 * away


def test_items_that_all_say_the_same_are_one_try_each() -> None:
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
    for one in (a, b, c):
        assert one.strength is not None
        assert one.strength_low is not None
        assert one.strength_low < one.strength < (one.strength_high or 0)


def test_strength_with_equal_items_has_the_model_standard_error() -> None:
    rows = [r for k in range(5) for r in _both(f"i{k}", "a", "b", 1.0, 0.0)]
    a = _by_system(_only(rows, "ab"))["a"]
    p = 5.5 / 6  # with the tie
    error = 1 / math.sqrt(6 * p * (1 - p)) / 2  # of the log-odds, of which a strength is the half
    assert a.strength == pytest.approx(math.log(p / (1 - p)) / 2, abs=1e-6)
    pull = (p - 0.5) / (5 * p * (1 - p)) / 2  # of the tie, in one step of Newton's without it
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
        *_both("lost, though flipped", "a", "b", 0.6, 0.9),
        *_both("tie", "a", "b", 0.5, 0.5),
        *_both("half a win: the other order says tie", "a", "b", 1.0, 0.5),
        *_both("always the first", "a", "b", 1.0, 1.0),
        *_both("always the first, by probability", "a", "b", 0.9, 0.9),
        _row("equal", "a", "b", 0.5, IDENTICAL),
        _row("equal", "b", "a", 0.5, IDENTICAL),
    ]
    ranking = _only(rows, "ab")
    a, b = _by_system(ranking)["a"], _by_system(ranking)["b"]
    assert (a.wins, a.losses, a.ties, a.undecided, a.n) == (2, 1, 2, 2, 7)
    assert (b.wins, b.losses, b.ties, b.undecided, b.n) == (1, 2, 2, 2, 7)
    assert (
        a.flip_rate == b.flip_rate == ranking.flip_rate == 4 / 6
    )  # equal texts were not asked about
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (7, 0, 0)
    # mean of the first: .5, .75, .5, .75, 1, .9
    assert ranking.position_bias == pytest.approx(4.4 / 6 - 0.5)


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


def test_one_order_counts_where_one_order_is_meant() -> None:
    rows = [_row("i0", "a", "b", 0.9), _row("i1", "b", "a", 0.3), _row("i2", "b", "a", 0.5)]
    ranking = _only(rows, "ab", [_failed("i3", "a", "b")], orders=1)
    a = _by_system(ranking)["a"]
    assert a.win_rate == pytest.approx((0.9 + 0.7 + 0.5) / 3)
    assert (a.wins, a.losses, a.ties, a.undecided) == (2, 0, 1, 0)
    assert (ranking.pairs, ranking.incomplete, ranking.failed) == (3, 1, 1)
    assert (ranking.flip_rate, a.flip_rate, ranking.position_bias) == (None, None, None)


def test_the_matrix_has_a_cell_for_every_two_systems() -> None:
    rows = [
        *_both("i0", "b", "a", 1.0, 0.0),
        *_both("i1", "a", "b", 0.8, 0.4),
        *_both("i0", "b", "c", 0.9, 0.1),
    ]
    ranking = _only(rows, "abcd")
    assert ranking.systems == ("a", "b", "c", "d")
    assert ranking.n == ((0, 2, 0, 0), (2, 0, 1, 0), (0, 1, 0, 0), (0, 0, 0, 0))
    known = [
        [None if rate is None else round(rate, 12) for rate in row] for row in ranking.win_rate
    ]
    assert known == [
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
        assert (standing.strength, standing.strength_low, standing.strength_high) == (
            None,
            None,
            None,
        )
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
    """weak wins 7 of 10 against the weakest only. strong loses 6 of 10 to the best and beats the weakest."""
    met = {
        ("best", "strong"): 6,
        ("strong", "weakest"): 9,
        ("best", "weakest"): 9,
        ("weak", "weakest"): 7,
    }
    rows = [
        r
        for (one, other), wins in met.items()
        for k in range(10)
        for r in _both(f"i{k}", one, other, float(k < wins), float(k >= wins))
        if not (one == "strong" and other == "weakest" and k >= 2)
    ]
    names = ["best", "strong", "weak", "weakest"]
    unbalanced = _only(rows, names)
    rates = {s.system: s.win_rate for s in unbalanced.standings}
    assert rates["weak"] > rates["strong"]
    assert [s.system for s in unbalanced.standings] == names
    assert unbalanced.by_strength
    every = [
        r
        for k in range(5)
        for a, b in combinations("abc", 2)
        for r in _both(f"i{k}", a, b, 0.8, 0.3)
    ]
    assert not _only(every, "abc").by_strength


def test_nothing_compared_is_a_ranking_without_standings() -> None:
    ranking = _only([_row("i0", "a", "b", 1.0)], "ab", [_failed("i0", "b", "a")])
    assert (ranking.standings, ranking.pairs, ranking.incomplete, ranking.failed) == ((), 0, 1, 1)
    assert ranking.win_rate == ((None, None), (None, None))
    assert ranking.note == "No pair was compared."
    assert (ranking.flip_rate, ranking.position_bias) == (None, None)


def test_each_criterion_has_its_own_ranking() -> None:
    better = _both("i0", "a", "b", 1.0, 0.0)
    clearer = [replace(row, column="clearer", value=1 - row.value) for row in better]
    pointwise = Score("i0", "a", "better", 4.0, SINGLE)
    stranger = _row("i0", "a", "z", 1.0)
    one, other = rankings(
        [*better, *clearer, pointwise, stranger], [], ["a", "b"], ["clearer", "better"]
    )
    assert (one.column, one.standings[0].system) == ("clearer", "b")
    assert (other.column, other.standings[0].system) == ("better", "a")
    assert (other.pairs, other.incomplete) == (1, 0)


def test_a_fit_that_did_not_converge_gives_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = _random("abcd", 5, seed=1)
    monkeypatch.setattr(strengths_module, "_LIMIT", 1)
    ranking = _only(rows, "abcd")
    assert has_line(ranking.note, "Bradley-Terry", "not converge", "no strengths")
    assert {s.strength for s in ranking.standings} == {None}
    assert None not in {s.low for s in ranking.standings}


_answers = st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])
_data = st.lists(st.tuples(*[_answers] * 6), min_size=5, max_size=7)
"""Per item the answers to the three pairs of a, b and c, each in both orders."""


def _of(data: list[tuple[float, ...]], names: str = "abc") -> list[Score]:
    return [
        row
        for k, values in enumerate(data)
        for (a, b), one, other in zip(
            combinations(names, 2), values[::2], values[1::2], strict=True
        )
        for row in _both(f"i{k}", a, b, one, other)
    ]


@given(_data)
@few
def test_every_pair_gives_one_win_in_all(data: list[tuple[float, ...]]) -> None:
    ranking = _only(_of(data), "abc")
    assert sum(s.win_rate * s.n for s in ranking.standings) == pytest.approx(ranking.pairs)
    assert sum(s.strength or 0.0 for s in ranking.standings) == pytest.approx(0, abs=1e-9)
    for standing in ranking.standings:
        assert standing.wins + standing.losses + standing.ties + standing.undecided == standing.n


@given(_data)
@few
def test_the_other_system_in_every_place_mirrors_the_ranking(data: list[tuple[float, ...]]) -> None:
    rows = _of(data)
    mirrored = [replace(row, system=row.opponent, opponent=row.system) for row in rows]
    ours, theirs = _only(rows, "abc"), _only(mirrored, "abc")
    assert (ours.flip_rate, ours.position_bias) == (theirs.flip_rate, theirs.position_bias)
    for name, one in _by_system(ours).items():
        other = _by_system(theirs)[name]
        assert (one.wins, one.ties, one.undecided) == (other.losses, other.ties, other.undecided)
        assert one.win_rate == pytest.approx(1 - other.win_rate)
        assert one.strength == pytest.approx(-other.strength, abs=1e-6)  # type: ignore[operator]
        assert one.low == pytest.approx(1 - other.high)  # type: ignore[operator]
        assert one.strength_high == pytest.approx(-other.strength_low, abs=1e-6)  # type: ignore[operator]


@given(_data, st.permutations("abc"), st.randoms(use_true_random=False))
@few
def test_names_and_the_order_of_rows_and_systems_decide_nothing(data, names, random) -> None:  # type: ignore[no-untyped-def]
    ours = _by_system(_only(_of(data), "abc"))
    rows = _of(data, "".join(names))
    random.shuffle(rows)
    theirs = _by_system(_only(rows, "abc"))
    for name, new in zip("abc", names, strict=True):
        one, other = ours[name], theirs[new]
        assert (one.n, one.wins, one.losses, one.ties) == (
            other.n,
            other.wins,
            other.losses,
            other.ties,
        )
        assert one.flip_rate == other.flip_rate
        for field in ("win_rate", "low", "high", "strength", "strength_low", "strength_high"):
            assert getattr(one, field) == pytest.approx(getattr(other, field), abs=1e-6)


@given(_data)
@few
def test_balanced_strengths_are_ordered_by_win_rate(
    data: list[tuple[float, ...]],
) -> None:
    standings = _only(_of(data), "abc").standings
    for one, other in combinations(standings, 2):
        assert one.strength >= other.strength - 1e-7  # type: ignore[operator]


def test_a_tie_that_rounding_moved_is_a_tie() -> None:
    rows = [
        Score("i", a, "c", 0.5000000000000001, Provenance("samples"), b) for a, b in ("xy", "yx")
    ]
    (ranking,) = rankings(rows, (), ["x", "y"], ["c"])
    assert (ranking.flip_rate, [s.ties for s in ranking.standings]) == (0.0, [1, 1])


def test_the_errors_of_strengths_are_whites_with_the_tie_of_each_cell_in_the_information() -> None:
    random = np.random.default_rng(3)
    rows = [
        row for k in range(7) for a, b in combinations("abc", 2)
        for row in _both(f"i{k}", a, b, float(random.integers(0, 3) / 2), float(random.integers(0, 3) / 2))
    ]  # fmt: skip
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
    information = sum(
        (1 + sum((a, b) == cell for _, a, b, _ in pairs)) * expected[cell] * (1 - expected[cell])
        * np.outer(sides[cell], sides[cell])
        for cell in cells
    )  # fmt: skip
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
    """Items that are won or lost: the sign-flip test is the binomial test; of two p, Holm doubles the smaller."""
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
