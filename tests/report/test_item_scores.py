from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from judge.core.records import IDENTICAL, Column, Failure, Provenance, Score
from judge.report.views.item_scores import build_finding

LABELS = ("1", "2", "3", "4", "5")
COLUMN = Column("c", "criterion", "c", 1.0, 5.0, LABELS)


def _score(provenance: Provenance) -> Score:
    return Score("i", "s", "c", 4.0, provenance)


@pytest.mark.parametrize(
    ("provenance", "facts"),
    [
        (Provenance("logprobs", 0.99, None, 0.5, "4", 3.9, 4.1), "logprobs, mass 0.99, bounds 3.90–4.10, entropy 0.50"),
        (Provenance("logprobs", 1.0, None, 0.5, "4", 3.999, 4.001), "logprobs, mass 1.00, entropy 0.50"),
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


def test_draws_are_counted_the_commonest_first() -> None:
    raw = json.dumps(["4"] * 13 + ["5 "] * 6 + ["n/a"])
    replies = build_finding(_score(Provenance("samples", raw=raw)), COLUMN).replies
    assert replies.texts == (("4", 13), ("5", 6), ("n/a", 1))
    assert replies.brief
    assert replies.total == 20


def test_draws_with_reasons_are_kept_whole() -> None:
    raw = json.dumps(["4\nIt reads well."] * 2 + ["5\nSmooth."])
    replies = build_finding(_score(Provenance("samples", raw=raw)), COLUMN).replies
    assert replies.texts == (("4\nIt reads well.", 2), ("5\nSmooth.", 1))
    assert not replies.brief


@pytest.mark.parametrize("raw", ['["2"]', "[4", "[4]", '{"score": 4}'])
def test_a_reply_that_looks_like_a_list_is_one_reply(raw: str) -> None:
    assert build_finding(_score(Provenance("single", raw=raw)), COLUMN).replies.texts == ((raw, 1),)
    failed = Failure("i", "s", "c", "parse", "ParseError", "no score in the reply", raw)
    assert build_finding(failed, COLUMN).replies.texts == ((raw, 1),)


def test_draws_of_which_none_has_a_score_are_kept_one_by_one() -> None:
    failed = Failure(
        "i", "s", "c", "parse", "ParseError", "none of 2 draws has a score: no number", '["Sorry.", "No."]'
    )
    assert build_finding(failed, COLUMN).replies.texts == (("Sorry.", 1), ("No.", 1))


def test_a_finding_without_reason_and_replies() -> None:
    found = build_finding(_score(Provenance("decisions")), COLUMN)
    assert (found.reason, found.replies.texts, found.replies.total) == ("", (), 0)


def test_the_distribution_is_drawn_over_the_labels_of_the_scale() -> None:
    found = build_finding(_score(Provenance("logprobs", 0.8, {"4": 0.6, "5": 0.2, "2": 0.001})), COLUMN)
    assert found.shares == "2: <1%, 4: 75%, 5: 25%"
    assert found.bars == "M12 20V19M28 20V5M36 20V15"
    assert found.labels == 5


@pytest.mark.parametrize(("better", "shade"), [("higher", 0.5), ("lower", -0.5), ("", None)])
def test_the_shade_is_the_place_on_the_scale(better: Any, shade: float | None) -> None:
    assert build_finding(_score(Provenance("single")), replace(COLUMN, better=better)).shade == shade


def test_a_scale_of_words_shows_the_nearest_word() -> None:
    column = Column("c", "criterion", "c", 0.0, 1.0, ("fail", "pass"), values=(0.0, 1.0))
    assert build_finding(Score("i", "s", "c", 0.024, Provenance("logprobs")), column).value == "fail"
