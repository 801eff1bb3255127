from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.core.signature import Signature
from judge.report.views.item_scores import Pair, build_finding, compared
from judge.results.result import Result
from judge.stats.pairwise import rankings

LABELS = ("1", "2", "3", "4", "5")
COLUMN = Column("c", "criterion", Signature("c"), 1.0, 5.0, LABELS)


def _score(provenance: Provenance) -> Score:
    return Score("i", "s", "c", 4.0, provenance)


@pytest.mark.parametrize(
    ("provenance", "facts"),
    [
        (
            Provenance("logprobs", 0.99, None, 0.5, "4", 3.9, 4.1),
            "logprobs, mass 0.99, bounds 3.90–4.10, entropy 0.50",
        ),
        (
            Provenance("logprobs", 1.0, None, 0.5, "4", 3.999, 4.001),
            "logprobs, mass 1.00, entropy 0.50",
        ),
        (
            Provenance("decisions", 0.98, None, 0.5, "4", 3.9, 4.1),
            "decisions, mass 0.98, bounds 3.90–4.10, entropy 0.50",
        ),
        (
            Provenance("samples", 0.95, n=19, note="1 of 20 draws had no score"),
            "samples, 19 of 20 draws; 1 of 20 draws had no score",
        ),
        (Provenance("samples", 1.0, n=20), "samples, 20 draws"),
        (Provenance("samples", 1 / 3, n=1), "samples, 1 of 3 draws"),
        (Provenance("single", note="no logprobs"), "single; no logprobs"),
        (Provenance("panel", n=2, note="a: 4; b: 3.5"), "a: 4; b: 3.5"),
        (Provenance(IDENTICAL, n=0, note="equal"), "equal"),
    ],
)
def test_the_method_of_a_score_in_words(provenance: Provenance, facts: str) -> None:
    assert build_finding(_score(provenance), COLUMN).method == facts


@pytest.mark.parametrize(
    ("pass_at", "value", "below"),
    [
        (None, 3.0, ""),
        (4.0, 4.0, ""),
        (4.0, 3.2, "below 4"),
        (4.0, 3.998, "just below 4"),
        (2.5, -1.0, "below 2.5"),
    ],
)
def test_a_failing_score_shows_the_pass_threshold(
    pass_at: float | None, value: float, below: str
) -> None:
    score = replace(_score(Provenance("single")), value=value)
    assert build_finding(score, replace(COLUMN, pass_at=pass_at)).fails == below


@pytest.mark.parametrize("raw", ['["2"]', "[4", "[4]", '{"score": 4}'])
def test_a_reply_that_looks_like_a_list_is_one_reply(raw: str) -> None:
    assert build_finding(_score(Provenance("single", raw=raw)), COLUMN).replies.texts == ((raw, 1),)
    failed = Failure("i", "s", "c", "parse", "ParseError", "no score in the reply", raw)
    assert build_finding(failed, COLUMN).replies.texts == ((raw, 1),)


def test_the_distribution_is_drawn_over_the_labels_of_the_scale() -> None:
    finding = build_finding(
        _score(Provenance("logprobs", 0.8, {"4": 0.6, "5": 0.2, "2": 0.001})), COLUMN
    )
    assert finding.shares == "2: <1%, 4: 75%, 5: 25%"
    assert finding.bars == "M12 20V19M28 20V5M36 20V15"
    assert finding.labels == 5


@pytest.mark.parametrize(("better", "shade"), [("higher", 0.5), ("lower", -0.5), ("", None)])
def test_the_shade_is_the_position_on_the_scale(better: Any, shade: float | None) -> None:
    assert (
        build_finding(_score(Provenance("single")), replace(COLUMN, better=better)).shade == shade
    )


# Comparisons.

PAIRED = {"c": "c"}


def _row(first: str, second: str, value: float, method: str = "single") -> Score:
    return Score("i", first, "c", value, Provenance(method), second)


def _pairs(*rows: Score | Failure, orders: int = 2) -> tuple[Pair, ...]:
    (compared_column,) = compared(rows, PAIRED, ["a", "b", "d"], orders)
    return compared_column.pairs


def test_both_orders_are_put_together_by_the_systems_order() -> None:
    (pair,) = _pairs(_row("b", "a", 0.9), _row("a", "b", 0.2))
    one, other = pair.verdicts
    assert one is not None
    assert other is not None
    assert (pair.first, pair.second, pair.preference, pair.flipped) == (
        "a",
        "b",
        pytest.approx(0.15),
        False,
    )
    assert (one.first, one.preferred, one.strength) == ("a", "b", "0.80")
    assert (other.first, other.preferred, other.strength) == ("b", "b", "0.90")


def test_a_pair_that_lacks_an_answer_has_no_value() -> None:
    failed = Failure("i", "b", "c", "parse", "ParseError", "no answer", "Neither.", "a")
    (pair,) = _pairs(_row("a", "b", 1.0), failed)
    assert (pair.preference, pair.flipped) == (None, False)
    assert pair.verdicts[1] is not None
    assert pair.verdicts[1].finding.failure == failed


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])] * 2), min_size=1, max_size=8)
)
def test_item_flips_equal_the_statistics(values: list[tuple[float, float]]) -> None:
    rows = [
        Score(str(k), *names, Provenance("single"), opponent)  # type: ignore[call-arg]
        for k, (one, other) in enumerate(values)
        for *names, opponent in (("a", "c", one, "b"), ("b", "c", other, "a"))
    ]
    (ranking,) = rankings(rows, (), ["a", "b"], ["c"])
    flips = [
        compared(rows[2 * k : 2 * k + 2], PAIRED, ["a", "b"], 2)[0].flips
        for k in range(len(values))
    ]
    assert ranking.flip_rate == pytest.approx(sum(flips) / len(values))


def test_the_mean_preferences_make_the_win_rate(ranking: Result) -> None:
    (of,) = ranking.rankings
    systems = list(ranking.table.systems)
    values = []
    for item in ranking.table.items:
        rows = [row for row in ranking.table.rows() if row.item == item]
        (compared_column,) = compared(rows, {"overall": "overall"}, systems, 2)
        values += [
            p.preference
            for p in compared_column.pairs
            if (p.first, p.second) == ("lead", "システム二")
        ]
    assert of.win_rate[systems.index("lead")][systems.index("システム二")] == pytest.approx(
        sum(values) / len(values)
    )


def test_an_answer_whose_likeliest_label_is_the_tie_prefers_no_text() -> None:
    leaning = Score("i", "a", "c", 0.51, Provenance("logprobs", argmax="C"), "b")
    (compared_column,) = compared([leaning], PAIRED, ["a", "b"], 1, {"c": "C"})
    answer, _ = compared_column.pairs[0].verdicts
    assert answer is not None
    assert (answer.preferred, answer.strength) == ("", "")


def test_a_systems_preference_is_the_mean_over_its_complete_pairs() -> None:
    rows = (
        _row("a", "b", 1.0),
        _row("b", "a", 0.5),
        _row("a", "d", 0.0),
        _row("d", "a", 1.0),
        _row("b", "d", 1.0),
    )
    (compared_column,) = compared(rows, PAIRED, ["a", "b", "d"], 2)
    assert [compared_column.preference(system) for system in ("a", "b", "d")] == [0.375, 0.25, 1.0]
    assert compared_column.preference("nobody") is None
